#!/bin/bash
# fp16 with the dynamic loss scale, on the host's CUDA runtime (test_cudasim.sh): the scale's rule as a run shows it, skipped steps in
# windows, checkpoints of the scale, divergence.
# tests/run: beside others
set -u
# shellcheck source=tests/cudasim/sim.sh
. "$GTRAIN_SRC/tests/cudasim/sim.sh"
sim_begin fp16
export CUDASIM_UNORDERED=1 # what is compared bit by bit must not rely on an order that a GPU's libraries do not promise

# 79 steps an epoch. The scale begins where gradients overflow, and grows every 5 steps until they do again.
cat >"$tmp/net.cfg" <<'CFG'
schema = 1; name = "net"; seed = 3; precision = "fp16"; reproducible = "run";
	# without, a GPU's libraries may add in another order in the next run
data = { name = "synthetic"; batch = 32; classes = 4; samples = 2500; samples_test = 100; };
model = { input = [3, 4, 4]; layers = ( { type = "flatten"; }, { name = "fc1"; type = "linear"; out = 17; }, { type = "gelu"; },
	{ type = "dropout"; p = 0.2; }, { name = "fc"; type = "linear"; out = 4; } ); };
train = { epochs = 1; accumulate = 2; clip_norm = 1.0; optimizer = { type = "adam"; lr = 0.01; };
	schedule = { type = "cosine"; unit = "step"; };
	loss_scale = { init = 1073741824.0; interval = 5; }; };
checkpoint = { dir = "unused"; every_steps = 20; keep = 99; };
log = { every_steps = 1; };
CFG
# rule DIR INIT INTERVAL TOTAL: every line of the run follows from the one before it; prints what does not
rule() {
	curve "$1" | awk -v scale="$2" -v interval="$3" -v total="$4" -F'[:,}]' '
		/"eval"/ { next }
		{ for (i = 1; i < NF; i++) { if ($i == "\"step\"") step = $(i + 1); if ($i == "\"loss_scale\"") now = $(i + 1);
		if ($i == "\"lr\"") lr = $(i + 1) } }
		/"skip"/ { skips++; scale /= 2; good = 0; if (step != done + 1) print "skip with step " step " after " done }
		/"train"/ { done++; if (++good == interval) { scale *= 2; good = 0 }
			if (step != done) print "step " step " after " done - 1
			want = 0.01 * (1 + cos(3.14159265358979 * (done - 1) / total)) / 2
			if (lr - want > 1e-9 || want - lr > 1e-9) print "step " step ": lr " lr ", not " want }
		now != scale { print "step " step ": loss scale " now ", not " scale; exit }
		END { if (done + skips != total) print done " steps and " skips " skipped of " total;
		if (skips < 10) print "only " skips " skips" }' | head -n 1
}

sim_train "$tmp/eager" -s cuda_graphs=false -s window=1
[ "$(cat "$tmp/eager.rc")" = 0 ] || echo "not ok fp16_runs: $(tail -n 1 "$tmp/eager.out")"
ok scale_follows_its_rule "$(rule "$tmp/eager" 1073741824 5 79)"
for w in 1 8 64; do
	sim_train "$tmp/w$w" -s window=$w
	sim_same "fp16_window_of_$w" "$tmp/eager" "$tmp/w$w"
done
echo "# fp16: $(curve "$tmp/eager" | grep -c '"train"') steps applied, $(curve "$tmp/eager" | grep -c '"skip"') skipped"

# Until so many steps are applied: more data is read, none of it twice in an epoch.
sim_train "$tmp/steps" -s window=64 -s train.steps=100
why=
[ "$(cat "$tmp/steps.rc")" = 0 ] || why="status $(cat "$tmp/steps.rc"): $(tail -n 1 "$tmp/steps.out")"
[ "$(curve "$tmp/steps" | grep -c '"train"')" = 100 ] || why="$(curve "$tmp/steps" | grep -c '"train"') steps"
ok steps_are_applied_ones "$why"

# Every checkpoint goes on to the same bits: the scale and its tracker are in it.
for k in 20 40; do
	d=$tmp/from$k
	cp -r "$tmp/w64" "$d"
	rm -f "$d/latest" "$d/best"
	for s in "$d"/step-*; do [ "$(basename "$s")" \> "$(printf 'step-%08d' $k)" ] && rm -r "$s"; done
	"$sim/bin/gtrain" resume "$d" --device cuda --no-progress >"$d.out" 2>&1
	echo $? >"$d.rc"
	sim_same "fp16_resumes_from_$k" "$tmp/w64" "$d"
done

# A scale that does not overflow: the losses of fp32, except f16's rounding of activations and their gradients (2^-11) in 79 steps.
sim_train "$tmp/plain" -s train.loss_scale.init=1024.0 -s train.loss_scale.interval=2000
sim_train "$tmp/fp32" -s precision=fp32
worst=$(paste -d ' ' <(losses "$tmp/plain") <(losses "$tmp/fp32") |
	awk '{ d = ($3 - $6) / $6; if (d < 0) d = -d; if ($1 != $4 || $2 != $5 || !(d <= 1)) d = 9; if (d > m) m = d }
		END { if (NR < 79) m = 9; print m + 0 }')
why=
awk "BEGIN { exit !($worst <= 1e-2) }" || why="losses differ by $worst"
grep -q '"skip"' "$tmp/plain/metrics.jsonl" && why="$why skipped steps"
ok fp16_as_fp32 "$why"
echo "# fp16: losses within $worst of fp32's"

# A constant scale that is too large skips 64 steps, and then the run has diverged; nothing was updated.
sim_train "$tmp/never" -s window=64 -s train.loss_scale.init=1.0e30 -s train.loss_scale.dynamic=false
why=
[ "$(cat "$tmp/never.rc")" = 3 ] || why="status $(cat "$tmp/never.rc")"
grep -q '64 steps in a row overflowed in fp16, the last step with the loss scale 1e+30: diverged at step 1: .*nothing was updated' \
	"$tmp/never.out" ||
	why="$why: $(tail -n 1 "$tmp/never.out")"
[ "$(curve "$tmp/never" | grep -c '"skip"')" = 63 ] && ! grep -q '"train"' "$tmp/never/metrics.jsonl" ||
	why="$why: $(curve "$tmp/never" | cut -c1-20 | sort | uniq -c | tr '\n' ' ')"
ok fp16_diverges "$why"

"$sim/bin/gtrain" run "$tmp/net.cfg" --device cpu -s reproducible=none -o "$tmp/cpu" >"$tmp/out" 2>&1
rc=$? why=
[ $rc = 78 ] && grep -q 'precision = "fp16" and device "cpu" cannot be combined' "$tmp/out" || why="status $rc: $(tail -n 1 "$tmp/out")"
ok fp16_not_on_the_cpu "$why"

# predict reads the outputs in their own type: half-precision outputs give the probabilities of fp32, rounded
if command -v python3 >/dev/null; then
	python3 -c '
import struct
open("'"$tmp"'/three.idx", "wb").write(struct.pack(">IIIIII", 0x804, 3, 3, 4, 4, 0)[:20] + bytes(i * 37 % 256 for i in range(144)))'
	sim_train "$tmp/half" -s window=8
	"$sim/bin/gtrain" predict "$tmp/half" "$tmp/three.idx" --device cuda --csv --top 4 >"$tmp/half.csv" 2>"$tmp/out"
	"$sim/bin/gtrain" run "$tmp/net.cfg" --device cpu -s precision=fp32 --init "$tmp/half/latest/model.safetensors" -s train.epochs=1 \
		-s train.optimizer.lr=0 -o "$tmp/full" -q --no-progress >"$tmp/out" 2>&1
	"$sim/bin/gtrain" predict "$tmp/full" "$tmp/three.idx" --device cpu --csv --top 4 >"$tmp/full.csv" 2>"$tmp/out"
	why=$(python3 -c '
import csv, sys
a, b = (list(csv.reader(open(f)))[1:] for f in sys.argv[1:])
assert len(a) == len(b) == 3, (len(a), len(b))
for x, y in zip(a, b):
    p, q = ({r[i]: float(r[i + 2]) for i in range(2, 14, 3)} for r in (x, y))
    # an output of this net is below 8: half precision rounds it, and what it is computed from, by less than 2^-8 in all
    assert all(abs(p[c] - q[c]) < 0.01 for c in p), (p, q)
' "$tmp/half.csv" "$tmp/full.csv" 2>&1 | tail -n 1)
	ok fp16_predicted "$why"
else
	echo 'skip fp16_predicted: python3 is not installed'
fi
