#!/usr/bin/env python3
"""Writes tests/golden/sampler.txt: the order of a plain DataLoader(shuffle=True) over epochs, for tests/unit/test_schedule.c.

Usage: make_sampler.py OUT      (any PyTorch)

The loader is DataLoader(range(N), batch_size=B, shuffle=True, generator=torch.Generator().manual_seed(SEED)), iterated to its end, epoch
after epoch. A line: SEED N EPOCH and the first 24 indices.
"""
import sys

import torch
from torch.utils.data import DataLoader


def main(path):
    with open(path, "w", encoding="ascii") as f:
        f.write(f"# make_sampler.py, PyTorch {torch.__version__.split('+', maxsplit=1)[0]}\n")
        for seed in (0, 42, 2**40 + 7):
            for n, batch, drop in ((1, 1, False), (2, 1, False), (10, 3, False), (10, 3, True), (97, 97, False), (1000, 32, True),
                                   (60000, 128, False)):
                torch.manual_seed(5)
                loader = DataLoader(range(n), batch_size=batch, shuffle=True, drop_last=drop, generator=torch.Generator().manual_seed(seed))
                for epoch in range(4):
                    order = torch.cat(list(loader)).tolist()[:24]
                    torch.rand(3)  # what else draws does not matter
                    f.write(f"{seed} {n} {epoch} {' '.join(map(str, order))}\n")


if __name__ == "__main__":
    main(sys.argv[1])
