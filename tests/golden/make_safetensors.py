#!/usr/bin/env python3
"""Golden safetensors files, written by the format's own library (needs torch and safetensors; the tests do not).

  make_safetensors.py DIR            writes mixed.safetensors and sizes.safetensors
  make_safetensors.py --check FILE   reads a file that gtrain wrote from the tensors of sizes.safetensors, and compares

Element i of a tensor holds i - 2 (of an unsigned one: i), so a test needs no second copy of the values.
"""
import sys

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

TYPES = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "i64": torch.int64, "i32": torch.int32,
         "u8": torch.uint8}


def tensor(dtype, *shape):
    n = 1
    for d in shape:
        n *= d
    start = 0 if dtype == "u8" else -2
    return torch.arange(start, start + n).to(TYPES[dtype]).reshape(shape)


def sizes():
    """One type of each size, so that the order of the file does not hang on how types of one size are ordered."""
    return {"fc.weight": tensor("f32", 3, 5), "fc.bias": tensor("f32", 3), "bn.num_batches_tracked": tensor("i64"),
            "half": tensor("bf16", 2, 1, 3), "bytes": tensor("u8", 7), "a/name with \"quotes\" und Grüße": tensor("f32", 1)}


def main():
    if sys.argv[1] == "--check":
        want, got = sizes(), load_file(sys.argv[2])
        assert sorted(want) == sorted(got), (sorted(want), sorted(got))
        for name, t in want.items():
            assert got[name].dtype == t.dtype and got[name].shape == t.shape and torch.equal(got[name], t), name
        with safe_open(sys.argv[2], "pt") as f:
            assert f.metadata() == {"format": "pt"}, f.metadata()
        return
    save_file(sizes(), sys.argv[1] + "/sizes.safetensors", metadata={"format": "pt"})
    mixed = {t: tensor(t, 2, 3) for t in TYPES}
    mixed |= {"empty": tensor("f32", 0, 3), "scalar": tensor("f64"), "five": tensor("f16", 1, 2, 1, 3, 1)}
    save_file(mixed, sys.argv[1] + "/mixed.safetensors", metadata={"format": "pt", "note": "\u00fc \"\\ \n\u0001"})


main()
