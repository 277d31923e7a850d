#!/bin/bash
# What the assembler made of every kernel of the CUDA backend: no stack frame and no spills (an array or a copy of the arguments in local
# memory), and no kernel is worse than its row in kernels.txt (kernel_table.py): its occupancy, the width of its loads and stores. Newer
# architectures than sm_90 are assembled from the same PTX, for which the launch bounds were not chosen: there a kernel may spill 32 bytes.
# GTRAIN_UPDATE=1 writes kernels.txt.
# tests/run: beside others
set -u
here=$GTRAIN_SRC/tests/cuda
dir=$GTRAIN_BUILD/obj/kernels/cuda
if [ ! -e "$GTRAIN_BUILD/lib/gtrain/cuda.so" ]; then
	echo 'skip ptxas: built without a CUDA toolkit'
	exit 0
fi
all=$(cat "$dir"/*.ptxas | grep -c 'bytes stack frame')
spills=$(awk '/Compiling entry function/ { fn = $0; match(fn, /sm_[0-9]+/); sm = substr(fn, RSTART + 3, RLENGTH - 3) }
	/Function properties for/ { fn = $0 }
	/bytes stack frame/ && !/ 0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads/ {
		match($0, /[0-9]+ bytes stack frame/)
		print (sm + 0 > 90 && substr($0, RSTART) + 0 <= 32 ? "few" : "bad"), fn ": " $0 }' "$dir"/*.ptxas)
bad=$(sed -n 's/^bad //p' <<<"$spills")
if [ "$all" -lt 100 ]; then echo "not ok ptxas_report: only $all kernels in $dir/*.ptxas"
elif [ -n "$bad" ]; then echo "not ok ptxas_no_spills: $(head -n 3 <<<"$bad" | tr '\n' ';')"
else echo 'ok ptxas_no_spills'; fi
most=$(cat "$dir"/*.ptxas | grep -o 'Used [0-9]* registers' | awk '$2 > m { m = $2 } END { print m }')
echo "# ptxas: $all kernels, $(grep -c '^few' <<<"$spills") of them with spills on architectures after sm_90; at most $most registers"

if ! command -v python3 >/dev/null || ! command -v c++filt >/dev/null; then
	echo 'skip kernel_table: no python3 or no c++filt'
	exit 0
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
objects=()
for cu in "$GTRAIN_SRC"/kernels/cuda/*.cu; do
	object=$dir/$(basename "$cu" .cu).o
	[ -e "$object" ] && objects+=("$object")
done
table() {
	python3 "$here/kernel_table.py" "$@" "${objects[@]}"
}
if [ -n "${GTRAIN_UPDATE:-}" ]; then
	table - >"$tmp/new" && cp "$tmp/new" "$here/kernels.txt"
fi
if ! table "$here/kernels.txt" >"$tmp/out" 2>&1; then
	echo "not ok kernel_table: $(tail -n 1 "$tmp/out")"
	exit 0
fi
worse=$(grep -vc '^#\|^$' "$tmp/out")
if [ "$worse" -eq 0 ]; then echo 'ok kernel_table'
else echo "not ok kernel_table: $worse kernels are worse than tests/cuda/kernels.txt says: $(grep -v '^#\|^$' "$tmp/out" | head -n 3 |
	tr '\n' ';') GTRAIN_UPDATE=1 accepts them"; fi
grep '^#' "$tmp/out"

# A kernel that is worse than its row is found: here the rows are better than the kernels.
finds() {
	sed "$2" "$here/kernels.txt" >"$tmp/better"
	table "$tmp/better" | grep -q "$3" && echo "ok kernel_table_finds_$1" || echo "not ok kernel_table_finds_$1: nothing says '$3'"
}
finds occupancy 's/\(^head.cu: head_loss .*sm_90 .* regs\) [0-9]* %$/\1 99 %/' \
	'^head.cu: head_loss<.*expected an occupancy of 99 % on sm_90, got'
finds narrow_loads 's/^\(softmax.cu: softmax_rows .* ld\) [0-9]*/\1 16/' \
	'^softmax.cu: softmax_rows<.*expected loads of 16 bytes, got at most'
finds new_kernels '/^check.cu/,/^ /d' '^check.cu: check_step has no row'
finds lost_kernels 's/^colsum.cu: views_mean /colsum.cu: views_lost /' 'views_lost<float> has a row but is not in the build'
