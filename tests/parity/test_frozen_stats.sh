#!/bin/bash
# train.groups with frozen_stats against PyTorch's eval() of single modules (make_frozen_stats.py): losses, weights and statistics; resumed
# runs.
# tests/run: beside others
set -u
golden=$GTRAIN_SRC/tests/golden/frozen_stats.txt cfg=$GTRAIN_SRC/tests/parity/frozen_stats.conf
export OMP_WAIT_POLICY=passive
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
if [ ! -d /usr/share/datasets/fashion-mnist ] && [ ! -d "${GTRAIN_DATA:-}/fashion-mnist" ]; then
	echo 'skip frozen_stats: no FashionMNIST in /usr/share/datasets/fashion-mnist'
	exit 0
fi
groups='train.groups=({match="bn1.*";frozen=true;frozen_stats=true;},{match="bn2.*";frozen_stats=true;},{match="bn3.*";frozen=true;})'
go() { # NAME ARGS...
	local name=$1
	shift
	if ! "$GTRAIN" "$@" -q --no-progress >"$tmp/log" 2>&1; then
		echo "not ok frozen_stats $name: $(tail -n 1 "$tmp/log")"
		exit 1
	fi
}
go first run "$cfg" -o "$tmp/first" --device "${PARITY_DEVICE:-cpu}"
go second run "$cfg" -o "$tmp/second" --device "${PARITY_DEVICE:-cpu}" --init "$tmp/first/latest/model.safetensors" -s "$groups" \
	-s train.steps=40
go half run "$cfg" -o "$tmp/half" --device "${PARITY_DEVICE:-cpu}" --init "$tmp/first/latest/model.safetensors" -s "$groups" \
	-s train.steps=17 -s 'reproducible="run"'
go whole run "$cfg" -o "$tmp/whole" --device "${PARITY_DEVICE:-cpu}" --init "$tmp/first/latest/model.safetensors" -s "$groups" \
	-s train.steps=40 -s 'reproducible="run"'
go resumed resume "$tmp/half" -s train.steps=40
if cmp -s "$tmp/half/latest/model.safetensors" "$tmp/whole/latest/model.safetensors"; then echo 'ok frozen_stats_resume'; else
	echo 'not ok frozen_stats_resume: 17 steps and 23 resumed ones are not the same bits as 40'; fi
python3 - "$golden" "$tmp/first" "$tmp/second" <<'END'
import json, math, os, struct, sys
golden, first, second = sys.argv[1:]
def read(run):
    raw = open(os.path.join(run, "latest", "model.safetensors"), "rb").read()
    n = struct.unpack("<Q", raw[:8])[0]
    out = {}
    for name, t in json.loads(raw[8:8 + n]).items():
        if name != "__metadata__":
            b = raw[8 + n + t["data_offsets"][0]:8 + n + t["data_offsets"][1]]
            out[name] = struct.unpack(f"<{math.prod(t['shape'])}{'q' if t['dtype'] == 'I64' else 'f'}", b)
    return out
loss, want = {}, {}
for line in open(golden):
    w = line.split()
    if w[0] == "loss":
        loss[int(w[1])] = float(w[2])
    elif w[0] == "at":
        want[w[1]] = (int(w[2]), float(w[3]), float(w[4]))
a, b = read(first), read(second)
got = {e["step"]: e["loss"] for e in map(json.loads, open(os.path.join(second, "metrics.jsonl"))) if e["event"] == "train"}
def say(name, ok, why):
    print(f"ok {name}" if ok else f"not ok {name}: {why}")
# Rounding in f32 over 60 steps of small, smooth nets. With batch statistics instead of running ones the first loss is 9e-3 away.
worst = max(abs(got[t] - v) / v for t, v in loss.items())
print(f"# frozen_stats: worst relative difference of the loss to PyTorch, 40 steps: {worst:.2e}")
say("frozen_stats_losses", len(loss) == 40 and worst < 1e-4, f"{worst:.3e}")
far = {}
for name, (n, norm, total) in want.items():
    v = b[name]
    far[name] = max(abs(math.sqrt(sum(x * x for x in v)) - norm), abs(sum(v) - total) / math.sqrt(n)) / norm if len(v) == n else math.inf
worst = max(far, key=far.get)
print(f"# frozen_stats: worst relative difference of a tensor: {worst} {far[worst]:.2e}")
say("frozen_stats_tensors", len(want) == len(b) == 21 and far[worst] < 1e-4, f"{worst}: {far[worst]:.3e}")
kinds = ("running_mean", "running_var", "num_batches_tracked")
say("frozen_stats_stay", all(a[f"{m}.{k}"] == b[f"{m}.{k}"] for m in ("bn1", "bn2") for k in kinds), "statistics of bn1 or bn2 moved")
say("frozen_stats_default_moves", all(a[f"bn3.{k}"] != b[f"bn3.{k}"] for k in kinds), "statistics of bn3 stayed")
say("frozen_stats_parameters", all((a[f"{m}.weight"] == b[f"{m}.weight"]) == (m != "bn2") for m in ("bn1", "bn2", "bn3")),
    "what is frozen moved, or bn2 did not")
END
