#!/bin/bash
# The plans that the installed cuDNN makes for a card that is only described (dnn_plans.c): for shapes of its own, and for every convolution
# of every config in configs/, in four precisions. The list of the latter is what the CUDA backend asks for when such a run is planned on
# the host's CUDA runtime, as it writes it into its cache of choices. DNN_PLANS_LIST=FILE keeps the list. Every tenth graph of the list is
# tried; DNN_PLANS_FULL=1 tries all. Before that, the graphs around convolutions and normalisations that cuDNN could join (dnn_fusions.c),
# and those of attention (dnn_attention.c).
# tests/run: beside others
set -u
if [ ! -x "$GTRAIN_BUILD/tests/cuda/dnn_plans" ]; then
	echo 'skip dnn_plans: built without a CUDA toolkit or without cuDNN headers'
	exit 0
fi
# shellcheck source=tests/cudasim/sim.sh
. "$GTRAIN_SRC/tests/cudasim/sim.sh"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# The toolkit's stub of a driver, by the name that cuDNN opens; its folder has libcuda.so alone.
stub=$(find -L /usr/local/cuda/lib64/stubs /usr/local/cuda/lib/stubs -name libcuda.so 2>/dev/null | head -n 1)
if [ -n "$stub" ] && ! ldconfig -p 2>/dev/null | grep -q 'libcuda\.so\.1 '; then
	mkdir "$tmp/stub"
	ln -s "$stub" "$tmp/stub/libcuda.so.1"
	nvrtc=${stub%/stubs/libcuda.so}
	GTRAIN_DNN_STUB=1 LD_LIBRARY_PATH=$tmp/stub:$nvrtc "$GTRAIN_BUILD/tests/cuda/dnn_plans" compiled
	GTRAIN_DNN_STUB=1 LD_LIBRARY_PATH=$tmp/stub:$nvrtc "$GTRAIN_BUILD/tests/cuda/dnn_fusions"
	GTRAIN_DNN_STUB=1 LD_LIBRARY_PATH=$tmp/stub:$nvrtc "$GTRAIN_BUILD/tests/cuda/dnn_attention"
else
	echo 'skip compiled_engines: no stub of a driver in a toolkit, or a driver beside it'
	"$GTRAIN_BUILD/tests/cuda/dnn_fusions"
	"$GTRAIN_BUILD/tests/cuda/dnn_attention"
fi

if [ -z "$(sim_absent)" ]; then
	configs=0 without=0
	for cfg in "$GTRAIN_SRC"/configs/*.cfg; do
		if ! grep -q '"conv2d"' "$cfg"; then
			without=$((without + 1))
			continue
		fi
		for p in fp32 tf32 bf16 fp16; do
			mkdir -p "$tmp/cache"
			CUDASIM_DNN_IDLE=1 XDG_CACHE_HOME=$tmp/cache "$sim/bin/gtrain" plan "$cfg" --device cuda --world 1 -s parallel.mode=single \
				-s precision=$p -s reproducible=run \
				-s data.name=synthetic -s data.root= -s data.classes=10 -s data.samples=60000 -s data.samples_test=10000 >"$tmp/out" \
				2>&1 || {
				echo "not ok plan_of_$(basename "$cfg" .cfg)_$p: $(tail -n 1 "$tmp/out")"
				continue
			}
			configs=$((configs + 1))
			cat "$tmp/cache"/gtrain/*.plans 2>/dev/null | sed -n 's/^\(conv2d [^\t]*\)\t.*/\1/p' >>"$tmp/all"
			rm -rf "$tmp/cache"
		done
	done
	sort -u "$tmp/all" | awk -v full="${DNN_PLANS_FULL:-}" 'full || NR % 10 == 1' >"$tmp/graphs"
	[ -z "${DNN_PLANS_LIST:-}" ] || cp "$tmp/graphs" "$DNN_PLANS_LIST"
	echo "# configs: $configs plans of runs, $(wc -l <"$tmp/graphs") graphs of convolutions to try; $without configs have none"
	export GTRAIN_DNN_GRAPHS=$tmp/graphs
fi
exec "$GTRAIN_BUILD/tests/cuda/dnn_plans"
