#!/usr/bin/env python3
"""Compares the outputs of an exported model in ONNX Runtime with those of gtrain.

Usage: onnx_outputs.py MODEL.onnx FOLDER NAME

FOLDER has the inputs and the output of tool_outputs as .npy files. Checks the file with onnx.checker (full_check: with inferred shapes),
and that a batch of all samples twice gives the same rows. Prints "ok NAME" or "not ok NAME: why", and the largest difference."""
import os
import sys

import numpy as np
import onnx
import onnxruntime

TOLERANCE = 1e-5  # of the largest output, or of 1 if all are smaller: both compute in f32, in other orders


def main(path, folder, name):
    onnx.checker.check_model(path, full_check=True)
    model = onnx.load(path)
    assert model.opset_import[0].version >= 17 and not model.opset_import[0].domain, model.opset_import
    for value in [*model.graph.input, *model.graph.output]:
        assert value.type.tensor_type.shape.dim[0].dim_param == "batch", value
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    inputs = {i.name: np.load(os.path.join(folder, i.name + ".npy")) for i in session.get_inputs()}
    want = np.load(os.path.join(folder, "output.npy"))
    got = session.run(None, inputs)[0]
    assert got.shape == want.shape and got.dtype == want.dtype, (got.shape, want.shape)
    assert np.isfinite(got).all(), "an output is not finite"
    scale = max(1.0, float(np.abs(want).max()))
    worst = float(np.abs(got.astype(np.float64) - want).max())
    twice = session.run(None, {k: np.concatenate([v, v]) for k, v in inputs.items()})[0]
    other = float(np.abs(twice.astype(np.float64) - np.concatenate([want, want])).max())
    print(f"# {name}: largest difference {worst:.2e}, of outputs up to {np.abs(want).max():.3g}")
    if worst > TOLERANCE * scale:
        return f"the outputs differ by {worst:.3g}, the largest is {scale:.3g}"
    if other > TOLERANCE * scale:
        return f"all samples twice differ by {other:.3g}"
    return None


if __name__ == "__main__":
    try:
        why = main(*sys.argv[1:])
    except Exception as e:  # pylint: disable=broad-except
        why = " ".join(str(e).split())[:400]
    print(f"not ok {sys.argv[3]}: {why}" if why else f"ok {sys.argv[3]}")
