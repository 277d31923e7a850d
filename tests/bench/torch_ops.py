#!/usr/bin/env python3
"""PyTorch's side of bench_ops.py: runs cases of tests/bench/ops.txt. A line "CASE f32|bf16 SECONDS" on standard input is answered by a
line "FORWARD BACKWARD": the times of the quickest run within SECONDS, in microseconds of the process's processor time.

The modules are those of tests/golden/make_ops.py, which gtrain's results are compared with, in the form in which PyTorch is quickest:
images are channels_last, bf16 is the type of weights and activations (without autocast, which converts weights in every step), parameters
of normalisations stay f32 as in gtrain, attention is F.scaled_dot_product_attention, samples have no lengths, and the optimizers that have
a fused implementation use it. Results are dense as gtrain's are: a view whose elements are apart is copied, as the next layer would."""
import itertools
import os
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "..", "golden"))
import make_ops  # noqa: E402

torch.use_deterministic_algorithms(False)
torch.set_num_threads(1)
torch.manual_seed(1)
clock = time.process_time


class Attention(nn.Module):
    def __init__(self, x, k):
        super().__init__()
        self.heads, self.causal = int(k["num_heads"]), k.get("causal") == "true"
        self.qkv, self.out = nn.Linear(x[2], 3 * x[2]), nn.Linear(x[2], x[2])

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=self.causal).transpose(1, 2).flatten(2))


class LayerScale(nn.Module):
    def __init__(self, x, k):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(x[1], 1, 1))

    def forward(self, x):
        return x * self.gamma


class DropPath(nn.Module):
    """torchvision.ops.stochastic_depth(mode="row")"""

    def __init__(self, x, k):
        super().__init__()
        self.keep = 1 - float(k.get("p", 0.5))

    def forward(self, x):
        return x * x.new_empty([len(x)] + [1] * (x.dim() - 1)).bernoulli_(self.keep).div_(self.keep)


LAYERS = dict(
    make_ops.LAYERS, attention=Attention, layer_scale=LayerScale, drop_path=DropPath,
    dropout=lambda x, k: nn.Dropout(float(k.get("p", 0.5))), dropout2d=lambda x, k: nn.Dropout2d(float(k.get("p", 0.5))),
    embedding_bag=lambda x, k: nn.EmbeddingBag(int(k["num_embeddings"]), int(k["embedding_dim"]), mode=k.get("mode", "mean")),
    pool_tokens=lambda x, k: make_ops.Fn({"mean": lambda v: v.mean(1), "max": lambda v: v.amax(1)}[k["mode"]]))
OPTIMIZERS = dict(make_ops.OPTIMIZERS, muon=torch.optim.Muon)
FUSED = ("sgd", "adam", "adamw", "adagrad")


def make_inputs(shapes, dtype):
    xs = []
    for shape, scale in shapes:
        if isinstance(scale, tuple):
            x = torch.randint(0, scale[0], shape)
        else:
            x = ((torch.rand(shape) * 2 - 1) * scale).to(dtype)
            x = x.contiguous(memory_format=torch.channels_last) if len(shape) == 4 else x
            x.requires_grad_()
        xs.append(x)
    return xs


def dense(t):
    return t.contiguous(memory_format=torch.channels_last if t.dim() == 4 else torch.contiguous_format)


def layer_case(shapes, kind, keys, dtype):
    module = LAYERS[kind](shapes[0][0], keys).to(memory_format=torch.channels_last)
    for m in module.modules():
        if not isinstance(m, (nn.BatchNorm1d, nn.BatchNorm2d, nn.LayerNorm, nn.GroupNorm)):
            for name, p in m.named_parameters(recurse=False):
                p.data = p.data.to(dtype)
    xs = make_inputs(shapes, dtype)
    if "data" in keys:
        xs[0].requires_grad_(False)
    act = F.relu if keys.get("act") == "relu" else lambda y: y
    needs = [t for t in itertools.chain(xs, module.parameters()) if t.requires_grad]
    with torch.no_grad():
        y = module(*xs)
    dy = dense(torch.rand_like(y))
    return lambda: dense(act(module(*xs))), lambda y: [dense(t) for t in torch.autograd.grad(y, needs, dy)]


def loss_case(shapes, kind, keys, dtype):
    (x,) = make_inputs(shapes, dtype)
    n, c = x.shape
    t = torch.rand(n, c).to(dtype) if "target" in keys else torch.randint(0, c, (n,))
    smooth = float(keys.get("label_smoothing", 0))
    alpha, gamma = float(keys.get("focal_alpha", 0.25)), float(keys.get("focal_gamma", 2))

    def focal():  # torchvision.ops.sigmoid_focal_loss
        p = torch.sigmoid(x)
        loss = F.binary_cross_entropy_with_logits(x, t, reduction="none") * (1 - (p * t + (1 - p) * (1 - t))) ** gamma
        return ((alpha * t + (1 - alpha) * (1 - t)) * loss).mean()

    losses = {"cross_entropy": lambda: F.cross_entropy(x, t, label_smoothing=smooth), "nll": lambda: F.nll_loss(x, t),
              "mse": lambda: F.mse_loss(x, t), "l1": lambda: F.l1_loss(x, t), "smooth_l1": lambda: F.smooth_l1_loss(x, t),
              "huber": lambda: F.huber_loss(x, t), "bce": lambda: F.binary_cross_entropy_with_logits(x, t), "focal": focal,
              "kl_div": lambda: F.kl_div(x, t, reduction="batchmean")}
    return losses[kind], lambda loss: torch.autograd.grad(loss, x)


def update_case(shape, kind, keys):
    p = nn.Parameter(torch.rand(shape) * 2 - 1)
    p.grad = torch.rand(shape) * 2 - 1
    f = {k: v == "true" if v in ("true", "false") else float(v) for k, v in keys.items()}
    f.setdefault("lr", 1e-3)
    if kind in FUSED:
        f["fused"] = True
    opt = OPTIMIZERS[kind]([p], **f)
    return opt.step, None


def make_case(text, kind, keys, dtype):
    shapes = [make_ops.shape_of(s) for s in text.split(",")]
    if kind.startswith("update:"):
        return update_case(shapes[0][0], kind[7:], keys)
    if kind.startswith("loss:"):
        return loss_case(shapes, kind[5:], keys, dtype)
    return layer_case(shapes, kind, keys, dtype)


def time_best(forward, backward, seconds):
    best, n, start = (1e9, 0.0), 0, clock()
    while n < 3 or clock() - start < seconds:
        t0 = clock()
        y = forward()
        t1 = clock()
        if backward:
            backward(y)
        t2 = clock()
        n += 1
        if t2 - t0 < sum(best):
            best = t1 - t0, t2 - t1 if backward else 0.0
        del y
    return best


def main():
    cases = {name: rest for name, *rest in make_ops.parse(os.path.join(here, "ops.txt"))}
    last, run = None, None
    for line in sys.stdin:
        name, dtype, seconds = line.split()
        if (name, dtype) != last:
            last, run = (name, dtype), None
            run = make_case(*cases[name], torch.bfloat16 if dtype == "bf16" else torch.float32)
        print("%.3f %.3f" % tuple(1e6 * t for t in time_best(*run, float(seconds))), flush=True)


if __name__ == "__main__":
    main()
