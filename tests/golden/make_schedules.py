#!/usr/bin/env python3
"""Writes schedules.txt: learning rates of PyTorch's schedulers, one line each: name, then the rate of every step.

Run with any PyTorch (made with 1.13): python3 tests/golden/make_schedules.py > tests/golden/schedules.txt
4 steps an epoch, 40 steps, lr 0.1. Schedulers that PyTorch users step once an epoch are stepped so here."""
import math

import torch
from torch.optim.lr_scheduler import (CosineAnnealingLR, CosineAnnealingWarmRestarts, CyclicLR, ExponentialLR, LambdaLR, LinearLR,
                                      MultiStepLR, OneCycleLR, PolynomialLR, SequentialLR, StepLR)

STEPS, PER_EPOCH = 40, 4


def curve(name, make, per_epoch, key="lr", steps=STEPS, **kw):
    opt = torch.optim.SGD([torch.zeros(1, requires_grad=True, dtype=torch.float64)], lr=0.1, **kw)
    sched = make(opt)
    rates = []
    for step in range(steps):
        rates.append(opt.param_groups[0][key])
        opt.step()
        if not per_epoch or (step + 1) % PER_EPOCH == 0:
            sched.step()
    print(name, *("%.17g" % r for r in rates))


curve("step", lambda o: StepLR(o, 3, 0.5), True)
curve("multistep", lambda o: MultiStepLR(o, [2, 5], 0.1), True)
curve("multistep-steps", lambda o: MultiStepLR(o, [7, 21], 0.1), False)
curve("exponential", lambda o: ExponentialLR(o, 0.8), True)
curve("cosine", lambda o: CosineAnnealingLR(o, 40, 0.001), False)
curve("polynomial", lambda o: PolynomialLR(o, 40, 2.0), False)
curve("onecycle", lambda o: OneCycleLR(o, 0.1, total_steps=40, pct_start=0.3), False)
# The five lines with three phases, linear parts or momenta were computed with the formulas of lr_scheduler.py of PyTorch's commit 008f727,
# in Python, without PyTorch.
THREE = dict(total_steps=40, pct_start=0.3, three_phase=True)
LINEAR = dict(total_steps=40, pct_start=0.25, anneal_strategy="linear", base_momentum=0.7, max_momentum=0.9, final_div_factor=100.0)
curve("onecycle-three", lambda o: OneCycleLR(o, 0.1, **THREE), False)
curve("onecycle-linear", lambda o: OneCycleLR(o, 0.1, **LINEAR), False)
curve("momentum:onecycle", lambda o: OneCycleLR(o, 0.1, total_steps=40, pct_start=0.3), False, "momentum", momentum=0.9)
curve("momentum:onecycle-three", lambda o: OneCycleLR(o, 0.1, **THREE), False, "momentum", momentum=0.9)
curve("momentum:onecycle-linear", lambda o: OneCycleLR(o, 0.1, **LINEAR), False, "momentum", momentum=0.9)
# fastai's fit_flat_cos, which has no scheduler of its own in PyTorch: the rate ends at 0.001
curve("flat-cosine", lambda o: LambdaLR(o, lambda t: 1 if t < 30 else 0.01 + 0.99 * (1 + math.cos(math.pi * (t - 30) / 10)) / 2), False)
# made with 2.15
curve("restarts", lambda o: CosineAnnealingWarmRestarts(o, 10, eta_min=0.001), False, steps=50)
curve("restarts-longer", lambda o: CosineAnnealingWarmRestarts(o, 6, 2), False, steps=50)
for mode, gamma in (("triangular", 1.0), ("triangular2", 1.0), ("exp_range", 0.97)):
    for key, name in (("lr", ""), ("momentum", "momentum:")):
        curve(f"{name}cyclic-{mode}", lambda o: CyclicLR(o, 0.01, 0.1, 6, 10 if mode != "triangular" else None, mode, gamma), False, key,
              50, momentum=0.9)
# the function that transformers' get_inverse_sqrt_schedule passes to LambdaLR; 10000 is its timescale without a warm-up
def inverse_sqrt(optimizer, warmup=0, timescale=None):
    scale = timescale or warmup or 10_000
    return LambdaLR(optimizer, lambda t: t / max(1, warmup) if t < warmup else 1.0 / math.sqrt((t + scale - warmup) / scale))


curve("inverse-sqrt", lambda o: inverse_sqrt(o, timescale=16), False)
curve("inverse-sqrt-warmup", lambda o: inverse_sqrt(o, 8), False)
curve("inverse-sqrt-default", lambda o: inverse_sqrt(o), False)
curve("warmup-cosine", lambda o: SequentialLR(o, [LinearLR(o, 0.1, 1.0, 8), CosineAnnealingLR(o, 32)], [8]), False)
curve("warmup-step", lambda o: SequentialLR(o, [LinearLR(o, 0.25, 1.0, 5), StepLR(o, 10, 0.5)], [5]), False)
