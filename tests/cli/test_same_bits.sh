#!/bin/bash
# A network without matrix products trains with the same bits on every processor (gtrain.cfg(5), "Precision and processors"): the digests of
# its losses, weights and moments below were made on x86-64 with AVX-512, and are those of AVX2 and of arm64. GTRAIN_UPDATE=1 prints the
# table anew. tests/run: beside others
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
while read -r name want settings; do
	args=()
	for s in $settings; do args+=(-s "$s"); done
	run run "$src/tests/cli/same_bits.cfg" -o "$tmp/run" -q --no-progress --device cpu "${args[@]}"
	got=$( { sed -nE 's/.*"event":"(train|eval)".*("loss":[^,}]*).*/\1 \2/p' "$tmp/run/metrics.jsonl"
		cat "$tmp/run/latest/model.safetensors" "$tmp/run/latest/optimizer.safetensors"; } 2>/dev/null | sha256sum | cut -c1-16)
	[ -z "${GTRAIN_UPDATE:-}" ] || echo "$name $got $settings"
	if [ "$rc" != 0 ]; then fail "$name" "status $rc: $(tail -n 1 "$tmp/err")"
	elif [ "$got" = "$want" ]; then pass "$name"
	else fail "$name" "digest $got, not $want"; fi
	rm -rf "$tmp/run"
done <<'END'
adam 1c3c087c6dacca9f
sgd 700219dc1fec54f0 train.optimizer.type=sgd train.optimizer.momentum=0.9
adamw 00c5955e264aa7cb train.optimizer.type=adamw
rmsprop 73c4f6442b62a588 train.optimizer.type=rmsprop
lion a4cb687dae4a7421 train.optimizer.type=lion
nadam c084e334cfa8caa3 train.optimizer.type=nadam
radam 9a8e09ab04925478 train.optimizer.type=radam
adagrad 0396b77191967292 train.optimizer.type=adagrad
lamb 274064cc9160eb38 train.optimizer.type=lamb
clip caed455a314dbdec train.clip_norm=0.1
mse 779d2f700a5c121a train.loss=mse
l1 dce1c9bb3713b40c train.loss=l1
huber 8e2b36648095ee0e train.loss=huber
bce b88b296028bfa2c6 train.loss=bce
focal 87f780ec766f966b train.loss=focal
kl_div 485a8efd85fe2db9 train.loss=kl_div
nll 485a8efd85fe2db9 train.loss=nll
bf16 6aa779f330f41e1e precision=bf16
END
