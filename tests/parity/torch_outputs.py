#!/usr/bin/env python3
"""Compares the outputs of an exported PyTorch model with those of gtrain.

Usage: torch_outputs.py DIRECTORY FOLDER NAME

FOLDER has the inputs and the output of tool_outputs as .npy files. Imports model.py of the directory, and checks that its state dict has
the names of the file, and that one training step works. Prints "ok NAME" or "not ok NAME: why", and the largest difference."""
import importlib.util
import inspect
import os
import sys

import numpy as np
import torch

TOLERANCE = 1e-5  # of the largest output, or of 1 if all are smaller: both compute in f32, in other orders


def main(directory, folder, name):
    spec = importlib.util.spec_from_file_location("model", os.path.join(directory, "model.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    torch.set_num_threads(1)
    model = module.load()
    saved = module.read_safetensors(os.path.join(directory, "model.safetensors"))
    assert set(model.state_dict()) - set(module.TIED) == set(saved), set(model.state_dict()) ^ set(saved)
    names = list(inspect.signature(model.forward).parameters)
    inputs = [torch.from_numpy(np.load(os.path.join(folder, n + ".npy"))) for n in names]
    want = np.load(os.path.join(folder, "output.npy"))
    with torch.no_grad():
        got = model(*inputs).numpy()
    assert got.shape == want.shape and got.dtype == want.dtype, (got.shape, want.shape)
    scale = max(1.0, float(np.abs(want).max()))
    worst = float(np.abs(got.astype(np.float64) - want).max())
    print(f"# {name}: largest difference {worst:.2e}, of outputs up to {np.abs(want).max():.3g}")
    if not worst <= TOLERANCE * scale:
        return f"the outputs differ by {worst:.3g}, the largest is {scale:.3g}"
    model.train()
    model(*inputs).sum().backward()
    without = [n for n, p in model.named_parameters() if p.grad is None]
    return f"parameters without a gradient: {without}" if without else None


if __name__ == "__main__":
    try:
        why = main(*sys.argv[1:])
    except Exception as e:  # pylint: disable=broad-except
        why = f"{type(e).__name__}: {' '.join(str(e).split())[:400]}"
    print(f"not ok {sys.argv[3]}: {why}" if why else f"ok {sys.argv[3]}")
