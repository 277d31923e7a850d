#!/usr/bin/env python3
"""Writes tests/golden/muon_torch.txt: 60 steps of torch.optim.Muon as tests/parity/muon_torch.conf describes them, for test_muon_torch.sh.

Usage: make_muon_torch.py OUT      (PyTorch 2.9 or newer, CPU, one thread; FashionMNIST)

`loss STEP VALUE`, before the step; `buffer NAME NORM V0 … V15`, the optimizer's momentum_buffer after the last one: its norm and 16
samples. torch.optim.Muon's Newton-Schulz iteration runs in bf16. `f32 STEP VALUE` is the loss of the same training with that iteration in
f32: how far those two part is what bf16 does.
"""
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim._muon as muon
from torch.utils.data.distributed import DistributedSampler

from make_parity import fashion, newton_schulz_f32, sampled, seq

STEPS, BATCH, SEED = 60, 128, 42


def train():
    torch.manual_seed(SEED)
    model = seq(("flatten", nn.Flatten()), ("fc1", nn.Linear(784, 256)), ("act1", nn.Tanh()), ("fc2", nn.Linear(256, 128)),
                ("act2", nn.Tanh()),
                ("fc3", nn.Linear(128, 10)))
    x, y, _, _ = fashion(0)
    weights = [p for p in model.parameters() if p.dim() == 2]
    opts = [torch.optim.Muon(weights, lr=0.01), torch.optim.SGD([p for p in model.parameters() if p.dim() == 1], lr=0.01, momentum=0.9)]
    order = torch.tensor(list(DistributedSampler(range(len(x)), num_replicas=1, rank=0, shuffle=True, seed=SEED)))
    losses = []
    for i in order.split(BATCH)[:STEPS]:
        for o in opts:
            o.zero_grad()
        loss = F.cross_entropy(model((x[i].float() / 255 - 0.2860) / 0.3530), y[i])
        loss.backward()
        for o in opts:
            o.step()
        losses.append(loss.item())
    names = [n for n, p in model.named_parameters() if p.dim() == 2]
    return losses, {n: opts[0].state[p]["momentum_buffer"] for n, p in zip(names, weights)}


def main(path):
    torch.set_num_threads(1)
    losses, buffers = train()
    of = muon._zeropower_via_newtonschulz
    muon._zeropower_via_newtonschulz = newton_schulz_f32
    plain, exact = train()
    muon._zeropower_via_newtonschulz = of
    with open(path, "w", encoding="ascii") as f:
        f.write(f"# make_muon_torch.py, PyTorch {torch.__version__.split('+', maxsplit=1)[0]}\n")
        for kind, values in (("loss", losses), ("f32", plain)):
            for t, v in enumerate(values):
                f.write(f"{kind} {t + 1} {v:.9g}\n")
        for kind, all_of in (("buffer", buffers), ("buffer_f32", exact)):
            for name, b in all_of.items():
                b = b.double().reshape(-1)
                f.write(f"{kind} {name} {b.norm().item():.9g} " + " ".join(f"{b[i].item():.9g}" for i in sampled(len(b))) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
