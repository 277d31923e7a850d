#!/bin/bash
# Muon in two parts (engine/plan/update_directions.h) on the host's CUDA runtime: the directions are computed on a second stream beside the
# backward pass. The bits are those of muon in one call (update_stream = false), in windows, with graphs, on two ranks, across the border
# of freeze_after and after a resume. The simulator runs the second stream as late as events allow, and with CUDASIM_AHEAD as early: each
# wait that is left out must change the result in one of these orders.
# tests/run: beside others
set -u
# shellcheck source=tests/cudasim/sim.sh disable=SC2153
. "$GTRAIN_SRC/tests/cudasim/sim.sh"
sim_needed update_stream
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export CUDASIM_STATS=1

# 12 steps of 16 samples and one of 8 in an epoch. Runs of shapes c3 c2 and f1, two optimizers; c1 is frozen after the first epoch.
cat >"$tmp/net.cfg" <<'CFG'
schema = 1; name = "net"; seed = 3; reproducible = "run"; # without, a GPU's libraries may add in another order in the next run
data = { name = "synthetic"; batch = 16; classes = 4; samples = 200; samples_test = 32; };
model = { input = [3, 8, 8]; layers = ( { name = "c1"; type = "conv2d"; out = 8; kernel = 3; padding = 1; }, { type = "relu"; },
	{ name = "c2"; type = "conv2d"; out = 8; kernel = 3; padding = 1; bias = false; }, { type = "relu"; },
	{ name = "c3"; type = "conv2d"; out = 8; kernel = 3; padding = 1; bias = false; }, { type = "relu"; },
	{ type = "flatten"; }, { name = "f1"; type = "linear"; out = 20; }, { type = "relu"; }, { name = "fc"; type = "linear"; out = 4; } ); };
train = { epochs = 3; optimizer = { type = "sgd"; lr = 0.02; momentum = 0.9; };
	groups = ( { match = "c1.*"; freeze_after = 1.0; },
		{ match = "c?.weight"; optimizer = { type = "muon"; lr = 0.02; ns_steps = 3; normalize = true; }; },
		{ match = "f1.weight"; optimizer = { type = "muon"; lr = 0.01; ns_steps = 4; nesterov = false; }; } ); };
checkpoint = { dir = "unused"; every_steps = 7; keep = 99; };
log = { every_steps = 1; };
CFG
losses() { sed -nE 's/.*"event":"(train|eval)","step":([0-9]+).*"loss":([^,}]+).*/\1 \2 \3/p' "$1/metrics.jsonl"; }
digest() { cat "$1/latest/model.safetensors" "$1/latest/optimizer.safetensors" 2>/dev/null | sha256sum | cut -d' ' -f1; }
train() { # DIR ARGS...
	local dir=$1
	shift
	rm -rf "$dir"
	"$sim/bin/gtrain" run "$tmp/net.cfg" --device cuda --no-progress -o "$dir" "$@" >"$dir.out" 2>&1
	echo $? >"$dir.rc"
}
ok() { # NAME WHY: ok where WHY is empty
	if [ -z "$2" ]; then echo "ok update_stream_$1"; else echo "not ok update_stream_$1: $2"; fi
}
# differs A B: prints how two runs differ in status, curve, weights or momentum; nothing if they do not
differs() {
	[ "$(cat "$1.rc" "$2.rc")" = $'0\n0' ] || { echo "status $(cat "$1.rc" "$2.rc" | tr '\n' ' '): $(tail -qn 1 "$1.out" "$2.out" |
		tr '\n' ' ')"; return; }
	[ "$(losses "$1" | wc -l)" -ge 3 ] || { echo 'no losses'; return; }
	cmp -s <(losses "$1") <(losses "$2") || { echo "the curves differ: $(diff <(losses "$1") <(losses "$2") | sed -n 2p)"; return; }
	[ "$(digest "$1")" = "$(digest "$2")" ] || echo 'the weights differ'
}
# same NAME OPTIONS...: one muon and two parts, of which the second stream is late or early, end with the same bits
same() {
	local name=$1
	shift
	train "$tmp/one" -s update_stream=false "$@"
	train "$tmp/late" "$@"
	ok "$name" "$(differs "$tmp/one" "$tmp/late")"
	[ -z "${GTRAIN_SIM:-}" ] || return # a GPU has an order of its own
	CUDASIM_AHEAD=1 train "$tmp/early" "$@"
	ok "${name}_ahead" "$(differs "$tmp/one" "$tmp/early")"
}
same single
same window_of_1 -s window=1
same without_graphs -s cuda_graphs=false
same accumulate -s train.accumulate=2
same bf16 -s 'precision="bf16"'
same ema -s train.ema.decay=0.9
same frozen -s 'train.groups[1].freeze_after=2.0' -s 'train.groups[2].frozen_until=1.0'
same two_ranks -s 'parallel.mode="ddp"' -s parallel.nproc=2 -s parallel.bucket_mb=0.002
same two_ranks_accumulate -s 'parallel.mode="ddp"' -s parallel.nproc=2 -s train.accumulate=2
same two_stages -s 'parallel.mode="pipe"' -s parallel.nproc=2 -s parallel.chunks=2
same two_threads -s 'parallel.mode="dp"' -s parallel.nproc=2
GTRAIN_CUDA_PDL=1 train "$tmp/pdl"
train "$tmp/plain"
ok kernels_that_come_early "$(differs "$tmp/plain" "$tmp/pdl")"

# A run that ends at a checkpoint before, or after, the border at step 13 and goes on, with the other muon, to the same bits.
for at in 7 14; do
	train "$tmp/cut" -s train.epochs=3 -s update_stream=false
	rm -rf "$tmp"/cut/{latest,best}
	for d in "$tmp"/cut/step-*; do
		[ "${d##*-}" -le $at ] 2>/dev/null || [ "$((10#${d##*-}))" -le $at ] || rm -rf "$d"
	done
	"$sim/bin/gtrain" resume "$tmp/cut" --device cuda -q --no-progress -s update_stream=true >"$tmp/cut.out" 2>&1
	echo $? >"$tmp/cut.rc"
	why=
	[ "$(cat "$tmp/cut.rc")" = 0 ] && [ "$(digest "$tmp/cut")" = "$(digest "$tmp/plain")" ] ||
		why="status $(cat "$tmp/cut.rc"), or the weights differ: $(tail -n 1 "$tmp/cut.out")"
	ok "resume_after_step_$at" "$why"
done

# A step that is not finite stops both before they change anything.
for k in false true; do
	train "$tmp/nan_$k" -s update_stream=$k -s train.optimizer.lr=1e30
	sed -i -n '/diverged/s/.*diverged/diverged/p' "$tmp/nan_$k.out"
done
why=
[ "$(cat "$tmp/nan_false.rc")" = "$(cat "$tmp/nan_true.rc")" ] && [ -s "$tmp/nan_true.out" ] && cmp -s "$tmp"/nan_{false,true}.out ||
	why="$(cat "$tmp"/nan_{false,true}.rc "$tmp"/nan_{false,true}.out | tr '\n' ' ')"
ok divergence "$why"

# ---- what the plan says, and the choices ---------------------------------------------------------------------------------------------
says() { # NAME TEXT OPTIONS...
	local name=$1 text=$2
	shift 2
	"$sim/bin/gtrain" plan "$tmp/net.cfg" --device cuda "$@" >"$tmp/plan" 2>&1
	if grep -qF "$text" "$tmp/plan"; then ok "$name" ''; else ok "$name" "$(grep '^# muon' "$tmp/plan" | head -n 1)"; fi
}
says planned '# muon: its directions are computed on stream 2 beside the backward pass, in 2 groups'
says accumulated 'in 2 groups' -s train.accumulate=2
# Runs of one matrix: 20 x 512, and four times 24 x 20 and 20 x 24. Three shapes in one call, so at most six batches.
layers='{type="flatten";},{name="f0";type="linear";out=20;}'
for i in 1 2 3 4; do layers+=",{name=\"f${i}a\";type=\"linear\";out=24;},{name=\"f${i}b\";type=\"linear\";out=20;}"; done
repeated=(-s "model.layers=({name=\"c1\";type=\"conv2d\";out=8;kernel=3;padding=1;},$layers,{name=\"fc\";type=\"linear\";out=4;})"
	-s 'train.groups=({match=["f[0-9]*.weight"];optimizer={type="muon";lr=0.01;ns_steps=3;};})')
says repeated 'in 2 groups' "${repeated[@]}"
says in_one_bucket 'in 1 group' "${repeated[@]}" -s 'parallel.mode="ddp"' --world 2
says in_buckets 'in 2 groups' "${repeated[@]}" -s 'parallel.mode="ddp"' --world 2 -s parallel.bucket_mb=0.002
# A GPU's library may choose another algorithm for a batch of another size.
[ -n "${GTRAIN_SIM:-}" ] || same repeated_trains "${repeated[@]}"
says key '# muon: one call after the backward pass: update_stream = false' -s update_stream=false
says clipped 'pass: train.clip_norm' -s train.clip_norm=1.0
says scaled 'pass: the loss scale of precision fp16' -s 'precision="fp16"'
says world 'pass: reproducible = "world"' -s 'reproducible="world"'
same clipped_trains -s train.clip_norm=1.0

# ---- a wait that is missing -----------------------------------------------------------------------------------------------------------
# Three steps without graphs have three waits each: two calls of muon.directions for their gradients, and muon.apply for the directions.
# With graphs, in windows of one, the first step is not captured; the graph of the second one has three more. A capture that another
# stream leaves without a wait fails.
if [ -z "${GTRAIN_SIM:-}" ]; then
	for graphs in false true; do
		short=(-s train.steps=3 -s window=1 -s "cuda_graphs=$graphs" -s checkpoint.every_steps=3 -s train.eval_every_epochs=0)
		train "$tmp/right" "${short[@]}"
		waits=$(sed -n 's/^cudasim: \([0-9]*\) waits.*/\1/p' "$tmp/right.out")
		missed=0 unseen=
		for ((n = 1; n <= ${waits:-0}; n++)); do
			CUDASIM_DROP_WAIT=$n train "$tmp/late" "${short[@]}"
			CUDASIM_DROP_WAIT=$n CUDASIM_AHEAD=1 train "$tmp/early" "${short[@]}"
			if [ -n "$(differs "$tmp/right" "$tmp/late")" ] || [ -n "$(differs "$tmp/right" "$tmp/early")" ]; then
				missed=$((missed + 1))
			else
				unseen+=" $n"
			fi
		done
		want=9
		[ $graphs = false ] || want=6
		why=
		[ "${waits:-0}" = $want ] && [ $missed = $want ] || why="of $want waits, ${waits:-0} were made; not missed:$unseen"
		name=without_graphs
		[ $graphs = false ] || name=in_graphs
		ok "every_wait_is_needed_$name" "$why"
	done
fi
