#!/bin/bash
# The plan for a GPU that is not there (--device null:cuda) has the calls of the plan that the CUDA backend makes: of configs, and
# with options that decide which operations are fused. `gtrain check --card` counts these calls.
# tests/run: beside others
set -u
# shellcheck source=tests/cudasim/sim.sh
. "$GTRAIN_SRC/tests/cudasim/sim.sh"
sim_needed plans
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
data=(-s data.name=synthetic -s data.root= -s data.classes=10 -s data.samples=60000 -s data.samples_test=10000)
export CUDASIM_DNN_IDLE=1 XDG_CACHE_HOME=$tmp/cache
total=0 differ=0 planned=0
# same NAME CONFIG OPTIONS...
same() {
	local name=$1 cfg=$2
	shift 2
	for device in cuda null:cuda; do
		"$sim/bin/gtrain" plan "$cfg" --device "$device" --json "$@" >"$tmp/out" 2>"$tmp/log"
		echo "exit $?" >"$tmp/$device"
		# steps, operations and layers; a refusal differs in the sentences of the two backends
		grep -o '"kind":"[^"]*"\|"op":"[^"]*"\|"layer":"[^"]*"' "$tmp/out" >>"$tmp/$device"
	done
	total=$((total + 1))
	[ "$(head -n 1 "$tmp/cuda")" != 'exit 0' ] || planned=$((planned + 1))
	cmp -s "$tmp/cuda" "$tmp/null:cuda" && return
	differ=$((differ + 1))
	echo "not ok plan_of_$name: $(diff "$tmp/cuda" "$tmp/null:cuda" | head -n 4 | tr '\n' ' ')$(tail -n 1 "$tmp/log")"
}
for name in tutorial_mlp_adam lenet fmnist_cnn resnet20_cifar cifar10_airbench94 imdb_transformer; do
	same "${name}_bf16" "$GTRAIN_SRC/configs/$name.cfg" "${data[@]}" -s parallel.mode=single -s reproducible=run -s precision=bf16
done
for name in sequences recurrent recompute; do
	same "$name" "$GTRAIN_SRC/tests/cli/$name.cfg"
done
# A last layer with 32 outputs and with 33, batches around the limits of the fused operations, a clipped norm, Adam, accumulation.
mlp=$GTRAIN_SRC/configs/tutorial_mlp_sgd.cfg
for o in data.batch=512 data.batch=513 data.batch=1024 data.batch=1025 data.classes=32 train.clip_norm=1.0 train.optimizer.type=adam \
	train.accumulate=2 precision=fp16 train.ema.decay=0.9 reproducible=run reproducible=world; do
	same "mlp_$o" "$mlp" "${data[@]}" -s "$o"
done
[ "$differ" -ne 0 ] || [ "$planned" -lt 18 ] || echo 'ok plans_of_a_described_gpu'
[ "$planned" -ge 18 ] || echo "not ok plans_of_a_described_gpu: only $planned of $total plans were made"
echo "# sim_plans: $total plans, $planned made, $differ differ"
