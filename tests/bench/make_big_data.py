"""Writes large made data sets, for measurements of gtrain with much data (tests/bench/bench_big_data.sh).

    make_big_data.py images DIR COUNT     DIR/train/CLASS/NNN.png: COUNT images of 8x8 pixels in 1,000 classes
    make_big_data.py table  FILE ROWS     a CSV file of ROWS rows: three numbers, a category, and a target of two classes
    make_big_data.py texts  FILE BYTES    a CSV file of at least BYTES bytes: a text of about 200 words, and a target of two classes

The data depends only on the arguments. Only the standard library is needed."""
import os
import random
import struct
import sys
import zlib

CLASSES = 1000
BLOCK = 20000  # rows that are made once and written repeatedly, with different numbers


def encode_png(rng):
    """Returns a PNG file of 8x8 random pixels."""
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    rows = b"".join(b"\0" + rng.randbytes(24) for _ in range(8))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def write_images(root, count):
    rng = random.Random(1)
    files = [encode_png(rng) for _ in range(64)]
    for k in range(min(CLASSES, count)):
        folder = os.path.join(root, "train", f"n{k:08d}")
        os.makedirs(folder)
        at = os.open(folder, os.O_RDONLY)
        for i in range(k, count, CLASSES):
            fd = os.open(f"n{k:08d}_{i}.png", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644, dir_fd=at)
            os.write(fd, files[i % len(files)])
            os.close(fd)
        os.close(at)


def write_table(path, rows):
    rng = random.Random(2)
    names = ["red", "green", "blue", "black", "white"]
    block = [f"{rng.gauss(0, 1):.4f},{rng.gauss(5, 2):.4f},{rng.choice(names)},{rng.randrange(2)}\n" for _ in range(BLOCK)]
    with open(path, "w", encoding="ascii", buffering=1 << 20) as f:
        f.write("number,first,second,colour,target\n")
        for start in range(0, rows, BLOCK):
            f.write("".join([f"{start + i}," + row for i, row in enumerate(block[:rows - start])]))


def write_texts(path, size):
    rng = random.Random(3)
    words = ["".join(rng.choices("etaoinshrdlu", k=rng.randint(2, 9))) for _ in range(30000)]
    weights = [1 / (i + 10) for i in range(len(words))]
    block = [" ".join(rng.choices(words, weights, k=rng.randint(100, 300))) for _ in range(BLOCK // 10)]
    with open(path, "w", encoding="ascii", buffering=1 << 20) as f:
        f.write("text,target\n")
        number = 0
        while f.tell() < size:
            f.write("".join([f"{number + i} {row},{(number + i) % 2}\n" for i, row in enumerate(block)]))
            number += len(block)


if __name__ == "__main__":
    makers = {"images": write_images, "table": write_table, "texts": write_texts}
    if len(sys.argv) != 4 or sys.argv[1] not in makers:
        sys.exit(__doc__)
    makers[sys.argv[1]](sys.argv[2], int(sys.argv[3]))
