#!/usr/bin/env python3
"""The configs of published networks beside torchvision's modules: random weights go from a state dict into a run (--init, which is strict),
the outputs of `gtrain predict` are those of the module in eval mode, and the run's checkpoint is loaded into the module, strictly.

Usage: torchvision_models.py GTRAIN CONFIG_DIR WORK_DIR      (needs torch, torchvision, safetensors and PIL; test_torchvision.sh)"""
import json
import os
import re
import subprocess
import sys
from functools import partial

import numpy as np
import torch
import torch.nn as nn
import torchvision.models as tv
from PIL import Image
from safetensors.torch import load_file, save_file

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
CLASSES = 10  # `gtrain predict` shows at most ten probabilities
DATA = f'data = {{ name = "synthetic"; classes = {CLASSES}; samples = 2; samples_test = 2; batch = 2; mean = {MEAN}; std = {STD}; }};'


def resnet50d(num_classes):
    """timm's resnet50d, from torchvision's blocks."""
    m = tv.resnet50(num_classes=num_classes)

    def conv(i, o, s=1):
        return nn.Conv2d(i, o, 3, s, 1, bias=False)
    m.conv1 = nn.Sequential(conv(3, 32, 2), nn.BatchNorm2d(32), nn.ReLU(), conv(32, 32), nn.BatchNorm2d(32), nn.ReLU(), conv(32, 64))
    for layer in (m.layer1, m.layer2, m.layer3, m.layer4):
        old, norm = layer[0].downsample
        stride = old.stride[0]
        layer[0].downsample = nn.Sequential(nn.AvgPool2d(stride), nn.Conv2d(old.in_channels, old.out_channels, 1, bias=False), norm)
    return m


MODELS = {"resnet18": (tv.resnet18, 224), "resnet34": (tv.resnet34, 224), "resnet50": (tv.resnet50, 224),
          "imagenette_resnet50d": (resnet50d, 128), "mobilenet_v2": (tv.mobilenet_v2, 224),
          "mobilenet_v3": (tv.mobilenet_v3_small, 224), "efficientnet_b0": (tv.efficientnet_b0, 224),
          "vit_b16": (tv.vit_b_16, 224), "convnext_tiny": (tv.convnext_tiny, 224), "squeezenet1_1": (tv.squeezenet1_1, 224),
          "densenet121": (tv.densenet121, 224), "regnet_y_400mf": (tv.regnet_y_400mf, 224),
          "shufflenet_v2_x1_0": (tv.shufflenet_v2_x1_0, 224), "googlenet": (partial(tv.googlenet, init_weights=False), 224)}
# Names that differ, in the file and in the config, where "" means no such tensor: entries of model.pretrained.map.
MAPS = {"vit_b16": (("class_token", "class_token.weight"), ("encoder.pos_embedding", "encoder.pos_embedding.weight")),
        "convnext_tiny": (("*.layer_scale", "*.layer_scale.weight"),), "googlenet": (("aux1.*", ""), ("aux2.*", ""))}


def matches(pattern, name):
    return re.fullmatch(re.escape(pattern).replace(r"\*", ".*"), name)


def randomize(model, seed):
    """Weights, statistics and all: what stays at 0 or 1 could be missing without a trace."""
    g = torch.Generator().manual_seed(seed)
    for name, t in model.state_dict().items():
        if name.endswith("num_batches_tracked"):
            t.fill_(7)
        elif name.endswith("running_var"):
            t.copy_(0.5 + torch.rand(t.shape, generator=g))
        elif t.dim() == 1:
            t.add_(0.2 * torch.randn(t.shape, generator=g))
        elif t.dim() == 2:  # so that the classes differ clearly
            t.copy_(torch.randn(t.shape, generator=g) / t.shape[1] ** 0.5)
        else:
            t.copy_(torch.randn(t.shape, generator=g) * (1.6 / t[0].numel()) ** 0.5)


def logits_scale(model, x):
    """Scales the last layer, a linear one or else a convolution, so that the logits spread by about 1; the log probabilities in double."""
    layers = list(model.modules())
    head = ([m for m in layers if isinstance(m, nn.Linear)] or [m for m in layers if isinstance(m, nn.Conv2d)])[-1]
    with torch.no_grad():
        head.weight /= model(x).std()
        return torch.log_softmax(model.double()(x.double()), 1).float()


def check(binary, configs, work, name):
    make, size = MODELS[name]
    model = make(num_classes=CLASSES).eval()
    images = np.random.default_rng(5).integers(0, 256, (2, size, size, 3), dtype=np.uint8)
    paths = [os.path.join(work, f"{name}-{i}.png") for i in range(len(images))]
    for p, a in zip(paths, images):
        Image.fromarray(a).save(p)
    x = torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255
    x = (x - torch.tensor(MEAN)[:, None, None]) / torch.tensor(STD)[:, None, None]
    with torch.no_grad():
        randomize(model, 3)
        want = logits_scale(model, x)
    model.float()
    before = {k: v.clone().contiguous() for k, v in model.state_dict().items()}
    state, cfg, run = (os.path.join(work, name + e) for e in (".safetensors", ".cfg", ""))
    save_file(before, state)
    text = open(os.path.join(configs, name + ".cfg"), encoding="utf-8").read()
    text = re.sub(r"(?ms)^data = \{.*?^\};", DATA, text)
    text = re.sub(r'(type = "(?:linear|conv2d)"; out = )1000\b', rf"\g<1>{CLASSES}", text)
    open(cfg, "w", encoding="utf-8").write(text)
    entries = "".join(f'{{from="{a}";to="{b}";}},' for a, b in MAPS.get(name, ()))
    load = ["-s", f'model.pretrained={{file="{os.path.abspath(state)}";map=({entries});}}'] if entries else ["--init", state]
    # A step at rate 0 that keeps the running statistics: the checkpoint has the weights of the file.
    subprocess.run([binary, "run", cfg, "-q", "--no-progress", "--device", "cpu", "-o", run, *load, "-s", 'precision="fp32"',
                    "-s", "train.steps=1", "-s", "train.eval_every_epochs=0", "-s", "checkpoint.best.metric=", "-s",
                    'train.optimizer={type="sgd";lr=0.0;}', "-s", 'train.schedule={type="constant";}',
                    *(["-s", 'train.groups=({match=["*"];frozen_stats=true;})'] if any("running_var" in k for k in before) else [])],
                   check=True)
    out = subprocess.run([binary, "predict", run, "--top", str(CLASSES), "--json", "--device", "cpu", *paths], check=True,
                         stdout=subprocess.PIPE, text=True).stdout
    worst = 0
    for line, w in zip(out.splitlines(), want):
        for top in json.loads(line)["top"]:
            worst = max(worst, abs(np.log(top["probability"]) - float(w[int(top["class"])])))
    after = load_file(os.path.join(run, "latest", "model.safetensors"))
    for a, b in MAPS.get(name, ()):
        after.update({k: v for k, v in before.items() if not b and matches(a, k)})
        for key in [k for k in after if matches(b, k)]:
            after[key[:len(key) - len(b.lstrip("*")) + len(a.lstrip("*"))]] = after.pop(key)
    after = {k: v.view(before[k].shape) if k in before and v.numel() == before[k].numel() else v for k, v in after.items()}
    model.load_state_dict(after, strict=True)
    differ = [k for k in before if not torch.equal(before[k], after[k])]
    # 1e-5: a logit near 1 is a sum of a thousand rounded products after fifty layers.
    if differ or not worst <= 1e-5:
        print(f"not ok torchvision_{name}: log probabilities differ by {worst:.2g}; tensors that are not the same: {differ[:3]}")
    else:
        print(f"ok torchvision_{name}")
    print(f"# torchvision {name}: {len(before)} tensors, log probabilities within {worst:.2g}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    for model_name in sys.argv[4:] or MODELS:
        check(sys.argv[1], sys.argv[2], sys.argv[3], model_name)
