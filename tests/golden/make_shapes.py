#!/usr/bin/env python3
"""Writes shapes.txt: output sizes of convolution and pooling layers as PyTorch infers them, or `error` where it refuses.

Lines: `TYPE HEIGHT WIDTH KEYS > H W`, with the keys of gtrain's layers. Run on a CPU: python3 make_shapes.py > shapes.txt.
"""
import random

import torch
from torch import nn

rng = random.Random(1)


def pair(lo, hi):
    return (rng.randint(lo, hi), rng.randint(lo, hi))


def text(**keys):
    return " ".join("%s=%s" % (k, "%d,%d" % v if isinstance(v, tuple) else int(v)) for k, v in keys.items())


print("# written by make_shapes.py with PyTorch", torch.__version__.split("+")[0])
for i in range(240):
    kind = ("conv2d", "maxpool2d", "avgpool2d", "adaptive_avgpool2d")[i % 4]
    h, w = pair(1, 14)
    if h == w == 1:
        w = 2  # a model's input of [C, 1, 1] has rank 2
    if kind == "conv2d":
        k = dict(kernel=pair(1, 5), stride=pair(1, 3), padding=pair(0, 3), dilation=pair(1, 3))
        m = nn.Conv2d(1, 1, k["kernel"], k["stride"], k["padding"], k["dilation"])
        keys = text(out=1, **k)
    elif kind == "adaptive_avgpool2d":
        k = dict(out=pair(1, 9))
        m = nn.AdaptiveAvgPool2d(k["out"])
        keys = text(**k)
    else:
        k = dict(kernel=pair(1, 5), stride=pair(1, 4), padding=pair(0, 3), ceil_mode=bool(rng.randint(0, 1)))
        m = (nn.MaxPool2d if kind == "maxpool2d" else nn.AvgPool2d)(k["kernel"], k["stride"], k["padding"], ceil_mode=k["ceil_mode"])
        keys = text(**k)
    try:
        y = "%d %d" % tuple(m(torch.zeros(1, 1, h, w)).shape[2:])
    except RuntimeError:
        y = "error"
    print(kind, h, w, keys, ">", y)
