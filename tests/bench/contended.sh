#!/bin/bash
# Threads on cores that another process uses: seconds an epoch of the tutorial's MLP with one thread and with all, interleaved; quiet,
# beside a busy loop on the last core, and as nice 10 beside that loop. contended.sh [BUILD [ROUNDS [CONFIG]]]; needs FashionMNIST.
set -eu
cd "$(dirname "$0")/../.."
build=${1:-build} rounds=${2:-5} config=${3:-configs/tutorial_mlp_sgd.cfg} epochs=2
cores=$(nproc)
seconds() { # THREADS PREFIX...
	local threads=$1 begin
	shift
	begin=$(date +%s%N)
	"$@" "$build/bin/gtrain" run "$config" --device cpu -s threads="$threads" -s train.epochs=$epochs -s checkpoint.dir='""' -q \
		--no-progress 2>/dev/null
	awk -v ns=$(($(date +%s%N) - begin)) -v n=$epochs 'BEGIN { printf "%.3f\n", ns / n / 1e9 }'
}
median() { sort -n | awk '{ v[NR] = $1 } END { print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'; }
loop=
trap '[ -z "$loop" ] || kill $loop' EXIT
dir=$(mktemp -d)
for how in quiet busy nice; do
	prefix=()
	[ $how = nice ] && prefix=(nice -n 10)
	if [ $how != quiet ]; then
		taskset -c $((cores - 1)) sh -c 'while :; do :; done' &
		loop=$!
	fi
	for ((i = 0; i < rounds; i++)); do
		if ((i % 2)); then order="1 $cores"; else order="$cores 1"; fi
		for threads in $order; do seconds "$threads" "${prefix[@]}" >>"$dir/$how.$threads"; done
	done
	if [ -n "$loop" ]; then
		kill $loop
		wait $loop 2>/dev/null || true
		loop=
	fi
	one=$(median <"$dir/$how.1") all=$(median <"$dir/$how.$cores")
	awk -v how=$how -v one="$one" -v all="$all" -v n="$cores" 'BEGIN {
		printf "%-5s  1 thread %.3f s, %d threads %.3f s: %.2fx\n", how, one, n, all, all / one }'
done
rm -r "$dir"
