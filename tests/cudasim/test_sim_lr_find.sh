#!/bin/bash
# gtrain lr-find on the host's CUDA runtime: where several steps are queued, where fp16 skips steps, with samples that are fetched, and on
# two ranks, its losses are those of a run with the same rate.
set -u
# shellcheck source=tests/cudasim/sim.sh
. "$GTRAIN_SRC/tests/cudasim/sim.sh"
sim_begin lr_find
cat >"$tmp/net.cfg" <<'CFG'
schema = 1; name = "net"; seed = 3; reproducible = "run";
data = { name = "synthetic"; batch = 32; classes = 4; samples = 400; samples_test = 32; };
model = { input = [3, 4, 4]; layers = ( { type = "flatten"; }, { name = "fc1"; type = "linear"; out = 17; }, { type = "gelu"; },
	{ name = "fc"; type = "linear"; out = 4; } ); };
train = { epochs = 20; steps = 12; eval_every_epochs = 0; optimizer = { type = "adam"; lr = 0.01; }; };
checkpoint = { dir = ""; };
log = { every_steps = 1; };
CFG
# as_run NAME OPTIONS...: 12 full batches an epoch. The rates differ by one in a million, and losses by less than bf16 can show.
as_run() {
	local name=$1 why
	shift
	if ! "$sim/bin/gtrain" run "$tmp/net.cfg" --device cuda --json -q "$@" >"$tmp/run" 2>"$tmp/err" ||
		! "$sim/bin/gtrain" lr-find "$tmp/net.cfg" --device cuda --json -q --from 0.01 --to 0.01000001 --steps 20 "$@" >"$tmp/find" \
			2>"$tmp/err"; then
		echo "not ok $name: $(tail -n 1 "$tmp/err")"
	elif why=$(python3 -c '
import json, sys
run = [e["loss"] for e in map(json.loads, open(sys.argv[1])) if e["event"] == "train"]
skips = sum(e["event"] == "skip" for e in map(json.loads, open(sys.argv[1])))
loss = [p["loss"] for p in json.load(open(sys.argv[2]))["curve"]]
assert len(run) == 12 and len(loss) == 20, (len(run), len(loss))
if sys.argv[3] == "fp16":
    assert skips > 2, skips
    run, loss = run[:6], loss[:6]  # a skipped step uses a batch, so the first epoch ends earlier
assert all(abs(a - b) <= 1e-3 * (1 + b) for a, b in zip(run, loss)), (run, loss)
' "$tmp/run" "$tmp/find" "$name" 2>&1); then
		echo "ok $name"
	else
		echo "not ok $name: $(tail -n 1 <<<"$why")"
	fi
}
as_run fp32
as_run bf16 -s precision=bf16
as_run fp16 -s precision=fp16 -s train.loss_scale.init=1.0e9
as_run fetched -s 'data.augment=({type="rotate";degrees=10.0;})'
as_run ranks -s parallel.mode=ddp --nproc 2
