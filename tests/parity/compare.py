#!/usr/bin/env python3
"""Compares one gtrain run with PyTorch's (a golden of make_parity.py). Standard library only.

Usage: compare.py NAME GOLDEN METRICS_JSONL [MODEL_SAFETENSORS]      prints `ok`/`not ok parity NAME…` and one `# parity NAME: …` line

What is asked. The golden has the losses of PyTorch's own float32 and float64 runs; they tell how far this very training amplifies
rounding. As long as those two have kept within 1e-5 of each other, every loss of gtrain is within 1e-4 (relative) of PyTorch's float32.
After that (units flip their sign, and nobody's float32 can promise anything about a single batch against anybody else's) the mean of the
losses is held: within max(1e-3, 10 * what PyTorch's own two runs differ by in that mean). Weights: sum and norm of a
tensor relative to its scale, and the loss on the test split, within max(1e-4, 10 * the same between PyTorch's own two runs); its 16
sampled elements within max(1e-3, …), for a unit of a ReLU net whose sign flipped once moves its own weights by about that much."""
import array
import json
import math
import struct
import sys


def golden(path):
    loss, weights, evals = {}, {}, {}
    for line in open(path, encoding="ascii"):
        f = line.split()
        if f[0] == "loss":
            loss[int(f[1])] = (float(f[2]), float(f[3]))
        elif f[0] == "at" and f[2] == "weight":
            samples = [(int(k), float(v)) for k, v in (p.split(":") for p in f[8:])]
            weights.setdefault(int(f[1]), {})[f[3]] = (int(f[4]), float(f[5]), float(f[6]), float(f[7]), samples)
        elif f[0] == "at" and f[2] == "eval":
            evals[int(f[1])] = tuple(float(v) for v in f[3:6])
    return loss, weights, evals


def safetensors(path):
    raw = open(path, "rb").read()
    (n,) = struct.unpack_from("<Q", raw)
    head = json.loads(raw[8:8 + n])
    out = {}
    for name, t in head.items():
        if name != "__metadata__":
            code = {"F32": "f", "I64": "q", "F64": "d"}[t["dtype"]]
            begin, end = t["data_offsets"]
            out[name] = array.array(code, raw[8 + n + begin:8 + n + end])
    return out


def fail(name, text):
    print(f"not ok parity {name}: {text}")
    sys.exit(1)


def check_weights(name, want, model):
    worst, where = 0.0, ""
    if set(want) != set(model):
        fail(name, f"weights: {sorted(set(want) ^ set(model))} are not in both state dicts")
    for key, (count, total, norm, apart, samples) in want.items():
        w = model[key]
        if len(w) != count:
            fail(name, f"{key} has {len(w)} elements, PyTorch's {count}")
        scale = max(max(abs(v) for _, v in samples), norm / math.sqrt(count)) or 1.0
        one = max(abs(w[k] - v) for k, v in samples) / scale
        whole = max(abs(math.sqrt(math.fsum(v * v for v in w)) - norm) / (norm or 1.0),
                    abs(math.fsum(w) - total) / (norm * math.sqrt(count) or 1.0))
        for d, floor, what in ((one, 1e-3, "samples"), (whole, 1e-4, "sum or norm")):
            if not d <= max(floor, 10 * apart):
                fail(name, f"weight {key}: {what} differ by {d:.2e} of its scale, allowed {max(floor, 10 * apart):.2e}")
            if d > worst:
                worst, where = d, key
    return worst, where


def main(name, path, metrics, model=None):
    loss, weights, evals = golden(path)
    got, ev = {}, {}
    for line in open(metrics, encoding="utf-8"):
        e = json.loads(line)
        if e["event"] == "train":
            got[e["step"]] = e["loss"]
        if e["event"] == "eval" and e["split"] == "test":
            ev[e["step"]] = (e["loss"], e["acc"])
    last = max(got, default=0)
    if not last or sorted(got) != list(range(1, last + 1)):
        fail(name, f"metrics.jsonl has {len(got)} train lines, the last of step {last}")
    worst, where, calm = 0.0, 0, 0
    for step in range(1, last + 1):
        single, double = loss[step]
        if abs(single - double) > 1e-5 * abs(double):
            break
        calm = step
        d = abs(got[step] - single) / abs(single) if got[step] is not None else math.inf
        if not d <= 1e-4:
            fail(name, f"step {step}: loss {got[step]}, PyTorch has {single}: a relative difference of {d:.2e}")
        if d >= worst:
            worst, where = d, step
    text = f"worst relative loss difference {worst:.2e} (step {where}) in {calm} of {last} steps"
    if calm < last:
        after = range(calm + 1, last + 1)
        if any(got[s] is None for s in after):
            fail(name, "a loss is not finite")
        mean = lambda f: math.fsum(f(s) for s in after) / len(after)
        single, double, ours = mean(lambda s: loss[s][0]), mean(lambda s: loss[s][1]), mean(got.get)
        d, own = abs(ours - single) / single, abs(single - double) / double
        if not d <= max(1e-3, 10 * own):
            fail(name, f"the mean loss of steps {calm + 1} to {last} is {ours}, PyTorch has {single}, in float64 {double}")
        text += f", then PyTorch's own rounding shows: mean loss {d:.2e}, f32 against f64 in PyTorch {own:.2e}"
    print(f"ok parity {name} losses")
    if model:
        if last not in weights:
            fail(name, f"the golden has no weights after step {last}")
        d, key = check_weights(name, weights[last], safetensors(model))
        text += f", worst weight difference {d:.2e} ({key})"
        print(f"ok parity {name} weights")
    if last in ev and last in evals:
        l, a, moved = evals[last]
        d = abs(ev[last][0] - l) / l
        # An accuracy moves by the samples at a decision boundary: a few of the thousands, or as the loss moves.
        if not d <= max(1e-4, 10 * moved) or not abs(ev[last][1] - a) <= max(1e-3, 10 * moved):
            fail(name, f"test loss {ev[last][0]:.6g}, accuracy {ev[last][1]:.4f}; PyTorch has {l:.6g}, {a:.4f}")
        text += f", test loss {d:.2e}, accuracy {ev[last][1]:.4f} against {a:.4f}"
        print(f"ok parity {name} evaluation")
    print(f"# parity {name}: {text}")


if __name__ == "__main__":
    main(*sys.argv[1:])
