#!/usr/bin/env python3
"""Writes lr_find.txt: what fastai's lr_find suggests for some curves of losses.

Run with fastai (made with 2.8.12): python3 tests/golden/make_lr_find.py > tests/golden/lr_find.txt
A line is `NAME STEPS POINTS SEED valley steep minimum`. The losses of a curve come from a generator of whole numbers, which
test_lr_find.c repeats. As in fastai's Learner.lr_find, the first tenth of the steps and the last five points do not count."""
from fastai.callback.schedule import minimum, steep, valley
from torch import tensor, float64


def numbers(state):
    while True:
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        yield state >> 33


def curve(points, seed):
    """Falls, then rises, with noise and with equal values."""
    g = numbers(seed)
    depth, bottom = 1 + next(g) % 64, points // 3 + next(g) % points
    noise = 1 + next(g) % 96
    return [(4096 + abs(i - bottom) * depth + next(g) % noise) / 1024 for i in range(points)]


def line(name, steps, points, seed):
    lrs = [1e-7 * (10 / 1e-7) ** (i / (steps - 1)) for i in range(points)]
    x = tensor(lrs[steps // 10:-5], dtype=float64)
    y = tensor(curve(points, seed)[steps // 10:-5], dtype=float64)
    print(name, steps, points, seed, *("%.17g" % f(x, y, steps)[0] for f in (valley, steep, minimum)))


for seed in range(1, 25):
    line("whole", 100, 100, seed)
for seed in range(1, 13):
    line("ended", 100, 60 + seed, seed)
    line("short", 20, 20, seed)
    line("long", 1000, 700, seed)
