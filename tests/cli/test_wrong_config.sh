#!/bin/bash
# Wrong configs: every one is refused, or warned of, by a line that names the place, what is expected, and what to do; several faults of one file
# are reported together.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
# shellcheck source=tests/cli/wrong_config.sh
. "$(dirname "$0")/wrong_config.sh"
cd "$tmp" || exit 1
base_config >base.cfg

tried=0 named=0
wrong() { # NAME LINE STATUS EXPECTATION REMEDY EDIT [ARGS...]
	local name=$1 line=$2 status=$3 expectation=$4 remedy=$5 edit=$6 where=wrong.cfg:
	shift 6
	sed "$edit" base.cfg >wrong.cfg
	[ $# -gt 0 ] || set -- check %
	run "${@/#%/wrong.cfg}"
	[ "$line" = 0 ] || where=wrong.cfg:$line:
	tried=$((tried + 1))
	if [ "$rc" != "$status" ]; then
		fail "wrong: $name" "gtrain $* ended with $rc, not $status: $(head -n 2 err)"
	elif ! grep -F -- "$where" err | grep -F -- "$expectation" | grep -qF -- "$remedy"; then
		fail "wrong: $name" "no line with '$where', '$expectation' and '$remedy': $(head -n 3 err)"
	else
		named=$((named + 1))
		pass "wrong: $name"
	fi
}
wrong_configs
echo "# wrong configs: $tried kinds, place, expectation and remedy named: $named"

# All errors of a file at once, by line, each once, without those that follow from another one; the exit status stands for all.
sed '3s/cpu/gpu/; 9s/batch/batch_size/; 22s/relu/rellu/; 24s/out =/out_features =/; 28s/epochs/num_epochs/; 37s/keep = 3/keep = "all"/' base.cfg >many.cfg
run check many.cfg
got=$(sed -n 's/^gtrain: many.cfg:\([0-9]*\): .*/\1/p' err | tr '\n' ' ')
if [ "$rc" = 78 ] && [ "$got" = "3 9 22 24 28 37 " ] && [ "$(wc -l <err)" = 6 ]; then
	pass several_errors
else
	fail several_errors "status $rc, lines $got: $(cat err)"
fi
# Errors of a block are told once, whatever the number of its instances.
sed '22s/.*/{ block = "b"; name = "x"; repeat = 9; }, { block = "b"; name = "y"; repeat = 9; },/; 18s/$/ blocks = { b = { layers = ( { type = "relu"; slope = 1; } ); }; };/' base.cfg >block.cfg
run check block.cfg
if [ "$rc" = 78 ] && [ "$(wc -l <err)" = 1 ] && grep -q 'block.cfg:18: model.blocks.b.layers\[0\].slope: unknown key' err; then
	pass error_in_block
else
	fail error_in_block "status $rc: $(cat err)"
fi
# A limit: after 20 errors nobody reads on.
{ cat base.cfg; for i in $(seq 30); do echo "quux$i = 1;"; done; } >limit.cfg
run check limit.cfg
if [ "$rc" = 78 ] && [ "$(grep -c 'unknown key' err)" = 20 ] && [ "$(wc -l <err)" -le 21 ]; then
	pass error_limit
else
	fail error_limit "status $rc, $(wc -l <err) lines"
fi
# An include: its errors stand together, behind those of lines before it.
printf 'precision = "fp23";\nseed = "x";\n' >inc.cfg
sed '3s/cpu/gpu/; 4s/.*/@include "inc.cfg"/; 5d; 28s/2/"x"/' base.cfg >outer.cfg
run check outer.cfg
got=$(sed -n 's/^gtrain: \([a-z]*.cfg:[0-9]*\): .*/\1/p' err | tr '\n' ' ')
if [ "$rc" = 78 ] && [ "$got" = "outer.cfg:3 outer.cfg:27 inc.cfg:1 inc.cfg:2 " ]; then
	pass errors_of_include
else
	fail errors_of_include "status $rc, $got: $(cat err)"
fi
# --set: as in a file.
run check base.cfg -s train.epoch=3 -s data.bach=4
if [ "$rc" = 78 ] && [ "$(wc -l <err)" = 2 ] && grep -q 'set train.epoch=3: train.epoch: unknown key; did you mean train.epochs' err &&
	grep -q 'set data.bach=4: data.bach: unknown key; did you mean data.batch' err; then
	pass errors_of_set
else
	fail errors_of_set "status $rc: $(cat err)"
fi
