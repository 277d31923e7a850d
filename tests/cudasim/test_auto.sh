#!/bin/bash
# device = "auto" on a machine that has a GPU, but not a library that it needs: the run selects the CPU and says why. Without that library
# missing, or without a GPU, it says nothing.
# tests/run: beside others
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/../cli/cli.sh"
# shellcheck source=tests/cudasim/sim.sh
. "$GTRAIN_SRC/tests/cudasim/sim.sh"
sim_needed auto
tiny_config
mkdir "$tmp/whole" && cp -rL "$sim/bin" "$sim/lib" "$tmp/whole" && cp -r "$tmp/whole" "$tmp/lacks" &&
	rm "$tmp/lacks/lib/gtrain/libcublasLt.so.0" || exit 1
# runs TREE: its words in $tmp/err
runs() { "$tmp/$1/bin/gtrain" run "$tmp/tiny.cfg" --device auto -s train.steps=1 -o "$tmp/run-$1" >"$tmp/out" 2>"$tmp/err"; }
runs whole
rc=$?
if [ $rc = 0 ] && ! grep -q 'selects the CPU' "$tmp/err"; then pass auto_whole; else fail auto_whole "status $rc: $(cat "$tmp/err")"; fi
runs lacks
rc=$?
if [ $rc = 0 ] && grep -q 'warning: device = "auto" selects the CPU although this machine has a GPU: .*libcublasLt' "$tmp/err"; then
	pass auto_lacks_a_library
else
	fail auto_lacks_a_library "status $rc: $(cat "$tmp/err")"
fi
