#!/usr/bin/env python3
"""Times of gtrain's operations beside PyTorch's, in pairs: every case of tests/bench/ops.txt in fp32 and bf16, forward and backward, one
thread of processor time. Prints a table in Markdown and, at its end, the medians.

Usage: bench_ops.py [--build BUILD] [--isa avx2] [--rounds N] [--seconds S] [--python PYTHON] [--type f32|bf16]
       [--below X] [WORD ...]

Both programs (bench_cpu -s and torch_ops.py) hold a case ready, and one measures while the other waits: S seconds gtrain, S seconds
PyTorch, N rounds. A row has the medians of the rounds' times, and the median of the rounds' ratios. WORD selects cases by name.
--isa avx2: BUILD is a build for AVX2 only (make bench-ops ISA=avx2), and PyTorch and oneDNN are limited to AVX2 too.
--type: only one of the two types; PyTorch's bf16 convolutions without AVX-512 take seconds. --below X: prints only rows whose ratio is
below X."""
import argparse
import os
import statistics
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))


class Program:
    def __init__(self, name, command, env):
        self.name, self.case = name, ""
        self.p = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)

    def time(self, case, dtype, seconds):
        self.p.stdin.write(f"{case} {dtype} {seconds}\n")
        self.p.stdin.flush()
        line = self.p.stdout.readline()
        if not line:
            sys.exit(f"bench_ops: {self.name} ended at {case} {dtype}")
        return [float(v) for v in line.split()]


def environment(isa):
    env = dict(os.environ, OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", GTRAIN_SRC=os.path.join(here, "..", ".."))
    # PyTorch's allocations stay in the process, as with the allocators that its tuning guide names
    env.update(MALLOC_MMAP_THRESHOLD_="1073741824", MALLOC_TRIM_THRESHOLD_="4294967296", MALLOC_TOP_PAD_="67108864")
    if isa == "avx2":
        env.update(ONEDNN_MAX_CPU_ISA="AVX2", ATEN_CPU_CAPABILITY="avx2", MKL_ENABLE_INSTRUCTIONS="AVX2")
    return env


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--build", default="build")
    p.add_argument("--isa", choices=["native", "avx2"], default="native")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--seconds", type=float, default=0.1)
    p.add_argument("--python", default=os.environ.get("TORCH_PYTHON", "python3"))
    p.add_argument("--type", choices=["f32", "bf16"])
    p.add_argument("--below", type=float, default=float("inf"))
    p.add_argument("words", nargs="*")
    a = p.parse_args()
    env = environment(a.isa)
    ours = Program("gtrain", [os.path.join(a.build, "tests/bench/bench_cpu"), "-s"], env)
    torch = Program("PyTorch", [a.python, os.path.join(here, "torch_ops.py")], env)
    ratios = {"f32": {}, "bf16": {}}
    print("| case | type | gtrain forward, backward, us | PyTorch forward, backward, us | times as fast |\n|---|---|---|---|---|")
    for line in open(os.path.join(here, "ops.txt"), encoding="utf-8"):
        f = line.split("#")[0].split()
        if not f or (a.words and not any(w in f[0] for w in a.words)):
            continue
        for dtype in ["f32", "bf16"]:
            if (a.type or dtype) != dtype or (dtype == "bf16" and f[2].startswith("update:") and f[2] != "update:muon"):
                continue
            rounds = [(ours.time(f[0], dtype, a.seconds), torch.time(f[0], dtype, a.seconds)) for _ in range(a.rounds)]
            mid = [[statistics.median(r[side][part] for r in rounds) for part in (0, 1)] for side in (0, 1)]
            ratio = statistics.median(sum(r[1]) / sum(r[0]) for r in rounds)
            ratios[dtype][f[0]] = ratio
            if ratio < a.below:
                print("| %s | %s | %.4g, %.4g | %.4g, %.4g | %.2f |" % (f[0], dtype, *mid[0], *mid[1], ratio), flush=True)
    every = [r for d in ratios.values() for r in d.values()]
    for name, r in (("f32", list(ratios["f32"].values())), ("bf16", list(ratios["bf16"].values())), ("all", every)):
        if r:
            print(f"\n{name}: {len(r)} rows, median {statistics.median(r):.2f}, lowest {min(r):.2f}, below 1.0: {sum(v < 1 for v in r)}")


if __name__ == "__main__":
    main()
