#!/bin/bash
# tests/run: beside others
# log.command: a command gets each line of metrics.jsonl, in every way a run ends; a slow, dead or stuck command costs no training time.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
cd "$tmp" || exit 1
tiny_config

# train OUT ARGS...: a run without output but messages, in $tmp/err; its exit status in $rc
train() {
	local out=$1
	shift
	run run tiny.cfg --device cpu -q --no-progress -o "$out" "$@"
}
same_lines() { # NAME FILE RUN: FILE is the log of the run
	if [ "$rc" = 0 ] && [ -s "$2" ] && cmp -s "$2" "$3/metrics.jsonl"; then pass "$1"; else fail "$1" "status $rc: $(cat "$tmp/err")"; fi
}
warned() { # NAME TEXT: the run has succeeded with exactly one warning, which has this text
	if [ "$rc" = 0 ] && [ "$(grep -c 'warning: log.command' "$tmp/err")" = "${3-1}" ] && grep -q "warning: $2" "$tmp/err"; then pass "$1"
	else fail "$1" "status $rc: $(cat "$tmp/err")"; fi
}

train a -s 'log.command="cat >a.jsonl"'
same_lines all_events a.jsonl a
if [ ! -s err ]; then pass no_warning; else fail no_warning "$(cat err)"; fi
# shellcheck disable=SC2016
train env -s 'log.command="pwd >where; echo $GTRAIN_RUN_DIR >>where; cat >/dev/null"'
if [ "$(cat where)" = "$PWD
$PWD/env" ]; then pass directory; else fail directory "$(cat where)"; fi
train printed -s 'log.command="echo to stdout; cat >/dev/null"'
if grep -q '^to stdout$' err && ! grep -q 'to stdout' out; then pass output_is_stderr; else fail output_is_stderr "$(cat err)"; fi

# a program with a relative path is beside the config, as data files are; from --set it is below the current directory
mkdir -p "con fig/bin" elsewhere
printf '#!/bin/sh\necho "$1" >>"$GTRAIN_RUN_DIR/who"; pwd >>"$GTRAIN_RUN_DIR/who"; cat >/dev/null\n' | tee "con fig/bin/log" >elsewhere/log
chmod +x "con fig/bin/log" elsewhere/log
sed 's|^log = {|log = { command = "bin/log  arg;true";|' tiny.cfg >"con fig/net.cfg"
(cd elsewhere && "$gtrain" run "../con fig/net.cfg" --device cpu -q --no-progress -o ../beside && cd / &&
	"$gtrain" resume "$tmp/beside" -q --no-progress -s train.epochs=3) >out 2>err
rc=$?
if [ "$rc" = 0 ] && [ "$(tr '\n' ' ' <beside/who)" = "arg $PWD/elsewhere arg / " ]; then pass program_beside_config
else fail program_beside_config "status $rc: $(cat beside/who err)"; fi
(cd elsewhere && "$gtrain" run ../tiny.cfg --device cpu -q --no-progress -o ../set -s 'log.command="./log set"') >out 2>err
if [ "$(head -n 1 set/who)" = set ]; then pass program_of_set; else fail program_of_set "$(cat err)"; fi

# a resumed run starts it again, for the new lines only; the old config's command goes on
before=$(wc -l <a/metrics.jsonl)
run resume a -q --no-progress -s train.epochs=3
if [ "$rc" = 0 ] && cmp -s a.jsonl <(tail -n "+$((before + 1))" a/metrics.jsonl); then pass resumed; else fail resumed "$(cat err)"; fi

# several ranks: rank 0 starts it, once; threads and processes
train ranks --nproc 2 -s 'parallel.mode="ddp"' -s 'log.command="echo start >>starts; cat >b.jsonl"'
same_lines processes b.jsonl ranks
if [ "$(wc -l <starts)" = 1 ]; then pass one_start; else fail one_start "$(cat starts)"; fi
train threads --nproc 2 -s 'parallel.mode="dp"' -s 'log.command="cat >b.jsonl"'
same_lines threads b.jsonl threads

# a run without a directory, a dry run, check and a smoke test
run run tiny.cfg --device cpu -q --no-progress -s 'checkpoint.dir=""' -s 'log.command="cat >none.jsonl"'
if [ "$rc" = 0 ] && [ "$(grep -c '"event":"train"' none.jsonl)" = 16 ]; then pass no_directory; else fail no_directory "$(cat err)"; fi
for words in 'check tiny.cfg' 'run tiny.cfg --dry-run' 'run tiny.cfg --smoke --device cpu'; do
	# shellcheck disable=SC2086
	run $words -s 'log.command="touch started"'
	name=not_by_$(sed 's/ tiny.cfg//; s/[ -]*--device.*//; s/[ -][ -]*/_/g' <<<"$words")
	if [ "$rc" = 0 ] && [ ! -e started ]; then pass "$name"; else fail "$name" "status $rc: $(cat err)"; fi
done

# commands that fail
train missing -s 'log.command="no_such_program_at_all"'
warned missing 'log.command ended with status 127 (command not found); it gets no further events; training continues' 2
train dead -s 'log.command="head -n 3 >/dev/null"'
warned dead 'log.command ended early and did not get [0-9]* of 2[0-9] events' 2
train killed -s 'log.command="kill -9 $$"'
warned killed 'log.command was killed by signal 9 (Killed); it gets no further events; training continues' 2
train status -s 'log.command="cat >/dev/null; exit 3"'
warned status 'log.command ended with status 3$'

# a run that an error ends: the command gets the end
run run tiny.cfg --device cpu -q --no-progress -o nan -s train.optimizer.lr=1e38 -s train.epochs=50 -s 'log.command="cat >nan.jsonl"'
if [ "$rc" = 3 ] && cmp -s nan.jsonl nan/metrics.jsonl && tail -n 1 nan.jsonl | grep -q '"status":"diverged","code":3'; then pass diverged
else fail diverged "status $rc: $(tail -n 1 nan.jsonl)"; fi

# a command that never reads: more lines than the pipe and the buffer take. The time of training is that of a run without it.
long=(-s train.epochs=2500 -s train.eval_every_epochs=0 -s checkpoint.every_epochs=0 -s data.samples=512)
seconds() { tail -n 1 "$1/metrics.jsonl" | sed 's/.*"seconds":\([0-9.e+-]*\).*/\1/'; }
train alone "${long[@]}"
start=$(date +%s.%N)
# shellcheck disable=SC2016 # a number of the process, so that the process of another test of this name is not found
train stuck "${long[@]}" -s 'log.command="echo $$ >stuck.pid; exec sleep 1000"'
wall=$(awk -v a="$start" -v b="$(date +%s.%N)" 'BEGIN { print b - a }')
warned stuck 'log.command is too slow and did not get [0-9]* of [0-9]* events' 1
if [ -s stuck.pid ] && ! kill -0 "$(cat stuck.pid)" 2>/dev/null; then pass nothing_left; else fail nothing_left "$(cat stuck.pid)"; fi
lost=$(awk -v a="$(seconds alone)" -v b="$(seconds stuck)" 'BEGIN { print b - a }')
echo "# training with a command that never reads: $lost s more than without; the whole run took $wall s"

endless=(-s train.epochs=1000000 -s log.every_steps=1000 -s train.eval_every_epochs=0 -s checkpoint.every_epochs=0)
# Ctrl-C reaches the run only; the command gets the rest of the events
env --default-signal=INT "$gtrain" run tiny.cfg --device cpu -q --no-progress -o int "${endless[@]}" \
	-s 'log.command="cat >int.jsonl"' 2>err &
pid=$!
wait_for [ -s int.jsonl ]
kill -INT $pid
wait $pid
rc=$?
if [ $rc = 130 ] && cmp -s int.jsonl int/metrics.jsonl; then pass interrupted; else fail interrupted "status $rc: $(cat err)"; fi
# a run that is killed closes the pipe
"$gtrain" run tiny.cfg --device cpu -q --no-progress -o kill "${endless[@]}" \
	-s 'log.command="cat >kill.jsonl; touch eof"' 2>err &
pid=$!
wait_for [ -s kill.jsonl ]
kill -KILL $pid
wait $pid 2>/dev/null
if wait_for [ -e eof ]; then pass killed_run; else fail killed_run 'the command did not get the end of its input'; fi

# the example for W&B, with the package if WANDB_PYTHON has it, and with a module that records the calls
python=$(command -v python3)
if [ -z "$python" ]; then
	skip wandb_example 'python3 is not installed'
else
	mkdir stub
	cat >stub/wandb.py <<'PY'
import json
class Run:
    def log(self, values, step): print(json.dumps([step, values]), file=open("wandb.calls", "a"))
    def finish(self): print(json.dumps("finish"), file=open("wandb.calls", "a"))
def init(**kw):
    assert kw["mode"] == "offline" and kw["id"] == "wb" and "optimizer" in kw["config"]["config.cfg"], kw
    return Run()
PY
	train wb -s "log.command=\"PYTHONPATH=stub $python $src/deploy/wandb_offline.py\""
	if [ "$rc" = 0 ] && why=$("$python" - <<'PY' 2>&1
import json
calls = [json.loads(l) for l in open("wandb.calls")]
assert calls.pop() == "finish"
expected = []
for e in map(json.loads, open("wb/metrics.jsonl")):
    if e["event"] in ("train", "epoch", "eval"):
        expected.append((e["step"], e["loss"]))
got = [(s, next(v for k, v in values.items() if k.endswith("/loss"))) for s, values in calls]
assert got == expected and len(got) == 20, (got, expected)
assert {k for _, v in calls for k in v} >= {"train/lr", "train_epoch/acc", "test/acc"}
PY
	); then pass wandb_example; else fail wandb_example "status $rc: $(tail -n 1 err) $(tail -n 1 <<<"${why-}")"; fi
fi
if [ -n "${WANDB_PYTHON-}" ]; then
	train wb2 -s "log.command=\"$WANDB_PYTHON $src/deploy/wandb_offline.py\""
	if [ "$rc" = 0 ] && compgen -G 'wb2/wandb/offline-run-*-wb2/run-wb2.wandb' >/dev/null; then pass wandb
	else fail wandb "$(tail -n 2 err)"; fi
else
	skip wandb 'WANDB_PYTHON names no python3 with the package wandb'
fi
