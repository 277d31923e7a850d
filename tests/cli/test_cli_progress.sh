#!/bin/bash
# The progress line on a terminal (a pseudo-terminal of 60 columns), and its absence elsewhere.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
if ! command -v python3 >/dev/null; then
	skip progress 'python3 is not installed'
	exit 0
fi
tiny_config
cd "$tmp" || exit 1
# Long enough for several drawings, ended by the clock: 1 s at 10 drawings a second.
long=(run tiny.cfg -s train.epochs=1000000 -s train.eval_every_epochs=100000 -s log.every_steps=100000 --time-limit 1s)

# terminal NAME EXPRESSION ARGS...: a Python expression over r, what on_terminal.py says; without ARGS, of the run before.
terminal() {
	local name=$1 expression=$2
	shift 2
	[ $# = 0 ] || python3 "$src/tests/cli/on_terminal.py" 60 "$gtrain" "$@" >"$tmp/r.json"
	if why=$(python3 -c "
import json, sys
r = json.load(open('$tmp/r.json'))
draws = r['raw'].count('\r\x1b[K')
ok = $expression
print('' if ok else json.dumps([r['status'], draws, r['longest'], r['shown']])[:600])
" 2>&1) && [ -z "$why" ]; then pass "$name"; else fail "$name" "$why"; fi
}
terminal animated "r['status'] == 0 and 3 <= draws" "${long[@]}" -o a
terminal rate "draws <= 25" # ten a second and what erases them, of thousands of steps
terminal width "0 < r['longest'] <= 59"
terminal erased "not any('eta' in l or 'samples/s' in l for l in r['shown'])"
terminal result_stays "any('loss' in l and ' steps, 1.' in l for l in r['shown'])"
terminal quiet "draws == 0" "${long[@]}" -o f -q
terminal no_progress "draws == 0 and 'samples/s' not in r['raw']" "${long[@]}" -o g --no-progress
TERM=dumb terminal dumb "'\x1b' not in r['raw']" "${long[@]}" -o h
NO_COLOR=1 terminal no_color "draws >= 3 and '\x1b[1m' not in r['raw']" "${long[@]}" -o i
terminal color "'\x1b[1m' in r['raw']" "${long[@]}" -o j
terminal error_color "r['status'] == 64 and '\x1b[1;31mgtrain:\x1b[0m ' in r['raw']" frobnicate
terminal help_bold "r['status'] == 0 and '\x1b[1m' in r['raw']" -h
terminal help_color_never "'\x1b' not in r['raw']" --color never -h

run "${long[@]}" -o k
if ! grep -q 'samples/s' "$tmp/err" && ! grep -q "$(printf '\r')" "$tmp/err"; then pass silent_pipe; else fail silent_pipe "$(cat "$tmp/err")"; fi
