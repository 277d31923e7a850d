#!/bin/bash
# Every page is correct mdoc and can be found. gtrain(1) against the option tables: the same synopses, commands, options and exit codes,
# both ways. GTRAIN_UPDATE=1 writes the synopses and options into the page.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
page=$src/man/gtrain.1
if why=$(python3 "$(dirname "$0")/manual_options.py" "$gtrain" "$page" 2>&1); then pass options; else fail options "$why"; fi
if ! command -v mandoc >/dev/null; then
	skip manual 'mandoc is not installed'
	exit 0
fi
text=$tmp/page
mandoc -T ascii -O width=1000 "$page" | sed 's/.\x08//g' >"$text"

# same NAME A B: two files with the same lines
same() {
	if why=$(diff "$2" "$3"); then pass "$1"; else fail "$1" "$(tr '\n' ';' <<<"$why")"; fi
}

if why=$(mandoc -T lint -W warning "$src"/man/*.[157] 2>&1); then pass lint; else fail lint "$(head -n 1 <<<"$why")"; fi
# Every page is linked from gtrain(1) and from README.md, and every page of gtrain's that one names is there.
why=
# A terminal of 80 columns breaks no line of a page, by either formatter.
wide=
for p in "$src"/man/*.[157]; do
	line=$(mandoc -T ascii "$p" | sed 's/.\x08//g' | grep -m 1 '.\{81\}') && wide="$wide ${p##*/}: $line;"
	if command -v groff >/dev/null; then
		line=$(groff -mandoc -Tascii -rLL=78n -ww "$p" 2>&1 >/dev/null |
			grep -m 1 "can't break line") && wide="$wide ${p##*/}: groff: $line;"
	fi
done
if [ -z "$wide" ]; then pass columns_80; else fail columns_80 "$wide"; fi
for p in "$src"/man/*.[157]; do
	p=${p##*/}
	[ "$p" = gtrain.1 ] || sed -n '/^\.Sh SEE ALSO/,$p' "$page" | grep -q "^\.Xr ${p%.*} ${p##*.}" || why="$why gtrain(1) does not name $p;"
	grep -qF "(man/$p)" "$src/README.md" || why="$why README.md does not link $p;"
done
while read -r _ name section _; do
	[ -e "$src/man/$name.$section" ] || why="$why there is no $name($section);"
done < <(grep -h '^\.Xr gtrain' "$src"/man/*.[157])
if [ -z "$why" ]; then pass pages; else fail pages "$why"; fi

commands >"$tmp/a"
sed -n 's/^   gtrain \([a-z-]*\)$/\1/p' "$text" >"$tmp/b"
same commands "$tmp/a" "$tmp/b"
grep -o 'X(GT_[A-Z]*, [0-9]*' "$src/engine/base/err.h" | sed 's/.*, //' >"$tmp/a"
sed -n '/^EXIT STATUS/,/^EXAMPLES/s/^     \([0-9]\{1,\}\) .*/\1/p' "$text" >"$tmp/b"
same exit_codes "$tmp/a" "$tmp/b"
"$gtrain" fetch nothing-like-it 2>&1 | sed -n 's/.*known datasets: //p' | sed 's/; known weights: /,/' | tr -d ' ' |
	tr ',' '\n' >"$tmp/a"
sed -n '/^   gtrain fetch/,/^   gtrain devices/p' "$text" | tr ' ,.;' '\n' | grep -x -E "$(paste -sd '|' "$tmp/a")" >"$tmp/b"
same datasets "$tmp/a" "$tmp/b"
for s in bash zsh fish; do
	grep -q "$s" <(sed -n '/^   gtrain completion/,/^   gtrain help/p' "$text") || fail "shell_$s" 'not in the manual'
done

# Every event and member of metrics.jsonl is in gtrain-checkpoint(5).
page=$src/man/gtrain-checkpoint.5
mandoc -T ascii -O width=1000 "$page" | sed 's/.\x08//g' | sed -n '/^METRICS/,/^EXAMPLES/p' >"$text"
tiny_config
if ! "$gtrain" run "$tmp/tiny.cfg" -o "$tmp/r" -q -s data.valid=0.25 -s checkpoint.best.metric=valid/acc \
	-s 'train.groups=({ match = "*.bias"; frozen = true; })' \
	>/dev/null || ! "$gtrain" resume "$tmp/r" -q -s train.epochs=3 >/dev/null; then
	fail metrics_run 'gtrain run or resume failed'
fi
if why=$(python3 - "$tmp/r/metrics.jsonl" "$text" <<'PY'
import json, re, sys
words = set(re.findall(r"[a-z0-9_]+", open(sys.argv[2]).read()))
lines = [json.loads(line) for line in open(sys.argv[1])]
keys = {k for e in lines for k in list(e) + [k for v in e.values() if isinstance(v, dict) for k in v]} | {e["event"] for e in lines}
missing = sorted(keys - words)
if missing or len(keys) < 25 or any(list(e)[:2] != ["event", "step"] or list(e)[-1] != "time" for e in lines):
    print(f"not in the manual: {missing}; {len(keys)} words")
end = lines[-1]
if end["event"] != "end" or end["epoch"] != 3 or not end["test"]["samples"] or \
        end["best"]["metric"] != "valid/acc" or not 1e9 < end["time"] < 1e11:
    print(f"the last line is {end}")
if [e["epoch"] for e in lines if e["event"] == "epoch"] != [1, 2, 3]:
    print("epochs are not counted from 1")
PY
) && [ -z "$why" ]; then pass metrics_documented; else fail metrics_documented "$why"; fi
