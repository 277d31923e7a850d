#!/bin/bash
# Output for terminals of 60, 80 and 120 columns: no line is wider, and a pipe gets all columns. The progress line has its own test.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
cd "$tmp" || exit 1
cat >net.cfg <<'CFG'
schema = 1;
name = "net";
data = { name = "synthetic"; batch = 16; classes = 10; samples = 64; samples_test = 32; };
model = { input = [3, 16, 16]; layers = (
	{ name = "stage1.block1.convolution"; type = "conv2d"; out = 8; kernel = 3; padding = 1; },
	{ name = "stage1.block1.normalize"; type = "batchnorm2d"; },
	{ name = "stage1.block1.activation"; type = "relu"; },
	{ name = "stage1.block1.pooling"; type = "maxpool2d"; kernel = 2; },
	{ type = "flatten"; }, { name = "head.classifier"; type = "linear"; out = 10; } ); };
train = { epochs = 1; optimizer = { type = "sgd"; lr = 0.01; momentum = 0.9; }; };
checkpoint = { dir = "unused"; };
CFG
"$gtrain" run net.cfg -q -o run >/dev/null 2>&1

widest() { wc -L <"$1"; } # the number of columns of the widest line of a file
# fits NAME ARGS...: the output of gtrain ARGS fits each width, with or without an ellipsis
fits() {
	local name=$1 columns
	shift
	for columns in ${widths:-60 80 120}; do
		COLUMNS=$columns run "$@" --color never
		[ "$rc" = 0 ] && [ "$(widest out)" -le "$columns" ] && [ -s out ] && pass "${name}_$columns" ||
			fail "${name}_$columns" "status $rc, $(widest out) columns"
	done
}
fits check check net.cfg
grep -q 'type  ' out && grep -q 'FLOP' out && pass wide_has_all || fail wide_has_all "$(head -n 5 out)"
for mode in ddp zero; do fits "check_$mode" check net.cfg --world 4 --mode "$mode"; done
pipe=(check net.cfg --world 3 --mode pipe -s parallel.chunks=8)
fits check_pipe "${pipe[@]}"
slots() { sed -n 's/^rank '"$1"' //p' "$2" | xargs; } # the schedule of rank $1
COLUMNS=60 run "${pipe[@]}"
cp out narrow
run "${pipe[@]}"
for rank in 0 2; do
	[ "$(slots $rank narrow)" = "$(slots $rank out)" ] && slots $rank out | grep -q B7 && pass "schedule_$rank" ||
		fail "schedule_$rank" "$(slots $rank narrow) instead of $(slots $rank out)"
done
fits devices devices
fits plan plan net.cfg
fits bench bench net.cfg
fits inspect inspect run
fits eval eval run --report
widths='60 120' # of 80 columns, some lines of the help are longer
fits program_help -h
fits help bench -h
fits topic help train.optimizer.lr
fits layer help conv2d
widths=
fits run run net.cfg -q --new -o other

# The narrow table has the numbers of the wide one, and a pipe gets the wide one whatever its width.
COLUMNS=60 run check net.cfg
cp out narrow
run check net.cfg
same() { grep -o ' [0-9,]* *[0-9.]* [kMG]$' "$1" | tr -s ' '; }
[ "$(same narrow)" = "$(same out)" ] && [ -n "$(same out)" ] && pass same_numbers ||
	fail same_numbers "$(diff <(same narrow) <(same out) | head -n 5)"
grep -q '^layer *type *output' out && ! grep -q '^layer *type' narrow && pass pipe || fail pipe "$(head -n 3 out)"
COLUMNS=60 run plan net.cfg
tr -s ' \n' ' ' <out >narrow
run plan net.cfg
[ "$(tr -s ' \n' ' ' <out)" = "$(cat narrow)" ] && pass plan_words || fail plan_words 'the words of the plan differ'
# The names keep their ends, which tell layers apart.
COLUMNS=60 run inspect run
grep -q 'classifier.weight' out && pass tensor_names || fail tensor_names "$(head -n 12 out)"
