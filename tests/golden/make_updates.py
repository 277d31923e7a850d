#!/usr/bin/env python3
"""Prints the table of tests/ops/test_cpu_update.c: what torch.optim's single-tensor code leaves after five steps.
p0[i] = ((37 i) mod 101 - 50) / 64, g[t][i] = ((53 i + 29 t) mod 127 - 63) / 32, i < 64, t = 0..4; every eighth element is printed."""
import functools

import torch

from timm_lamb import Lamb, timm_version

torch.set_num_threads(1)
N, STEPS = 64, 5
p0 = torch.tensor([(37 * i % 101 - 50) / 64 for i in range(N)])
grads = [torch.tensor([((53 * i + 29 * t) % 127 - 63) / 32 for i in range(N)]) for t in range(STEPS)]


class Lion(torch.optim.Optimizer):
    """Algorithm 2 of Chen et al. 2023, "Symbolic Discovery of Optimization Algorithms", which PyTorch does not have."""

    def __init__(self, params, lr, betas=(0.9, 0.99), weight_decay=0.0, foreach=False):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            (b1, b2), lr, wd = group["betas"], group["lr"], group["weight_decay"]
            for w in group["params"]:
                m = self.state[w].setdefault("exp_avg", torch.zeros_like(w))
                c = b1 * m + (1 - b1) * w.grad
                w -= lr * (c.sign() + wd * w)
                m.mul_(b2).add_(w.grad, alpha=1 - b2)


SGD, ADAM, ADAMW, RMS = torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop
NADAM, RADAM, ADAGRAD = torch.optim.NAdam, torch.optim.RAdam, torch.optim.Adagrad
LAMB = functools.partial(Lamb, max_grad_norm=None)
RUNS = [
    (SGD, dict(lr=0.1)),
    (SGD, dict(lr=0.1, momentum=0.9, weight_decay=5e-4)),
    (SGD, dict(lr=0.05, momentum=0.9, dampening=0.3)),
    (SGD, dict(lr=0.05, momentum=0.9, nesterov=True, weight_decay=1e-3)),
    (ADAM, dict(lr=1e-3)),
    (ADAM, dict(lr=1e-3, weight_decay=1e-2, betas=(0.8, 0.95), eps=1e-6)),
    (ADAM, dict(lr=1e-2, betas=(0.3, 0.9))),
    (ADAMW, dict(lr=1e-3, weight_decay=1e-2)),
    (RMS, dict(lr=1e-2)),
    (RMS, dict(lr=1e-2, alpha=0.9, momentum=0.9, weight_decay=1e-3)),
    (RMS, dict(lr=1e-2, centered=True)),
    (RMS, dict(lr=1e-2, centered=True, momentum=0.5)),
    (Lion, dict(lr=1e-2)),
    (Lion, dict(lr=1e-2, weight_decay=0.1, betas=(0.5, 0.8))),
    (ADAM, dict(lr=1e-2, amsgrad=True, betas=(0.8, 0.5), weight_decay=1e-2)),
    (ADAMW, dict(lr=1e-2, amsgrad=True)),
    (NADAM, dict(lr=1e-2)),
    (NADAM, dict(lr=1e-2, betas=(0.6, 0.9), eps=1e-6, weight_decay=1e-2, momentum_decay=0.1)),
    (NADAM, dict(lr=1e-2, weight_decay=1e-1, decoupled_weight_decay=True)),
    (RADAM, dict(lr=1e-2)),
    (RADAM, dict(lr=1e-2, betas=(0.8, 0.97), eps=1e-6, weight_decay=1e-2)),
    (RADAM, dict(lr=1e-2, weight_decay=1e-1, decoupled_weight_decay=True)),
    (ADAGRAD, dict(lr=1e-2)),
    (ADAGRAD, dict(lr=1e-1, lr_decay=0.1, initial_accumulator_value=0.5, weight_decay=1e-2, eps=1e-6)),
    (LAMB, dict(lr=1e-2)),
    (LAMB, dict(lr=1e-1, weight_decay=0.1, betas=(0.8, 0.95), eps=1e-3, trust_clip=True)),
    (LAMB, dict(lr=1e-2, weight_decay=0.0, always_adapt=True)),
    (LAMB, dict(lr=1e-2, weight_decay=0.0)),
]
print(f"/* PyTorch {torch.__version__}, timm {timm_version}, CPU */")
for make, args in RUNS:
    p = torch.nn.Parameter(p0.clone())
    o = make([p], foreach=False, **args)
    for g in grads:
        p.grad = g.clone()
        o.step()
    print("\t\t{" + ", ".join(float(v).hex().replace("0000000p", "p") + "f" for v in p.detach()[::8]) + "}, /* %s %s */" %
          (getattr(make, "__name__", "Lamb"), args))
