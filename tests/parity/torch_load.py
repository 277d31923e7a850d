#!/usr/bin/env python3
"""A checkpoint of gtrain's ResNet-18 in a plain PyTorch model: state dict loaded strictly, evaluated, held against `gtrain eval --json`.

Usage: torch_load.py GTRAIN CONFIG WORK_DIR      (needs torch and safetensors; test_torch_load.sh runs it where they are)"""
import json
import os
import subprocess
import sys

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "bench"))
from torch_conv import ResNet18  # noqa: E402

MEAN, STD = [0.4914, 0.4822, 0.4465], [0.2470, 0.2435, 0.2616]  # of configs/resnet18_cifar.cfg


def gtrain(*args):
    return subprocess.run(args, check=True, stdout=subprocess.PIPE, text=True).stdout


def main(binary, config, work):
    data = os.path.join(work, "data")
    subprocess.run([sys.executable, os.path.join(HERE, "make_data.py"), data], check=True)
    run = os.path.join(work, "run")
    files = ["-s", "data.name=", "-s", "data.format=cifar10", "-s", f"data.root={data}", "-s", 'data.train=["data_batch_1.bin"]',
             "-s", 'data.test=["test_batch.bin"]']
    gtrain(binary, "run", config, "-q", "--no-progress", "--device", "cpu", "-o", run, *files, "-s", "data.batch=64",
           "-s", "train.steps=12", "-s", "train.eval_every_epochs=0", "-s", "train.schedule.warmup=4", "-s", "train.optimizer.lr=0.01",
           "-s", "checkpoint.best.metric=")
    told = json.loads(gtrain(binary, "eval", run, "--json", "--device", "cpu").splitlines()[-1])

    model = ResNet18()
    state = load_file(os.path.join(run, "latest", "model.safetensors"))
    print("state dict:", model.load_state_dict(state, strict=True))
    raw = np.fromfile(os.path.join(data, "test_batch.bin"), np.uint8).reshape(-1, 3073)
    x = torch.from_numpy(raw[:, 1:].reshape(-1, 3, 32, 32).copy()).float().div(255)
    x = (x - torch.tensor(MEAN)[:, None, None]) / torch.tensor(STD)[:, None, None]
    y = torch.from_numpy(raw[:, 0].astype(np.int64))
    model.eval()
    with torch.no_grad():
        z = model(x)
    loss = F.cross_entropy(z, y, label_smoothing=0.1).item()  # the config's
    acc = (z.argmax(1) == y).double().mean().item()
    apart = abs(told["loss"] - loss) / loss
    print(f"# torch_load: PyTorch {torch.__version__}: loss {loss:.7f}, accuracy {acc:.4f}; gtrain eval: "
          f"{told['loss']:.7f}, {told['acc']:.4f}; "
          f"relative difference {apart:.1e}")
    # f32 through 18 layers, sums of up to 4,608 terms: eps * sqrt(K) * layers = 1.2e-7 * 68 * 18 = 1.5e-4 at worst, in practice far less.
    if apart > 1e-4 or abs(acc - told["acc"]) > 1.5 / len(y):
        sys.exit("not ok torch_load: they differ")
    print("ok torch_load ResNet-18 checkpoint into PyTorch")


if __name__ == "__main__":
    main(*sys.argv[1:])
