#!/bin/bash
# Random nets, trained in random ways (tests/par/random_net.py), on the host's CUDA runtime: the curve and the weights are those of the CPU.
# Six steps: the sums of the two are in other orders, and every net makes more of it. Of nets with batch normalisation losses alone are
# compared (test_random.sh says why). RANDOM_FROM, RANDOM_NETS: the first seed and how many.
# tests/run: beside others
set -u
. "$GTRAIN_SRC/tests/cudasim/sim.sh"
sim_needed random
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
from=${RANDOM_FROM:-1} nets=${RANDOM_NETS:-12} cases=0 failed=0
train() { # NAME PROGRAM DEVICE
	rm -rf "${tmp:?}/$1"
	"$2" run -q --no-progress "$tmp/net.cfg" -o "$tmp/$1" --device "$3" -s train.steps=6 >/dev/null 2>"$tmp/log"
}
for ((seed = from; seed < from + nets; seed++)); do
	python3 "$GTRAIN_SRC/tests/par/random_net.py" $seed >"$tmp/net.cfg" || exit 1
	weights=(-w 1e-3 -m 3e-3)
	[ "$(sed -n '2s/.* sync: //p' "$tmp/net.cfg")" = 0 ] || weights=()
	got=''
	if train cpu "$GTRAIN" cpu && train cuda "$sim/bin/gtrain" cuda &&
		got=$("$GTRAIN_BUILD/tests/par/tool_same" -l 1e-4 ${weights[0]+"${weights[@]}"} "$tmp/cpu" "$tmp/cuda"); then
		cases=$((cases + 1))
		echo "$got" >>"$tmp/figures"
	else
		failed=$((failed + 1))
		echo "not ok sim_random_$seed: $got $(tail -n 1 "$tmp/log")"
	fi
done
[ $failed != 0 ] || echo "ok sim_random_nets"
echo "# random nets on the host's CUDA runtime: $cases compared, $failed failed, worst relative difference of a loss" \
	"$(sed 's/^loss=\([^@]*\)@.*/\1/' "$tmp/figures" | sort -g | tail -n 1)"
