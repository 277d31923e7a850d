#!/usr/bin/env python3
"""A random small net and a random way to train it: prints a config.

Usage: random_net.py SEED     "# modes: WORD:RANKS …" in the first line names the modes it can be compared in (par.sh's words)

Nets are directed graphs of all layer types, on images or, a third of them, on tokens of different lengths, codes and numbers. They are
smooth on the whole: a kink or a tie that falls the other way after one rounding would be no fault of a mode. So are the updates (EPS).
Options are drawn so that one rank computes the same thing: a batch is normalised as a whole (sync: 1), or not at all."""
import random
import sys

# Adam and its relatives divide a gradient by its own size, plus eps. With the usual eps of 1e-8 they make a large part of a step of a
# gradient that is rounding only: that of queries which see one key each, which is zero, or that of a single element which is near zero at
# the first step. Such weights then differ by 1e-3 where nothing is wrong. An error of 1e-9 in a gradient, as rounding makes, is multiplied
# by at most 1 / eps, so with this eps it moves a weight by 1e-5 of a step. Gradients above eps are still normalised.
EPS = "1.0e-4"
# The first steps of rmsprop are ten times lr, because its average of squares begins with a hundredth of the first square: its lr is a tenth
# of Adam's.

seed = int(sys.argv[1])
r = random.Random(seed)
later = random.Random(-1 - seed)  # for layer types that were added later: the rest of a seed's net stays as it was
latest = random.Random(-3 - 5 * seed)  # and for those that came after these
recent = random.Random(-7 - 11 * seed)  # for recurrent layers
biases = random.Random(-19 - 23 * seed)  # for biases of attention
updates = random.Random(-29 - 31 * seed)  # for optimizers and schedules that were added later
texts = random.Random(-13 - 17 * seed)  # for nets that read tokens, codes and numbers instead of images
layers, shapes, params = [], {}, []  # text; name → shape of a sample; names of layers that learn


def put(kind, /, size, ins, learns=False, rnd=r, **keys):
    name = f"{kind.replace('2d', '').replace('1d', '')}{len(layers)}"
    text = f'{{ name = "{name}"; type = "{kind}"; '
    text += "in = [" + ", ".join(f'"{i}"' for i in ins) + "]; "
    for k, v in keys.items():
        text += f"{k} = {v}; "
    if learns:
        params.append(name)
        if rnd.random() < 0.08 and len(params) > 1:
            text += "frozen = true; "
        elif rnd.random() < 0.1:
            text += f"lr_mul = {rnd.choice([0.1, 0.5, 2.0])}; "
        if rnd.random() < 0.08:
            text += "weight_decay = 0.01; "
    if len(layers) > 1 and rnd.random() < 0.08:
        text += "recompute = true; "
    layers.append(text.rstrip() + " }")
    shapes[name] = size
    return name


def learned(kind, shape, x, norm, **keys):
    """A linear layer or a convolution and what follows it. It has no bias before batch normalisation, where its gradient would be
    rounding only."""
    normed = norm and r.random() < 0.5
    if r.random() < 0.25 or (normed and norm == "batch"):
        keys["bias"] = "false"
    x = put(kind, shape, [x], True, **keys)
    c = shapes[x]
    if normed and norm == "group":
        groups = r.choice([g for g in (1, 2, 3, 4, 8, c[0]) if c[0] % g == 0])
        if groups == c[0] and "bias" not in keys:  # a group of one channel takes the bias away
            layers[-1] = layers[-1].replace(" }", " bias = false; }")
        x = put("groupnorm", c, [x], True, num_groups=groups)
    elif normed:
        x = put("layernorm" if norm == "layer" else "batchnorm2d" if len(c) == 3 else "batchnorm1d", c, [x], True)
    kind = r.choice(["silu", "tanh", "gelu", "sigmoid", "silu", "tanh", None])
    if kind == "silu":
        kind = later.choice(["silu", "mish", "elu", "softplus", "selu"])
    if kind:
        keys = {"approximate": '"tanh"'} if kind == "gelu" and r.random() < 0.5 else {}
        x = put(kind, c, [x], **keys)
    if later.random() < 0.1:
        x = put("prelu", c, [x], True, later, num_parameters=later.choice([1, c[0]]))
    if later.random() < 0.08:
        x = put("drop_path", c, [x], rnd=later, p=0.2)
    if len(c) == 3 and later.random() < 0.08:
        x = put("dropout2d", c, [x], rnd=later, p=0.2)
    if r.random() < 0.15:
        x = put("dropout", c, [x], p=r.choice([0.1, 0.3]))
    return x


def conv(x, norm):
    c, h, w = shapes[x]
    k = r.choice([1, 3, 3, 5])
    k = k if h + 2 * (k // 2) >= k else 1
    stride = r.choice([1, 1, 1, 2]) if h > 4 else 1
    groups = r.choice([g for g in (1, 1, 1, 2, 4, c) if c % g == 0])
    out = groups * r.randint(max(1, 4 // groups), max(1, 16 // groups))
    p = k // 2
    o = (h + 2 * p - k) // stride + 1
    keys = {"out": out, "kernel": k, "padding": p, "stride": stride}
    if groups > 1:
        keys["groups"] = groups
    return learned("conv2d", (out, o, o), x, norm, **keys)


def excite(x):
    """Squeeze-and-excitation, or a number added to each channel."""
    c = shapes[x][0]
    s = put("global_avgpool", (c, 1, 1), [x], rnd=later)
    s = put("conv2d", (c, 1, 1), [s], True, later, out=c, kernel=1)
    s = put("sigmoid", (c, 1, 1), [s], rnd=later)
    if later.random() < 0.3:
        s = put("flatten", (c,), [s], rnd=later)
    return put(later.choice(["mul", "mul", "add"]), shapes[x], later.sample([x, s], 2), rnd=later)


def pool(x):
    c, h, w = shapes[x]
    kind = r.choice(["avgpool2d", "adaptive_avgpool2d", "maxpool2d", "adaptive_maxpool2d"])
    if kind.startswith("adaptive"):
        o = r.randint(1, h)
        return put(kind, (c, o, o), [x], out=o)
    return put(kind, (c, h // 2, h // 2), [x], kernel=2)


def recurrent(x, lengths=False, recent=recent):
    h, depth, both = recent.choice([5, 8, 17]), recent.choice([1, 1, 2]), recent.random() < 0.5
    keys = {"hidden_size": h, "num_layers": depth, "bidirectional": str(both).lower()}
    if depth > 1 and recent.random() < 0.5:
        keys["dropout"] = 0.2
    if recent.random() < 0.2:
        keys["bias"] = "false"
    ins = [x, "lengths"] if lengths else [x]
    return put(recent.choice(["lstm", "gru"]), (shapes[x][0], h * (1 + both)), ins, True, recent, **keys)


def tokens(x):
    """The features of a sample as a sequence, some layers on it, and back."""
    n = 1
    for s in shapes[x]:
        n *= s
    t = latest.choice([i for i in range(1, 13) if n % i == 0])
    x = put("reshape", (t, n // t), [x], rnd=latest, shape=f"[{t}, -1]")
    if latest.random() < 0.5:
        x = put("permute", (n // t, t), [x], rnd=latest, dims="[0, 2, 1]")
    d = latest.choice([8, 16, 21])
    x = put("linear", (shapes[x][0], d), [x], True, latest, out=d)
    y = put("layernorm", shapes[x], [x], True, latest, dims=latest.choice([0, 1, 2]))
    y = put("linear", shapes[x], [put("gelu", shapes[x], [y], rnd=latest)], True, latest, out=d)
    x = put("add", shapes[x], [x, y], rnd=latest)
    if recent.random() < 0.5:
        x = recurrent(x)
    if latest.random() < 0.5:
        return put("select", shapes[x][1:], [x], rnd=latest, dim=1, index=latest.choice([0, -1]))
    return put("flatten", (shapes[x][0] * shapes[x][1],), [x], rnd=latest)


def tied(kind, size, x, to, **keys):
    """A layer with the weight of layer `to`; only its bias is its own."""
    has = kind == "linear" and texts.random() < 0.7
    y = put(kind, size, [x], has, texts, tie=f'"{to}"', **keys, **({} if has or kind != "linear" else {"bias": "false"}))
    return y


def attention(x, lengths):
    """A block of a transformer. The bias of its keys, if any, has a gradient that is rounding only."""
    t, d = shapes[x]
    y = put("layernorm", (t, d), [x], True, texts) if texts.random() < 0.7 else x
    keys = {"num_heads": texts.choice([h for h in (1, 2, 4) if d % h == 0])}
    if biases.random() < 0.4:
        keys["bias"] = "false"
    if texts.random() < 0.3:
        keys["causal"] = "true"
    y = put("attention", (t, d), [y, "lengths"] if lengths else [y], True, texts, **keys)
    return put("add", (t, d), [x, y], rnd=texts)


def feed_forward(x, first):
    """Two linear layers on each token. first: that of an earlier block, whose weight the first one may have."""
    t, d = shapes[x]
    wide = 2 * d
    if first and shapes[first] == (t, wide) and texts.random() < 0.6:
        y = tied("linear", (t, wide), x, first, out=wide)
    else:
        y = first = put("linear", (t, wide), [x], True, texts, out=wide)
    y = put(texts.choice(["gelu", "tanh", "silu"]), (t, wide), [y], rnd=texts)
    y = put("linear", (t, d), [y], True, texts, out=d)
    return put("add", (t, d), [x, y], rnd=texts), first


def word_net():
    """Returns the inputs, the data's options and the output."""
    t, v, d = texts.choice([5, 9, 12]), texts.choice([11, 23, 40]), texts.choice([8, 12, 16])
    lengths = texts.random() < 0.7
    inputs = [f'{{ name = "tokens"; shape = [{t}]; vocabulary = {v}; }}'] + (['{ name = "lengths"; }'] if lengths else [])
    options = [f"lengths = [{t // 2}, {t}]"] if texts.random() < 0.3 else []
    table = put("embedding", (t, d), ["tokens"], True, texts, embedding_dim=d, **({"padding_idx": 0} if texts.random() < 0.5 else {}))
    x, first, wide = table, None, []
    if texts.random() < 0.25:
        x = put("add", (t, d), [x, tied("embedding", (t, d), "tokens", table, embedding_dim=d)], rnd=texts)
    if texts.random() < 0.6:
        kind = texts.choice(["learned", "learned", "sinusoidal", "same"])
        x = put("positional", (t, d), [x], kind != "sinusoidal", texts, kind=f'"{kind}"', **({"max_len": t} if kind == "learned" else {}))
    for _ in range(texts.randint(1, 3)):
        which = texts.choice(["attention", "ff", "ff", "rnn"])
        if which == "attention":
            x = attention(x, lengths)
        elif which == "ff":
            x, first = feed_forward(x, first)
        else:
            x = recurrent(x, lengths, texts)
            x = put("linear", (t, d), [x], True, texts, out=d)
    if texts.random() < 0.4:
        x = put("layernorm", (t, d), [x], True, texts)
    mode = texts.choice(["mean", "mean", "max", "first", "last"])
    x = put("pool_tokens", (d,), [x, "lengths"] if lengths else [x], rnd=texts, mode=f'"{mode}"')
    wide.append(x)
    if texts.random() < 0.35:
        mode = texts.choice(["mean", "sum", "max"])
        wide.append(put("embedding_bag", (7,), ["tokens", "lengths"] if lengths else ["tokens"], True, texts, embedding_dim=7,
                        mode=f'"{mode}"'))
    if texts.random() < 0.3:
        inputs.append('{ name = "codes"; shape = [3]; vocabulary = 9; }')
        wide.append(put("embeddings", (15,), ["codes"], True, texts, embedding_dim=5))
    if texts.random() < 0.3:
        inputs.append('{ name = "values"; shape = [4]; }')
        shapes["values"] = (4,)
        wide.append("values")
    if len(wide) > 1:
        x = put("concat", (sum(shapes[i][0] for i in wide),), wide, rnd=texts)
    if texts.random() < 0.4:
        x = put("linear", (d,), [x], True, texts, out=d)
        x = put("tanh", (v,), [tied("linear", (v,), x, table, out=v)], rnd=texts)
    if texts.random() < 0.2:
        x = put("dropout", shapes[x], [x], rnd=texts, p=0.2)
    x = put("linear", (10,), [x], True, texts, out=10)
    return "inputs = ( " + ", ".join(inputs) + " )", options, x


def net():
    norm = r.choice([None, None, "layer", "batch", "batch", "group"])
    flat = r.random() < 0.35
    shape = (r.randint(1, 3), r.choice([6, 8, 9]), 0)
    shape = (shape[0], shape[1], shape[1])
    shapes["input"] = shape
    x = "input"
    seen = []
    if not flat:
        for _ in range(r.randint(1, 4)):
            x = conv(x, norm) if x == "input" or r.random() < 0.75 or shapes[x][1] < 2 else pool(x)
            same = [s for s in seen if shapes[s] == shapes[x] and s != x]
            if same and r.random() < 0.7:
                x = put(r.choice(["add", "add", "mul"]), shapes[x], [x, r.choice(same)])
            tall = [s for s in seen if shapes[s][1:] == shapes[x][1:] and s != x]
            if tall and r.random() < 0.4:
                o = r.choice(tall)
                x = put("concat", (shapes[x][0] + shapes[o][0],) + shapes[x][1:], [x, o])
            if later.random() < 0.15:
                x = excite(x)
            seen.append(x)
        if r.random() < 0.3:
            x = put("global_avgpool", (shapes[x][0], 1, 1), [x])
    c, h, w = shapes[x]
    x = put("flatten", (c * h * w,), [x])
    seen = [x]
    for _ in range(r.randint(0, 3)):
        wide = r.choice([17, 32, 48, 200])
        x = learned("linear", (wide,), x, norm, out=wide)
        if r.random() < 0.2:
            x = put("scale", shapes[x], [x], factor=0.5)
        if r.random() < 0.1:
            x = put("identity", shapes[x], [x])
        same = [s for s in seen if shapes[s] == shapes[x] and s != x]
        if same and r.random() < 0.6:
            x = put("add", shapes[x], [x, r.choice(same)])
        if r.random() < 0.2:
            o = r.choice(seen)
            x = put("concat", (shapes[x][0] + shapes[o][0],), [x, o])
        seen.append(x)
    if latest.random() < 0.2:
        x = tokens(x)
    x = put("linear", (10,), [x], True, out=10)
    return shape, x, norm


if texts.random() < 0.35:
    inputs, options, x = word_net()
    images = False
else:
    shape, x, norm = net()
    inputs, options, images = f"input = [{shape[0]}, {shape[1]}, {shape[2]}]", ["mean = [0.5]", "std = [0.25]"], True
batchnorm = any("batchnorm" in t for t in layers)
loss = r.choice(["cross_entropy"] * 4 + ["nll", "mse"])
if loss == "nll":
    put("log_softmax", (10,), [x])
    loss = later.choice(["nll", "kl_div"])
elif loss == "mse":
    loss = later.choice(["mse", "bce", "smooth_l1", "huber", "focal"])
accumulate = r.choice([1, 1, 1, 2, 4])
batch = 24
steps = 14
even = batchnorm or r.random() < 0.4
train = [f"steps = {steps}", f'loss = "{loss}"', f"accumulate = {accumulate}", "eval_every_epochs = 0"]
if loss == "cross_entropy" and r.random() < 0.3:
    train.append("label_smoothing = 0.1")
if loss in ("cross_entropy", "nll", "kl_div"):
    if r.random() < 0.15:
        train.append("ignore_index = 3")
    if loss != "kl_div" and later.random() < 0.15:
        train.append("class_weights = [1.0, 0.5, 2.0, 1.0, 1.5, 1.0, 0.25, 1.0, 3.0, 1.0]")
elif loss == "bce" and later.random() < 0.5:
    train.append("pos_weight = [1.0, 0.5, 2.0, 1.0, 1.5, 1.0, 0.25, 1.0, 3.0, 1.0]")
if r.random() < 0.25:
    train.append("clip_norm = 0.5")
if r.random() < 0.15:
    train.append('recompute = "cheap"')
kind = r.choice(["sgd", "sgd", "adamw", "adam", "rmsprop", "muon"])
opt = {"sgd": 'lr = 0.005; momentum = 0.9; ' + r.choice(["", "nesterov = true; ", "dampening = 0.1; "]) +
              r.choice(["", "weight_decay = 0.001; "]),
       "adamw": "lr = 0.001; ", "adam": "lr = 0.001; " + r.choice(["", "weight_decay = 0.01; "]),
       "rmsprop": "lr = 0.0001; " + r.choice(["", "centered = true; ", "momentum = 0.5; "]), "muon": "lr = 0.001; "}[kind]
opt += r.choice(["", "", "decay_bias = false; "])
if kind != "sgd":  # muon: this is the optimizer of the tensors that it does not take
    opt += f"eps = {EPS}; "
if kind not in ("sgd", "muon") and updates.random() < 0.5:  # with the eps and the bias key drawn above
    kind, lr, more = updates.choice([("adam", 0.001, "amsgrad = true; "), ("adamw", 0.001, "amsgrad = true; "), ("nadam", 0.001, ""),
                                     ("nadam", 0.001, "decoupled_weight_decay = true; weight_decay = 0.01; "), ("radam", 0.001, ""),
                                     ("radam", 0.001, "weight_decay = 0.01; "), ("adagrad", 0.005, "lr_decay = 0.01; "),
                                     ("adagrad", 0.005, "initial_accumulator_value = 0.1; "), ("lamb", 0.002, ""),
                                     ("lamb", 0.002, "always_adapt = true; trust_clip = true; ")])
    opt = f"lr = {lr}; {more}" + ("decay_bias = false; " if "decay_bias" in opt else "") + f"eps = {EPS}; "
if updates.random() < 0.1 and "clip_norm = 0.5" not in train:
    train.append("clip_value = 0.05")
muon = ""
if kind == "muon":  # takes matrices only
    muon = f'{{ match = ["linear*.weight", "conv*.weight"]; optimizer = {{ type = "muon"; lr = {r.choice([0.002, 0.01])}; }}; }}'
    kind = "adamw"
train.append(f'optimizer = {{ type = "{kind}"; {opt}}}')
schedule = r.choice(['type = "constant"; ', 'type = "cosine"; unit = "step"; warmup = 3.0; ', 'type = "onecycle"; unit = "step"; ',
                     'type = "step"; unit = "step"; step_size = 5.0; gamma = 0.5; '])
if updates.random() < 0.2:
    schedule = updates.choice(['type = "cosine_restarts"; unit = "step"; t_0 = 3.0; t_mult = 2; ',
                               'type = "cyclic"; unit = "step"; base_lr = 0.0002; step_size_up = 4.0; '])
if kind == "nadam" and ("onecycle" in schedule or "cyclic" in schedule):
    schedule += "cycle_momentum = false; "
train.append(f"schedule = {{ {schedule}}}")
if muon:
    train.append(f"groups = ( {muon} )")
elif r.random() < 0.25:
    other = r.choice(['type = "sgd"; lr = 0.01; momentum = 0.5; ', f'type = "adamw"; lr = 0.0005; eps = {EPS}; '])
    train.append(f'groups = ( {{ match = ["{r.choice(params)}.*"]; optimizer = {{ {other}}}; }} )')
data = ['name = "synthetic"', f"batch = {batch}", "classes = 10", f"samples = {240 if even else r.choice([233, 241, 245, 250])}",
        "samples_test = 40"] + options
if r.random() < 0.2 and images:
    data.append('augment = ( { type = "pad_crop"; pad = 1; }, { type = "hflip"; } )')
if r.random() < 0.2:
    data.append(f"prefetch = {r.randint(0, 3)}")
if r.random() < 0.1:
    data.append("valid = 0.1")
    if batchnorm:
        data.pop()
words = ["ddp:2", "ddp:3", "ddp:4", "zero1:2", "zero1:3", "zero2:2", "zero2:4", "zero3:2", "zero3:3"]
if not batchnorm:
    words += ["dp:2", "dp:3", "gpipe:2", "1f1b:2", "1f1b:3", "zero-bubble:2", "interleaved:2", "interleaved:3", "1f1b*2:4",
              "zero-bubble*2+zero1:4", "interleaved*2+zero1:4"]
picked = r.sample(words, 4)
extra = ["sync_bn = true"] if batchnorm else []
print("# modes: " + " ".join(picked))
print(f"# bucket: {r.choice([0.001, 0.01, 25.0])} sync: {int(batchnorm)}")
print(f'schema = 1;\nname = "random-{seed}";\nseed = {seed};\nthreads = {r.choice([1, 1, 2])};')
print("data = { " + "; ".join(data) + "; };")
print(f"model = {{ {inputs}; layers = (\n\t" + ",\n\t".join(layers) + "\n); };")
print("train = { " + "; ".join(train) + "; };")
print('checkpoint = { dir = "unused"; every_epochs = 0; };\nlog = { every_steps = 1; };')
