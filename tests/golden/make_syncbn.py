#!/usr/bin/env python3
"""Writes tests/golden/syncbn.txt: batch normalisation over several ranks, for tests/ops/test_syncbn.c.

Usage: make_syncbn.py OUT      (made with PyTorch 1.13)

torch.nn.modules._functions.SyncBatchNorm, forward and backward, in one process a rank over gloo, in double. PyTorch has the
five kernels under it for GPUs only; they stand here as the formulas that they are documented with (batch_norm_stats and so on). The
results are held to torch.nn.functional.batch_norm of the whole batch.

Values: make_ops.uniform of "CASE/x", "CASE/dy" (all samples), "CASE/weight", "CASE/bias", "CASE/running_mean", "CASE/running_var".
A line: CASE WHAT VALUES…; y and dx of all samples, in order; gradients of the parameters summed over the ranks.
"""
import os
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch.nn.modules._functions import SyncBatchNorm

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from make_ops import f32, uniform

CASES = {  # name: shape, samples a rank, eps, momentum, affine
    "two": ((7, 5, 3, 2), (3, 4), 1e-5, 0.1, True),
    "idle": ((2, 4, 2, 2), (0, 1, 1), 1e-5, 0.1, True),
    "four": ((8, 3, 3, 3), (2, 0, 5, 1), 1e-3, 0.3, True),
    "flat": ((3, 6), (1, 2), 1e-2, 0.1, True),
    "plain": ((6, 17, 2, 1), (4, 2), 1e-5, 0.01, False),
    "five": ((5, 2, 1, 1), (1, 1, 1, 1, 1), 1e-1, 0.1, True),
}


def per_channel(v, x):
    return v.view([1, -1] + [1] * (x.dim() - 2))


def over(x):
    return [d for d in range(x.dim()) if d != 1]


def stats(x, eps):
    return x.mean(over(x)), (x.var(over(x), unbiased=False) + eps).rsqrt()


def gather_stats(x, mean, invstd, running_mean, running_var, momentum, eps, count):
    n = count.view(-1, 1)
    total = n.sum()
    all_mean = (mean * n).sum(0) / total
    m2 = ((invstd.pow(-2) - eps + (mean - all_mean) ** 2) * n).sum(0)
    running_mean.mul_(1 - momentum).add_(momentum * all_mean)
    running_var.mul_(1 - momentum).add_(momentum * m2 / (total - 1))
    return all_mean, (m2 / total + eps).rsqrt()


def elemt(x, weight, bias, mean, invstd, eps):
    y = (x - per_channel(mean, x)) * per_channel(invstd, x)
    return y if weight is None else y * per_channel(weight, x) + per_channel(bias, x)


def backward_reduce(dy, x, mean, invstd, weight, *wanted):
    s, d = dy.sum(over(x)), (dy * (x - per_channel(mean, x))).sum(over(x))
    return s, d, d * invstd, s


def backward_elemt(dy, x, mean, invstd, weight, s, d, count):
    n = count.sum()
    g = dy - per_channel(s / n, x) - (x - per_channel(mean, x)) * per_channel(invstd ** 2 * d / n, x)
    return g * per_channel(invstd if weight is None else invstd * weight, x)


def tensors(name):
    shape, shares, eps, momentum, affine = CASES[name]
    c = shape[1:2]
    t = {k: f32(uniform(f"{name}/{k}", shape)) for k in ("x", "dy")}
    t["weight"] = f32(1 + 0.5 * uniform(f"{name}/weight", c)) if affine else None
    t["bias"] = f32(uniform(f"{name}/bias", c)) if affine else None
    t["running_mean"] = f32(uniform(f"{name}/running_mean", c))
    t["running_var"] = f32(1 + 0.5 * uniform(f"{name}/running_var", c))
    return t


def rank_main(rank, name, folder):
    shape, shares, eps, momentum, affine = CASES[name]
    world = len(shares)
    dist.init_process_group("gloo", init_method=f"file://{folder}/{name}", rank=rank, world_size=world)
    torch.batch_norm_stats, torch.batch_norm_gather_stats_with_counts = stats, gather_stats
    torch.batch_norm_elemt, torch.batch_norm_backward_reduce = elemt, backward_reduce
    torch.batch_norm_backward_elemt = backward_elemt
    torch.cuda.is_current_stream_capturing = lambda: False
    t = tensors(name)
    x = t["x"].split(shares)[rank].clone().requires_grad_()
    params = [t[k].clone().requires_grad_() if affine else None for k in ("weight", "bias")]
    y = SyncBatchNorm.apply(x, *params, t["running_mean"], t["running_var"], eps, momentum, dist.group.WORLD, world)
    y.backward(t["dy"].split(shares)[rank])
    out = {"y": y.detach(), "dx": torch.zeros_like(x) if x.grad is None else x.grad, "running_mean": t["running_mean"],
           "running_var": t["running_var"]}
    for k, p in zip(("d.weight", "d.bias"), params):
        if affine:
            out[k] = torch.zeros(shape[1]).double() if p.grad is None else p.grad
    torch.save(out, f"{folder}/{name}.{rank}")
    dist.destroy_process_group()


def sync(name, folder):
    shape, shares, eps, momentum, affine = CASES[name]
    mp.spawn(rank_main, (name, folder), len(shares))
    ranks = [torch.load(f"{folder}/{name}.{r}") for r in range(len(shares))]
    for r in ranks:
        assert torch.equal(r["running_mean"], ranks[0]["running_mean"]) and torch.equal(r["running_var"], ranks[0]["running_var"])
    out = {k: torch.cat([r[k] for r in ranks]) if k in ("y", "dx") else ranks[0][k] if k.startswith("r") else sum(r[k] for r in ranks)
           for k in ranks[0]}
    t = tensors(name)
    x = t["x"].clone().requires_grad_()
    y = F.batch_norm(x, t["running_mean"], t["running_var"], t["weight"], t["bias"], True, momentum, eps)
    y.backward(t["dy"])
    for k, v in (("y", y), ("dx", x.grad), ("running_mean", t["running_mean"]), ("running_var", t["running_var"])):
        torch.testing.assert_close(out[k], v.detach(), rtol=1e-9, atol=1e-10)
    return out


def main():
    with tempfile.TemporaryDirectory() as folder, open(sys.argv[1], "w") as f:
        f.write("# made by make_syncbn.py\n")
        for name in CASES:
            for what, v in sync(name, folder).items():
                f.write(f"{name} {what} " + " ".join("%.17g" % u for u in v.contiguous().view(-1).tolist()) + "\n")


if __name__ == "__main__":
    main()
