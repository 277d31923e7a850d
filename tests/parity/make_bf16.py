#!/usr/bin/env python3
"""Writes tests/golden/parity/bf16.txt: losses of trainings of make_parity.py under torch.autocast(device_type="cpu", dtype=torch.bfloat16).

Usage: make_bf16.py OUT_FILE      (PyTorch, CPU, one thread; FashionMNIST)

A line `loss NAME STEP F32 BF16` for each step: PyTorch's loss in float32, and under autocast. tests/parity/test_bf16.sh compares gtrain's
bf16 with both.
"""
import sys

import torch

import make_parity

NAMES = ("lenet_adam", "cnn_silu", "mlp_adamw")
STEPS = 60


def main(path):
    torch.set_num_threads(1)
    with open(path, "w", encoding="ascii") as f:
        f.write(f"# PyTorch {torch.__version__}, CPU, 1 thread, seed {make_parity.SEED}\n")
        for name in NAMES:
            run = dict(make_parity.RUNS[name])
            single = make_parity.train(run, None, torch.float32, STEPS)
            plain = run["model"]

            def autocast():
                model = plain()
                forward = model.forward

                def cast(x):
                    with torch.autocast(device_type="cpu", dtype=torch.bfloat16):
                        return forward(x).float()  # autocast computes cross_entropy in float32
                model.forward = cast
                return model
            run["model"] = autocast
            half = make_parity.train(run, None, torch.float32, STEPS)
            for i, (a, b) in enumerate(zip(single, half)):
                f.write(f"loss {name} {i + 1} {a:.9g} {b:.9g}\n")
            print(name, single[-1], half[-1], flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
