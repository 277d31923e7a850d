#!/usr/bin/env python3
"""Files of torch.save in gtrain: each gives the same weights as a safetensors file of the same state dict.

Usage: torch_files.py GTRAIN WORK_DIR      (needs torch and safetensors; test_torch_load.sh runs it where they are)"""
import os
import subprocess
import sys

import torch
from safetensors.torch import load_file, save_file
from torch import nn

CONFIG = """schema = 1; name = "files"; data = { name = "synthetic"; samples = 8; samples_test = 8; classes = 4; batch = 8; };
model = { input = [1, 6, 6]; layers = ( { name = "0"; type = "conv2d"; out = 8; kernel = 3; }, { name = "1"; type = "batchnorm2d"; },
	{ type = "relu"; }, { type = "flatten"; }, { name = "4"; type = "linear"; out = 4; } ); };
train = { steps = 1; optimizer = { type = "sgd"; lr = 0.0; }; };
"""


def main(binary, work):
    torch.manual_seed(1)
    model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(128, 4))
    weights = {k: v for k, v in model.state_dict().items()}
    forms = {"plain": model.state_dict(), "state_dict": {"state_dict": model.state_dict(), "epoch": 3, "arch": "net"},
             "model": {"model": weights, "optimizer": torch.optim.Adam(model.parameters()).state_dict()},
             "half": {k: v.half() if v.is_floating_point() else v for k, v in weights.items()},
             "parameters": {**weights, **dict(model.named_parameters())}}
    with open(os.path.join(work, "net.cfg"), "w") as f:
        f.write(CONFIG)

    def loaded(file, how):
        out = os.path.join(work, file + how)
        option = ["--init", os.path.join(work, file)] if how == "init" else ["-s", f"model.pretrained.file={os.path.join(work, file)}"]
        done = subprocess.run([binary, "run", os.path.join(work, "net.cfg"), "-q", "--device", "cpu", "-o", out, *option],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            sys.exit(f"not ok torch_files {file}: {done.stderr.strip()}")
        return load_file(os.path.join(out, "latest", "model.safetensors"))

    for name, what in forms.items():
        state = what.get("state_dict", what.get("model", what))
        save_file({k: v.detach().clone() for k, v in state.items()}, os.path.join(work, name + ".safetensors"))
        torch.save(what, os.path.join(work, name + ".pth"))
        for how in ("init", "pretrained"):
            a, b = loaded(name + ".safetensors", how), loaded(name + ".pth", how)
            if sorted(a) != sorted(b) or any(not torch.equal(a[k], b[k]) for k in a):
                sys.exit(f"not ok torch_files {name}: the weights differ")
            if how == "init" and name == "plain" and not torch.equal(b["4.weight"], weights["4.weight"]):
                sys.exit("not ok torch_files: the weights are not those of the file")
        print(f"ok torch_files {name}")
    torch.save(weights, os.path.join(work, "old.pth"), _use_new_zipfile_serialization=False)
    torch.save(model, os.path.join(work, "module.pth"))
    for name, want in (("old", "PyTorch before version 1.6; save it again: python3 -c"), ("module", "got the Python object torch.nn")):
        done = subprocess.run([binary, "run", os.path.join(work, "net.cfg"), "--init", os.path.join(work, name + ".pth")],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode != 65 or want not in done.stderr:
            sys.exit(f"not ok torch_files {name}: {done.returncode}: {done.stderr.strip()}")
        print(f"ok torch_files {name}")


main(*sys.argv[1:])
