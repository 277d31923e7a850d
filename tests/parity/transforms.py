"""The transforms of datasets/image/ against torchvision's on PIL images, with the parameters that gtrain drew.

    transforms.py TOOL DIR [TAR]        TOOL: tool_transform; DIR: for temporary files; TAR: images (else synthetic ones are made)
    transforms.py TOOL DIR --golden     writes tests/golden/transforms.txt, the digests of torchvision's results for pictures that
                                        tests/unit/test_transform_golden.c makes too

Prints a line "# NAME: largest difference, mean difference" for each transform, and "ok" or "not ok". In steps of 1/255."""
import os, subprocess, sys, tarfile, zlib
import numpy as np
import PIL
from PIL import Image
import torchvision
import torchvision.transforms.functional as F
from torchvision.transforms import InterpolationMode as I
from torchvision.transforms.autoaugment import _apply_op

tool, folder = sys.argv[1:3]
golden = sys.argv[3:] == ["--golden"]
tar = sys.argv[3] if len(sys.argv) > 3 and not golden else None
COUNT = 200
OPS = ["Identity", "ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate", "Brightness", "Color", "Contrast", "Sharpness",
       "Posterize", "Solarize", "AutoContrast", "Equalize"]
BASE = "{ type = \"resize\"; size = [96, 112]; }, "


class Draw:
    def __init__(self, text):
        w = text.split()
        self.apply, self.top, self.left, self.height, self.width = (int(v) for v in w[1:6])
        self.angle = float(w[6])
        self.order = [int(w[7 + 2 * i]) for i in range(4)]
        self.factor = [float(w[8 + 2 * i]) for i in range(4)]
        self.ops = [(OPS[int(w[16 + 2 * i])], float(w[17 + 2 * i])) for i in range(int(w[15]))]


def base(im):
    return F.resize(im, [96, 112], I.BILINEAR)


def cropped(interpolation):
    return lambda im, d: F.resized_crop(im, d[0].top, d[0].left, d[0].height, d[0].width, [96, 112], interpolation)


def jitter(im, d):
    im = base(im)
    for what in d[1].order:
        im = [F.adjust_brightness, F.adjust_contrast, F.adjust_saturation, F.adjust_hue][what](im, d[1].factor[what])
    return im


def operations(interpolation, fill):
    def run(im, d):
        im = base(im)
        for name, strength in d[1].ops:
            im = _apply_op(im, name, strength, interpolation, fill)
        return im
    return run


def erase(im, d):
    a = np.array(base(im))
    if d[1].apply:
        a[d[1].top:d[1].top + d[1].height, d[1].left:d[1].left + d[1].width] = np.rint(np.array([0.485, 0.456, 0.406]) * 255)
    return a


def pad_crop(reflect):
    def run(im, d):
        im = F.pad(base(im), 9, padding_mode="reflect" if reflect else "constant")
        return F.crop(im, 9 + d[1].top, 9 + d[1].left, 96, 112)
    return run


# name, entries of data.augment, torchvision's result, largest and mean difference allowed
CASES = [
    ("resize, both sides", BASE[:-2], lambda im, d: base(im), 0, 0),
    ("resize, enlarged", '{ type = "resize"; size = [300, 333]; }', lambda im, d: F.resize(im, [300, 333], I.BILINEAR), 0, 0),
    ("resize, bicubic", '{ type = "resize"; size = [96, 112]; interpolation = "bicubic"; }',
     lambda im, d: F.resize(im, [96, 112], I.BICUBIC), 0, 0),
    ("resize and center_crop", '{ type = "resize"; size = 146; }, { type = "center_crop"; size = 128; }',
     lambda im, d: F.center_crop(F.resize(im, 146, I.BILINEAR), [128, 128]), 0, 0),
    ("center_crop", '{ type = "center_crop"; size = [77, 93]; }', lambda im, d: F.center_crop(im, [77, 93]), 0, 0),
    ("center_crop, padded", '{ type = "center_crop"; size = [300, 321]; }', lambda im, d: F.center_crop(im, [300, 321]), 0, 0),
    ("random_resized_crop", '{ type = "random_resized_crop"; size = [96, 112]; }', cropped(I.BILINEAR), 0, 0),
    ("random_resized_crop, bicubic", '{ type = "random_resized_crop"; size = [96, 112]; interpolation = "bicubic"; }',
     cropped(I.BICUBIC), 0, 0),
    # a JPEG that is decoded at half its size has gone through another filter
    ("random_resized_crop to 40, reduced JPEG", '{ type = "random_resized_crop"; size = 40; scale = [0.3, 1.0]; }',
     lambda im, d: F.resized_crop(im, d[0].top, d[0].left, d[0].height, d[0].width, [40, 40], I.BILINEAR), 64, 2),
    ("hflip", BASE + '{ type = "hflip"; p = 0.9; }', lambda im, d: F.hflip(base(im)) if d[1].apply else base(im), 0, 0),
    ("vflip", BASE + '{ type = "vflip"; }', lambda im, d: F.vflip(base(im)) if d[1].apply else base(im), 0, 0),
    ("pad_crop", BASE + '{ type = "pad_crop"; pad = 9; }', pad_crop(False), 0, 0),
    ("pad_crop, reflect", BASE + '{ type = "pad_crop"; pad = 9; mode = "reflect"; }', pad_crop(True), 0, 0),
    ("rotate", BASE + '{ type = "rotate"; degrees = 90.0; }', lambda im, d: F.rotate(base(im), d[1].angle), 0, 0),
    ("rotate, bilinear", BASE + '{ type = "rotate"; degrees = 180.0; interpolation = "bilinear"; fill = [0.2, 0.4, 0.6]; }',
     lambda im, d: F.rotate(base(im), d[1].angle, I.BILINEAR, fill=[51, 102, 153]), 0, 0),
    ("color_jitter", BASE + '{ type = "color_jitter"; brightness = 0.4; contrast = 0.4; saturation = 0.4; hue = 0.1; }', jitter, 0, 0),
    ("grayscale", BASE + '{ type = "grayscale"; p = 0.5; }',
     lambda im, d: F.to_grayscale(base(im), 3) if d[1].apply else base(im), 0, 0),
    ("random_erasing", BASE + '{ type = "random_erasing"; }', erase, 0, 0),
    ("trivial_augment", BASE + '{ type = "trivial_augment"; }', operations(I.NEAREST, None), 0, 0),
    ("trivial_augment, bilinear", BASE + '{ type = "trivial_augment"; interpolation = "bilinear"; }', operations(I.BILINEAR, None), 0, 0),
    ("rand_augment", BASE + '{ type = "rand_augment"; ops = 12; magnitude = 5; }', operations(I.NEAREST, None), 0, 0),
    ("rand_augment, bilinear", BASE + '{ type = "rand_augment"; ops = 8; magnitude = 7; interpolation = "bilinear"; fill = 0.2; }',
     operations(I.BILINEAR, [51, 51, 51]), 0, 0),
]


def images():
    """Writes COUNT JPEGs to the folder."""
    names = []
    if golden:
        for i, (h, w) in enumerate([(160, 160), (121, 118), (97, 141), (230, 64), (64, 230)]):
            y, x, c = np.ogrid[:h, :w, :3]
            v = (3 * x + 2 * y + 70 * c) % 200 + (x * x * 31 + y * 17 + c * 7 + x * y * 13) // 8 % 56
            names.append(os.path.join(folder, f"{i}.png"))
            Image.fromarray(v.astype(np.uint8)).save(names[-1])
        return names
    if tar:
        with tarfile.open(tar) as t:
            members = [m for m in t if m.isfile()]
            for i in range(COUNT):
                names.append(os.path.join(folder, f"{i}.jpg"))
                open(names[-1], "wb").write(t.extractfile(members[i * len(members) // COUNT]).read())
        return names
    rng = np.random.default_rng(1)
    for i in range(40):
        coarse = Image.fromarray(rng.integers(0, 256, (7, 9, 3), dtype=np.uint8))
        im = coarse.resize((120 + 3 * i, 260 - 4 * i), Image.BICUBIC)
        names.append(os.path.join(folder, f"{i}.jpg"))
        im.save(names[-1], quality=90, subsampling=i % 3, progressive=i % 5 == 0)
    return names


def apply(name, augment, files):
    h, w = {"resize, enlarged": (300, 333), "resize and center_crop": (128, 128), "center_crop": (77, 93),
            "center_crop, padded": (300, 321), "random_resized_crop to 40, reduced JPEG": (40, 40)}.get(name, (96, 112))
    cfg, out = os.path.join(folder, "t.cfg"), os.path.join(folder, "t.raw")
    open(cfg, "w").write(f'''schema = 1; seed = 5;
data = {{ name = "x"; train = ["a"]; batch = 8; mean = [0.485, 0.456, 0.406]; augment = ( {augment} ); }};
model = {{ input = [3, {h}, {w}]; layers = ( {{ type = "flatten"; }}, {{ type = "linear"; out = 2; }} ); }};
train = {{ epochs = 1; optimizer = {{ type = "sgd"; lr = 0.1; }}; }};
''')
    text = subprocess.run([tool, cfg, "3", out, *files], check=True, capture_output=True, text=True).stdout
    draws = [[Draw(d) for d in line.split(";")] for line in text.splitlines()]
    return np.fromfile(out, np.uint8).reshape(len(files), h, w, 3), draws


files = images()
lines = []
pictures = [Image.open(f).convert("RGB") for f in files]
for name, augment, reference, most, mean in CASES:
    got, draws = apply(name, augment, files)
    want = np.stack([np.array(reference(im, d)) for im, d in zip(pictures, draws)])
    diff = np.abs(got.astype(int) - want.astype(int))
    worst = int(diff.reshape(len(files), -1).max(1).argmax())
    print(f"# {name}: {diff.max()} largest, {diff.mean():.5f} mean, {len(files)} images")
    if diff.max() > most or diff.mean() > mean:
        print(f"not ok transforms: {name}: at most {most} and {mean} in the mean are expected; image {worst}"
              f" {[vars(d) for d in draws[worst]][-1] if os.environ.get('DEBUG') else ''}")
    else:
        print(f"ok transforms: {name}")
    if golden and "JPEG" not in name:
        lines.append(f"{zlib.crc32(want.astype(np.uint8).tobytes()):08x} {want.shape[1]} {want.shape[2]} {augment}\n")
if golden:
    with open(os.path.join(os.path.dirname(__file__), "../golden/transforms.txt"), "w") as f:
        f.write("# CRC-32 of five images, height, width, data.augment. Made by tests/parity/transforms.py with torchvision "
                f"{torchvision.__version__} and Pillow {PIL.__version__}.\n")
        f.writelines(lines)
