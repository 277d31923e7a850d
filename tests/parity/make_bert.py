#!/usr/bin/env python3
"""Hugging Face's BERT for test_bert.sh.

make_bert.py weights FILE     writes a state dict of a small BertForSequenceClassification with random weights as safetensors. Python only
make_bert.py golden OUT       writes tests/golden/bert.txt with transformers and PyTorch: `sample I LOSS` of the training samples in the
                              order of epoch 0, and `step I LOSS` of a training with AdamW"""
import json
import random
import struct
import sys

WIDTH, HEADS, LAYERS, HIDDEN, WORDS, POSITIONS, CLASSES = 32, 4, 2, 64, 30, 20, 4
BATCH, STEPS, SAMPLES = 16, 40, 60


def tensors():
    """Name -> shape, in the order of the state dict."""
    def linear(name, out, into):
        return {name + ".weight": (out, into), name + ".bias": (out,)}

    def norm(name):
        return {name + ".weight": (WIDTH,), name + ".bias": (WIDTH,)}

    e = "bert.embeddings."
    all = {e + "word_embeddings.weight": (WORDS, WIDTH), e + "position_embeddings.weight": (POSITIONS, WIDTH),
           e + "token_type_embeddings.weight": (2, WIDTH), **norm(e + "LayerNorm")}
    for i in range(LAYERS):
        at = f"bert.encoder.layer.{i}."
        for part in ("query", "key", "value"):
            all.update(linear(f"{at}attention.self.{part}", WIDTH, WIDTH))
        all.update({**linear(at + "attention.output.dense", WIDTH, WIDTH), **norm(at + "attention.output.LayerNorm"),
                    **linear(at + "intermediate.dense", HIDDEN, WIDTH), **linear(at + "output.dense", WIDTH, HIDDEN),
                    **norm(at + "output.LayerNorm")})
    return {**all, **linear("bert.pooler.dense", WIDTH, WIDTH), **linear("classifier", CLASSES, WIDTH)}


def values():
    """Weights as far from their initial values as those of a trained model."""
    rng = random.Random(20261122)
    for name, shape in tensors().items():
        n = 1
        for d in shape:
            n *= d
        middle, spread = (1, 0.2) if name.endswith("LayerNorm.weight") else (0, 0.2 if len(shape) > 1 else 0.1)
        yield name, shape, struct.pack(f"<{n}f", *(rng.gauss(middle, spread) for _ in range(n)))


def weights(path):
    head, data = {}, b""
    for name, shape, raw in sorted(values()):
        head[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def golden(path):
    import torch
    import torch.nn.functional as F
    import transformers
    from torch.utils.data.distributed import DistributedSampler

    import sequence_models

    torch.set_num_threads(1)
    model = transformers.BertForSequenceClassification(transformers.BertConfig(
        vocab_size=WORDS, hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS, intermediate_size=HIDDEN,
        max_position_embeddings=POSITIONS, num_labels=CLASSES, hidden_dropout_prob=0, attention_probs_dropout_prob=0))
    state = {n: torch.frombuffer(bytearray(raw), dtype=torch.float32).reshape(shape) for n, shape, raw in values()}
    missing, unexpected = model.load_state_dict(state, strict=False)
    assert not unexpected and all("position_ids" in m for m in missing), (missing, unexpected)
    x, y, _, _ = sequence_models.data(0)
    order = torch.tensor(list(DistributedSampler(range(len(x)), num_replicas=1, rank=0, shuffle=True, seed=sequence_models.SEED)))

    def loss(i):
        b = x[i]
        return F.cross_entropy(model(input_ids=b.tokens, attention_mask=sequence_models.mask_of(b).long()).logits, y[i])

    model.train()
    with open(path, "w", encoding="ascii") as f:
        f.write(f"# transformers {transformers.__version__}, PyTorch {torch.__version__.split('+')[0]}, CPU, 1 thread\n")
        for i in range(SAMPLES):
            f.write(f"sample {i + 1} {loss(order[i:i + 1]).item():.9g}\n")
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
        for step in range(STEPS):
            optimizer.zero_grad()
            part = loss(order[step % 25 * BATCH:(step % 25 + 1) * BATCH]) if step < 25 else None
            if part is None:  # the second epoch has another order
                second = DistributedSampler(range(len(x)), num_replicas=1, rank=0, shuffle=True, seed=sequence_models.SEED)
                second.set_epoch(1)
                part = loss(torch.tensor(list(second))[(step - 25) * BATCH:(step - 24) * BATCH])
            part.backward()
            optimizer.step()
            f.write(f"step {step + 1} {part.item():.9g}\n")


if __name__ == "__main__":
    {"weights": weights, "golden": golden}[sys.argv[1]](sys.argv[2])
