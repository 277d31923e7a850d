#!/bin/bash
# Transforms of images on the GPU (gather.recipes), on the host's CUDA runtime: every loss, score and weight has the same bits as where
# threads on the host apply the whole list.
# tests/run: beside others
set -u
# shellcheck source=tests/cudasim/sim.sh
. "$GTRAIN_SRC/tests/cudasim/sim.sh"
sim_begin sim_transforms
command -v python3 >/dev/null || { echo 'skip sim_transforms: python3 is not installed'; exit 0; }
cd "$tmp" || exit 1
python3 "$GTRAIN_SRC/tests/cli/make_images.py" data/train 15 30 rose aster tulip
python3 "$GTRAIN_SRC/tests/cli/make_images.py" data/valid 7 40 rose aster tulip
python3 "$GTRAIN_SRC/tests/cli/make_images.py" large/train 20 61 rose aster tulip
python3 "$GTRAIN_SRC/tests/cli/make_images.py" large/valid 7 90 rose aster tulip
cp -r data torn
for f in torn/train/rose/*1.* torn/train/tulip/*2.*; do head -c 60 "$f" >x && mv x "$f"; done
cat >net.cfg <<'CFG'
schema = 1;
name = "folder";
seed = 3;
autotune = false;
reproducible = "run";
data = { root = "data"; batch = 16; mean = [0.5]; std = [0.25];
	augment = ( { type = "random_resized_crop"; size = 24; scale = [0.5, 1.0]; }, { type = "hflip"; },
		{ type = "color_jitter"; brightness = 0.4; contrast = 0.4; saturation = 0.4; hue = 0.1; }, { type = "grayscale"; p = 0.2; },
		{ type = "pad_crop"; pad = 3; }, { type = "vflip"; p = 0.1; }, { type = "random_erasing"; p = 0.5; random = true; } ); };
model = { input = [3, 24, 24]; layers = ( { type = "conv2d"; out = 8; kernel = 3; stride = 2; }, { type = "relu"; },
	{ type = "global_avgpool"; }, { type = "flatten"; }, { name = "fc"; type = "linear"; out = 3; } ); };
train = { epochs = 3; optimizer = { type = "adam"; lr = 0.02; }; };
checkpoint = { every_epochs = 0; };
log = { every_steps = 1; };
CFG
numbers() { grep -E '"event":"(train|eval)"' "$1/metrics.jsonl" | grep -oE '"(step|split|loss|acc)":[^,}]*'; }
divided() { "$sim/bin/gtrain" check net.cfg --device cuda "$@" 2>/dev/null | grep -c '^transforms .* on the GPU'; }

# same NAME LINES OPTIONS...: LINES: at least this many numbers are compared
same() {
	local name=$1 least=$2 on why=
	shift 2
	for on in true false; do
		"$sim/bin/gtrain" run net.cfg -q -o "$name-$on" --device cuda -s data.gpu_transforms=$on "$@" >/dev/null 2>err ||
			why="$on: $(tail -n 1 err)"
	done
	[ -n "$why" ] || [ "$(numbers "$name-true" | wc -l)" -ge "$least" ] || why='few numbers'
	[ -n "$why" ] || cmp -s <(numbers "$name-true") <(numbers "$name-false") ||
		why="numbers differ: $(diff <(numbers "$name-true") <(numbers "$name-false") | sed -n 2p)"
	[ -n "$why" ] || cmp -s "$name-true/latest/model.safetensors" "$name-false/latest/model.safetensors" || why='weights differ'
	[ -n "$why" ] || [ "$(divided "$@")" = 1 ] || why='the GPU transforms nothing'
	[ "$(divided "$@" -s data.gpu_transforms=false)" = 0 ] || why="$why; the GPU transforms though it is not asked to"
	if [ -n "$why" ]; then echo "not ok $name: $why"; else echo "ok $name"; fi
}
same sim_transforms_fp32 30
same sim_transforms_bf16_padded 30 -s precision=bf16
same sim_transforms_step_by_step 30 -s window=1 -s cuda_graphs=false -s data.workers=3
same sim_transforms_micro 30 -s train.accumulate=2 -s precision=fp16
same sim_transforms_ranks 30 -s parallel.mode=ddp -s parallel.nproc=2
same sim_transforms_pipe 30 -s parallel.mode=pipe -s parallel.nproc=2 -s parallel.chunks=2
same sim_transforms_grey 30 -s 'model.input=[1,24,24]'
same sim_transforms_skipped 30 -s data.root=torn -s data.on_error=skip
same sim_transforms_large 30 -s data.root=large # some parts have more pixels than a row, and are resized by the threads
same sim_transforms_bicubic 30 -s data.root=large -s eval.tta=mirror -s 'data.augment=({type="resize";size=31;interpolation="bicubic";},
	{type="center_crop";size=24;},{type="hflip";})'
same sim_transforms_crop_only 30 -s 'data.augment=({type="random_resized_crop";size=24;ratio=[0.2,5.0];},)'
same sim_transforms_behind_rotate 30 -s 'data.augment=({type="resize";size=[24,24];},{type="rotate";degrees=20.0;},{type="hflip";})'
same sim_transforms_views 30 -s eval.tta=mirror_translate \
	-s 'eval.transforms=({type="resize";size=[24,24];},{type="grayscale";p=1.0;})'
same sim_transforms_arrays 30 -s data.name=synthetic -s data.root= -s data.classes=3 -s data.samples=70 -s data.samples_test=20 \
	-s 'data.augment=({type="color_jitter";contrast=0.9;brightness=0.5;},{type="hflip";})'

# Lists that end with a transform that the GPU does not have, and samples that are mixed, stay with the threads.
for list in '{type="trivial_augment";}' '{type="hflip";},{type="mixup";}'; do
	if [ "$(divided -s "data.augment=({type=\"random_resized_crop\";size=24;},$list)")" = 0 ]; then
		echo "ok sim_transforms_not_with_${list//[^a-z_]/}"
	else
		echo "not ok sim_transforms_not_with_${list//[^a-z_]/}"
	fi
done

"$sim/bin/gtrain" run net.cfg -q -o halves --device cuda -s train.steps=4 >/dev/null 2>err ||
	echo "not ok sim_transforms_half: $(head -n 1 err)"
"$sim/bin/gtrain" resume halves -q --device cuda -s train.steps=0 >/dev/null 2>err || echo "not ok sim_transforms_resume: $(head -n 1 err)"
if cmp -s sim_transforms_fp32-true/latest/model.safetensors halves/latest/model.safetensors; then
	echo 'ok sim_transforms_resumed'
else
	echo 'not ok sim_transforms_resumed: other weights than in one go'
fi
