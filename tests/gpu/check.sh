#!/bin/bash
# tests/gpu/check.sh BUILD: the CUDA backend on a GPU (make check-gpu). The same programs that tests/cudasim runs on the host: the table of
# operations and the optimizers against PyTorch's results, device, streams, graphs and faults; then a training against the CPU's.
# NOT YET RUN ON A GPU: written and dry-run (on the host's CUDA runtime) on machines that have none.
set -u
build=$(cd "$1" && pwd)
GTRAIN_SRC=$(cd "$(dirname "$0")/../.." && pwd)
export GTRAIN_SRC
if ! "$build/bin/gtrain" devices --json | grep '"backend":"cuda"' | tee /dev/stderr | grep -q '"usable":true'; then
	echo 'check-gpu: no usable GPU' >&2
	exit 69
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bad=0
part() { # NAME LEAST COMMAND...
	local name=$1 least=$2 ok
	shift 2
	"$@" >"$tmp/log" 2>&1
	local rc=$?
	ok=$(grep -c '^ok ' "$tmp/log")
	grep -E '^(not ok|#)' "$tmp/log"
	echo "$name: $ok passed, $(grep -c '^not ok ' "$tmp/log") failed, $(grep -c '^skip ' "$tmp/log") refused by the backend, status $rc"
	if [ $rc != 0 ] || [ "$ok" -lt "$least" ]; then bad=1; fi
}
part operations 314 "$build/tests/ops/test_ops" -b cuda
part updates 40 "$build/tests/ops/test_updates" -b cuda
part layers 8 "$build/tests/cudasim/tool_layers"
export XDG_CACHE_HOME=$tmp/cache # choices of convolution engines are made here, by this library on this card
part convolutions 1 "$build/tests/cudasim/tool_conv"
part plans 7 "$build/tests/cuda/dnn_plans"
part device 5 "$build/tests/cudasim/tool_device"
export GTRAIN_BUILD=$build GTRAIN_SIM=$build
part windows 13 bash "$GTRAIN_SRC/tests/cudasim/test_windows.sh"
part fp16 10 bash "$GTRAIN_SRC/tests/cudasim/test_fp16.sh"
for d in cpu cuda; do
	"$build/bin/gtrain" run "$GTRAIN_SRC/configs/fmnist_mlp.cfg" --device $d -s train.epochs=1 -q --no-progress -o "$tmp/$d" || bad=1
	sed -nE 's/.*"event":"eval".*"loss":([^,}]+).*"acc":([^,}]+).*/\1 \2/p' "$tmp/$d/metrics.jsonl" | tail -n 1 >"$tmp/$d.eval"
	echo "fmnist_mlp, one epoch on $d: loss and accuracy $(cat "$tmp/$d.eval")"
done
# Adam divides small gradients by small numbers, so that rounding in another order grows: after 60 steps 0.15 % of the loss, measured on
# the host's CUDA runtime. A missing mask or a wrong gradient moved it by 20 %.
if ! paste -d ' ' "$tmp/cpu.eval" "$tmp/cuda.eval" | awk '{ d = ($1 - $3) / $1; ok = d < 0.03 && d > -0.03 } END { exit !(NR == 1 && ok) }'; then
	echo 'not ok: the two trainings differ'
	bad=1
fi
[ $bad = 0 ] && echo 'check-gpu: passed'
exit $bad
