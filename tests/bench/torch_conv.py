#!/usr/bin/env python3
"""PyTorch's side of the convolution rows, on made-up images held in memory.

Usage: torch_conv.py resnet18|cnn [--precision fp32|bf16] [--batch N] [--steps N] [--threads N]

resnet18: the net of configs/resnet18_cifar.cfg (SGD, Nesterov), cnn: that of configs/fmnist_cnn.cfg (Adam). channels_last; bf16 by
torch.autocast. Without augmentation, which gtrain's runs of those configs do have. Prints a line a step."""
import argparse
import json

import torch
import torch.nn as nn
import torch.nn.functional as F


class Basic(nn.Module):
    def __init__(self, cin, ch, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, ch, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(ch)
        self.conv2 = nn.Conv2d(ch, ch, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(ch)
        self.downsample = nn.Sequential()
        if stride != 1 or cin != ch:
            self.downsample = nn.Sequential(nn.Conv2d(cin, ch, 1, stride, bias=False), nn.BatchNorm2d(ch))

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)), inplace=True)))
        return F.relu(y + self.downsample(x), inplace=True)


class ResNet18(nn.Module):
    """As configs/resnet18_cifar.cfg, with the names of its state dict."""

    def __init__(self, classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.layer1 = nn.Sequential(Basic(64, 64, 1), Basic(64, 64, 1))
        self.layer2 = nn.Sequential(Basic(64, 128, 2), Basic(128, 128, 1))
        self.layer3 = nn.Sequential(Basic(128, 256, 2), Basic(256, 256, 1))
        self.layer4 = nn.Sequential(Basic(256, 512, 2), Basic(512, 512, 1))
        self.fc = nn.Linear(512, classes)

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        y = self.layer4(self.layer3(self.layer2(self.layer1(y))))
        return self.fc(F.adaptive_avg_pool2d(y, 1).flatten(1))


def cnn():
    """configs/fmnist_cnn.cfg"""
    layers, cin = [], 1
    for ch in (16, 32):
        for _ in range(2):
            layers += [nn.Conv2d(cin, ch, 3, padding=1, bias=False), nn.BatchNorm2d(ch), nn.ReLU(inplace=True)]
            cin = ch
        layers += [nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(32 * 49, 128), nn.ReLU(inplace=True), nn.Dropout(0.25), nn.Linear(128, 10))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("net", choices=["resnet18", "cnn"])
    p.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    p.add_argument("--batch", type=int, default=128)
    p.add_argument("--steps", type=int, default=6)
    p.add_argument("--threads", type=int, default=2)
    a = p.parse_args()
    torch.set_num_threads(a.threads)
    model = (ResNet18() if a.net == "resnet18" else cnn()).to(memory_format=torch.channels_last)
    if a.net == "resnet18":
        opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, nesterov=True, weight_decay=5e-4)
    else:
        opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    shape = (3, 32, 32) if a.net == "resnet18" else (1, 28, 28)
    x = torch.randn(4 * a.batch, *shape).contiguous(memory_format=torch.channels_last)
    y = torch.randint(0, 10, (4 * a.batch,))
    for step in range(a.steps):
        i = torch.randperm(len(x))[:a.batch]
        with torch.autocast("cpu", torch.bfloat16, enabled=a.precision == "bf16"):
            loss = F.cross_entropy(model(x[i]), y[i])
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        print(json.dumps({"event": "train", "step": step + 1, "loss": loss.item()}), flush=True)


if __name__ == "__main__":
    main()
