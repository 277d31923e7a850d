#!/bin/bash
# Random nets, trained in random ways, in every mode: what no table of cases thinks of (random_net.py). Each is compared with one rank as
# test_modes.sh does, and for its reasons; steps are few, so that what a net makes of a last bit stays small. Of nets with batch
# normalisation losses alone are: what it takes away, a bias some layers before, has gradients that are nothing but rounding. A combination
# that is refused must be refused by a sentence at the start (status 78), and is counted.
# With reproducible = "world" the bits are compared.
# RANDOM_FROM, RANDOM_NETS: the first seed and how many.
# tests/run: beside others
# shellcheck source=tests/par/par.sh
. "$(dirname "$0")/par.sh"
from=${RANDOM_FROM:-1} nets=${RANDOM_NETS:-20} cases=0 failed=0 refused=0 digests=0

digest() { cat "$1/latest/model.safetensors" "$1/latest/optimizer.safetensors" | sha256sum; }

# world SEED MODE...: with reproducible = "world" the same bits in every mode; batch normalisation is by shards
world() {
	local seed=$1 m want exact=(-s reproducible=world -s parallel.shards=4)
	shift
	expect='do not go together\|at most as many stages as the model has layers\|with reproducible = "world"'
	train exact "$cfg" "${exact[@]}" || return
	want=$(digest "$tmp/exact")
	for m in "$@"; do
		mode_args "${m%:*}" "${m#*:}"
		train run "$cfg" "${exact[@]}" "${mode[@]}"
		case $? in
		0)
			digests=$((digests + 1))
			[ "$(digest "$tmp/run")" = "$want" ] && continue
			echo "not ok random_$seed world $m: $("$same" "$tmp/exact" "$tmp/run")"
			failed=$((failed + 1))
			;;
		1) refused world "${m%:*}" ;;
		*)
			echo "not ok random_$seed world $m: $why"
			failed=$((failed + 1))
			;;
		esac
	done
}

for ((seed = from; seed < from + nets; seed++)); do
	cfg=$tmp/random.cfg
	python3 "$(dirname "$0")/random_net.py" $seed >"$cfg" || exit 1
	read -ra modes < <(sed -n '1s/^# modes: //p' "$cfg")
	read -r bucket sync < <(sed -n '2s/^# bucket: \(.*\) sync: \(.\)$/\1 \2/p' "$cfg")
	expect='' weights=(-w 1e-4 -m 1e-3)
	[ "$sync" = 0 ] || weights=()
	if ! train one "$cfg"; then
		echo "not ok random_$seed: one rank: $why"
		failed=$((failed + 1))
		continue
	fi
	for m in "${modes[@]}"; do
		mode_args "${m%:*}" "${m#*:}"
		case $m in dp:*) ;; *) mode+=(-s "parallel.bucket_mb=$bucket") ;; esac
		case $sync$m in 1ddp* | 1zero*) mode+=(-s parallel.sync_bn=true) ;; esac
		expect='do not go together\|expected at most as many stages as the model has layers'
		train run "$cfg" "${mode[@]}"
		case $? in
		0)
			cases=$((cases + 1))
			if got=$("$same" -l 1e-5 ${weights[0]+"${weights[@]}"} "$tmp/one" "$tmp/run"); then
				echo "$got" >>"$tmp/figures"
			else
				echo "not ok random_$seed $m: $got"
				failed=$((failed + 1))
			fi
			;;
		1)
			refused=$((refused + 1))
			refused random "${m%:*}"
			;;
		*)
			echo "not ok random_$seed $m: $why"
			failed=$((failed + 1))
			;;
		esac
	done
	case $((seed % 4)) in
	0) world $seed ddp:2 zero3:4 ;;
	1) world $seed 1f1b:2 zero2:2 ;;
	2) world $seed dp:4 '1f1b*2:4' '1f1b*2+zero1:4' ;;
	3) world $seed zero1:4 gpipe:3 ;;
	esac
done
[ $failed != 0 ] || [ $cases = 0 ] || echo "ok random_nets"
tell_refused
echo "# random: $nets nets, $cases cases compared, $digests digests with reproducible = \"world\", $failed failed, $refused refused," \
	"worst" \
	"relative difference of a loss $(sed 's/^loss=\([^@]*\)@.*/\1/' "$tmp/figures" | sort -g | tail -n 1)"
