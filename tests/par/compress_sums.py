#!/usr/bin/env python3
"""Checks the sums of compressed gradients in a checkpoint of a run with momentum 1 and a learning rate near 0. Standard library only.

Usage: compress_sums.py formula|feedback|curve RUN STEPS EXACT

With momentum 1, momentum_buffer is the sum of all gradients that the optimizer has got. EXACT is a run of one step without compression, so
its momentum_buffer is the exact gradient G, which does not change from step to step.
feedback  Each rank has the same samples, so the sum of two equal bf16 numbers is exact, and the rounding errors of the ranks (residual.R.*)
          are all that is missing: momentum_buffer + residuals = STEPS * G. The tolerance is the rounding of STEPS additions in f32.
formula   One step; the ranks have different samples. The sum has at most 8 significant bits (bf16), and differs from G by the residuals and
          by its own rounding, half a unit in the last place.
curve     For two runs of any kind: the losses of all steps are within 1 % of each other. A gradient in bf16 differs by at most 0.4 %."""
import array
import json
import struct
import sys


def tensors(run):
    raw = open(run + "/latest/optimizer.safetensors", "rb").read()
    (n,) = struct.unpack_from("<Q", raw)
    out = {}
    for name, t in json.loads(raw[8:8 + n]).items():
        if name != "__metadata__":
            begin, end = t["data_offsets"]
            out[name] = array.array("f", raw[8 + n + begin:8 + n + end])
    return out


def losses(run):
    lines = [json.loads(s) for s in open(run + "/metrics.jsonl", encoding="utf-8")]
    return {m["step"]: m["loss"] for m in lines if m.get("event") == "train" and "loss" in m}


def residual_of(t, name, i):
    sums = [v[i] for k, v in t.items() if k.startswith("residual.") and k.split(".", 2)[2] == name]
    return sum(sums), len(sums)


if sys.argv[1] == "curve":
    a, b = losses(sys.argv[2]), losses(sys.argv[4])
    apart = max((abs(a[s] - b[s]) / b[s] for s in a if s in b), default=1)
    if len(a) != int(sys.argv[3]) or a.keys() != b.keys() or not 0 < apart < 0.01:
        sys.exit(f"{len(a)} and {len(b)} losses, apart by at most {apart:.1e}")
    print(f"{len(a)} losses, apart by at most {apart:.1e}")
    sys.exit()
what, run, steps, exact = sys.argv[1], tensors(sys.argv[2]), int(sys.argv[3]), tensors(sys.argv[4])
worst, missing, ranks, some = 0.0, 0.0, 0, 0
for key, grad in exact.items():
    name = key.split(".", 1)[1]
    scale = max(map(abs, grad)) or 1.0
    for i, g in enumerate(grad):
        total = run[key][i]
        left, ranks = residual_of(run, name, i)
        some += left != 0
        if what == "formula":
            if struct.unpack("<I", struct.pack("<f", total))[0] & 0xffff:
                sys.exit(f"{key}[{i}] = {total!r} has more bits than bf16")
            # half a unit in the last place is at most 2^-9 of the next power of two; G itself is rounded in f32
            worst = max(worst, abs(total + left - g) - abs(total) / 256 - 1e-6 * scale)
        else:
            worst = max(worst, abs(total + left - steps * g) / (steps * scale))
            missing = max(missing, abs(total - steps * g) / (steps * scale))
if not some or not ranks:
    sys.exit("all residuals are 0")
if worst > (0 if what == "formula" else steps * 2.0**-24):
    sys.exit(f"the sum of {steps} steps is off by {worst:.2e}")
print(f"{ranks} ranks, {steps} steps: the sum without residuals is off by {missing:.1e}, with them by {worst:.1e}")
