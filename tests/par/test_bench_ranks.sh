#!/bin/bash
# `gtrain bench` on several ranks: who waits how long, and what a pipeline's schedule says of it.
. "$GTRAIN_SRC/tests/par/par.sh"
cat >"$tmp/c.cfg" <<'C'
schema = 1;
name = "bench";
device = "cpu";
threads = 1;
data = { name = "synthetic"; samples = 64; samples_test = 8; classes = 4; batch = 32; };
model = { input = [1, 8, 8]; layers = (
	{ type = "flatten"; }, { type = "linear"; out = 64; }, { type = "relu"; }, { type = "linear"; out = 64; }, { type = "relu"; },
	{ type = "linear"; out = 64; }, { type = "relu"; }, { type = "linear"; out = 4; } ); };
train = { epochs = 1; optimizer = { type = "sgd"; lr = 1.0e-2; }; };
checkpoint = { dir = ""; };
C
# bench NAME RANKS EXPRESSION OPTIONS...: EXPRESSION, in Python, of the object that is printed, b
bench() {
	local name=$1 ranks=$2 expression=$3 why
	shift 3
	if ! "$gtrain" bench "$tmp/c.cfg" --json --steps 3 --nproc "$ranks" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null; then
		echo "not ok bench_$name: $(tail -n 1 "$tmp/err")"
	elif why=$(python3 -c '
import json, sys
lines = sys.stdin.read().splitlines()
assert len(lines) == 1, f"{len(lines)} lines"
b = json.loads(lines[0])
assert len(b["ranks"]) == int(sys.argv[1]), b["ranks"]
for r in b["ranks"]:
    assert 0 < r["wait_ms"] < r["step_ms"], r
mean = sum(r["wait_ms"] for r in b["ranks"]) / sum(r["step_ms"] for r in b["ranks"])
assert abs(b["wait"] - mean) < 1e-4, (b["wait"], mean)  # six digits of each
assert eval("(" + sys.argv[2] + ")"), {k: b[k] for k in b if k != "kernels"}
' "$ranks" "$expression" <"$tmp/out" 2>&1); then
		echo "ok bench_$name"
	else
		echo "not ok bench_$name: $(tail -n 1 <<<"$why")"
	fi
}
bench ddp 2 '"stages" not in b and [r["copy"] for r in b["ranks"]] == [0, 1]' -s parallel.mode=ddp
bench dp 2 '"stages" not in b' -s parallel.mode=dp
bench zero 3 '"stages" not in b' -s parallel.mode=zero
# all stages as long: (p - 1) / (m + p - 1), of interleaved (p - 1) / (v m + p - 1), of zero-bubble (p - 1) / (3 m + p - 1)
pipe='b["micro_batches"] == 4 and all(s["forward_ms"] > 0 and s["backward_ms"] > 0 for s in b["stages"]) and
	0 < b["bubble"] < 1 and [r["place"] for r in b["ranks"]] == [0, 1]'
bench gpipe 2 "$pipe and len(b['stages']) == 2 and abs(b['bubble_even'] - 1 / 5) < 1e-5" -s parallel.mode=pipe -s parallel.chunks=4 \
	-s parallel.schedule=gpipe
bench 1f1b 2 "$pipe and len(b['stages']) == 2 and abs(b['bubble_even'] - 1 / 5) < 1e-5" -s parallel.mode=pipe -s parallel.chunks=4
bench interleaved 2 "$pipe and len(b['stages']) == 4 and abs(b['bubble_even'] - 1 / 9) < 1e-5" -s parallel.mode=pipe -s parallel.chunks=4 \
	-s parallel.schedule=interleaved
bench zero_bubble 2 "$pipe and all(s['weights_ms'] > 0 for s in b['stages']) and abs(b['bubble_even'] - 1 / 13) < 1e-5" \
	-s parallel.mode=pipe -s parallel.chunks=4 -s parallel.schedule=zero-bubble
bench replicas 4 'len(b["stages"]) == 2 and [(r["place"], r["copy"]) for r in b["ranks"]] == [(0, 0), (0, 1), (1, 0), (1, 1)]' \
	-s parallel.mode=pipe -s parallel.chunks=2 -s parallel.replicas=2
# people's table, and one rank alone, which waits for nobody
if "$gtrain" bench "$tmp/c.cfg" --steps 2 --nproc 2 -s parallel.mode=pipe >"$tmp/out" 2>&1 &&
	grep -q '^waiting for other ranks and for communication: .*; idle time of the schedule: ' "$tmp/out"; then
	echo 'ok bench_text'
else
	echo "not ok bench_text: $(tail -n 1 "$tmp/out")"
fi
if "$gtrain" bench "$tmp/c.cfg" --json --steps 2 >"$tmp/out" 2>&1 && ! grep -q '"ranks"' "$tmp/out"; then
	echo 'ok bench_alone'
else
	echo "not ok bench_alone: $(tail -n 1 "$tmp/out")"
fi
if "$gtrain" bench "$tmp/c.cfg" --nproc 2 >"$tmp/out" 2>&1; then
	echo 'not ok bench_refused: status 0'
elif grep -q 'nproc 2 and parallel.mode = "single" cannot be combined' "$tmp/out"; then
	echo 'ok bench_refused'
else
	echo "not ok bench_refused: $(tail -n 1 "$tmp/out")"
fi
