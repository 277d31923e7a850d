#!/bin/bash
# `gtrain run --smoke --against cpu` on the host's CUDA runtime: no operation differs, and of a backend in which one kernel is wrong, the
# operation of this kernel is named, and no other. Each line of the table at the end makes one kernel wrong.
# tests/run: beside others
set -u
# shellcheck source=tests/cudasim/sim.sh
. "$GTRAIN_SRC/tests/cudasim/sim.sh"
sim_begin sim_against
cd "$tmp" || exit 1
export XDG_CACHE_HOME=$tmp/cache TMPDIR=$tmp OMP_WAIT_POLICY=passive

cat >image.cfg <<'CFG'
schema = 1; name = "image"; seed = 3;
data = { name = "synthetic"; batch = 8; classes = 4; samples = 40; samples_test = 16; augment = ( { type = "pad_crop"; pad = 2; } ); };
model = { input = [3, 12, 12]; layers = (
	{ name = "c1"; type = "conv2d"; out = 8; kernel = 3; padding = 1; }, { name = "n1"; type = "batchnorm2d"; },
	{ name = "r1"; type = "relu"; }, { name = "top"; type = "maxpool2d"; kernel = 2; },
	{ name = "n2"; type = "batchnorm2d"; }, { name = "g2"; type = "gelu"; },
	{ name = "gn"; type = "groupnorm"; num_groups = 2; }, { name = "drop"; type = "dropout"; p = 0.3; },
	{ name = "avg"; type = "avgpool2d"; kernel = 3; stride = 1; padding = 1; },
	{ name = "cat"; type = "concat"; in = ["avg", "top"]; },
	{ name = "all"; type = "global_avgpool"; in = "cat"; }, { name = "s"; type = "sigmoid"; },
	{ name = "gate"; type = "mul"; in = ["cat", "s"]; },
	{ type = "flatten"; }, { name = "fc1"; type = "linear"; out = 40; }, { name = "ln"; type = "layernorm"; }, { type = "relu"; },
	{ name = "fc2"; type = "linear"; out = 24; }, { type = "relu"; }, { name = "fc"; type = "linear"; out = 4; } ); };
train = { epochs = 3; optimizer = { type = "adam"; lr = 0.005; }; };
checkpoint = { dir = "unused"; };
CFG
cat >text.cfg <<'CFG'
schema = 1; name = "text"; seed = 3;
data = { name = "synthetic"; samples = 40; samples_test = 16; classes = 4; batch = 8; };
model = { inputs = ( { name = "tokens"; shape = [12]; vocabulary = 9; }, { name = "lengths"; } ); layers = (
	{ name = "words"; type = "embedding"; in = "tokens"; embedding_dim = 16; }, { name = "at"; type = "positional"; },
	{ name = "self"; type = "attention"; in = ["at", "lengths"]; num_heads = 2; },
	{ name = "mean"; type = "pool_tokens"; in = ["self", "lengths"]; }, { name = "fc"; type = "linear"; out = 4; } ); };
train = { epochs = 3; clip_norm = 1.0; optimizer = { type = "sgd"; lr = 0.05; momentum = 0.9; }; };
checkpoint = { dir = "unused"; };
CFG

# The table is updated by its rows, in a call of its own; the update of the other parameters leaves it, and its 16-bit copy, alone.
cat >bag.cfg <<'CFG'
schema = 1; name = "bag"; seed = 3;
data = { name = "synthetic"; samples = 40; samples_test = 16; classes = 4; batch = 8; };
model = { inputs = ( { name = "tokens"; shape = [12]; vocabulary = 900; }, { name = "lengths"; } ); layers = (
	{ name = "bag"; type = "embedding_bag"; in = ["tokens", "lengths"]; embedding_dim = 16; },
	{ name = "fc"; type = "linear"; out = 4; } ); };
train = { epochs = 3; optimizer = { type = "sgd"; lr = 4.0; }; };
checkpoint = { dir = "unused"; };
CFG

# compare PROGRAM CFG ARGS...: a smoke test against the CPU; its status in $rc
compare() {
	"$1" run "$2" --smoke --against cpu --device cuda "${@:3}" >out 2>err
	rc=$?
}

# ---- no kernel is wrong -------------------------------------------------------------------------------------------------------
right() { # NAME CFG ARGS...
	compare "$sim/bin/gtrain" "${@:2}"
	if [ "$rc" = 0 ] && grep -qE '^operations .* [1-9][0-9]* calls of [1-9][0-9]* operations compared: 0 differ$' out; then
		echo "ok $1"
		echo "# sim_against: $1: $(sed -n 's/^operations *[^ ]* [a-z]* *//p' out)"
	else
		echo "not ok $1: status $rc: $(sed -n '/^operations/,$p' out | head -n 4 | tr '\n' ' ') $(head -n 1 err)"
	fi
}
right sim_against_image image.cfg
right sim_against_text text.cfg
right sim_against_bf16 image.cfg -s 'precision="bf16"'
right sim_against_text_bf16 text.cfg -s 'precision="bf16"'
right sim_against_text_cudnn text.cfg -s 'precision="bf16"' -s cudnn_attention=true
right sim_against_text_cudnn_repeatable text.cfg -s 'precision="fp16"' -s cudnn_attention=true -s 'reproducible="run"'
right sim_against_fp16 image.cfg -s 'precision="fp16"' # the CPU computes in fp32
right sim_against_rows_fp16 bag.cfg -s 'precision="fp16"'
right sim_against_accumulate image.cfg -s train.accumulate=2
right sim_against_muon text.cfg -s 'precision="fp16"' -s 'train.groups=({match="fc.weight";optimizer={type="muon";lr=0.01;};})'
right sim_against_ddp image.cfg --nproc 2 -s parallel.mode=ddp
right sim_against_zero image.cfg --nproc 2 -s parallel.mode=zero -s parallel.stage=3
right sim_against_pipe text.cfg --nproc 2 -s parallel.mode=pipe

# ---- one kernel is wrong ------------------------------------------------------------------------------------------------------
cxx=${CXX:-g++}
library=$GTRAIN_BUILD/libgtrain.a
if [ ! -e "$library" ] || [ ! -d "$sim/obj/kernels/cuda" ]; then
	echo 'skip sim_against_wrong: the objects of the simulator are not there'
	exit 0
fi
mkdir -p wrong/bin wrong/lib/gtrain
cp "$sim/bin/gtrain" wrong/bin/
cp "$sim"/lib/gtrain/*.so* wrong/lib/gtrain/

# build FILE EXPRESSION: builds cuda.so with FILE.cu as sed EXPRESSION changes it
build() {
	local others
	sed -E "$2" "$GTRAIN_SRC/kernels/cuda/$1.cu" >"$1.cu"
	if cmp -s "$1.cu" "$GTRAIN_SRC/kernels/cuda/$1.cu"; then
		echo "$1.cu has no such text" >err
		return 1
	fi
	$cxx -std=c++17 -O1 -w -fPIC -ffp-contract=off -pthread -D_GNU_SOURCE -I"$GTRAIN_SRC/tests/cudasim/include" -I"$GTRAIN_SRC/engine" \
		-I"$GTRAIN_SRC/kernels" -x c++ -c "$1.cu" -o "$1.o" 2>err || return
	mapfile -t others < <(printf '%s\n' "$sim"/obj/kernels/cuda/*.o | grep -v "/$1\.cu\.o$")
	$cxx -shared "${others[@]}" "$1.o" "$library" -o wrong/lib/gtrain/cuda.so -L"$sim/lib/gtrain" -lcudasim \
		-Wl,-rpath,'$ORIGIN' -ldl -lm 2>err
}

# wrong FILE EXPRESSION OPERATION LAYER CFG ARGS...: this operation of this layer is named first, at a step and an element, and no other
# operation is named; other layers may have the same one
wrong() {
	local name="sim_against_wrong_${3}"
	if ! build "$1" "$2"; then
		echo "not ok $name: cannot build it: $(head -n 1 err)"
		return
	fi
	compare wrong/bin/gtrain "${@:5}"
	if [ "$rc" = 4 ] && ! grep '^ *step [0-9]*: ' out | grep -qv ": $3 of " &&
		grep -qE "step [0-9]+: $3 of $4 \(.*\): worst [^ ]+ of [^ ]+ at .* of [a-z0-9_]+; [0-9]+ operations? before it agree" out &&
		grep -q "the first of them is $3 of $4" err; then
		echo "ok $name"
	else
		echo "not ok $name: status $rc: $(sed -n '/^operations/,$p' out | head -n 4 | tr '\n' ' ') $(head -n 1 err)"
	fi
}
wrong gather 's/\* a\.attr\.scale\[i\]/* a.attr.scale[i] * 1.01f/' gather data image.cfg
wrong batchnorm 's/a\.momentum \* mean\)/2 * a.momentum * mean)/' batchnorm n1 image.cfg
wrong groupnorm 's/(v\[j\] = \(v\[j\] - mean\) \* rstd);/\1 * 1.01f;/' groupnorm gn image.cfg
wrong dropout 's/step_args\.seed, a\.layer\)/step_args.seed, a.layer + 1)/' dropout drop image.cfg
wrong pool 's/best\[j\] \*= share;/best[j] *= a.adaptive ? share : share * 1.01f;/' avgpool2d avg image.cfg
wrong shape 's/to\[.*\] = u\[k\];/{ if (!a.join || (r + col) % 97) & }/' concat cat image.cfg
wrong channels 's/\? x\[j\] \* v\[j\]/? x[j] * v[j] * 1.01f/' mul.channels gate image.cfg
wrong layernorm 's/dot \+= g \*/dot -= g */' layernorm.dx ln image.cfg
wrong update 's/Step::f\(h, p\[j\], g\[j\]/Step::f(h, p[j], g[j] * 1.01f/' adam optimizer image.cfg
wrong attention 's/sum > 0 \? 1\.0f/sum > 0 ? 1.01f/' attention self text.cfg
wrong tokens 's/to_float\(x\[k\]\) \+ w\)/to_float(x[k]) - w)/' positional at text.cfg
# 0.4 %, which bf16 would hide, but the sum is in f32
wrong tokens 's/\*dw : 0\) \+ sum\)/*dw : 0) + 1.004 * sum)/' positional.dw at text.cfg -s 'precision="bf16"'
