#!/usr/bin/env python3
"""PyTorch's side of bench-gpu: a process that stays, so that its measurements can alternate with gtrain's. Reads a JSON object a line
({"do": "prepare" | "measure" | "accuracy" | "ceilings" | "forget" | "versions", …}), answers each with one.

Usage: bench_torch.py [--device cuda|cpu] [--tiny] [--data DIR]        DIR: FashionMNIST's gz files; without: made-up images

Nets: mlp (configs/tutorial_mlp_sgd.cfg), resnet18 (configs/resnet18_cifar.cfg), airbench (the net of configs/cifar10_airbench94.cfg, with
SGD where that has Muon: less work). The strongest plain PyTorch that we know, and where in doubt less work than gtrain does:
  data     uint8 on the device, batches by index_select of a permutation on the device, normalised there; no augmentation (gtrain augments)
  model    channels_last; autocast for 16 bits with float32 masters; fp16 with a constant loss scale; optimizer with fused=True
  eager    as it is               compile   torch.compile(mode="max-autotune") around normalisation, model and loss
  reduce   torch.compile(mode="reduce-overhead")
  graph    the whole step, data and optimizer included, captured by hand in a CUDA graph; graph25: 25 steps in one graph
A measurement is the median of several stretches between synchronisations, in seconds a step."""
import argparse
import gzip
import json
import os
import statistics
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

PRECISIONS = {"fp32": None, "tf32": None, "bf16": torch.bfloat16, "fp16": torch.float16}


class Basic(nn.Module):
    def __init__(self, cin, ch, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, ch, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(ch)
        self.conv2 = nn.Conv2d(ch, ch, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(ch)
        self.downsample = nn.Sequential()
        if stride != 1 or cin != ch:
            self.downsample = nn.Sequential(nn.Conv2d(cin, ch, 1, stride, bias=False), nn.BatchNorm2d(ch))

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)), inplace=True)))
        return F.relu(y + self.downsample(x), inplace=True)


def resnet18():
    blocks, cin = [], 64
    for ch, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        blocks += [Basic(cin, ch, stride), Basic(ch, ch, 1)]
        cin = ch
    return nn.Sequential(nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), *blocks,
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


class Scale(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return x * self.factor


def airbench():
    layers, cin = [nn.Conv2d(3, 24, 2), nn.GELU()], 24
    for ch in (64, 256, 256):
        layers += [nn.Conv2d(cin, ch, 3, padding=1, bias=False), nn.MaxPool2d(2), nn.BatchNorm2d(ch), nn.GELU(),
                   nn.Conv2d(ch, ch, 3, padding=1, bias=False), nn.BatchNorm2d(ch), nn.GELU()]
        cin = ch
    return nn.Sequential(*layers, nn.MaxPool2d(3), nn.Flatten(), nn.Linear(256, 10, bias=False), Scale(1 / 256))


def mlp():
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))


NETS = {"mlp": (mlp, (1, 28, 28)), "resnet18": (resnet18, (3, 32, 32)), "airbench": (airbench, (3, 32, 32))}


class Job:
    """One net in one mode. run(n) makes n steps; the position in the permutation lives on the device."""

    def __init__(self, args, store, net, mode, precision, batch, lr=1e-3):
        make, _ = NETS[net]
        self.x, self.y = store[net]
        self.dev, self.cuda, self.batch = args.device, args.device == "cuda", batch
        self.dtype, self.tf32 = PRECISIONS[precision], precision == "tf32"
        self.set_tf32()
        torch.manual_seed(0)
        self.model = make().to(self.dev, memory_format=torch.channels_last if net != "mlp" else torch.preserve_format)
        self.scale = 1024.0 if precision == "fp16" else 1.0
        # With a loss scale the rate is divided instead of the gradients: plain SGD needs no more.
        self.opt = torch.optim.SGD(self.model.parameters(), lr=lr / self.scale, momentum=0.9, nesterov=net != "mlp",
                                   weight_decay=0 if net == "mlp" else 5e-4 * self.scale, fused=self.cuda)
        self.perm = torch.randperm(len(self.x), device=self.dev)
        self.lanes = torch.arange(batch, device=self.dev)
        self.pos = torch.zeros((), dtype=torch.long, device=self.dev)
        self.steps_a_graph = {"graph": 1, "graph25": 25}.get(mode, 0)
        self.loss = torch.zeros((), device=self.dev)
        self.forward = self.plain
        if mode in ("compile", "reduce"):
            self.forward = torch.compile(self.plain, mode="max-autotune" if mode == "compile" else "reduce-overhead")
        elif self.steps_a_graph and not self.cuda:
            raise RuntimeError("CUDA graphs need a GPU")
        if self.steps_a_graph:
            self.capture()
        self.run(2 if args.tiny else 25)
        self.sync()

    def set_tf32(self):
        torch.backends.cuda.matmul.allow_tf32 = self.tf32
        torch.backends.cudnn.allow_tf32 = self.tf32

    def plain(self, x, y):
        x = x.to(self.dtype or torch.float32).mul_(1 / 255)
        if x.shape[1] == 3:
            x = x.contiguous(memory_format=torch.channels_last)
        with torch.autocast(self.dev, self.dtype or torch.bfloat16, enabled=self.dtype is not None):
            out = self.model(x)
        return F.cross_entropy(out.float(), y) * self.scale

    def step(self):
        i = self.perm.index_select(0, (self.lanes + self.pos) % len(self.perm))
        self.pos += self.batch
        loss = self.forward(self.x.index_select(0, i), self.y.index_select(0, i))
        self.opt.zero_grad(set_to_none=True)
        loss.backward()
        self.opt.step()
        self.loss.copy_(loss.detach())

    def capture(self):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.step()
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        self.opt.zero_grad(set_to_none=True)
        with torch.cuda.graph(self.graph):
            for _ in range(self.steps_a_graph):
                self.step()

    def run(self, n):
        if self.steps_a_graph:
            for _ in range(-(-n // self.steps_a_graph)):
                self.graph.replay()
        else:
            for _ in range(n):
                self.step()

    def sync(self):
        if self.cuda:
            torch.cuda.synchronize()

    def seconds(self, n, times):
        self.set_tf32()
        if self.steps_a_graph:
            n = -(-n // self.steps_a_graph) * self.steps_a_graph
        self.run(max(1, n // 10))
        self.sync()
        out = []
        for _ in range(times):
            t = time.perf_counter()
            self.run(n)
            self.sync()
            out.append((time.perf_counter() - t) / n)
        return statistics.median(out), float(self.loss) / self.scale


def gz(path, offset):
    with gzip.open(path) as f:
        return torch.frombuffer(bytearray(f.read()[offset:]), dtype=torch.uint8)


class Server:
    def __init__(self, args):
        self.args, self.jobs, self.store = args, {}, {}
        torch.manual_seed(1)
        n = 256 if args.tiny else 60000
        if args.data:
            self.store["mlp"] = (gz(f"{args.data}/train-images-idx3-ubyte.gz", 16).view(-1, 1, 28, 28),
                                 gz(f"{args.data}/train-labels-idx1-ubyte.gz", 8))
        else:
            self.store["mlp"] = (torch.randint(0, 256, (n, 1, 28, 28), dtype=torch.uint8), torch.randint(0, 10, (n,)))
        n = 256 if args.tiny else 20480
        self.store["resnet18"] = (torch.randint(0, 256, (n, 3, 32, 32), dtype=torch.uint8), torch.randint(0, 10, (n,)))
        self.store["airbench"] = self.store["resnet18"]
        self.store = {k: (x.to(args.device), y.long().to(args.device)) for k, (x, y) in self.store.items()}

    def versions(self, _):
        out = {"torch": torch.__version__, "threads": torch.get_num_threads()}
        if self.args.device == "cuda":
            out |= {"cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version(), "card": torch.cuda.get_device_name(),
                    "nccl": ".".join(map(str, torch.cuda.nccl.version()))}
        return out

    def prepare(self, q):
        t = time.perf_counter()
        torch.backends.cudnn.benchmark = True
        self.jobs[q["name"]] = Job(self.args, self.store, q["net"], q["mode"], q["precision"], q["batch"])
        return {"seconds": time.perf_counter() - t}

    def measure(self, q):
        s, loss = self.jobs[q["name"]].seconds(q["steps"], q.get("times", 5))
        return {"seconds": s, "loss": loss}

    def forget(self, q):
        self.jobs.pop(q["name"], None)
        if not self.jobs and hasattr(torch, "_dynamo"):
            torch._dynamo.reset()  # else the next net is one more guarded variant of this one's code
        if self.args.device == "cuda":
            torch.cuda.empty_cache()
        return {}

    def accuracy(self, q):
        """The mlp trained on FashionMNIST, as gtrain is beside it; accuracy on the test images."""
        if not self.args.data:
            return {"error": "no FashionMNIST here"}
        mode = "graph" if self.args.device == "cuda" else "eager"
        job = Job(self.args, self.store, "mlp", mode, "fp32", q["batch"], lr=q["lr"])
        steps = len(job.x) // q["batch"]
        for _ in range(q["epochs"]):
            job.perm.copy_(torch.randperm(len(job.perm), device=self.args.device))
            job.pos.zero_()
            job.run(1 if self.args.tiny else steps)
        x = gz(f"{self.args.data}/t10k-images-idx3-ubyte.gz", 16).view(-1, 1, 28, 28).to(self.args.device)
        y = gz(f"{self.args.data}/t10k-labels-idx1-ubyte.gz", 8).to(self.args.device)
        with torch.no_grad():
            return {"accuracy": (job.model(x.float() / 255).argmax(1) == y).float().mean().item()}

    def ceilings(self, _):
        """What this card does at most, as far as PyTorch shows it: a matrix product on random numbers, a copy on the device."""
        n, dev, cuda = (256 if self.args.tiny else 8192), self.args.device, self.args.device == "cuda"
        out = {}

        def best(f, times):
            for _ in range(3):
                f()
            took = []
            for _ in range(times):
                if cuda:
                    torch.cuda.synchronize()
                t = time.perf_counter()
                f()
                if cuda:
                    torch.cuda.synchronize()
                took.append(time.perf_counter() - t)
            return statistics.median(took)

        for name, dtype, tf32 in (("fp32", torch.float32, False), ("tf32", torch.float32, True), ("bf16", torch.bfloat16, False),
                                  ("fp16", torch.float16, False)):
            if not cuda and name != "fp32":
                continue
            torch.backends.cuda.matmul.allow_tf32 = tf32
            a, b = torch.randn(n, n, device=dev).to(dtype), torch.randn(n, n, device=dev).to(dtype)
            c = torch.empty_like(a)
            out[name] = 2 * n**3 / best(lambda: torch.mm(a, b, out=c), 10)
        a = torch.empty((1 << 20) if self.args.tiny else (4 << 30), dtype=torch.uint8, device=dev)
        b = torch.empty_like(a)
        out["copy"] = 2 * a.numel() / best(lambda: b.copy_(a), 10)
        return out


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    p.add_argument("--tiny", action="store_true")
    p.add_argument("--data", default="")
    args = p.parse_args()
    answer = os.fdopen(os.dup(1), "w")  # what compilers say goes to stderr
    os.dup2(2, 1)
    try:
        server = Server(args)
    except Exception as e:
        print(json.dumps({"error": f"{type(e).__name__}: {e}"}), file=answer, flush=True)
        return
    print(json.dumps({"ready": True}), file=answer, flush=True)
    for line in sys.stdin:
        q = json.loads(line)
        try:
            a = getattr(server, q["do"])(q)
        except Exception as e:  # an opponent that cannot run is reported; the others continue
            a = {"error": f"{type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}"}
        print(json.dumps(a), file=answer, flush=True)


if __name__ == "__main__":
    main()
