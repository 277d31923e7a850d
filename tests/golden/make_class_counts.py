#!/usr/bin/env python3
"""Prints the cases of test_class_counts.c: scikit-learn's f1_score (macro), matthews_corrcoef and balanced_accuracy_score.

Run with any scikit-learn >= 1.0 (made with 1.9). The labels and predictions of a case come from a generator of whole numbers, which the
test repeats."""
import warnings

from sklearn.metrics import balanced_accuracy_score, f1_score, matthews_corrcoef

warnings.simplefilter("ignore")  # classes that are predicted, but have no sample


def numbers(state):
    while True:
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        yield state >> 33


CASES = ((400, 2, 2, 2, 2), (400, 10, 10, 10, 2), (57, 5, 3, 5, 3), (300, 7, 7, 4, 2), (50, 3, 1, 3, 2), (40, 4, 4, 1, 9))
for samples, classes, labels, cut, right in CASES:
    g = numbers(samples * 1000 + classes)
    truth = [next(g) % labels for _ in range(samples)]
    guess = [t if next(g) % right == 0 and t < cut else next(g) % cut for t in truth]
    print("\t{%d, %d, %d, %d, %d, %.17g, %.17g, %.17g}," % (
        samples, classes, labels, cut, right, f1_score(truth, guess, average="macro", zero_division=0),
        matthews_corrcoef(truth, guess), balanced_accuracy_score(truth, guess)))
