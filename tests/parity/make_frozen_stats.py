#!/usr/bin/env python3
"""Writes tests/golden/frozen_stats.txt: what PyTorch does in the two trainings of test_frozen_stats.sh.

Usage: make_frozen_stats.py OUT      (PyTorch, CPU, one thread; FashionMNIST)

20 steps train everything. Then a new optimizer takes 40 steps from those weights: bn1 has no gradients and is in eval mode, bn2 has
gradients and is in eval mode, bn3 has no gradients and is in training mode. `loss STEP VALUE` of the second training; `at NAME COUNT NORM
SUM` of every tensor after it. """
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data.distributed import DistributedSampler

from make_parity import fashion, seq, write_training

BATCH, SEED = 64, 42


def phase(model, x, y, steps, still=()):
    opt = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.01, momentum=0.9)
    order = torch.tensor(list(DistributedSampler(range(len(x)), num_replicas=1, rank=0, shuffle=True, seed=SEED)))
    losses = []
    model.train()
    for m in still:
        m.eval()
    for i in order.split(BATCH)[:steps]:
        opt.zero_grad()
        loss = F.cross_entropy(model((x[i].float() / 255 - 0.2860) / 0.3530), y[i])
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return losses


def main(path):
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    model = seq(("conv1", nn.Conv2d(1, 8, 3, 2, 1, bias=False)), ("bn1", nn.BatchNorm2d(8)), ("act1", nn.Tanh()),
                ("conv2", nn.Conv2d(8, 16, 3, 2, 1, bias=False)), ("bn2", nn.BatchNorm2d(16)), ("act2", nn.Tanh()),
                ("flatten", nn.Flatten()),
                ("fc1", nn.Linear(16 * 7 * 7, 32)), ("bn3", nn.BatchNorm1d(32)), ("act3", nn.Tanh()), ("fc2", nn.Linear(32, 10)))
    x, y, _, _ = fashion(0)
    phase(model, x, y, 20)
    for m in (model.bn1, model.bn3):
        m.requires_grad_(False)
    losses = phase(model, x, y, 40, (model.bn1, model.bn2))
    write_training(path, "make_frozen_stats.py", losses, model)


if __name__ == "__main__":
    main(sys.argv[1])
