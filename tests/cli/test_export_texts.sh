#!/bin/bash
# Exported models of texts: with tokens.py and vocab.txt, Python without packages computes the probabilities of `gtrain predict`, for every
# tokenizer and for texts of many scripts.
# tests/run: beside others
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null || { skip export_texts 'python3 is older than 3.9'; exit 0; }
cd "$tmp" || exit 1
cat >make.py <<'PY'
import os, random
random.seed(1)
good = "great lovely don't O’Neill’s 3.5 &amp; café straße 日本 ひら 👍🏽 \\path a_b नमस्ते".split()
bad = "bad isn't shouldn't've 1,000 <br/> &#8217; &hellip; 🇩🇪 👨\u200d👩 !!!! naïve İstanbul \u200d… x\u00ady".split()
for i in range(80):
    for name, words in (("pos", good), ("neg", bad)):
        os.makedirs(f"data/{name}", exist_ok=True)
        with open(f"data/{name}/{i}.txt", "w") as f:
            f.write(" ".join(random.choice(words + ["the", "Film", "IT", "..."]) for _ in range(12)))
chars = "".join(good + bad) + " abcXYZ0123.,'’!?-_\t\u00a0\u0301\u0323" * 3
with open("lines", "w") as f:
    f.write("a great FILM\nIt is not bad, isn’t it?\n&lt;br&gt; &unknown; &#0; &apos;\n")
    for i in range(200):
        f.write("x" + "".join(random.choice(chars) for _ in range(random.randint(1, 25))) + "\n")
with open("bert.txt", "w") as f:
    f.write("[PAD] [UNK] [CLS] [SEP] the film great gre ##at a ##a ##b ! . x ##x e b 日 本 naive na ##ive ' don t ##th it is not bad , ?\n"
            .replace(" ", "\n"))
PY
python3 make.py
cat >use.py <<'PY'
import json, math, struct, sys
sys.path.insert(0, sys.argv[1])
from tokens import batch

with open(sys.argv[1] + "/model.safetensors", "rb") as f:
    head, data = json.loads(f.read(struct.unpack("<Q", f.read(8))[0])), f.read()
def rows(name):
    (n, k), at = head[name]["shape"], head[name]["data_offsets"][0]
    return [struct.unpack_from(f"<{k}f", data, at + 4 * k * i) for i in range(n)]
table, weight = rows("bag.weight"), rows("fc.weight")
bias = struct.unpack_from("<2f", data, head["fc.bias"]["data_offsets"][0])
with open("lines", newline="\n") as f:
    texts = f.read().split("\n")[:-1]
worst = 0
for text, ids, n, line in zip(texts, *batch(texts), open("out")):
    mean = [sum(table[i][k] for i in ids[:n]) / n for k in range(len(table[0]))]
    y = [sum(w * x for w, x in zip(row, mean)) + b for row, b in zip(weight, bias)]
    want = {t["class"]: t["probability"] for t in json.loads(line)["top"]}
    diff = abs(want[1] - 1 / (1 + math.exp(y[0] - y[1])))
    assert diff < 1e-5, (text, ids[:n], want, diff)  # a sum of floats in another order
    worst = max(worst, diff)
assert len(texts) == len(open("out").readlines()) == 203
print(f"# {sys.argv[1]}: largest difference {worst:.1e}")
PY
# same NAME KEYS OF DATA: a model of texts
same() {
	local name=$1
	cat >"$name.cfg" <<CFG
schema = 1; name = "$name"; device = "cpu";
data = { root = "data"; format = "text"; batch = 16; valid = 0.2; $2 };
model = { inputs = ( { name = "tokens"; }, { name = "lengths"; } );
	layers = ( { name = "bag"; type = "embedding_bag"; in = ["tokens", "lengths"]; embedding_dim = 6; padding_idx = 0; },
		{ name = "fc"; type = "linear"; out = 2; } ); };
train = { epochs = 3; optimizer = { type = "adam"; lr = 0.05; }; };
CFG
	"$gtrain" run "$name.cfg" -q -o "run-$name" >out 2>err && "$gtrain" export "run-$name" -o "$name" --format pytorch -q 2>err &&
		"$gtrain" predict "run-$name" - --top 2 --json <lines >out 2>err || { fail "$name" "$(head -n 1 err)"; return; }
	if python3 use.py "$name" 2>err; then pass "same_as_predict_$name"; else fail "same_as_predict_$name" "$(tail -n 1 err)"; fi
	if grep -qF 'from tokens import batch' "$name/README.md"; then pass "card_$name"
	else fail "card_$name" "$(head -n 40 "$name/README.md")"; fi
	gives "onnx_$name" 0 err 'wrote' export "run-$name" -o "$name.onnx"
	grep -qaF 'def encode(text):' "$name.onnx" || fail "onnx_$name" 'no tokenizer in the metadata'
	rm -rf "$name/__pycache__"
	[ "$(ls "$name" | tr '\n' ' ')" = "$3" ] || fail "files_$name" "$(ls "$name")"
}
files='README.md data.json model.py model.safetensors tokens.py '
same words 'max_tokens = 12; min_freq = 2;' "${files}vocab.txt "
same pairs 'max_tokens = 12; min_freq = 2; ngrams = 3; hash_buckets = 64;' "${files}vocab.txt "
same bytes 'tokenizer = "bytes"; max_tokens = 30;' "$files"
same wordpiece 'tokenizer = "wordpiece"; vocab = "bert.txt"; max_tokens = 10;' "${files}vocab.txt "
grep -qaF '<unk>' words.onnx && grep -qaF '[UNK]' wordpiece.onnx || fail onnx_vocabulary 'no vocabulary in the metadata'
