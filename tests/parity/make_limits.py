#!/usr/bin/env python3
"""Writes tests/golden/torch_limits.txt: what PyTorch does in the trainings of test_torch_limits.sh.

Usage: make_limits.py OUT      (PyTorch 2.9 or newer, CPU, one thread; FashionMNIST)

`loss NAME STEP F32 F64`: 30 steps with a key at the limit that PyTorch allows, in float32 and, from the same weights, in float64.
Muon goes on from a state of PyTorch's: `weight NAME VALUE…` and `buffer NAME VALUE…` (momentum_buffer) are those after 10 steps, `muon
STEP VALUE` the losses of the 20 steps after them, with the Newton-Schulz iteration in f32, as gtrain has it.
"""
import copy
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim._muon as muon
from torch.utils.data.distributed import DistributedSampler

from make_parity import fashion, newton_schulz_f32, seq

BATCH, SEED = 64, 42
ADAM, RMS, SGD = torch.optim.Adam, torch.optim.RMSprop, torch.optim.SGD
RUNS = {
    "adam_eps": dict(opt=lambda p: ADAM(p, lr=1e-3, eps=0)),
    "rmsprop_eps": dict(opt=lambda p: RMS(p, lr=1e-3, eps=0)),
    "smoothing": dict(opt=lambda p: SGD(p, lr=0.05, momentum=0.9), smoothing=1.0),
    "min_lr": dict(opt=lambda p: SGD(p, lr=0.01), schedule=lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 30, eta_min=0.1)),
}


def net():
    return seq(("pool", nn.AvgPool2d(7)), ("flatten", nn.Flatten()), ("fc1", nn.Linear(16, 24)), ("act1", nn.Tanh()),
               ("fc2", nn.Linear(24, 10)))


def batches(x, y, dtype):
    order = torch.tensor(list(DistributedSampler(range(len(x)), num_replicas=1, rank=0, shuffle=True, seed=SEED)))
    for i in order.split(BATCH)[:30]:
        yield (x[i].to(dtype) / 255 - 0.2860) / 0.3530, y[i]


def main(path):
    torch.set_num_threads(1)
    x, y, _, _ = fashion(0)
    with open(path, "w", encoding="ascii") as f:
        f.write(f"# make_limits.py, PyTorch {torch.__version__.split('+', maxsplit=1)[0]}\n")
        for name, run in RUNS.items():
            torch.manual_seed(SEED)
            first, losses = net(), []
            for dtype in (torch.float32, torch.float64):
                model = copy.deepcopy(first).to(dtype)
                opt = run["opt"](model.parameters())
                schedule = run["schedule"](opt) if "schedule" in run else None
                losses.append([])
                for xb, yb in batches(x, y, dtype):
                    opt.zero_grad()
                    loss = F.cross_entropy(model(xb), yb, label_smoothing=run.get("smoothing", 0.0))
                    loss.backward()
                    opt.step()
                    if schedule:
                        schedule.step()
                    losses[-1].append(loss.item())
            for t, (a, b) in enumerate(zip(*losses)):
                f.write(f"loss {name} {t + 1} {a:.9g} {b:.9g}\n")
        muon._zeropower_via_newtonschulz = newton_schulz_f32
        torch.manual_seed(7)  # not gtrain's seed: its own state would not do
        model = net()
        weights = {n: p for n, p in model.named_parameters() if p.dim() == 2}
        opts = [torch.optim.Muon(list(weights.values()), lr=0.02), SGD([p for p in model.parameters() if p.dim() == 1], lr=0.02)]
        for t, (xb, yb) in enumerate(batches(x, y, torch.float32)):
            if t == 10:
                for n, p in model.named_parameters():
                    f.write(f"weight {n} " + " ".join(f"{v:.9g}" for v in p.reshape(-1).tolist()) + "\n")
                for n, p in weights.items():
                    f.write(f"buffer {n} " + " ".join(f"{v:.9g}" for v in opts[0].state[p]["momentum_buffer"].reshape(-1).tolist()) + "\n")
            for o in opts:
                o.zero_grad()
            loss = F.cross_entropy(model(xb), yb)
            loss.backward()
            for o in opts:
                o.step()
            if t >= 10:
                f.write(f"muon {t + 1} {loss.item():.9g}\n")


if __name__ == "__main__":
    main(sys.argv[1])
