#!/bin/bash
# Values that share memory by their lifetimes, or overwrite an input, change no bit of the result: losses, weights and optimizer state are
# those of a plan in which every value keeps its own memory (GTRAIN_UNSHARED_MEMORY), which needs more.
# tests/run: beside others
# shellcheck disable=SC2015
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
cd "$tmp" || exit 1

train() { # NAME CONFIG OPTIONS…
	local name=$1
	shift
	"$gtrain" run "$@" --device cpu -o "$name" >log 2>&1 && return
	fail "$name" "status $?: $(tail -n 1 log)"
	return 1
}
losses() { grep -o '"loss":[^,]*\|"grad_norm":[^,]*' "$1/metrics.jsonl"; }
activations() { "$gtrain" check "$@" --device cpu --json 2>log | grep -o '"activations":[0-9]*' | head -n 1 | grep -o '[0-9]*'; }
same() { # NAME CONFIG OPTIONS…
	local name=$1 shared unshared
	shift
	train "$name" "$@" || return
	GTRAIN_UNSHARED_MEMORY=1 train "$name.unshared" "$@" || return
	cmp "$name/latest/model.safetensors" "$name.unshared/latest/model.safetensors" &&
		cmp "$name/latest/optimizer.safetensors" "$name.unshared/latest/optimizer.safetensors" &&
		[ -n "$(losses "$name")" ] && [ "$(losses "$name")" = "$(losses "$name.unshared")" ] && pass "$name" ||
		fail "$name" "other losses, weights or state"
	shared=$(activations "$@") unshared=$(GTRAIN_UNSHARED_MEMORY=1 activations "$@")
	[ "$shared" -lt "$unshared" ] && pass "$name.memory" || fail "$name.memory" "$shared bytes shared, $unshared bytes unshared"
}
small=(-s data.name=synthetic -s data.classes=10 -s data.samples=24 -s data.samples_test=8 -s data.batch=8 -s train.steps=3
	-s log.every_steps=1)
same layers "$src/tests/cli/recompute.cfg"
same layers_bf16 "$src/tests/cli/recompute.cfg" -s precision=bf16
same layers_again "$src/tests/cli/recompute.cfg" -s train.recompute=cheap
same layers_clipped "$src/tests/cli/recompute.cfg" -s train.accumulate=2 -s train.clip_norm=0.5
same recurrent "$src/tests/cli/recurrent.cfg"
same fused_update "$src/tests/cli/fused_update.cfg" -s train.optimizer.momentum=0.9
same resnet "$src/configs/resnet20_cifar.cfg" "${small[@]}"
same densenet "$src/configs/densenet121.cfg" "${small[@]}" -s 'model.input=[3,32,32]' -s train.steps=1
same mobilenet "$src/configs/mobilenet_v2.cfg" "${small[@]}" -s 'model.input=[3,32,32]' -s train.steps=2
same ddp "$src/configs/resnet20_cifar.cfg" "${small[@]}" -s parallel.mode=ddp -s parallel.nproc=2
same pipe "$src/configs/resnet20_cifar.cfg" "${small[@]}" -s train.accumulate=4 -s parallel.mode=pipe -s parallel.nproc=2 \
	-s parallel.schedule=zero-bubble
