#!/bin/bash
# gtrain eval computes a batch in parts that fit into the cache. With reproducible = "world" it does not, which is compared, as is a batch
# that data.eval_batch makes small: outputs, scores and the loss have the same bits. SqueezeNet has the same kernels for every batch.
# tests/run: beside others
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
cd "$tmp" || exit 1

"$gtrain" run "$GTRAIN_SRC/configs/squeezenet1_1.cfg" -o net -s data.samples=8 -s data.samples_test=20 -s data.batch=4 -s train.steps=1 \
	-s train.schedule.warmup=0 -s threads=2 -q --no-progress >out 2>err || fail squeezenet "$(head -n 1 err)"
# measure NAME KEYS...: the results of an evaluation in NAME.csv and NAME.json
measure() {
	local name=$1
	shift
	"$gtrain" eval net -q --json --report --predictions "$name.csv" -s threads=1 "$@" 2>err | sed 's/"seconds":[^,}]*//g' >"$name.json"
}
measure parts -s data.eval_batch=20
measure whole -s data.eval_batch=20 -s reproducible=world -s parallel.shards=4
measure two -s data.eval_batch=2
[ "$(wc -l <parts.csv)" -eq 21 ] && grep -q '"loss":' parts.json || fail parts "$(head -n 1 err)"
for name in whole two; do
	if cmp -s parts.csv "$name.csv" && cmp -s parts.json "$name.json"; then
		pass "$name"
	else
		fail "$name" "$(diff parts.csv "$name.csv" | head -n 3; diff parts.json "$name.json" | head -n 3)"
	fi
done

# One picture and many: the batch has as many samples as there are inputs. The kernels of one picture are other ones, which round
# differently: 1.2e-7 to 2.5e-7, relative, was measured; another picture differs in the second digit.
mkdir images
python3 - <<'PY'
import random, struct, zlib
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
for i in range(4):
    random.seed(i)
    rows = b"".join(b"\0" + bytes(random.randrange(256) for _ in range(96)) for _ in range(32))
    with open("images/%d.png" % i, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 32, 32, 8, 2, 0, 0, 0)) +
                chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
PY
"$gtrain" predict net images --json 2>err >many || fail many "$(head -n 1 err)"
for i in images/*.png; do "$gtrain" predict net "$i" --json 2>>err; done >single
if python3 - <<'PY' 2>why; then pass single; else fail single "$(tail -n 1 why)"; fi
import json
many, single = ([json.loads(line) for line in open(name)] for name in ("many", "single"))
assert len(many) == len(single) == 4, (len(many), len(single))
for a, b in zip(many, single):
    assert a["path"] == b["path"] and a["class"] == b["class"], (a, b)
    assert abs(a["probability"] - b["probability"]) <= 2e-6 * a["probability"], (a, b)
PY
