#!/usr/bin/env python3
"""Writes tests/golden/muon.txt: trajectories of Muon in double precision, for tests/ops/test_muon.c.

Usage: make_muon.py OUT      (any PyTorch; with 2.9 or newer the formula below is also held to torch.optim.Muon, whose Newton-Schulz
iteration runs in bf16: an element of an orthogonal matrix is at most 1, its error a few of bf16's 2^-8)

The formula is torch.optim.Muon's; `normalize` is that of airbench94_muon.
Values: make_ops.uniform of "CASE/p" and "CASE/g<step>". A line: NAME STEP VALUES…, the parameter after the step.
"""
import os
import sys

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from make_ops import f32, uniform

STEPS = 4
CASES = {  # name: shape, keys of the optimizer
    "tall": ((12, 5), dict(lr=0.1, momentum=0.95, nesterov=True, steps=5, adjust="original", weight_decay=0.1)),
    "wide": ((5, 12), dict(lr=0.05, momentum=0.9, nesterov=True, steps=5, adjust="match_rms_adamw", weight_decay=0.0)),
    "square": ((6, 6), dict(lr=0.02, momentum=0.95, nesterov=False, steps=5, adjust="original", weight_decay=0.01)),
    "conv": ((8, 3, 3, 3), dict(lr=0.24, momentum=0.6, nesterov=True, steps=3, adjust="none", weight_decay=0.0, normalize=True)),
    "conv_tall": ((20, 2, 3, 1), dict(lr=0.1, momentum=0.0, nesterov=False, steps=7, adjust="original", weight_decay=0.5, normalize=True)),
}


def newton_schulz(g, steps):
    a, b, c = 3.4445, -4.7750, 2.0315
    x = g / g.norm().clamp(min=1e-7)
    flip = len(x) > x.shape[1]
    x = x.T if flip else x
    for _ in range(steps):
        m = x @ x.T
        x = a * x + (b * m + c * m @ m) @ x
    return x.T if flip else x


def adjust(kind, rows, cols):
    return {"none": 1.0, "original": max(1.0, rows / cols) ** 0.5, "match_rms_adamw": 0.2 * max(rows, cols) ** 0.5}[kind]


def trajectory(name, shape, k):
    p = f32(uniform(f"{name}/p", shape))
    buf = torch.zeros_like(p)
    out = []
    for t in range(STEPS):
        g = f32(uniform(f"{name}/g{t}", shape))
        buf = k["momentum"] * buf + (1 - k["momentum"]) * g
        d = (1 - k["momentum"]) * g + k["momentum"] * buf if k["nesterov"] else buf
        if k.get("normalize"):
            p = p * (len(p) ** 0.5 / p.norm())
        p = p * (1 - k["lr"] * k["weight_decay"])
        flat = d.reshape(len(d), -1)
        p = p - k["lr"] * adjust(k["adjust"], *flat.shape) * newton_schulz(flat, k["steps"]).reshape(shape)
        out.append(p)
    return out


def held_to_torch(name, shape, k, ours):
    p = torch.nn.Parameter(f32(uniform(f"{name}/p", shape)).float())
    opt = torch.optim.Muon([p], lr=k["lr"], weight_decay=k["weight_decay"], momentum=k["momentum"], nesterov=k["nesterov"],
                           ns_steps=k["steps"], adjust_lr_fn=k["adjust"])
    worst = 0.0
    for t in range(STEPS):
        p.grad = f32(uniform(f"{name}/g{t}", shape)).float()
        opt.step()
        worst = max(worst, (p.detach().double() - ours[t]).abs().max().item() / (k["lr"] * adjust(k["adjust"], *shape)))
    assert worst < STEPS * 8 / 256, (name, worst)
    print(f"{name}: within {worst:.2e} of torch.optim.Muon, in units of a step")


def main(path):
    with open(path, "w", encoding="ascii") as f:
        f.write(f"# make_muon.py, double precision, PyTorch {torch.__version__}\n")
        for name, (shape, k) in CASES.items():
            ours = trajectory(name, shape, k)
            if hasattr(torch.optim, "Muon") and len(shape) == 2 and not k.get("normalize"):
                held_to_torch(name, shape, k, ours)
            for t, p in enumerate(ours):
                f.write(f"{name} {t + 1} " + " ".join(f"{v:.17g}" for v in p.reshape(-1).tolist()) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
