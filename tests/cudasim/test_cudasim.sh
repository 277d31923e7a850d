#!/bin/bash
# The CUDA backend's own sources on a CUDA runtime that runs on the host (include/cuda_runtime_api.h says what that shows and what not):
# calls against the CPU backend, the table of operations against PyTorch, whole trainings against the CPU's. Needs neither GPU nor toolkit.
# tests/run: beside others
set -u
# shellcheck source=tests/cudasim/sim.sh
. "$GTRAIN_SRC/tests/cudasim/sim.sh"
sim_begin cudasim

# part NAME LEAST COMMAND...: a test program; its `ok` and `not ok` lines under NAME, operations that the backend refuses as a figure.
# Fewer than LEAST passed: something was lost.
part() {
	local name=$1 least=$2 ok
	shift 2
	"$@" >"$tmp/log" 2>&1
	local rc=$?
	sed -n "s/^\(not \)\{0,1\}ok /&$name: /p" "$tmp/log"
	ok=$(grep -c '^ok ' "$tmp/log")
	if [ $rc != 0 ] && ! grep -q '^not ok ' "$tmp/log"; then
		echo "not ok $name: ended with status $rc: $(grep -v '^ok ' "$tmp/log" | tail -n 1)"
	elif [ "$ok" -lt "$least" ]; then
		echo "not ok $name: only $ok tests ran"
	fi
	grep '^#' "$tmp/log" | grep -E 'calls|joins'
	echo "# cudasim: $name: $ok checks, $(grep -c '^skip ' "$tmp/log") refused by the backend"
}
part calls_last_first 12 "$sim/tests/cudasim/tool_calls"
part calls_first_first 12 env CUDASIM_FIRST=1 "$sim/tests/cudasim/tool_calls"
part layers_last_first 12 "$sim/tests/cudasim/tool_layers"
part layers_first_first 10 env CUDASIM_FIRST=1 "$sim/tests/cudasim/tool_layers" norm
part calls_early 12 env GTRAIN_CUDA_PDL=1 "$sim/tests/cudasim/tool_calls"
part layers_early 12 env GTRAIN_CUDA_PDL=1 "$sim/tests/cudasim/tool_layers"
part joins_early 8 env GTRAIN_CUDA_PDL=1 "$sim/tests/cudasim/tool_joins"
part muon_early 4 env GTRAIN_CUDA_PDL=1 "$sim/tests/cudasim/tool_muon"
part convolutions_early 1 env GTRAIN_CUDA_PDL=1 "$sim/tests/cudasim/tool_conv"
part muon_last_first 4 "$sim/tests/cudasim/tool_muon"
part muon_first_first 1 env CUDASIM_FIRST=1 "$sim/tests/cudasim/tool_muon" bf16
part tables_last_first 9 "$sim/tests/cudasim/tool_tables"
part tables_first_first 2 env CUDASIM_FIRST=1 "$sim/tests/cudasim/tool_tables" gradients
part tables_early 9 env GTRAIN_CUDA_PDL=1 "$sim/tests/cudasim/tool_tables"
part attention_last_first 3 "$sim/tests/cudasim/tool_attention"
part attention_first_first 1 env CUDASIM_FIRST=1 "$sim/tests/cudasim/tool_attention" gradients
part attention_early 1 env GTRAIN_CUDA_PDL=1 "$sim/tests/cudasim/tool_attention" gradients
part attention_by_cudnn 3 env TEST_CUDNN_ATTENTION=ordered "$sim/tests/cudasim/tool_attention"
part attention_by_cudnn_unordered 1 env CUDASIM_FIRST=1 TEST_CUDNN_ATTENTION=unordered "$sim/tests/cudasim/tool_attention" gradients
part attention_by_cudnn_choices 3 "$sim/tests/cudasim/tool_fused"
part sequences_last_first 5 "$sim/tests/cudasim/tool_sequences"
part sequences_first_first 1 env CUDASIM_FIRST=1 "$sim/tests/cudasim/tool_sequences" steps
part sequences_early 5 env GTRAIN_CUDA_PDL=1 "$sim/tests/cudasim/tool_sequences"
part joins_last_first 8 "$sim/tests/cudasim/tool_joins"
part joins_first_first 8 env CUDASIM_FIRST=1 "$sim/tests/cudasim/tool_joins"
part device 6 "$sim/tests/cudasim/tool_device"
part nccl_one_rank 5 "$sim/tests/cudasim/tool_nccl"
part nccl_blocking 5 env GTRAIN_NCCL_BLOCKING=1 "$sim/tests/cudasim/tool_nccl"
part nccl_silent_peer 5 env CUDASIM_SILENT_PEER=1 CUDASIM_PEER_GATHERS=2 "$sim/tests/cudasim/tool_nccl" silent_peer
part nccl_lost_device 1 env CUDASIM_LOSE_DEVICE=1 "$sim/tests/cudasim/tool_nccl" a_lost_device
part convolutions 1 "$sim/tests/cudasim/tool_conv"
part engines 13 "$sim/tests/cudasim/tool_dnn"
part operations 380 "$sim/tests/ops/test_ops" -b cuda
part operations_first_first 380 env CUDASIM_FIRST=1 "$sim/tests/ops/test_ops" -b cuda
part operations_attention_by_cudnn 20 env TEST_CUDNN_ATTENTION=ordered "$sim/tests/ops/test_ops" -b cuda attention
part updates 40 "$sim/tests/ops/test_updates" -b cuda
part linear_without_bgradb 60 env CUDASIM_NO_EPILOGUE=BGRADB "$sim/tests/ops/test_ops" -b cuda linear

# ---- trainings: augmentation, dropout, accumulation, clipping, a short last batch --------------------------------------------------
cat >"$tmp/net.cfg" <<'CFG'
schema = 1; name = "net"; seed = 3;
data = { name = "synthetic"; batch = 32; classes = 4; samples = 200; samples_test = 64; augment = ( { type = "pad_crop"; pad = 2; },
	{ type = "hflip"; } ); };
model = { input = [3, 8, 8]; layers = ( { type = "flatten"; }, { name = "fc1"; type = "linear"; out = 33; }, { type = "relu"; },
	{ name = "fc2"; type = "linear"; out = 40; }, { type = "gelu"; }, { type = "dropout"; p = 0.2; },
	{ name = "fc"; type = "linear"; out = 4; } ); };
train = { epochs = 3; accumulate = 2; clip_norm = 1.0; optimizer = { type = "adam"; lr = 0.01; }; };
checkpoint = { dir = "unused"; every_epochs = 1; keep = 9; };
log = { every_steps = 1; };
CFG
train() { # DIR ARGS...
	local dir=$1
	shift
	"$sim/bin/gtrain" run "$tmp/net.cfg" -q --no-progress -o "$dir" "$@" >"$tmp/out" 2>&1 ||
		echo "status $?: $(tail -n 1 "$tmp/out")" >"$dir.failed"
}
train "$tmp/cpu" --device cpu
train "$tmp/cuda" --device cuda
train "$tmp/again" --device cuda
train "$tmp/cpu16" --device cpu -s 'precision="bf16"'
train "$tmp/cuda16" --device cuda -s 'precision="bf16"'
# Sums in another order, 2^-24 each, through 21 steps of Adam.
close training_as_on_the_cpu "$tmp/cpu" "$tmp/cuda" 1e-5 24
# bf16 rounds activations to 2^-8, and a step in another direction is soon another path.
close bf16_training_as_on_the_cpu "$tmp/cpu16" "$tmp/cuda16" 5e-2 24
if cmp -s <(losses "$tmp/cuda") <(losses "$tmp/again"); then echo 'ok training_twice_the_same_bits'
else echo 'not ok training_twice_the_same_bits: losses differ'; fi

# A checkpoint of one device goes on on the other: what came after step 14 is taken away first.
cp -r "$tmp/cuda" "$tmp/moved"
rm -rf "$tmp/moved/step-00000021" "$tmp/moved/latest" "$tmp/moved/best"
grep -vE '"step":(1[5-9]|2[01])[,}]' "$tmp/cuda/metrics.jsonl" >"$tmp/moved/metrics.jsonl"
before=$(losses "$tmp/moved" | wc -l)
"$sim/bin/gtrain" resume "$tmp/moved" --device cpu -q --no-progress >"$tmp/out" 2>&1 ||
	echo "status $?: $(tail -n 1 "$tmp/out")" >"$tmp/moved.failed"
if [ "$before" -lt 14 ] || [ "$before" -ge 20 ]; then echo "not ok resume_on_another_device: $before losses were left"
else close resume_on_another_device "$tmp/cuda" "$tmp/moved" 1e-5 24; fi

# ---- a network of convolutions: strides, groups, no bias, a sum, pools, batch normalisation -------------------------------------------
cat >"$tmp/net.cfg" <<'CFG'
schema = 1; name = "cnn"; seed = 5;
data = { name = "synthetic"; batch = 32; classes = 4; samples = 200; samples_test = 64; augment = ( { type = "pad_crop"; pad = 2; },
	{ type = "hflip"; } ); };
model = { input = [3, 8, 8]; layers = ( { name = "c1"; type = "conv2d"; out = 12; kernel = 3; padding = 1; }, { type = "relu"; },
	{ name = "c2"; type = "conv2d"; out = 16; kernel = 3; padding = 1; groups = 2; bias = false; }, { type = "relu"; },
	{ name = "c3"; type = "conv2d"; out = 16; kernel = 3; padding = 1; bias = false; }, { name = "bn"; type = "batchnorm2d"; },
	{ name = "r3"; type = "relu"; }, { type = "maxpool2d"; kernel = 2; },
	{ name = "c4"; type = "conv2d"; out = 9; kernel = [1, 3]; dilation = [1, 2]; padding = [0, 2]; stride = [2, 1]; }, { type = "gelu"; },
	{ type = "flatten"; }, { name = "fc"; type = "linear"; out = 4; } ); };
train = { epochs = 3; accumulate = 2; clip_norm = 1.0; optimizer = { type = "sgd"; lr = 0.02; momentum = 0.9; }; };
checkpoint = { dir = "unused"; every_epochs = 1; keep = 9; };
log = { every_steps = 1; };
CFG
train "$tmp/cnn_cpu" --device cpu
train "$tmp/cnn" --device cuda
rm -rf "$tmp/cache"
train "$tmp/cnn_same" --device cuda -s 'reproducible="run"'
train "$tmp/cnn_again" --device cuda -s 'reproducible="run"'
train "$tmp/cnn_cpu16" --device cpu -s 'precision="bf16"'
train "$tmp/cnn16" --device cuda -s 'precision="bf16"'
# Products and sums of f32 in another order, one engine's by 2^-21 more, through 21 steps: a path that drifts apart by the rate of learning.
close cnn_training_as_on_the_cpu "$tmp/cnn_cpu" "$tmp/cnn" 1e-4 24
close cnn_training_without_a_clock "$tmp/cnn_cpu" "$tmp/cnn_same" 1e-4 24
close bf16_cnn_training_as_on_the_cpu "$tmp/cnn_cpu16" "$tmp/cnn16" 5e-2 24
if cmp -s <(losses "$tmp/cnn_same") <(losses "$tmp/cnn_again"); then echo 'ok cnn_training_twice_the_same_bits'
else echo 'not ok cnn_training_twice_the_same_bits: losses differ'; fi

# cuDNN is opened by the first convolution: without it a model that has none trains, and one that has is refused at once.
mkdir -p "$tmp/bare/bin" "$tmp/bare/lib/gtrain"
cp "$sim/bin/gtrain" "$tmp/bare/bin"
cp "$sim"/lib/gtrain/{cuda.so,libcudasim.so,libcublasLt.so.0} "$tmp/bare/lib/gtrain"
"$tmp/bare/bin/gtrain" run "$tmp/net.cfg" -q --no-progress -o "$tmp/bare/cnn" --device cuda >"$tmp/out" 2>&1
rc=$?
if [ $rc = 69 ] && grep -q 'cuDNN cannot be loaded: libcudnn.so' "$tmp/out"; then echo 'ok without_cudnn_convolutions_are_refused'
else echo "not ok without_cudnn_convolutions_are_refused: status $rc: $(tail -n 1 "$tmp/out")"; fi
if "$tmp/bare/bin/gtrain" run "$tmp/net.cfg" -q --no-progress -o "$tmp/bare/mlp" --device cuda \
	-s 'model.layers=({type="flatten";},{type="linear";out=4;})' >"$tmp/out" 2>&1; then echo 'ok without_cudnn_other_models_train'
else echo "not ok without_cudnn_other_models_train: $(tail -n 1 "$tmp/out")"; fi

# ---- first start on a card ---------------------------------------------------------------------------------------------------------------
# says NAME STATUS WORDS VARIABLE=VALUE... COMMAND...: the status, and a line with the words
says() {
	local name=$1 want=$2 words=$3 rc
	shift 3
	rm -rf "$tmp/start"
	env "$@" >"$tmp/out" 2>&1
	rc=$?
	if [ $rc = "$want" ] && grep -q -- "$words" "$tmp/out"; then echo "ok $name"
	else echo "not ok $name: status $rc: $(tail -n 1 "$tmp/out")"; fi
}
start=("$sim/bin/gtrain" run "$tmp/net.cfg" -q --no-progress -o "$tmp/start" --device cuda -s train.epochs=1)
old='the CUDA driver supports CUDA 12.4, but this build needs CUDA 13: update the NVIDIA driver to release 580 or newer'
says old_driver_devices 0 "$old" CUDASIM_DRIVER=12040 "$sim/bin/gtrain" devices
says old_driver_run 69 "$old" CUDASIM_DRIVER=12040 "${start[@]}"
says older_minor_version_of_driver 0 '' CUDASIM_DRIVER=13000 "${start[@]}"
says card_without_code 0 'the driver compiles the kernels for compute capability 12.0 once' CUDASIM_CC=120 "${start[@]}"
says card_without_code_and_old_driver 69 'needs kernels that the driver compiles.*CUDA 13.1, but the driver supports 13.0' CUDASIM_CC=120 \
	CUDASIM_DRIVER=13000 "${start[@]}"
says card_with_code_of_its_major_version 0 '' CUDASIM_CC=86 "${start[@]}"
if grep -q 'compiles the kernels' "$tmp/out"; then echo "not ok card_with_code_says_nothing: $(head -n 1 "$tmp/out")"; fi
says card_too_old 69 '8.0 or newer is needed' CUDASIM_CC=75 "${start[@]}"
says one_gpu_does_not_answer 0 'cuda:1 .*GPU that does not answer' CUDASIM_GPUS=2 "$sim/bin/gtrain" devices
says beside_it_the_other_trains 0 '' CUDASIM_GPUS=2 "${start[@]}"
says it_is_refused_alone 1 'cuda:1: cuda' CUDASIM_GPUS=2 "${start[@]}" --device cuda:1
