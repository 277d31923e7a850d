#!/bin/bash
# Windows of a multilayer perceptron in one kernel (mlp.steps) on the host's CUDA runtime, against the list of single kernels: losses and
# weights after 200 steps; the same bits again, in windows of every length, on every number of multiprocessors, in both orders of blocks and
# threads, and after a resume inside a window; steps that diverge.
# tests/run: beside others
set -u
# shellcheck source=tests/cudasim/mlp.sh
. "$GTRAIN_SRC/tests/cudasim/mlp.sh"
why=
"$sim/bin/gtrain" plan "$tmp/net.cfg" --device cuda >"$tmp/plan" 2>&1 && [ "$(grep -c '^# one kernel (mlp.steps)' "$tmp/plan")" = 2 ] ||
	why="$(head -n 2 "$tmp/plan" | tr '\n' ' ')"
ok plan_names_the_kernel "$why"
blocks() { # of the first kernel of a plan
	"$sim/bin/gtrain" plan "$tmp/net.cfg" --device cuda 2>&1 | sed -n 's/.*[^0-9]\([0-9]* blocks\), .*shared memory.*/\1/p' | head -n 1
}
why=$(CUDASIM_SMS=3 blocks)
[ "$why" != '2 blocks' ] && [ "$(CUDASIM_SMS=3 GTRAIN_CUDA_SMS=2 blocks)" = '2 blocks' ] && why=
ok GTRAIN_CUDA_SMS_limits_the_blocks "$why"

# 192 steps. Rounding errors of 1e-7 grow with the steps; Adam divides by the square root of averages near 0, where they grow most.
for o in sgd:0.05:1e-5 momentum:0.02:1e-5 nesterov:0.02:1e-5 adam:0.003:2e-4 adamw:0.003:2e-4; do
	name=${o%%:*} rest=${o#*:} more=
	lr=${rest%:*} most=${rest#*:}
	case $name in
	momentum) more='momentum = 0.9; weight_decay = 0.01;' ;;
	nesterov) more='momentum = 0.9; nesterov = true;' ;;
	esac
	type=$name
	[[ $name = adam* ]] || type=sgd
	for k in true false; do
		train "$tmp/$name-$k" net -s window_kernel=$k -s "train.optimizer={type=\"$type\";lr=$lr;$more}"
	done
	close "list_$name" "$tmp/$name-true" "$tmp/$name-false" "$most" "$most"
done

adam='train.optimizer={type="adam";lr=0.003;}'
train "$tmp/adam" net -s train.epochs=5 -s "$adam"
for w in 1 8 64; do
	train "$tmp/w$w" net -s train.epochs=5 -s window=$w -s "$adam"
	same "window_of_$w" "$tmp/adam" "$tmp/w$w"
done
for n in 2 3 6; do
	CUDASIM_SMS=$n GTRAIN_CUDA_SMS=$n train "$tmp/sms$n" net -s train.epochs=5 -s window=64 -s "$adam"
	same "multiprocessors_$n" "$tmp/adam" "$tmp/sms$n"
	CUDASIM_SMS=$n GTRAIN_CUDA_SMS=$n CUDASIM_FIRST=1 train "$tmp/first$n" net -s train.epochs=5 -s window=64 -s "$adam"
	same "multiprocessors_${n}_first_block_first" "$tmp/adam" "$tmp/first$n"
done
train "$tmp/cut" net -s train.epochs=5 -s window=64 -s "$adam" -s checkpoint.every_steps=29 -s checkpoint.keep=99
cp -r "$tmp/cut" "$tmp/resumed"
rm -rf "$tmp"/resumed/step-0000006* "$tmp"/resumed/step-000000[78]* "$tmp/resumed/latest"
"$sim/bin/gtrain" resume "$tmp/resumed" --device cuda --no-progress >"$tmp/resumed.out" 2>&1
echo $? >"$tmp/resumed.rc"
why=$(ended "$tmp/cut" "$tmp/resumed")
[ -n "$why" ] || grep -q 'resuming from .*step-00000058' "$tmp/resumed.out" ||
	why="not resumed from step 58: $(head -n 3 "$tmp/resumed.out" | tr '\n' ' ')"
[ -n "$why" ] || [ "$(digest "$tmp/cut")" = "$(digest "$tmp/resumed")" ] || why='the weights differ'
ok resume_inside_a_window "$why"
same checkpoints_inside_windows "$tmp/adam" "$tmp/cut"

# Shapes: 2 and 4 layers, words of bytes, two rows of warps, layers that do not divide, tiles of a part of the columns.
shape() { # NAME SMS EPOCHS INPUT OUTS OPTIONS...
	local name=$1 sms=$2 epochs=$3
	# shellcheck disable=SC2086 # a list
	echo "$head data = { $data }; $(net "$4" $5) train = { epochs = $epochs;
		optimizer = { type = \"sgd\"; lr = 0.02; momentum = 0.9; }; };" \
		>"$tmp/$name.cfg"
	shift 5
	for k in true false; do
		CUDASIM_SMS=$sms train "$tmp/$name-$k" "$name" -s window_kernel=$k "$@"
	done
	local most=1e-5
	[ "$name" != rounded ] || most=2e-3 # cuBLASLt rounds operands to 10 bits; the simulated one does not
	close "shape_$name" "$tmp/$name-true" "$tmp/$name-false" $most $most
}
shape two 3 1 '[1, 6, 6]' '18 4'
shape four 3 1 '[3, 5, 5]' '17 30 9 4'
shape rows64 2 2 '[1, 6, 6]' '18 11 4' -s data.batch=50
shape smoothed 2 1 '[1, 6, 6]' '18 11 4' -s train.label_smoothing=0.1
shape rounded 2 1 '[1, 6, 6]' '18 11 4' -s precision=tf32
# The list does the last eight steps, in which the first layer is frozen.
shape freezes 3 1 '[1, 6, 6]' '18 11 4' -s 'train.groups=({match="fc1.*";freeze_after=0.5;})'
shape tiles 8 1 '[1, 28, 28]' '64 4' -s data.samples=160 -s 'train.optimizer={type="adamw";lr=0.001;}'
shape tiles_of_last 24 1 '[1, 8, 8]' '512 512 10' -s data.classes=10 -s data.samples=96 -s train.optimizer.momentum=0.0

# A loss that is not finite; a gradient that is not, beside a finite loss: nothing is updated, and the list finds the cause.
diverges loss 'diverged at step 10[0-9]: the output of ' -s 'train.schedule={type="multistep";unit="step";milestones=[100];gamma=1e30;}'
diverges gradient 'diverged at step 2: the gradient of ' -s 'train.groups=({match="fc1.*";optimizer={type="sgd";lr=1.0e37;};},
{match="fc2.*";optimizer={type="sgd";lr=1.0e-6;weight_decay=1.0e6;};},
{match="fc3.*";optimizer={type="sgd";lr=1.0e6;};})'

# Refused, with the reason.
refused() { # NAME SAYS ARGS...
	local name=$1 says=$2 why=
	shift 2
	"$sim/bin/gtrain" plan "$tmp/net.cfg" --device cuda "$@" >"$tmp/plan" 2>&1
	grep -q "^# no kernel for whole windows: .*$says" "$tmp/plan" || why="$(grep '^#' "$tmp/plan" | head -n 2 | tr '\n' ' ')"
	ok "refused_$name" "$why"
}
refused key 'window_kernel = false' -s window_kernel=false
refused accumulate train.accumulate -s train.accumulate=2
refused precision 'precision is neither fp32 nor tf32' -s precision=bf16
refused optimizer 'sgd, adam and adamw' -s train.optimizer.type=lion
refused batch '128 samples' -s data.batch=129
refused frozen 'fc1.weight is frozen' -s 'train.groups=({match="fc1.*";frozen=true;})'
refused frozen_until frozen_until -s 'train.groups=({match="fc1.*";frozen_until=1.0;})'
refused augment 'does not augment' -s 'data.augment=({type="hflip";})'
