#!/bin/bash
# Image folders through every command: training from a folder, an archive, a list and a pattern gives the same weights; so do any number of
# threads and ranks, and interruptions; names of classes reach eval, predict and the checkpoint.
# tests/run: beside others
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
if ! command -v python3 >/dev/null; then
	skip folder 'python3 is not installed'
	exit 0
fi
cd "$tmp" || exit 1
python3 "$src/tests/cli/make_images.py" data/train 24 30 rose aster tulip
python3 "$src/tests/cli/make_images.py" data/valid 8 40 rose aster tulip
cat >net.cfg <<'CFG'
schema = 1;
name = "folder";
seed = 3;
reproducible = "run";
data = { root = "data"; batch = 16; mean = [0.5]; std = [0.25];
	augment = ( { type = "random_resized_crop"; size = 24; scale = [0.5, 1.0]; }, { type = "hflip"; },
		{ type = "trivial_augment"; }, { type = "color_jitter"; brightness = 0.2; hue = 0.05; }, { type = "random_erasing"; } ); };
model = { input = [3, 24, 24]; layers = ( { type = "conv2d"; out = 8; kernel = 3; stride = 2; }, { type = "relu"; },
	{ type = "global_avgpool"; }, { type = "flatten"; }, { name = "fc"; type = "linear"; out = 3; } ); };
train = { epochs = 4; optimizer = { type = "adam"; lr = 0.02; }; };
checkpoint = { every_epochs = 0; best = { metric = "valid/acc"; }; };
CFG
weights() { "$gtrain" export "$1" -o "$1.safetensors" -q && sha256sum <"$1.safetensors" | cut -c1-16; }

# same NAME OPTIONS...: a run with these options ends with the weights of the first one
same() {
	local name=$1
	shift
	if ! "$gtrain" run net.cfg -q -o "$name" "$@" >/dev/null 2>err; then
		fail "$name" "$(head -n 1 err)"
	elif [ "$(weights "$name")" = "$first" ]; then
		pass "$name"
	else
		fail "$name" 'other weights than in the first run'
	fi
}

"$gtrain" run net.cfg -q -o first >out 2>err || fail folder_run "$(head -n 1 err)"
first=$(weights first)
acc=$(sed -n 's/.*valid accuracy \([0-9.]*\).*/\1/p' out)
if awk -v a="${acc:-0}" 'BEGIN { exit !(a > 0.8) }'; then
	pass folder_learns
else
	fail folder_learns "accuracy ${acc:-none}: $(cat out)"
fi
echo "# folder: accuracy $acc"
tar -cf data.tar -C data train valid
same folder_archive -s data.root=data.tar
same folder_one_worker -s data.workers=1
same folder_five_workers -s data.workers=5
same folder_no_prefetch -s data.prefetch=0
same folder_far_ahead -s data.prefetch=9

# a run that is interrupted in the middle of an epoch, twice
"$gtrain" run net.cfg -q -o halves -s train.steps=7 >/dev/null 2>&1
"$gtrain" resume halves -q -s train.steps=11 >/dev/null 2>&1
"$gtrain" resume halves -q -s train.steps=0 >/dev/null 2>err || fail folder_resume "$(head -n 1 err)"
if [ "$(weights halves)" = "$first" ]; then pass folder_resumed; else fail folder_resumed 'other weights than in one go'; fi

# every number of ranks and every mode: reproducible = "world"
"$gtrain" run net.cfg -q -o world -s 'reproducible="world"' >/dev/null 2>err || fail folder_world "$(head -n 1 err)"
want=$(weights world)
for mode in 'ddp 2' 'ddp 4' 'dp 2' 'zero 2' 'pipe 2'; do
	read -r m n <<<"$mode"
	"$gtrain" run net.cfg -q -o "w-$m-$n" -s 'reproducible="world"' -s "parallel.mode=$m" -s "parallel.nproc=$n" >/dev/null 2>err
	rc=$?
	if [ $rc = 0 ] && [ "$(weights "w-$m-$n")" = "$want" ]; then
		pass "folder_world_$m$n"
	else
		fail "folder_world_$m$n" "status $rc, or other weights: $(head -n 1 err)"
	fi
done

# mixup and cutmix: the same weights with any number of threads and ranks, after interruptions, and from arrays as from files
sed 's/{ type = "random_erasing"; }/&, { type = "mixup"; alpha = 0.4; p = 0.4; }, { type = "cutmix"; p = 0.4; }/' net.cfg >mix.cfg
# mixed NAME OPTIONS...: a run of mix.cfg with these options ends with the weights $want
mixed() {
	local name=$1
	shift
	"$gtrain" run mix.cfg -q -o "$name" "$@" >/dev/null 2>err
	local rc=$?
	if [ $rc = 0 ] && [ "$(weights "$name")" = "$want" ]; then
		pass "$name"
	else
		fail "$name" "status $rc, or other weights: $(head -n 1 err)"
	fi
}
"$gtrain" run mix.cfg -q -o mix >/dev/null 2>err || fail folder_mix "$(head -n 1 err)"
want=$(weights mix)
if [ "$want" != "$first" ]; then pass folder_mix_has_effect; else fail folder_mix_has_effect 'the same weights as without'; fi
for w in 1 2 8; do mixed "folder_mix_workers_$w" -s data.workers=$w; done
"$gtrain" run mix.cfg -q -o mix-halves -s train.steps=7 >/dev/null 2>&1
"$gtrain" resume mix-halves -q -s train.steps=11 >/dev/null 2>&1
"$gtrain" resume mix-halves -q -s train.steps=0 >/dev/null 2>err || fail folder_mix_resume "$(head -n 1 err)"
if [ "$(weights mix-halves)" = "$want" ]; then pass folder_mix_resumed; else fail folder_mix_resumed 'other weights than in one go'; fi
"$gtrain" run mix.cfg -q -o mix-world -s 'reproducible="world"' >/dev/null 2>err || fail folder_mix_world "$(head -n 1 err)"
want=$(weights mix-world)
for mode in 'ddp 2 1' 'ddp 4 2' 'dp 2 8' 'zero 2 2' 'pipe 2 1'; do
	read -r m n w <<<"$mode"
	mixed "folder_mix_$m$n" -s 'reproducible="world"' -s "parallel.mode=$m" -s "parallel.nproc=$n" -s "data.workers=$w"
done
gives folder_mix_nll 78 err '"cutmix" and train.loss = "nll" cannot be combined' check mix.cfg -s 'train.loss="nll"'
gives folder_mix_last 78 err 'data.augment[1]: expected mixup and cutmix at the end of the list' \
	check mix.cfg -s 'data.augment=( { type = "mixup"; }, { type = "hflip"; } )'

# names of classes
if grep -q '"images":"files","classes":\["aster","rose","tulip"\]' first/latest/data.json; then
	pass folder_names_in_checkpoint
else
	fail folder_names_in_checkpoint "$(cat first/latest/data.json)"
fi
gives folder_predicts 0 out 'tulip' predict first data/valid/tulip/3.png
gives folder_eval_report 0 out 'tulip' eval first --split valid --report
mkdir -p other && cp -r data/train other/ && mv other/train/rose other/train/zinnia
gives folder_other_classes 65 err 'the data has the class "zinnia", which is unknown to the checkpoint: its classes are aster, rose' \
	eval first --split train -s data.root=other
gives folder_check 0 out 'decoded batches' check net.cfg
gives folder_check_threads 0 out 'image decoding threads: at most' check net.cfg
gives folder_smoke 0 out 'no evaluation: the data has' run net.cfg --smoke -s data.root=data/train -s checkpoint.best.metric=train/loss
gives folder_no_test 66 err 'the split "test" has no samples; choose another split with --split' eval first --split test
gives folder_valid_for_test 0 err 'the data has no split "test"; evaluating "valid"' eval first

# what cannot be read: named, and the checkpoints stay
cp -r data bad && head -c 300 data/train/rose/7.png >bad/train/rose/7.png
gives folder_damaged 65 err 'bad/train/rose/7.png' run net.cfg -q -o damaged -s data.root=bad
gives folder_skips 0 err 'bad/train/rose/7.png: PNG: the file is truncated' \
	run net.cfg -q -o skips -s data.root=bad -s 'data.on_error="skip"'
if [ "$(grep -c '"event":"warning"\|"event":"warn"' skips/metrics.jsonl)" = 1 ]; then
	pass folder_skips_once
else
	fail folder_skips_once "$(grep -c warn skips/metrics.jsonl) warnings in metrics.jsonl"
fi
# all ranks say what they have skipped
cp -r bad worse
for n in 1 5 9 13 17; do head -c 300 "data/train/rose/$n.png" >"worse/train/rose/$n.png"; done
for mode in 'ddp 2' 'ddp 4' 'dp 2' 'zero 2' 'pipe 2'; do
	read -r m n <<<"$mode"
	"$gtrain" run net.cfg -q -o "skips-$m$n" -s data.root=worse -s 'data.on_error="skip"' -s "parallel.mode=$m" -s "parallel.nproc=$n" \
		-s train.epochs=2 >/dev/null 2>err
	got=$(grep -c 'skipped.*the file is truncated' err) lines=$(grep -c '"event":"warn' "skips-$m$n/metrics.jsonl")
	if [ "$got $lines" = '6 6' ]; then
		pass "folder_skips_$m$n"
	else
		fail "folder_skips_$m$n" "$got warnings, $lines lines: $(head -n 3 err)"
	fi
done
for w in 1 3; do
	"$gtrain" run net.cfg -q -o "skips$w" -s data.root=bad -s 'data.on_error="skip"' -s "data.workers=$w" >/dev/null 2>&1
done
if [ "$(weights skips1)" = "$(weights skips3)" ] && [ "$(weights skips1)" != "$first" ]; then
	pass folder_skips_exact
else
	fail folder_skips_exact 'the weights depend on the number of threads'
fi
gives folder_eval_skips 0 err 'bad/train/rose/7.png: PNG: the file is truncated' eval skips --split train
gives folder_eval_counts 0 out ' samples, 1 skipped, ' eval skips --split train
gives folder_check_counts 0 out ' files; a run skips those that cannot be read  from folder: ' check net.cfg -s data.root=bad \
	-s 'data.on_error="skip"'
gives folder_run_counts 0 err ' files from folder: ' run net.cfg -o skips-counted -s data.root=bad -s 'data.on_error="skip"'
gives folder_eval_stops 65 err 'to skip such files, write data.on_error = "skip"' eval skips --split train -s data.on_error=stop
gives folder_skip_mse 78 err 'cannot be combined' check net.cfg -s 'data.on_error="skip"' -s 'train.loss="mse"'
gives folder_valid_twice 78 err 'data.valid' check net.cfg -s data.valid=0.2
gives folder_size 78 err 'data.augment' check net.cfg -s 'data.augment=({ type = "random_resized_crop"; size = 20; })'

# lists and patterns
mkdir flat
for c in rose aster tulip; do for i in $(seq 0 23); do cp "data/train/$c/$i.png" "flat/${c}_$i.png"; done; done
{
	echo 'file,label'
	for c in aster rose tulip; do for i in $(seq 0 23 | sort); do echo "train/$c/$i.png,$c"; done; done
} >data/list.csv
divides folder_list 72 net.cfg -s data.valid=0.25 -s data.format=list -s 'data.train=["list.csv"]'
divides folder_pattern 72 \
	net.cfg -s data.valid=0.25 -s data.format=pattern -s data.root=flat -s 'data.pattern="^([a-z]+)_"'
# with data.stratify, each class has its share in valid: 4 of 20, 12 of 60 and 3 of 15
mkdir -p uneven/aster uneven/rose uneven/tulip
for i in $(seq 60); do
	cp data/train/rose/0.png "uneven/rose/$i.png"
	[ "$i" -gt 20 ] || cp data/train/aster/0.png "uneven/aster/$i.png"
	[ "$i" -gt 15 ] || cp data/train/tulip/0.png "uneven/tulip/$i.png"
done
for seed in 1 2 3; do
	uneven=(net.cfg -s data.root=uneven -s data.valid=0.2 -s train.epochs=1 -s "seed=$seed")
	"$gtrain" run "${uneven[@]}" -s data.stratify=true -q -o "uneven$seed" >/dev/null 2>err || fail uneven_run "$(head -n 1 err)"
	support=$("$gtrain" eval "uneven$seed" --split valid --report | awk '/^[0-2] / && NF > 6 { print $2, $6 }' | tr '\n' ' ')
	if [ "$support" = 'aster 4 rose 12 tulip 3 ' ]; then pass "folder_stratified_$seed"; else fail "folder_stratified_$seed" "$support"; fi
done
gives folder_pattern_of_none 65 err 'expected a name that matches data.pattern' check net.cfg -s data.valid=0.25 \
	-s data.format=pattern -s data.root=flat \
	-s 'data.pattern="^(x)_"'
gives folder_pattern_missing 78 err 'data.pattern' check net.cfg -s data.valid=0.25 -s data.format=pattern -s data.root=flat
gives folder_pattern_large 78 err 'with repetitions expanded' \
	check net.cfg -s data.valid=0.25 -s data.format=pattern -s data.root=flat -s 'data.pattern="^((((.+)+)+)+){20}_"'
gives folder_pattern_reference 78 err 'expected no reference to a group' \
	check net.cfg -s data.valid=0.25 -s data.format=pattern -s data.root=flat -s 'data.pattern="^([a-z]+)\\1_"'
gives folder_pattern_twice 78 err 'expected no repetition of a repetition' \
	check net.cfg -s data.valid=0.25 -s data.format=pattern -s data.root=flat -s 'data.pattern="^([a-z]**)_"'
gives folder_pattern_anchor 78 err 'expected no ^ except at the beginning' \
	check net.cfg -s data.valid=0.25 -s data.format=pattern -s data.root=flat -s 'data.pattern="(^[a-z]+)_"'
gives folder_pattern_bad 78 err 'POSIX' \
	check net.cfg -s data.valid=0.25 -s data.format=pattern -s data.root=flat -s 'data.pattern="(("'
echo 'train/rose/99.png,rose' >>data/list.csv
gives folder_list_missing 65 err 'list.csv:74: cannot read train/rose/99.png' check net.cfg -s data.valid=0.25 \
	-s data.format=list -s 'data.train=["list.csv"]'

# init: its config passes check and trains
gives folder_init 0 err 'wrote mine.cfg' init data -o mine.cfg
gives folder_init_again 73 err 'exists' init data -o mine.cfg
gives folder_init_check 0 out 'steps' check mine.cfg
gives folder_init_runs 0 out 'valid accuracy' run mine.cfg -q -o mine -s train.epochs=1
gives folder_init_nothing 66 err 'flat: expected a folder of images or of texts (.txt) for each class' init flat
