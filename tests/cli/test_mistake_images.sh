#!/bin/bash
# tests/run: beside others
# log.images: TensorBoard reads the images and their list from the event file. They are the most confident mistakes of the evaluation, and
# their pixels are those of the dataset; a resumed run keeps those of the earlier steps. TENSORBOARD_PYTHON: an interpreter with the
# package tensorboard.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
cd "$tmp" || exit 1
python=${TENSORBOARD_PYTHON:-python3}
tiny_config
trains() { "$gtrain" run "$@" --device cpu -q --no-progress >train.out 2>&1 || fail "train_$2" "$(tail -n 1 train.out)"; }
on=(-s log.tensorboard=true -s log.images=3)

# ---- what cannot be shown ----------------------------------------------------------------------------------------------------------------
gives without_tensorboard 78 err 'log.images: expected 0 without log.tensorboard = true, whose files get the images, got 3' \
	check tiny.cfg -s log.images=3
gives too_many 78 err log.images check tiny.cfg -s log.tensorboard=true -s log.images=101
gives other_loss 78 err 'log.images: expected 0, because the loss does not compare the outputs with the labels, got 3' \
	run tiny.cfg -o none "${on[@]}" -s 'train.loss="bce"' --device cpu
printf 'a,b,y\n1,2,x\n3,4,y\n2,2,x\n5,4,y\n1,1,x\n6,6,y\n' >t.csv
cat >table.cfg <<'CFG'
schema = 1;
data = { format = "csv"; train = "t.csv"; target = "y"; batch = 2; };
model = { inputs = ({ name = "codes"; });
          layers = ({ type = "embeddings"; embedding_dim = 4; }, { type = "flatten"; }, { type = "linear"; out = 2; }); };
train = { epochs = 1; optimizer = { type = "sgd"; lr = 0.01; }; };
checkpoint = { dir = "none"; };
CFG
gives no_split 78 err 'log.images: expected 0, because there is no split valid or test, got 3' run table.cfg "${on[@]}" --device cpu
gives no_images 78 err 'log.images: expected 0, because the samples are no images, got 3' \
	run table.cfg "${on[@]}" -s 'data.test="t.csv"' --device cpu

# ---- as TensorBoard reads them -----------------------------------------------------------------------------------------------------------
"$python" -c 'import tensorboard' 2>/dev/null || { skip tensorboard 'python3 has no tensorboard (set TENSORBOARD_PYTHON)'; exit 0; }
cat >compare.py <<'PY'
import csv, gzip, re, struct, sys, zlib
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
run, split, count, steps = sys.argv[1], sys.argv[2], int(sys.argv[3]), [int(s) for s in sys.argv[4].split(",")]
e = EventAccumulator(run, size_guidance={"images": 0, "tensors": 0})
e.Reload()
tags = [f"mistakes_{split}/{i + 1:02}" for i in range(count)]
assert sorted(e.Tags()["images"]) == tags, e.Tags()
lists = e.Tensors(f"mistakes_{split}/list")
assert e.summary_metadata[f"mistakes_{split}/list"].plugin_data.plugin_name == "text"
assert set(steps) <= {x.step for x in e.Scalars("train/loss")} and [x.step for x in e.Scalars(split + "/loss")] == steps
assert [x.step for x in lists] == steps and all([x.step for x in e.Images(t)] == steps for t in tags)
lines = re.sub(r"\\(.)", r"\1", lists[-1].tensor_proto.string_val[0].decode()).splitlines()
rows = [[c.strip() for c in r.split("|")[1:-1]] for r in lines]
assert len(rows) == count + 2 and rows[0] == ["image", "sample", "label", "prediction", "probability"], rows
# the predictions of the last checkpoint, which are those of the last evaluation
with open(sys.argv[5]) as f:
    head, *table = csv.reader(f)
names = [h[len("probability_"):] for h in head if h.startswith("probability_")]
wrong = sorted(([float(r[3 + names.index(r[2])]), r[0], r[1], r[2]] for r in table if r[1] != r[2]), key=lambda x: -x[0])
for (_, sample, label, prediction, p), (q, *rest) in zip(rows[2:], wrong):
    assert [sample, label, prediction] == rest and abs(float(p) - q) < 1e-4, (sample, label, prediction, p, q, rest)
def pixels(png):
    w, h, depth, color = struct.unpack(">IIBB", png[16:26])
    assert (depth, color) == (8, 0)
    at, data = 8, b""
    while at < len(png):
        n, = struct.unpack(">I", png[at:at + 4])
        data += png[at + 8:at + 8 + n] if png[at + 4:at + 8] == b"IDAT" else b""
        at += 12 + n
    raw, out = zlib.decompress(data), [bytes(w)]
    for y in range(h):
        kind, line = raw[y * (w + 1)], bytearray(raw[y * (w + 1) + 1:(y + 1) * (w + 1)])
        for x in range(w):
            a, b, c = (line[x - 1] if x else 0), out[-1][x], (out[-1][x - 1] if x else 0)
            pa, pb, pc = abs(b - c), abs(a - c), abs(a + b - 2 * c)
            line[x] = (line[x] + [0, a, b, (a + b) // 2, a if pa <= pb and pa <= pc else b if pb <= pc else c][kind]) & 255
        out.append(bytes(line))
    return w, h, b"".join(out[1:])
if len(sys.argv) > 6:
    images = gzip.open(sys.argv[6]).read()[16:]
    for t, row in zip(tags, rows[2:]):
        i = int(row[1].split("[")[-1][:-1])
        x = e.Images(t)[-1]
        assert pixels(x.encoded_image_string) == (28, 28, images[784 * i:784 * (i + 1)]) and (x.width, x.height) == (28, 28), row
PY
# reads NAME SPLIT COUNT STEPS [IMAGES]: the images of the run NAME
reads() {
	local why
	"$gtrain" eval "$1/latest" --split "$2" --predictions "$1.csv" -q >/dev/null 2>&1
	if why=$("$python" compare.py "$1" "$2" "$3" "$4" "$1.csv" "${@:5}" 2>&1); then pass "$1"; else fail "$1" "$(tail -n 1 <<<"$why")"; fi
}
trains tiny.cfg -o one_rank "${on[@]}"
reads one_rank test 3 8,16
trains tiny.cfg -o the_split_valid "${on[@]}" -s data.valid=0.25 -s train.eval_every_epochs=2
reads the_split_valid valid 3 12
trains tiny.cfg -o threads "${on[@]}" --nproc 2 -s 'parallel.mode="dp"'
reads threads test 3 8,16
trains tiny.cfg -o processes "${on[@]}" --nproc 2 -s 'parallel.mode="ddp"'
reads processes test 3 8,16
trains tiny.cfg -o resumed "${on[@]}" -s train.epochs=1
"$gtrain" resume resumed -s train.epochs=2 --device cpu -q --no-progress >train.out 2>&1 || fail resumed_trains "$(tail -n 1 train.out)"
reads resumed test 3 8,16
images=/usr/share/datasets/fashion-mnist/t10k-images-idx3-ubyte.gz
if [ -e $images ]; then
	trains "$src/configs/fmnist_mlp.cfg" -o pixels "${on[@]}" -s train.epochs=1 -s data.limit=2000
	reads pixels test 3 16 $images
else
	skip pixels 'FashionMNIST is not here'
fi
