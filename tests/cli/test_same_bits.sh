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
adam 598157d81a2321c4
sgd d07f87fd72fab52f train.optimizer.type=sgd train.optimizer.momentum=0.9
adamw c04f73a1354c12e4 train.optimizer.type=adamw
rmsprop 03d86bcb20023ee4 train.optimizer.type=rmsprop
lion 2d7d4da589a8cd9b train.optimizer.type=lion
nadam cef1625891946c0a train.optimizer.type=nadam
radam 241708d95dc8bd63 train.optimizer.type=radam
adagrad 762d1108e0ed9e9c train.optimizer.type=adagrad
lamb eff402783eb03d4e train.optimizer.type=lamb
clip c44eb2c6c5b4917d train.clip_norm=0.1
mse b3cfdfc58cb9e25f train.loss=mse
l1 4835e87a79911a5c train.loss=l1
huber d06021b3f5e006e2 train.loss=huber
bce b42e0ff1e9016ae0 train.loss=bce
focal 322aed0743874265 train.loss=focal
kl_div 59f6f444189eac79 train.loss=kl_div
nll 59f6f444189eac79 train.loss=nll
bf16 c5e1043643bc8eb7 precision=bf16
END
