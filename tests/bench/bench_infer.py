#!/usr/bin/env python3
"""bench_infer.py CKPT [CKPT ...]: the model of each checkpoint in gtrain and in ONNX Runtime, by the processor time of one thread.

`gtrain export` writes the same net for ONNX Runtime. Both get the same inputs; build/tests/bench/bench_infer runs gtrain's plan, and the
outputs are compared. Rounds are interleaved: each program runs for SECONDS, then the other. Prints the medians over the rounds of the
median time of a batch, and the times by which gtrain is faster. Needs a Python with numpy, onnxruntime.
Environment: BUILD (build), ROUNDS (3), SECONDS (1), BATCHES ("1 64")."""
import os, statistics, subprocess, sys, tempfile, time

os.environ["OMP_NUM_THREADS"] = "1"
import numpy as np
import onnxruntime as ort

build = os.environ.get("BUILD", "build")
rounds, seconds = int(os.environ.get("ROUNDS", 3)), float(os.environ.get("SECONDS", 1))
batches = [int(b) for b in os.environ.get("BATCHES", "1 64").split()]


def make_inputs(session, batch, vocabulary):
    rng = np.random.default_rng(1)
    inputs = {}
    width = next((i.shape[1] for i in session.get_inputs() if i.type == "tensor(int64)" and len(i.shape) == 2), 1)
    for i in session.get_inputs():
        shape = [batch] + i.shape[1:]
        if i.type == "tensor(float)":
            inputs[i.name] = rng.standard_normal(shape).astype(np.float32)
        elif len(shape) == 1:  # lengths of sequences
            inputs[i.name] = np.full(shape, width, np.int64)
        else:
            inputs[i.name] = rng.integers(1, vocabulary, shape)
    return inputs


def theirs(session, inputs):
    times, start = [], time.process_time()
    while len(times) < 3 or time.process_time() - start < seconds:
        t = time.process_time()
        out = session.run(None, inputs)[0]
        times.append(1e3 * (time.process_time() - t))
    return statistics.median(times), out


def main():
    print("| model | batch | gtrain, ms | ONNX Runtime %s, ms | times | difference |" % ort.__version__)
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as tmp:
        for ckpt in sys.argv[1:]:
            net = os.path.join(tmp, "net.onnx")
            subprocess.run([build + "/bin/gtrain", "export", ckpt, "-o", net, "-q"], check=True)
            options = ort.SessionOptions()
            options.intra_op_num_threads = options.inter_op_num_threads = 1
            session = ort.InferenceSession(net, options, providers=["CPUExecutionProvider"])
            for batch in batches:
                inputs = make_inputs(session, batch, 1000)
                source, result = os.path.join(tmp, "in"), os.path.join(tmp, "out")
                with open(source, "wb") as f:
                    for v in inputs.values():
                        f.write(v.astype(np.int32 if v.dtype == np.int64 else np.float32).tobytes())
                a, b = [], []
                session.run(None, inputs)
                for _ in range(rounds):
                    run = [build + "/tests/bench/bench_infer", ckpt, str(batch), str(seconds), source, result]
                    a.append(float(subprocess.run(run, check=True, capture_output=True, text=True).stdout.split()[0]))
                    t, out = theirs(session, inputs)
                    b.append(t)
                own = np.fromfile(result, np.float32).reshape(out.shape)
                x, y = statistics.median(a), statistics.median(b)
                difference = np.abs(own - out).max() / np.sqrt((out.astype(float) ** 2).mean())
                name = os.path.basename(ckpt.rstrip("/"))
                print("| %s | %d | %.3f | %.3f | %.2f | %.1e |" % (name, batch, x, y, y / x, difference), flush=True)


main()
