#!/usr/bin/env python3
"""The errors that cuDNN's fused graphs around batch normalisation would have, on real activations, by emulation with PyTorch on a CPU.

Usage: torch_norm_error.py DIR [--steps N] [--batch N]     DIR: data_batch_1.bin.gz of CIFAR-10

Trains a ResNet-20 (He et al., 2016) for N steps on one file of images, then feeds it one batch with weights and activations rounded to f16,
and prints for each normalisation whose output only a relu and a convolution read, and for the worst of all normalisations:

    ratio     |mean| / standard deviation of the channels of x, the output of a convolution: median and maximum
    sums      relative error of the variance from f32 sums of x and x * x (genstats): 128 rows one after the other, then their sums one
              after the other, as the size of cuDNN's workspace suggests; E[x * x] - E[x] * E[x] is formed in f64
    f16       relative change of the variance that the rounding of x to f16 causes, for comparison
    apart     error of the normalised activation as gtrain and PyTorch compute it: f32, rounded to f16 once
    joined    the same with scale and bias rounded to f16, as the joined convolution takes them, and f32 in between
    joined16  the same if the convolution also rounds x * scale to f16
    offset    the largest mean error of a channel, joined, in standard deviations of its output: rounding both moves whole channels

The three errors are the root of the mean square over the batch, relative to that of the activation."""
import argparse
import gzip
import os

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

from torch_conv import Basic

ROWS = 128  # pixels of a tile of cuDNN's sums


def images(folder):
    raw = np.frombuffer(gzip.open(os.path.join(folder, "data_batch_1.bin.gz")).read(), np.uint8).reshape(-1, 3073)
    x = torch.from_numpy(raw[:, 1:].reshape(-1, 3, 32, 32).astype(np.float32) / 255)
    mean, std = torch.tensor([0.4914, 0.4822, 0.4465]), torch.tensor([0.2470, 0.2435, 0.2616])
    x = ((x - mean[:, None, None]) / std[:, None, None]).contiguous(memory_format=torch.channels_last)
    return x, torch.from_numpy(raw[:, 0].astype(np.int64))


def train(net, x, y, steps, batch):
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=5e-4)
    for i in range(steps):
        pick = torch.randint(len(x), (batch,))
        loss = F.cross_entropy(net(x[pick]), y[pick])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if i % 50 == 49:
            print("step %d loss %.3f" % (i + 1, loss.item()), flush=True)


def resnet20():
    blocks = [Basic(16, 16, 1) for i in range(3)] + [Basic(16, 32, 2)] + [Basic(32, 32, 1) for i in range(2)]
    blocks += [Basic(32, 64, 2)] + [Basic(64, 64, 1) for i in range(2)]
    return nn.Sequential(nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), *blocks, nn.AdaptiveAvgPool2d(1),
                         nn.Flatten(), nn.Linear(64, 10))


def half(x):
    return x.half().float()


def in_order(x):
    """f32 sums over the rows of x [n, c], in the order that the workspace suggests."""
    tiles = np.zeros((x.shape[0] // ROWS, x.shape[1]), np.float32)
    for i in range(ROWS):
        tiles += x.reshape(-1, ROWS, x.shape[1])[:, i]
    total = np.zeros(x.shape[1], np.float32)
    for t in tiles:
        total += t
    return total.astype(np.float64)


def rms(x):
    return float(np.sqrt(np.mean(np.square(x))))


def measure(x, gamma, beta, eps):
    """x: output of the convolution in f32 [n, c]; returns the columns of the table."""
    x16 = x.astype(np.float16).astype(np.float32)
    wide, n = x16.astype(np.float64), x.shape[0]
    mean, var = wide.mean(0), wide.var(0)
    sums = in_order(x16 * x16) / n - np.square(in_order(x16) / n)
    ratio = np.abs(mean) / np.sqrt(var)
    rstd = 1 / np.sqrt(var + eps)
    exact = np.maximum((wide - mean) * rstd * gamma + beta, 0)
    scale = (rstd * gamma).astype(np.float32)
    shift = (beta - mean * rstd * gamma).astype(np.float32)
    scale16, shift16 = scale.astype(np.float16).astype(np.float32), shift.astype(np.float16).astype(np.float32)
    product16 = (x16 * scale16).astype(np.float16).astype(np.float32)
    outputs = [x16 * scale + shift, x16 * scale16 + shift16, product16 + shift16]
    outputs = [np.maximum(z, 0).astype(np.float16).astype(np.float64) for z in outputs]
    offset = np.abs((outputs[1] - exact).mean(0)) / np.maximum(exact.std(0), 1e-12)
    live = exact.std(0) > 1e-3  # channels that a relu has not switched off
    return [np.median(ratio), ratio.max(), np.max(np.abs(sums / var - 1)), np.max(np.abs(var / x.astype(np.float64).var(0) - 1))] + \
           [rms(z - exact) / rms(exact) for z in outputs] + [offset[live].max()]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("folder")
    p.add_argument("--steps", type=int, default=300)
    p.add_argument("--batch", type=int, default=64)
    a = p.parse_args()
    torch.manual_seed(1)
    x, y = images(a.folder)
    net = resnet20().to(memory_format=torch.channels_last)
    train(net, x, y, a.steps, a.batch)
    for w in net.parameters():
        if w.dim() == 4:
            w.data = half(w.data)
    rows = {}

    def hook(name):
        def see(module, inputs):
            flat = inputs[0].detach().permute(0, 2, 3, 1).reshape(-1, inputs[0].shape[1]).numpy()
            rows[name] = measure(flat, module.weight.detach().double().numpy(), module.bias.detach().double().numpy(), module.eps)
            return (half(inputs[0]),)
        return see

    for name, m in net.named_modules():
        if isinstance(m, torch.nn.BatchNorm2d):
            m.register_forward_pre_hook(hook(name))
            m.register_forward_hook(lambda module, inputs, out: half(out))
    with torch.no_grad():
        net(half(x[-256:]))
    line = "| %s | %.2f | %.2f" + " | %.1e" * 6 + " |"
    print("| normalisation | ratio, median | largest | sums | f16 | apart | joined | joined16 | offset |\n|---" + "|---" * 8 + "|")
    for name, r in rows.items():
        if name.endswith("bn1") and "." in name:
            print(line % ((name,) + tuple(r)))
    print(line % (("worst of %d" % len(rows),) + tuple(np.max(list(rows.values()), 0))))


if __name__ == "__main__":
    main()
