#!/bin/bash
# Copies of a pipeline, and running statistics: what has the same bits.
# - Gradients that are summed over the copies in one bucket or in many, whole or in shards (across = "zero"), early or at the end: the same
# sums.
# - Any number of stages and any schedule is the same training, running statistics included; an interrupted one too.
# tests/run: beside others
# shellcheck source=tests/par/par.sh
. "$(dirname "$0")/par.sh"
digest() { cat "$1/latest/model.safetensors" "$1/latest/optimizer.safetensors" | sha256sum; }
ok() { # NAME WHY: ok where WHY is empty
	if [ -z "$2" ]; then echo "ok pipe $1"; else echo "not ok pipe $1: $2"; fi
}
# number DIR NAME: the elements of an i64 or f32 tensor of the newest checkpoint
number() {
	python3 - "$1/latest/model.safetensors" "$2" <<-'P'
		import json, struct, sys
		raw = open(sys.argv[1], "rb").read()
		n = struct.unpack_from("<Q", raw)[0]
		t = json.loads(raw[8:8 + n])[sys.argv[2]]
		b, e = t["data_offsets"]
		size, code = {"F32": (4, "f"), "I64": (8, "q")}[t["dtype"]]
		print(*struct.unpack("<%d%s" % ((e - b) // size, code), raw[8 + n + b:8 + n + e]))
	P
}
expect=''

# ---- copies: 20 steps of uneven batches, of which the last one has 3 samples for 2 copies of 4 chunks ------------------------------------
sed 's/steps = 50/steps = 20/; s/samples = 480/samples = 219/' "$nets/skip.cfg" >"$tmp/skip.cfg"
for word in gpipe 1f1b interleaved zero-bubble; do
	mode_args "$word*2" 4
	why='' want=''
	for how in 'ddp 25' 'ddp 0.002' 'zero 25' 'zero 0.002'; do
		read -r across mb <<<"$how"
		train run "$tmp/skip.cfg" -s train.accumulate=2 "${mode[@]}" -s "parallel.across=$across" -s "parallel.bucket_mb=$mb" ||
			why="$how: ${why:-status $rc}"
		[ -n "$want" ] || want=$(digest "$tmp/run")
		[ -n "$why" ] || [ "$(digest "$tmp/run")" = "$want" ] || why="other bits with $how MiB"
	done
	ok "copies_$word" "$why"
done

# ---- on paper: the lists of full and of short batches fit together, and sends find room, wherever gradients are joined in between --------
proven=0
for net in skip cnn; do
	for word in gpipe 1f1b interleaved zero-bubble; do
		for world in 4:2 6:3 8:2; do
			for how in 'ddp 0.002 219 cpu' 'zero 0.002 461 cuda' 'zero 25 219 cpu' 'ddp 0.01 461 cuda'; do
				read -r across mb samples device <<<"$how"
				opts=(-s "parallel.schedule=$word" -s "parallel.replicas=${world#*:}" -s parallel.chunks=3 -s "parallel.across=$across" \
					-s "parallel.bucket_mb=$mb" -s "data.samples=$samples")
				if "$gtrain" check "$nets/$net.cfg" --mode pipe --world "${world%:*}" -s "device=$device" --device null \
					-s train.accumulate=2 "${opts[@]}" >/dev/null 2>"$tmp/err"; then
					proven=$((proven + 1))
				else
					echo "not ok pipe proof $net $word $world $how: $(tail -n 1 "$tmp/err")"
				fi
			done
		done
	done
done
[ $proven != 96 ] || echo "ok pipe proofs"

# ---- running statistics: 2 micro-batches a step, each in 4 chunks; the last step of an epoch has 3 samples -------------------------------
cfg=$tmp/cnn.cfg
sed 's/steps = 50/steps = 20/; s/samples = 480/samples = 219/; s/every_epochs = 0; };$/every_epochs = 0; every_steps = 7; keep = 9; };/' \
	"$nets/cnn.cfg" >"$cfg"
opts=(-s train.accumulate=2)
mode_args 1f1b 1
train alone "$cfg" "${mode[@]}" "${opts[@]}" || echo "not ok pipe alone: $why"
want=$(digest "$tmp/alone")
for m in 1f1b:2 1f1b:3 gpipe:3 interleaved:2 zero-bubble:3 zero-bubble:4; do
	mode_args "${m%:*}" "${m#*:}"
	train run "$cfg" "${mode[@]}" "${opts[@]}" -s train.recompute=cheap || { ok "stages_$m" "$why"; continue; }
	why=''
	[ "$(digest "$tmp/run")" = "$want" ] || why="other bits than those of one rank: $("$same" -l 0 "$tmp/alone" "$tmp/run" 2>&1)"
	ok "stages_$m" "$why"
done
# 20 steps: two epochs of 9 whole steps of 8 chunks, and of one of 3 chunks
why=''
[ "$(number "$tmp/alone" bn1.num_batches_tracked)" = 150 ] || why="$(number "$tmp/alone" bn1.num_batches_tracked) chunks, not 150"
ok counts "$why"

# Evaluations use them: by the run itself, on two stages, and by one rank from the checkpoint.
mode_args 1f1b 2
eval_of() { sed -n 's/.*"event":"eval",.*"split":"test","loss":\([^,]*\),.*/\1/p' "$tmp/$1/metrics.jsonl" | tail -n 1; }
why=''
train run "$cfg" "${mode[@]}" "${opts[@]}" || why="status $rc"
"$gtrain" eval --json "$tmp/run/latest" >"$tmp/out" 2>&1 || why="eval: $(tail -n 1 "$tmp/out")"
said=$(sed -n 's/.*"loss":\([^,}]*\).*/\1/p' "$tmp/out")
awk -v a="$(eval_of run)" -v b="$said" 'BEGIN { d = a - b; if (d < 0) d = -d; exit !(a > 0 && d < 1e-6) }' ||
	why="$why a loss of $(eval_of run), by one rank $said" # f32 sums over other batches: 1e-6
ok in_evaluations "$why"

# An epoch has 10 steps: from the middle of one, on another number of stages.
cp -r "$tmp/alone" "$tmp/again"
why=''
"$gtrain" resume -q --no-progress --from 7 --nproc 3 "$tmp/again" >/dev/null 2>"$tmp/err" || why=$(tail -n 1 "$tmp/err")
[ -n "$why" ] || [ "$(digest "$tmp/again")" = "$want" ] || why='other bits than those of a run that was not interrupted'
ok resumed "$why"
