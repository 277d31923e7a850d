#!/bin/bash
# What the planner joins for the CUDA backend (engine/plan/backend_fusion.c), on the host's CUDA runtime: the steps that known nets come to,
# the nodes of their graphs, and the same losses where cuBLASLt has no algorithm with the epilogue. GTRAIN_UPDATE=1 writes the steps again:
# read the difference. The real cuBLASLt may run more than one kernel for a product.
# tests/run: beside others
set -u
# shellcheck source=tests/cudasim/sim.sh
. "$GTRAIN_SRC/tests/cudasim/sim.sh"
sim_begin joins
made=(-s data.name=synthetic -s data.root= -s data.classes=10 -s data.samples_test=10)
mlp=("$GTRAIN_SRC/configs/tutorial_mlp_sgd.cfg" "${made[@]}" -s train.optimizer.momentum=0.9)
lenet=("$GTRAIN_SRC/configs/lenet.cfg" "${made[@]}" -s data.batch=8)
resnet=("$GTRAIN_SRC/configs/resnet18_cifar.cfg" "${made[@]}" -s data.batch=2 -s precision=bf16 -s 'model.input=[3,8,8]')
airbench=("$GTRAIN_SRC/configs/cifar10_airbench94.cfg" "${made[@]}" -s data.batch=4 -s data.eval_batch=4 -s data.samples=8
	-s reproducible=run)

# steps NAME ARGS...: what the first program of a plan does, without places in memory
steps() {
	local name=$1 golden=$GTRAIN_SRC/tests/golden/plans/cuda_$1.txt
	shift
	"$sim/bin/gtrain" plan "$@" --device cuda 2>"$tmp/log" |
		awk '/^#/ && n++ { exit } { gsub(/@[0-9]+/, ""); print }' >"$tmp/$name.txt"
	[ -z "${GTRAIN_UPDATE:-}" ] || cp "$tmp/$name.txt" "$golden"
	if [ -s "$tmp/$name.txt" ] && cmp -s "$tmp/$name.txt" "$golden"; then echo "ok plan_$name"; else
		echo "not ok plan_$name: $(cat "$tmp/log") $(diff "$golden" "$tmp/$name.txt" | head -n 3 | tr '\n' ' ')"; fi
}
steps mlp "${mlp[@]}" -s data.samples=320
CUDASIM_NO_EPILOGUE=DRELU steps mlp_without_drelu "${mlp[@]}" -s data.samples=320
steps mlp_fp16 "${mlp[@]}" -s data.samples=320 -s precision=fp16
steps lenet "${lenet[@]}" -s data.samples=80
CUDASIM_DNN_IDLE=1 steps airbench "${airbench[@]}"

# nodes NAME WANT ARGS...: of a step in a graph of one, which zeroes its scalars in one more (as a graph of 64 does)
nodes() {
	local name=$1 want=$2 got
	shift 2
	CUDASIM_STATS=1 "$sim/bin/gtrain" run "$@" --device cuda -q --no-progress -o "$tmp/$name" -s window=1 -s train.eval_every_epochs=0 \
		-s train.epochs=1 >"$tmp/log" 2>&1
	got=$(sed -n 's/^cudasim: \([0-9]*\) nodes, .*/\1/p' "$tmp/log" | sort -n | tail -n 1)
	got=$((${got:-0} - 1))
	if [ "$got" = "$want" ]; then echo "ok nodes_of_$name"; else echo "not ok nodes_of_$name: $got, not $want: $(tail -n 1 "$tmp/log")"; fi
	echo "# joins: a step of $name is $got nodes"
}
nodes mlp 10 "${mlp[@]}" -s data.samples=64
nodes lenet 33 "${lenet[@]}" -s data.samples=16
# One of them pads the weights of the first convolution, whose images have padded channels.
nodes resnet18_bf16 167 "${resnet[@]}" -s data.samples=4

# The same training where the library refuses.
for p in fp32 bf16 fp16; do
	for o in '' BGRADB,AUX,DRELU; do
		CUDASIM_NO_EPILOGUE=$o "$sim/bin/gtrain" run "${mlp[@]}" -s data.samples=320 --device cuda -q --no-progress -o "$tmp/$p-$o" \
			-s train.epochs=2 -s log.every_steps=1 \
			-s "precision=$p" -s train.optimizer.lr=0.02 >"$tmp/log" 2>&1 || echo "not ok run_$p: $(tail -n 1 "$tmp/log")"
	done
	worst=$(worst "$tmp/$p-" "$tmp/$p-BGRADB,AUX,DRELU" 20)
	# Masks are the same bits; sums of bias gradients in f32 in another order, 2^-24 each; in 16 bits these move roundings of 2^-8 and
	# 2^-11.
	tol=1e-5
	[ $p = fp32 ] || tol=1e-2
	if awk "BEGIN { exit !($worst <= $tol) }"; then
		echo "ok without_epilogues_$p"
	else
		echo "not ok without_epilogues_$p: losses differ by $worst"
	fi
	echo "# joins: $p without epilogues: losses within $worst"
done
