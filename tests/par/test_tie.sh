#!/bin/bash
# Tied weights (nets/tie.cfg) in every mode: the curve and the weights are those of one rank, and with reproducible = "world" the bits are.
# The cuts of the pipelines separate the layers that have one weight, or do not. Recomputation changes no bit, and a resumed run has the
# bits of one that was not interrupted.
# tests/run: beside others
# shellcheck source=tests/par/par.sh
. "$(dirname "$0")/par.sh"
cfg=$nets/tie.cfg

digest() { cat "$1/latest/model.safetensors" "$1/latest/optimizer.safetensors" | sha256sum; }

# every MODES OPTIONS...: all modes against one rank with the same options
every() {
	local feature=$1 m
	shift
	train one "$cfg" "$@" || echo "not ok tie_$feature: one rank: $why"
	for m in dp:2 ddp:3 zero1:2 zero2:3 zero3:2 gpipe:3 1f1b:2 1f1b:4 zero-bubble:3 interleaved:2 '1f1b*2+zero1:4'; do
		mode_args "${m%:*}" "${m#*:}"
		case $m in zero*:* | ddp:*) mode+=(-s parallel.bucket_mb=0.001) ;; esac # a bucket for each of the larger tensors
		compared "tie_${feature}_$m" "$cfg" "${mode[@]}" "$@"
	done
}
every f32
every accumulate -s train.accumulate=2 -s train.clip_norm=0.5 -s train.optimizer.type=adamw -s train.optimizer.lr=0.002
every bf16 -s precision=bf16
mode_args 1f1b 2
train one "$cfg"
for cut in again fc1 fc2 mean out; do
	compared "tie_cut_$cut" "$cfg" "${mode[@]}" -s "parallel.cuts=[\"$cut\"]"
done

exact=(-s reproducible=world -s parallel.shards=4)
train exact "$cfg" "${exact[@]}" || echo "not ok tie_world: one rank: $why"
want=$(digest "$tmp/exact")
for m in dp:2 ddp:4 zero1:2 zero2:4 zero3:4 gpipe:3 1f1b:4 '1f1b*2+zero1:4'; do
	mode_args "${m%:*}" "${m#*:}"
	if ! train run "$cfg" "${exact[@]}" "${mode[@]}"; then
		echo "not ok tie_world_$m: $why"
	elif [ "$(digest "$tmp/run")" != "$want" ]; then
		echo "not ok tie_world_$m: $("$same" "$tmp/exact" "$tmp/run")"
	else
		echo "ok tie_world_$m"
	fi
done

# the same bits, SUM of run `want`
for precision in fp32 bf16; do
	extra=(-s "precision=$precision" -s train.ema.decay=0.9)
	train one "$cfg" "${extra[@]}" && want=$(digest "$tmp/one")
	train run "$cfg" "${extra[@]}" -s train.recompute=cheap
	[ "$(digest "$tmp/run")" = "$want" ] && echo "ok tie_recompute_$precision" || echo "not ok tie_recompute_$precision: other bits. $why"
	train run "$cfg" "${extra[@]}" -s train.steps=5
	"$gtrain" resume "$tmp/run" -q --no-progress -s train.steps=14 >/dev/null 2>"$tmp/err"
	[ "$(digest "$tmp/run")" = "$want" ] && echo "ok tie_resume_$precision" || echo "not ok tie_resume_$precision: $(tail -n 1 "$tmp/err")"
done
tell_worst 'tied weights'
