#!/usr/bin/env python3
"""PyTorch's side of the MLP rows: FashionMNIST, 784-512-512-10, ReLU, SGD.

Usage: torch_mlp.py tuned|tutorial [--batch N] [--epochs N] [--threads N] [--steps N] [--momentum M]

tuned     everything in memory as float32, batches by index_select of a permutation, set_num_threads
tutorial  the script of PyTorch's quickstart: a DataLoader without workers over torchvision's FashionMNIST with ToTensor, shuffle, a
          loss.item() every 100 batches. Without torchvision a Dataset that does the same to the array, without the detour over PIL,
          and so is faster than the original.
Prints `{"event": "train", "step": …}` after the first step and after every epoch, then the final loss."""
import argparse
import atexit
import gzip
import json
import os
import shutil
import tempfile

import numpy as np
import torch
import torch.nn as nn

ROOT = os.environ.get("FASHION_MNIST", "/usr/share/datasets/fashion-mnist")


def images():
    return np.frombuffer(gzip.open(f"{ROOT}/train-images-idx3-ubyte.gz").read(), np.uint8, offset=16).reshape(-1, 28, 28)


def labels():
    return np.frombuffer(gzip.open(f"{ROOT}/train-labels-idx1-ubyte.gz").read(), np.uint8, offset=8)


class Images(torch.utils.data.Dataset):
    def __init__(self):
        self.x, self.y = images(), labels()

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return torch.from_numpy(self.x[i][None].astype(np.float32)).div(255), int(self.y[i])


def tutorial_set():
    try:
        from torchvision import datasets, transforms
    except ImportError:
        return Images()
    root = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, root)
    raw = os.path.join(root, "FashionMNIST", "raw")
    os.makedirs(raw)
    for name in os.listdir(ROOT):
        if name.endswith(".gz"):
            with gzip.open(os.path.join(ROOT, name)) as f, open(os.path.join(raw, name[:-3]), "wb") as out:
                shutil.copyfileobj(f, out)
    return datasets.FashionMNIST(root, train=True, transform=transforms.ToTensor())


def say(step, **more):
    print(json.dumps({"event": "train", "step": step, **more}), flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("mode", choices=["tuned", "tutorial"])
    p.add_argument("--batch", type=int, default=32)
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--steps", type=int, default=0)
    p.add_argument("--momentum", type=float, default=0.0)
    a = p.parse_args()
    torch.set_num_threads(a.threads)
    model = nn.Sequential(nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    opt = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=a.momentum)
    lossf = nn.CrossEntropyLoss()
    step = 0
    if a.mode == "tuned":
        x = torch.from_numpy(images().copy()).reshape(-1, 784).float().div_(255)
        y = torch.from_numpy(labels().astype(np.int64))

        def batches():
            for i in torch.randperm(len(x)).split(a.batch):
                yield x.index_select(0, i), y.index_select(0, i)
    else:
        loader = torch.utils.data.DataLoader(tutorial_set(), batch_size=a.batch, shuffle=True)

        def batches():
            return iter(loader)
    for _ in range(a.epochs):
        model.train()
        for i, (bx, by) in enumerate(batches()):
            loss = lossf(model(bx), by)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            step += 1
            if a.mode == "tutorial" and i % 100 == 0:
                loss.item()
            if step == 1:
                say(step)
            if step == a.steps:
                return
        say(step, loss=loss.item())


if __name__ == "__main__":
    main()
