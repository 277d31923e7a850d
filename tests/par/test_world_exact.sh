#!/bin/bash
# reproducible = "world": the final weights and moments have the same bits in every mode, on every number of ranks, and in a run that was
# resumed on other numbers of ranks. The number of threads is the config's: given there, it gives other bits, again the same everywhere.
# WORLD=full runs all; else a part. Batch normalisation (cnn, resnet20) is by virtual shards; the last batch of an epoch is smaller than the
# number of shards.
# tests/run: beside others
# shellcheck source=tests/par/par.sh
. "$(dirname "$0")/par.sh"
digest() { cat "$1/latest/model.safetensors" "$1/latest/optimizer.safetensors" | sha256sum; }
equal=0 bad=0
# one NET ACC WORD RANKS OPTIONS...: to the digest in want
one() {
	local net=$1 acc=$2 word=$3 ranks=$4
	shift 4
	mode_args "$word" "$ranks"
	expect=$(refusal "$word" "$net")
	[ "$word" != zero-bubble ] || expect='reproducible = "world" and parallel.schedule = "zero-bubble" cannot be combined'
	train run "$tmp/$net.cfg" -s "train.accumulate=$acc" ${mode[0]+"${mode[@]}"} "$@"
	case $? in
	0) if [ "$(digest "$tmp/run")" = "$want" ]; then equal=$((equal + 1)); else
		bad=$((bad + 1))
		echo "not ok world $net $word:$ranks accumulate $acc: other bits than one rank's"
	fi ;;
	1) refused world "$word" ;;
	*)
		bad=$((bad + 1))
		echo "not ok world $net $word:$ranks accumulate $acc: $why"
		;;
	esac
}

# moved NET ACC MODE:RANKS MODE:RANKS...: stopped after every 5 steps and resumed as the next
moved() {
	local net=$1 acc=$2 d=$tmp/moved step=5 m=$3
	shift 3
	expect=''
	mode_args "${m%:*}" "${m#*:}"
	train moved "$tmp/$net.cfg" -s "train.accumulate=$acc" -s checkpoint.every_steps=5 -s checkpoint.keep=9 ${mode[0]+"${mode[@]}"} ||
		{ echo "not ok world moved: $why"; return; }
	for m in "$@"; do
		mode_args "${m%:*}" "${m#*:}"
		[ ${#mode[@]} != 0 ] || mode=(-s parallel.mode=single)
		if ! "$gtrain" resume -q --no-progress --from $step "${mode[@]}" "$d" >/dev/null 2>"$tmp/err"; then
			echo "not ok world moved $net to $m: $(tail -n 1 "$tmp/err")"
			bad=$((bad + 1))
			return
		fi
		step=$((step + 5))
	done
	if [ "$(digest "$d")" = "$want" ]; then equal=$((equal + 1)); else
		bad=$((bad + 1))
		echo "not ok world moved $net $*: other bits than one rank's"
	fi
}

if [ "${WORLD:-}" = full ]; then nets_='mlp skip cnn resnet20' accs='1 2'; else nets_='mlp cnn' accs=1; fi
for net in $nets_; do # 20 steps, 11 an epoch: the last has 5 samples for 8 shards
	sed 's/schema = 1;/schema = 1;\nreproducible = "world";/; s/threads = 1;//; s/steps = 50/steps = 20/; s/samples = 480/samples = 245/' \
		"$nets/$net.cfg" >"$tmp/$net.cfg"
	for acc in $accs; do
		expect=''
		if ! train one "$tmp/$net.cfg" -s "train.accumulate=$acc"; then
			echo "not ok world $net: $why"
			continue
		fi
		want=$(digest "$tmp/one")
		before=$bad
		if [ "${WORLD:-}" = full ]; then
			one "$net" "$acc" single 1 -s threads=1
			for word in ddp zero1 zero2 zero3 dp gpipe 1f1b zero-bubble '1f1b*2' '1f1b*2+zero1'; do
				for ranks in 1 2 4 8; do
					case $word:$ranks in *1f1b*:[1]* | gpipe:1 | zero-bubble:1 | '1f1b*2:2' | '1f1b*2+zero1:2') continue ;; esac
					one "$net" "$acc" "$word" $ranks
				done
			done
			moved "$net" "$acc" ddp:4 zero1:2 single:1
			moved "$net" "$acc" zero3:4 ddp:8 zero2:2 single:1
			expect=''
			if train one "$tmp/$net.cfg" -s "train.accumulate=$acc" -s threads=2; then
				want=$(digest "$tmp/one")
				one "$net" "$acc" ddp 2 -s threads=2
				one "$net" "$acc" zero2 4 -s threads=2
			else
				echo "not ok world $net, 2 threads: $why"
			fi
		else
			one "$net" "$acc" ddp 2
			one "$net" "$acc" ddp 8
			one "$net" "$acc" zero1 4
			one "$net" "$acc" zero3 2
			one "$net" "$acc" 1f1b 2
			one "$net" "$acc" '1f1b*2+zero1' 4
			one "$net" "$acc" zero-bubble 2
			moved "$net" "$acc" ddp:4 zero1:2 single:1
		fi
		[ $bad != "$before" ] || echo "ok world $net accumulate $acc"
	done
done
tell_refused
echo "# world: $equal digests equal to one rank's, $bad others"
