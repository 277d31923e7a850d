#!/bin/bash
# Models with several inputs, or inputs that are not images (model.inputs): synthetic data, every mode, and what is refused.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
cd "$tmp" || exit 1
cat >both.cfg <<'CFG'
schema = 1;
name = "inputs";
seed = 3;
reproducible = "world";
data = { name = "synthetic"; samples = 400; samples_test = 200; classes = 4; batch = 32; valid = 0.2; mean = [0.5]; std = [0.25]; };
model = {
	inputs = ( { name = "image"; shape = [1, 6, 6]; }, { name = "values"; shape = [5]; }, { name = "more"; type = "values"; shape = [3]; });
	layers = (
		{ type = "conv2d"; in = "image"; out = 4; kernel = 3; padding = 1; }, { type = "relu"; }, { type = "global_avgpool"; },
		{ name = "pixels"; type = "flatten"; },
		{ name = "numbers"; type = "linear"; in = "values"; out = 8; },
		{ name = "all"; type = "concat"; in = ["pixels", "numbers", "more"]; }, { type = "relu"; },
		{ name = "fc"; type = "linear"; out = 4; }
	);
};
train = { epochs = 6; optimizer = { type = "adam"; lr = 0.02; }; };
checkpoint = { every_epochs = 0; };
CFG
# the values alone
sed -e 's/{ name = "image"; shape = \[1, 6, 6\]; }, //; s/, { name = "more".*});/ );/' -e '/"conv2d"/d; /"pixels"; type/d' \
	-e 's/in = \["pixels", "numbers", "more"\]/in = ["numbers", "values"]/' \
	-e 's/ mean = .0.5.; std = .0.25.;//' both.cfg >alone.cfg
weights() { "$gtrain" export "$1" -o "$1.safetensors" -q && sha256sum <"$1.safetensors" | cut -c1-16; }

for cfg in both alone; do
	"$gtrain" run $cfg.cfg -q -o $cfg >out 2>err || fail "$cfg" "$(head -n 1 err)"
	acc=$(sed -n 's/.*test accuracy \([0-9.]*\).*/\1/p' out)
	if awk -v a="${acc:-0}" 'BEGIN { exit !(a > 0.75) }'; then
		pass "${cfg}_learns"
	else
		fail "${cfg}_learns" "accuracy ${acc:-none}: $(cat out)"
	fi
	want=$(weights $cfg)
	"$gtrain" run $cfg.cfg -q -o $cfg-part -s train.steps=7 >/dev/null 2>&1
	"$gtrain" resume $cfg-part -q -s train.steps=0 >/dev/null 2>err || fail "${cfg}_resume" "$(head -n 1 err)"
	if [ "$(weights $cfg-part)" = "$want" ]; then pass "${cfg}_resumed"; else fail "${cfg}_resumed" 'other weights'; fi
	for mode in 'ddp 2' 'dp 2' 'zero 4' 'pipe 2'; do
		read -r m n <<<"$mode"
		"$gtrain" run $cfg.cfg -q -o "$cfg-$m" -s "parallel.mode=$m" -s "parallel.nproc=$n" >/dev/null 2>err
		rc=$?
		if [ $rc = 0 ] && [ "$(weights "$cfg-$m")" = "$want" ]; then
			pass "${cfg}_$m$n"
		else
			fail "${cfg}_$m$n" "status $rc, or other weights: $(head -n 1 err)"
		fi
	done
	gives "${cfg}_bf16" 0 out 'test accuracy' run $cfg.cfg -q -o $cfg-bf16 -s precision=bf16
	gives "${cfg}_eval" 0 out 'accuracy' eval $cfg
	gives "${cfg}_check" 0 out 'one batch' check $cfg.cfg
	gives "${cfg}_no_files" 78 err 'expected a model that reads images only' predict $cfg both.cfg
done
gives augmented 0 out 'accuracy' run both.cfg -q -o augmented -s 'data.augment=( { type = "hflip"; }, { type = "mixup"; } )'

# Weights so large that ranks would apply their gradients together: that needs images, so these ranks sum their gradients.
gives large 0 out 'accuracy' run alone.cfg -q -o large -s reproducible=none -s train.epochs=1 -s data.batch=8 -s data.samples=101 \
	-s 'model.layers=( { type = "linear"; in = "values"; out = 1024; }, { type = "linear"; out = 1024; }, { type = "linear"; out = 4; } )' \
	-s parallel.mode=ddp -s parallel.nproc=2

# what is refused
gives neither 78 err 'or model.inputs, got nothing' check both.cfg -s 'model.inputs=[]'
gives two_ways 78 err 'does not go together with model.input' check both.cfg -s 'model.input=[1, 6, 6]'
gives no_reader 78 err 'expected a layer that reads "values"' check alone.cfg \
	-s 'model.layers=( { type = "linear"; in = "more"; out = 4; } )' \
	-s 'model.inputs=( { name = "more"; type = "values"; shape = [3]; }, { name = "values"; shape = [5]; } )'
sed -e 's/data = .*/data = { name = "fashion-mnist"; batch = 32; limit = 64; };/; s/\[1, 6, 6\]/[1, 28, 28]/' \
	-e 's/out = 4; }$/out = 10; }/' both.cfg >no_field.cfg
[ ! -d /usr/share/datasets/fashion-mnist ] ||
	gives no_field 78 err 'expected the name of a field that the data has (image), got "values"' check no_field.cfg
for key in 'data.augment=( { type = "mixup"; } )' 'data.augment=( { type = "hflip"; } )' 'data.mean=[0.5]' 'data.std=[0.5]' \
	'eval.transforms=( { type = "resize"; size = 5; } )' 'eval.tta="mirror"' 'data.on_error="skip"'; do
	name=${key%%=*}
	gives "no_images_${name/./_}" 78 err "$name: only images use this key, and model.inputs has none" check alone.cfg -s "$key"
done
gives no_type 78 err 'is none of them' check both.cfg -s 'model.inputs=( { name = "age"; shape = [3]; } )'
gives no_shape 78 err 'in synthetic data, got none' check alone.cfg -s 'model.inputs=( { name = "values"; } )'
gives unknown_input 78 err 'did you mean "values"' check alone.cfg -s 'model.layers[0].in="valuse"'
gives name_taken 78 err 'values' check alone.cfg -s 'model.layers[0].name="values"'
