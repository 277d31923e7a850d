#!/usr/bin/env python3
"""Replaces values of f32 tensors in a checkpoint and makes its digests match again, as a conversion of another program's state would.

Usage: edit_checkpoint.py STEP_DIR model|optimizer VALUES

VALUES: a text file with lines `TENSOR INDEX VALUE…`: the values from that index on. Ends with status 2 where there is no libxxhash to call.
"""
import ctypes
import ctypes.util
import json
import os
import struct
import sys


class Hash(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


def main(folder, which, values):
    name = ctypes.util.find_library("xxhash") or "libxxhash.so.0"
    try:
        of = ctypes.CDLL(name).XXH3_128bits
    except (OSError, AttributeError) as e:
        print(f"edit_checkpoint.py: {e}", file=sys.stderr)
        return 2
    of.restype, of.argtypes = Hash, [ctypes.c_char_p, ctypes.c_size_t]

    def digest(b):
        h = of(b, len(b))
        return f"{h.high:016x}{h.low:016x}"

    path = os.path.join(folder, which + ".safetensors")
    raw = bytearray(open(path, "rb").read())
    n = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8:8 + n])
    old = digest(bytes(raw))
    for line in open(values, encoding="ascii"):
        w = line.split()
        x = [float(v) for v in w[2:]]
        begin, end = header[w[0]]["data_offsets"]
        at = 8 + n + begin + 4 * int(w[1])
        assert header[w[0]]["dtype"] == "F32" and at + 4 * len(x) <= 8 + n + end, line[:60]
        struct.pack_into(f"<{len(x)}f", raw, at, *x)
    open(path, "wb").write(raw)
    path = os.path.join(folder, "manifest.json")
    text = open(path, encoding="ascii").read()
    assert old in text, "the manifest has another digest"
    body = text.replace(old, digest(bytes(raw)))[:-len(',"xxh3":"' + 32 * "0" + '"}\n')]
    open(path, "w", encoding="ascii").write(f'{body},"xxh3":"{digest(body.encode())}"}}\n')
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
