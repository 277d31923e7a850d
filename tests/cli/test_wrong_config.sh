#!/bin/bash
# Wrong configs: every one is refused, or warned of, by a line that names the place, what is expected, and what to do; several faults of one
# file are reported together.
# tests/run: beside others
# shellcheck disable=SC2015,SC2102
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
# shellcheck source=tests/cli/wrong_config.sh
. "$(dirname "$0")/wrong_config.sh"
cd "$tmp" || exit 1
# No data of the user is in the way.
export HOME=$tmp/home GTRAIN_DATA=
unset XDG_CACHE_HOME
mkdir home
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
sed '3s/cpu/gpu/; 9s/batch/batch_size/; 22s/relu/rellu/; 24s/out =/out_features =/; 28s/epochs/num_epochs/; 37s/keep = 3/keep = "all"/' \
	base.cfg >many.cfg
run check many.cfg
got=$(sed -n 's/^gtrain: many.cfg:\([0-9]*\): .*/\1/p' err | tr '\n' ' ')
if [ "$rc" = 78 ] && [ "$got" = "3 9 22 24 28 37 " ] && [ "$(wc -l <err)" = 6 ]; then
	pass several_errors
else
	fail several_errors "status $rc, lines $got: $(cat err)"
fi
# Errors of a block are printed once, for any number of instances.
sed '22s/.*/{ block = "b"; name = "x"; repeat = 9; }, { block = "b"; name = "y"; repeat = 9; },/
	18s/$/ blocks = { b = { layers = ( { type = "relu"; slope = 1; } ); }; };/' base.cfg >block.cfg
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

# ---- run -n fails where run does, with its status, and leaves no trace -------------------------------------------------------------------
mkdir taken
base_config | sed 's/RUN/run/' >base.cfg
printf 'not an idx file' >bad.idx
"$gtrain" run -q base.cfg -o taken/run >/dev/null 2>&1 || fail rehearse_setup "the run of base.cfg fails"
mkdir locked
exec 9>locked/.lock
echo 4242 >&9
flock 9
: >state.before
: >state.after
state() { find . ! -path './out' ! -path './err' ! -path './state.*' -printf '%p %y %m %s %C@\n' | sort; }
rehearse() { # NAME STATUS ARGS...
	local name=$1 want=$2 dry
	shift 2
	state >state.before
	run run -n base.cfg "$@"
	dry=$rc
	state >state.after
	if ! cmp -s state.before state.after; then
		fail "rehearse_$name" "run -n changed $(diff state.before state.after | head -n 2)"
		return
	fi
	run run base.cfg "$@"
	rm -rf run
	if [ "$dry" = "$want" ] && [ "$rc" = "$want" ]; then
		pass "rehearse_$name"
	else
		fail "rehearse_$name" "run -n $dry, run $rc, expected $want: $(head -n 2 err)"
	fi
}
other=(-s data.samples=0 -s data.samples_test=0)
rehearse fine 0
rehearse fine_ranks 0 -s parallel.mode=ddp --nproc 2
rehearse fine_threads 0 -s parallel.mode=dp --nproc 2
rehearse new_parents 0 -o run/a/b
rehearse statistics_of_one 78 -s 'model.layers[2]={ type = "flatten"; }' \
	-s 'model.layers[3]={ type = "batchnorm1d"; track_running_stats = false; }' -s data.eval_batch=1
rehearse statistics_of_last 78 -s 'model.layers[2]={ type = "flatten"; }' \
	-s 'model.layers[3]={ type = "batchnorm1d"; track_running_stats = false; }' -s data.samples_test=65
rehearse no_data 66 -s data.name=nothing-of-this-name "${other[@]}"
rehearse bad_data 65 -s data.name= -s data.format=idx -s 'data.train=["bad.idx","bad.idx"]' -s 'data.test=["bad.idx","bad.idx"]' \
	"${other[@]}"
if [ -e /dev/nvidia0 ]; then
	skip rehearse_no_gpu "there is a GPU"
else
	rehearse no_gpu 69 --device cuda
	rehearse no_gpu_in_config 69 -s device=cuda
	rehearse no_gpu_ranks 69 -s device=cuda -s parallel.mode=ddp --nproc 2
fi
rehearse fp16 78 -s precision=fp16
rehearse fp16_ranks 78 -s precision=fp16 -s parallel.mode=ddp --nproc 2
rehearse fp16_threads 78 -s precision=fp16 -s parallel.mode=dp --nproc 2
rehearse under_a_file 73 -o base.cfg/run
rehearse a_file 73 -o bad.idx
rehearse kernel_files 73 -o /proc/run
rehearse used 73 -o taken/run
rehearse used_ranks 73 -o taken/run -s parallel.mode=ddp --nproc 2
rehearse locked 73 -o locked
rehearse no_init 66 --init nothing.safetensors
rehearse bad_init 65 --init bad.idx
rehearse bad_init_ranks 65 --init bad.idx -s parallel.mode=ddp --nproc 2
rehearse nproc_single 78 --nproc 2
rehearse nodes_without_address 64 -s parallel.mode=ddp --nnodes 2
rehearse tensorboard_nowhere 78 -s checkpoint.dir= -s log.tensorboard=true
rehearse best_of_nothing 78 -s checkpoint.best.metric=valid/acc -s data.valid=0.0001
exec 9>&-
if [ "$(id -u)" != 0 ]; then
	mkdir closed && chmod 500 closed
	rehearse unwritable 73 -o closed/run
	chmod 700 closed
else
	skip rehearse_unwritable "root may write anywhere"
fi

# ---- warnings: once, on stderr, and as events --------------------------------------------------------------------------------------------
warned='wrong.cfg:14: data.mean: expected a value for pixels in 0..1'
sed '14s/0.5/125.0/; s/RUN/run/; 28s/2/1/' base.cfg >wrong.cfg
run run wrong.cfg
[ "$rc" = 0 ] && [ "$(grep -c "warning: $warned" err)" = 1 ] && [ "$(grep -c warning err)" = 1 ] && pass warned_run ||
	fail warned_run "status $rc: $(cat err)"
rm -rf run
run run --json wrong.cfg -s parallel.mode=ddp --nproc 2
[ "$rc" = 0 ] && [ "$(grep -c '"event":"warn".*data.mean' out)" = 1 ] && [ "$(grep -c "warning: $warned" err)" = 1 ] &&
	pass warned_json || fail warned_json "status $rc: $(head -n 3 out) $(cat err)"
rm -rf run
run check --json wrong.cfg
[ "$rc" = 0 ] && grep -q '"warnings":\["wrong.cfg:14: data.mean: [^"]*"\]' out && pass warned_check_json ||
	fail warned_check_json "status $rc: $(cat out)"
run check base.cfg --strict
[ "$rc" = 0 ] && [ ! -s err ] && pass strict_without_warnings || fail strict_without_warnings "status $rc: $(cat err)"
run check base.cfg --strict -s device=cuda
[ -e /dev/nvidia0 ] || { [ "$rc" = 69 ] && pass strict_device || fail strict_device "status $rc: $(cat err)"; }
# Memory: told before anything is allocated, in units that people read.
(ulimit -v 8000000 && "$gtrain" run base.cfg -s data.batch=16777216 -s data.samples=16777216 -s 'model.layers[0].out=64' >out 2>err \
	</dev/null)
if grep -q 'warning: .*data.batch: training needs [0-9.]* [GT]iB' err &&
	grep -q 'data.batch: .*out of memory: cannot get [0-9.]* [GT]iB' err; then
	pass memory_in_units
else
	fail memory_in_units "$(cat err)"
fi
rm -rf run

# ---- paths of data are relative to the config, as @include is; --set's to the working directory ------------------------------------------
mkdir -p sub/data other
idx() { # FILE MAGIC... : bytes in octal
	local f=$1
	shift
	printf '%b' "$(printf '\\0%s' "$@")" >"$f"
}
idx sub/data/x 0 0 10 3 0 0 0 2 0 0 0 1 0 0 0 1 1 2
idx sub/data/y 0 0 10 1 0 0 0 2 0 1
cat >sub/c.cfg <<'CFG'
data = { format = "idx"; root = "data"; train = ["x", "y"]; test = ["x", "y"]; batch = 2; };
model = { input = [1, 1, 1]; layers = ( { type = "flatten"; }, { type = "linear"; out = 2; } ); };
train = { epochs = 1; optimizer = { type = "sgd"; lr = 0.1; }; };
CFG
sed 's,root = "data"; ,,; s,"x","data/x",g; s,"y","data/y",g' sub/c.cfg >sub/files.cfg
printf '@include "part.cfg"\n' >sub/outer.cfg
mkdir sub/deep
sed 's,"data","../data",' sub/c.cfg >sub/deep/part.cfg
printf '@include "deep/part.cfg"\n' >sub/outer.cfg
for cfg in sub/c.cfg sub/files.cfg sub/outer.cfg "$PWD/sub/c.cfg"; do
	run run -q "$cfg" -o "rel"
	n=relative_$(basename "$cfg")
	[ "$rc" = 0 ] && pass "$n" || fail "$n" "status $rc: $(cat err)"
	(cd other && "$gtrain" resume -q ../rel -s train.epochs=2 >/dev/null 2>"$tmp/err") && pass "${n}_resumed" ||
		fail "${n}_resumed" "$(cat err)"
	rm -rf rel
done
(cd sub && "$gtrain" run -q c.cfg -s data.root=data -o ../rel 2>"$tmp/err") && pass relative_set || fail relative_set "$(cat err)"
rm -rf rel

# ---- export by the ending of the file ----------------------------------------------------------------------------------------------------
for name in x.tflite x.pt dir/x.pth x.h5; do
	run export taken/run -o "$name"
	[ "$rc" = 64 ] && grep -qF 'expected a name that ends with .safetensors' err && [ ! -e "$name" ] && pass "export_$name" ||
		fail "export_$name" "status $rc: $(cat err)"
done
for name in x.safetensors weights; do
	run export taken/run -o "$name"
	[ "$rc" = 0 ] && [ -s "$name" ] && pass "export_$name" || fail "export_$name" "status $rc: $(cat err)"
done

# standard output receives the same bytes
run export taken/run -o -
[ "$rc" = 0 ] && cmp -s "$tmp/out" x.safetensors && [ ! -s "$tmp/err" ] && [ ! -e - ] && pass export_stdout ||
	fail export_stdout "status $rc: $(cat err)"
gives export_stdout_json 64 err '--out - and --json cannot be combined' export taken/run -o - --json
"$gtrain" export taken/run -o - 2>err >/dev/full
[ $? = 74 ] && grep -q 'cannot write standard output: No space left' err && pass export_stdout_full || fail export_stdout_full "$(cat err)"
python3 "$src/tests/cli/on_terminal.py" 200 "$gtrain" export taken/run -o - >out 2>&1
grep -q 'expected a pipe or a file as standard output, got a terminal' out && pass export_terminal ||
	fail export_terminal "$(head -c 200 out)"

# ---- the best by top-5 accuracy ----------------------------------------------------------------------------------------------------------
run run -q base.cfg -o top -s 'checkpoint.best.metric=test/top5'
[ "$rc" = 0 ] && [ -e top/best ] && pass best_top5 || fail best_top5 "status $rc: $(cat err)"
