#!/bin/bash
# The kernels as nvcc compiled them, in PTX, on the host's CUDA runtime (README.md): the table of operations against PyTorch in four
# precisions, optimizers. What is changed in the PTX must be noticed.
# tests/run: beside others
set -u
# shellcheck source=tests/ptx/ptx.sh
. "$GTRAIN_SRC/tests/ptx/ptx.sh"
part operations 90 380 "$sim/tests/ops/test_ops" -b cuda
part operations_first_first 80 380 env CUDASIM_FIRST=1 "$sim/tests/ops/test_ops" -b cuda
part table 90 380 "$sim/tests/gpu/tool_table"
part updates 80 40 "$sim/tests/ops/test_updates" -b cuda

# ---- counts --------------------------------------------------------------------------------------------------------------------------
# The sequences' heads are moved in 16 bytes: 4 * 128 * 12 * 64 numbers of bf16 are 49,152 loads and stores.
counted=$(CUDASIM_PTX=$GTRAIN_BUILD/ptx/90 CUDASIM_PTX_COUNT=1 "$sim/tests/ptx/tool_shapes" permute_heads | grep '^# ptx count')
if [[ $counted == *'49152 threads, '*' 49152 loads of 786432 bytes, 49152 stores of 786432 bytes' ]]; then echo 'ok counts'
else echo "not ok counts: $counted"; fi

# ---- changes that must be noticed ----------------------------------------------------------------------------------------------------
# change NAME FILE SED MESSAGE TEST: with FILE changed by SED, the test of tool_calls must end with MESSAGE.
change() {
	rm -rf "$tmp/changed"
	mkdir "$tmp/changed"
	ln -s "$GTRAIN_BUILD"/ptx/90/*.ptx "$tmp/changed"
	rm "$tmp/changed/$2"
	sed -E "$3" "$GTRAIN_BUILD/ptx/90/$2" >"$tmp/changed/$2"
	if cmp -s "$tmp/changed/$2" "$GTRAIN_BUILD/ptx/90/$2"; then
		echo "not ok change_$1: $2 is as before"
	elif CUDASIM_PTX=$tmp/changed "$sim/tests/cudasim/tool_calls" "$5" >"$tmp/log" 2>&1; then
		echo "not ok change_$1: the tests pass"
	elif grep -q "$4" "$tmp/log"; then
		echo "ok change_$1"
	else
		echo "not ok change_$1: $(tail -n 1 "$tmp/log")"
	fi
}
change barrier softmax.ptx '/bar.sync/d' 'race: ' softmax
change alignment update.ptx 's/(st\.global\.v4\.f32[^[]*\[%rd[0-9]+)\]/\1+4]/' 'is not aligned to 16 bytes' updates
change arithmetic softmax.ptx 's/sub\.rn\.f32/add.rn.f32/' '^not ok softmax: .* the CPU has' softmax
change arguments loss.ptx 's/(param_0)\[[0-9]+\]/\1[8]/' 'bytes for the host, 8 in the kernel' losses
change instruction softmax.ptx 's/ex2\.approx\.ftz\.f32/tanh.approx.f32/' 'an instruction that is not simulated' softmax
change instruction_of_memory softmax.ptx 's/shfl\.sync\.bfly/shfl.sync.idx/' 'an instruction that is not simulated' softmax
