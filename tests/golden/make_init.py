#!/usr/bin/env python3
"""Writes init.txt: what torch.manual_seed(s) and the construction of a model give, and torch.randperm.

Lines: `param MODEL SEED NAME COUNT FNV BITS BITS BITS BITS` (FNV-1a over the bytes of the tensor, then the first four elements' bits),
`near MODEL SEED NAME INDEX VALUE...` (up to eight elements from INDEX on, where only PyTorch's last bits are the CPU's) and
`perm SEED N FNV FIRST...`. Run with any PyTorch on a CPU: python3 make_init.py > init.txt. The models stand in test_init.c too.
"""
import struct
import sys

import torch
from torch import nn


def fnv(data):
    h = 0xCBF29CE484222325
    for b in data:
        h = ((h ^ b) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return "%016x" % h


def mlp():
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 64, bias=False), nn.ReLU(), nn.Linear(64, 10))


def cnn():
    return nn.Sequential(nn.Conv2d(3, 8, (3, 5)), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 16, 3, groups=4, bias=False), nn.Flatten(),
                         nn.Linear(1408, 10))


def words():  # tables of fewer than 16 elements, of a multiple of 16 and of other sizes are drawn in different ways
    return nn.Sequential(nn.Embedding(5, 7, padding_idx=2), nn.Embedding(5, 3), nn.Embedding(5, 3), nn.EmbeddingBag(5, 32),
                         nn.MultiheadAttention(21, 3), nn.MultiheadAttention(21, 7, bias=False), nn.Linear(21, 10))


def dump(name, make, seed, dtype):
    torch.set_default_dtype(dtype)
    torch.manual_seed(seed)
    for key, t in make().state_dict().items():
        if t.dtype == torch.int64:
            continue
        if name[:5] == "words" and key[0] in "0123":  # the last bits are those of the CPU's vector instructions
            for i, row in enumerate(t.flatten().split(8)):
                print("near", name, seed, key, 8 * i, *("%.9g" % v for v in row.tolist()))
            continue
        code, size = ("<f", 4) if t.dtype == torch.float32 else ("<d", 8)
        data = b"".join(struct.pack(code, v) for v in t.flatten().tolist())
        bits = " ".join(data[i:i + size][::-1].hex() for i in range(0, min(4 * size, len(data)), size))
        print("param", name, seed, key, t.numel(), fnv(data), bits)


print("# written by make_init.py with PyTorch", torch.__version__.split("+")[0])
for s in (0, 42, 2**40 + 7):
    dump("mlp", mlp, s, torch.float32)
    dump("cnn", cnn, s, torch.float32)
    dump("words", words, s, torch.float32)
dump("cnn64", cnn, 42, torch.float64)
dump("words64", words, 42, torch.float64)
for s, n in ((0, 10), (1, 1), (42, 1000), (7, 60000), (2**33 + 5, 50000)):
    torch.manual_seed(s)
    p = torch.randperm(n).tolist()
    print("perm", s, n, fnv(struct.pack("<%dq" % n, *p)), *p[:10])
sys.stdout.flush()
