#!/bin/bash
# Lists of images whose targets are not one class: several labels of an image (data.label_separator), and columns of numbers
# (data.target_columns). Training, evaluation, prediction, mixing, resuming and ranks, and what is refused.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
if ! command -v python3 >/dev/null; then
	skip list_targets 'python3 is not installed'
	exit 0
fi
cd "$tmp" || exit 1
python3 "$src/tests/cli/make_images.py" data/train 24 30 rose aster tulip
# a class as a number, and as labels of which one is shared by two classes and one class has none
{
	echo 'file,labels,red,size'
	for i in $(seq 0 23); do
		echo "data/train/rose/$i.png,flower red,1,0.5"
		echo "data/train/aster/$i.png,flower,0,1.5"
		echo "data/train/tulip/$i.png,,-1,2.5"
	done
} >all.csv
cat >net.cfg <<'CFG'
schema = 1;
name = "labels";
seed = 3;
reproducible = "run";
data = { format = "list"; train = ["all.csv"]; label_separator = " "; batch = 16; valid = 0.25; mean = [0.5]; std = [0.25];
	augment = ( { type = "random_resized_crop"; size = 24; scale = [0.7, 1.0]; }, { type = "hflip"; } ); };
model = { input = [3, 24, 24]; layers = ( { type = "conv2d"; out = 8; kernel = 3; stride = 2; }, { type = "relu"; },
	{ type = "global_avgpool"; }, { type = "flatten"; }, { name = "fc"; type = "linear"; out = 2; } ); };
train = { epochs = 12; loss = "bce"; optimizer = { type = "adam"; lr = 0.05; }; };
checkpoint = { every_epochs = 0; best = { metric = "valid/loss"; }; };
CFG
sed 's/label_separator = " ";/target_columns = ["red", "size"];/; s/"bce"/"mse"/; s/= 12;/= 30;/' net.cfg >numbers.cfg
weights() { "$gtrain" export "$1" -o "$1.safetensors" -q && sha256sum <"$1.safetensors" | cut -c1-16; }
loss_of() { sed -n 's/.*valid loss \([0-9.e-]*\).*/\1/p' "$1"; }

# learns NAME CONFIG LIMIT: the loss of the run ends below LIMIT
learns() {
	"$gtrain" run "$2" -q -o "$1" >out 2>err || fail "$1" "$(head -n 1 err)"
	if awk -v l="$(loss_of out)" -v most="$3" 'BEGIN { exit !(l != "" && l + 0 < most) }'; then
		pass "$1_learns"
	else
		fail "$1_learns" "$(cat out err)"
	fi
	echo "# $1: $(tail -n 1 out)"
}
learns several net.cfg 0.15
gives several_no_accuracy 0 out 'valid loss' eval several --split valid
if grep -q accuracy out; then fail several_has_no_accuracy "$(cat out)"; else pass several_has_no_accuracy; fi
gives several_names 0 out 'red' predict several --top 2 data/train/rose/3.png
if grep -q '"classes":\["flower","red"\]' several/latest/data.json; then
	pass several_checkpoint
else
	fail several_checkpoint "$(cat several/latest/data.json)"
fi
gives several_report 0 out 'micro average' eval several --split valid --report
gives several_report_names 0 out 'flower' eval several --split valid --report --nproc 2 -s parallel.mode=ddp
gives several_report_json 0 out '"micro":{"precision":' eval several --split valid --report --json
gives several_f1 0 out 'best valid/f1' run net.cfg -q -o several-f1 -s 'checkpoint.best.metric="valid/f1"' -s train.epochs=8 \
	-s train.optimizer.lr=0.2
learns numbers numbers.cfg 0.2
gives numbers_report 0 out 'RMSE' eval numbers --split valid --report
gives numbers_report_json 0 out '"values":[{"name":"red","mae":' eval numbers --split valid --report --json
gives numbers_report_csv 0 out 'name,mae,rmse,r2' eval numbers --split valid --report --csv
gives numbers_no_f1 78 err 'write "valid/loss"' check numbers.cfg -s 'checkpoint.best.metric="valid/f1"'
gives numbers_text 0 out "$(printf 'red ')" predict numbers data/train/rose/3.png
gives numbers_json 0 out '"values":{"red":' predict numbers --json data/train/rose/3.png
gives numbers_csv 0 out 'path,index,red,size' predict numbers --csv data/train/rose/3.png data/train/tulip/3.png

# the same weights in any way of reading, with mixed pairs too
for cfg in net numbers; do
	sed 's/{ type = "hflip"; }/&, { type = "mixup"; }, { type = "cutmix"; }/' $cfg.cfg >mix.cfg
	short() { "$gtrain" run mix.cfg -q -o "$cfg-$1" -s train.epochs=3 "${@:2}" >/dev/null 2>err || fail "mix_$cfg-$1" "$(head -n 1 err)"; }
	# equal NAME A B: two runs have the same weights
	equal() { if [ "$(weights "$cfg-$2")" = "$(weights "$cfg-$3")" ]; then pass "$1"; else fail "$1" 'other weights'; fi; }
	short whole
	short part -s train.steps=5 -s data.workers=3
	"$gtrain" resume "$cfg-part" -q -s train.steps=0 >/dev/null 2>err || fail "mix_$cfg" "$(head -n 1 err)"
	equal "mix_${cfg}_resumed" whole part
	short world -s 'reproducible="world"'
	short ranks -s 'reproducible="world"' -s parallel.mode=ddp -s parallel.nproc=4
	equal "mix_${cfg}_ranks" world ranks
done

# what is refused
gives one_of_both 78 err 'targets are either values or labels' check net.cfg -s 'data.target_columns=["red"]'
gives no_softmax 78 err 'write "bce"' check net.cfg -s 'train.loss="cross_entropy"'
gives no_nll 78 err 'write "mse"' check numbers.cfg -s 'train.loss="nll"'
gives no_stratify 78 err 'samples then have no single class' check net.cfg -s data.stratify=true
gives no_skip 78 err 'the loss cannot leave out a sample' check numbers.cfg -s 'data.on_error="skip"' -s 'train.loss="cross_entropy"'
gives one_character 78 err 'expected one character' check net.cfg -s 'data.label_separator=", "'
gives outputs 78 err 'expected 2 outputs, one for each target' check net.cfg -s 'model.layers[4].out=3'
gives best_accuracy 78 err 'valid/loss' check net.cfg -s 'checkpoint.best.metric="valid/acc"'
gives no_column 78 err 'got "blue"' check numbers.cfg -s 'data.target_columns=["red", "blue"]'
sed 's/,2\.5$/,big/' all.csv >bad.csv
gives not_a_number 65 err 'bad.csv:4: expected a finite number for size, got "big"' check numbers.cfg -s "data.train=[\"$PWD/bad.csv\"]"
sed 's/,2\.5$/,1e99/' all.csv >bad.csv
gives too_large 65 err 'expected a finite number' check numbers.cfg -s "data.train=[\"$PWD/bad.csv\"]"
tail -n +2 all.csv >bare.csv
gives no_header 78 err 'expected a first line with column names' check numbers.cfg -s "data.train=[\"$PWD/bare.csv\"]"
