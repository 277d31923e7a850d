#!/usr/bin/env python3
"""PyTorch's side of the rows on several ranks: the MLP of torch_mlp.py under DistributedDataParallel on gloo, one thread a rank.

Usage: torch_ddp.py tuned|tutorial [--ranks N] [--batch N] [--epochs N]      batch: of all ranks

tuned     everything in memory as float32; each rank takes its part of every batch by index_select
tutorial  as PyTorch's DDP tutorial: mp.spawn, DistributedSampler with set_epoch, a DataLoader without workers, a loss.item() every 100
batches Prints `{"event": "train", "step": …}` on rank 0 after the first step and after every epoch."""
import argparse
import json
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel

import torch_mlp


def said(step):
    print(json.dumps({"event": "train", "step": step}), flush=True)


def train(rank, args):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(args.port))
    dist.init_process_group("gloo", rank=rank, world_size=args.ranks)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    net = DistributedDataParallel(net)
    opt = torch.optim.SGD(net.parameters(), lr=1e-3)
    lossf = nn.CrossEntropyLoss()
    own, step = args.batch // args.ranks, 0
    if args.what == "tutorial":
        data = torch_mlp.tutorial_set()
        sampler = torch.utils.data.DistributedSampler(data)
        loader = torch.utils.data.DataLoader(data, batch_size=own, sampler=sampler)
    else:
        x = torch.from_numpy(torch_mlp.images().astype("float32")).div_(255)
        y = torch.from_numpy(torch_mlp.labels().astype("int64"))

    def batches(epoch):
        if args.what == "tutorial":
            sampler.set_epoch(epoch)
            yield from loader
            return
        g = torch.Generator().manual_seed(epoch)
        order = torch.randperm(len(y), generator=g)
        for i in range(0, len(y), args.batch):
            part = order[i + rank : i + args.batch : args.ranks]
            yield x.index_select(0, part), y.index_select(0, part)

    for epoch in range(args.epochs):
        for i, (bx, by) in enumerate(batches(epoch)):
            loss = lossf(net(bx), by)
            loss.backward()
            opt.step()
            opt.zero_grad()
            step += 1
            if args.what == "tutorial" and i % 100 == 0:
                loss.item()
            if step == 1 and rank == 0:
                said(step)
        if rank == 0:
            said(step)
    dist.destroy_process_group()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("what", choices=["tuned", "tutorial"])
    p.add_argument("--ranks", type=int, default=2)
    p.add_argument("--batch", type=int, default=32)
    p.add_argument("--epochs", type=int, default=2)
    p.add_argument("--port", type=int, default=29511)
    a = p.parse_args()
    mp.spawn(train, (a,), nprocs=a.ranks)
