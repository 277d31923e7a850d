#!/bin/bash
# What ptxas said of every kernel while the CUDA backend was built: no spills, no stack frame (an array or a copy of the arguments in
# local memory), for every machine code that is built.
# tests/run: beside others
set -u
dir=$GTRAIN_BUILD/obj/kernels/cuda
if [ ! -e "$GTRAIN_BUILD/lib/gtrain/cuda.so" ]; then
	echo 'skip ptxas: built without a CUDA toolkit'
	exit 0
fi
all=$(cat "$dir"/*.ptxas | grep -c 'bytes stack frame')
bad=$(awk '/Compiling entry function|Function properties for/ { fn = $0 }
	/bytes stack frame/ && !/ 0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads/ { print fn ": " $0 }' "$dir"/*.ptxas)
if [ "$all" -lt 100 ]; then echo "not ok ptxas_report: only $all kernels in $dir/*.ptxas"
elif [ -n "$bad" ]; then echo "not ok ptxas_no_spills: $(head -n 3 <<<"$bad" | tr '\n' ';')"
else echo 'ok ptxas_no_spills'; fi
echo "# ptxas: $all kernels, at most $(cat "$dir"/*.ptxas | grep -o 'Used [0-9]* registers' | awk '$2 > m { m = $2 }
	END { print m }') registers"
