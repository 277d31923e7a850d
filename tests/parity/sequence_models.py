"""Models of tokens, lengths and codes for make_parity.py, and gtrain's synthetic data for them (datasets/synthetic.c)."""
from collections import OrderedDict

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED, TRAIN, TEST, CLASSES, LONGEST = 42, 400, 200, 4, 12


# ---- data: the counter-based generator of engine/base/philox.h, on arrays
def philox(c, key):
    c = [np.asarray(v, np.uint64) for v in np.broadcast_arrays(*c)]
    k0, k1, low = np.uint64(key & 0xFFFFFFFF), np.uint64(key >> 32), np.uint64(0xFFFFFFFF)
    for _ in range(10):
        p0, p1 = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(p1 >> np.uint64(32)) ^ c[1] ^ k0, p1 & low, (p0 >> np.uint64(32)) ^ c[3] ^ k1, p0 & low]
        k0, k1 = (k0 + np.uint64(0x9E3779B9)) & low, (k1 + np.uint64(0xBB67AE85)) & low
    return c


def rng_key(stream):
    r = philox((SEED, 0, 5, stream), 0x696E2031 << 32 | 0x67747261)
    return int(r[1]) << 32 | int(r[0])


class Fields:
    """Tensors with a row for each sample, by name."""

    def __init__(self, **field):
        self.__dict__.update(field)

    def __len__(self):
        return len(next(iter(self.__dict__.values())))

    def __getitem__(self, i):
        return Fields(**{k: v[i] for k, v in self.__dict__.items()})

    def to(self, dtype):
        return Fields(**{k: v.to(dtype) if v.is_floating_point() else v for k, v in self.__dict__.items()})


def samples(split, n, vocabulary, classes):
    """The inputs "tokens" (shape = [12]) and "lengths", or "codes" (shape = [3]) and perhaps "values" (shape = [4]), with this
    vocabulary."""
    i = np.arange(n)
    labels = philox((split, i, 0, 1), rng_key(0))[0] % np.uint64(classes)
    key, j = rng_key(2), np.arange(LONGEST)
    lengths = 1 + philox((split, i, 0, 2), key)[0] % LONGEST
    own, of_class = philox((split, i[:, None], j, 0), key), philox((labels[:, None], j % 4, 0, 1), key)
    tokens = np.where(j < lengths[:, None], 1 + np.where(own[1] % 4, of_class[0], own[0]) % (vocabulary - 1), 0)
    j = np.arange(3)
    own, of_class = philox((split, i[:, None], j, 0), key), philox((labels[:, None], j, 0, 1), key)
    codes = np.where(own[1] % 4, of_class[0], own[0]) % vocabulary
    key, j = rng_key(3), np.arange(4)
    own, of_class = philox((split, i[:, None], j, 0), key), philox((labels[:, None], j, 0, 1), key)
    noise = np.trunc((sum((own[0] >> np.uint64(8 * k) & np.uint64(255)).astype(np.int64) for k in range(4)) - 510) / 4)
    uniform = (of_class[0] >> np.uint64(8)).astype(np.float32) * np.float32(2.0**-24)
    values = torch.from_numpy(np.float32(2) * uniform - np.float32(1) + noise.astype(np.float32) / np.float32(64))
    as_long = [torch.from_numpy(v.astype(np.int64)) for v in (tokens, lengths, codes, labels)]
    return Fields(tokens=as_long[0], lengths=as_long[1], codes=as_long[2], values=values), as_long[3]


def data(_, classes=CLASSES):
    x, y = samples(0, TRAIN, 30, classes)
    xt, yt = samples(1, TEST, 30, classes)
    return x, y, xt, yt


def mask_of(b):
    """True where a token is within the length."""
    return torch.arange(LONGEST) < b.lengths[:, None]


def mean(x, mask):
    return (x * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True)


def maximum(x, mask):
    return x.masked_fill(~mask[:, :, None], -torch.inf).max(1)[0]


# ---- models
class Net(nn.Module):
    def __init__(self, *layers):
        super().__init__()
        for name, layer in layers:
            self.add_module(name, layer)


class Bags(Net):
    """The three kinds of bags. Lengths become offsets."""

    def __init__(self):
        super().__init__(("mean", nn.EmbeddingBag(30, 24)), ("sum", nn.EmbeddingBag(30, 9, mode="sum", padding_idx=0)),
                         ("max", nn.EmbeddingBag(30, 16, mode="max")), ("fc", nn.Linear(49, CLASSES)))

    def forward(self, b):
        flat, first = b.tokens[mask_of(b)], F.pad(b.lengths.cumsum(0), (1, 0))[:-1]
        return self.fc(torch.cat((self.mean(flat, first), self.sum(b.tokens), self.max(flat, first)), 1))


class Words(Net):
    def __init__(self):
        super().__init__(("word", nn.Embedding(30, 20, padding_idx=0)), ("fc1", nn.Linear(20, 16)), ("fc", nn.Linear(16, CLASSES)))

    def forward(self, b):
        return self.fc(mean(torch.tanh(self.fc1(self.word(b.tokens))), mask_of(b)))


class Tables(Net):
    """fastai's model of a table: a table for each column, by its rule round(1.6 n^0.56), and batch normalisation."""

    def __init__(self):
        super().__init__(("cols", nn.ModuleList([nn.Embedding(30, 11) for _ in range(3)])), ("fc1", nn.Linear(33, 20, bias=False)),
                         ("bn1", nn.BatchNorm1d(20)), ("fc", nn.Linear(20, CLASSES)))

    def forward(self, b):
        x = torch.cat([t(b.codes[:, i]) for i, t in enumerate(self.cols)], 1)
        return self.fc(F.silu(self.bn1(self.fc1(x))))


class Factors(Net):
    """A factor for each feature, behind a batch normalisation."""

    def __init__(self):
        super().__init__(("cols", nn.ModuleList([nn.Embedding(30, 11) for _ in range(3)])), ("fc1", nn.Linear(33, 20, bias=False)),
                         ("bn1", nn.BatchNorm1d(20)), ("factors", nn.Module()), ("fc", nn.Linear(20, CLASSES)))
        self.factors.weight = nn.Parameter(torch.full((20, 1, 1, 1), 0.5))

    def forward(self, b):
        x = torch.cat([t(b.codes[:, i]) for i, t in enumerate(self.cols)], 1)
        return self.fc(torch.tanh(self.factors.weight.flatten() * self.bn1(self.fc1(x))))


class Encoder(Net):
    def __init__(self):
        super().__init__(("word", nn.Embedding(30, 24)), ("pos", nn.Embedding(20, 24)), ("norm", nn.LayerNorm(24)),
                         ("attn", nn.MultiheadAttention(24, 3, batch_first=True)), ("norm1", nn.LayerNorm(24)), ("ff1", nn.Linear(24, 48)),
                         ("ff2", nn.Linear(48, 24)), ("norm2", nn.LayerNorm(24)), ("fc", nn.Linear(24, CLASSES)))

    def forward(self, b):
        mask = mask_of(b)
        x = self.norm(self.word(b.tokens) + self.pos.weight[:LONGEST])
        x = self.norm1(x + self.attn(x, x, x, key_padding_mask=~mask, need_weights=False)[0])
        x = self.norm2(x + self.ff2(F.gelu(self.ff1(x))))
        return self.fc(mean(x, mask))


class Causal(Net):
    def __init__(self):
        super().__init__(("word", nn.Embedding(30, 24)), ("attn", nn.MultiheadAttention(24, 2, bias=False, batch_first=True)),
                         ("fc", nn.Linear(72, CLASSES)))
        t, j = torch.arange(LONGEST, dtype=torch.float64)[:, None], torch.arange(24)
        angle = t / 10000 ** ((j - j % 2) / 24)
        self.wave = torch.where(j % 2 == 1, angle.cos(), angle.sin())

    def forward(self, b):
        x = self.word(b.tokens)
        x = x + self.wave.to(x.dtype)
        later = torch.ones(LONGEST, LONGEST).triu(1).bool()
        x = self.attn(x, x, x, attn_mask=later, need_weights=False)[0]
        mask = mask_of(b)
        return self.fc(torch.cat((maximum(x, mask), x[:, 0], mean(x, mask)), 1))


def recurrent(layer, x, b):
    packed = nn.utils.rnn.pack_padded_sequence(x, b.lengths, batch_first=True, enforce_sorted=False)
    return nn.utils.rnn.pad_packed_sequence(layer(packed)[0], batch_first=True, total_length=LONGEST)[0]


class Lstm(Net):
    def __init__(self):
        super().__init__(("word", nn.Embedding(30, 24)), ("lstm", nn.LSTM(24, 20, 2, bidirectional=True, batch_first=True)),
                         ("fc", nn.Linear(80, CLASSES)))

    def forward(self, b):
        x, mask = recurrent(self.lstm, self.word(b.tokens), b), mask_of(b)
        return self.fc(torch.cat((mean(x, mask), maximum(x, mask)), 1))


class Gru(Net):
    """Both directions with lengths, and one without, whose last state is read."""

    def __init__(self):
        super().__init__(("word", nn.Embedding(30, 24)), ("gru", nn.GRU(24, 20, bidirectional=True, batch_first=True)),
                         ("top", nn.GRU(40, 17, bias=False, batch_first=True)), ("fc", nn.Linear(17, CLASSES)))

    def forward(self, b):
        return self.fc(self.top(recurrent(self.gru, self.word(b.tokens), b))[1][0])


class Tied(Net):
    """Weights that two or three layers have. The state dict has each once, by the name of its first layer, as gtrain's has."""

    BORROWED = {"again.weight": "word.weight", "fc2.weight": "fc1.weight", "out.weight": "word.weight"}

    def __init__(self):
        super().__init__(("word", nn.Embedding(30, 24, padding_idx=0)), ("again", nn.Embedding(30, 24)), ("fc1", nn.Linear(24, 24)),
                         ("fc2", nn.Linear(24, 24)), ("out", nn.Linear(24, 30)), ("fc", nn.Linear(30, CLASSES)))
        self.again.weight = self.out.weight = self.word.weight
        self.fc2.weight = self.fc1.weight

    def state_dict(self, *args, **more):
        return {k: v for k, v in super().state_dict(*args, **more).items() if k not in self.BORROWED}

    def load_state_dict(self, state):
        return super().load_state_dict({**state, **{k: state[v] for k, v in self.BORROWED.items()}})

    def forward(self, b):
        x = torch.tanh(self.fc1(self.word(b.tokens))) + self.again(b.tokens)
        return self.fc(torch.tanh(self.out(mean(torch.tanh(self.fc2(x)), mask_of(b)))))


# ---- the models of configs/, without dropout (test_configs.sh)
def scaled(layer, std):
    """Key init_std: scales the first weights to this standard deviation."""
    with torch.no_grad():
        w = layer.weight.double()
        layer.weight.copy_(w * (std / w.std()))
    return layer


class Adult(Net):
    """configs/adult_tabular.cfg"""

    def __init__(self):
        super().__init__(("embeds", nn.ModuleList([scaled(nn.Embedding(30, 11), 0.01) for _ in range(3)])), ("bn_cont", nn.BatchNorm1d(4)),
                         ("layers", nn.Sequential(
                             nn.Sequential(nn.Linear(37, 200, bias=False), nn.ReLU(), nn.BatchNorm1d(200)),
                             nn.Sequential(nn.Linear(200, 100, bias=False), nn.ReLU(), nn.BatchNorm1d(100)),
                             nn.Sequential(nn.Linear(100, 2)))))

    def forward(self, b):
        x = [t(b.codes[:, i]) for i, t in enumerate(self.embeds)]
        return self.layers(torch.cat((*x, self.bn_cont(b.values)), 1))

    def optimizer(self):
        plain = [p for k, p in self.named_parameters() if p.dim() == 1]  # biases and normalisations do not decay
        groups = [dict(params=[p for p in self.parameters() if p.dim() > 1]), dict(params=plain, weight_decay=0.0)]
        return torch.optim.AdamW(groups, lr=2e-3, betas=(0.9, 0.99), eps=1e-5, weight_decay=0.01)


class ImdbBag(Net):
    """configs/imdb_bag.cfg"""

    def __init__(self):
        super().__init__(("bag", scaled(nn.EmbeddingBag(30, 16, padding_idx=0), 0.05)), ("fc", nn.Linear(16, 2)))

    def forward(self, b):
        return self.fc(self.bag(b.tokens[mask_of(b)], F.pad(b.lengths.cumsum(0), (1, 0))[:-1]))


class ImdbLstm(Net):
    """configs/imdb_lstm.cfg"""

    def __init__(self):
        super().__init__(("word", scaled(nn.Embedding(30, 64, padding_idx=0), 0.1)),
                         ("lstm", nn.LSTM(64, 64, bidirectional=True, batch_first=True)), ("fc", nn.Linear(128, 2)))

    def forward(self, b):
        return self.fc(maximum(recurrent(self.lstm, self.word(b.tokens), b), mask_of(b)))


class ImdbTransformer(Net):
    """configs/imdb_transformer.cfg"""

    def __init__(self):
        super().__init__(("word", scaled(nn.Embedding(30, 64, padding_idx=0), 0.1)), ("pos", scaled(nn.Embedding(256, 64), 0.02)),
                         ("norm1", nn.LayerNorm(64)), ("attn", nn.MultiheadAttention(64, 4, batch_first=True)), ("norm2", nn.LayerNorm(64)),
                         ("ff1", nn.Linear(64, 128)), ("ff2", nn.Linear(128, 64)), ("fc", nn.Linear(64, 2)))

    def forward(self, b):
        mask = mask_of(b)
        x = self.word(b.tokens) + self.pos.weight[:LONGEST]
        y = self.norm1(x)
        x = x + self.attn(y, y, y, key_padding_mask=~mask, need_weights=False)[0]
        x = x + self.ff2(F.gelu(self.ff1(self.norm2(x))))
        return self.fc(mean(x, mask))


def one_cycle(lr, **more):
    return lambda opt: torch.optim.lr_scheduler.OneCycleLR(opt, lr, total_steps=100, cycle_momentum=False, **more)


def two_classes(_):
    return data(_, 2)


RUNS = OrderedDict(
    config_adult_tabular=dict(data=two_classes, model=Adult, opt_of=lambda m: m.optimizer(), batch=48, steps=100,
                              schedule=one_cycle(2e-3, pct_start=0.25, div_factor=25.0, final_div_factor=4000.0)),
    config_imdb_bag=dict(data=two_classes, model=ImdbBag, opt=lambda p: torch.optim.SGD(p, lr=4.0), batch=48, steps=100,
                         schedule=lambda opt: torch.optim.lr_scheduler.PolynomialLR(opt, 100)),
    config_imdb_lstm=dict(data=two_classes, model=ImdbLstm, opt=lambda p: torch.optim.AdamW(p, lr=2e-3, weight_decay=0.01), batch=48,
                          steps=100, clip=1.0, schedule=one_cycle(2e-3, final_div_factor=1e4)),
    config_imdb_transformer=dict(data=two_classes, model=ImdbTransformer, opt=lambda p: torch.optim.AdamW(p, lr=1e-3, weight_decay=0.01),
                                 batch=48, steps=100, schedule=one_cycle(1e-3, final_div_factor=1e4)),
    seq_tied=dict(data=data, model=Tied, opt=lambda p: torch.optim.Adam(p, lr=0.003), batch=48, steps=100),
    seq_bags=dict(data=data, model=Bags, opt=lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9), batch=48, steps=100),
    seq_words=dict(data=data, model=Words, opt=lambda p: torch.optim.SGD(p, lr=0.5), batch=48, steps=100),
    seq_tables=dict(data=data, model=Tables, opt=lambda p: torch.optim.Adam(p, lr=0.003), batch=48, steps=100),
    seq_factors=dict(data=data, model=Factors, opt=lambda p: torch.optim.Adam(p, lr=0.003), batch=48, steps=100),
    seq_encoder=dict(data=data, model=Encoder, opt=lambda p: torch.optim.AdamW(p, lr=0.001), batch=48, steps=100),
    seq_lstm=dict(data=data, model=Lstm, opt=lambda p: torch.optim.Adam(p, lr=0.003), batch=48, steps=100),
    seq_gru=dict(data=data, model=Gru, opt=lambda p: torch.optim.Adam(p, lr=0.003), batch=48, steps=100),
    seq_causal=dict(data=data, model=Causal, opt=lambda p: torch.optim.Adam(p, lr=0.002), batch=48, steps=100),
)
