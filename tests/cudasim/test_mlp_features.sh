#!/bin/bash
# What only the larger kernel of mlp.steps has (gt_mlp_division.more), and batches of up to 128 samples, against the list of single kernels:
# clipping, a moving average, class weights, other losses than cross entropy, other activations than relu. The same bits in windows of every
# length, on every number of multiprocessors, in both orders of blocks and threads, and after a resume inside a window; steps that diverge.
# tests/run: beside others
set -u
# shellcheck source=tests/cudasim/mlp.sh
. "$GTRAIN_SRC/tests/cudasim/mlp.sh"
# feature NAME MOST OPTIONS...: 12 epochs, most of 16 steps, in both ways; MOST: how far losses and weights may differ
feature() {
	local name=$1 most=$2
	shift 2
	for k in true false; do
		CUDASIM_SMS=3 train "$tmp/$name-$k" net -s window_kernel=$k "$@"
	done
	close "$name" "$tmp/$name-true" "$tmp/$name-false" "$most" "$most"
}
momentum='train.optimizer={type="sgd";lr=0.02;momentum=0.9;}' adam='train.optimizer={type="adam";lr=0.003;}'
ema=(-s train.ema.decay=0.95 -s train.ema.warmup=true)
acts() { # ACTIVATION: the net with it after both hidden layers
	echo -s "model.layers[2]={$1}" -s "model.layers[4]={$1}"
}
# Rounding errors of 1e-7 grow with the steps; adam, which divides by the roots of averages near 0, makes more of them. clip_norm: far below
# the norms, so that every step is clipped.
feature clip 1e-5 -s train.clip_norm=0.05
feature clip_momentum 1e-5 -s train.clip_norm=0.05 -s "$momentum"
feature clip_sometimes 1e-5 -s train.clip_norm=0.6 -s "$momentum"
feature clip_adam 2e-4 -s train.clip_norm=0.05 -s "$adam"
feature ema 1e-5 "${ema[@]}"
feature ema_adam 2e-4 -s train.ema.decay=0.9 -s "$adam"
feature weights 1e-5 -s 'train.class_weights=[0.5,2.0,1.0,3.0]' -s train.label_smoothing=0.1
feature mse 1e-5 -s train.loss=mse
feature bce 1e-5 -s train.loss=bce
feature bce_weights 1e-5 -s train.loss=bce -s 'train.pos_weight=[0.5,2.0,1.0,3.0]'
feature smooth_l1 1e-5 -s train.loss=smooth_l1
feature l1 1e-5 -s train.loss=l1
# shellcheck disable=SC2046 # a list
for a in leaky_relu:slope=0.1 sigmoid tanh gelu 'gelu:approximate="tanh"' silu elu:alpha=0.7; do
	name=${a%%:*} more=
	[[ $a != *:* ]] || more="${a#*:};"
	[[ $a != gelu:* ]] || name=gelu_tanh
	feature "act_$name" 1e-5 $(acts "type=\"${a%%:*}\";$more")
done
feature act_none 1e-5 -s 'model.layers[2]={type="identity";}'
feature act_mixed 1e-5 -s 'model.layers[2]={type="tanh";}' -s "$momentum"
feature no_bias 1e-5 -s 'model.layers[1].bias=false' -s 'model.layers[3].bias=false' -s 'model.layers[5].bias=false'
# everything at once
# shellcheck disable=SC2207,SC2046
all=($(acts 'type="gelu";') "${ema[@]}" -s "$adam" -s train.clip_norm=0.3 -s 'train.class_weights=[0.5,2.0,1.0,3.0]' -s data.batch=70)
feature all 5e-4 "${all[@]}"

same_in_parts() { # NAME OPTIONS...: the same bits
	local name=$1
	shift
	CUDASIM_SMS=3 train "$tmp/$name" net -s train.epochs=3 "$@"
	for w in 1 5 64; do
		CUDASIM_SMS=3 train "$tmp/$name-w$w" net -s train.epochs=3 -s window=$w "$@"
		same "${name}_window_of_$w" "$tmp/$name" "$tmp/$name-w$w"
	done
	for n in 1 2 6; do
		CUDASIM_SMS=$n train "$tmp/$name-s$n" net -s train.epochs=3 -s window=64 "$@"
		same "${name}_multiprocessors_$n" "$tmp/$name" "$tmp/$name-s$n"
		CUDASIM_SMS=$n CUDASIM_FIRST=1 train "$tmp/$name-f$n" net -s train.epochs=3 -s window=64 "$@"
		same "${name}_multiprocessors_${n}_first_block_first" "$tmp/$name" "$tmp/$name-f$n"
	done
	CUDASIM_SMS=3 train "$tmp/$name-cut" net -s train.epochs=3 -s window=64 "$@" -s checkpoint.every_steps=5 -s checkpoint.keep=99
	same "${name}_checkpoints_inside_windows" "$tmp/$name" "$tmp/$name-cut"
	cp -r "$tmp/$name-cut" "$tmp/$name-resumed"
	rm -rf "$tmp/$name-resumed"/step-0000001[5-9] "$tmp/$name-resumed"/step-000000[2-9]* "$tmp/$name-resumed/latest"
	CUDASIM_SMS=3 "$sim/bin/gtrain" resume "$tmp/$name-resumed" --device cuda --no-progress >"$tmp/resumed.out" 2>&1
	local why=
	grep -q 'resuming from .*step-00000010' "$tmp/resumed.out" || why="$(head -n 3 "$tmp/resumed.out" | tr '\n' ' ')"
	[ -n "$why" ] || [ "$(digest "$tmp/$name-cut")" = "$(digest "$tmp/$name-resumed")" ] || why='the weights differ'
	ok "${name}_resume_inside_a_window" "$why"
}
same_in_parts everything "${all[@]}"

# Shapes with tiles of a part of the columns, four layers, and many rows.
shaped() { # NAME SMS EPOCHS MOST INPUT OUTS OPTIONS...
	local name=$1 sms=$2 epochs=$3 most=$4
	# shellcheck disable=SC2086 # a list
	echo "$head data = { $data }; $(net "$5" $6) train = { epochs = $epochs;
		optimizer = { type = \"sgd\"; lr = 0.02; momentum = 0.9; }; };" >"$tmp/$name.cfg"
	shift 6
	for k in true false; do
		CUDASIM_SMS=$sms train "$tmp/$name-$k" "$name" -s window_kernel=$k "$@"
	done
	close "shape_$name" "$tmp/$name-true" "$tmp/$name-false" "$most" "$most"
}
# shellcheck disable=SC2046
shaped four 3 2 1e-5 '[3, 5, 5]' '17 30 9 4' $(acts 'type="silu";') -s 'model.layers[6]={type="tanh";}' -s train.clip_norm=0.2
shaped rows128 3 4 1e-5 '[1, 6, 6]' '18 11 4' -s data.batch=128
shaped rows100 2 4 1e-5 '[1, 6, 6]' '18 11 4' -s data.batch=100 -s train.clip_norm=0.2 -s train.ema.decay=0.9
shaped two 2 2 1e-5 '[1, 6, 6]' '18 4' -s 'model.layers[2]={type="gelu";}' -s data.batch=65
shaped tiles 8 1 1e-5 '[1, 28, 28]' '64 4' -s data.samples=260 -s data.batch=128 -s 'model.layers[2]={type="tanh";}' \
	-s train.clip_norm=0.2
# shellcheck disable=SC2046
shaped tiles_of_last 24 1 1e-5 '[1, 8, 8]' '512 512 10' $(acts 'type="gelu";') -s data.classes=10 -s data.samples=96 \
	-s train.clip_norm=0.2 -s train.optimizer.momentum=0.0

diverges clip_loss 'diverged at step 10[0-9]: the output of ' -s train.clip_norm=10.0 \
	-s 'train.schedule={type="multistep";unit="step";milestones=[100];gamma=1e30;}'
diverges clip_gradient 'diverged at step 2: the gradient of ' -s train.clip_norm=1.0e30 -s train.ema.decay=0.9 \
	-s 'train.groups=({match="fc1.*";optimizer={type="sgd";lr=1.0e37;};},
{match="fc2.*";optimizer={type="sgd";lr=1.0e-6;weight_decay=1.0e6;};},
{match="fc3.*";optimizer={type="sgd";lr=1.0e6;};})'
