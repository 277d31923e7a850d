#!/bin/bash
# Golden plans on the null backend: the steps that a config comes to, with every operand's shape and place. After a change that is
# meant, GTRAIN_UPDATE=1 writes them again: read the difference.
set -u
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
golden=$GTRAIN_SRC/tests/golden/plans
plan() { # name, config, options
	local name=$1 cfg=$2
	shift 2
	"$GTRAIN" plan "$cfg" --device null "$@" >"$tmp/$name.txt" 2>"$tmp/log" || { echo "not ok plan_$name: $(cat "$tmp/log")"; return; }
	[ -z "${GTRAIN_UPDATE:-}" ] || cp "$tmp/$name.txt" "$golden/$name.txt"
	if cmp -s "$tmp/$name.txt" "$golden/$name.txt"; then echo "ok plan_$name"; else
		echo "not ok plan_$name: $(diff "$golden/$name.txt" "$tmp/$name.txt" | head -n 3 | tr '\n' ' ')"; fi
}
mlp=$GTRAIN_SRC/tests/cli/early_update.cfg
resume=$GTRAIN_SRC/tests/resume/resume.cfg
plan mlp "$mlp"
plan mlp_clipped "$mlp" -s train.clip_norm=1.0
plan mlp_bf16_adam "$mlp" -s precision=bf16 -s train.optimizer.type=adam
plan mlp_fp16 "$mlp" -s precision=fp16
plan cnn_accumulate "$resume"
plan resnet20 "$GTRAIN_SRC/configs/resnet20_cifar.cfg" -s data.name=synthetic -s data.root= -s data.classes=10 -s data.samples=300 -s data.samples_test=150 -s data.batch=128
