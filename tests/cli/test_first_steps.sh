#!/bin/bash
# What a newcomer types first: gtrain alone, verbs of other programs, help on keys, a config from a pipe, a run that is absent, --version.
# tests/run: beside others
# shellcheck disable=SC2015
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
cd "$tmp" || exit 1
tiny_config
quick=(-q -s train.epochs=1)

# gtrain alone lists the commands, as an error.
run
[ "$rc" = 64 ] && [ ! -s out ] && [ "$(grep -c '^  [a-z-]* ' err)" = "$(commands | wc -l)" ] && grep -q 'expected a command' err &&
	pass alone ||
	fail alone "$rc $(cat out err)"

# Verbs of other programs.
hint() { # WORD TEXT
	run "$1"
	[ "$rc" = 64 ] && grep -qF "unknown command '$1'; $2" err && pass "hint_$1" || fail "hint_$1" "$rc $(cat err)"
}
hint train "did you mean 'run'?"
hint new "did you mean 'init'?"
hint evaluate "did you mean 'eval'?"
# shellcheck disable=SC2016
hint info '`gtrain devices` shows this machine'
# shellcheck disable=SC2016
hint version '`gtrain --version` prints it'
hint visualize "did you mean 'plot'?"
# shellcheck disable=SC2016
hint list '`gtrain configs` lists'
# A verb of other programs that has become a command has no advice any more.
words=$(sed -n 's/^\t{"\([a-z]*\)", .*/\1/p' "$src/cli/main.c")
names=$(sed -n 's/^[A-Z_]*COMMAND(.* "\([a-z-]*\)", ".*/\1/p' "$src/cli/commands.inc")
both=$(grep -Fx "$words" <<<"$names")
[ -n "$words" ] && [ -n "$names" ] && [ -z "$both" ] && pass no_advice_for_commands || fail no_advice_for_commands "$both"
hint serve 'gtrain has no server'
# shellcheck disable=SC2016
hint list '`gtrain configs`'

# Help.
gives help_before 0 out 'usage: gtrain run' --help run
gives help_before_unknown 64 err "unknown command 'rum'" -h rum
run help train.epochs
[ "$rc" = 0 ] && [ "$(head -n 1 out)" = train.epochs ] && grep -q '^  default  0$' out && grep -q 'number of passes over' out &&
	pass help_key || fail help_key "$rc $(cat out err)"
run help train.ema
[ "$rc" = 0 ] && [ "$(grep -c '^train.ema\.' out)" = 2 ] && pass help_group || fail help_group "$rc $(cat out err)"
run help patience
[ "$rc" = 0 ] && grep -qx train.early_stop.patience out && grep -qx train.schedule.patience out && pass help_last_word ||
	fail help_last_word "$rc $(cat out err)"
gives init_list 0 out 'gtrain init FILE.csv --target COLUMN' init --list
gives init_list_own 0 out 'gtrain configs finetune_folder >mine.cfg' init --list
gives init_nothing 64 err 'too few operands; usage: gtrain init PATH' init
gives help_no_key 64 err "unknown key 'train.epoks'" help train.epoks
wide=$("$gtrain" help model | awk 'length > 80 && / .* / { print; exit }' | grep -v '^  [a-z]* *[^ ]*$')
[ -z "$wide" ] && pass help_width || fail help_width "$wide"

# The version is the first line; the rest is what a report of a fault needs.
run --version
[ "$rc" = 0 ] && head -n 1 out | grep -qx 'gtrain [0-9.]*' &&
	[ "$(grep -cE '^(commit|compiler|libraries|plugins|processor) +[^ ]' out)" = 5 ] &&
	grep -q 'oneDNN [0-9]' out && grep -q 'zlib [0-9]' out && pass version || fail version "$rc $(cat out err)"
if commit=$(git -C "$src" rev-parse --short=12 HEAD 2>/dev/null) && [ "$(git -C "$src" rev-parse --show-toplevel)" -ef "$src" ] &&
	[ "$(stat -c %Y "$gtrain")" -ge "$(git -C "$src" log -1 --format=%ct)" ]; then
	grep -q "^commit  *$commit" out && pass version_commit || fail version_commit "$(grep commit out), not $commit"
else
	skip version_commit 'the sources are no git tree, or the program is older than its commit'
fi
for a in '--version --json' '--json --version'; do
	# shellcheck disable=SC2086
	run $a
	[ "$rc" = 0 ] && [ "$(wc -l <out)" = 1 ] && grep -q '^{"version":"[0-9.]*","commit":".*"processor":"..*"}$' out || bad=$a
done
[ -z "${bad-}" ] && pass version_json || fail version_json "$(cat out)"

# A config from standard input or a pipe, by one process, by ranks, and in a smoke test; its relative names are of the working directory.
"$gtrain" check tiny.cfg >want 2>/dev/null
"$gtrain" check - <tiny.cfg >got 2>err && cmp -s want got && pass stdin || fail stdin "$(cat err)"
"$gtrain" check <(cat tiny.cfg) >got 2>err && cmp -s want got && pass pipe || fail pipe "$(cat err)"
sed 's/epochs = 2/epoks = 2/' tiny.cfg | "$gtrain" check - >got 2>err
[ $? = 78 ] && grep -q '^gtrain: -:5: train.epoks: unknown key' err && pass stdin_error || fail stdin_error "$(cat err)"
head -c 5000000 /dev/zero | tr '\0' ' ' | "$gtrain" check - >got 2>err
[ $? = 78 ] && grep -q 'expected a config of at most 4 MiB' err && pass stdin_large || fail stdin_large "$(cat err)"
timeout 20 "$gtrain" check <(yes '# endless') >got 2>err
[ $? = 78 ] && grep -q 'expected a config of at most 4 MiB' err && pass pipe_endless || fail pipe_endless "$(cat err)"
"$gtrain" run - -o by-ranks "${quick[@]}" --nproc 2 -s parallel.mode=ddp --max-restarts 1 <tiny.cfg >got 2>err && [ -e by-ranks/latest ] &&
	pass stdin_ranks || fail stdin_ranks "$(cat err)"
"$gtrain" run <(cat tiny.cfg) -o by-pipe "${quick[@]}" --nproc 2 -s parallel.mode=ddp >got 2>err && [ -e by-pipe/latest ] &&
	pass pipe_ranks || fail pipe_ranks "$(cat err)"
"$gtrain" run - --smoke <tiny.cfg >got 2>err && grep -q 'smoke test passed' got && pass stdin_smoke || fail stdin_smoke "$(cat got err)"
mkdir -p deep && cp tiny.cfg deep/part.cfg
"$gtrain" check <(echo '@include "deep/part.cfg"') >got 2>err && cmp -s want got && pass pipe_include || fail pipe_include "$(cat err)"

# A run that is not there: what was expected, and the runs that are near.
run eval runs/none
text='runs/none: expected a run directory or a checkpoint, but this path does not exist; runs in nearby directories: by-[a-z]*, by-'
[ "$rc" = 66 ] && grep -q "$text" err && pass no_run || fail no_run "$rc $(cat err)"
mkdir runs && mv by-ranks runs/one && mv by-pipe runs/two
for c in 'eval fmnist_mlp' 'predict fmnist_mlp x.png' 'inspect fmnist_mlp' 'export fmnist_mlp -o x' 'resume fmnist_mlp' 'eval runs/none' \
	'eval runs' 'eval fmnist_mlp/step-00000003'; do
	# shellcheck disable=SC2086
	run $c
	[ "$rc" = 66 ] && grep -q 'runs in nearby directories: runs/[a-z]*, runs/[a-z]*$' err && pass "near_${c// /_}" ||
		fail "near_${c// /_}" "$rc $(cat err)"
done
(cd deep && "$gtrain" eval runs/none 2>err)
# shellcheck disable=SC2016
grep -q 'this path does not exist; `gtrain run CFG` writes such a directory: checkpoint.dir of CFG, or --out DIR' deep/err &&
	pass near_none || fail near_none "$(cat deep/err)"

# The command that a message shows can be copied, also if the name of the run has spaces.
run run tiny.cfg "${quick[@]}" -o "with space"
gives quoted_resume 73 err "continue it with \`gtrain resume 'with space'\`" run tiny.cfg "${quick[@]}" -o "with space"

# Small losses, and scores that say nothing.
run eval runs/one
[ "$rc" = 0 ] && ! grep -q top-5 out && pass top5_of_four || fail top5_of_four "$(cat out)"
sed 's/classes = 4/classes = 6/; s/out = 4/out = 6/' tiny.cfg >six.cfg
run run six.cfg "${quick[@]}" -o six
run eval six
[ "$rc" = 0 ] && grep -q 'top-5 [01]\.' out && pass top5_of_six || fail top5_of_six "$(cat out)"
sed 's/classes = 4/classes = 2/; s/out = 4/out = 2/; s/epochs = 2/epochs = 60/; s/lr = 0.01/lr = 2.0/' tiny.cfg >small.cfg
run run small.cfg -o small
[ "$rc" = 0 ] && grep -q '^epoch 60/60  train acc 1.0000 loss 0.000[0-9]\{4\}  test acc' err &&
	! grep -q 'loss 0.0000  ' err && pass small_loss ||
	fail small_loss "$(tail -n 5 err)"

# --new writes beside a directory that exists, with ranks too.
ok=1
for _ in 1 2 3; do
	run run tiny.cfg "${quick[@]}" -o mine --new
	[ "$rc" = 0 ] || ok=0
done
run run tiny.cfg "${quick[@]}" -o mine/ --new --nproc 2 -s parallel.mode=ddp --max-restarts 1
[ $ok$rc = 10 ] && [ "$(echo mine*/latest)" = 'mine-2/latest mine-3/latest mine-4/latest mine/latest' ] && pass new ||
	fail new "$(ls) $(cat err)"
run run tiny.cfg "${quick[@]}" -o mine
[ "$rc" = 73 ] && grep -q 'use another directory with --new or --out DIR' err && pass new_named || fail new_named "$rc $(cat err)"
gives new_smoke 64 err '--new and --smoke cannot be combined' run tiny.cfg --new --smoke

# A run that diverges says what to do.
run run tiny.cfg -q -o away -s train.optimizer.lr=1e38
[ "$rc" = 3 ] && grep -q 'diverged at step' err && grep -q '^try a lower train.optimizer.lr' err && pass diverged ||
	fail diverged "$rc $(cat err)"
