#!/usr/bin/env python3
"""Writes OUT_DIR/NAME.txt: what PyTorch's DistributedDataParallel does on gloo in the trainings of tests/par/ddp/NAME.cfg.

Usage: make_ddp.py OUT_DIR [-s STEPS] [NAME...]      (PyTorch, CPU, one thread a rank)

DistributedSampler, DistributedDataParallel, no_sync, ZeroRedundancyOptimizer, models and optimizers are PyTorch's own code, each rank a
process, 32 samples a rank and step. 1,001 samples do not divide by the ranks nor by the batch: the sampler repeats some, and an epoch's
last batch is short. Every run is made in float32 and in float64; the format is that of tests/parity/make_parity.py, whose models these are.
A loss is the mean of the ranks' losses of that step; weights and running statistics are rank 0's."""
import os
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data.distributed import DistributedSampler

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "parity"))
from make_parity import FM, SEED, apart, cnn, evaluate, fashion, mlp, sampled  # noqa: E402

SGD, ADAMW = torch.optim.SGD, torch.optim.AdamW
RUNS = {
    "ddp_mlp": dict(world=2, model=mlp, opt=lambda p: SGD(p, lr=1e-3, momentum=0.9, weight_decay=5e-4)),
    "ddp_mlp_adamw": dict(world=3, model=lambda: mlp(nn.GELU, 256), opt=lambda p: ADAMW(p, lr=1e-3, weight_decay=0.05)),
    "ddp_accumulate": dict(world=2, model=lambda: mlp(nn.GELU, 256), parts=2, opt=lambda p: SGD(p, lr=0.01, momentum=0.9, nesterov=True)),
    "ddp_compress": dict(world=2, model=lambda: mlp(nn.GELU, 256), compress=True, opt=lambda p: SGD(p, lr=0.01, momentum=0.9)),
    "ddp_cnn": dict(world=2, model=lambda: cnn(nn.SiLU, nn.AvgPool2d), opt=lambda p: SGD(p, lr=0.01, momentum=0.9, weight_decay=5e-4)),
    "zero_mlp": dict(world=2, model=lambda: mlp(nn.GELU, 256), opt=lambda p: ZeroRedundancyOptimizer(p, ADAMW, lr=1e-3, weight_decay=0.05)),
}
STEPS, BATCH, LIMIT = 100, 32, 1001


def rank_main(rank, name, steps, rendezvous, out):
    run = RUNS[name]
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=run["world"])
    torch.manual_seed(SEED)
    init = run["model"]().state_dict()
    result = []
    for dtype in (torch.float32, torch.float64):
        result.append(train(run, rank, init, dtype, steps))
    if rank == 0:
        torch.save(result, out)
    dist.destroy_process_group()


def compress_hook(errors, bucket):
    """bf16_compress_hook of torch.distributed.algorithms.ddp_comm_hooks with error feedback: what the conversion to bf16 rounds away is
    added to the next gradient. gloo of some versions does not sum bf16, so the sum is made here: in float32, rounded once."""
    world = dist.get_world_size()
    for p, g in zip(bucket.parameters(), bucket.gradients()):
        g += errors.get(p, 0)
        sent = g.to(torch.bfloat16)
        errors[p] = g - sent.to(g.dtype)
        parts = [torch.empty_like(g) for _ in range(world)]
        dist.all_gather(parts, sent.div_(world).to(g.dtype))
        g.copy_(sum(q.float() for q in parts).to(torch.bfloat16))
    done = torch.futures.Future()
    done.set_result(bucket.buffer())
    return done


def train(run, rank, init, dtype, steps):
    x, y, xt, yt = fashion(LIMIT)
    mean, std = FM

    def scale(b):
        return (b.to(dtype) / 255 - torch.tensor(mean, dtype=dtype)[:, None, None]) / torch.tensor(std, dtype=dtype)[:, None, None]

    model = run["model"]()
    model.load_state_dict(init)
    model = DistributedDataParallel(model.to(dtype))
    if run.get("compress"):
        model.register_comm_hook({}, compress_hook)
    opt = run["opt"](model.parameters())
    sampler = DistributedSampler(range(len(x)), num_replicas=run["world"], rank=rank, shuffle=True, seed=SEED)
    losses, epoch, parts = [], 0, run.get("parts", 1)
    while len(losses) < steps:
        sampler.set_epoch(epoch)
        order = torch.tensor(list(sampler))
        for i in order.split(BATCH)[:steps - len(losses)]:
            opt.zero_grad()
            model.train()
            micro, total = i.split(BATCH // parts), torch.zeros((), dtype=torch.float64)
            for k, j in enumerate(micro):
                model.require_backward_grad_sync = k == len(micro) - 1  # what no_sync() sets
                loss = F.cross_entropy(model(scale(x[j])), y[j], reduction="sum") / len(i)
                loss.backward()
                total += loss.detach()
            opt.step()
            dist.all_reduce(total)
            losses.append(total.item() / run["world"])
        epoch += 1
    state = {k: v.detach().clone() for k, v in model.module.state_dict().items()}
    return losses, state, evaluate(model.module, scale, xt, yt, 0.0, lambda m, b: m(b))


def main(folder, steps, names):
    os.makedirs(folder, exist_ok=True)
    for name in names or RUNS:
        world = RUNS[name]["world"]
        with tempfile.TemporaryDirectory() as d:
            mp.spawn(rank_main, (name, steps, os.path.join(d, "rendezvous"), os.path.join(d, "out")), world)
            (single, w, ev), (double, w64, ev64) = torch.load(os.path.join(d, "out"))
        gap = [abs(a - b) / abs(b) for a, b in zip(single, double)]
        with open(os.path.join(folder, name + ".txt"), "w", encoding="ascii") as f:
            f.write(f"# {name}: PyTorch {torch.__version__}, CPU, gloo, {world} ranks of 1 thread, seed {SEED}, {steps} steps\n")
            f.write(f"# PyTorch's own float32 and float64 runs part by a relative loss difference of at most {max(gap):.2e}\n")
            for i, v in enumerate(single):
                f.write(f"loss {i + 1} {v:.9g} {double[i]:.9g}\n")
            for key, t in w.items():
                v = t.double().reshape(-1)
                f.write(f"at {steps} weight {key} {len(v)} {v.sum().item():.9g} {v.norm().item():.9g} {apart(t, w64[key]):.2e} "
                        + " ".join(f"{k}:{v[k].item():.9g}" for k in sampled(len(v))) + "\n")
            f.write(f"at {steps} eval {ev[0]:.9g} {ev[1]:.9g} {abs(ev[0] - ev64[0]) / ev64[0]:.2e}\n")
        print(f"{name}: {world} ranks, loss {single[0]:.4f} -> {single[-1]:.4f}, float32 against float64 {max(gap):.1e}", flush=True)


if __name__ == "__main__":
    args = sys.argv[1:]
    n = STEPS
    if "-s" in args:
        at = args.index("-s")
        n = int(args[at + 1])
        del args[at:at + 2]
    main(args[0], n, args[1:])
