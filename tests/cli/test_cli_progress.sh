#!/bin/bash
# The progress line on a pseudo-terminal: at several widths, while it is resized, and its absence elsewhere.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
if ! command -v python3 >/dev/null; then
	skip progress 'python3 is not installed'
	exit 0
fi
tiny_config
cd "$tmp" || exit 1
# Short epochs of many steps. The terminal ends a run by SIGINT, and changes its size, after a number of painted lines and not of seconds,
# so that the load of the machine does not matter; the time limit is only for a run that paints nothing.
sed 's/samples = 256/samples = 50000/; s/1, 8, 8/1, 16, 16/; s/{ name = "fc"/{ type = "linear"; out = 512; }, &/' tiny.cfg >slow.cfg
long=(run slow.cfg -s train.epochs=1000 -s train.eval_every_epochs=1000 -s log.every_steps=100000)
command=("$gtrain")

# terminal NAME EXPRESSION ARGS...: a Python expression over r, what on_terminal.py says, texts, the painted lines, and paints, these with
# the columns for which they were painted; without ARGS, of the run before. $size: of the terminal, as for on_terminal.py.
terminal() {
	local name=$1 expression=$2
	shift 2
	[ $# = 0 ] || python3 "$src/tests/cli/on_terminal.py" $size "${command[@]}" "$@" >"$tmp/r.json"
	if why=$(python3 -c "
import json, re, sys
r = json.load(open('$tmp/r.json'))
texts = [t for t, columns, overtaken in r['paints']]
paints = [[t, columns] for t, columns, overtaken in r['paints'] if not overtaken]
fit = all(0 < len(t) < columns for t, columns in paints)
ok = ($expression)
print('' if ok else json.dumps([r['status'], len(texts), r['rows'], texts[-2:], r['shown'][-8:]])[:900])
" 2>&1) && [ -z "$why" ]; then pass "$name"; else fail "$name" "$why"; fi
}
size=60x8
terminal animated "r['status'] == 130 and len(texts) >= 8" "${long[@]}" -o a --time-limit 60s
# Of thousands of steps; lines of phases, such as saving, have a limit of their own, and before the first step none.
terminal rate "sum('%' in t for t in texts) <= 10 * r['seconds'] + 1"
terminal width "fit and any(len(t) == 59 for t in texts)"
terminal erased "not any('eta' in l for l in r['shown'])"
terminal how_to_continue "any(l.startswith('ended early') and l.endswith('resume a\` continues') for l in r['shown'])"
NO_COLOR=1 terminal no_color "len(texts) >= 3 and '\x1b[1m' not in r['raw']" "${long[@]}" -o i --time-limit 60s
size=60 long+=(--time-limit 1s)
terminal result_stays "r['status'] == 0 and any('loss' in l and re.search(r' steps, [0-9.]+ (s|min)', l) for l in r['shown'])" \
	"${long[@]}" -o b
terminal quiet "r['status'] == 0 and not texts" "${long[@]}" -o f -q
terminal no_progress "r['status'] == 0 and not texts and 'samples/s' not in r['raw']" "${long[@]}" -o g --no-progress
TERM=dumb terminal dumb "r['status'] == 0 and '\x1b' not in r['raw']" "${long[@]}" -o h
TERM=dumb terminal dumb_fits "any('%  elapsed' in l for l in r['shown']) and all(len(l) <= 60 for l in r['shown'] if '  elapsed' in l)" \
	"${long[@]}" -o hh --time-limit 8s
terminal color "'\x1b[1m' in r['raw']" "${long[@]}" -o j
terminal error_color "r['status'] == 64 and '\x1b[1;31mgtrain:\x1b[0m ' in r['raw']" frobnicate
terminal help_bold "r['status'] == 0 and '\x1b[1m' in r['raw']" -h
terminal help_color_never "'\x1b' not in r['raw']" --color never -h

# What is dropped first where there is little room, and what is not: percentage and remaining time.
whole='epoch \d+/1000  \[=*>? *\] \d+%  elapsed \d+:\d\d  eta [0-9:]+  loss (?:\d+\.\d{4,}|\d\.\d{3}e-\d+)'
rest='  acc \d\.\d{4}  [0-9.]+ [kM]? ?samples/s  step [0-9,]+/[0-9,]+  lr 0\.01'
size=20x2,40x2,80x2,200x2,300x2
terminal columns_20 "any(re.fullmatch(r'\d+%  eta [0-9:]+', t) for t, c in paints if c == 20)" "${long[@]}" -o w --time-limit 60s
terminal columns_40 "any(re.fullmatch(r'epoch \d+/1000  \[=*>? *\] \d+%  eta [0-9:]+', t) for t, c in paints if c == 40)"
terminal columns_80 "any(re.match(r'$whole', t) for t, c in paints if c == 80)"
terminal columns_200 "any(re.fullmatch(r'$whole$rest', t) for t, c in paints if c == 200)"
terminal columns_300 "any(re.fullmatch(r'$whole$rest', t) for t, c in paints if c == 300) and fit"

# A terminal that rewraps its lines: the line that it broke into rows is erased whole, and the next one fits.
gone="not any('eta' in l or '[=' in l or 'samples/s' in l for l in r['shown'] if 'synthetic' not in l)"
size=200x2,50x2,200x2,120x2,30x2,70x2
terminal resized "r['status'] == 130 and r['rows'] >= 3 and $gone and fit" "${long[@]}" -o r --time-limit 60s
size=80
# With the lines of epochs in between, and an evaluation long enough to be seen.
terminal epochs "r['status'] == 0 and $gone and 
	sum(bool(re.match(r'epoch [123]/3  train acc [01]\.\d{4} loss \d\.\d{4,}  test acc', l)) for l in r['shown']) == 3" \
	run tiny.cfg -o e -s data.samples=320000 -s train.epochs=3 -s log.every_steps=10000
terminal evaluating "any(re.match(r'epoch 1/1  evaluating test  \[=*>? *\] \d+%  elapsed \d:\d\d', t) for t in texts)" \
	run tiny.cfg -o v -s data.samples=32000 -s data.samples_test=2000000 -s train.epochs=1
terminal rows_fit "all(len(l) <= 80 for l in r['shown'] if l.startswith('epoch'))" run tiny.cfg -o n -s data.valid=0.2 -s train.epochs=3
terminal next "r['shown'][-4].startswith('saved as n/step-') and 
	r['shown'][-3:] == [f'{at}$GTRAIN {c}' for at, c in zip(('next: ', '      ', '      '),
	('eval n', 'report n', 'predict n FILE...'))]"
# Rank 0 paints, and is killed: the launcher, another process, erases its line before it says so.
cat >killed.sh <<'SH'
"$1" run slow.cfg -o x -s parallel.mode=ddp --nproc 2 -s train.epochs=1000 --time-limit 60s &
trap 'pkill -KILL -P $!' INT # its ranks
wait $!
wait $!
SH
command=(bash killed.sh)
size=80x2
terminal killed "texts and any(
	re.fullmatch(r'gtrain: rank \d was killed by signal 9 .Killed. at step \d+( .saving a checkpoint.)?', l) for l in r['shown'])" \
	"$gtrain"
command=("$gtrain")

run "${long[@]}" -o k
if ! grep -q 'samples/s' "$tmp/err" && ! grep -q "$(printf '\r')" "$tmp/err"; then
	pass silent_pipe
else
	fail silent_pipe "$(cat "$tmp/err")"
fi
