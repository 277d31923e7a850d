#!/usr/bin/env python3
"""Writes tests/golden/parity/NAME.txt: what PyTorch itself does in the trainings of tests/parity/NAME.cfg.

Usage: make_parity.py OUT_DIR [NAME...]      (PyTorch 1.13, CPU, one thread, deterministic algorithms)

Models, optimizers, losses, clipping and sampler (DistributedSampler of one rank) are PyTorch's own code, from torch.manual_seed(SEED).
Every run is made twice, in float32 and, from the same initial weights, in float64: how far those two part says how much of a
difference is rounding that the training itself amplifies.

A golden file: `# …` remarks; `loss STEP F32 F64` for every optimizer step (the mean over its effective batch, 9 digits);
`at STEP weight NAME COUNT SUM L2 APART INDEX:VALUE…` (16 samples of each tensor) after some steps; `at STEP eval LOSS ACC APART` on the
test split. APART: between the float32 and the float64 run.
"""
import gzip
import os
import struct
import subprocess
import sys
import tempfile
from collections import OrderedDict

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data.distributed import DistributedSampler

import sequence_models

SEED = 42
FASHION = os.environ.get("FASHION_MNIST", "/usr/share/datasets/fashion-mnist")
STEPS = 200
HERE = os.path.dirname(os.path.abspath(__file__))


# ---- data
def idx(path):
    raw = gzip.open(path).read()
    ndim = raw[3]
    dims = struct.unpack(f">{ndim}I", raw[4:4 + 4 * ndim])
    return torch.from_numpy(np.frombuffer(raw, np.uint8, offset=4 + 4 * ndim).reshape(dims).copy())


def fashion(limit):
    out = []
    for split in ("train", "t10k"):
        x = idx(f"{FASHION}/{split}-images-idx3-ubyte.gz")[:, None]
        y = idx(f"{FASHION}/{split}-labels-idx1-ubyte.gz").long()
        n = limit or len(x)
        out += [x[:n], y[:n]]
    return out


def cifar(limit):
    out = []
    with tempfile.TemporaryDirectory() as d:
        subprocess.run([sys.executable, os.path.join(HERE, "make_data.py"), d], check=True)
        for name in ("data_batch_1.bin", "test_batch.bin"):
            raw = np.fromfile(os.path.join(d, name), np.uint8).reshape(-1, 3073)
            out += [torch.from_numpy(raw[:, 1:].reshape(-1, 3, 32, 32).copy()), torch.from_numpy(raw[:, 0].astype(np.int64))]
    return out


# ---- models
def seq(*layers):
    return nn.Sequential(OrderedDict(layers))


def mlp(act=nn.ReLU, width=512, log_softmax=False):
    layers = [("flatten", nn.Flatten()), ("fc1", nn.Linear(784, width)), ("act1", act()), ("fc2", nn.Linear(width, width)), ("act2", act()),
              ("fc3", nn.Linear(width, 10))]
    return seq(*layers, *([("logp", nn.LogSoftmax(1))] if log_softmax else []))


def cnn(act=nn.ReLU, pool=nn.MaxPool2d):
    return seq(("conv1", nn.Conv2d(1, 16, 3, padding=1, bias=False)), ("bn1", nn.BatchNorm2d(16)), ("act1", act()), ("pool1", pool(2)),
               ("conv2", nn.Conv2d(16, 32, 3, padding=1, bias=False)), ("bn2", nn.BatchNorm2d(32)), ("act2", act()), ("pool2", pool(2)),
               ("flatten", nn.Flatten()), ("fc1", nn.Linear(32 * 7 * 7, 128)), ("act3", act()), ("fc2", nn.Linear(128, 10)))


def lenet():
    return seq(("conv1", nn.Conv2d(1, 6, 5, padding=2)), ("tanh1", nn.Tanh()), ("pool1", nn.AvgPool2d(2)), ("conv2", nn.Conv2d(6, 16, 5)),
               ("tanh2", nn.Tanh()), ("pool2", nn.AvgPool2d(2)), ("flatten", nn.Flatten()), ("fc1", nn.Linear(400, 120)),
               ("tanh3", nn.Tanh()), ("fc2", nn.Linear(120, 84)), ("tanh4", nn.Tanh()), ("fc3", nn.Linear(84, 10)))


class Basic(nn.Module):
    def __init__(self, act, cin, ch, stride):
        super().__init__()
        self.act = act
        self.conv1 = nn.Conv2d(cin, ch, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(ch)
        self.conv2 = nn.Conv2d(ch, ch, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(ch)
        if stride != 1 or cin != ch:
            self.downsample = nn.Sequential(nn.Conv2d(cin, ch, 1, stride, bias=False), nn.BatchNorm2d(ch))
        else:
            self.downsample = nn.Identity()

    def forward(self, x):
        y = self.bn2(self.conv2(self.act(self.bn1(self.conv1(x)))))
        return self.act(y + self.downsample(x))


class ResNet20(nn.Module):
    def __init__(self, act=F.relu):
        super().__init__()
        self.act = act
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.layer1 = nn.Sequential(Basic(act, 16, 16, 1), Basic(act, 16, 16, 1), Basic(act, 16, 16, 1))
        self.layer2 = nn.Sequential(Basic(act, 16, 32, 2), Basic(act, 32, 32, 1), Basic(act, 32, 32, 1))
        self.layer3 = nn.Sequential(Basic(act, 32, 64, 2), Basic(act, 64, 64, 1), Basic(act, 64, 64, 1))
        self.fc = nn.Linear(64, 10)

    def forward(self, x):
        y = self.layer3(self.layer2(self.layer1(self.act(self.bn1(self.conv1(x))))))
        return self.fc(F.adaptive_avg_pool2d(y, 1).flatten(1))


def vgg11():
    layers, cin, i = [], 3, 0
    for v in (64, "M", 128, "M", 256, 256, "M", 512, 512, "M", 512, 512, "M"):
        if v == "M":
            layers += [(f"pool{i}", nn.MaxPool2d(2))]
            continue
        i += 1
        layers += [(f"conv{i}", nn.Conv2d(cin, v, 3, padding=1)), (f"bn{i}", nn.BatchNorm2d(v)), (f"relu{i}", nn.ReLU())]
        cin = v
    return seq(*layers, ("flatten", nn.Flatten()), ("fc", nn.Linear(512, 10)))


class Factors(nn.Module):
    """A parameter of this shape that begins with one value."""

    def __init__(self, value, *shape):
        super().__init__()
        self.weight = nn.Parameter(torch.full(shape, value))


class Vision(nn.Module):
    """A block of ConvNeXt, then a block of a vision transformer over its pixels."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(1, 32, 4, 4)
        self.depth = nn.Conv2d(32, 32, 7, padding=3, groups=32)
        self.norm1 = nn.LayerNorm(32, eps=1e-6)
        self.up = nn.Conv2d(32, 64, 1)
        self.down = nn.Conv2d(64, 32, 1)
        self.scale1 = Factors(0.5, 32, 1, 1, 1)
        self.token = Factors(0.0, 1, 32)
        self.pos = nn.Embedding(50, 32)
        self.norm2 = nn.LayerNorm(32, eps=1e-6)
        self.attn = nn.MultiheadAttention(32, 4, batch_first=True)
        self.scale2 = Factors(0.25, 32, 1, 1, 1)
        self.norm3 = nn.LayerNorm(32, eps=1e-6)
        self.fc = nn.Linear(32, 10)

    def forward(self, x):
        x = self.stem(x)
        y = self.norm1(self.depth(x).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        x = x + self.scale1.weight[:, 0] * self.down(F.gelu(self.up(y)))
        x = x.flatten(2).transpose(1, 2)
        x = torch.cat((self.token.weight.expand(len(x), 1, 32), x), 1) + self.pos.weight
        y = self.norm2(x)
        x = x + self.scale2.weight.flatten() * self.attn(y, y, y, need_weights=False)[0]
        return self.fc(self.norm3(x)[:, 0])


# ---- a small network with all that configs/cifar10_airbench94.cfg uses; Muon, dirac and whitening written down from their papers
class Group(nn.Module):
    def __init__(self, cin, ch):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, ch, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(ch, eps=1e-12, momentum=0.4)
        self.conv2 = nn.Conv2d(ch, ch, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(ch, eps=1e-12, momentum=0.4)

    def forward(self, x):
        x = F.gelu(self.norm1(F.max_pool2d(self.conv1(x), 2)))
        return F.gelu(self.norm2(self.conv2(x)))


class Recipe(nn.Module):
    def __init__(self):
        super().__init__()
        self.whiten = nn.Conv2d(1, 8, 2)
        self.g1 = Group(8, 16)
        self.g2 = Group(16, 24)
        self.head = nn.Linear(24, 10, bias=False)

    def forward(self, x):
        x = self.g2(self.g1(F.gelu(self.whiten(x))))
        return self.head(F.max_pool2d(x, 6).flatten(1)) / 24


def recipe_prepare(model, images):
    """images: the first training images, normalised, in float64."""
    with torch.no_grad():
        for g in (model.g1, model.g2):
            for c in (g.conv1, g.conv2):
                nn.init.dirac_(c.weight[:c.weight.size(1)])
        w = model.head.weight.double()
        model.head.weight.copy_(w / w.std())
        p = F.unfold(images, 2).transpose(1, 2).reshape(-1, 4)
        values, vectors = torch.linalg.eigh(p.T @ p / len(p))
        rows = vectors.T
        rows = rows * torch.sign(rows.gather(1, rows.abs().argmax(1, keepdim=True)))  # the largest element positive: gtrain's choice
        rows = rows / torch.sqrt(values + 5e-4)[:, None]
        model.whiten.weight.copy_(torch.cat((rows, -rows)).reshape(8, 1, 2, 2))
    for name, p in model.named_parameters():
        if name == "whiten.weight" or ("norm" in name and name.endswith("weight")):
            p.requires_grad_(False)


class RecipeOptimizer:
    """SGD for biases and the head, Muon for the convolutions; every group with its own schedule. 20 steps are an epoch."""

    def __init__(self, model):
        named = dict(model.named_parameters())
        norm = [p for n, p in named.items() if "norm" in n and n.endswith("bias")]
        self.conv = [p for n, p in named.items() if "conv" in n]
        self.buf = [torch.zeros_like(p) for p in self.conv]
        self.bias = model.whiten.bias
        self.sgd = torch.optim.SGD([dict(params=[self.bias], lr=0.1, weight_decay=1e-3), dict(params=norm, lr=0.05, weight_decay=1e-3),
                                    dict(params=[model.head.weight], lr=0.5, weight_decay=1e-4)], momentum=0.85, nesterov=True)
        self.first = [g["lr"] for g in self.sgd.param_groups]
        self.t = 0

    def zero_grad(self, set_to_none):
        for p in self.conv:
            p.grad = None
        self.sgd.zero_grad(set_to_none=set_to_none)

    def step(self):
        left = 1 - self.t / 200
        if self.t >= 40:  # frozen after two epochs
            self.bias.grad = None
        for g, lr, f in zip(self.sgd.param_groups, self.first, (1 - self.t / 60, left, left)):
            g["lr"] = lr * f
        self.sgd.step()
        with torch.no_grad():
            for p, buf in zip(self.conv, self.buf):
                g = p.grad
                buf.mul_(0.6).add_(g)
                p.mul_(len(p) ** 0.5 / p.norm())
                p.add_(newton_schulz(g.add(buf, alpha=0.6).flatten(1), 3).view_as(p), alpha=-0.02 * left)
        self.t += 1


def newton_schulz(g, steps):
    a, b, c = 3.4445, -4.7750, 2.0315
    x = g / (g.norm() + 1e-7)
    for _ in range(steps):
        m = x @ x.T
        x = a * x + (b * m + c * m @ m) @ x
    return x


def six_views(model, x):
    """Each image and its mirror image, where it stands and shifted by one pixel over a reflected edge: half, and a quarter each."""
    both = lambda v: (model(v) + model(v.flip(-1))) / 2
    p = F.pad(x, (1,) * 4, "reflect")
    h, w = x.shape[-2:]
    return both(x) / 2 + both(p[:, :, :h, :w]) / 4 + both(p[:, :, 2:, 2:]) / 4


# ---- runs: name -> what the config of that name says
SGD, ADAM, ADAMW, RMS = torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop
FM = ([0.2860], [0.3530])
CF = ([0.4914, 0.4822, 0.4465], [0.2470, 0.2435, 0.2616])
# Learning rates are low where ReLU and max pooling would otherwise amplify rounding (each unit whose sign flips does): the third
# figure of a golden says what is left of it. mlp_adam keeps the tutorial's own rate.
RUNS = {
    "mlp_sgd": dict(data=fashion, model=mlp, opt=lambda p: SGD(p, lr=1e-3), batch=32),
    "mlp_adam": dict(data=fashion, model=lambda: mlp(nn.Sigmoid, 200, True), opt=lambda p: ADAM(p, lr=0.01), batch=100,
                     marks=(100,)),
    "mlp_adam_slow": dict(data=fashion, model=lambda: mlp(nn.Sigmoid, 200, True), opt=lambda p: ADAM(p, lr=0.003), batch=100),
    "mlp_momentum": dict(data=fashion, limit=1000, norm=FM, model=mlp, opt=lambda p: SGD(p, lr=1e-3, momentum=0.9, weight_decay=5e-4),
                         batch=64),
    "mlp_nesterov": dict(data=fashion, norm=FM, model=mlp, opt=lambda p: SGD(p, lr=1e-3, momentum=0.9, nesterov=True, weight_decay=1e-4),
                         batch=128),
    "mlp_adamw": dict(data=fashion, norm=FM, model=lambda: mlp(nn.GELU, 256), opt=lambda p: ADAMW(p, lr=1e-3, weight_decay=0.05),
                      batch=128),
    "mlp_rmsprop": dict(data=fashion, norm=FM, model=lambda: mlp(nn.Tanh, 256),
                        opt=lambda p: RMS(p, lr=1e-4, alpha=0.9, momentum=0.5, centered=True, weight_decay=1e-4, eps=1e-6), batch=128),
    "mlp_accumulate": dict(data=fashion, limit=1000, norm=FM, model=mlp, opt=lambda p: SGD(p, lr=2e-3, momentum=0.9), batch=96,
                           accumulate=4,
                           smoothing=0.1, clip=0.5),
    "cnn_bn": dict(data=fashion, norm=FM, model=cnn, opt=lambda p: SGD(p, lr=1e-3, momentum=0.9, weight_decay=5e-4), batch=64, marks=(40,)),
    "cnn_silu": dict(data=fashion, norm=FM, model=lambda: cnn(nn.SiLU, nn.AvgPool2d),
                     opt=lambda p: SGD(p, lr=0.01, momentum=0.9, weight_decay=5e-4),
                     batch=64),
    "lenet_adam": dict(data=fashion, norm=FM, model=lenet, opt=lambda p: ADAM(p, lr=1e-3, weight_decay=1e-4), batch=64),
    "resnet20": dict(data=cifar, norm=CF, model=ResNet20, opt=lambda p: SGD(p, lr=1e-4, momentum=0.9, weight_decay=1e-4), batch=32,
                     marks=(40,)),
    "resnet20_silu": dict(data=cifar, norm=CF, model=lambda: ResNet20(F.silu),
                          opt=lambda p: SGD(p, lr=1e-3, momentum=0.9, weight_decay=1e-4),
                          batch=32, marks=(40,)),
    "recipe": dict(data=fashion, limit=1000, norm=FM, model=Recipe, prepare=recipe_prepare, opt_of=RecipeOptimizer, batch=50, smoothing=0.2,
                   views=six_views, steps=60),
    "vision": dict(data=fashion, norm=FM, model=Vision, opt=lambda p: ADAMW(p, lr=1e-3, weight_decay=0.05), batch=64, marks=(40,)),
    "vgg11": dict(data=cifar, norm=CF, model=vgg11, opt=lambda p: SGD(p, lr=1e-4, momentum=0.9, weight_decay=5e-4), batch=32, marks=(12,)),
}

RUNS.update(sequence_models.RUNS)


def train(run, init, dtype, steps, mark=lambda *_: None):
    torch.manual_seed(SEED)
    model = run["model"]()
    x, y, xt, yt = run["data"](run.get("limit", 0))
    mean, std = run.get("norm", ([0.0], [1.0]))
    def scale(b, dtype=dtype):
        if isinstance(b, sequence_models.Fields):
            return b.to(dtype)
        return (b.to(dtype) / 255 - torch.tensor(mean, dtype=dtype)[:, None, None]) / torch.tensor(std, dtype=dtype)[:, None, None]
    if init is not None:
        model.load_state_dict(init)
    if "prepare" in run:
        run["prepare"](model, scale(x[:500], torch.float64))
    model = model.to(dtype)
    opt = run["opt_of"](model) if "opt_of" in run else run["opt"](model.parameters())
    schedule = run["schedule"](opt) if "schedule" in run else None
    sampler = DistributedSampler(range(len(x)), num_replicas=1, rank=0, shuffle=True, seed=SEED)
    batch, parts, smoothing = run["batch"], run.get("accumulate", 1), run.get("smoothing", 0.0)
    losses, epoch = [], 0
    while True:
        sampler.set_epoch(epoch)
        order = torch.tensor(list(sampler))
        for first in range(0, len(order), batch):
            i = order[first:first + batch]
            opt.zero_grad(set_to_none=True)
            model.train()
            total = 0.0
            for j in i.split(batch // parts):  # the effective batch's mean, also of a last, smaller one
                part = F.cross_entropy(model(scale(x[j])), y[j], label_smoothing=smoothing, reduction="sum") / len(i)
                part.backward()
                total += part.item()
            if "clip" in run:
                nn.utils.clip_grad_norm_(model.parameters(), run["clip"])
            opt.step()
            if schedule:
                schedule.step()
            losses.append(total)
            mark(len(losses), model, lambda: evaluate(model, scale, xt, yt, smoothing, run.get("views", lambda m, b: m(b))))
            if len(losses) == steps:
                return losses
        epoch += 1


def evaluate(model, scale, xt, yt, smoothing, views):
    model.eval()
    loss, hits = 0.0, 0
    with torch.no_grad():
        for i in range(0, len(xt), 500):
            z = views(model, scale(xt[i:i + 500]))
            loss += F.cross_entropy(z, yt[i:i + 500], reduction="sum", label_smoothing=smoothing).item()
            hits += (z.argmax(1) == yt[i:i + 500]).sum().item()
    return loss / len(xt), hits / len(xt)


def newton_schulz_f32(grad, coefficients, steps, eps):
    """The iteration of torch.optim.Muon in f32, as gtrain has it; PyTorch's runs in bf16."""
    a, b, c = coefficients
    x = grad.T if grad.size(0) > grad.size(1) else grad
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        m = x @ x.T
        x = a * x + (b * m + c * m @ m) @ x
    return x.T if grad.size(0) > grad.size(1) else x


def write_training(path, script, losses, model):
    """Writes the losses of a training, and number of elements, norm and sum of each tensor of the model."""
    with open(path, "w", encoding="ascii") as f:
        f.write(f"# {script}, PyTorch {torch.__version__.split('+', maxsplit=1)[0]}\n")
        for t, v in enumerate(losses):
            f.write(f"loss {t + 1} {v:.9g}\n")
        for name, t in model.state_dict().items():
            t = t.double()
            f.write(f"at {name} {t.numel()} {t.norm().item():.9g} {t.sum().item():.9g}\n")


def sampled(n):
    return sorted({k * (n - 1) // 15 for k in range(16)})


def apart(a, b):
    """How far two versions of a tensor are from each other, as compare.py measures it."""
    a, b = a.double().reshape(-1), b.double().reshape(-1)
    at, norm, n = sampled(len(a)), a.norm().item(), len(a)
    scale = max(a[at].abs().max().item(), norm / n**0.5) or 1.0
    return max((a[at] - b[at]).abs().max().item() / scale, abs(b.norm().item() - norm) / (norm or 1.0),
               abs((b.sum() - a.sum()).item()) / (norm * n**0.5 or 1.0))


def main(folder, names):
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    os.makedirs(folder, exist_ok=True)
    for name in names or RUNS:
        run, kept = RUNS[name], {}
        steps = run.get("steps", STEPS)
        torch.manual_seed(SEED)
        init = run["model"]().state_dict()

        def keeper(tag):
            def mark(step, model, ev):
                if step in run.get("marks", ()) or step == steps:
                    kept[tag, step] = ({k: v.detach().clone() for k, v in model.state_dict().items()}, ev())
            return mark

        single = train(run, None, torch.float32, steps, keeper(32))
        double = train(run, init, torch.float64, steps, keeper(64))
        gap = [abs(a - b) / abs(b) for a, b in zip(single, double)]
        with open(os.path.join(folder, name + ".txt"), "w", encoding="ascii") as f:
            f.write(f"# {name}: PyTorch {torch.__version__}, CPU, 1 thread, seed {SEED}, {steps} steps\n")
            f.write(f"# PyTorch's own float32 and float64 runs part by a relative loss difference of at most {max(gap):.2e}\n")
            for i, v in enumerate(single):
                f.write(f"loss {i + 1} {v:.9g} {double[i]:.9g}\n")
            for step in sorted({s for _, s in kept}):
                (w, ev), (w64, ev64) = kept[32, step], kept[64, step]
                for key, t in w.items():
                    v = t.double().reshape(-1)
                    f.write(f"at {step} weight {key} {len(v)} {v.sum().item():.9g} {v.norm().item():.9g} {apart(t, w64[key]):.2e} "
                            + " ".join(f"{k}:{v[k].item():.9g}" for k in sampled(len(v))) + "\n")
                f.write(f"at {step} eval {ev[0]:.9g} {ev[1]:.9g} {abs(ev[0] - ev64[0]) / ev64[0]:.2e}\n")
        print(f"{name}: loss {single[0]:.4f} -> {single[-1]:.4f}, float32 against float64 "
              + " ".join(f"{max(gap[:k]):.1e}@{k}" for k in (12, 40, 100, 200)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
