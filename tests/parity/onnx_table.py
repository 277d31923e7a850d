#!/usr/bin/env python3
"""Compares the probabilities of `gtrain predict` for rows of a table, with missing and unknown cells, with those of an exported model in
ONNX Runtime that includes the normalisation (--preprocess). The codes of words come from the metadata of the model alone.

Usage: onnx_table.py GTRAIN WORK_DIR"""
import csv
import json
import math
import os
import random
import subprocess
import sys

import numpy as np
import onnxruntime

CONFIG = """schema = 1; name = "table"; device = "cpu";
data = { format = "csv"; train = ["train.csv"]; test = ["test.csv"]; target = "kind"; batch = 16; };
model = { inputs = ( { name = "values"; }, { name = "codes"; } ); layers = (
  { name = "words"; type = "embeddings"; in = "codes"; }, { name = "all"; type = "concat"; in = ["values", "words"]; },
  { name = "fc1"; type = "linear"; out = 16; }, { type = "relu"; }, { name = "fc2"; type = "linear"; out = 3; } ); };
train = { epochs = 3; optimizer = { type = "adam"; lr = 0.01; }; };
checkpoint = { dir = "unused"; };
"""
TOLERANCE = 1e-5  # probabilities of two f32 computations


def make_rows(n, rng, unknown):
    for _ in range(n):
        size = rng.gauss(300, 50)
        yield {"size": "" if rng.random() < 0.2 else f"{size:.3f}", "weight": f"{rng.gauss(-2, 0.1):.4f}",
               "colour": "" if rng.random() < 0.1 else rng.choice(["red", "green", "blue"] + ["violet"] * unknown),
               "kind": "abc"[min(2, max(0, int((size - 250) / 40)))]}


def run(*args, cwd):
    return subprocess.run(args, cwd=cwd, check=True, stdout=subprocess.PIPE, text=True).stdout


def main(gtrain, work):
    rng = random.Random(1)
    for name, n in ("train", 400), ("test", 60):
        with open(os.path.join(work, name + ".csv"), "w") as f:
            rows = list(make_rows(n, rng, name == "test"))
            out = csv.DictWriter(f, rows[0])
            out.writeheader()
            out.writerows(rows)
    with open(os.path.join(work, "table.cfg"), "w") as f:
        f.write(CONFIG)
    run(gtrain, "run", "table.cfg", "-q", "--no-progress", "-o", "run", cwd=work)
    run(gtrain, "export", "run", "-o", "table.onnx", "--preprocess", "-q", cwd=work)
    told = [json.loads(line) for line in run(gtrain, "predict", "run", "test.csv", "--json", "--top", "3", cwd=work).splitlines()]

    session = onnxruntime.InferenceSession(os.path.join(work, "table.onnx"), providers=["CPUExecutionProvider"])
    meta = session.get_modelmeta().custom_metadata_map
    classes = json.loads(meta["classes"])
    columns = {c["name"]: c for c in json.loads(meta["data"])["table"]["columns"]}
    numbers = [c for c in columns if columns[c]["type"] == "continuous"]
    words = [c for c in columns if columns[c]["type"] == "categorical"]

    def code(column, cell):
        known = columns[column]["words"]
        return 0 if not cell else known.index(cell) + 2 if cell in known else 1

    values = np.array([[float(r[c]) if r[c] else math.nan for c in numbers] for r in rows], np.float32)
    codes = np.array([[code(c, r[c]) for c in words] for r in rows], np.int64)
    y = session.run(None, {"values": values, "codes": codes})[0].astype(np.float64)
    p = np.exp(y - y.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    assert np.isnan(values).any() and (codes == 0).any() and (codes == 1).any() and len(told) == len(rows) and len(classes) == 3
    worst = max(abs(p[i][classes.index(t["name"])] - t["probability"]) for i, line in enumerate(told) for t in line["top"])
    print(f"# table_preprocess: largest difference of {3 * len(rows)} probabilities {worst:.2e}")
    return f"probabilities differ by {worst:.3g}" if worst > TOLERANCE else None


if __name__ == "__main__":
    try:
        why = main(*sys.argv[1:])
    except Exception as e:  # pylint: disable=broad-except
        why = f"{type(e).__name__}: {' '.join(str(e).split())[:400]}"
    print(f"not ok table_preprocess: {why}" if why else "ok table_preprocess")
