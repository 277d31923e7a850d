#!/bin/bash
# A signal ends a run by a checkpoint, with 128 + its number, and says how to go on.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
tiny_config
cd "$tmp" || exit 1
set -m # or the shell would have its background jobs ignore SIGINT

# endless DIR: a run that would go on for days, in the background, past its first step. Leaves $pid.
endless() {
	"$gtrain" run tiny.cfg -o "$1" -s train.epochs=1000000 -s train.eval_every_epochs=1000000 -s checkpoint.every_epochs=1000000 >out \
		2>err &
	pid=$!
	for _ in $(seq 300); do
		grep -q '"event":"train"' "$1/metrics.jsonl" 2>/dev/null && return
		sleep 0.1
	done
}

for s in INT:130 TERM:143 HUP:129 USR1:138; do
	sig=${s%:*} want=${s#*:}
	endless "run-$sig"
	kill "-$sig" "$pid"
	wait "$pid"
	rc=$?
	step=$(sed -n 's/.*"event":"checkpoint","step":\([0-9]*\).*/\1/p' "run-$sig/metrics.jsonl")
	if [ "$rc" != "$want" ]; then
		fail "signal_$sig" "status $rc, not $want: $(cat err)"
	elif ! grep -q "gtrain resume run-$sig\` continues" err || ! grep -q "^gtrain: ended by signal" err; then
		fail "signal_$sig" "stderr: $(cat err)"
	elif [ -s out ]; then
		fail "signal_$sig" "a result on stdout: $(cat out)"
	elif ! "$gtrain" inspect "run-$sig" --verify --json 2>&1 | grep -q "\"step\":$step,"; then
		fail "signal_$sig" "no checkpoint of step '$step' that verifies"
	else
		pass "signal_$sig"
	fi
done
# What it says is true: a resumed run goes on from that step to the end.
step=$(sed -n 's/.*"event":"checkpoint","step":\([0-9]*\).*/\1/p' run-TERM/metrics.jsonl)
gives resumed 0 out "steps," resume run-TERM -s train.steps=$((step + 5)) -s train.epochs=1000000
if "$gtrain" inspect run-TERM --json | grep -q "\"step\":$((step + 5)),"; then
	pass resumed_to_the_end
else
	fail resumed_to_the_end "not at step $((step + 5))"
fi

endless quiet
kill -TERM "$pid"
wait "$pid"
if [ "$(sed -n 's/^\(gtrain:\).*/\1/p' err | wc -l)" = 1 ]; then pass one_error_line; else fail one_error_line "$(cat err)"; fi
