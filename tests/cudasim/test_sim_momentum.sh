#!/bin/bash
# The cycled momentum of the schedule onecycle on the host's CUDA runtime: the losses of the CPU, with every optimizer.
# tests/run: beside others
set -u
# shellcheck source=tests/cudasim/sim.sh
. "$GTRAIN_SRC/tests/cudasim/sim.sh"
sim_begin sim_momentum
cat >"$tmp/net.cfg" <<'CFG'
schema = 1;
name = "net";
seed = 3;
data = { name = "synthetic"; batch = 16; classes = 4; samples = 64; samples_test = 16; };
model = { input = [1, 6, 6]; layers = ( { type = "flatten"; }, { name = "fc1"; type = "linear"; out = 16; }, { type = "relu"; },
	{ name = "fc2"; type = "linear"; out = 4; } ); };
train = { epochs = 2; optimizer = { type = "sgd"; lr = 0.05; momentum = 0.5; nesterov = true; }; schedule = { type = "onecycle"; }; };
checkpoint = { every_epochs = 0; };
log = { every_steps = 1; };
CFG
losses() {
	grep '"event":"train"' "$1/metrics.jsonl" | grep -o '"loss":[^,]*' | cut -d: -f2
}
# near NAME ARGS...
near() {
	local name=$1
	shift
	for run in 'cpu true' 'cuda true' 'cpu false'; do
		"$sim/bin/gtrain" run "$tmp/net.cfg" -q --no-progress --device "${run% *}" -o "$tmp/$name-${run/ /-}" "$@" \
			-s "train.schedule.cycle_momentum=${run#* }" >"$tmp/log" 2>&1 || echo "not ok $name: $(tail -n 1 "$tmp/log")"
	done
	# Eight steps in f32, whose sums have another order; a constant momentum differs by more than 100 times as much.
	paste <(losses "$tmp/$name-cpu-true") <(losses "$tmp/$name-cuda-true") <(losses "$tmp/$name-cpu-false") |
		awk -v name="$name" '
			function apart(x, y) { return x > y ? (x - y) / x : (y - x) / x }
			{ n++; a = apart($1, $2) > a ? apart($1, $2) : a; b = apart($1, $3) > b ? apart($1, $3) : b }
			END {
				if (n == 8 && a < 1e-5 && b > 1e-3)
					print "ok sim_momentum_" name
				else
					print "not ok sim_momentum_" name ": " n " steps, off by " a + 0 ", without the cycle by " b + 0
			}'
}
near windows
near clipped -s train.clip_norm=0.5
near rmsprop -s 'train.optimizer={type="rmsprop";lr=0.005;momentum=0.5;}'
near adam -s 'train.optimizer={type="adam";lr=0.005;}'
near adam_clipped -s 'train.optimizer={type="adam";lr=0.005;}' -s train.clip_norm=0.5
near radam -s 'train.optimizer={type="radam";lr=0.05;}' # its steps are small at the beginning
near lamb -s 'train.optimizer={type="lamb";lr=0.005;}' -s train.clip_norm=0.5
near lion -s 'train.optimizer={type="lion";lr=0.01;}'
near muon -s 'train.optimizer={type="muon";lr=0.05;}' \
	-s 'train.groups=({match="*.bias";optimizer={type="sgd";lr=0.05;momentum=0.8;};schedule={type="constant";};})'
