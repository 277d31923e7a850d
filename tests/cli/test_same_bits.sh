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
adam 6c92590db3af72a3
sgd 9a07aca643937b06 train.optimizer.type=sgd train.optimizer.momentum=0.9
adamw fc83fa1d28380803 train.optimizer.type=adamw
rmsprop 3751404c918e5bd8 train.optimizer.type=rmsprop
lion 588bd9fd292e6fa7 train.optimizer.type=lion
nadam 8eb768bc570d3fd5 train.optimizer.type=nadam
radam 91dc48eb53c830eb train.optimizer.type=radam
adagrad 810bcbb454164b91 train.optimizer.type=adagrad
lamb 0958464533fbb9d5 train.optimizer.type=lamb
clip 7898def0eadc9c8c train.clip_norm=0.1
mse 79eef36b2efd4b77 train.loss=mse
l1 ad78850182a52898 train.loss=l1
huber 1ce2fee8fba36e38 train.loss=huber
bce 3b097598e497de7b train.loss=bce
focal 8b3ff026c51398d5 train.loss=focal
kl_div 0055c26afd6cc4db train.loss=kl_div
nll 0055c26afd6cc4db train.loss=nll
bf16 b4d61f9408ac67fe precision=bf16
END
