#!/bin/bash
# train.groups with frozen_stats by the CUDA backend's own kernels, on the host's CUDA runtime, against the CPU's: all batch normalisations
# of a net, and one of two, whose parameters are frozen too; and with frozen_until, which ends, and freeze_after, which begins after two and
# after four steps. How near: tests/par/test_modes.sh.
# tests/run: beside others
set -u
# shellcheck source=tests/cudasim/sim.sh
. "$GTRAIN_SRC/tests/cudasim/sim.sh"
sim_begin sim_frozen_stats
options=(-q --no-progress -s train.steps=8 -s data.samples=64 -s data.batch=16 -s data.samples_test=16 -s autotune=false)
train() { # NAME PROGRAM DEVICE GROUPS
	"$2" run "$GTRAIN_SRC/tests/par/nets/cnn.cfg" -o "$tmp/$1" --device "$3" "${options[@]}" -s "train.groups=$4" >"$tmp/out" 2>&1
}
while read -r name groups; do
	if ! train "$name-cpu" "$GTRAIN" cpu "$groups" || ! train "$name-cuda" "$sim/bin/gtrain" cuda "$groups"; then
		echo "not ok sim_frozen_stats_$name: $(tail -n 1 "$tmp/out")"
	elif got=$("$GTRAIN_BUILD/tests/par/tool_same" -l 1e-5 -w 1e-4 "$tmp/$name-cpu" "$tmp/$name-cuda"); then
		echo "# sim_frozen_stats $name: $got"
		echo "ok sim_frozen_stats_$name"
	else
		echo "not ok sim_frozen_stats_$name: $got"
	fi
done <<'END'
all ({match="bn?.*";frozen_stats=true;})
one ({match="bn1.*";frozen=true;frozen_stats=true;})
until ({match="conv1.*";frozen_until=0.5;},{match=["bn1.*","bn2.*"];frozen_until=1.0;})
after ({match="conv1.*";freeze_after=0.5;},{match=["bn1.*","bn2.*"];freeze_after=1.0;})
END
