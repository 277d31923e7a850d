#!/bin/bash
# The kernels as nvcc compiled them, in PTX, on the host's CUDA runtime (README.md): single calls against the CPU backend.
# tests/run: beside others
set -u
# shellcheck source=tests/ptx/ptx.sh
. "$GTRAIN_SRC/tests/ptx/ptx.sh"
part calls 90 12 "$sim/tests/cudasim/tool_calls"
for one in losses softmax updates; do
	part "calls_first_first_$one" 80 1 env CUDASIM_FIRST=1 "$sim/tests/cudasim/tool_calls" $one
	part "calls_early_$one" 90 1 env GTRAIN_CUDA_PDL=1 "$sim/tests/cudasim/tool_calls" $one
done
