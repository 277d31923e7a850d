#!/bin/bash
# Linear layers in which the batch, the inputs or the outputs are one, in four precisions, on the host's CUDA runtime: cuBLASLt has no
# epilogue for them (kernels/cuda/cublaslt.h), and kernels of our own do what the epilogues do. Then the same for every shape, and a
# training.
# tests/run: beside others
set -u
# shellcheck source=tests/cudasim/sim.sh
. "$GTRAIN_SRC/tests/cudasim/sim.sh"
sim_begin thin

# part NAME LEAST COMMAND...: as in test_cudasim.sh
part() {
	local name=$1 least=$2 n rc
	shift 2
	"$@" >"$tmp/log" 2>&1
	rc=$?
	n=$(grep -c '^ok ' "$tmp/log")
	if [ $rc = 0 ] && [ "$n" -ge "$least" ] && ! grep -q '^not ok' "$tmp/log"; then echo "ok $name"; else
		echo "not ok $name: status $rc, $n of $least passed: $(grep -m 1 '^not ok' "$tmp/log" || tail -n 1 "$tmp/log")"; fi
	echo "# thin: $name: $n checks"
}
none=BIAS,RELU,BGRADB,AUX,DRELU
part thin_layers_in_four_precisions 80 "$sim/tests/gpu/tool_table" linear # 20 layers, 10 of them with a dimension of 1
part thin_losses_in_three_precisions 12 "$sim/tests/gpu/tool_table" _one
part thin_calls 1 "$sim/tests/cudasim/tool_calls" linear
part linear_without_epilogues 60 env CUDASIM_NO_EPILOGUE=$none "$sim/tests/ops/test_ops" -b cuda linear
part calls_without_epilogues 1 env CUDASIM_NO_EPILOGUE=$none "$sim/tests/cudasim/tool_calls" linear

# A layer of one output, the next with one input, and a last batch of one sample, in training (225 of 32) and in evaluation.
cat >"$tmp/thin.cfg" <<'CFG'
schema = 1; name = "thin"; seed = 3;
data = { name = "synthetic"; batch = 32; classes = 2; samples = 225; samples_test = 33; };
model = { input = [3, 4, 4]; layers = ( { type = "flatten"; }, { name = "fc1"; type = "linear"; out = 24; }, { type = "relu"; },
	{ name = "fc2"; type = "linear"; out = 1; }, { type = "gelu"; }, { name = "fc3"; type = "linear"; out = 9; }, { type = "relu"; },
	{ name = "fc4"; type = "linear"; out = 12; bias = false; }, { type = "relu"; }, { name = "fc"; type = "linear"; out = 2; } ); };
train = { epochs = 3; optimizer = { type = "sgd"; lr = 0.05; momentum = 0.9; }; };
log = { every_steps = 1; };
CFG
"$sim/bin/gtrain" run "$tmp/thin.cfg" -q --no-progress -o "$tmp/cpu" --device cpu >"$tmp/out" 2>&1 ||
	echo "not ok thin_training: the CPU's ended with $?: $(tail -n 1 "$tmp/out")"
for p in fp32 tf32 bf16 fp16; do
	why=
	"$sim/bin/gtrain" run "$tmp/thin.cfg" -q --no-progress -o "$tmp/$p" --device cuda -s precision=$p >"$tmp/out" 2>&1 ||
		why="status $?: $(tail -n 1 "$tmp/out")"
	worst=$(worst "$tmp/cpu" "$tmp/$p" 27)
	# f32: sums in another order, 2^-24 each, through 24 steps; the simulator multiplies tf32 in full. 16 bits: activations are rounded to
	# 2^-8 and 2^-11, a path that drifts apart through the steps.
	case $p in bf16) tol=5e-2 ;; fp16) tol=1e-2 ;; *) tol=1e-5 ;; esac
	[ -n "$why" ] || awk "BEGIN { exit !($worst <= $tol) }" || why="losses differ by $worst"
	if [ -z "$why" ]; then echo "ok thin_training_$p"; else echo "not ok thin_training_$p: $why"; fi
	echo "# thin: training in $p: losses within $worst of the CPU's in fp32"
done
