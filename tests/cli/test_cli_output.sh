#!/bin/bash
# stdout and stderr: exit codes, JSON, lost output, colours.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
tiny_config
cd "$tmp" || exit 1
cfg=tiny.cfg

# ---- exit codes ------------------------------------------------------------------------------------------------------------
gives missing_config 66 err 'absent.cfg' run absent.cfg
gives config_error 78 err 'train.epochs' check $cfg -s train.epochs=ten
gives config_key 78 err 'did you mean' check $cfg -s train.epocsh=1
gives no_checkpoint 66 err 'gtrain: ' eval "$tmp/nothing"
gives no_device 69 err 'gtrain: ' run $cfg --device cuda -o r0
gives init_missing 66 err 'weights.safetensors' run $cfg -n --init weights.safetensors

# ---- JSON -------------------------------------------------------------------------------------------------------------------
# each NAME ARGS...: every line of stdout is one JSON object.
each() {
	local name=$1
	shift
	run "$@"
	if [ "$rc" != 0 ]; then
		fail "$name" "gtrain $* ended with $rc: $(head -n 1 "$tmp/err")"
	elif why=$(python3 -c '
import json, sys
lines = sys.stdin.read().split("\n")
assert lines.pop() == "" and lines, "no lines, or no newline at the end"
for l in lines:
    assert isinstance(json.loads(l, parse_constant=lambda c: sys.exit("not JSON: " + c)), dict), "not an object"
' <"$tmp/out" 2>&1); then
		pass "$name"
	else
		fail "$name" "$(tail -n 1 <<<"$why")"
	fi
}
each json_check check $cfg --json
each json_dry_run run $cfg --json -n
each json_devices devices --json
each json_plan plan $cfg --json
each json_run run $cfg --json -o r1
events=$(python3 -c 'import json, sys; print(" ".join(sorted({json.loads(l)["event"] for l in sys.stdin})))' <"$tmp/out")
if [ "$events" = 'checkpoint end epoch eval start train' ]; then pass json_events; else fail json_events "events: $events"; fi
if cmp -s "$tmp/out" r1/metrics.jsonl; then pass json_is_metrics; else fail json_is_metrics 'stdout differs from metrics.jsonl'; fi
each json_resume resume r1 --json -s train.epochs=3
each json_eval eval r1 --json
each json_inspect inspect r1 --json --verify
each json_export export r1 --json -o w.safetensors
each json_bench bench $cfg --json --steps 2

# ---- commands that are proposed have the options that no checkpoint keeps -------------------------------------------------------
again=(run "$cfg" -s parallel.mode=ddp --nproc 2 --device cpu)
gives next_eval 0 err "next: $gtrain eval n1 --device cpu" "${again[@]}" -o n1
gives next_report 0 err "$gtrain report n1 --device cpu" resume n1 --nproc 2 --device cpu -s train.epochs=4
gives next_continue 0 err "\`$gtrain resume n2 --nproc 2 --device cpu\` continues" \
	"${again[@]}" -o n2 -s train.epochs=1000000 --time-limit 1s
gives next_plain 0 err "$gtrain predict n1 FILE..." resume n1 -s train.epochs=5

# ---- people's output ---------------------------------------------------------------------------------------------------------
gives result 0 out 'test accuracy ' run $cfg -o r2
if [ "$(wc -l <"$tmp/out")" = 1 ] && grep -Eq '^test accuracy 0\.[0-9]{4}  loss [0-9.]+  .*\(2 epochs, [0-9.]+ m?s\)$' "$tmp/out"; then
	pass result_line
else
	fail result_line "$(cat "$tmp/out")"
fi
lines=$(grep -Ec '^epoch [12]/2  train acc 0\.[0-9]{4} loss [0-9.]+  test acc 0\.[0-9]{4} loss [0-9.]+  [0-9.]+ [mu]?s$' "$tmp/err")
if [ "$lines" = 2 ]; then
	pass eval_lines
else
	fail eval_lines "$(cat "$tmp/err")"
fi
gives threads 0 err ', 1 thread; batch 32, 8 steps per epoch; 256 train + 64 test samples from ' run $cfg -s threads=1 -o 'r 9'
if grep -qF "gtrain report 'r 9'" "$tmp/err"; then pass next_quoted; else fail next_quoted "$(cat "$tmp/err")"; fi
# The best by top-5, of eight classes: what metrics.jsonl, the link and the summary say.
sed 's/classes = 4/classes = 8/; s/out = 4/out = 8/' $cfg >eight.cfg
gives top5 0 out '  (3 epochs, ' run eight.cfg -o r10 -s checkpoint.best.metric=test/top5 -s train.epochs=3 -s train.optimizer.lr=0.001
if why=$(python3 -c '
import json, os
lines = [json.loads(l) for l in open("r10/metrics.jsonl")]
evals = [(e["top5"], e["step"]) for e in lines if e["event"] == "eval"]
best, end = max(evals, key=lambda e: (e[0], -e[1])), lines[-1]["best"]
assert len(evals) == 3 and all(0 < t < 1 for t, s in evals), evals
assert end == {"metric": "test/top5", "value": best[0], "step": best[1], "epoch": best[1] // 8}, (end, evals)
assert os.readlink("r10/best").endswith("step-%08d" % best[1]), os.readlink("r10/best")
' 2>&1); then pass top5_best; else fail top5_best "$(tail -n 1 <<<"$why")"; fi
gives again 73 err 'gtrain: ' run $cfg -o r2
gives quiet 0 out 'test accuracy ' run $cfg -o r3 -q
if [ -s "$tmp/err" ]; then fail quiet_stderr "$(cat "$tmp/err")"; else pass quiet_stderr; fi
gives verbose 0 err 'checkpoint ' run $cfg -o r4 -v
if [ "$(grep -c '  loss .*  lr ' "$tmp/err")" = 16 ]; then pass verbose_lines; else fail verbose_lines "$(cat "$tmp/err")"; fi
gives eval_line 0 out 'test accuracy ' eval r2
gives inspect_verified 0 out 'every digest matches' inspect r2 --verify
gives check_table 0 out '  260' check $cfg
gives time_limit 0 err "gtrain resume r5\` continues" run $cfg -o r5 -s train.epochs=1000000 -s log.every_steps=100000 --time-limit 1s
gives resume_steps 0 err 'resuming from ' resume r2 -s train.epochs=3

# ---- colours -----------------------------------------------------------------------------------------------------------------
escape=$(printf '\033')
for args in "check $cfg" -h 'run -h' devices "run $cfg -o r6" 'frobnicate'; do
	# shellcheck disable=SC2086
	run $args
	if grep -q "$escape" "$tmp/out" "$tmp/err"; then fail "plain_${args%% *}" "escape sequences in a pipe: gtrain $args"; fi
done
pass plain_when_piped
NO_COLOR=1 gives color_always 0 out "${escape}[1m" check $cfg --color=always
gives color_never 0 out 'tiny' check $cfg --color=never
if grep -q "$escape" "$tmp/out"; then fail color_never_plain 'escape sequences'; else pass color_never_plain; fi

# A file's text must not reach the terminal as commands to it.
sed "s/name = \"tiny\"/name = \"ti\\\\x1b[31mny\"/" $cfg >evil.cfg
run check evil.cfg
if grep -q "$escape" "$tmp/out" "$tmp/err"; then
	fail hostile_names 'an escape sequence of a config reached the output'
else
	pass hostile_names
fi

# names with control characters (ESC, and CSI as U+009B and as a byte), marks of direction, bytes that are not UTF-8
for name in $'a\e[31m' $'a\xc2\x9b31m' $'a\x9b31m' $'caf\xe9' $'a\xe2\x80\xaeb' $'cut\xe2\x80' $'a\xe2\x81\xa6b' $'\xf0\x9f'; do
	for args in inspect 'eval --json' 'check' "predict r2" 'init'; do
		# shellcheck disable=SC2086
		run $args "$tmp/$name"
		if cat "$tmp/out" "$tmp/err" | LC_ALL=C grep -q $'[\x01-\x09\x0b-\x1f\x7f]\|\xc2[\x80-\x9f]\|\xe2\x80\xae\|\xe2\x81\xa6' ||
			! grep -qai 'cannot\|no such\|does not exist' "$tmp/err" || ! iconv -f UTF-8 -t UTF-8 "$tmp/err" >/dev/null 2>&1; then
			fail "hostile_name" "$args $(printf %q "$name"): $(head -n 1 "$tmp/err" | cat -v)"
		fi
	done
done
pass hostile_file_names

# ---- lost output -------------------------------------------------------------------------------------------------------------
for args in -h --version 'run -h' "check $cfg" "check $cfg --json" devices 'completion bash' "plan $cfg"; do
	# shellcheck disable=SC2086
	"$gtrain" $args >/dev/full 2>"$tmp/err"
	rc=$?
	if [ $rc != 74 ]; then fail "full_$args" "status $rc, not 74"; continue; fi
	grep -q 'cannot write standard output: No space left on device' "$tmp/err" || fail "full_$args" "$(cat "$tmp/err")"
done
pass full_disk
"$gtrain" -h >&- 2>"$tmp/err"
rc=$?
if [ $rc = 74 ]; then pass closed_stdout; else fail closed_stdout "status $rc, not 74"; fi
"$gtrain" run $cfg -o r7 --json >/dev/full 2>"$tmp/err"
rc=$?
if [ $rc = 74 ] && grep -q 'training continues' "$tmp/err" && "$gtrain" inspect r7 --json 2>&1 | grep -q '"step":16'; then
	pass full_disk_run
else
	fail full_disk_run "status $rc: $(cat "$tmp/err")"
fi
# the result is the last thing that a run prints, before its messages on stderr
for args in "run $cfg -o lost" "run $cfg --smoke"; do
	# shellcheck disable=SC2086
	"$gtrain" $args >/dev/full 2>"$tmp/err"
	rc=$?
	if [ $rc = 74 ] && grep -q 'cannot write standard output: No space left on device' "$tmp/err"; then pass "full_${args##* }"; else
		fail "full_${args##* }" "status $rc: $(cat "$tmp/err")"; fi
done

# ---- a file of a result replaces an existing file, except for a config --------------------------------------------------------------
# replaces NAME FILE ARGS...: the command replaces the file, which then has a name only once
replaces() {
	local name=$1 file=$2
	shift 2
	echo old >"$file"
	run "$@"
	if [ "$rc" = 0 ] && [ "$(head -n 1 "$file" | tr -d '\0')" != old ] && [ -z "$(find . -maxdepth 1 -name "$file?*")" ]; then
		pass "replaces_$name"
	else
		fail "replaces_$name" "status $rc: $(cat "$tmp/err")"
	fi
}
replaces weights p.safetensors export r1 -o p.safetensors
replaces onnx p.onnx export r1 -o p.onnx
replaces plot p.svg plot r1 -o p.svg
replaces show p.png show $cfg -o p.png
replaces report p.html report r1 -o p.html
replaces lr_find q.svg lr-find $cfg --steps 20 -o q.svg
replaces predictions p.csv eval r1 --predictions p.csv
printf 'x,y\n1,a\n2,b\n' >rows.csv
echo old >p.cfg
gives keeps_a_config 73 err 'expected a new file, but this file exists' init rows.csv --target y -o p.cfg
if [ "$(cat p.cfg)" = old ]; then pass config_is_unchanged; else fail config_is_unchanged "$(head -n 2 p.cfg)"; fi

# A reader that leaves: no message, the status of a SIGPIPE, and a run keeps what it had.
"$gtrain" completion bash 2>"$tmp/err" | true
rc=${PIPESTATUS[0]}
if [ -s "$tmp/err" ] || { [ "$rc" != 141 ] && [ "$rc" != 0 ]; }; then
	fail broken_pipe "status $rc: $(cat "$tmp/err")"
else
	pass broken_pipe
fi
"$gtrain" run $cfg -o r8 --json -s train.epochs=1000000 2>"$tmp/err" | head -n 3 >"$tmp/out"
rc=${PIPESTATUS[0]}
if [ "$rc" = 141 ] && [ ! -s "$tmp/err" ] && "$gtrain" inspect r8 --verify >/dev/null 2>&1; then
	pass broken_pipe_run
else
	fail broken_pipe_run "status $rc: $(cat "$tmp/err")"
fi

# Lines of steps have the scores of their batches: of equal batches, their means are those of the epoch.
run run "$tmp/tiny.cfg" --json -s checkpoint.dir= -s data.classes=10 -s train.epochs=1 \
	-s 'model.layers=({type="flatten";},{type="linear";out=10;})'
if why=$(python3 -c '
import json, sys
log = [json.loads(line) for line in open(sys.argv[1])]
steps = [e for e in log if e["event"] == "train"]
epoch = next(e for e in log if e["event"] == "epoch")
assert len(steps) == 8, len(steps)
for k in ("acc", "top5"):
    mean = sum(e[k] for e in steps) / 8
    assert abs(mean - epoch[k]) < 1e-8, (k, mean, epoch[k])  # printed with 9 digits
assert all(e["acc"] <= e["top5"] for e in steps) and 0.1 < epoch["top5"] < 1, epoch
' "$tmp/out" 2>&1); then pass step_scores; else fail step_scores "$(tail -n 1 <<<"$why")"; fi
