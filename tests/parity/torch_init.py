#!/usr/bin/env python3
"""Published networks of torchvision through `gtrain init --pretrained`: every tensor of the file but those of the classifiers is loaded,
and none is left over; other networks are refused. The tensors have the names of the published files.

Usage: torch_init.py GTRAIN WORK_DIR      (needs torch, torchvision and PIL; test_torchvision.sh runs it where they are)"""
import json
import os
import re
import subprocess
import sys

import torch
import torchvision.models as tv
from PIL import Image

KNOWN = ["resnet18", "resnet34", "resnet50", "mobilenet_v2", "mobilenet_v3_small", "efficientnet_b0", "vit_b_16", "convnext_tiny",
         "squeezenet1_1", "regnet_y_400mf", "shufflenet_v2_x1_0", "densenet121", "googlenet"]
OTHER = ["alexnet", "convnext_small", "mobilenet_v3_large", "efficientnet_b1"]


def published(name, state):
    """The state dict as the published file has it: that of densenet121 has older names, and no num_batches_tracked."""
    if name != "densenet121":
        return state
    return {re.sub(r"(denselayer\d+\.(?:norm|conv))([12])\.", r"\1.\2.", k): v for k, v in state.items()
            if not k.endswith("num_batches_tracked")}


def main(binary, work):
    for k in range(2):
        os.makedirs(os.path.join(work, "photos", str(k)))
        for i in range(8):
            Image.new("RGB", (64, 64), (40 * i, 100 * k, 90)).save(os.path.join(work, "photos", str(k), f"{i}.png"))
    for name in KNOWN + OTHER:
        model = getattr(tv, name)(**({"init_weights": False} if name == "googlenet" else {})).state_dict()
        weights = published(name, model)
        extra = sum(k.startswith("aux") for k in weights)
        torch.save(weights, os.path.join(work, "weights.pth"))
        done = subprocess.run([binary, "init", "photos", "--pretrained", "weights.pth"], cwd=work, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)
        if name in OTHER:
            good, why = done.returncode == 65 and "expected the weights of a torchvision network" in done.stderr, done.stderr.strip()
        else:
            with open(os.path.join(work, "net.cfg"), "w") as f:
                f.write(done.stdout)
            told = subprocess.run([binary, "check", "net.cfg", "--json"], cwd=work, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  text=True)
            why = done.stderr.strip() or told.stderr.strip()
            p = json.loads(told.stdout.splitlines()[0])["pretrained"] if told.returncode == 0 else {}
            counters = len(model) - len(weights)
            good = p and p["loaded"] == len(weights) - extra - 2 == p["tensors"] - counters - 2 and not p["unused"]
            good = good and len(p["dropped"]) == extra + 2 and ("mean = [0.5000, 0.5000, 0.5000];" in done.stdout) == (name == "googlenet")
        print(f"ok torch_init {name}" if good else f"not ok torch_init {name}: {why}")


main(*sys.argv[1:])
