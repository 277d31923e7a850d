#!/usr/bin/env python3
"""Tied weights between gtrain and PyTorch: a checkpoint of seq_tied.cfg in the model whose parameters are shared, held against `gtrain eval
--json`, and the state dicts that PyTorch writes of it in gtrain.

Usage: torch_tied.py GTRAIN WORK_DIR      (needs torch and safetensors; test_torch_load.sh runs it where they are)"""
import json
import os
import subprocess
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors.torch import load_model, save_file, save_model

import sequence_models

HERE = os.path.dirname(os.path.abspath(__file__))


class Tied(sequence_models.Tied):
    """With the state dict of any module: a shared parameter has several names."""

    state_dict = nn.Module.state_dict
    load_state_dict = nn.Module.load_state_dict


def main(binary, work):
    def run(name, *args):
        config = os.path.join(HERE, "seq_tied.cfg")
        subprocess.run([binary, "run", config, "-q", "--no-progress", "--device", "cpu", "-o", os.path.join(work, name), *args], check=True,
                       stdout=subprocess.DEVNULL)
        told = subprocess.run([binary, "eval", os.path.join(work, name), "--json", "--device", "cpu"], check=True, stdout=subprocess.PIPE,
                              text=True)
        return json.loads(told.stdout.splitlines()[-1])["loss"]

    want = run("run", "-s", "train.steps=20")
    model = Tied()
    missing, unexpected = load_model(model, os.path.join(work, "run", "latest", "model.safetensors"))
    if missing or unexpected or model.out.weight is not model.word.weight:
        sys.exit(f"not ok torch_tied: missing {missing}, unexpected {unexpected}")
    _, _, x, y = sequence_models.data(0)
    with torch.no_grad():
        loss = F.cross_entropy(model(x), y).item()
    apart = abs(want - loss) / loss
    if apart > 1e-5:  # f32, sums of up to 576 terms: eps * sqrt(K) = 2.9e-6
        sys.exit(f"not ok torch_tied: gtrain's loss {want}, PyTorch's {loss}")
    save_model(model, os.path.join(work, "once.safetensors"))  # one of the names
    save_file({k: v.clone() for k, v in model.state_dict().items()}, os.path.join(work, "all.safetensors"))
    for name in ("once", "all"):
        back = run(name, "--init", os.path.join(work, name + ".safetensors"), "-s", "train.steps=1", "-s", "train.optimizer.lr=0")
        if back != want:
            sys.exit(f"not ok torch_tied: {name}.safetensors gives the loss {back}, expected {want}")
    print(f"# torch_tied: gtrain eval {want:.7f}, PyTorch {torch.__version__} {loss:.7f}, relative difference {apart:.1e}")
    print("ok torch_tied weights to PyTorch and back")


if __name__ == "__main__":
    main(*sys.argv[1:])
