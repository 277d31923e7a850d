#!/bin/bash
# Steps that are queued in windows and replayed as graphs, on the host's CUDA runtime (test_cudasim.sh): the same bits as one by one, and
# nothing is lost where a window is cut short: evaluations, checkpoints, the short last batch, divergence, signals, the time limit.
# tests/run: beside others
set -u
# shellcheck source=tests/cudasim/sim.sh disable=SC2153
. "$GTRAIN_SRC/tests/cudasim/sim.sh"
sim_begin windows
export CUDASIM_UNORDERED=1 # what is compared bit by bit must not rely on an order that a GPU's libraries do not promise

# 79 steps an epoch, the last one of 4 samples (micro-batches of 16): windows of 64, 8 and 1 fit into it.
cat >"$tmp/net.cfg" <<'CFG'
schema = 1; name = "net"; seed = 3; reproducible = "run"; # without, a GPU's libraries may add in another order in the next run
data = { name = "synthetic"; batch = 32; classes = 4; samples = 2500; samples_test = 500; augment = ( { type = "pad_crop"; pad = 1; },
	{ type = "hflip"; } ); };
model = { input = [3, 4, 4]; layers = ( { type = "flatten"; }, { name = "fc1"; type = "linear"; out = 17; }, { type = "gelu"; },
	{ type = "dropout"; p = 0.2; }, { name = "fc"; type = "linear"; out = 4; } ); };
train = { epochs = 2; accumulate = 2; clip_norm = 1.0; optimizer = { type = "adam"; lr = 0.01; }; schedule = { type = "cosine"; }; };
checkpoint = { dir = "unused"; every_epochs = 1; keep = 99; };
log = { every_steps = 1; };
CFG
graphs() { sed -n 's/^cudasim: \([0-9]*\) graph launches.*/\1/p' "$1.out"; }

export CUDASIM_STATS=1
sim_train "$tmp/eager" -s cuda_graphs=false -s window=1
for w in 1 8 64; do
	sim_train "$tmp/w$w" -s window=$w
	sim_same "window_of_$w" "$tmp/eager" "$tmp/w$w"
done
sim_train "$tmp/eager64" -s cuda_graphs=false -s window=64
sim_same window_without_graphs "$tmp/eager" "$tmp/eager64"
if [ -z "${GTRAIN_SIM:-}" ]; then # the order of threads is the simulator's
	CUDASIM_FIRST=1 sim_train "$tmp/first" -s window=64
	sim_same window_first_thread_first "$tmp/eager" "$tmp/first"
fi
GTRAIN_CUDA_PDL=1 sim_train "$tmp/early" -s window=64
sim_same kernels_that_come_early "$tmp/eager" "$tmp/early"
n=$(sed -n 's/^cudasim: \([0-9]*\) kernels came before.*/\1/p' "$tmp/early.out") m=$(sed \
	-n 's/^cudasim: \([0-9]*\) kernels came before.*/\1/p' "$tmp/w64.out")
why=
[ "${n:-0}" -gt 1000 ] && [ "$m" = 0 ] || why="$n kernels, without the switch $m"
[ -n "${GTRAIN_SIM:-}" ] || ok kernels_come_early_when_asked "$why"
sim_train "$tmp/auto"
sim_same window_by_time "$tmp/eager" "$tmp/auto"
# Only the simulator counts.
# Of 2 * 79 steps and 2 * 16 batches of evaluation, one a program runs before its graph is made: 64s, 8s and 1s of the rest.
n1=$(graphs "$tmp/w1") n64=$(graphs "$tmp/w64") n0=$(graphs "$tmp/eager64")
why=
if [ -z "${GTRAIN_SIM:-}" ]; then
	[ "$n0" = 0 ] && [ "$n1" = $((2 * 79 - 2 + 2 * 16 - 2)) ] && [ "$n64" -lt 50 ] && [ "$n64" -gt 8 ] ||
		why="$n0, $n1 and $n64 graph launches"
	ok graphs_are_replayed "$why"
	echo "# windows: $n1 graph launches one by one, $n64 in windows of 64"
fi

# Evaluations and checkpoints where no window of 64 would end.
for o in a b; do
	s='cuda_graphs=false'
	[ $o = a ] || s='window=64'
	sim_train "$tmp/cut$o" -s "$s" -s train.eval_every_steps=13 -s checkpoint.every_steps=29 -s train.steps=180 -s data.drop_last=true
done
sim_same window_cut_by_events "$tmp/cuta" "$tmp/cutb"
why=
cmp -s <(ls "$tmp/cuta") <(ls "$tmp/cutb") || why='the checkpoints differ'
[ "$(find "$tmp/cutb" -name 'step-*' | wc -l)" -ge 8 ] || why="$(find "$tmp/cutb" -name 'step-*' | wc -l) checkpoints"
ok checkpoints_at_the_same_steps "$why"

# A step in the middle of a window diverges, the next window is queued already: the same words, the same losses before it.
for o in cuda_graphs=false window=8 window=64; do
	d=$tmp/nan-${o%=*}${o#*=}
	sim_train "$d" -s "$o" -s 'train.schedule={type="multistep";unit="step";milestones=[100];gamma=1e30;}' -s train.optimizer.type=sgd \
		-s train.clip_norm=0.0
	why=
	[ "$(cat "$d.rc")" = 3 ] || why="status $(cat "$d.rc")"
	grep -q 'diverged at step 10[0-9]: the output of .* is not finite, first for training sample [0-9]*; nothing was updated' "$d.out" ||
		why="$why: $(grep gtrain "$d.out" | tail -n 1)"
	cmp -s <(grep diverged "$d.out") <(grep diverged "$tmp/nan-cuda_graphsfalse.out") || why="$why: other words: $(grep diverged "$d.out")"
	cmp -s <(losses "$d") <(losses "$tmp/nan-cuda_graphsfalse") || why="$why: other losses"
	ok "diverges_inside_$o" "$why"
done

# SIGTERM among windows: a checkpoint of the last step told of, 143; what resumes it ends with the bits of the run that nobody disturbed.
for w in 8 64; do
	[ -z "${GTRAIN_SIM:-}" ] || break # a GPU has ended before the signal comes
	d=$tmp/sig$w
	"$sim/bin/gtrain" run "$tmp/net.cfg" --device cuda --no-progress -o "$d" -s window=$w >"$d.out" 2>&1 &
	pid=$!
	for _ in $(seq 200); do [ "$(losses "$d" 2>/dev/null | wc -l)" -gt 20 ] && break; sleep 0.02; done
	kill -TERM $pid
	wait $pid
	rc=$? why=
	last=$(losses "$d" | sed -n 's/^train \([0-9]*\) .*/\1/p' | tail -n 1)
	[ $rc = 143 ] || why="status $rc: $(tail -n 1 "$d.out")"
	[ -n "$why" ] || [ "$(readlink "$d/latest")" = "$(printf 'step-%08d' "$last")" ] ||
		why="stopped after step $last, the checkpoint is $(readlink "$d/latest")"
	"$sim/bin/gtrain" resume "$d" --device cuda --no-progress >"$d.out" 2>&1
	echo $? >"$d.rc"
	ok "sigterm_window_$w" "$why"
	sim_same "sigterm_window_${w}_resumes" "$tmp/eager" "$d"
	echo "# windows: SIGTERM stopped a run of windows of $w after step $last"
done

# Running statistics, saved statistics, indices of maxima: what a step leaves for the next one, or for its own backward pass.
cat >"$tmp/norm.cfg" <<'CFG'
schema = 1; name = "norm"; seed = 5; reproducible = "run";
data = { name = "synthetic"; batch = 16; classes = 4; samples = 300; samples_test = 40; };
model = { input = [3, 8, 8]; layers = ( { name = "bn"; type = "batchnorm2d"; }, { type = "maxpool2d"; kernel = 2; }, { type = "flatten"; },
	{ name = "fc1"; type = "linear"; out = 12; }, { name = "ln"; type = "layernorm"; }, { type = "relu"; },
	{ name = "fc"; type = "linear"; out = 4; } ); };
train = { epochs = 2; optimizer = { type = "sgd"; lr = 0.05; momentum = 0.9; nesterov = true; }; };
log = { every_steps = 1; };
CFG
for p in fp32 bf16; do
	for o in cuda_graphs=false window=8; do
		d=$tmp/norm-$p-${o%=*}
		"$sim/bin/gtrain" run "$tmp/norm.cfg" --device cuda --no-progress -o "$d" -s precision=$p -s $o >"$d.out" 2>&1
		echo $? >"$d.rc"
	done
	sim_same "norms_and_pools_$p" "$tmp/norm-$p-cuda_graphs" "$tmp/norm-$p-window"
done

# Convolutions, with everything at once: batch statistics, dropout, augmentation, accumulation, clipping, a short last batch.
for p in fp32 bf16 fp16; do
	for o in cuda_graphs=false window=8; do
		d=$tmp/cnn-$p-${o%=*}
		"$sim/bin/gtrain" run "$(dirname "$0")/../resume/resume.cfg" --device cuda --no-progress -o "$d" -s precision=$p -s $o \
			-s data.samples=165 -s train.epochs=2 -s checkpoint.every_steps=0 >"$d.out" 2>&1
		echo $? >"$d.rc"
	done
	sim_same "cnn_$p" "$tmp/cnn-$p-cuda_graphs" "$tmp/cnn-$p-window"
done

# What a checkpoint is evaluated to afterwards is what the run said; the benchmark walks the same windows, and times the steps one by one.
want=$(sed -nE 's/.*"event":"eval".*"loss":([^,]+),"acc":([^,}]+).*/\1 \2/p' "$tmp/w64/metrics.jsonl" | tail -n 1)
got=$("$sim/bin/gtrain" eval "$tmp/w64/latest/" --device cuda --json 2>"$tmp/out" |
	sed -nE 's/.*"loss":([^,]+),.*"acc[a-z]*":([^,}]+).*/\1 \2/p')
why=
awk -v a="$want" -v b="$got" 'BEGIN { split(a, x, " "); split(b, y, " "); d = x[1] - y[1]; if (d < 0) d = -d;
	exit !(x[1] > 0 && d < 1e-6 && x[2] - y[2] < 1e-6 && y[2] - x[2] < 1e-6) }' ||
	why="the run says $want, eval says $got: $(tail -n 1 "$tmp/out")"
ok eval_says_the_same "$why"
"$sim/bin/gtrain" bench "$tmp/net.cfg" --device cuda --steps 30 --json >"$tmp/bench" 2>"$tmp/out"
rc=$? why=
[ $rc = 0 ] && grep -q '"op":"linear"' "$tmp/bench" && grep -q '"op":"linear+loss"' "$tmp/bench" &&
	grep -qE '"op":"check"[^}]*"ms":[0-9.e-]*[1-9]' "$tmp/bench" || why="status $rc: $(tail -n 1 "$tmp/out")"
ok bench "$why"

# The time limit ends a run with a checkpoint.
"$sim/bin/gtrain" run "$tmp/net.cfg" --device cuda --no-progress -o "$tmp/time" --time-limit 1s -s train.epochs=100000 >"$tmp/time.out" 2>&1
rc=$? why=
[ $rc = 0 ] && grep -q '"status":"time limit"' "$tmp/time/metrics.jsonl" &&
	"$sim/bin/gtrain" inspect --verify "$tmp/time" >"$tmp/time.out" 2>&1 ||
	why="status $rc: $(tail -n 1 "$tmp/time/metrics.jsonl"): $(tail -n 1 "$tmp/time.out")"
ok time_limit "$why"
