#!/bin/bash
# bench.sh [BUILD]: the benchmarks of make bench-gpu on a GPU, from a build tree or a folder of `make gpu-folder`, in under 8 minutes:
# MLP-32, ResNet-18 for CIFAR, the airbench recipe, start-up, beside the fastest that PyTorch does (bench_torch.py), ceilings and profiles.
# Prints a table and appends it to BENCH_OUT (bench-gpu.md in $OUT or BUILD; "-": nowhere). Nothing else may use the GPU meanwhile.
# Environment: TORCH_PYTHON (python3: one that has torch; without, gtrain alone), BENCH_BUDGET (seconds, 460), BENCH_ROUNDS (3), BENCH_ONLY
# (ceilings, start, mlp, resnet, airbench, profile or overlap), BENCH_TINY=1 with BENCH_DEVICE (dry run; for PyTorch and gtrain: cpu).
# NOT YET RUN ON A GPU: written and dry-run on machines that have none.
set -u
here=$(cd "$(dirname "$0")" && pwd)
src=$(cd "$here/../.." && pwd)
build=${1:-}
[ -n "$build" ] || build=$([ -x "$src/bin/gtrain" ] && echo "$src" || echo "$src/build")
build=$(cd "$build" && pwd) || exit 66
python=${TORCH_PYTHON:-python3} device=${BENCH_DEVICE:-cuda} title=
[ -d "$src/data" ] && export GTRAIN_DATA=${GTRAIN_DATA:-$src/data}
unset OPENBLAS_CORETYPE
if [ "$device" = cuda ]; then
	before=${LD_LIBRARY_PATH:-}
	# shellcheck source=tests/gpu/cuda_libs.sh
	. "$here/cuda_libs.sh"
	row=$("$build/bin/gtrain" devices --json 2>/dev/null | tr '{' '\n' | grep '"backend":"cuda"' | head -n 1)
	if ! grep -q '"usable":true' <<<"$row"; then
		echo "skip bench-gpu: no usable GPU: $(sed -n 's/.*"detail":"\([^"]*\)".*/\1/p' <<<"$row")"
		exit 0
	fi
	title="$(sed -n 's/.*"name":"\([^"]*\)".*/\1/p' <<<"$row"), $(sed -n 's/.*"detail":"\([^"]*\)".*/\1/p' \
		<<<"$row"), driver $(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -n 1)"
	sed '/^$/d' <<<"$cuda_libs" >&2
	libs=$LD_LIBRARY_PATH
	# PyTorch finds its own libraries; gtrain gets these.
	export LD_LIBRARY_PATH=$before
	gtrain=$(mktemp)
	trap 'rm -f "$gtrain"' EXIT
	printf '#!/bin/sh\nLD_LIBRARY_PATH=%q exec %q "$@"\n' "$libs" "$build/bin/gtrain" >"$gtrain"
	chmod +x "$gtrain"
else
	gtrain=$build/bin/gtrain title="dry run on $device"
fi
commit=$(cat "$src/COMMIT" 2>/dev/null || git -C "$src" describe --always --dirty 2>/dev/null)
"$python" -c 'import torch' 2>/dev/null || { echo "bench-gpu: $python has no torch: gtrain alone" >&2 && python=; }
python3 "$here/bench.py" --gtrain "$gtrain" --src "$src" --device "$device" --torch "$python" --budget "${BENCH_BUDGET:-460}" \
	--rounds "${BENCH_ROUNDS:-3}" --only "${BENCH_ONLY:-}" ${BENCH_TINY:+--tiny} --title "gtrain ${commit:-?} on $title" \
	--out "${BENCH_OUT:-${OUT:-$build}/bench-gpu.md}"
