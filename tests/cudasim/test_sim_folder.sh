#!/bin/bash
# Images from files on the host's CUDA runtime: threads decode them, and they are copied to a ring on the device one window ahead. The
# losses and the evaluations are the CPU's, with windows of any length, micro-batches, short last batches, and after an interruption.
# tests/run: beside others
set -u
# shellcheck source=tests/cudasim/sim.sh
. "$GTRAIN_SRC/tests/cudasim/sim.sh"
sim_begin sim_folder
command -v python3 >/dev/null || { echo 'skip sim_folder: python3 is not installed'; exit 0; }
cd "$tmp" || exit 1
python3 "$GTRAIN_SRC/tests/cli/make_images.py" data/train 23 30 rose aster tulip
python3 "$GTRAIN_SRC/tests/cli/make_images.py" data/valid 9 40 rose aster tulip
cat >net.cfg <<'CFG'
schema = 1;
name = "folder";
seed = 3;
autotune = false;
reproducible = "run";
data = { root = "data"; batch = 16; mean = [0.5]; std = [0.25];
	augment = ( { type = "random_resized_crop"; size = 24; scale = [0.5, 1.0]; }, { type = "hflip"; } ); };
model = { input = [3, 24, 24]; layers = ( { type = "conv2d"; out = 8; kernel = 3; stride = 2; }, { type = "relu"; },
	{ type = "global_avgpool"; }, { type = "flatten"; }, { name = "fc"; type = "linear"; out = 3; } ); };
train = { epochs = 4; optimizer = { type = "adam"; lr = 0.02; }; };
checkpoint = { every_epochs = 0; };
log = { every_steps = 1; };
CFG

agrees sim_folder_windows --
agrees sim_folder_step_by_step -- -s window=1 -s cuda_graphs=false
agrees sim_folder_one_worker -- -s data.workers=1 -s data.prefetch=0
agrees sim_folder_micro -s train.accumulate=2 -- -s data.workers=3
agrees sim_folder_ranks -s parallel.mode=ddp -s parallel.nproc=2 --
agrees sim_folder_pipe -s parallel.mode=pipe -s parallel.nproc=2 -s parallel.chunks=2 --
sed -i.plain 's/{ type = "hflip"; }/&, { type = "mixup"; p = 0.4; }, { type = "cutmix"; p = 0.4; }/' net.cfg
agrees sim_folder_mixed --
agrees sim_folder_mixed_ranks -s parallel.mode=ddp -s parallel.nproc=2 -s train.accumulate=2 --
mv net.cfg.plain net.cfg

# several inputs: images and rows of numbers, in device memory and beside images that are fetched
cat >inputs.cfg <<'CFG'
schema = 1;
name = "inputs";
seed = 3;
autotune = false;
reproducible = "run";
data = { name = "synthetic"; samples = 400; samples_test = 200; classes = 4; batch = 32; valid = 0.2; mean = [0.5]; std = [0.25]; };
model = {
	inputs = ( { name = "image"; shape = [1, 6, 6]; }, { name = "values"; shape = [5]; } );
	layers = ( { type = "conv2d"; in = "image"; out = 4; kernel = 3; padding = 1; }, { type = "relu"; }, { type = "global_avgpool"; },
		{ name = "pixels"; type = "flatten"; }, { type = "concat"; in = ["pixels", "values"]; },
		{ name = "fc"; type = "linear"; out = 4; } );
};
train = { epochs = 3; optimizer = { type = "adam"; lr = 0.02; }; };
checkpoint = { every_epochs = 0; };
log = { every_steps = 1; };
CFG
mv net.cfg net.folder && cp inputs.cfg net.cfg
agrees sim_inputs --
agrees sim_inputs_ranks -s parallel.mode=ddp -s parallel.nproc=2 -s eval.tta=mirror --
agrees sim_inputs_fetched -s 'data.augment=( { type = "rotate"; degrees = 20.0; }, { type = "cutmix"; } )' --
mv net.folder net.cfg
"$sim/bin/gtrain" run net.cfg -q -o halves --device cuda -s train.steps=7 >/dev/null 2>err ||
	echo "not ok sim_folder_half: $(head -n 1 err)"
"$sim/bin/gtrain" resume halves -q --device cuda -s train.steps=0 >/dev/null 2>err || echo "not ok sim_folder_resume: $(head -n 1 err)"
for run in sim_folder_windows halves; do
	"$sim/bin/gtrain" export "$run" -o "$run.safetensors" -q 2>/dev/null
done
if cmp -s sim_folder_windows.safetensors halves.safetensors; then
	echo 'ok sim_folder_resumed'
else
	echo 'not ok sim_folder_resumed: other weights than in one go'
fi
