#!/bin/bash
# Ranks that share a GPU, processes or threads (dp), on the host's CUDA runtime: what joins them goes through host memory. The curve is that
# of one rank on the GPU.
# tests/run: beside others
set -u
# shellcheck disable=SC2153 # tests/run sets it
. "$GTRAIN_SRC/tests/cudasim/sim.sh"
sim_begin staged
export CUDASIM_UNORDERED=1 # what is compared bit by bit must not rely on an order that a GPU's libraries do not promise
cat >"$tmp/c.cfg" <<'C'
schema = 1;
name = "staged";
seed = 5;
reproducible = "run"; /* without, a GPU's libraries may add in another order in the next run */
device = "cuda";
data = { name = "synthetic"; samples = 70; samples_test = 30; classes = 4; batch = 16; };
model = { input = [2, 6, 6]; layers = (
	{ type = "conv2d"; out = 8; kernel = 3; padding = 1; }, { type = "silu"; }, { type = "flatten"; }, { type = "dropout"; p = 0.1; },
	{ type = "linear"; out = 24; }, { name = "a"; type = "gelu"; }, { name = "b"; type = "linear"; out = 24; },
	{ type = "add"; in = ["a", "b"]; },
	{ type = "linear"; out = 4; } ); };
train = { epochs = 2; clip_norm = 0.5; optimizer = { type = "adamw"; lr = 1.0e-3; }; };
log = { every_steps = 1; };
C
losses() { sed -n 's/.*"event":"train".*"loss":\([^,]*\),.*/\1/p' "$tmp/$1/metrics.jsonl"; }
run() { # name, options
	local name=$1
	shift
	"$sim/bin/gtrain" run "$tmp/c.cfg" -o "$tmp/$name" "$@" >"$tmp/log" 2>&1 ||
		{ echo "not ok staged_$name: $(tail -n 1 "$tmp/log")"; return 1; }
}
# f32, another order of sums: a few 1e-8 after ten steps of a smooth network. On a GPU libraries choose other kernels for a part of a batch.
near() { paste <(losses "$1") <(losses one) | awk -v limit="${STAGED_LIMIT:-1e-6}" 'BEGIN { w = 0 } { d = $1 - $2; if (d < 0) d = -d;
	if (d / $2 > w) w = d / $2; n++ } END { print w; exit !(n == 10 && w < limit) }'; }
# On a GPU a process takes seconds to start: there one number of ranks each, and a schedule and a way across replicas of each kind.
modes='dp: ddp:1 zero:1 zero:2 zero:3' counts='2 3' schedules='gpipe 1f1b interleaved zero-bubble'
grids='1f1b:2:1:ddp 1f1b:3:1:ddp interleaved:2:1:ddp 1f1b:4:2:ddp zero-bubble:4:2:zero interleaved:4:2:zero'
[ -z "${GTRAIN_SIM:-}" ] || counts=2 schedules='1f1b zero-bubble' grids='1f1b:4:2:ddp interleaved:4:2:zero'
run one || exit 1
for mode in $modes; do
	for ranks in $counts; do
		name=${mode%:*}${mode#*:}_$ranks
		opts=(-s "parallel.mode=${mode%:*}" --nproc "$ranks")
		[ "${mode%:*}" = dp ] || opts+=(-s parallel.bucket_mb=0.002)
		[ "${mode%:*}" = zero ] && opts+=(-s "parallel.stage=${mode#*:}")
		run "$name" "${opts[@]}" || continue
		if worst=$(near "$name") && grep -q 'host-staged' "$tmp/log"; then
			echo "ok staged_$name"
		else
			echo "not ok staged_$name: loss differs by $worst: $(head -n 1 "$tmp/log")"
		fi
	done
done
# Gradients in bf16: their conversions are on the stream of the collectives. A gradient changes by at most 0.4 %.
for mode in ddp zero; do
	run "compress_$mode" -s "parallel.mode=$mode" --nproc 2 -s parallel.bucket_mb=0.002 -s parallel.compress=bf16 || continue
	if worst=$(STAGED_LIMIT=1e-3 near "compress_$mode") && [ "$worst" != 0 ]; then
		echo "ok staged_compress_$mode"
	else
		echo "not ok staged_compress_$mode: loss differs by $worst: $(head -n 1 "$tmp/log")"
	fi
done
# A pipeline: transfers are on a stream of their own, which the simulator runs as late as it may, and batches that several micro-batches
# keep lie in several buffers. Sums of gradients over three pieces of a batch: another order again.
for schedule in $schedules; do
	for ranks in $counts; do
		name=${schedule}_$ranks
		run "$name" -s parallel.mode=pipe -s "parallel.schedule=$schedule" -s parallel.chunks=3 --nproc "$ranks" || continue
		if worst=$(near "$name") && grep -q 'host-staged' "$tmp/log"; then
			echo "ok staged_$name"
		else
			echo "not ok staged_$name: loss differs by $worst: $(head -n 1 "$tmp/log")"
		fi
	done
done
run 1f1b_2x2 -s parallel.mode=pipe -s parallel.chunks=2 -s parallel.replicas=2 --nproc 4 && {
	if worst=$(near 1f1b_2x2); then echo 'ok staged_1f1b_2x2'; else echo "not ok staged_1f1b_2x2: loss differs by $worst"; fi
}

# A pipeline, and copies of it; gradients in several buckets, joined on a stream of their own while the backward pass goes on.
for mode in $grids; do
	IFS=: read -r schedule ranks copies across <<<"$mode"
	name=${schedule}_${ranks}_${across}
	run "$name" -s parallel.mode=pipe --nproc "$ranks" -s "parallel.schedule=$schedule" -s "parallel.replicas=$copies" -s \
		"parallel.across=$across" -s parallel.chunks=2 \
		-s parallel.bucket_mb=0.002 || continue
	if worst=$(near "$name") && grep -q 'host-staged' "$tmp/log"; then
		echo "ok staged_$name"
	else
		echo "not ok staged_$name: loss differs by $worst: $(head -n 1 "$tmp/log")"
	fi
done

# Batch normalisation in a pipeline: in fp16, with steps that are skipped, on one stage and on two; and in fp32 as on the CPU.
# (no bias before it: its gradients are nothing but rounding)
sed 's/padding = 1; }/padding = 1; bias = false; }/; s/{ type = "silu"; }/{ name = "bn"; type = "batchnorm2d"; }, &/
	s/log = /checkpoint = { dir = "unused"; every_epochs = 0; }; log = /' "$tmp/c.cfg" >"$tmp/bn.cfg"
pipe=(-s parallel.mode=pipe -s parallel.chunks=4 -s train.accumulate=2)
digest() { sha256sum <"$tmp/$1/latest/model.safetensors"; }
bn() { # name, options
	local name=$1
	shift
	"$sim/bin/gtrain" run "$tmp/bn.cfg" -o "$tmp/$name" "${pipe[@]}" "$@" >"$tmp/log" 2>&1 ||
		{ echo "not ok staged_$name: $(tail -n 1 "$tmp/log")"; return 1; }
}
half=(-s precision=fp16 -s reproducible=run -s train.loss_scale.init=1.0e9 -s train.epochs=4 -s train.loss_scale.interval=7)
bn fp16_one "${half[@]}" --nproc 1
bn fp16_two "${half[@]}" --nproc 2
why=''
[ "$(digest fp16_one)" = "$(digest fp16_two)" ] || why='other bits on two stages'
[ "$(grep -c '"event":"skip"' "$tmp/fp16_two/metrics.jsonl")" -ge 3 ] || why="$why no step was skipped"
if [ -z "$why" ]; then echo 'ok staged_pipe_fp16'; else echo "not ok staged_pipe_fp16: $why"; fi
if [ -z "${GTRAIN_SIM:-}" ]; then # on a GPU: the table of operations has this
	bn sim --nproc 2
	bn host --nproc 2 --device cpu
	# f32 on both: a loss in 1e-5, weights and statistics in 1e-4 of their tensor's largest, as in test_modes.sh
	if got=$("$GTRAIN_BUILD/tests/par/tool_same" -l 1e-5 -w 1e-4 -m 1e-3 "$tmp/host" "$tmp/sim"); then
		echo 'ok staged_pipe'
	else
		echo "not ok staged_pipe: $got"
	fi
fi

# Clocks that go at other speeds: ranks have the same windows all the same, and ask each other behind the same ones.
cat >"$tmp/quick.cfg" <<'C'
schema = 1;
name = "quick";
device = "cuda";
data = { name = "synthetic"; samples = 6000; samples_test = 12; classes = 4; batch = 12; };
model = { input = [1, 4, 4]; layers = ( { type = "flatten"; }, { type = "linear"; out = 8; }, { type = "gelu"; },
	{ type = "linear"; out = 4; } ); };
train = { epochs = 1; optimizer = { type = "sgd"; lr = 0.01; }; };
parallel = { mode = "ddp"; timeout = 2000.0; };
C
clock=$GTRAIN_BUILD/tests/cudasim/fast_clock.so # a folder of `make gpu-folder` brings it along
if [ ! -e "$clock" ]; then
	clock=$tmp/fast_clock.so
	${CC:-gcc} -O1 -shared -fPIC -D_GNU_SOURCE "$(dirname "$0")/fast_clock.c" -o "$clock" -ldl 2>"$tmp/log" || clock=
fi
if [ -z "$clock" ]; then
	echo "skip staged_clocks: ${CC:-gcc} cannot make fast_clock.so: $(head -n 1 "$tmp/log")"
elif LD_PRELOAD=$clock "$sim/bin/gtrain" run "$tmp/quick.cfg" -o "$tmp/quick" --nproc 3 >"$tmp/log" 2>&1 &&
	grep -q '"status":"ok"' "$tmp/quick/metrics.jsonl"; then
	echo 'ok staged_clocks'
else
	echo "not ok staged_clocks: $(tail -n 1 "$tmp/log")"
fi

# The first step loads kernels, which takes longer than a rank may otherwise be without progress (1.5 s) or wait for others (4 s).
if CUDASIM_LOAD_S=4.5 "$sim/bin/gtrain" run "$tmp/c.cfg" -o "$tmp/slow" --nproc 2 -s parallel.mode=ddp -s parallel.timeout=1.5 \
	>"$tmp/log" 2>&1; then
	echo 'ok staged_slow_first_step'
else
	echo "not ok staged_slow_first_step: $(tail -n 1 "$tmp/log")"
fi

# A rank that fails and then takes longer to close than the launcher waits: the run ends with its own error.
CUDASIM_CLOSE_S=6 "$sim/bin/gtrain" run "$tmp/c.cfg" -o "$tmp/nan" --nproc 2 -s parallel.mode=ddp -s parallel.timeout=1.5 \
	-s train.optimizer.lr=1e30 -s train.clip_norm=0 >"$tmp/log" 2>&1
rc=$?
if [ $rc = 3 ] && grep -q 'rank [01]: .*step' "$tmp/log"; then
	echo 'ok staged_slow_close'
else
	echo "not ok staged_slow_close: status $rc: $(tail -n 1 "$tmp/log")"
fi

# Mode dp has no graphs on several GPUs and says so.
says() {
	"$sim/bin/gtrain" check "$tmp/c.cfg" -s parallel.mode=dp -s parallel.nproc=2 "$@" 2>&1 |
		grep -c 'dp runs on several GPUs without CUDA graphs'
}
if [ "$(says)" = 1 ] && [ "$(says -s cuda_graphs=false)" = 0 ]; then
	echo 'ok dp_without_graphs'
else
	echo "not ok dp_without_graphs: $(says) and $(says -s cuda_graphs=false) warnings"
fi
