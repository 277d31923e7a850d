#!/bin/bash
# Weights before a relu stop being finite in a step whose loss was, on the host's CUDA runtime, whose cuBLASLt makes 0 of a NaN in a relu
# epilogue as NVIDIA's does, and whose cuDNN does unless it is told to pass NaN on: the run ends with 3, names the layer or the parameter,
# and has neither evaluated nor saved anything. Linear and convolution, four precisions; with the CPU's kernels too.
# tests/run: beside others
set -u
# shellcheck source=tests/cudasim/sim.sh
. "$GTRAIN_SRC/tests/cudasim/sim.sh"
sim_begin sim_nan
head='schema = 1; name = "nan"; seed = 3; autotune = false;
data = { name = "synthetic"; batch = 16; classes = 4; samples = 64; samples_test = 16; };
train = { epochs = 2; optimizer = { type = "sgd"; lr = 0.01; }; groups = ( { match = "first.*"; optimizer = { type = "sgd"; lr = 1.0e39;
}; } ); };
checkpoint = { dir = "unused"; best = { metric = "test/acc"; }; };
log = { every_steps = 1; };'
cat >"$tmp/linear.cfg" <<CFG
$head
model = { input = [1, 8, 8]; layers = ( { type = "flatten"; }, { name = "first"; type = "linear"; out = 32; }, { type = "relu"; },
	{ name = "last"; type = "linear"; out = 4; } ); };
CFG
cat >"$tmp/conv.cfg" <<CFG
$head
model = { input = [8, 8, 8]; layers = ( { name = "first"; type = "conv2d"; out = 16; kernel = 3; padding = 1; }, { type = "relu"; },
	{ type = "global_avgpool"; },
	{ type = "flatten"; }, { name = "last"; type = "linear"; out = 4; } ); };
CFG
for net in linear conv; do
	for run in cuda:fp32 cuda:tf32 cuda:bf16 cuda:fp16 cpu:fp32 cpu:bf16; do
		name=nan_${net}_${run/:/_} dir=$tmp/$net-${run/:/-}
		"$sim/bin/gtrain" run "$tmp/$net.cfg" -q --no-progress -o "$dir" --device "${run%:*}" -s "precision=${run#*:}" >"$tmp/out" 2>&1
		rc=$?
		if [ $rc != 3 ]; then
			echo "not ok $name: ended with $rc, not 3: $(tail -n 1 "$tmp/out")"
		elif ! grep -q 'first' "$tmp/out"; then
			echo "not ok $name: neither layer nor parameter is named: $(tail -n 1 "$tmp/out")"
		elif compgen -G "$dir/step-*" >/dev/null || grep -q '"event":"eval"' "$dir/metrics.jsonl"; then
			echo "not ok $name: something was evaluated or saved"
		else
			echo "ok $name"
		fi
	done
done
