#!/usr/bin/env python3
"""gtrain and PyTorch on one GPU, alternating, medians; one table (run by bench.sh). Standard library only: PyTorch lives in bench_torch.py.

Usage: bench.py --gtrain BIN --src DIR [--device cuda] [--torch PYTHON] [--budget S] [--rounds N] [--only WORD] [--tiny] [--title TEXT]
--out FILE

Work is done in the order of its weight, and what the budget has no room for is named as cut. gtrain's figures are of its own process, from
the times at which its lines of metrics arrive; PyTorch's of a process that stays (bench_torch.py says what it does and leaves out)."""
import argparse
import json
import os
import select
import statistics
import subprocess
import sys
import tempfile
import time

START = time.monotonic()


class Torch:
    """bench_torch.py. ask() gives its answer, or {"error": …} where it did not come in time: then the process is started afresh."""

    def __init__(self, a, data):
        self.a, self.data, self.p = a, data, None

    def start(self):
        here = os.path.dirname(os.path.abspath(__file__))
        cmd = [self.a.torch, os.path.join(here, "bench_torch.py"), "--device", self.a.device]
        cmd += ["--tiny"] if self.a.tiny else []
        cmd += ["--data", self.data] if self.data else []
        self.err = tempfile.TemporaryFile()
        self.p = subprocess.Popen(cmd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.err,
                                  env=dict(os.environ, OPENBLAS_CORETYPE=""))
        return self.read(120)

    def read(self, limit):
        end, line = time.monotonic() + limit, b""
        while not line.endswith(b"\n"):
            ready, _, _ = select.select([self.p.stdout], [], [], max(0, end - time.monotonic()))
            got = os.read(self.p.stdout.fileno(), 65536) if ready else b""
            if not got:
                self.p.kill()
                self.p.wait()
                self.p = None
                self.err.seek(0)
                words = self.err.read().decode(errors="replace").strip().splitlines()
                return {"error": (words[-1] if words else "PyTorch's process ended") if ready else f"not ready after {limit:.0f} s"}
            line += got
        return json.loads(line)

    def ask(self, limit, **q):
        if not self.a.torch:
            return {"error": "no PyTorch"}
        if not self.p:
            a = self.start()
            if "error" in a:
                return a
        self.p.stdin.write((json.dumps(q) + "\n").encode())
        self.p.stdin.flush()
        return self.read(limit)

    def stop(self):
        if self.p:
            self.p.stdin.close()
            self.p.wait()


class Bench:
    def __init__(self, a):
        self.a, self.rows, self.notes, self.cut, self.measured = a, [], [], [], 0
        self.resnet_cfg, self.resnet_name = ("resnet20_cifar", "ResNet-20") if a.tiny else ("resnet18_cifar", "ResNet-18")
        self.tmp = tempfile.TemporaryDirectory()
        self.data = next((d for d in (os.path.join(os.environ.get("GTRAIN_DATA", "-"), "fashion-mnist"),
                                      "/usr/share/datasets/fashion-mnist")
                          if os.path.isdir(d)), "")
        self.torch = Torch(a, self.data)
        self.ceiling = {}

    def left(self):
        return self.a.budget - (time.monotonic() - START)

    def room(self, what, seconds):
        if self.a.only not in what:
            return False
        if self.left() < seconds and not self.a.tiny:
            self.cut.append(f"{what}: {self.left():.0f} s of the budget were left")
            return False
        return True

    # ---- gtrain -------------------------------------------------------------------------------------------------------------------
    def config(self, name):
        return os.path.join(self.a.src, "configs", name + ".cfg")

    def gtrain(self, cfg, sets, limit=90, env=None):
        """A run: {"first": s, "span": median s between lines, "loss", "acc", …} or {"error"}. env: variables to set."""
        out = os.path.join(self.tmp.name, "run")
        subprocess.run(["rm", "-rf", out], check=True)
        base = ["checkpoint.every_epochs=0", "checkpoint.best.metric=", *sets]
        cmd = [self.a.gtrain, "run", self.config(cfg), "--json", "--no-progress", "--device", self.a.device, "-o", out]
        for s in base:
            cmd += ["-s", s]
        t0 = time.monotonic()
        with tempfile.TemporaryFile() as err:
            p = subprocess.Popen(cmd, stdout=subprocess.PIPE, stderr=err, text=True, env=dict(os.environ, **(env or {})))
            times, loss, acc = [], [], None
            try:
                for line in p.stdout:
                    now = time.monotonic() - t0
                    e = json.loads(line) if line.startswith("{") else {}
                    if e.get("event") == "train":
                        times.append(now)
                        loss.append(e["loss"])
                    elif e.get("event") == "eval":
                        acc = e["acc"]
                    if now > limit:
                        break
            finally:
                if p.poll() is None and time.monotonic() - t0 > limit:
                    p.kill()
                p.wait()
            err.seek(0)
            words = err.read().decode(errors="replace").strip().splitlines()
        if p.returncode != 0 or not times:
            return {"error": words[-1] if words else f"status {p.returncode}"}
        gaps = [b - a for a, b in zip(times, times[1:])]
        return {"first": times[0], "span": statistics.median(gaps[1:] or gaps or [0]), "lines": len(times), "loss": loss, "acc": acc,
                "wall": time.monotonic() - t0}

    def json(self, *cmd):
        p = subprocess.run([self.a.gtrain, *cmd, "--json"], capture_output=True, text=True)
        if p.returncode != 0:
            return {"error": (p.stderr.strip().splitlines() or [f"status {p.returncode}"])[-1]}
        return json.loads(p.stdout)

    # ---- one row: gtrain and its opponents, alternating ---------------------------------------------------------------------------
    def row(self, title, cfg, sets, images, spans, opponents, steps, flops=None, unit="", net="", precision="fp32", goal=None):
        """spans: steps between two lines of gtrain. opponents: {label: mode}. images: a step. Figures are seconds a step."""
        ready = {}
        for label, mode in opponents.items():
            limit = min(150, self.left() - 45)
            if limit < 10 and not self.a.tiny:
                self.cut.append(f"{title}: PyTorch {label}: {self.left():.0f} s of the budget were left")
                continue
            a = self.torch.ask(max(limit, 60 if self.a.tiny else 0), do="prepare", name=label, net=net, mode=mode, precision=precision,
                               batch=images)
            if "error" in a:
                self.cut.append(f"{title}: PyTorch {label}: {a['error']}")
                if not self.torch.p:  # it was started afresh: the others of this row are gone
                    for other in ready:
                        self.torch.ask(60, do="prepare", name=other, net=net, mode=opponents[other], precision=precision, batch=images)
            else:
                ready[label] = []
                if a["seconds"] > 30:
                    self.notes.append(f"{title}: PyTorch {label} was ready to train after {a['seconds']:.0f} s.")
        ours, why, loss = [], "", None
        for _ in range(self.a.rounds):
            if self.left() < 15 and ours and not self.a.tiny:
                break
            r = self.gtrain(cfg, sets)
            if "error" in r:
                why = r["error"]
            else:
                ours.append(r["span"] / spans)
                loss = r["loss"]
            for label in ready:
                m = self.torch.ask(60, do="measure", name=label, steps=steps, times=2 if self.a.tiny else 5)
                if "seconds" in m:
                    ready[label].append(m["seconds"])
                else:
                    self.cut.append(f"{title}: PyTorch {label}: {m['error']}")
        for label in ready:
            self.torch.ask(60, do="forget", name=label)
        if loss and not all(v is not None and v == v and abs(v) < 1e6 for v in loss):
            why, ours = "a loss is not finite", []
        mine = statistics.median(ours) if ours else None
        self.measured += mine is not None
        theirs = {k: statistics.median(v) for k, v in ready.items() if v}
        best = min(theirs.values(), default=None)
        cells = ", ".join(f"{k} {self.amount(v, images, unit)}" for k, v in sorted(theirs.items(), key=lambda kv: kv[1])) or "-"
        share = ""
        if mine and flops and self.ceiling.get(precision):
            share = f"{100 * flops * images / mine / self.ceiling[precision]:.0f} %"
        self.rows.append([title, self.amount(mine, images, unit) if mine else why or "-", cells,
                          f"{best / mine:.2f}" if mine and best else "-", share,
                          "" if self.a.tiny else self.verdict(mine, best, images, unit, goal)])
        self.say(" | ".join(self.rows[-1]))

    @staticmethod
    def amount(s, images, unit):
        return f"{s * 1e3 * unit:.1f} ms" if unit else f"{images / s:,.0f}/s"

    @staticmethod
    def verdict(mine, best, images, unit, goal):
        if not goal:
            return ""
        if not mine:
            return "not measured"
        out = []
        for kind, value in goal:
            if kind == "ms":
                out.append(f"<= {value} ms: {'yes' if mine * 1e3 * unit <= value else 'no'}")
            elif kind == "rate":
                out.append(f">= {value:,}/s: {'yes' if images / mine >= value else 'no'}")
            else:
                out.append(f">= {value}x: {'not measured' if not best else 'yes' if best / mine >= value else 'no'}")
        return ", ".join(out)

    def say(self, text):
        print(f"[{time.monotonic() - START:4.0f} s] {text}", file=sys.stderr, flush=True)

    # ---- the benchmarks -------------------------------------------------------------------------------------------------------------
    def ceilings(self):
        if not self.room("ceilings", 30):
            return
        a = self.torch.ask(60, do="ceilings")
        if "error" in a:
            self.cut.append(f"ceilings: {a['error']}")
            return
        self.ceiling = a
        self.notes.append("Measured ceilings: " + ", ".join(f"{k} product {v / 1e12:.1f} TFLOP/s" for k, v in a.items() if k != "copy") +
                          f", copy on the device {a['copy'] / 1e12:.2f} TB/s (read and written).")

    def start(self):
        if not self.room("start", 20):
            return
        took = []
        for _ in range(3 if self.a.tiny else 11):
            t = time.monotonic()
            subprocess.run([self.a.gtrain, "check", self.config("tutorial_mlp_sgd"), *self.mlp_sets()], stdout=subprocess.DEVNULL,
                           check=False)
            took.append(time.monotonic() - t)
        self.notes.append(f"gtrain check: {1e3 * statistics.median(took):.1f} ms (goal 50).")
        for name, cfg, sets in (("the MLP", "tutorial_mlp_sgd", self.mlp_sets(False)),
                                (self.resnet_name, self.resnet_cfg, self.images(128) + ["precision=bf16"])):
            first = []
            for _ in range(1 if self.a.tiny else 3):
                r = self.gtrain(cfg, ["train.steps=1", "log.every_steps=1", "train.eval_every_epochs=0", *sets])
                if "error" in r:
                    self.cut.append(f"start of {name}: {r['error']}")
                    break
                first.append(r["first"])
            if first:
                self.notes.append(f"exec to the first trained step of {name}: " + ", ".join(f"{v:.2f}" for v in first) +
                                  " s (the first run chooses its convolution engines, later ones read the choice).")
            if self.a.tiny:
                break

    def mlp_sets(self, options=True):
        sets = [] if self.data else ["data.name=synthetic", "data.classes=10", "data.samples=60000", "data.samples_test=10000"]
        if self.a.tiny:
            sets = ["data.name=synthetic", "data.classes=10", "data.samples=96", "data.samples_test=32"]
        return [x for s in sets for x in ("-s", s)] if options else sets

    def images(self, batch):
        n = 2 * batch if self.a.tiny else 20480
        return ["data.name=synthetic", "data.classes=10", f"data.samples={n}", f"data.samples_test={16 if self.a.tiny else 512}",
                f"data.batch={batch}"]

    def mlp(self):
        if not self.room("mlp", 60):
            return
        t = self.a.tiny
        sets = [*self.mlp_sets(False), "train.optimizer.momentum=0.9", f"train.epochs={4 if t else 40}",
                f"log.every_steps={3 if t else 1875}",
                "train.eval_every_epochs=0"]
        opponents = {"eager": "eager"} if t else {"eager": "eager", "graph of the step": "graph", "graph of 25 steps": "graph25",
                                                  "compile reduce-overhead": "reduce",
                                                 "compile max-autotune": "compile"}
        self.row("MLP-32, 784-512-512-10, fp32: an epoch", "tutorial_mlp_sgd", sets, 32, 3 if t else 1875, opponents, 3 if t else 1875,
                 net="mlp", unit=1875, goal=(("ms", 25), ("times", 4)), flops=self.flops("tutorial_mlp_sgd", self.mlp_sets()))
        if t:
            self.notes.append("Accuracy gate: not asked in a dry run.")
            return
        # The gate: three epochs with a rate that learns. Both train in fp32 with other seeds: a test accuracy of 10,000 images has a
        # deviation of 0.3 %, between seeds of 0.5 %: 2 % is four of both.
        r = self.gtrain("tutorial_mlp_sgd", [*self.mlp_sets(False), "train.optimizer.momentum=0.9", "train.optimizer.lr=0.05",
                                             "train.epochs=3", "log.every_steps=1875"])
        a = self.torch.ask(120, do="accuracy", batch=32, lr=0.05, epochs=3)
        if "error" in r or r["acc"] is None:
            self.notes.append(f"Accuracy gate: FAILED: gtrain: {r.get('error', 'no evaluation')}.")
        elif not self.data:
            self.notes.append(f"Accuracy gate: on made-up images gtrain's accuracy after three epochs is {r['acc']:.4f}: "
                              f"{'passed' if r['acc'] > 0.5 else 'FAILED'} (chance: 0.1).")
        elif "error" in a:
            self.notes.append(f"Accuracy gate: gtrain {r['acc']:.4f} after three epochs of FashionMNIST: "
                              f"{'passed' if r['acc'] > 0.84 else 'FAILED'} (0.84; no PyTorch: {a['error']}).")
        else:
            self.notes.append(f"Accuracy gate: after three epochs of FashionMNIST gtrain {r['acc']:.4f}, PyTorch {a['accuracy']:.4f}: "
                              f"{'passed' if r['acc'] > a['accuracy'] - 0.02 else 'FAILED'}.")

    def overlap(self):
        """Kernels that may come before the last one's end (kernels/cuda/device.cuh): the same run without and with, alternating."""
        t = self.a.tiny
        for title, cfg, sets, spans in (
                ("MLP-32, fp32", "tutorial_mlp_sgd", [*self.mlp_sets(False), f"train.epochs={4 if t else 20}",
                                                      f"log.every_steps={3 if t else 1875}"], 3 if t else 1875),
                (f"{self.resnet_name}, batch 128, bf16", self.resnet_cfg, [*self.images(8 if t else 128), "precision=bf16",
                    f"train.steps={3 if t else 1120}", f"log.every_steps={1 if t else 160}"],
                 1 if t else 160)):
            if not self.room(f"overlap of {title}", 20):
                continue
            took, why = {"0": [], "1": []}, ""
            for _ in range(self.a.rounds):
                for said in took:
                    r = self.gtrain(cfg, [*sets, "train.eval_every_epochs=0"], env={"GTRAIN_CUDA_PDL": said})
                    if "error" in r:
                        why = r["error"]
                    else:
                        took[said].append(r["span"] / spans)
            if why or not all(took.values()):
                self.cut.append(f"overlap of {title}: {why or 'no figures'}")
                continue
            a, b = (1e6 * statistics.median(v) for v in took.values())
            self.notes.append(f"{title}: {a:.1f} us a step, {b:.1f} with GTRAIN_CUDA_PDL=1 ({a / b:.3f} times as fast).")

    def flops(self, cfg, options):
        return self.json("check", self.config(cfg), *options).get("flops_train")

    def resnet(self, batches, precisions, opponents, least):
        t = self.a.tiny
        flops = self.flops(self.resnet_cfg, [x for s in self.images(8) for x in ("-s", s)])
        goals = {128: (("times", 1.8),), 512: (("times", 1.5),), 1024: (("times", 1.35), ("rate", 90000))}
        for precision in precisions:
            for batch in batches:
                title = f"{self.resnet_name}, batch {batch}, {precision}"
                if not self.room(f"resnet {title}", least):
                    continue
                span = 1 if t else 20480 // batch
                sets = [*self.images(batch), f"precision={precision}", f"train.steps={3 if t else 7 * span}", f"log.every_steps={span}",
                        "train.eval_every_epochs=0"]
                self.row(title, self.resnet_cfg, sets, batch, span, opponents, max(1, span // 2), net="resnet18", precision=precision,
                         goal=goals.get(batch) if precision in ("bf16", "fp16") else None, flops=flops)

    def airbench(self):
        if not os.path.exists(self.config("cifar10_airbench94")) or not self.room("airbench", 45):
            return
        batch = 8 if self.a.tiny else 2000
        n = 2 * batch if self.a.tiny else 50000
        sets = ["data.name=synthetic", "data.classes=10", f"data.samples={n}", f"data.samples_test={16 if self.a.tiny else 1000}",
                f"data.batch={batch}",
                "log.every_steps=1" if self.a.tiny else "log.every_steps=25"]
        opponents = {"eager": "eager"} if self.a.tiny else {"eager": "eager", "graph of the step": "graph",
                                                            "compile max-autotune": "compile"}
        options = [x for s in sets for x in ("-s", s)]
        self.row("airbench94's net and recipe, made-up images, bf16; PyTorch with SGD for Muon", "cifar10_airbench94", sets, batch,
                 1 if self.a.tiny else 25, opponents,
                 1 if self.a.tiny else 50, net="airbench", precision="bf16", flops=self.flops("cifar10_airbench94", options))

    def profile(self):
        batch = 8 if self.a.tiny else 512
        for title, cfg, sets in ((f"{self.resnet_name}, batch {batch}, bf16", self.resnet_cfg, self.images(batch) + ["precision=bf16"]),
                                 ("MLP-32, fp32", "tutorial_mlp_sgd", self.mlp_sets(False))):
            if not self.room(f"profile of {title}", 20):
                continue
            b = self.json("bench", self.config(cfg), "--device", self.a.device, "--steps", "2" if self.a.tiny else "50",
                          *[x for s in sets for x in ("-s", s)])
            if "error" in b:
                self.cut.append(f"profile of {title}: {b['error']}")
                continue
            k = sorted(b["kernels"], key=lambda r: -r["ms"])
            lines = [f"Slowest kernels of {title}, timed one by one ({b['step_ms']:.3f} ms a step, {len(k)} kernels):", "",
                     "| layer | operation | implementation | ms | share | TFLOP/s |", "|---|---|---|---|---|---|"]
            for r in k[:12]:
                lines.append(f"| {r['layer']} | {r['op']} | {r['impl']} | {r['ms']:.4f} | "
                             f"{100 * r['share']:.1f} % | {r['gflops'] / 1e3:.1f} |")
            self.notes.append("\n".join(["", *lines, ""]))

    def table(self):
        v = self.versions
        lines = ["", f"## {time.strftime('%Y-%m-%d', time.gmtime())} {self.a.title}", "",
                 f"PyTorch {v.get('torch', 'none')} (CUDA {v.get('cuda', '?')}, "
                 f"cuDNN {v.get('cudnn', '?')}) on {v.get('card', self.a.device)}; "
                 f"{self.a.rounds} rounds, alternating, medians.", ""]
        if self.rows:
            lines += ["| work | gtrain | PyTorch, fastest first | times the fastest | of the measured peak | goal |",
                      "|---|---|---|---|---|---|"]
            lines += ["| " + " | ".join(r) + " |" for r in self.rows] + [""]
        lines += self.notes
        lines += ["", "Cut or refused:" if self.cut else "Nothing was cut.", *[f"- {c}" for c in self.cut], "",
                  f"{time.monotonic() - START:.0f} s in all."]
        return "\n".join(lines) + "\n"

    def run(self):
        t = self.a.tiny
        strong = {"eager": "eager"} if t else {"eager": "eager", "graph of the step": "graph", "compile max-autotune": "compile"}
        self.versions = self.torch.ask(120, do="versions")
        try:
            self.ceilings()
            self.start()
            self.mlp()
            self.resnet([8] if t else [1024, 512, 128], ["bf16"], strong, 30)
            self.profile()
            self.overlap()
            self.airbench()
            if not t:
                self.resnet([512, 1024, 128], ["fp16", "tf32", "fp32"], {"graph of the step": "graph"}, 25)
        finally:
            text = self.table()
            self.torch.stop()
            print(text)
            if self.a.out != "-":
                with open(self.a.out, "a", encoding="utf-8") as f:
                    f.write(text)
        bad = [n for n in self.notes if "FAILED" in n]
        return 1 if bad or not self.measured else 0


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--gtrain", required=True)
    p.add_argument("--src", required=True)
    p.add_argument("--device", default="cuda")
    p.add_argument("--torch", default="")
    p.add_argument("--budget", type=float, default=460)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--only", default="")
    p.add_argument("--title", default="")
    p.add_argument("--tiny", action="store_true")
    p.add_argument("--out", required=True)
    sys.exit(Bench(p.parse_args()).run())


if __name__ == "__main__":
    main()
