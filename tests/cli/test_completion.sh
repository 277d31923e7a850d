#!/bin/bash
# The completion scripts that the build makes work in the shells themselves.
# tests/run: beside others
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"

build=${GTRAIN_BUILD:-$src/build}

one_shell() {
	local shell=${1%:*} file=$build/completions/${1#*:} why name line want got
	if ! command -v "$shell" >/dev/null; then
		skip "${shell}_works" "$shell is not installed"
		return
	fi
	if ! command -v python3 >/dev/null; then
		skip "${shell}_works" 'python3 is not installed'
		return
	fi
	if why=$("$shell" -n "$file" 2>&1) && [ -z "$why" ]; then pass "${shell}_syntax"; else fail "${shell}_syntax" "$why"; fi
	while IFS='|' read -r name line want; do
		got=$(python3 "$(dirname "$0")/shell_tab.py" "$shell" "$file" "$gtrain" "$line" 2>&1)
		# Some shells leave the slash of a directory that is followed by nothing.
		if [ "${got//\/]/]}" = "$want" ]; then pass "${shell}_$name"; else fail "${shell}_$name" "$line gave $got, not $want"; fi
	done <<'CASES'
command_config_key|gtrain ru\t mod\t --set train.ep\t5|[run][model.cfg][--set][train.epochs=5]
key_of_equals|gtrain run model.cfg --set=train.optimizer.ty\tadamw|[run][model.cfg][--set=train.optimizer.type=adamw]
value_of_enumeration|gtrain run m\t -s train.optimizer.type=rm\t|[run][model.cfg][-s][train.optimizer.type=rmsprop]
option|gtrain run --dr\tm\t|[run][--dry-run][model.cfg]
global_before|gtrain --color alw\tins\t ru\ton\t|[--color][always][inspect][runs/one]
dataset|gtrain fetch fa\t|[fetch][fashion-mnist]
device|gtrain eval --device cp\truns/o\t|[eval][--device][cpu][runs/one]
choice_of_equals|gtrain resume --from=b\truns|[resume][--from=best][runs]
bundled|gtrain configs lene\t|[configs][lenet]
bundled_run|gtrain check lene\t|[check][lenet]
help|gtrain help insp\t|[help][inspect]
operands|gtrain predict runs/one im\t|[predict][runs/one][image.png]
option_after_operand|gtrain run model.cfg --dr\t|[run][model.cfg][--dry-run]
dir_of_equals|gtrain run --out=ru\t mod\t|[run][--out=runs][model.cfg]
file_of_equals|gtrain run --init=im\tmodel.cfg|[run][--init=image.png][model.cfg]
boolean_key|gtrain run mod\t -s data.shuffle=f\t|[run][model.cfg][-s][data.shuffle=false]
CASES
}

# The shells wait more than they work: all at once.
for p in bash:gtrain.bash zsh:_gtrain fish:gtrain.fish; do
	one_shell "$p" >"$tmp/${p%:*}.log" 2>&1 &
done
wait
cat "$tmp"/*.log
if command -v shellcheck >/dev/null; then
	if why=$(shellcheck -s bash "$build/completions/gtrain.bash" 2>&1); then
		pass bash_shellcheck
	else
		fail bash_shellcheck "$(head -n 3 <<<"$why")"
	fi
else
	skip bash_shellcheck 'shellcheck is not installed'
fi
