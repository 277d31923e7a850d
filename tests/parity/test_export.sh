#!/bin/bash
# Exported models beside gtrain: outputs of ONNX Runtime (onnx_outputs.py, onnx_table.py) and of PyTorch (torch_outputs.py) for every type
# of layer and for configs of configs/. $ONNX_PYTHON: a Python with onnx, onnxruntime and numpy (python3). $TORCH_PYTHON: one with torch and
# numpy (python3). EXPORT=full: all of configs/, which takes ten minutes.
# tests/run: beside others
set -u
onnx=${ONNX_PYTHON:-python3} torch=${TORCH_PYTHON:-python3}
here=$GTRAIN_SRC/tests/parity
export OMP_WAIT_POLICY=passive # see test_parity.sh
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export TMPDIR=$tmp
has_onnx=true has_torch=true
if ! "$onnx" -c 'import onnx, onnxruntime, numpy' 2>/dev/null; then
	echo "skip export_onnx: $onnx has no onnx, onnxruntime and numpy (set ONNX_PYTHON)"
	has_onnx=false
fi
if ! "$torch" -c 'import torch, numpy' 2>/dev/null; then
	echo "skip export_torch: $torch has no torch and numpy (set TORCH_PYTHON)"
	has_torch=false
fi

# fails NAME: reports the first line of $tmp/err
fails() { echo "not ok $1: $(head -n 1 "$tmp/err")"; }

# outputs NAME RUN [--pixels]: the outputs of gtrain for random inputs, in $tmp/NAME.out
outputs() {
	mkdir -p "$tmp/$1.out"
	"$GTRAIN_BUILD/tests/parity/tool_outputs" ${3:+"$3"} "$2" "$tmp/$1.out" 2>"$tmp/err" || fails "outputs_$1"
}

# compare_onnx NAME RUN [EXPORT OPTIONS]: exports the model of a run, and compares the outputs in $tmp/NAME.out
compare_onnx() {
	local name=$1 run=$2
	shift 2
	$has_onnx || return
	if "$GTRAIN" export "$run" -o "$tmp/$name.onnx" -q "$@" 2>"$tmp/err"; then
		"$onnx" "$here/onnx_outputs.py" "$tmp/$name.onnx" "$tmp/$name.out" "onnx_$name"
	else
		fails "onnx_$name"
	fi
	rm -f "$tmp/$name.onnx"
}

# compare_torch NAME RUN: the same for a directory with a PyTorch model
compare_torch() {
	local name=$1 run=$2
	$has_torch || return
	if "$GTRAIN" export "$run" -o "$tmp/$name-torch" --format pytorch -q 2>"$tmp/err"; then
		"$torch" "$here/torch_outputs.py" "$tmp/$name-torch" "$tmp/$name.out" "torch_$name"
	else
		fails "torch_$name"
	fi
	rm -rf "${tmp:?}/$name-torch"
}

# ---- every type of layer -----------------------------------------------------------------------------------------------------
for kind in images sequences tables; do
	if "$GTRAIN" run "$here/export_$kind.conf" -q --no-progress --device cpu -o "$tmp/run" >"$tmp/log" 2>"$tmp/err"; then
		outputs "$kind" "$tmp/run"
		compare_onnx "$kind" "$tmp/run"
		compare_torch "$kind" "$tmp/run"
	else
		fails "run_$kind"
	fi
	if [ $kind = images ]; then
		outputs pixels "$tmp/run" --pixels
		compare_onnx pixels "$tmp/run" --preprocess
	fi
	rm -rf "$tmp/run"
done
missing=$(comm -23 <(sed -n '/^\.Ss Layer types/,/^\.Ss model.pretrained/s/^\.It Cm //p' "$GTRAIN_SRC/man/gtrain.cfg.5" | sort -u) \
	<(sed -n 's/.*{.* type = "\([a-z0-9_]*\)".*/\1/p' "$here"/export_*.conf | sort -u))
if [ -z "$missing" ]; then echo 'ok every_layer_type'; else echo "not ok every_layer_type: no config has ${missing//$'\n'/ }"; fi
if $has_onnx; then
	mkdir "$tmp/table"
	"$onnx" "$here/onnx_table.py" "$GTRAIN" "$tmp/table"
fi

# ---- the preparation of photos -------------------------------------------------------------------------------------------------
# photos NAME SETTINGS...: trains on the photos; images.py and the model give the probabilities of `gtrain predict`
photos() {
	local name=$1 out=$tmp/photos_$1
	shift
	mkdir "$out"
	if ! "$GTRAIN" run "$tmp/photos.cfg" -q --no-progress --device cpu -o "$out/run" "$@" >"$tmp/log" 2>"$tmp/err"; then
		fails "photos_$name"
	elif ! "$torch" "$here/export_photos.py" torch "$GTRAIN" "$out/run" "$tmp/photos" "$out" >"$tmp/log" 2>"$tmp/err"; then
		echo "not ok photos_torch_$name: $(tail -n 1 "$tmp/err")"
	else
		cat "$tmp/log"
		echo "ok photos_torch_$name"
	fi
	$has_onnx || return
	if "$GTRAIN" export "$out/run" -o "$out/m.onnx" --preprocess -q 2>"$tmp/err" &&
		"$onnx" "$here/export_photos.py" metadata "$out/m.onnx" "$out" >"$tmp/log" 2>"$tmp/err" &&
		"$torch" "$here/export_photos.py" pixels "$tmp/photos" "$out" >>"$tmp/log" 2>"$tmp/err" &&
		"$onnx" "$here/export_photos.py" onnx "$out/m.onnx" "$out" onnx >>"$tmp/log" 2>"$tmp/err"; then
		cat "$tmp/log"
		echo "ok photos_onnx_$name"
	else
		echo "not ok photos_onnx_$name: $(tail -n 1 "$tmp/err")"
	fi
}
cat >"$tmp/photos.cfg" <<'CFG'
schema = 1; name = "photos"; seed = 3;
data = { root = "photos"; batch = 8; mean = [0.48, 0.45, 0.40]; std = [0.25, 0.24, 0.23]; };
model = { input = [3, 32, 32]; layers = ( { type = "conv2d"; out = 8; kernel = 5; stride = 3; }, { type = "relu"; },
	{ type = "flatten"; }, { type = "linear"; out = 3; } ); };
train = { epochs = 3; optimizer = { type = "adam"; lr = 0.003; }; };
CFG
if $has_torch && "$torch" -c 'import torchvision, PIL' 2>/dev/null; then
	"$torch" "$here/export_photos.py" make "$tmp/photos"
	photos default
	photos bicubic -s 'eval.transforms=({type="resize";size=[40,28];interpolation="bicubic";},{type="center_crop";size=32;})'
	photos crop -s 'eval.transforms=({type="center_crop";size=[64,48];},{type="resize";size=[32,32];})'
	photos grey -s 'model.input=[1,32,32]' -s 'data.mean=[0.4]' -s 'data.std=[0.2]'
else
	echo "skip photos: $torch has no torchvision and Pillow (set TORCH_PYTHON)"
fi

# ---- configs -------------------------------------------------------------------------------------------------------------------
short=' fmnist_mlp fmnist_cnn adult_tabular imdb_bag '
for cfg in "$GTRAIN_SRC"/configs/*.cfg; do
	name=$(basename "$cfg" .cfg)
	[ "${EXPORT:-}" = full ] || [[ $short = *" $name "* ]] || continue
	if "$GTRAIN" run "$cfg" --smoke -q --device cpu -o "$tmp/$name" >"$tmp/log" 2>"$tmp/err" </dev/null; then
		outputs "$name" "$tmp/$name/run"
		compare_onnx "$name" "$tmp/$name/run"
		compare_torch "$name" "$tmp/$name/run"
	else
		fails "run_$name"
	fi
	rm -rf "${tmp:?}/$name" "$tmp/$name.out"
done
