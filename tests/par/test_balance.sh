#!/bin/bash
# parallel.balance = "measured": a pipeline is cut by the time that layers take. The net has layers whose time is many times what their
# FLOPs and bytes say (convolutions in groups), so that the cut is another one; what is trained is not.
. "$GTRAIN_SRC/tests/par/par.sh"
cfg=$nets/groups.cfg
pipe=(-s parallel.mode=pipe -s parallel.chunks=2)
tell() { if [ -z "$2" ]; then echo "ok balance_$1"; else echo "not ok balance_$1: $2"; fi; }
run() { train "$@" || { tell "$1" "$why"; return 1; }; }
begins() { sed -n 's/.*"event":"start".*stages by measured cost begin at \([^"]*\)".*/\1/p' "$tmp/$1/metrics.jsonl" | tail -n 1; }
losses() { sed -n 's/.*"event":"train".*"loss":\([^,]*\),.*/\1/p' "$tmp/$1/metrics.jsonl"; }
digest() { sha256sum <"$tmp/$1/latest/model.safetensors"; }

computed=$("$gtrain" check "$cfg" --json --device cpu --world 2 "${pipe[@]}" |
	sed -n 's/.*"place":1,"layers":[0-9]*,"first":"\([^"]*\)".*/\1/p' | head -n 1)
run single "$cfg" -s train.accumulate=2 || exit 1
run computed "$cfg" "${pipe[@]}" --nproc 2 || exit 1
if run measured "$cfg" "${pipe[@]}" --nproc 2 -s parallel.balance=measured; then
	echo "# cut at $computed by computed cost, at $(begins measured) by measured cost"
	tell another_cut "$([ -n "$computed" ] && [ -n "$(begins measured)" ] && [ "$(begins measured)" != "$computed" ] ||
		echo "both cut at \"$computed\", \"$(begins measured)\"")"
	tell same_bits "$([ "$(digest measured)" = "$(digest computed)" ] || echo 'the weights depend on the cut')"
	# the same sums in the same order, but where a rank fuses what a whole model does not: 1e-6
	tell curve "$(paste <(losses measured) <(losses single) | awk '{ d = ($1 - $2) / $2; if (d < 0) d = -d; if (d > w) w = d }
		END { if (NR != 15 || w > 1e-6) print NR " steps, loss differs by " w }')"
fi
# what was measured is no part of a checkpoint: a resumed run measures again, and goes on to the same bits
if run half "$cfg" "${pipe[@]}" --nproc 2 -s parallel.balance=measured -s train.steps=7; then
	"$gtrain" resume "$tmp/half" -q --no-progress -s train.steps=15 >"$tmp/out" 2>&1 </dev/null
	rc=$?
	tell resumed "$([ $rc = 0 ] && [ "$(digest half)" = "$(digest computed)" ] || echo "status $rc: $(tail -n 1 "$tmp/out")")"
fi
run interleaved "$cfg" "${pipe[@]}" --nproc 2 -s parallel.balance=measured -s parallel.schedule=interleaved &&
	tell interleaved "$([ "$(begins interleaved | tr ',' '\n' | wc -l)" = 3 ] || echo "begin at $(begins interleaved)")"
run replicas "$cfg" "${pipe[@]}" --nproc 4 -s parallel.balance=measured -s parallel.replicas=2 &&
	tell replicas "$([ -n "$(begins replicas)" ] || echo 'nothing measured')"
run alone "$cfg" "${pipe[@]}" --nproc 1 -s parallel.balance=measured && tell alone "$([ -z "$(begins alone)" ] ||
	echo 'one stage was measured')"
if "$gtrain" check "$cfg" --device cpu --world 2 "${pipe[@]}" -s parallel.balance=measured >"$tmp/out" 2>&1; then
	tell check "$(grep -q 'chosen by computed costs; a run measures' "$tmp/out" || echo 'check does not say what a run does')"
else
	tell check "$(tail -n 1 "$tmp/out")"
fi
refuses() { # NAME WORDS OPTIONS...
	local name=$1 words=$2
	shift 2
	"$gtrain" check "$cfg" --device cpu --world 2 "${pipe[@]}" -s parallel.balance=measured "$@" >"$tmp/out" 2>&1
	rc=$?
	tell "$name" "$([ $rc = 78 ] && grep -q "$words" "$tmp/out" || echo "status $rc: $(tail -n 1 "$tmp/out")")"
}
refuses beside_cuts 'beside parallel.cuts' -s 'parallel.cuts=["f1"]'
refuses beside_bits 'beside reproducible = "run" and train.clip_norm' -s reproducible=run -s train.clip_norm=1.0
