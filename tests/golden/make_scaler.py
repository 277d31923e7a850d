#!/usr/bin/env python3
"""golden/scaler.txt: torch.amp.GradScaler's scale and growth tracker over made-up sequences of overflows, on the CPU (PyTorch 2.3 or
newer has it there). A line tells of one step: how many steps without an overflow came before it that only raised the tracker by one;
whether it overflowed; the inverse scale that unscale_ used; scale and tracker after update()."""
import random

import torch

CASES = [  # init, growth, backoff, interval, share of overflows, steps
    (65536.0, 2.0, 0.5, 2000, 0.001, 6100),
    (65536.0, 2.0, 0.5, 3, 0.2, 200),
    (1000.0, 1.7, 0.3, 4, 0.15, 200),
    (2.0**120, 2.0, 0.5, 1, 0.05, 60),  # grows to what f32 does not hold
    (1.0, 2.0, 0.5, 5, 0.9, 180),  # falls to subnormals and to zero
]

random.seed(7)
with open("scaler.txt", "w") as f:
    print(f"# made by make_scaler.py with torch {torch.__version__}", file=f)
    for init, growth, backoff, interval, share, steps in CASES:
        p = torch.zeros(1, requires_grad=True)
        opt = torch.optim.SGD([p], lr=0.0)
        scaler = torch.amp.GradScaler("cpu", init_scale=init, growth_factor=growth, backoff_factor=backoff, growth_interval=interval)
        scaler.scale(torch.zeros(1))
        print(f"case {init.hex()} {growth.hex()} {backoff.hex()} {interval} {steps}", file=f)
        quiet, before = 0, (scaler.get_scale(), 0)
        for i in range(steps):
            bad = random.random() < share
            inv = scaler._scale.double().reciprocal().float().item()
            p.grad = torch.full((1,), float("inf") if bad else 0.0)
            scaler.step(opt)
            scaler.update()
            after = (scaler._scale.item(), scaler._growth_tracker.item())
            if not bad and after == (before[0], before[1] + 1) and i < steps - 1:
                quiet, before = quiet + 1, after
                continue
            print(quiet, int(bad), inv.hex() if inv != float("inf") else "inf", after[0].hex(), after[1], file=f)
            quiet, before = 0, after
