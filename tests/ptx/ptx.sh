# shellcheck shell=bash
# Sourced by the tests of this folder: ends the test with a skip where there is no PTX; sets `tmp`.
# shellcheck source=tests/cudasim/sim.sh
. "$GTRAIN_SRC/tests/cudasim/sim.sh"
sim_needed ptx
if [ ! -d "$GTRAIN_BUILD/ptx/90" ]; then
	echo 'skip ptx: built without a CUDA toolkit'
	exit 0
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export XDG_CACHE_HOME=$tmp/cache # where choices of convolution engines are kept
# As on a GPU: exp, tanh and erf are not those of the host's kernels.
export PAIR_GPU=1

# part NAME ARCH LEAST COMMAND...: a test program on the PTX of an architecture; fewer than LEAST tests: something was lost.
part() {
	local name=$1 arch=$2 least=$3 ok rc
	shift 3
	CUDASIM_PTX=$GTRAIN_BUILD/ptx/$arch "$@" >"$tmp/log" 2>&1
	rc=$?
	ok=$(grep -c '^ok ' "$tmp/log")
	sed -n "s/^\(not \)\{0,1\}ok /&$name: /p" "$tmp/log"
	if [ $rc != 0 ] && ! grep -q '^not ok ' "$tmp/log"; then
		echo "not ok $name: ended with status $rc: $(grep -v '^ok ' "$tmp/log" | tail -n 1)"
	elif [ "$ok" -lt "$least" ]; then
		echo "not ok $name: only $ok tests ran"
	fi
	grep '^#' "$tmp/log" | grep -E 'calls agree|table on'
	echo "# ptx: $name (compute_$arch): $ok checks"
}
