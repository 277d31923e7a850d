#!/usr/bin/env python3
"""Writes tests/golden/ops.bin: what PyTorch computes for every case of tests/ops/cases.txt.

Usage: make_ops.py CASES OUT      (made with PyTorch 2.15, CPU, one thread)

Inputs are not stored: value i of the tensor called NAME is made from a hash of NAME, here and in tests/ops/harness.c alike:
    s = FNV-1a-64(NAME) + (i + 1) * 0x9E3779B97F4A7C15            (splitmix64)
    s = (s ^ s >> 30) * 0xBF58476D1CE4E5B9;  s = (s ^ s >> 27) * 0x94D049BB133111EB;  s ^= s >> 31
    value = ((s >> 40) - 2^23) / 2^23                             in [-1, 1), exact in f32
Names: CASE/x0, CASE/x1, …, CASE/dy, CASE/<parameter>, CASE/target, CASE/p, CASE/g<step>.

"f32" goldens are PyTorch's results in double on f32 inputs, "bf16" goldens the same on inputs and weights rounded to bf16 (biases and
normalisation parameters stay f32, as in gtrain), so that a tolerance is spent on gtrain's error alone. Optimizer trajectories are
PyTorch's own f32 run.

File: "gtgold1\n", then records: u16 length of the name, name ("CASE f32 y"), u32 count, count f32; all little-endian.
"""
import functools
import struct
import sys

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

from timm_lamb import Lamb

torch.set_num_threads(1)
torch.use_deterministic_algorithms(True)
STEPS = 10


def raw(name, n):
    h = 0xCBF29CE484222325
    for b in name.encode():
        h = (h ^ b) * 0x100000001B3 & (1 << 64) - 1
    with np.errstate(over="ignore"):
        s = np.uint64(h) + np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        s = (s ^ s >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        s = (s ^ s >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
        return s ^ s >> np.uint64(31)


def uniform(name, shape):
    n = int(np.prod(shape))
    u = ((raw(name, n) >> np.uint64(40)).astype(np.float64) - 2.0**23) / 2.0**23
    return torch.from_numpy(u.reshape(shape))


def f32(t):
    return t.to(torch.float32).double()


def bf16(t):
    return t.to(torch.float32).to(torch.bfloat16).double()


def pair(v):
    if v.startswith("["):
        a, b = v[1:-1].split(",")
        return int(a), int(b)
    return int(v), int(v)


def ints(v):
    return [int(i) for i in v[1:-1].split(",")]


def shortcut(x, k):
    out, stride = int(k["out"]), int(k.get("stride", 1))
    if out == x[1] and stride == 1:
        return nn.Identity()
    return nn.Sequential(nn.Conv2d(x[1], out, 1, stride, bias=False), nn.BatchNorm2d(out))


def pool_args(k):
    return dict(kernel_size=pair(k["kernel"]), stride=pair(k["stride"]) if "stride" in k else None,
                padding=pair(k.get("padding", "0")), ceil_mode=k.get("ceil_mode") == "true")


def norm_args(k):
    r = dict(eps=float(k.get("eps", 1e-5)), affine=k.get("affine") != "false")
    if "momentum" in k:
        r["momentum"] = float(k["momentum"])
    return r


class Fn(nn.Module):
    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def forward(self, *x):
        return self.fn(*x)


def like(all, v):
    """[N, C] beside [N, C, H, W] is [N, C, 1, 1]."""
    rank = max(x.dim() for x in all)
    return [x.reshape(x.shape + (1,) * (rank - x.dim())) for x in v]


class Tables(nn.Module):
    """nn.Embedding for each column, joined; fastai's rule for the widths."""

    def __init__(self, x, k):
        super().__init__()
        n = ints(k["num_embeddings"])
        d = ints(k["embedding_dim"]) if "embedding_dim" in k else [min(600, round(1.6 * i**0.56)) for i in n]
        d = d * len(n) if len(d) == 1 else d
        for i in range(len(n)):
            self.add_module(str(i), nn.Embedding(n[i], d[i]))

    def forward(self, codes):
        return torch.cat([self.get_submodule(str(i))(codes[:, i]) for i in range(codes.shape[1])], 1)


def mask(x, lengths):
    """Whether a token is behind the end of its sample."""
    return torch.arange(x.shape[1])[None, :] >= lengths[:, None]


class Bag(nn.EmbeddingBag):
    def forward(self, tokens, lengths=None):
        lengths = torch.full((len(tokens),), tokens.shape[1]) if lengths is None else lengths
        flat = torch.cat([t[:n] for t, n in zip(tokens, lengths)])
        return super().forward(flat, torch.cat([torch.zeros(1, dtype=torch.long), lengths.cumsum(0)[:-1]]))


class Attention(nn.MultiheadAttention):
    def __init__(self, x, k):
        super().__init__(x[2], int(k["num_heads"]), bias=k.get("bias") != "false", batch_first=True)
        self.causal = k.get("causal") == "true"

    def forward(self, x, lengths=None):
        n = x.shape[1]
        later = torch.triu(torch.ones(n, n, dtype=torch.bool), 1) if self.causal else None
        return super().forward(x, x, x, None if lengths is None else mask(x, lengths), False, later)[0]


class Positional(nn.Module):
    def __init__(self, x, k):
        super().__init__()
        self.same = k.get("kind") == "same"
        self.weight = None if k.get("kind") == "sinusoidal" else nn.Parameter(torch.zeros(int(k["max_len"]), x[2]))

    def forward(self, x):
        if self.weight is not None:
            return x + (self.weight[0] if self.same else self.weight[: x.shape[1]])
        t, c = x.shape[1:]
        pe = torch.zeros(t, c + 1, dtype=torch.float64)
        angle = torch.arange(t).double()[:, None] / 10000 ** (torch.arange(0, c, 2).double() / c)
        pe[:, 0:-1:2][:, : angle.shape[1]] = torch.sin(angle)
        pe[:, 1::2][:, : angle.shape[1]] = torch.cos(angle)
        return x + pe[:, :c]


def pool_tokens(x, lengths=None, mode="mean"):
    lengths = torch.full((len(x),), x.shape[1]) if lengths is None else lengths
    return torch.stack([v[0] if mode == "first" else v[n - 1] if mode == "last" else v[:n].mean(0)
                        if mode == "mean" else v[:n].max(0)[0] for v, n in zip(x, lengths)])


def recurrent(base):
    class Layer(base):
        def __init__(self, x, k):
            super().__init__(x[2], int(k["hidden_size"]), int(k.get("num_layers", 1)), k.get("bias") != "false", True,
                             bidirectional=k.get("bidirectional") == "true")

            self.last = k.get("output") == "last"

        def forward(self, x, lengths=None):
            v = x if lengths is None else nn.utils.rnn.pack_padded_sequence(x, lengths, True, False)
            y, state = super().forward(v)
            if self.last:
                state = state[0] if isinstance(state, tuple) else state
                return torch.cat(list(state[-1 - self.bidirectional:]), 1)
            return y if lengths is None else nn.utils.rnn.pad_packed_sequence(y, True, total_length=x.shape[1])[0]

    return Layer


LAYERS = {  # type: (shape of x0, keys) -> module
    "linear": lambda x, k: nn.Linear(x[-1], int(k["out"]), bias=k.get("bias") != "false"),
    "conv2d": lambda x, k: nn.Conv2d(x[1], int(k["out"]), pair(k["kernel"]), pair(k.get("stride", "1")), pair(k.get("padding", "0")),
                                     pair(k.get("dilation", "1")), int(k.get("groups", 1)), k.get("bias") != "false"),
    "maxpool2d": lambda x, k: nn.MaxPool2d(**pool_args(k)),
    "avgpool2d": lambda x, k: nn.AvgPool2d(**pool_args(k), count_include_pad=k.get("count_include_pad") != "false"),
    "adaptive_avgpool2d": lambda x, k: nn.AdaptiveAvgPool2d(pair(k["out"])),
    "adaptive_maxpool2d": lambda x, k: nn.AdaptiveMaxPool2d(pair(k["out"])),
    "global_avgpool": lambda x, k: nn.AdaptiveAvgPool2d(1),
    "batchnorm1d": lambda x, k: nn.BatchNorm1d(x[1], **norm_args(k)),
    "batchnorm2d": lambda x, k: nn.BatchNorm2d(x[1], **norm_args(k)),
    "layernorm": lambda x, k: nn.LayerNorm(x[-int(k.get("dims", 1 if len(x) == 3 else len(x) - 1)):], float(k.get("eps", 1e-5)),
                                           k.get("affine") != "false"),
    "groupnorm": lambda x, k: nn.GroupNorm(int(k["num_groups"]), x[1], float(k.get("eps", 1e-5)), k.get("affine") != "false"),
    "relu": lambda x, k: nn.ReLU(),
    "leaky_relu": lambda x, k: nn.LeakyReLU(float(k.get("slope", 0.01))),
    "scale": lambda x, k: Fn(lambda v: v * float(k["factor"])),
    "sigmoid": lambda x, k: nn.Sigmoid(),
    "tanh": lambda x, k: nn.Tanh(),
    "gelu": lambda x, k: nn.GELU(k.get("approximate", "none")),
    "silu": lambda x, k: nn.SiLU(),
    "mish": lambda x, k: nn.Mish(),
    "elu": lambda x, k: nn.ELU(float(k.get("alpha", 1))),
    "relu6": lambda x, k: nn.ReLU6(),
    "hardsigmoid": lambda x, k: nn.Hardsigmoid(),
    "hardswish": lambda x, k: nn.Hardswish(),
    "selu": lambda x, k: nn.SELU(),
    "softplus": lambda x, k: nn.Softplus(float(k.get("beta", 1)), float(k.get("threshold", 20))),
    "softmax": lambda x, k: nn.Softmax(1),
    "log_softmax": lambda x, k: nn.LogSoftmax(1),
    "flatten": lambda x, k: nn.Flatten(),
    "identity": lambda x, k: nn.Identity(),
    "prelu": lambda x, k: nn.PReLU(int(k.get("num_parameters", 1))),
    "add": lambda x, k: Fn(lambda *v: sum(like(v, v[1:]), like(v, v[:1])[0])),
    "mul": lambda x, k: Fn(lambda a, b: like((a, b), (a,))[0] * like((a, b), (b,))[0]),
    "concat": lambda x, k: Fn(lambda *v: torch.cat(v, 1)),
    "embedding": lambda x, k: nn.Embedding(int(k["num_embeddings"]), int(k["embedding_dim"]), int(k["padding_idx"]) if "padding_idx" in k
                                           else None),
    "embeddings": Tables,
    "embedding_bag": lambda x, k: Bag(int(k["num_embeddings"]), int(k["embedding_dim"]), mode=k.get("mode", "mean"),
                                      padding_idx=int(k["padding_idx"]) if "padding_idx" in k else None),
    "positional": Positional,
    "pool_tokens": lambda x, k: Fn(lambda *v: pool_tokens(*v, mode=k.get("mode", "mean"))),
    "attention": Attention,
    "lstm": recurrent(nn.LSTM),
    "gru": recurrent(nn.GRU),
    "shortcut": shortcut,
    "reshape": lambda x, k: Fn(lambda v: v.reshape(v.shape[0], *ints(k["shape"]))),
    "permute": lambda x, k: Fn(lambda v: v.permute(ints(k["dims"]))),
    "select": lambda x, k: Fn(lambda v: v.select(int(k.get("dim", 1)), int(k["index"]))),
}


def inputs(case, shapes, rnd):
    return [torch.from_numpy((raw(f"{case}/x{i}", int(np.prod(s))) % np.uint64(abs(scale[0]))).astype(np.int64).reshape(s)) + (scale[0] < 0)
            if isinstance(scale, tuple) else rnd(f32(uniform(f"{case}/x{i}", s) * scale)).requires_grad_()
            for i, (s, scale) in enumerate(shapes)]


def layer_case(case, shapes, kind, keys, rnd):
    m = LAYERS[kind](shapes[0][0], keys).double()
    m.train(keys.get("mode") != "eval")
    norms = {id(p) for s in m.modules() if isinstance(s, (nn.BatchNorm1d, nn.BatchNorm2d, nn.LayerNorm, nn.GroupNorm, nn.PReLU))
             for p in s.parameters()}
    tables = {id(p) for s in m.modules() if isinstance(s, (nn.Embedding, nn.EmbeddingBag, Positional)) for p in s.parameters()}
    with torch.no_grad():
        for name, p in m.named_parameters():
            v = uniform(f"{case}/{name}", p.shape)
            if id(p) in norms:
                v = f32(1 + 0.5 * v) if name.endswith("weight") else f32(v)
            elif id(p) in tables:  # f32 in every precision
                v = f32(v)
            else:
                v = rnd(f32(v)) if "weight" in name.rpartition(".")[2] else f32(v)
            p.copy_(v)
        for name, b in m.named_buffers():
            if name.endswith("running_mean"):
                b.copy_(f32(uniform(f"{case}/{name}", b.shape)))
            if name.endswith("running_var"):
                b.copy_(f32(1 + 0.5 * uniform(f"{case}/{name}", b.shape)))
    xs = inputs(case, shapes, rnd)
    y = m(*xs)
    if "act" in keys:
        y = F.relu(y)
    out = {"y": y}
    if keys.get("mode") == "eval":
        return out
    y.backward(rnd(f32(uniform(f"{case}/dy", y.shape))))
    for i, x in enumerate(xs):
        if x.is_floating_point():
            out[f"dx{i}"] = x.grad
    for name, p in m.named_parameters():
        out[f"d.{name}"] = p.grad
    for name, b in m.named_buffers():
        out[name] = b
    return out


def loss_case(case, shapes, kind, keys, rnd):
    (x,) = inputs(case, shapes, rnd)
    n, c = x.shape
    t = torch.from_numpy((raw(f"{case}/target", n) % np.uint64(c)).astype(np.int64))
    ignore = int(keys.get("ignore_index", -100))
    if "skip" in keys:
        t[torch.arange(n) % int(keys["skip"]) == 1] = ignore
    dense = "target" in keys
    w = f32(uniform(f"{case}/weights", (c,)) * 0.5 + 1) if "weights" in keys else None
    if dense:
        t = uniform(f"{case}/target", (n, c))
        t = (t + 1) / 2 if kind in ("cross_entropy", "bce", "focal", "kl_div") else t
    values = t if dense else F.one_hot(t.clamp(0), c).double()
    if kind == "cross_entropy":
        smooth = float(keys.get("label_smoothing", 0))
        loss = F.cross_entropy(x, t, w, label_smoothing=smooth, **({} if dense else {"ignore_index": ignore}))
    elif kind == "nll":
        loss = F.nll_loss(x, t, w, ignore_index=ignore)
    elif kind == "bce":
        loss = F.binary_cross_entropy_with_logits(x, values, pos_weight=w)
    elif kind == "smooth_l1":
        loss = F.smooth_l1_loss(x, values, beta=float(keys.get("smooth_l1_beta", 1)))
    elif kind == "focal":  # torchvision.ops.sigmoid_focal_loss, reduction="mean"
        alpha, gamma = float(keys.get("focal_alpha", 0.25)), float(keys.get("focal_gamma", 2))
        p = torch.sigmoid(x)
        loss = F.binary_cross_entropy_with_logits(x, values, reduction="none") * (1 - (p * values + (1 - p) * (1 - values))) ** gamma
        if alpha >= 0:
            loss = (alpha * values + (1 - alpha) * (1 - values)) * loss
        loss = loss.mean()
    elif kind == "kl_div":
        live = t != ignore if not dense else torch.ones(n, dtype=torch.bool)
        loss = F.kl_div(x[live], values[live], reduction="batchmean")
    elif kind == "huber":
        loss = F.huber_loss(x, values, delta=float(keys.get("huber_delta", 1)))
    elif kind == "l1":
        loss = F.l1_loss(x, values)
    else:
        loss = F.mse_loss(x, values)
    if dense:
        t = t.argmax(1) if kind in ("cross_entropy", "kl_div") else torch.full((n,), ignore)
    classes = kind in ("cross_entropy", "nll", "kl_div") or dense
    loss.backward()
    live = t != ignore if classes else torch.ones(n, dtype=torch.bool)
    rank = torch.tensor([(x[i] > x[i, t[i]]).sum() if live[i] else c for i in range(n)])
    counts = torch.tensor([(live & (rank == 0)).sum(), (live & (rank < 5)).sum(), live.sum()])
    return {"loss": loss, "counts": counts, "dx0": x.grad}


OPTIMIZERS = {"sgd": functools.partial(torch.optim.SGD, lr=1), "adam": torch.optim.Adam, "adamw": torch.optim.AdamW,
              "rmsprop": torch.optim.RMSprop, "nadam": torch.optim.NAdam, "radam": torch.optim.RAdam, "adagrad": torch.optim.Adagrad,
              "lamb": functools.partial(Lamb, max_grad_norm=None)}


def update_case(case, n, kind, keys):
    p = uniform(f"{case}/p", (n,)).float()
    half = n // 2
    groups = [nn.Parameter(p[:half].clone()), nn.Parameter(p[half:].clone())]
    lr, wd = float(keys["lr"]), float(keys.get("weight_decay", 0))
    params = [{"params": [groups[0]], "lr": lr, "weight_decay": wd}, {"params": [groups[1]], "lr": lr * 0.5, "weight_decay": wd * 2}]
    f = {k: v == "true" if v in ("true", "false") else float(v) for k, v in keys.items()
         if k not in ("lr", "weight_decay", "beta1", "beta2", "clip_norm", "clip_value")}
    if "beta1" in keys or "beta2" in keys:
        f["betas"] = (float(keys.get("beta1", 0.9)), float(keys.get("beta2", 0.999)))
    opt = OPTIMIZERS[kind](params, foreach=False, **f)
    out = []
    for step in range(STEPS):
        g = uniform(f"{case}/g{step}", (n,)).float()
        groups[0].grad, groups[1].grad = g[:half].clone(), g[half:].clone()
        if "clip_norm" in keys:
            nn.utils.clip_grad_norm_(groups, float(keys["clip_norm"]))
        if "clip_value" in keys:
            nn.utils.clip_grad_value_(groups, float(keys["clip_value"]))
        opt.step()
        out.append(torch.cat([q.detach() for q in groups]).clone())
    return {"p": torch.stack(out)}


def parse(path):
    for line in open(path, encoding="utf-8"):
        f = line.split("#")[0].split()
        if f:
            yield f[0], f[1], f[2], dict(kv.split("=", 1) for kv in f[3:])


def shape_of(text):
    """The sizes of an input, and its scale; of integers (number of different ones,), of lengths (minus the longest one,)."""
    for mark, scale in (("%", lambda v: (int(v),)), ("<", lambda v: (-int(v),)), ("*", float)):
        dims, found, value = text.partition(mark)
        if found:
            return tuple(int(d) for d in dims.split("x")), scale(value)
    return tuple(int(d) for d in text.split("x")), 1.0


def main(cases, path):
    seen = set()
    with open(path, "wb") as out:
        out.write(b"gtgold1\n")
        for case, text, kind, keys in parse(cases):
            assert case not in seen, case
            seen.add(case)
            if kind.startswith("drop"):
                continue
            if kind.startswith("update:"):
                runs = {"f32": update_case(case, int(text), kind[7:], keys)}
            else:
                shapes = []
                for s in text.split(","):
                    shapes.append(shape_of(s))
                runs = {}
                for name, rnd in (("f32", lambda t: t), ("bf16", bf16)):
                    if kind.startswith("loss:"):
                        runs[name] = loss_case(case, shapes, kind[5:], keys, rnd)
                    else:
                        runs[name] = layer_case(case, shapes, kind, keys, rnd)
            for dtype, tensors in runs.items():
                for tname, t in tensors.items():
                    name = f"{case} {dtype} {tname}".encode()
                    data = t.detach().reshape(-1).numpy().astype("<f4")
                    out.write(struct.pack("<H", len(name)) + name + struct.pack("<I", data.size) + data.tobytes())
    print(f"{len(seen)} cases")


if __name__ == "__main__":
    main(*sys.argv[1:])
