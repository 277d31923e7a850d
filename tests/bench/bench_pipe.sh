#!/bin/bash
# bench_pipe.sh [BUILD]: the idle share of a pipeline on two ranks of one thread each, measured, beside what its schedule says: equal
# layers, so that the stages are equal by construction, and products so large that transfers do not matter. Prints one table and appends it
# to RESULTS.md.
# Environment: ROUNDS (3), STEPS (12), MICROS ("2 4 8 16"), SCHEDULES, BENCH_OUT: where the table is appended (tests/bench/RESULTS.md; "-":
# nowhere). Run it on a machine with two cores to spare: the table has the load at the start.
set -u
here=$(cd "$(dirname "$0")" && pwd) root=$(cd "$(dirname "$0")/../.." && pwd)
gtrain=$(cd "${1:-build}" && pwd)/bin/gtrain
rounds=${ROUNDS:-3} steps=${STEPS:-12} micros=${MICROS:-2 4 8 16} out=${BENCH_OUT:-$here/RESULTS.md}
schedules=${SCHEDULES:-gpipe 1f1b interleaved zero-bubble}
unset OPENBLAS_CORETYPE
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
load=$(cut -d' ' -f1 /proc/loadavg)
{
	cat <<'C'
schema = 1;
name = "bench-pipe";
device = "cpu";
threads = 1;
data = { name = "synthetic"; samples = 8192; samples_test = 1; classes = 10; };
model = { input = [1, 16, 16]; layers = (
	{ type = "flatten"; }, { name = "in"; type = "linear"; out = 1024; }, { type = "relu"; },
C
	for i in 1 2 3 4 5 6 7 8; do echo "	{ name = \"l$i\"; type = \"linear\"; out = 1024; }, { type = \"relu\"; },"; done
	cat <<'C'
	{ name = "out"; type = "linear"; out = 256; } ); };
train = { epochs = 1; optimizer = { type = "sgd"; lr = 1.0e-4; }; };
checkpoint = { dir = ""; };
C
} >"$tmp/c.cfg"

for _ in $(seq "$rounds"); do
	for m in $micros; do
		for schedule in $schedules; do
			cuts='["l5"]'
			[ "$schedule" = interleaved ] && cuts='["l3", "l5", "l7"]'
			"$gtrain" bench "$tmp/c.cfg" --json --steps "$steps" --nproc 2 -s data.batch=$((256 * m)) -s parallel.mode=pipe -s \
				"parallel.chunks=$m" \
				-s "parallel.schedule=$schedule" -s "parallel.cuts=$cuts" >>"$tmp/$schedule.$m" || exit 1
		done
	done
done
{
	echo
	echo "## $(date -u +%Y-%m-%d) $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), a pipeline on 2 ranks of one thread"
	echo
	echo "gtrain $(git -C "$root" rev-parse --short HEAD 2>/dev/null), load at the start $load, $rounds rounds of $steps steps, medians." \
		"Eight equal layers and two small ones (MLP"
	echo "256-1024-…-1024-256), micro-batches of 256. Idle: of the ranks' time, what they are in transfers and collectives (waiting, and" \
		"moving bytes);"
	echo "\"on paper\": the schedule with the measured times of the stages, and what follows the grid; \"alike\": all cells as long;" \
		"\"published\": the"
	echo "papers' formula with the measured mean F, B and W."
	echo
	python3 - "$tmp" "$micros" "$schedules" <<'P'
import json, statistics, sys
tmp, micros, schedules = sys.argv[1], sys.argv[2].split(), sys.argv[3].split()
print("| schedule | micro-batches | step, ms | F : B : W | idle, measured | on paper | alike | published | measured - on paper |")
print("|---|---|---|---|---|---|---|---|---|")
p, med = 2, statistics.median
for s in schedules:
    for m in map(int, micros):
        runs = [json.loads(l) for l in open(f"{tmp}/{s}.{m}")]
        v = len(runs[0]["stages"]) // p
        mean = lambda key: med(statistics.mean(x[key] for x in r["stages"]) * v for r in runs)
        f, b, w = mean("forward_ms"), mean("backward_ms"), mean("weights_ms")
        if s == "zero-bubble":  # ZB-H1: (p - 1) (F + B - W) of it
            lost = (p - 1) * (f + b - w)
            published = lost / (m * (f + b + w) + lost)
        else:
            published = (p - 1) / (v * m + p - 1)
        idle, paper, even = (med(r[k] for r in runs) for k in ("wait", "bubble", "bubble_even"))
        ratio = f"1 : {b / f:.2f} : {w / f:.2f}" if w else f"1 : {b / f:.2f}"
        step = med(r["step_ms"] for r in runs)
        print(f"| {s} | {m} | {step:.1f} | {ratio} | {100 * idle:.1f} % | {100 * paper:.1f} % | {100 * even:.1f} % | "
              f"{100 * published:.1f} % | {100 * (idle - paper):+.1f} |")
P
} | tee "$tmp/table"
[ "$out" = - ] || cat "$tmp/table" >>"$out"
