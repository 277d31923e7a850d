#!/bin/bash
# `gtrain run --smoke --against cpu`: the same steps on a device and on the CPU, and each operation on both. The device is the CPU itself,
# or a backend with a wrong kernel (faulty_backend.c), which must be named.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
export TMPDIR=$tmp/t
mkdir "$TMPDIR"

cat >"$tmp/mlp.cfg" <<'CFG'
schema = 1; name = "mlp";
data = { name = "synthetic"; batch = 32; classes = 4; samples = 200; samples_test = 50; };
model = { input = [1, 8, 8]; layers = ( { type = "flatten"; }, { name = "fc1"; type = "linear"; out = 40; }, { type = "gelu"; },
	{ type = "dropout"; }, { name = "fc"; type = "linear"; out = 4; } ); };
train = { epochs = 2; clip_norm = 1.0; optimizer = { type = "adamw"; lr = 0.01; }; };
checkpoint = { dir = "unused"; };
CFG
cat >"$tmp/cnn.cfg" <<'CFG'
schema = 1; name = "cnn";
data = { name = "synthetic"; batch = 24; classes = 4; samples = 200; samples_test = 50; augment = ( { type = "pad_crop"; pad = 2; } ); };
model = { input = [3, 12, 12]; layers = ( { name = "c1"; type = "conv2d"; out = 8; kernel = 3; padding = 1; },
	{ name = "n1"; type = "batchnorm2d"; }, { name = "r1"; type = "relu"; }, { name = "p1"; type = "maxpool2d"; kernel = 2; },
	{ name = "c2"; type = "conv2d"; out = 8; kernel = 3; padding = 1; }, { type = "silu"; },
	{ type = "flatten"; }, { name = "fc"; type = "linear"; out = 4; } ); };
train = { epochs = 2; optimizer = { type = "sgd"; lr = 0.01; momentum = 0.9; }; };
checkpoint = { dir = "unused"; };
CFG

# ---- the CPU against itself ---------------------------------------------------------------------------------------------------
# equal NAME CFG ARGS...: status 0, equal bits of the runs, no operation differs and each is compared
equal() {
	local name=$1
	shift
	run run "$@" --smoke --against cpu --device cpu
	if [ "$rc" = 0 ] && grep -q '^runs .* equal: losses, weights and moments' "$tmp/out" &&
		grep -qE '^operations .* [1-9][0-9]* calls of [1-9][0-9]* operations compared: 0 differ$' "$tmp/out"; then
		pass "$name"
	else
		fail "$name" "status $rc: $(grep -E '^(runs|operations)' "$tmp/out" | tr '\n' ' ') $(head -n 1 "$tmp/err")"
	fi
}
equal cpu_mlp "$tmp/mlp.cfg"
equal cpu_cnn "$tmp/cnn.cfg"
equal cpu_bf16 "$tmp/cnn.cfg" -s 'precision="bf16"'
equal cpu_accumulates "$tmp/mlp.cfg" -s train.accumulate=2
for mode in ddp zero dp pipe; do equal "cpu_$mode" "$tmp/cnn.cfg" --nproc 2 -s parallel.mode=$mode; done
if [ -e /usr/share/datasets/fashion-mnist ]; then
	equal cpu_fmnist_mlp "$src/configs/fmnist_mlp.cfg"
	equal cpu_lenet "$src/configs/lenet.cfg"
else
	skip cpu_fmnist 'no FashionMNIST in /usr/share/datasets'
fi
[ -z "$(ls "$TMPDIR")" ] || fail cpu_left "$(ls "$TMPDIR")"

# ---- another precision is named -----------------------------------------------------------------------------------------------
gives fp32_against_bf16 0 out 'a difference of precision: cpu computes in fp32, the CPU in bf16; losses at most ' \
	run "$tmp/cnn.cfg" --smoke --against cpu:bf16 --device cpu
gives bf16_against_fp32 0 out 'a difference of precision: cpu computes in bf16, the CPU in fp32; losses at most ' \
	run "$tmp/mlp.cfg" --smoke --against cpu:fp32 --device cpu -s 'precision="bf16"'

# ---- what it refuses ----------------------------------------------------------------------------------------------------------
gives needs_smoke 64 err '--against: expected the option --smoke too' run "$tmp/mlp.cfg" --against cpu
gives other_word 64 err "--against: expected cpu|cpu:fp32|cpu:bf16, got 'cuda'" run "$tmp/mlp.cfg" --smoke --against cuda
gives other_word_first 64 err "--against: expected cpu|cpu:fp32|cpu:bf16, got 'cpu:fp8'" run "$tmp/none.cfg" --smoke --against cpu:fp8

# ---- one wrong kernel is named ------------------------------------------------------------------------------------------------
build=$(dirname "$(dirname "$gtrain")")
mkdir -p "$tmp/faulty/bin" "$tmp/faulty/lib/gtrain"
cp "$gtrain" "$tmp/faulty/bin/gtrain"
cp "$build"/lib/gtrain/{cpu,null,smoke}.so "$tmp/faulty/lib/gtrain/"
if ! ${CC:-gcc} -std=gnu17 -O1 -shared -fPIC -I"$src/engine" -I"$src/kernels" -o "$tmp/faulty/lib/gtrain/cuda.so" \
	"$src/tests/cli/faulty_backend.c" "$build/libgtrain.a" -ldl -lm 2>"$tmp/cc"; then
	skip wrong_kernels "no C compiler: $(tail -n 1 "$tmp/cc")"
	exit 0
fi
export FAULTY_CPU=$tmp/faulty/lib/gtrain/cpu.so
gtrain=$tmp/faulty/bin/gtrain
# names OPERATION LAYER CFG: status 4, and the operation is the only one that differs
names() {
	FAULTY_OPS=$1 run run "$3" --smoke --against cpu --device cuda
	if [ "$rc" = 4 ] && grep -q "^operations .*: 1 differs" "$tmp/out" &&
		grep -q "step 1: $1 of $2 (faulty): worst .* at \[.*operations\? before it agree" "$tmp/out" &&
		grep -q "1 of [0-9]* operations differs from the CPU's by .*, the first of them is $1 of $2" "$tmp/err"; then
		pass "wrong_$1"
	else
		fail "wrong_$1" "status $rc: $(grep -A3 '^operations' "$tmp/out" | tr '\n' ' ') $(head -n 1 "$tmp/err")"
	fi
}
FAULTY_OPS='' gives no_wrong_kernel 0 out '0 differ' run "$tmp/cnn.cfg" --smoke --against cpu --device cuda
FAULTY_RUNS=1 FAULTY_OPS=linear gives wrong_order 4 err 'that rounding explains, but no operation differs: the order of the work is wrong' \
	run "$tmp/mlp.cfg" --smoke --against cpu --device cuda
names adam optimizer "$tmp/mlp.cfg"
names gelu 2 "$tmp/mlp.cfg"
names gelu.dx 2 "$tmp/mlp.cfg"
names linear.dx fc "$tmp/mlp.cfg"
names maxpool2d p1 "$tmp/cnn.cfg"
names maxpool2d.dx p1 "$tmp/cnn.cfg"
names batchnorm.dx n1 "$tmp/cnn.cfg"
names silu 5 "$tmp/cnn.cfg"
names conv2d.dx c2 "$tmp/cnn.cfg"
names cross_entropy loss "$tmp/cnn.cfg"
[ -z "$(ls "$TMPDIR")" ] || fail left "$(ls "$TMPDIR")"
