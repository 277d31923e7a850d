"""make_images.py DIR N SIZE CLASS...: writes N PNG images of each class into DIR/CLASS, which a small network learns to tell apart:
every class has a colour of its own, and every image another brightness, size (SIZE to SIZE + 15 pixels a side) and noise."""
import os
import random
import struct
import sys
import zlib


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(w, h, rows):
    header = struct.pack(">IIBBBBB", w, h, 8, 2, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"".join(b"\0" + r for r in rows), 1)) +
            chunk(b"IEND", b""))


folder, n, size, classes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
for k, name in enumerate(classes):
    os.makedirs(os.path.join(folder, name), exist_ok=True)
    for i in range(n):
        r = random.Random(1000 * k + i)
        w, h, light = size + r.randrange(16), size + r.randrange(16), r.uniform(0.5, 1)
        base = [light * 255 * (0.2 + 0.6 * ((k + c) % 3 == 0) + 0.2 * (k % 2)) for c in range(3)]
        rows = [bytes(min(255, max(0, int(b + r.gauss(0, 20)))) for _ in range(w) for b in base) for _ in range(h)]
        with open(os.path.join(folder, name, f"{i}.png"), "wb") as f:
            f.write(png(w, h, rows))
