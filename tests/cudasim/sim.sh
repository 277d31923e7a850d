# shellcheck shell=bash
# Sourced by tests that run on the host's CUDA runtime: sets `sim`, the folder of its build, or of a build on a machine with a GPU
# (GTRAIN_SIM, tests/gpu/check.sh). sim_absent: why there is none, or nothing.
sim=${GTRAIN_SIM:-$GTRAIN_BUILD/cudasim}
export GTRAIN_NAN_MEMORY=1 # activations and workspaces begin as NaN: a kernel that reads what nobody has written shows
sim_absent() {
	if [ ! -e "$sim/lib/gtrain/cuda.so" ]; then
		echo 'built without a C++ compiler'
	elif grep -q __asan_init "$sim/lib/gtrain/cuda.so"; then
		echo 'the coroutines of cudasim and AddressSanitizer cannot be combined (it has guard pages of its own)'
	fi
}
# sim_needed NAME: ends the test with a skip where there is none
sim_needed() {
	local why
	why=$(sim_absent)
	[ -z "$why" ] || { echo "skip $1: $why"; exit 0; }
}
