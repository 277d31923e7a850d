#!/bin/bash
# Images with padded channels (engine/plan/image_padding.c), on the host's CUDA runtime: every loss, score, weight and prediction has the
# same bits as those of the same net behind a multiplication by 1, which reads the images, so that they are not padded.
# tests/run: beside others
set -u
# shellcheck source=tests/cudasim/sim.sh
. "$GTRAIN_SRC/tests/cudasim/sim.sh"
sim_begin sim_padded

net() { # FILE FIRST-LAYERS
	cat >"$1" <<CFG
schema = 1; name = "net"; seed = 5; reproducible = "run"; precision = "bf16";
data = { name = "synthetic"; batch = 24; classes = 4; samples = 104; samples_test = 40; };
model = { input = [3, 8, 8]; layers = ( $2
	{ name = "c1"; type = "conv2d"; out = 12; kernel = 3; padding = 1; }, { name = "r1"; type = "relu"; },
	{ name = "bn"; type = "batchnorm2d"; }, { name = "c2"; type = "conv2d"; out = 8; kernel = 3; }, { name = "g"; type = "gelu"; },
	{ name = "flat"; type = "flatten"; }, { name = "fc"; type = "linear"; out = 4; } ); };
train = { epochs = 2; optimizer = { type = "sgd"; lr = 0.02; momentum = 0.9; }; };
checkpoint = { dir = "unused"; };
log = { every_steps = 1; };
CFG
}
net "$tmp/padded.cfg" ''
net "$tmp/plain.cfg" '{ name = "same"; type = "scale"; factor = 1.0; },'
numbers() { grep -E '"event":"(train|eval)"' "$1/metrics.jsonl" | grep -oE '"(step|split|loss|acc)":[^,}]*'; }
# padded CONFIG OPTIONS...: the number of calls that read padded images; -1: there is no plan
padded() {
	"$sim/bin/gtrain" plan "$1" --device cuda "${@:2}" >"$tmp/plan" 2>/dev/null || { echo -1; return; }
	grep -c 'input\[[0-9]*, [38], 8, 8\]~8' "$tmp/plan"
}
fail() { echo "not ok sim_padded_$1: $2"; }

# same NAME OPTIONS...
same() {
	local name=$1 net why=
	shift
	for net in padded plain; do
		rm -rf "${tmp:?}/$net"
		"$sim/bin/gtrain" run "$tmp/$net.cfg" -q --no-progress -o "$tmp/$net" --device cuda "$@" >"$tmp/out" 2>&1 ||
			why="$net: $(tail -n 1 "$tmp/out")"
	done
	[ -n "$why" ] || [ "$(numbers "$tmp/plain" | grep -c loss)" -ge 10 ] || why='no losses'
	[ -n "$why" ] || cmp -s <(numbers "$tmp/padded") <(numbers "$tmp/plain") ||
		why="losses differ: $(diff <(numbers "$tmp/padded") <(numbers "$tmp/plain") | sed -n 2p)"
	[ -n "$why" ] || cmp -s "$tmp/padded/latest/model.safetensors" "$tmp/plain/latest/model.safetensors" || why='weights differ'
	for net in padded plain; do
		"$sim/bin/gtrain" predict "$tmp/$net" "$tmp"/images/*/*.png --device cuda --csv --top 4 >"$tmp/$net.csv" 2>"$tmp/out" ||
			why="$why predict with $net: $(tail -n 1 "$tmp/out")"
	done
	[ "$(wc -l <"$tmp/padded.csv")" -gt 6 ] && cmp -s "$tmp/padded.csv" "$tmp/plain.csv" || why="$why predictions differ"
	[ "$(padded "$tmp/padded.cfg" "$@")" -gt 3 ] || why="$why nothing is padded"
	[ "$(padded "$tmp/plain.cfg" "$@")" = 0 ] || why="$why padded though another layer reads them"
	if [ -n "$why" ]; then fail "$name" "$why"; else echo "ok sim_padded_$name"; fi
}
python3 "$GTRAIN_SRC/tests/cli/make_images.py" "$tmp/images" 7 8 a b >/dev/null 2>&1 || { echo 'skip sim_padded: no python3'; exit 0; }
same bf16
same fp16 -s precision=fp16
same accumulated -s train.accumulate=3
same augmented -s 'data.augment=({type="pad_crop";pad=2;},{type="hflip";})' -s eval.tta=mirror_translate
same bias_alone -s 'train.groups=({match="c1.weight";frozen=true;})'
same frozen_first -s 'train.groups=({match="c1.*";frozen_until=1.0;})'
same mixed -s 'data.augment=({type="mixup";},)'
same ddp -s parallel.mode=ddp -s parallel.nproc=2
same idle_rank -s parallel.mode=ddp -s parallel.nproc=2 -s parallel.sync_bn=true -s data.samples=97
same dp -s parallel.mode=dp -s parallel.nproc=2
same pipe -s parallel.mode=pipe -s parallel.nproc=2 -s parallel.chunks=3

# Not with groups, whose convolution reads other channels for each of them, with 8 channels, or in 32 bits.
net "$tmp/groups.cfg" '{ name = "c0"; type = "conv2d"; out = 3; kernel = 1; groups = 3; },'
if [ "$(padded "$tmp/groups.cfg")" = 0 ]; then echo 'ok sim_padded_not_with_groups'; else fail not_with_groups 'images are padded'; fi
for o in precision=fp32 precision=tf32 'model.input=[8,8,8]'; do
	if [ "$(padded "$tmp/padded.cfg" -s "$o")" = 0 ]; then echo "ok sim_padded_not_with_$o"; else fail "not_with_$o" 'images are padded'; fi
done
