#!/bin/bash
# `gtrain eval CKPT DATA` measures all of other data, and says which class is not known. A damaged file that a run skips is skipped by eval.
# tests/run: beside others
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
cd "$tmp" || exit 1
dark=iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAAAAADhZOFXAAAADklEQVR42mOQgwIGyhgADlcHgX3rLBkAAAAASUVORK5CYII=
light=iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAAAAADhZOFXAAAADklEQVR42mO4AwUMlDEAvLE3ASmzY08AAAAASUVORK5CYII=
image() { if [ "$1" = dark ]; then echo $dark; else echo $light; fi | base64 -d && printf '%s %05d' "$1" "$2"; }
# folder NAME FIRST LAST CLASS...: images, and texts beside them in NAME-texts
folder() {
	local name=$1 first=$2 last=$3 c i
	shift 3
	for c in "$@"; do
		mkdir -p "$name/$c" "$name-texts/$c"
		for i in $(seq "$first" "$last"); do
			image "$c" "$i" >"$name/$c/$i.png"
			echo "a $c day, number w$i" >"$name-texts/$c/$i.txt"
		done
	done
}
folder old 10 39 dark light
folder new 50 61 dark light
folder one 50 53 dark
folder odd 50 53 dark light grey
{ echo 'x,t'; for i in $(seq 10 39); do echo "-$i.5,dark"; echo "$i.5,light"; done; } >old.csv
{ echo 'x,t'; for i in $(seq 50 61); do echo "-$i.5,dark"; echo "$i.5,light"; done; } >new.csv
{ cat new.csv; echo '1.5,grey'; } >odd.csv
cat >images.cfg <<'CFG'
schema = 1;
name = "images";
seed = 1;
data = { root = "old"; format = "folder"; batch = 16; valid = 0.25; };
model = { input = [1, 8, 8]; layers = ( { type = "flatten"; }, { name = "fc"; type = "linear"; out = 2; } ); };
train = { epochs = 8; optimizer = { type = "adam"; lr = 0.05; }; };
CFG
sed -e 's/root = "old"; format = "folder"/format = "csv"; train = ["old.csv"]; target = "t"/' \
	-e 's/model = .*/model = { inputs = ( { name = "values"; } ); layers = ( { name = "fc"; type = "linear"; out = 2; } ); };/' \
	images.cfg >table.cfg
sed -e 's/root = "old"; format = "folder"/root = "old-texts"; format = "text"/' -e '/^model/d' images.cfg >texts.cfg
cat >>texts.cfg <<'CFG'
model = { inputs = ( { name = "tokens"; }, { name = "lengths"; } );
	layers = ( { type = "embedding_bag"; in = ["tokens", "lengths"]; embedding_dim = 4; padding_idx = 0; },
		{ name = "fc"; type = "linear"; out = 2; } ); };
CFG
for k in images table texts; do "$gtrain" run $k.cfg -q -o run-$k >/dev/null 2>err || fail "run_$k" "$(head -n 1 err)"; done

# all samples, in every form
gives images_folder 0 out 'data accuracy 1.0000' eval run-images new
gives images_count 0 out '(24 samples' eval run-images new
if [ -s err ]; then fail images_says "$(cat err)"; else pass images_says; fi
tar -cf new.tar new
gives images_archive 0 out '(24 samples' eval run-images new.tar
{ echo 'file,label'; for i in $(seq 50 61); do echo "new/dark/$i.png,dark"; done; } >list.csv
gives images_list 0 out '(12 samples' eval run-images list.csv
gives images_one_class 0 out '(4 samples' eval run-images one
gives images_json 0 out '"split":"data","samples":24,' eval run-images new --json
gives images_report 0 out 'light' eval run-images new --report
gives images_ranks 0 out '(24 samples' eval run-images new --nproc 2 -s parallel.mode=ddp
gives table_rows 0 out 'data accuracy 1.0000' eval run-table new.csv
gives table_count 0 out '(24 samples' eval run-table new.csv
gives texts_folder 0 out '(24 samples' eval run-texts new-texts
gives texts_accuracy 0 out 'data accuracy 1.0000' eval run-texts new-texts

# --predictions names the samples of the data: by path, line or number
# named NAME COUNT FIRST ARGS...: p.csv has COUNT rows, and FIRST begins one of them
named() {
	local name=$1 count=$2 first=$3
	shift 3
	rm -f p.csv
	gives "$name" 0 out ' samples' eval "$@" --predictions p.csv
	if [ "$(tail -n +2 p.csv | wc -l)" = "$count" ] && grep -q "^$first" p.csv; then
		pass "${name}_rows"
	else
		fail "${name}_rows" "$(wc -l <p.csv) lines: $(tail -n 1 p.csv)"
	fi
}
named predictions_images 24 new/light/61.png,light,light, run-images new
named predictions_archive 24 'new.tar: new/light/61.png,light,light,' run-images new.tar
named predictions_list 12 .*new/dark/61.png,dark,dark, run-images list.csv
named predictions_rows 24 new.csv:2,dark,dark, run-table new.csv
named predictions_texts 24 new-texts/light/61.txt,light,light, run-texts new-texts

# what the run has trained on is measured too, and counted
trained=$("$gtrain" check images.cfg | grep -o '[0-9]* train' | head -n 1 | cut -d' ' -f1)
gives images_own 0 err "old: $trained of its 60 samples are in the training split of the run" eval run-images old
gives images_own_all 0 out '(60 samples' eval run-images old

# what cannot be measured
gives unknown_images 65 err 'odd: the data has the class "grey", which is unknown to the checkpoint: its classes are dark, light;' \
	eval run-images odd
gives unknown_texts 65 err 'odd-texts: the data has the class "grey", which is unknown to the checkpoint: its classes are dark, light;' \
	eval run-texts odd-texts
gives unknown_row 65 err 'odd.csv:26: column "t": expected a class of the training data, got "grey"' eval run-table odd.csv
{ cat list.csv; echo 'new/dark/50.png,grey'; } >odd-list.csv
gives unknown_in_list 65 err 'the data has the class "grey", which is unknown to the checkpoint' eval run-images odd-list.csv
mkdir splits && cp -r new splits/train
gives splits 65 err 'splits: expected a folder for each class, got the split "train"; give the folder of one split, such as splits/train' \
	eval run-images splits
mkdir Splits && cp -r new Splits/Train && cp -r one Splits/Validation
gives unusual_splits 65 err 'got the split "Validation"; give the folder of one split, such as Splits/Validation' eval run-images Splits
tar -cf splits.tar splits && tar -cf Splits.tar -C Splits Train Validation
gives splits_archive 65 err 'got the split "splits/train"; unpack the archive' eval run-images splits.tar
gives unusual_archive 65 err 'got the split "Validation"; unpack the archive' eval run-images Splits.tar
# folders without files, and those that systems add, are no classes; a class of the checkpoint may have no folder, or an empty one
cp -r new spare && mkdir spare/grey && cp -r one spare/__MACOSX && cp -r one spare/.hidden
gives empty_folder 0 out '(24 samples' eval run-images spare
if [ -s err ]; then fail empty_folder_says "$(cat err)"; else pass empty_folder_says; fi
rm spare/light/*
gives empty_class 0 out '(12 samples' eval run-images spare
rm spare/dark/*
gives no_files 66 err 'spare has no image folders' eval run-images spare
gives absent 66 err 'nowhere' eval run-images nowhere
gives split_too 64 err '--split: expected no split beside new' eval run-images new --split test
# a class that was added to the data of the run
mkdir old/grey && image light 1 >old/grey/1.png
gives unknown_in_run 65 err 'old: the data has the class "grey", which is unknown to the checkpoint' eval run-images --split valid
gives unknown_resumed 65 err 'old: the data has the class "grey", which is unknown to the checkpoint' resume run-images -s train.epochs=9
rm -r old/grey
# other data by -s: a part of it, and the run says so
gives moved_part 0 err 'of the 24 samples are measured, because data.valid is 0.25; to measure all of them' \
	eval run-images --split valid -s "data.root=$PWD/new"

# arrays: an IDX file of images and its labels
be32() { printf '\\x%02x\\x%02x\\x%02x\\x%02x' $(($1 >> 24)) $(($1 >> 16 & 255)) $(($1 >> 8 & 255)) $(($1 & 255)); }
idx() { # NAME N: images of 2 x 2
	# shellcheck disable=SC2059
	{ printf '\x00\x00\x08\x03'"$(be32 "$2")$(be32 2)$(be32 2)" && head -c $((4 * $2)) /dev/zero | tr '\0' x; } >"$1-images-idx3-ubyte"
	# shellcheck disable=SC2059
	{ printf '\x00\x00\x08\x01'"$(be32 "$2")" && for i in $(seq "$2"); do printf "\\x0$((i % 2))"; done; } >"$1-labels-idx1-ubyte"
}
mkdir arrays && idx arrays/train 40 && idx arrays/t10k 10 && idx more 14
sed -e 's/root = "old"; format = "folder"/root = "arrays"/; s/ valid = 0.25;//; s/8, 8/2, 2/' images.cfg >arrays.cfg
"$gtrain" run arrays.cfg -q -o run-arrays >/dev/null 2>err || fail run_arrays "$(head -n 1 err)"
gives arrays_test 0 out '(10 samples' eval run-arrays
gives arrays_data 0 out '(14 samples' eval run-arrays more-images-idx3-ubyte
named predictions_arrays 14 'more-images-idx3-ubyte\[13\],' run-arrays more-images-idx3-ubyte
gives arrays_folder 64 err 'expected an IDX file of images' eval run-arrays new

# a damaged file: the message names the remedy; a run that skips it proposes an evaluation that skips it too
for i in $(seq 10 39); do truncate -s 60 "old/dark/$i.png"; done
truncate -s 0 old-texts/dark/20.txt
gives damaged_remedy 65 err '; to skip such files, write data.on_error = "skip"' run images.cfg -q -o stopped
gives damaged_text_remedy 65 err \
	'old-texts/dark/20.txt: expected 1 byte to 256 MiB, got 0 bytes; to skip such files, write data.on_error' \
	run texts.cfg -q -o stopped-texts
run run images.cfg -o skipped -s data.on_error=skip
next=$(sed -n 's/^next: .*gtrain //p' err)
for f in old/*/*.png; do cp "$f" "$f.kept" && echo damaged >"$f"; done
gives damaged_all 65 err 'samples could be evaluated: they cannot be read' eval skipped
for f in old/*/*.png; do mv "$f.kept" "$f"; done
# shellcheck disable=SC2086
gives damaged_next 0 out ' samples' ${next:-none}
gives damaged_counts 0 err '/old/dark/' eval skipped
n=$("$gtrain" eval skipped --json 2>err | sed -n 's/.*"samples":\([0-9]*\).*/\1/p')
if [ "${n:-0}" -gt 0 ] && "$gtrain" eval skipped --predictions p.csv -q >/dev/null 2>&1 && [ "$(tail -n +2 p.csv | wc -l)" = "$n" ] &&
	! grep -q 'old/dark' p.csv && [ "$(cut -d, -f2 p.csv | sort -u | tr '\n' ' ')" = 'label light ' ]; then
	pass damaged_predictions
else
	fail damaged_predictions "$n samples, $(wc -l <p.csv) lines: $(grep -m 1 dark p.csv)"
fi
if "$gtrain" eval skipped --predictions q.csv -q --nproc 2 -s parallel.mode=ddp >/dev/null 2>&1 && cmp -s p.csv q.csv; then
	pass damaged_predictions_ranks
else
	fail damaged_predictions_ranks "$(diff p.csv q.csv | head -n 3)"
fi
whole=$("$gtrain" eval run-images --split valid -s data.on_error=skip --report --json 2>err |
	sed -n 's/.*"name":"light"[^}]*"support":\([0-9]*\).*/\1/p')
if [ "${n:-0}" -gt 0 ] && [ "$n" = "${whole:-none}" ]; then
	pass damaged_samples
else
	fail damaged_samples "$n samples, $whole are not damaged"
fi
