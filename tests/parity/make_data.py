#!/usr/bin/env python3
"""Writes a small learnable data set in CIFAR-10's binary format: data_batch_1.bin (1,000 images) and test_batch.bin (200).

Usage: make_data.py DIR

Each class has a pattern of 4 x 4 patches a channel; an image is the mean of its class's pattern and noise. Only Python's own
Mersenne Twister is used, so the bytes are the same everywhere; their SHA-256 is checked."""
import hashlib
import os
import random
import sys

SHA256 = {
    "data_batch_1.bin": "ee9a084b399e7f37cc5abe4cbe79f84e26016243568e301a285be89502c63351",
    "test_batch.bin": "b9fc875279f102b285b49704a9435c15e5dbc40a8071c5daaed47cf36c565468",
}


def pattern(rng):
    out = bytearray()
    for _ in range(3):
        patch = [rng.randbytes(4) for _ in range(4)]
        for row in patch:
            line = b"".join(bytes([v]) * 8 for v in row)
            out += line * 8
    return bytes(out)


def images(rng, patterns, n):
    out = bytearray()
    for _ in range(n):
        label = rng.randrange(10)
        out.append(label)
        out += bytes((a + b) >> 1 for a, b in zip(patterns[label], rng.randbytes(3072)))
    return bytes(out)


def main(folder):
    rng = random.Random(20240607)
    patterns = [pattern(rng) for _ in range(10)]
    os.makedirs(folder, exist_ok=True)
    for name, n in (("data_batch_1.bin", 1000), ("test_batch.bin", 200)):
        data = images(rng, patterns, n)
        if hashlib.sha256(data).hexdigest() != SHA256[name]:
            sys.exit(f"{name}: the bytes differ from those the goldens were made on: {hashlib.sha256(data).hexdigest()}")
        with open(os.path.join(folder, name), "wb") as f:
            f.write(data)


if __name__ == "__main__":
    main(sys.argv[1])
