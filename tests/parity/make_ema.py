#!/usr/bin/env python3
"""Writes tests/golden/ema.txt: what PyTorch does in the training of test_ema.sh.

Usage: make_ema.py OUT      (PyTorch, CPU, one thread; FashionMNIST)

Five epochs of ten steps, with torch.optim.swa_utils.AveragedModel after every step. `loss STEP VALUE` of the training; `eval EPOCH LOSS` of
the average on the first 640 test images; `at NAME COUNT NORM SUM` of every tensor of the average at the end. """
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data.distributed import DistributedSampler

from make_parity import fashion, seq

BATCH, SEED, SAMPLES = 64, 42, 640


def pixels(x):
    return (x.float() / 255 - 0.2860) / 0.3530


def main(path):
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    model = seq(("conv1", nn.Conv2d(1, 8, 3, 2, 1, bias=False)), ("bn1", nn.BatchNorm2d(8)), ("act1", nn.Tanh()),
                ("conv2", nn.Conv2d(8, 16, 3, 2, 1, bias=False)), ("bn2", nn.BatchNorm2d(16)), ("act2", nn.Tanh()),
                ("flatten", nn.Flatten()), ("fc1", nn.Linear(16 * 7 * 7, 32)), ("act3", nn.Tanh()), ("fc2", nn.Linear(32, 10)))
    x, y, tx, ty = fashion(0)
    x, y = x[:SAMPLES], y[:SAMPLES]
    opt = torch.optim.AdamW(model.parameters(), lr=0.003, weight_decay=0.05)
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
    sampler = DistributedSampler(range(SAMPLES), num_replicas=1, rank=0, shuffle=True, seed=SEED)
    lines = []
    for epoch in range(5):
        model.train()
        sampler.set_epoch(epoch)
        for i in torch.tensor(list(sampler)).split(BATCH):
            opt.zero_grad()
            loss = F.cross_entropy(model(pixels(x[i])), y[i])
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            average.update_parameters(model)
            lines.append(f"loss {len([s for s in lines if s[0] == 'l']) + 1} {loss.item():.9g}\n")
        average.eval()
        with torch.no_grad():
            lines.append(f"eval {epoch + 1} {F.cross_entropy(average(pixels(tx[:SAMPLES])), ty[:SAMPLES]).item():.9g}\n")
    with open(path, "w", encoding="ascii") as f:
        f.write(f"# make_ema.py, PyTorch {torch.__version__.split('+', maxsplit=1)[0]}\n")
        f.writelines(lines)
        for name, t in average.module.state_dict().items():
            t = t.double()
            f.write(f"at {name} {t.numel()} {t.norm().item():.9g} {t.sum().item():.9g}\n")


if __name__ == "__main__":
    main(sys.argv[1])
