#!/bin/bash
# Folders and classes whose names have quotes, backslashes, spaces, newlines, or bytes that are not UTF-8: `gtrain init` writes a config
# that can be read or says why it cannot, and names of classes reach the checkpoint and come back from it.
# tests/run: beside others
# shellcheck source=tests/cli/cli.sh disable=SC1003
. "$(dirname "$0")/cli.sh"
if ! command -v python3 >/dev/null; then
	skip strange_names 'python3 is not installed'
	exit 0
fi
cd "$tmp" || exit 1

# tree DIR CLASS...: a folder with 12 images of 32 pixels for each class
tree() {
	local dir=$1 c i=0
	shift
	[ -d plain ] || python3 "$src/tests/cli/make_images.py" plain 12 32 rose aster tulip
	for c; do
		mkdir -p "$dir/$c"
		cp "plain/$(echo rose aster tulip | cut -d ' ' -f $((i % 3 + 1)))"/* "$dir/$c"
		i=$((i + 1))
	done
}
latin=$'caf\xe9'
n=0
for root in 'a "quoted" name' 'back\slash\\' "it's a café, 100% #1; \$x" 'trailing\'; do
	n=$((n + 1))
	tree "$root" rose aster
	gives "init_root_$n" 0 err 'wrote' init "$root" -o "c$n.cfg"
	gives "init_root_check_$n" 0 out 'steps' check "c$n.cfg"
	gives "init_root_run_$n" 0 out 'valid accuracy' run "c$n.cfg" -q -o "r$n" -s train.epochs=1 -s data.batch=8 -s 'model.layers=(
		{ type = "flatten"; }, { type = "linear"; out = 2; })'
	gives "init_root_eval_$n" 0 out 'accuracy' eval "r$n" --split valid
done
gives init_out_quoted 0 err " check 'the k.cfg'" init "it's a café, 100% #1; \$x" -o 'the k.cfg'
gives init_out_folder 73 err 'gtrain: absent/k.cfg: cannot create: No such file or directory' init 'a "quoted" name' -o absent/k.cfg
gives export_out_folder 73 err 'gtrain: absent/k.safetensors: cannot create: No such file' export r1 -o absent/k.safetensors
tree $'new\nline' rose aster
gives init_root_newline 65 err 'got a control character; rename the path' init $'new\nline' -o x.cfg
tree "$latin" rose aster
gives init_root_latin 65 err 'got bytes that are not UTF-8; rename the path' init "$latin" -o x.cfg
if [ -e x.cfg ]; then fail init_root_nothing_written 'a config was written'; else pass init_root_nothing_written; fi

# classes
tree classes 'a "quoted" class' 'back\slash' $'new\nline' 'café' 'x, y; # z'
gives init_classes 0 err 'wrote' init classes -o k.cfg
gives init_classes_check 0 out 'steps' check k.cfg
gives init_classes_run 0 out 'valid accuracy' run k.cfg -q -o k -s train.epochs=2 -s data.batch=8 -s train.steps=4 -s 'model.layers=(
		{ type = "flatten"; }, { type = "linear"; out = 5; })'
gives init_classes_resume 0 out 'valid accuracy' resume k -q -s train.steps=0
gives init_classes_eval 0 out 'quoted' eval k --split valid --report
gives init_classes_predict 0 out '"classes/x, y; # z/1.png"' predict k "classes/x, y; # z/1.png" --csv
if python3 - k/latest/data.json <<'PY'; then pass classes_in_data_json; else fail classes_in_data_json 'other names'; fi
import json, sys
names = json.load(open(sys.argv[1], encoding="utf-8"))["classes"]
assert len(names) == 5 and 'a "quoted" class' in names and "new\nline" in names and "back\\slash" in names, names
PY
"$gtrain" eval k --split valid --report --json >report.json 2>err
if python3 -c 'import json, sys; [json.loads(l) for l in open("report.json", encoding="utf-8")]' 2>why; then
	pass report_is_json
else
	fail report_is_json "$(tail -n 1 why)"
fi
# control characters reach a file as they are, and a terminal as question marks
tree control rose $'es\e[31mc\xc2\x9b'
"$gtrain" init control -o control.cfg -q
gives control_run 0 out 'valid accuracy' run control.cfg -q -o control_run -s train.epochs=1 -s data.batch=8 -s 'model.layers=(
		{ type = "flatten"; }, { type = "linear"; out = 2; })'
gives control_pipe 0 out $'es\e[31mc\xc2\x9b' predict control_run control/rose/0.png --csv --top 2
if python3 "$src/tests/cli/on_terminal.py" 80 "$gtrain" predict control_run control/rose/0.png --csv --top 2 >terminal.json && python3 -c '
import json
raw = json.load(open("terminal.json"))["raw"]
assert "es?[31mc?" in raw and "\x1b[31m" not in raw and "\x9b" not in raw, raw'; then
	pass control_terminal
else
	fail control_terminal 'control characters of a class reached the terminal'
fi
tree latin rose "$latin"
gives init_class_latin 65 err 'expected class names in UTF-8' init latin -o l.cfg

# a character of several bytes is one hyphen in the name of a run
printf 'x,y\n' >"häuser.csv"
awk 'BEGIN { for (i = 0; i < 40; i++) printf "%d.5,%s\n", i % 7, (i % 7 > 3 ? "a" : "b") }' >>"häuser.csv"
gives init_umlaut 0 out 'name = "h-user"' init "häuser.csv" --target y
