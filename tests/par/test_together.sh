#!/bin/bash
# Many features at once in every mode, reproducible = "run": the same command gives the same bits, and so does a run that is resumed in the
# middle of an epoch by as many ranks: dropout, augmentation with flips that alternate, a group with another optimizer that is frozen in the
# second epoch, micro-batches, an uneven last batch, evaluations and best checkpoints between those that steps ask for.
# tests/run: beside others
# shellcheck source=tests/par/par.sh
. "$(dirname "$0")/par.sh"
digest() { cat "$1/latest/model.safetensors" "$1/latest/optimizer.safetensors" | sha256sum; }
opts=(-s 'reproducible="run"' -s data.samples=459 -s train.steps=31 -s train.accumulate=2 -s checkpoint.every_steps=7 \
	-s checkpoint.keep=9 -s train.eval_every_steps=5
	-s 'checkpoint.best.metric="test/loss"' -s 'data.augment=({type="pad_crop";pad=1;},{type="hflip";alternate=true;})'
	-s 'train.groups=({match="*.bias";optimizer={type="adam";lr=0.001;};freeze_after=1.2;})')
for m in single:1 ddp:2 dp:2 zero1:2 zero2:2 zero3:2 1f1b:2 zero-bubble:2 interleaved:2; do
	mode_args "${m%:*}" "${m#*:}"
	if ! { train one "$nets/wide.cfg" "${opts[@]}" "${mode[@]}" && train run "$nets/wide.cfg" "${opts[@]}" "${mode[@]}"; }; then
		echo "not ok together $m: $why"
		continue
	fi
	want=$(digest "$tmp/one") best=$(readlink "$tmp/one/best") why=''
	[ "$(digest "$tmp/run")" = "$want" ] || why='other bits the second time'
	ranks=(--nproc "${m#*:}") # of the command, so not in the checkpoint's config
	[ "$m" != single:1 ] || ranks=()
	"$gtrain" resume -q --no-progress ${ranks[0]+"${ranks[@]}"} --from 28 "$tmp/run" >/dev/null 2>"$tmp/err" ||
		why="$why: $(tail -n 1 "$tmp/err")"
	[ "$(digest "$tmp/run")" = "$want" ] && [ "$(grep -c '"event":"resume"\|"event":"start"' "$tmp/run/metrics.jsonl")" -ge 2 ] ||
		why="$why: other bits when resumed: $("$same" -f 99 "$tmp/one" "$tmp/run")"
	[ "$(readlink "$tmp/run/best")" = "$best" ] || why="$why: another best checkpoint"
	if [ -z "$why" ]; then echo "ok together $m"; else echo "not ok together $m: $why"; fi
done
