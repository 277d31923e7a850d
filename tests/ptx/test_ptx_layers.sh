#!/bin/bash
# The kernels as nvcc compiled them, in PTX, on the host's CUDA runtime (README.md): single calls against the CPU backend, of
# normalisation, pooling, Muon, tables of rows and convolutions.
# tests/run: beside others
set -u
# shellcheck source=tests/ptx/ptx.sh
. "$GTRAIN_SRC/tests/ptx/ptx.sh"
part layers 90 12 "$sim/tests/cudasim/tool_layers"
part muon 90 4 "$sim/tests/cudasim/tool_muon"
part tables 90 9 "$sim/tests/cudasim/tool_tables"
part attention 90 3 "$sim/tests/cudasim/tool_attention"
part attention_by_cudnn 90 3 env TEST_CUDNN_ATTENTION=ordered "$sim/tests/cudasim/tool_attention" # the kernels around it
part sequences 90 5 "$sim/tests/cudasim/tool_sequences"
part convolutions 90 1 "$sim/tests/cudasim/tool_conv"
