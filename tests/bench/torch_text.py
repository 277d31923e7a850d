#!/usr/bin/env python3
"""PyTorch's side of the rows on texts: the models of configs/imdb_*.cfg and of encoder.cfg on the reviews of a folder pos/, neg/.

Usage: torch_text.py lstm|transformer|encoder|bag DIR [--precision fp32|bf16] [--packed] [--steps N] [--epochs N] [--threads N]

Reads, splits into words and numbers as many texts as it needs before the first step. lstm, transformer, encoder: batches of 64 texts, at
most 256 words, shuffled, then sorted by length in groups of 50 batches and padded to their longest; prints a line a step. --packed:
pack_padded_sequence instead of a mask. bf16 by torch.autocast. bag: words and pairs hashed into 2^20 rows, batches of 16, sparse SGD;
prints a line an epoch with the accuracy on the fifth held out."""
import argparse
import json
import pathlib
import random
import re
from collections import Counter

import torch
import torch.nn as nn
import torch.nn.functional as F

WORD = re.compile(r"\w+|[^\w\s]")
LONGEST, BATCH = 256, 64


class Lstm(nn.Module):
    def __init__(self, vocabulary, packed):
        super().__init__()
        self.packed = packed
        self.word = nn.Embedding(vocabulary, 64, padding_idx=0)
        self.lstm = nn.LSTM(64, 64, bidirectional=True, batch_first=True)
        self.fc = nn.Linear(128, 2)

    def forward(self, tokens, lengths, mask):
        x = F.dropout(self.word(tokens), 0.3)
        if self.packed:
            x = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
            x = nn.utils.rnn.pad_packed_sequence(self.lstm(x)[0], batch_first=True)[0]
        else:
            x = self.lstm(x)[0]
        x = x.masked_fill(~mask[:, :, None], -torch.inf).max(1)[0]
        return self.fc(F.dropout(x, 0.3))


class Transformer(nn.Module):
    """configs/imdb_transformer.cfg, or encoder.cfg of this folder."""

    def __init__(self, vocabulary, features=64, hidden=128, blocks=1):
        super().__init__()
        self.word = nn.Embedding(vocabulary, features, padding_idx=0)
        self.pos = nn.Embedding(LONGEST, features)
        block = nn.TransformerEncoderLayer(features, 4, hidden, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
        block.dropout2 = nn.Dropout(0.2)
        self.blocks = nn.TransformerEncoder(block, blocks, enable_nested_tensor=False)
        self.fc = nn.Linear(features, 2)

    def forward(self, tokens, _, mask):
        x = F.dropout(self.word(tokens) + self.pos.weight[: tokens.shape[1]], 0.2)
        x = self.blocks(x, src_key_padding_mask=~mask)
        x = (x * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True)
        return self.fc(F.dropout(x, 0.3))


def texts(root, most=None):
    """Lists of words, and their classes, of at most so many texts."""
    files = [(f, label) for label, name in enumerate(("neg", "pos")) for f in sorted((pathlib.Path(root) / name).glob("*.txt"))]
    random.Random(1).shuffle(files)
    files = files[:most]
    return [WORD.findall(f.read_text().lower()) for f, _ in files], [label for _, label in files]


def numbers(words, least, most):
    count = Counter(w for t in words for w in t)
    index = {w: i + 2 for i, (w, n) in enumerate(count.most_common(most - 2)) if n >= least}
    return [[index.get(w, 1) for w in t] for t in words], len(index) + 2


def sequences(a):
    words, labels = texts(a.dir, (a.steps + 50) * BATCH)
    ids, vocabulary = numbers([t[:LONGEST] for t in words], 5, 20000)
    model = Lstm(vocabulary, a.packed) if a.model == "lstm" else Transformer(vocabulary, *((128, 512, 2) if a.model == "encoder" else ()))
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01, fused=True)
    step = 0
    while step < a.steps:
        order = list(range(len(ids)))
        random.shuffle(order)
        batches = []
        for i in range(0, len(order), 50 * BATCH):
            group = sorted(order[i : i + 50 * BATCH], key=lambda s: len(ids[s]))
            batches += [group[j : j + BATCH] for j in range(0, len(group), BATCH)]
        random.shuffle(batches)
        for batch in batches[: a.steps - step]:
            tokens = nn.utils.rnn.pad_sequence([torch.tensor(ids[s]) for s in batch], batch_first=True)
            lengths = torch.tensor([len(ids[s]) for s in batch])
            mask = torch.arange(tokens.shape[1]) < lengths[:, None]
            with torch.autocast("cpu", torch.bfloat16, enabled=a.precision == "bf16"):
                loss = F.cross_entropy(model(tokens, lengths, mask).float(), torch.tensor([labels[s] for s in batch]))
            opt.zero_grad(set_to_none=True)
            loss.backward()
            if a.model == "lstm":
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            step += 1
            print(json.dumps({"event": "train", "step": step, "loss": loss.item(), "tokens": tokens.shape[1]}), flush=True)


def bag(a):
    rows = 1 << 20
    words, labels = texts(a.dir)
    ids, vocabulary = numbers([t[:1024] for t in words], 2, 100000)
    ids = [torch.tensor(t + [vocabulary + hash(p) % rows for p in zip(t, t[1:])]) for t in ids]
    labels = torch.tensor(labels)
    table, fc = nn.EmbeddingBag(vocabulary + rows, 16, sparse=True), nn.Linear(16, 2)
    nn.init.normal_(table.weight, std=0.05)
    opt = torch.optim.SGD([*table.parameters(), *fc.parameters()], lr=4.0)
    held = len(ids) // 5
    steps = a.epochs * -(-(len(ids) - held) // 16)
    schedule = torch.optim.lr_scheduler.LambdaLR(opt, lambda i: 1 - i / steps)

    def scores(batch):
        first = torch.tensor([0] + [len(ids[s]) for s in batch[:-1]]).cumsum(0)
        return fc(table(torch.cat([ids[s] for s in batch]), first))

    for epoch in range(a.epochs):
        order = held + torch.randperm(len(ids) - held)
        for i in range(0, len(order), 16):
            batch = order[i : i + 16].tolist()
            loss = F.cross_entropy(scores(batch), labels[batch])
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            schedule.step()
        with torch.no_grad():
            test = [list(range(i, min(i + 16, held))) for i in range(0, held, 16)]
            right = sum((scores(batch).argmax(1) == labels[batch]).sum().item() for batch in test)
        print(json.dumps({"event": "train", "epoch": epoch + 1, "accuracy": right / held}), flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("model", choices=["lstm", "transformer", "encoder", "bag"])
    p.add_argument("dir")
    p.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    p.add_argument("--packed", action="store_true")
    p.add_argument("--steps", type=int, default=60)
    p.add_argument("--epochs", type=int, default=5)
    p.add_argument("--threads", type=int, default=2)
    a = p.parse_args()
    torch.set_num_threads(a.threads)
    (bag if a.model == "bag" else sequences)(a)


if __name__ == "__main__":
    main()
