#!/bin/bash
# Features together: each line is a run of the small CNN (tests/resume/resume.cfg) with some options, and what must come of it:
# status 0 with finite losses, an evaluation of every split once, and a checkpoint that verifies and evaluates to the same numbers, but for
# the rounding of batch normalisations, which eval folds into convolutions.
# tests/run: beside others
set -u
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cfg=$GTRAIN_SRC/tests/resume/resume.cfg
n=0
combine() { # name, options as --set would have them
	local name=$1 args=() o d=$tmp/run$((n++)) limit=1e-6
	shift
	for o in "$@"; do
		args+=(-s "$o")
		case $o in precision=bf16 | reproducible=*world* | parallel.mode=pipe) limit=1e-8 ;; esac # eval folds nothing
	done
	if ! "$GTRAIN" run "$cfg" -o "$d" "${args[@]}" >/dev/null 2>"$tmp/log"; then
		echo "not ok combine_$name: $(tail -n 1 "$tmp/log")"
		return
	fi
	if grep -q '"loss":null' "$d/metrics.jsonl"; then echo "not ok combine_$name: a loss is not finite"; return; fi
	local told again
	told=$(grep '"split":"test"' "$d/metrics.jsonl" | tail -n 1 | grep -o '"loss":[^,]*')
	again=$("$GTRAIN" eval --json "$d/latest" 2>"$tmp/log" | grep -o '"loss":[^,]*')
	# metrics.jsonl has 9 digits, eval all. Folding rounds each weight once more: relative differences of 2^-24, of which a loss has a few.
	if awk -v a="${told#*:}" -v b="${again#*:}" -v limit=$limit 'BEGIN { d = a - b; if (d < 0) d = -d;
		exit !(a != "" && b != "" && d <= limit * (a < 0 ? -a : a) + 1e-12) }'; then
		echo "ok combine_$name"
	else echo "not ok combine_$name: trained to $told, evaluated to $again $(tail -n 1 "$tmp/log")"; fi
	rm -rf "$d"
}
refuse() { # name, word in the message, options
	local name=$1 word=$2 args=() o
	shift 2
	for o in "$@"; do args+=(-s "$o"); done
	"$GTRAIN" run "$cfg" -o "$tmp/no" "${args[@]}" >/dev/null 2>"$tmp/log"
	local rc=$?
	if [ $rc = 78 ] && grep -q "$word" "$tmp/log"; then
		echo "ok refuse_$name"
	else
		echo "not ok refuse_$name: status $rc: $(tail -n 1 "$tmp/log")"
	fi
}
combine batch_per_rank 'data.batch_per_rank=12'
combine valid_split 'data.valid=0.3' 'checkpoint.best.metric=valid/loss' 'checkpoint.best.mode=min'
combine valid_and_torch_sampler 'data.valid=0.2' 'data.sampler=torch' 'data.prefetch=2'
combine drop_last_bf16 'data.drop_last=true' 'precision=bf16'
combine no_accumulate_no_clip 'train.accumulate=1' 'train.clip_norm=0.0'
combine accumulate_no_clip_sgd 'train.clip_norm=0.0' 'train.optimizer.type=sgd' 'train.optimizer.momentum=0.9' \
	'train.optimizer.nesterov=true'
combine nesterov_bf16_no_accumulate 'train.accumulate=1' 'precision=bf16' 'train.optimizer.type=sgd' 'train.optimizer.momentum=0.9' \
	'train.optimizer.nesterov=true'
combine rmsprop_onecycle 'train.optimizer.type=rmsprop' 'train.optimizer.momentum=0.5' 'train.schedule.type=onecycle'
combine lion_bf16 'train.optimizer.type=lion' 'train.optimizer.lr=0.0001' 'precision=bf16' 'train.optimizer.weight_decay=0.1'
combine adamw_exempt 'train.optimizer.type=adamw' 'train.optimizer.decay_bias=false' 'train.optimizer.decay_norm=false'
combine mse 'train.loss=mse'
combine ignore_index 'train.ignore_index=2'
combine eval_batch_and_steps 'data.eval_batch=7' 'train.eval_every_steps=2' 'train.steps=5'
combine batch_over_data 'data.batch=64'
combine one_sample_tail 'data.samples=33' 'train.accumulate=1'
combine polynomial_steps 'train.schedule.type=polynomial' 'train.schedule.unit=step' 'train.schedule.warmup=2'
combine frozen 'model.layers[0].frozen=true' 'train.accumulate=1' 'train.clip_norm=0.0'
combine frozen_last 'model.layers[7].frozen=true' 'train.accumulate=1' 'train.clip_norm=0.0'
combine layer_rates 'model.layers[3].lr_mul=0.1' 'model.layers[7].weight_decay=0.0'
combine torch_init 'model.init=torch'
combine kaiming_bf16 'model.init=kaiming-normal' 'precision=bf16' 'data.prefetch=3'
combine one_thread 'threads=1' 'winograd=false'
combine tensorboard 'log.tensorboard=true'
combine unshuffled 'data.shuffle=false' 'reproducible=none'
refuse too_few_outputs 'at least 4 outputs' 'model.layers[7].out=3'
refuse tf32 'tf32.*cpu' 'precision=tf32' 'device=cpu'
refuse fp16 'fp16.*cpu' 'precision=fp16' 'device=cpu'
refuse world_torch 'world.*torch\|torch.*world' 'reproducible=world' 'data.sampler=torch'
refuse accumulate 'accumulate' 'train.accumulate=3'
refuse best_metric 'best' 'checkpoint.best.metric=valid/acc'
