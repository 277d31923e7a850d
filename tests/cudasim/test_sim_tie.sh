#!/bin/bash
# Tied weights (tests/par/nets/tie.cfg) on the host's CUDA runtime: the curve and the weights are those of the CPU in f32, and in 16 bits
# every mode has those of one rank on the device. Tolerances: test_sim_random.sh and test_modes.sh.
# tests/run: beside others
set -u
# shellcheck source=tests/cudasim/sim.sh
. "$GTRAIN_SRC/tests/cudasim/sim.sh"
sim_begin sim_tie
cfg=$GTRAIN_SRC/tests/par/nets/tie.cfg

# train NAME PROGRAM DEVICE OPTIONS...
train() {
	rm -rf "${tmp:?}/$1"
	"$2" run -q --no-progress "$cfg" -o "$tmp/$1" --device "$3" -s autotune=false -s train.steps=8 "${@:4}" >/dev/null 2>"$tmp/log"
}

# agrees NAME REFERENCE OPTIONS...: run NAME on the device against run REFERENCE
agrees() {
	local got=''
	if train run "$sim/bin/gtrain" cuda "${@:3}" &&
		got=$("$GTRAIN_BUILD/tests/par/tool_same" -l 1e-4 -w 1e-3 -m 3e-3 "$tmp/$2" "$tmp/run"); then
		echo "ok sim_tie_$1"
	else
		echo "not ok sim_tie_$1: $got $(tail -n 1 "$tmp/log")"
	fi
}
pipe=(-s parallel.mode=pipe -s parallel.chunks=3 -s parallel.nproc=2)
train cpu "$GTRAIN" cpu || echo "not ok sim_tie_cpu: $(tail -n 1 "$tmp/log")"
agrees single cpu
agrees ddp cpu -s parallel.mode=ddp -s parallel.nproc=2
agrees zero3 cpu -s parallel.mode=zero -s parallel.stage=3 -s parallel.nproc=2 -s parallel.bucket_mb=0.001
agrees pipe cpu "${pipe[@]}" -s 'parallel.cuts=["mean"]'
agrees zero_bubble cpu "${pipe[@]}" -s 'parallel.cuts=["fc2"]' -s parallel.schedule=zero-bubble
for precision in bf16 fp16; do
	train half "$sim/bin/gtrain" cuda -s "precision=$precision" || echo "not ok sim_tie_$precision: $(tail -n 1 "$tmp/log")"
	agrees "${precision}_zero2" half -s "precision=$precision" -s parallel.mode=zero -s parallel.stage=2 \
		-s parallel.nproc=2 -s parallel.bucket_mb=0.001
	agrees "${precision}_pipe" half -s "precision=$precision" "${pipe[@]}" -s 'parallel.cuts=["mean"]'
done
