#!/bin/bash
# Golden plans on the null backend: the steps that a config comes to, with every operand's shape and place. After a change that is
# meant, GTRAIN_UPDATE=1 writes them again: read the difference. Of eight ranks, in every mode: the lists of the first one and of another,
# and what `gtrain check` says of all of them.
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
mlp=$GTRAIN_SRC/tests/cli/fused_update.cfg
resume=$GTRAIN_SRC/tests/resume/resume.cfg
plan mlp "$mlp"
plan mlp_clipped "$mlp" -s train.clip_norm=1.0
plan mlp_bf16_adam "$mlp" -s precision=bf16 -s train.optimizer.type=adam
plan mlp_fp16 "$mlp" -s precision=fp16
plan cnn_accumulate "$resume"
plan resnet20 "$GTRAIN_SRC/configs/resnet20_cifar.cfg" -s data.name=synthetic -s data.root= -s data.classes=10 -s data.samples=300 \
	-s data.samples_test=150 -s data.batch=128
# After three epochs, when the first convolution's bias is frozen too, a step does not compute the gradient of its output.
plan airbench94 "$GTRAIN_SRC/configs/cifar10_airbench94.cfg" -s data.name=synthetic -s data.classes=10 -s data.samples=200 \
	-s data.samples_test=50 -s data.batch=100 -s data.eval_batch=50

# ranks NAME RANK CONFIG OPTIONS...: ranks 0 and RANK of 8
ranks() {
	local name=8_$1 rank=$2 cfg=$3
	shift 3
	for r in 0 "$rank"; do
		plan "${name}_rank$r" "$cfg" --world 8 --rank "$r" "$@"
	done
	if ! "$GTRAIN" check "$cfg" --device null --world 8 --json "$@" >"$tmp/check" 2>"$tmp/log"; then
		echo "not ok check_$name: $(cat "$tmp/log")"
		return
	fi
	sed 's/},{/},\n{/g; s/\],"/],\n"/g; s/,"traffic"/,\n"traffic"/g' "$tmp/check" >"$tmp/$name.json" # lines that diff can tell apart
	[ -z "${GTRAIN_UPDATE:-}" ] || cp "$tmp/$name.json" "$golden/$name.json"
	if cmp -s "$tmp/$name.json" "$golden/$name.json"; then echo "ok check_$name"; else
		echo "not ok check_$name: $(diff "$golden/$name.json" "$tmp/$name.json" | head -n 3 | cut -c 1-300 | tr '\n' ' ')"; fi
}
# Of 50 samples, ranks have 6 or 7; of the 3 in the last step of an epoch, some have none. Small buckets, so that there are several.
uneven=(-s data.batch=50 -s data.samples=203 -s train.optimizer.momentum=0.9)
small=(-s parallel.bucket_mb=0.008)
ranks ddp 3 "$mlp" "${uneven[@]}" "${small[@]}" --mode ddp
# The ranks hold factors of weight gradients instead of gradients: three linear layers of 512 outputs and a small batch.
ranks ddp_factored 3 "$GTRAIN_SRC/configs/tutorial_mlp_sgd.cfg" -s data.name=synthetic -s data.classes=10 -s data.samples=50 \
	-s data.samples_test=20 --mode ddp
ranks dp 3 "$mlp" "${uneven[@]}" --mode dp
ranks ddp_cuda 3 "$mlp" "${uneven[@]}" "${small[@]}" --mode ddp -s device=cuda
ranks ddp_compress_cuda 3 "$mlp" "${uneven[@]}" "${small[@]}" --mode ddp -s device=cuda -s parallel.compress=bf16
ranks zero1_cuda 7 "$mlp" "${uneven[@]}" "${small[@]}" --mode zero -s device=cuda
ranks zero2 7 "$mlp" "${uneven[@]}" "${small[@]}" -s train.accumulate=2 -s parallel.mode=zero -s parallel.stage=2
ranks zero3 3 "$mlp" -s data.samples=203 "${small[@]}" -s parallel.mode=zero -s parallel.stage=3 -s precision=bf16 \
	-s train.optimizer.type=adam
ranks ddp_world 3 "$mlp" "${uneven[@]}" "${small[@]}" --mode ddp -s reproducible=world -s parallel.shards=16
# A net with skips, in four stages: two copies, or two stages a rank.
skip=$GTRAIN_SRC/tests/par/nets/skip.cfg
ranks pipe 3 "$skip" --mode pipe -s parallel.chunks=3
ranks pipe_zero 6 "$skip" -s parallel.mode=pipe -s parallel.schedule=interleaved -s parallel.replicas=4 -s parallel.across=zero \
	-s parallel.bucket_mb=0.002 -s device=cuda
ranks pipe_zb 5 "$skip" -s parallel.mode=pipe -s parallel.schedule=zero-bubble -s parallel.replicas=2 -s parallel.chunks=3 \
	-s data.samples=50
