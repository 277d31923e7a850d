#!/usr/bin/env python3
"""Writes tests/golden/freeze.txt and freeze_after.txt: what PyTorch does in the trainings of test_freeze.sh and test_freeze_after.sh.

Usage: make_freeze.py until|after OUT      (PyTorch, CPU, one thread; FashionMNIST)

Three epochs of ten steps. until: in the first one conv1, bn1, conv2 and bn2 have no gradients, and bn1 and bn2 are in eval mode. after:
conv1 and bn1 have no gradients after the first one, fc1 has none after the second one, and bn1 stays in train mode. One AdamW has all
parameters from the beginning; it begins to count the steps of a parameter when that has its first gradient, and leaves a parameter
without one, and its states, as they are. `loss STEP VALUE`; `at NAME COUNT NORM SUM` of every tensor at the end. """
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data.distributed import DistributedSampler

from make_parity import fashion, seq, write_training

BATCH, SEED, SAMPLES = 64, 42, 640


def main(which, path):
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    model = seq(("conv1", nn.Conv2d(1, 8, 3, 2, 1, bias=False)), ("bn1", nn.BatchNorm2d(8)), ("act1", nn.Tanh()),
                ("conv2", nn.Conv2d(8, 16, 3, 2, 1, bias=False)), ("bn2", nn.BatchNorm2d(16)), ("act2", nn.Tanh()),
                ("flatten", nn.Flatten()), ("fc1", nn.Linear(16 * 7 * 7, 32)), ("act3", nn.Tanh()), ("fc2", nn.Linear(32, 10)))
    x, y, _, _ = fashion(0)
    x, y = x[:SAMPLES], y[:SAMPLES]
    body = (model.conv1, model.bn1, model.conv2, model.bn2)
    opt = torch.optim.AdamW(model.parameters(), lr=0.003, weight_decay=0.05)
    sampler = DistributedSampler(range(SAMPLES), num_replicas=1, rank=0, shuffle=True, seed=SEED)
    losses = []
    for epoch in range(3):
        model.train()
        if which == "until":
            for m in body:
                m.requires_grad_(epoch > 0).train(epoch > 0)
        else:
            model.conv1.requires_grad_(epoch < 1)
            model.bn1.requires_grad_(epoch < 1)
            model.fc1.requires_grad_(epoch < 2)
        sampler.set_epoch(epoch)
        for i in torch.tensor(list(sampler)).split(BATCH):
            opt.zero_grad()
            loss = F.cross_entropy(model((x[i].float() / 255 - 0.2860) / 0.3530), y[i])
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            losses.append(loss.item())
    write_training(path, "make_freeze.py", losses, model)


if __name__ == "__main__":
    main(*sys.argv[1:])
