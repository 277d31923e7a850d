#!/usr/bin/env python3
"""Writes class_report.txt: scikit-learn's classification_report, roc_auc_score and top_k_accuracy_score of some cases.

Run with any scikit-learn >= 1.0 (made with 1.9): python3 tests/golden/make_class_report.py > tests/golden/class_report.txt
The outputs and labels of a case come from a generator of whole numbers, which test_class_report.c repeats: one line
`case NAME SAMPLES CLASSES LEVELS LABELS CUT`, then `class`, `macro`, `weighted` and `all` lines with the numbers. LEVELS: number of
different outputs, so that few of them give ties; a power of two, so that outputs are exact in f32. LABELS: labels are below it. CUT:
classes from CUT on get the output -20, so that they are never predicted."""
import math
import warnings

from sklearn.metrics import (accuracy_score, classification_report, confusion_matrix, log_loss, roc_auc_score, top_k_accuracy_score)

warnings.simplefilter("ignore")  # precision of a class that is never predicted


def numbers(seed):
    state = seed
    while True:
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        yield state >> 33


def case(name, samples, classes, levels, labels, cut):
    g = numbers(samples * 1000 + classes)
    truth, predicted, p = [], [], []
    for _ in range(samples):
        label = next(g) % labels
        z = [next(g) % levels * (8 / levels) if c < cut else -20.0 for c in range(classes)]
        if next(g) % 2 and label < cut:
            z[label] += 1.5
        top = max(z)
        e = [math.exp(v - top) for v in z]
        total = 0.0
        for v in e:
            total += v
        truth.append(label)
        predicted.append(z.index(top))
        p.append([v / total for v in e])
    print("case", name, samples, classes, levels, labels, cut)
    r = classification_report(truth, predicted, output_dict=True, zero_division=0)
    m = confusion_matrix(truth, predicted, labels=range(classes))
    areas = []
    for c in range(classes):
        own = [t == c for t in truth]
        area = roc_auc_score(own, [q[c] for q in p]) if 0 < sum(own) < samples else math.nan
        areas.append(area)
        s = r.get(str(c), {"precision": 0, "recall": 0, "f1-score": 0, "support": 0})
        print("class", "%.17g %.17g %.17g %d %.17g" % (s["precision"], s["recall"], s["f1-score"], s["support"], area), *m[c])
    for mean in "macro", "weighted":
        s = r[mean + " avg"]
        print(mean, "%.17g %.17g %.17g" % (s["precision"], s["recall"], s["f1-score"]))
    if classes == 2:
        auc = roc_auc_score(truth, [q[1] for q in p])
    elif all(not math.isnan(a) for a in areas):
        auc = roc_auc_score(truth, p, multi_class="ovr", average="macro")
    else:  # scikit-learn has no such mean if a class has no samples
        known = [a for a in areas if not math.isnan(a)]
        auc = sum(known) / len(known) if known else math.nan
    if classes <= 5:
        top5 = 1.0
    else:  # scikit-learn orders equal outputs in another way
        top5 = top_k_accuracy_score(truth, p, k=5, labels=range(classes)) if cut == classes else math.nan
    print("all", "%.17g %.17g %.17g %.17g" % (accuracy_score(truth, predicted), auc, log_loss(truth, p, labels=range(classes)), top5))


case("plain", 200, 10, 1 << 20, 10, 10)
case("ties", 300, 4, 4, 4, 4)
case("binary", 150, 2, 1 << 20, 2, 2)
case("binary-ties", 151, 2, 4, 2, 2)
case("never-predicted", 120, 6, 1 << 20, 6, 4)
case("no-samples", 90, 7, 1 << 20, 4, 7)
case("absent", 80, 8, 1 << 20, 5, 6)
case("one-class", 40, 3, 8, 1, 3)
case("many", 400, 30, 1 << 20, 30, 30)
