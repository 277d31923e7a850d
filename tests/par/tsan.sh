#!/bin/bash
# tests/par/tsan.sh BUILD: trainings whose ranks are threads (mode dp), by a gtrain that was built with -fsanitize=thread. One OpenMP thread
# a rank: libgomp is not built with it, and its barriers would be races. `make tsan` runs it.
set -u
src=$(cd "$(dirname "$0")/../.." && pwd)
gtrain=$1/bin/gtrain
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export OMP_NUM_THREADS=1 TSAN_OPTIONS="suppressions=$src/tests/par/tsan.supp halt_on_error=0 exitcode=66"
bad=0
for net in mlp cnn skip resnet20; do
	if "$gtrain" run "$src/tests/par/nets/$net.cfg" -o "$tmp/run" --no-progress --nproc 2 -s parallel.mode=dp -s threads=1 \
		-s train.steps=3 >"$tmp/out" 2>&1; then
		echo "ok tsan $net"
	else
		echo "not ok tsan $net: $(grep -c 'WARNING: ThreadSanitizer' "$tmp/out") races:" \
			"$(grep SUMMARY "$tmp/out" | sort | uniq -c | head -n 5)"
		cat "$tmp/out" >&2
		bad=1
	fi
	rm -rf "$tmp/run"
done
exit $bad
