#!/usr/bin/env python3
"""The preparation of images that an export describes (images.py and the metadata of ONNX), against `gtrain predict`.

Usage: export_photos.py make FOLDER                      photos of different sizes, formats and orientations, in class folders
       export_photos.py torch GTRAIN RUN FOLDER OUT      exports RUN for PyTorch, compares the probabilities, writes those of gtrain to OUT
       export_photos.py pixels FOLDER OUT                writes the pixels that OUT/images.py makes of the photos to OUT
       export_photos.py metadata MODEL.onnx OUT          writes images.py of an exported model to OUT, checks the entry "preprocessing"
       export_photos.py onnx MODEL.onnx OUT NAME         compares the probabilities of ONNX Runtime for these pixels

The first three need Pillow and torch, the others onnx and onnxruntime. Prints "ok NAME" or "not ok NAME: why"."""
import json
import os
import subprocess
import sys

import numpy as np

TOLERANCE = 1e-5  # of probabilities: the pixels are equal, and both networks compute in f32


def files(folder):
    return sorted(os.path.join(d, n) for d, _, names in os.walk(folder) for n in names)


def photo(rng, height, width, hue):
    """Coarse random colours, enlarged, and noise, which antialiasing removes."""
    from PIL import Image
    coarse = (rng.random((6, 6, 3)) * 120 + np.eye(3)[hue] * 100).astype(np.uint8)
    image = np.asarray(Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)).astype(np.float64)
    return Image.fromarray((image + rng.random((height, width, 1)) * 40).clip(0, 255).astype(np.uint8))


def make(folder):
    from PIL import Image
    rng = np.random.default_rng(5)
    for hue in range(3):
        os.makedirs(f"{folder}/class{hue}")
        for i in range(16):
            height, width = (int(n) for n in rng.integers(20, 150, 2))
            if i < 8:  # large JPEGs of odd sizes, which are decoded with fewer pixels, in each orientation
                exif = Image.Exif()
                exif[0x0112] = i + 1
                photo(rng, 4 * height + 101, 3 * width + 97, hue).save(f"{folder}/class{hue}/{i}.jpg", quality=90, exif=exif)
                continue
            image = photo(rng, height, width, hue)
            deep = Image.fromarray(np.asarray(image.convert("L")).astype(np.uint16) * 257)
            image = {8: image.convert("L"), 9: image.convert("RGBA"), 10: image.quantize(64), 11: deep}.get(i, image)
            image.save(f"{folder}/class{hue}/{i:02d}.{'jpg' if i > 13 else 'webp' if i == 13 else 'png'}",
                       **({"lossless": True} if i == 13 else {}))


def of_gtrain(gtrain, run, paths):
    """The probabilities of `gtrain predict`, [images, classes]."""
    lines = subprocess.run([gtrain, "predict", run, "--top", "3", "--json", *paths], check=True, capture_output=True, text=True).stdout
    rows = [json.loads(line) for line in lines.splitlines()]
    assert [r["path"] for r in rows] == paths, rows[:2]
    return np.array([[p["probability"] for p in sorted(r["top"], key=lambda p: p["class"])] for r in rows])


def softmax(x):
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def compare(got, want, name):
    worst = float(np.abs(got - want).max())
    print(f"# {name}: largest difference of {want.size} probabilities {worst:.2e}")
    assert want.std(0).max() > 0.01, "all images have the same probabilities"
    assert worst < TOLERANCE, f"the probabilities differ by {worst:.3g}"


def torch_folder(gtrain, run, folder, out):
    paths = files(folder)
    want = of_gtrain(gtrain, run, paths)
    np.save(f"{out}/want.npy", want)
    subprocess.run([gtrain, "export", run, "-o", f"{out}/model", "--format", "pytorch", "-q"], check=True)
    sys.path.insert(0, f"{out}/model")
    import torch
    from images import batch, prepare, STEPS
    from model import load
    with torch.no_grad():
        compare(softmax(load()(torch.from_numpy(batch(paths))).numpy()), want, "torch")
    # The steps are transforms of torchvision, except for a JPEG that images.py decodes with fewer pixels.
    from PIL import Image
    from torchvision import transforms
    of_step = {"resize": lambda size, how: transforms.Resize(size[0] if len(size) == 1 else size,
                                                             transforms.InterpolationMode[how.upper()]),
               "center_crop": lambda size, _: transforms.CenterCrop(size)}
    pipeline = transforms.Compose([of_step[kind](size, how) for kind, size, how in STEPS])
    for path in paths:
        if path.endswith(("12.png", "13.webp")):
            image = np.asarray(pipeline(Image.open(path).convert("RGB"))).transpose(2, 0, 1)
            assert (image == prepare(path)[:3]).all() or prepare(path).shape[0] == 1, path


def pixels(folder, out):
    sys.path.insert(0, out)
    from images import batch
    x = batch(files(folder))
    assert x.dtype == np.uint8, x.dtype
    np.save(f"{out}/pixels.npy", x)


def metadata(path, out):
    import onnx
    entries = {p.key: p.value for p in onnx.load(path).metadata_props}
    with open(f"{out}/images.py", "w", encoding="utf-8") as f:
        f.write(entries["images.py"])
    steps = json.loads(entries["preprocessing"])
    module = {}
    head = [line for line in entries["images.py"].splitlines() if line.startswith(("MODE", "STEPS"))]
    exec("\n".join(head), module)  # the constants alone, without Pillow
    assert module["MODE"] == steps["channels"] and list(module["SIZE"]) == steps["size"], steps
    assert module["STEPS"] == [(t["type"], t["size"], t.get("interpolation", "")) for t in steps["transforms"]], steps
    assert all(t["antialias"] for t in steps["transforms"] if t["type"] == "resize"), steps


def onnx_model(path, out, name):
    import onnxruntime
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    got = session.run(None, {session.get_inputs()[0].name: np.load(f"{out}/pixels.npy")})[0]
    compare(softmax(got), np.load(f"{out}/want.npy"), name)


if __name__ == "__main__":
    {"make": make, "torch": torch_folder, "pixels": pixels, "metadata": metadata, "onnx": onnx_model}[sys.argv[1]](*sys.argv[2:])
