#!/bin/bash
# A checkpoint of a folder of images: predict does to each image what eval does, and all commands show the classes by the folders' names.
# tests/run: beside others
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
if ! command -v python3 >/dev/null; then
	skip named_classes 'python3 is not installed'
	exit 0
fi
cd "$tmp" || exit 1
python3 - <<'PY'
import os, random, struct, zlib
random.seed(3)
def chunk(t, d): return struct.pack(">I", len(d)) + t + d + struct.pack(">I", zlib.crc32(t + d))
def png(w, h, pixel):
    rows = b"".join(b"\0" + b"".join(bytes(pixel(x, y)) for x in range(w)) for y in range(h))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, 8, 2, 0, 0, 0)) + \
        chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
for split, n in ("train", 40), ("test", 23):
    for c, name in enumerate(["blue, dark", "green", "red"]):
        os.makedirs(f"data/{split}/{name}")
        for i in range(n):
            # noise with a little more of one colour, in images of different sizes
            def pixel(x, y): return [min(255, random.randrange(200) + (30 if 2 - c == k else 0)) for k in range(3)]
            open(f"data/{split}/{name}/{i}.png", "wb").write(png(random.randrange(12, 40), random.randrange(12, 40), pixel))
PY
cat >net.cfg <<'CFG'
schema = 1; name = "colours"; seed = 4;
data = { name = "colours"; root = "data"; format = "folder"; batch = 16; mean = [0.4]; std = [0.25]; };
model = { input = [3, 16, 16]; layers = ( { name = "c1"; type = "conv2d"; out = 6; kernel = 3; }, { type = "relu"; },
	{ type = "global_avgpool"; }, { type = "flatten"; }, { name = "fc"; type = "linear"; out = 3; } ); };
train = { epochs = 2; optimizer = { type = "sgd"; lr = 0.05; momentum = 0.9; }; };
checkpoint = { dir = "unused"; };
CFG
"$gtrain" run net.cfg -o run -q --no-progress >"$tmp/out" 2>&1 || fail named_run "$(tail -n 1 "$tmp/out")"
"$gtrain" eval run --report --json >eval.json 2>"$tmp/err"
"$gtrain" eval run --report --csv >eval.csv 2>"$tmp/err"
"$gtrain" predict run data/test --json --top 3 >predict.json 2>"$tmp/err"
rc=$?
cat >check.py <<'PY'
import csv, json, math
names = ["blue, dark", "green", "red"]
r = json.load(open("eval.json"))["report"]
assert [c["name"] for c in r["classes"]] == names, r["classes"]
assert [row["name"] for row in csv.DictReader(open("eval.csv"))] == names
p = [json.loads(l) for l in open("predict.json")]
assert len(p) == r["samples"] == 69, (len(p), r["samples"])
matrix, loss = [[0] * 3 for _ in names], 0
for e in p:
    assert e["name"] == names[e["class"]] and "error" not in e, e
    truth = names.index(e["path"].split("/")[2])
    matrix[truth][e["class"]] += 1
    loss -= math.log({t["class"]: t["probability"] for t in e["top"]}[truth])
assert matrix == r["confusion"], (matrix, r["confusion"])
# the probabilities have 9 digits, and another batch changes an output by some 2^-24
assert abs(loss / len(p) - r["log_loss"]) < 1e-6, (loss / len(p), r["log_loss"])
PY
if [ $rc = 0 ] && [ ! -s "$tmp/err" ] && python3 check.py 2>why; then pass predict_as_eval; else
	fail predict_as_eval "status $rc: $(tail -n 1 why) $(tail -n 1 "$tmp/err")"; fi
for ranks in 2 3; do
	"$gtrain" eval run --report --json --nproc $ranks -s parallel.mode=ddp >eval.json 2>"$tmp/err"
	if python3 check.py 2>why; then pass "predict_as_eval_$ranks"; else
		fail "predict_as_eval_$ranks" "$(tail -n 1 why) $(tail -n 1 "$tmp/err")"; fi
done
gives text_predict 0 out 'data/test/red/0.png' predict run data/test/red
if grep -q $'\t''\(blue, dark\|green\|red\) 0\.' "$tmp/out"; then pass text_predict_name; else
	fail text_predict_name "$(head -n 1 "$tmp/out")"; fi
gives text_eval 0 out '0 blue, dark' eval run --report
gives text_inspect 0 out '3 classes: blue, dark, green, red' inspect run
run inspect run --json
if python3 -c '
import json, sys
assert json.load(sys.stdin)["classes"] == ["blue, dark", "green", "red"]
' <"$tmp/out" 2>why; then pass json_inspect; else fail json_inspect "$(tail -n 1 why)"; fi
tiny_config
"$gtrain" run tiny.cfg -o tiny -q >/dev/null 2>&1
run inspect tiny --json
if [ $rc = 0 ] && grep -q '"classes":null' "$tmp/out"; then pass inspect_without_names; else
	fail inspect_without_names "$(head -c 200 "$tmp/out")"; fi
