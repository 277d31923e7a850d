#!/bin/bash
# Ranks that share a GPU, processes or threads (dp), on the host's CUDA runtime: what joins them goes through host memory. The curve is that
# of one rank on the GPU.
set -u
. "$GTRAIN_SRC/tests/cudasim/sim.sh"
sim_needed staged
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cat >"$tmp/c.cfg" <<'C'
schema = 1;
name = "staged";
seed = 5;
device = "cuda";
data = { name = "synthetic"; samples = 70; samples_test = 30; classes = 4; batch = 16; };
model = { input = [2, 6, 6]; layers = (
	{ type = "conv2d"; out = 8; kernel = 3; padding = 1; }, { type = "silu"; }, { type = "flatten"; }, { type = "dropout"; p = 0.1; },
	{ type = "linear"; out = 24; }, { type = "gelu"; }, { type = "linear"; out = 4; } ); };
train = { epochs = 2; clip_norm = 0.5; optimizer = { type = "adamw"; lr = 1.0e-3; }; };
log = { every_steps = 1; };
C
losses() { sed -n 's/.*"event":"train".*"loss":\([^,]*\),.*/\1/p' "$tmp/$1/metrics.jsonl"; }
run() { # name, options
	local name=$1
	shift
	"$sim/bin/gtrain" run "$tmp/c.cfg" -o "$tmp/$name" "$@" >"$tmp/log" 2>&1 || { echo "not ok staged_$name: $(tail -n 1 "$tmp/log")"; return 1; }
}
# f32, another order of sums: a few 1e-8 after ten steps of a smooth network. On a GPU libraries choose other kernels for a part of a batch.
near() { paste <(losses "$1") <(losses one) | awk -v limit="${STAGED_LIMIT:-1e-6}" 'BEGIN { w = 0 } { d = $1 - $2; if (d < 0) d = -d; if (d / $2 > w) w = d / $2; n++ } END { print w; exit !(n == 10 && w < limit) }'; }
run one || exit 1
for mode in dp: ddp:1 zero:1 zero:2 zero:3; do
	for ranks in 2 3; do
		name=${mode%:*}${mode#*:}_$ranks
		opts=(-s "parallel.mode=${mode%:*}" --nproc "$ranks")
		[ "${mode%:*}" = dp ] || opts+=(-s parallel.bucket_mb=0.002)
		[ "${mode%:*}" = zero ] && opts+=(-s "parallel.stage=${mode#*:}")
		run "$name" "${opts[@]}" || continue
		if worst=$(near "$name") && grep -q 'host-staged' "$tmp/log"; then echo "ok staged_$name"; else echo "not ok staged_$name: loss differs by $worst: $(head -n 1 "$tmp/log")"; fi
	done
done
