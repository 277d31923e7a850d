#!/bin/bash
# gtrain report: the commands that repeat a run with all its resumes give the same weights and the same config, whatever was resumed: with
# other settings, from an earlier step, after a signal, with another number of ranks, from given weights.
# tests/run: beside others
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
if ! command -v python3 >/dev/null; then
	skip report_repeat 'python3 is not installed'
	exit 0
fi
cd "$tmp" || exit 1
tiny_config # 2 epochs of 8 steps
do_run() { "$gtrain" "$@" -q --no-progress >/dev/null 2>"$tmp/err" || fail "$*" "$(tail -n 1 "$tmp/err")"; }
# commands RUN: the commands of its page, in cmds, with the path of the program
commands() {
	do_run report "$1" -o page.html
	python3 - "$gtrain" <<'PY' >cmds
import html, re, shlex, sys
code = re.search(r'id="repeat".*?<code>(.*?)</code>', open("page.html").read(), re.S)[1]
print(re.sub("(?m)^gtrain", shlex.quote(sys.argv[1]), html.unescape(code)), end="")
PY
}
# repeats NAME RUN COUNT: the page of the run has COUNT commands, which give its weights and its config
repeats() {
	local name=$1 run=$2 n
	commands "$run"
	n=$(wc -l <cmds)
	if [ "$n" != "$3" ]; then
		fail "$name" "$n commands: $(cat cmds)"
	elif ! bash -e cmds >/dev/null 2>"$tmp/err"; then
		fail "$name" "$(tail -n 1 "$tmp/err"); $(cat cmds)"
	elif ! cmp -s "$run/latest/model.safetensors" "$run-again/latest/model.safetensors"; then
		fail "$name" "other weights: $(cat cmds)"
	elif ! diff "$run/config.cfg" "$run-again/config.cfg" >"$tmp/err"; then
		fail "$name" "other config: $(cat "$tmp/err")"
	else
		pass "$name"
	fi
}

do_run run tiny.cfg -o plain
repeats without_a_resume plain 1
if [ -e plain/first.cfg ]; then fail no_first_config 'first.cfg'; else pass no_first_config; fi

do_run run tiny.cfg -o more
do_run resume more -s train.epochs=3 -s 'name="two words"'
do_run resume more -s train.epochs=4 -s train.optimizer.lr=0.1
repeats more_epochs more 3
if diff <("$gtrain" run tiny.cfg -q -o third >/dev/null 2>&1; cat third/config.cfg) more/first.cfg >"$tmp/err"; then
	pass first_config
else
	fail first_config "$(cat "$tmp/err")"
fi

# a resume that did nothing before its first checkpoint, and one that went back, leave no command
do_run run tiny.cfg -o back
do_run resume back -s train.epochs=3 -s train.optimizer.lr=0.5
do_run resume back --from 8 -s train.optimizer.lr=0.3 -s train.epochs=4
repeats from_an_earlier_step back 2
do_run resume back --from 16 -s train.schedule.type=cosine
rm -rf back-again
repeats from_steps_in_the_middle back 3

repeats of_a_history back/history-4 2

# a time limit, and a resume without settings, change nothing
do_run run tiny.cfg -o limit -s train.epochs=100000 -s checkpoint.every_epochs=100000 --time-limit 1s
do_run resume limit -s train.epochs=100000 --time-limit 1s
step=$(sed -n 's/.*"event":"checkpoint","step":\([0-9]*\),.*/\1/p' limit/metrics.jsonl | tail -n 1)
do_run resume limit -s "train.steps=$((step + 8))" -s train.optimizer.lr=0.02
commands limit
sed -i "1s/\$/ -s train.steps=$step/" cmds # the test does not wait for all epochs: without a schedule, the steps are the same
n=$(wc -l <cmds)
if [ "$n" = 2 ] && grep -q "^[^ ]* resume limit-again --from $step " cmds && bash -e cmds >/dev/null 2>"$tmp/err" &&
	cmp -s limit/latest/model.safetensors limit-again/latest/model.safetensors; then
	pass after_a_time_limit
else
	fail after_a_time_limit "$(tail -n 1 "$tmp/err") $(cat cmds)"
fi

do_run run tiny.cfg -o ranks -s parallel.mode=ddp --nproc 2 --device cpu --init plain/latest/model.safetensors
do_run resume ranks -s train.epochs=3 -s parallel.mode=single
repeats ranks_and_weights ranks 2
if grep -q 'first.cfg -o ranks-again --init plain/latest/model.safetensors --nproc 2 --device cpu$' cmds; then
	pass options_of_a_run
else
	fail options_of_a_run "$(head -n 1 cmds)"
fi

# the log of an earlier version has no settings
sed -i 's/,"set":\[[^]]*\]//' more/metrics.jsonl
gives unknown_settings 0 err 'wrote old.html' report more -o old.html
if grep -q 'resumed at step 24, and its log does not contain with which settings' old.html && grep -q 'gtrain run more/config.cfg' old.html
then
	pass unknown_settings_noted
else
	fail unknown_settings_noted "$(grep 'gtrain run' old.html)"
fi

# a new run in the directory of a run whose checkpoints were removed begins a new history
rm -rf more/step-* more/best more/latest
do_run run tiny.cfg -o more
if [ -e more/first.cfg ]; then fail new_history 'first.cfg is still there'; else pass new_history; fi
