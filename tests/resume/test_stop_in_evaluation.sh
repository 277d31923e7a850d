#!/bin/bash
# A stop takes effect between two batches of an evaluation: the run gives the evaluation up and saves a checkpoint. The resumed run makes
# the evaluation, and then has the same weights and the same log as a run that was never stopped.
# shellcheck source=tests/par/start.sh
. "$(dirname "$0")/../par/start.sh"
cd "$tmp" || exit 1
set -m # or the shell would have its background jobs ignore SIGINT
# Training takes a moment, and the evaluation of the split test takes seconds. Each evaluation lowers the learning rate, so that one that is
# lost, or counted twice, changes the weights.
cat >slow.cfg <<'END'
schema = 1;
name = "slow";
threads = 1;
data = { name = "synthetic"; batch = 20; classes = 10; samples = 200; samples_test = 30000; valid = 0.2; };
model = { input = [1, 12, 12]; layers = ( { type = "flatten"; }, { name = "a"; type = "linear"; out = 1600; }, { type = "relu"; },
	{ name = "b"; type = "linear"; out = 1600; }, { type = "relu"; }, { name = "c"; type = "linear"; out = 10; } ); };
train = { epochs = 2; optimizer = { type = "sgd"; lr = 0.01; momentum = 0.9; };
	schedule = { type = "plateau"; metric = "valid/loss"; patience = 0; factor = 0.5; threshold = 0.9; }; };
checkpoint = { dir = "unused"; every_epochs = 1; keep = 9; best = { metric = "test/acc"; }; };
log = { every_steps = 1; };
END

# await RUN TEXT N: waits until metrics.jsonl of the run has N lines with the text
await() {
	for _ in $(seq 2400); do
		[ "$(cat "$1/metrics.jsonl" 2>/dev/null | grep -c "$2")" -ge "$3" ] && return
		kill -0 "$pid" 2>/dev/null || return
		sleep 0.05
	done
}
# begin ARGS...: a launcher or a run in the background; its process in $pid
begin() {
	GTRAIN_TEST_MARK=$mark "$gtrain" "$@" >out 2>err &
	pid=$!
}
# stops NAME RUN SIGNAL STATUS EPOCH [PROCESS]: sends the signal during the evaluation after the epoch. The run ends with the status, and
# with a checkpoint, but without this evaluation.
stops() {
	local rc evals=$((2 * ($5 - 1)))
	await "$2" '"event":"epoch"' "$5"
	sleep 0.05
	kill "-$3" "${6:-$pid}"
	wait "$pid"
	rc=$?
	if [ "$rc" != "$4" ]; then
		fail "$1" "status $rc, not $4: $(tail -n 2 err)"
	elif [ "$(grep -c '"event":"eval"' "$2/metrics.jsonl")" != "$evals" ]; then
		fail "$1" "the run has completed the evaluation: $(grep '"event":"eval"' "$2/metrics.jsonl" | tail -n 1)"
	elif ! "$gtrain" inspect "$2/latest" --verify --json | grep -q "\"step\":$(($5 * 8)),"; then
		fail "$1" "no checkpoint of step $(($5 * 8)): $(ls "$2")"
	elif ! grep -q "ended by signal .* after step $(($5 * 8))" err; then
		fail "$1" "no reason: $(cat err)"
	else
		pass "$1"
	fi
}
# equal NAME RUN WHOLE: both runs have the same weights and, apart from starts and ends, the same log
equal() {
	if python3 - "$2" "$3" >difference <<'END'
import hashlib, json, pathlib, sys
def state(run):
    run = pathlib.Path(run)
    events = [json.loads(line) for line in open(run / "metrics.jsonl")]
    log = []
    for e in events:
        if e["event"] in ("train", "epoch", "eval", "checkpoint", "warn"):
            e = {k: v for k, v in e.items() if k not in ("time", "seconds", "samples_per_s")}
            e["path"] = pathlib.Path(e.get("path", "")).name
            log.append(e)
    last = {k: v for k, v in events[-1].items() if k in ("event", "step", "epoch", "status", "test", "valid", "train", "best")}
    files = {link: [hashlib.sha256((run / link / f).read_bytes()).hexdigest() for f in ("model.safetensors", "optimizer.safetensors")]
             for link in ("latest", "best")}
    meta = json.loads((run / "latest" / "manifest.json").read_text())
    meta = {k: meta.get(k) for k in ("step", "epoch", "best", "peak", "plateau", "pending_evaluation")}
    return {"log": log, "end": last, "files": files, "manifest": meta}
a, b = state(sys.argv[1]), state(sys.argv[2])
for k in a:
    if k == "log":
        for x, y in zip(a[k], b[k]):
            if x != y:
                sys.exit(print(f"event {x} instead of {y}") or 1)
        if len(a[k]) != len(b[k]):
            sys.exit(print(f"{len(a[k])} events instead of {len(b[k])}") or 1)
    elif a[k] != b[k]:
        sys.exit(print(f"{k}: {a[k]} instead of {b[k]}") or 1)
END
	then pass "$1"; else fail "$1" "$(cat difference)"; fi
}

# ---- one rank: a stop in the middle of the run and at its end ----
"$gtrain" run slow.cfg -o whole >out 2>err || fail whole "$(tail -n 1 err)"
begin run slow.cfg -o one
stops stop_in_evaluation one TERM 143 1
begin resume one
stops stop_in_last_evaluation one USR1 138 2
run resume one
equal resumed_evaluates one whole
# The second one is no evaluation again: the run is complete.
gives complete_after_it 0 out 'one is complete' resume one

# A resumed run that is stopped in the same evaluation has lost nothing.
begin run slow.cfg -o twice -s train.epochs=1
stops stop_once twice INT 130 1
"$gtrain" resume twice --time-limit 0.1 -s checkpoint.keep=8 >out 2>err
rc=$?
if [ "$rc" = 0 ] && ! grep -q '"event":"eval"' twice/metrics.jsonl && tail -n 1 twice/metrics.jsonl | grep -q '"status":"time limit"' &&
	! grep -q 'without a checkpoint\|loss nan' out err; then
	pass time_limit_in_evaluation
else
	fail time_limit_in_evaluation "status $rc: $(cat out err) $(tail -n 1 twice/metrics.jsonl)"
fi
# Its checkpoint has the new setting and a line in the log, although the step is the same.
if grep -q 'keep = 8' twice/latest/config.cfg && [ "$(grep -c '"event":"checkpoint"' twice/metrics.jsonl)" = 1 ]; then
	pass settings_saved_again
else
	fail settings_saved_again "$(grep keep twice/latest/config.cfg), $(grep -c '"event":"checkpoint"' twice/metrics.jsonl) lines"
fi
run resume twice -s train.epochs=2
equal resumed_after_time_limit twice whole

# ---- several ranks: all give the evaluation up at the same batch ----
while read -r mode who; do
	opts=(-s "parallel.mode=$mode" --nproc 2 -s train.epochs=1)
	"$gtrain" run slow.cfg -o "whole-$mode" "${opts[@]}" >out 2>err || fail "whole_$mode" "$(tail -n 1 err)"
	begin run slow.cfg -o "$mode" "${opts[@]}"
	await "$mode" '"event":"epoch"' 1
	target=$pid
	# shellcheck disable=SC2046
	[ "$who" = rank ] && target=$(grep -lzs "^GTRAIN_RANK=1$" $(marked) | sed 's,/proc/\([0-9]*\)/.*,\1,')
	stops "stop_$mode" "$mode" TERM 143 1 "$target"
	run resume "$mode" --nproc 2
	equal "resumed_$mode" "$mode" "whole-$mode"
done <<-'END'
	ddp rank
	zero launcher
	pipe launcher
	dp launcher
END

# ---- commands on a checkpoint end at once ----
for n in 1 2; do
	mode=ddp
	[ $n = 1 ] && mode=single
	begin eval whole --nproc $n -s parallel.mode=$mode
	sleep 0.3
	kill -TERM "$pid"
	wait "$pid"
	rc=$?
	if [ "$rc" = 143 ] && [ -z "$(left)" ]; then pass "eval_ends_$n"; else fail "eval_ends_$n" "status $rc: $(cat err)"; fi
done
