#!/bin/bash
# A batch whose labels are all train.ignore_index: its loss is 0 and so is its gradient, where PyTorch has NaN (the manual says so). Batches
# of one sample, so that some are of that label.
# tests/run: beside others
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
cat >"$tmp/net.cfg" <<'CFG'
schema = 1; name = "net"; seed = 3;
data = { name = "synthetic"; batch = 1; classes = 4; samples = 24; samples_test = 16; };
model = { input = [1, 4, 4]; layers = ( { type = "flatten"; }, { name = "fc"; type = "linear"; out = 4; } ); };
train = { epochs = 1; ignore_index = 3; optimizer = { type = "sgd"; lr = 0.1; }; };
checkpoint = { dir = "unused"; every_steps = 1; keep = 99; };
log = { every_steps = 1; };
CFG
for loss in cross_entropy nll; do
	extra=()
	[ $loss = nll ] && extra=(-s 'model.layers=({type="flatten";},{name="fc";type="linear";out=4;},{type="log_softmax";})')
	run run "$tmp/net.cfg" -o "$tmp/$loss" -s "train.loss=$loss" "${extra[@]}"
	if [ "$rc" != 0 ]; then fail "all_ignored_$loss" "ended with $rc: $(head -n 1 "$tmp/err")"; continue; fi
	python3 - "$tmp/$loss" "all_ignored_$loss" <<'END'
import json, sys
run, name = sys.argv[1:]
loss = {e["step"]: e["loss"] for e in map(json.loads, open(run + "/metrics.jsonl")) if e["event"] == "train"}
weights = {t: open(f"{run}/step-{t:08d}/model.safetensors", "rb").read() for t in loss}
ignored = [t for t in loss if loss[t] == 0]
bad = [t for t in range(2, 25) if (weights[t] == weights[t - 1]) != (loss[t] == 0)]
ok = len(loss) == 24 and 2 <= len(ignored) <= 12 and not bad
print(f"ok {name}" if ok else f"not ok {name}: {len(ignored)} of {len(loss)} batches have loss 0; weights against that at steps {bad}")
END
done
