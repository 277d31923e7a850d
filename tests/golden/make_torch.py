#!/usr/bin/env python3
"""Files of torch.save, good and hostile, for tests/unit/test_torch_file.c and the fuzz target (needs torch; the tests do not).

  make_torch.py DIR CORPUS      writes DIR/mixed.pth, with the tensors of mixed.safetensors, and CORPUS/torch-*
"""
import io
import os
import struct
import sys
import zipfile

import torch
from torch import nn

TYPES = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "i64": torch.int64, "i32": torch.int32,
         "u8": torch.uint8}


def tensor(dtype, *shape):
    start = 0 if dtype == "u8" else -2
    return torch.arange(start, start + torch.Size(shape).numel()).to(TYPES[dtype]).reshape(shape)


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))


def text(s):
    return b"X" + struct.pack("<I", len(s)) + s.encode()


def storage(key="0", count=6, kind=b"FloatStorage"):
    return b"(" + text("storage") + b"ctorch\n" + kind + b"\n" + text(key) + text("cpu") + b"K" + bytes([count]) + b"tQ"


def rebuilt(offset=0, shape=(2, 3), stride=(3, 1), **of):
    ints = [b"(" + b"".join(b"J" + struct.pack("<i", v) for v in t) + b"t" for t in (shape, stride)]
    return (b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage(**of) + b"J" + struct.pack("<i", offset) + ints[0] + ints[1]
            + b"\x89ccollections\nOrderedDict\n)RtR")


def state(*items):
    return b"\x80\x02ccollections\nOrderedDict\n)R(" + b"".join(text(k) + v for k, v in items) + b"u."


class Call:
    def __reduce__(self):
        return os.system, ("touch /tmp/gtrain-executed",)


def main(out, corpus):
    def save(name, what, **options):
        torch.save(what, f"{corpus}/torch-{name}", **options)

    def pack(name, pickle, compression=zipfile.ZIP_STORED, **members):
        with zipfile.ZipFile(f"{corpus}/torch-{name}", "w", compression) as z:
            z.writestr("w/data.pkl", pickle)
            for key, data in ({"byteorder": b"little", "data/0": struct.pack("<6f", *range(6))} | members).items():
                if data is not None:
                    # The data begins at a multiple of 64 bytes, as torch.save pads with an extra field.
                    info, at = zipfile.ZipInfo("w/" + key), z.fp.tell() + 30 + len("w/" + key)
                    pad = -(at + 4) % 64
                    info.extra = b"FB" + struct.pack("<H", pad) + b"Z" * pad
                    info.compress_type = compression
                    z.writestr(info, data)

    mixed = {t: tensor(t, 2, 3) for t in TYPES}
    mixed |= {"empty": tensor("f32", 0, 3), "scalar": tensor("f64"), "five": tensor("f16", 1, 2, 1, 3, 1)}
    torch.save(mixed, f"{out}/mixed.pth")
    m = net()
    optimizer = torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9)
    m(torch.ones(2, 2)).sum().backward()
    optimizer.step()
    w = tensor("f32", 2, 3)
    save("good-state", m.state_dict())
    save("good-wrapped", {"state_dict": m.state_dict(), "epoch": 3, "best": 0.5, "arch": "net", "optimizer": optimizer.state_dict()})
    save("good-model", {"model": m.state_dict(), "done": True, "note": None, "big": -(1 << 40)})
    save("good-parameter", {"w": nn.Parameter(w)})
    save("good-views", {"whole": w, "row": w[1], "again": w})
    save("good-protocol4", m.state_dict(), pickle_protocol=4)
    save("good-empty", {})
    save("bad-transposed", {"w": w.T})
    save("bad-module", nn.Linear(2, 3))
    save("bad-bool", {"mask": torch.ones(3, dtype=torch.bool)})
    save("bad-list", [w])
    save("bad-number", {"w": w, "epoch": 3})
    save("bad-key", {7: w})
    save("bad-rank", {"w": torch.ones(1, 1, 1, 1, 1, 1)})
    save("bad-call", {"w": w, "x": Call()})
    pack("good-hand", state(("w", rebuilt())))
    pack("bad-deflated", state(("w", rebuilt())), zipfile.ZIP_DEFLATED)
    pack("bad-offset", state(("w", rebuilt(offset=1))))
    pack("bad-negative", state(("w", rebuilt(offset=-1))))
    pack("bad-shape", state(("w", rebuilt(shape=(-2, 3)))))
    pack("bad-overflow", state(("w", rebuilt(shape=(1 << 30, 1 << 30, 1 << 30), stride=(1, 1, 1)))))
    pack("bad-count", state(("w", rebuilt(count=7))))
    pack("bad-missing", state(("w", rebuilt(key="1"))))
    pack("bad-twice", state(("w", rebuilt()), ("w", rebuilt())))
    pack("bad-order", state(("w", rebuilt())), byteorder=b"big")
    pack("bad-name", state(("w\0x", rebuilt())))
    pack("bad-memo", b"\x80\x02j\xff\xff\xff\x7f.")
    pack("bad-put", b"\x80\x02}r\xff\xff\xff\x7f.")
    pack("bad-stack", b"\x80\x02}(s.")
    pack("bad-opcode", b"\x80\x02(dI1\n.")
    pack("bad-self", b"\x80\x02}q\0X\1\0\0\0wh\0s.")
    pack("bad-tuple", b"\x80\x02X\x05\0\0\0posixX\x06\0\0\0system\x93X\x04\0\0\0true\x85R.")
    with open(f"{corpus}/torch-good-state", "rb") as f:
        whole = f.read()
    with open(f"{corpus}/torch-bad-cut", "wb") as f:
        f.write(whole[:-40])


main(*sys.argv[1:])
