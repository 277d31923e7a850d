#!/bin/bash
# Folders as people have them. Of each, `gtrain init` writes a config with which `check` and `run --smoke` end with status 0, or it says in
# one sentence what is wrong.
# tests/run: beside others
# shellcheck source=tests/cli/cli.sh disable=SC1003,SC2016
. "$(dirname "$0")/cli.sh"
tool=$(dirname "$(dirname "$gtrain")")/tests/cli/tool_images
if [ ! -x "$tool" ]; then
	skip odd_folders 'tool_images is not built'
	exit 0
fi
cd "$tmp" || exit 1
"$tool" img || exit 1
tiny_config
export OMP_NUM_THREADS=1
runs=0 refused=0

# classes DIR CLASS...: a folder with 12 images for each class
classes() {
	local dir=$1 c
	shift
	for c; do
		mkdir -p "$dir/$c"
		cp img/rgb/* "$dir/$c"
	done
}
# texts DIR CLASS...: the same of 8 texts
texts() {
	local dir=$1 c i
	shift
	for c; do
		mkdir -p "$dir/$c"
		for i in 1 2 3 4 5 6 7 8; do echo "a text of $c and number $i" >"$dir/$c/$i.txt"; done
	done
}
# small CFG: the same config with a network that is trained in a moment, unless it is one of texts
small() {
	if grep -q 'format = "text"' "$1"; then cat "$1"; else
		sed -E 's/kernel = 7; stride = 2; padding = 3;/kernel = 3; stride = 2;/; s/out = 32;/out = 4;/; s/ch = [0-9]+;/ch = 4;/
			s/(size = )\[[0-9, ]+\]/\1[16, 16]/; s/(input = )\[([13]), [0-9]+, [0-9]+\]/\1[\2, 16, 16]/' "$1"
	fi
}
# runs NAME DIR [TEXT]: init writes a config of DIR that runs; the config or the warnings contain TEXT
good() {
	local name=$1 dir=$2 text=${3-}
	rm -f odd.cfg small.cfg
	if ! "$gtrain" init "$dir" -o odd.cfg >out 2>err; then
		fail "$name" "init: $(tail -n 1 err)"
	elif [ -n "$text" ] && ! grep -qF -- "$text" odd.cfg err; then
		fail "$name" "no '$text' in the config or the warnings: $(head -n 3 err)"
	elif ! "$gtrain" check odd.cfg --data >out 2>err; then
		fail "$name" "check: $(tail -n 1 err)"
	elif ! small odd.cfg >small.cfg || ! "$gtrain" run small.cfg --smoke >out 2>err; then
		fail "$name" "run: $(tail -n 1 err)"
	else
		runs=$((runs + 1))
		pass "$name"
	fi
}
# says NAME STATUS TEXT ARGS...: init ends with STATUS and one line that has TEXT, and writes nothing
says() {
	local name=$1 status=$2 text=$3 rc
	shift 3
	rm -f odd.cfg
	"$gtrain" init "$@" -o odd.cfg >out 2>err
	rc=$?
	if [ $rc != "$status" ] || [ -e odd.cfg ]; then
		fail "$name" "status $rc, not $status: $(tail -n 1 err)"
	elif ! tail -n 1 err | grep -qF -- "$text" || [ "$(grep -vc warning: err)" != 1 ]; then
		fail "$name" "not one line with '$text': $(tail -n 2 err)"
	else
		refused=$((refused + 1))
		pass "$name"
	fi
}

# ---- images ---------------------------------------------------------------------------------------------------------------------------
classes plain a b
good plain plain 'no other splits'
good plain_slash plain/ 'root = "plain"'
good plain_dot ./plain 'root = "plain"'
mkdir configs
"$gtrain" init plain -o configs/x.cfg -q
if grep -q 'root = "../plain"' configs/x.cfg && (cd / && "$gtrain" check "$tmp/configs/x.cfg" >/dev/null 2>&1); then
	pass relative_root
else
	fail relative_root "$(grep root configs/x.cfg)"
fi
if grep -q 'gtrain run configs/x.cfg' configs/x.cfg && ! grep -q t_max configs/x.cfg; then
	pass names_its_file
else
	fail names_its_file "$(head -n 5 configs/x.cfg)"
fi
(cd plain && "$gtrain" init . -o inside.cfg -q && grep -q 'root = "."' inside.cfg && "$gtrain" check inside.cfg >/dev/null 2>&1)
rc=$?
rm -f plain/inside.cfg
if [ $rc = 0 ]; then pass config_inside; else fail config_inside "status $rc"; fi

for kind in grey rgba rgb16 large jpeg grey_jpeg webp; do
	mkdir -p "$kind/a" "$kind/b"
	cp "img/$kind"/* "$kind/a" && cp "img/$kind"/* "$kind/b"
	good "of_$kind" "$kind"
done
mkdir -p mixed/a mixed/b
for kind in rgb grey rgba large jpeg webp; do
	for f in "img/$kind"/[0-3].*; do cp "$f" "mixed/a/$kind-${f##*/}" && cp "$f" "mixed/b/$kind-${f##*/}"; done
done
good mixed_kinds mixed

classes empty a b && mkdir empty/c
good empty_class empty 'not used as classes: c'
classes hidden a b && cp -r hidden/a hidden/.cache && cp -r hidden/a hidden/b/.ipynb_checkpoints && cp -r hidden/a hidden/__MACOSX
touch hidden/Thumbs.db hidden/a/desktop.ini hidden/a/.DS_Store hidden/a/._0.png hidden/readme.txt
good hidden_files hidden '24 training samples of 2 classes'
classes cut a b && head -c 200 img/rgb/1.png >cut/a/1.png && head -c 150 img/jpeg/1.jpg >cut/b/x.jpg
good cut_files cut 'on_error = "skip"; # 2 images cannot be read'
classes zero a b && : >zero/a/0.png
good zero_bytes zero '# 1 image cannot be read'
classes other a b && echo '<html>' >other/b/page.jpg && cp img/wide.png other/b/
good no_image_inside other 'got 100000 x 1'
classes all_bad a && mkdir all_bad/b && for i in 1 2 3; do echo x >all_bad/b/$i.jpg; done
good class_of_bad_files all_bad '3 images cannot be read'
mkdir -p nothing_good/a nothing_good/b && echo x | tee nothing_good/a/1.jpg >nothing_good/b/1.jpg
says nothing_good 65 'none of 2 images can be read; the first: nothing_good/a/1.jpg' nothing_good
if [ "$(id -u)" = 0 ]; then
	skip closed_file 'root can read every file'
	skip closed_folder 'root can read every file'
else
	classes closed a b && chmod 0 closed/a/1.png
	good closed_file closed 'Permission denied'
	classes shut a b && chmod 0 shut/b
	says closed_folder 66 'shut/b: cannot read the directory: Permission denied' shut
	chmod 755 shut/b
fi
mkdir -p single/a single/b && cp img/rgb/0.png single/a && cp img/rgb/1.png single/b
says one_image_each 65 'expected at least 10 images' single
mkdir -p few/a few/b && cp img/rgb/[0-4].png few/a && cp img/rgb/[0-4].png few/b
good five_images_each few
mkdir -p uneven/a uneven/b && cp img/rgb/* uneven/a && cp img/rgb/0.png uneven/b
good one_image_in_a_class uneven 'the rarest with 1'
classes one_class a
says one_class 65 'expected at least two classes, got only "a"' one_class
classes one_left a && mkdir one_left/b
says one_class_with_images 65 'have no images (.jpg, .jpeg, .png or .webp): b' one_left
for i in $(seq 300); do mkdir -p "many/class $i" && cp img/rgb/[01].png "many/class $i"; done
good many_classes many '300 classes'
for i in $(seq 12); do
	mkdir -p "one_each/$i" "one_each_text/$i"
	cp img/rgb/0.png "one_each/$i" && echo "text $i" >"one_each_text/$i/$i.txt"
done
says one_of_each 65 'got one image in each of 12 classes' one_each
says one_text_of_each 65 'got one text in each of 12 classes' one_each_text
mkdir one_more && cp -r one_each/* one_more && cp img/rgb/1.png one_more/7
good one_of_most one_more '12 classes'
classes case a A
says names_in_case 65 'differ only in their case' case
classes quoted 'a "b"' "it's" 'x, y; # z' 'back\slash' $'new\nline'
good quoted_classes quoted
classes latin a $'caf\xe9'
says class_not_utf8 65 'expected class names in UTF-8' latin
classes latin_file a b && cp img/rgb/0.png latin_file/a/$'caf\xe9.png' && cp img/rgb/0.png latin_file/a/$'new\nline.png'
good file_not_utf8 latin_file
classes $'root\nline' a b
says root_newline 65 'got a control character; rename the path' $'root\nline'
classes 'a "root" of images' a b
good root_quoted 'a "root" of images'
classes loop a b && ln -s .. loop/b/up
says link_loop 65 'a symbolic link leads back' loop
classes target a && mkdir links && ln -s ../target/a links/a && ln -s ../plain/b links/b && ln -s nowhere links/c
good links links
classes deep a/x/y/z b/x
cp img/rgb/0.png deep/a && cp img/rgb/0.png deep/b
good deeper_folders deep '26 training samples'
classes nest/x a b
says one_folder_too_many 66 'found 24 images in such folders below nest/x; try `gtrain init nest/x`' nest
cp -r img/rgb flat
says flat 66 'found 12 images outside folders of classes' flat
mkdir bmp bmp/a bmp/b && touch bmp/a/1.bmp bmp/a/2.BMP bmp/b/3.bmp
says other_format 65 'bmp has 3 .bmp files, which gtrain does not read; convert them' bmp
classes some_tif a b && touch some_tif/a/1.tif
good some_of_other_format some_tif 'some_tif has 1 .tif file'
mkdir nothing
says nothing 66 'nothing: expected a folder of images or of texts' nothing
says absent 66 'there is no such file or folder' absent

# ---- splits ---------------------------------------------------------------------------------------------------------------------------
classes three/train a b && classes three/valid a b && classes three/test a b
good train_valid_test three '24 of a split "valid" and 24 of a split "test"'
classes upper/Train a b && classes upper/Test a b
good upper_case upper '0 of a split "valid" and 24 of a split "test"'
classes long/training a b && classes long/validation a b
good long_names long '24 of a split "valid"'
classes dev/train a b && classes dev/dev a b
good dev dev '24 of a split "valid"'
classes empty_valid/train a b && mkdir empty_valid/valid && cp -r plain/a empty_valid/valid/ && mkdir empty_valid/valid/b
good class_empty_in_valid empty_valid '12 of a split "valid"'
classes more/train a b && classes more/test a b c
says class_only_in_test 65 'the training split has no folder with files for the class "c"' more
classes only/valid a b
says only_valid 66 'try `gtrain init only/valid`' only
mkdir -p tiny/train tiny/valid && classes tiny/valid a b && mkdir tiny/train/a tiny/train/b && cp img/rgb/0.png tiny/train/a &&
	cp img/rgb/0.png tiny/train/b
good two_training_images tiny
classes bad_valid/train a b && classes bad_valid/valid a b && : >bad_valid/valid/a/0.png
good bad_file_in_valid bad_valid '1 image cannot be read'

# ---- archives -------------------------------------------------------------------------------------------------------------------------
tar -cf plain.tar plain && tar -cf flat.tar flat && tar -czf plain.tar.gz plain && tar -cf cut.tar cut && tar -cf hidden.tar hidden
head -c 20000 plain.tar >broken.tar
touch a.zip
good archive plain.tar
good archive_with_cut_files cut.tar '2 images cannot be read'
good archive_with_hidden_files hidden.tar '24 training samples of 2 classes'
says archive_flat 65 'expected at least two classes, got only "flat"' flat.tar
says archive_broken 65 'damaged tar archive' broken.tar
export XDG_CACHE_HOME=$tmp/cache
good compressed plain.tar.gz
says zip 65 'a.zip: the file is empty' a.zip
touch a.7z
says seven 65 'unpack the archive: 7z x a.7z -oa; then `gtrain init a`' a.7z

# ---- texts ----------------------------------------------------------------------------------------------------------------------------
texts words neg pos
good texts words '16 training texts of 2 classes'
texts texts_empty neg pos && : >texts_empty/neg/0.txt && printf ' \n' >texts_empty/pos/0.txt
good texts_empty texts_empty 'on_error = "skip"; # 2 texts cannot be read'
texts texts_bom neg pos && printf '\xef\xbb\xbfa text with a mark\r\n' >texts_bom/neg/0.txt
good texts_bom texts_bom
texts texts_binary neg pos && head -c 3000 "$gtrain" >texts_binary/neg/0.txt && printf 'caf\xe9' >texts_binary/pos/0.txt
good texts_binary texts_binary '# 2 texts cannot be read'
texts texts_none neg pos && mkdir texts_none/other
good texts_empty_class texts_none 'have no texts and are not used as classes: other'
texts texts_splits/train neg pos && texts texts_splits/Test neg pos
good texts_splits texts_splits '16 of a split "test"'
texts texts_loop neg pos && ln -s . texts_loop/pos/loop
says texts_loop 65 'texts_loop/pos/loop: a symbolic link leads back' texts_loop
texts texts_latin neg $'caf\xe9'
says texts_class_not_utf8 65 'expected class names in UTF-8' texts_latin
mkdir -p texts_few/neg texts_few/pos && echo x | tee texts_few/neg/1.txt >texts_few/pos/1.txt
says texts_few 65 'expected at least 10 texts' texts_few
texts texts_nested/reviews neg pos
says texts_nested 66 'found 16 texts in such folders below texts_nested/reviews' texts_nested
tar -cf words.tar words
good texts_archive words.tar

# ---- check --data: images in folders, archives, lists and by pattern, texts and rows ---------------------------------------------------
net='schema = 1; name = "net"; model = { input = [3, 16, 16]; layers = ( { type = "flatten"; }, { type = "linear"; out = 2; } ); };'
train='train = { epochs = 1; optimizer = { type = "sgd"; lr = 0.01; }; };'
mkdir by_name && for i in 0 1 2 3 4; do cp img/rgb/$i.png by_name/a_$i.png && cp img/rgb/$i.png by_name/b_$i.png; done
head -c 200 img/rgb/1.png >by_name/b_4.png
{
	echo file,label
	for f in zero/a/0.png cut/a/1.png cut/a/2.png cut/b/3.png; do echo "$f,$(basename "$(dirname $f)")"; done
} >list.csv
# faulty NAME SAMPLES HEADERS ALL DATA: of SAMPLES samples, HEADERS and ALL are listed by --data and --verify
faulty() {
	local name=$1 samples=$2 how want
	echo "$net data = { batch = 4; $5 }; $train checkpoint = { dir = \"x\"; };" >data.cfg
	for how in "--data $3" "--verify $4"; do
		want=${how#* }
		"$gtrain" check data.cfg "${how% *}" >out 2>err
		rc=$?
		if { [ "$want" = 0 ] && [ $rc = 0 ] && grep -q "^$samples samples.*all can be read" out; } ||
			{ [ "$want" != 0 ] && [ $rc = 65 ] && grep -q "^$samples samples.* $want cannot be read" out &&
				[ "$(grep -c warning: err)" = "$want" ] && grep -q 'data.on_error = "skip" to skip them' err; }; then
			pass "data_of_$name${how% *}"
		else
			fail "data_of_$name${how% *}" "status $rc: $(head -n 1 out) $(tail -n 2 err)"
		fi
	done
}
faulty plain 24 0 0 'root = "plain";'
faulty cut 25 1 2 'root = "cut";'
faulty splits 48 1 1 'root = "bad_valid";'
faulty archive 25 1 2 'root = "cut.tar";'
faulty pattern 10 0 1 'root = "by_name"; format = "pattern"; pattern = "^([ab])_";'
faulty list 4 1 2 "format = \"list\"; train = [\"list.csv\"]; root = \"$tmp\";"
echo "$net data = { batch = 4; root = \"cut\"; }; $train checkpoint = { dir = \"run\"; };" >data.cfg
gives data_json 65 out '"checked":25,"bad":2}' check data.cfg --verify --json
gives data_skips 0 out '2 cannot be read, and a run skips these samples' check data.cfg --verify -s data.on_error=skip
gives run_names_remedy 65 err 'write data.on_error = "skip"; `gtrain check CFG --data --verify` lists them' run data.cfg -q
mkdir -p junk/a junk/b
for i in 1 2 3 4; do echo "junk $i" | tee "junk/a/$i.png" >"junk/b/$i.png"; done
gives run_of_junk 65 err 'epoch 1: none of its 8 samples could be used for training: they' run data.cfg -q -s data.root=junk \
	-s data.on_error=skip -s data.valid=0.0
for i in $(seq 30); do : >"cut/a/empty$i.png"; done
run check data.cfg --data
if [ "$rc" = 65 ] && [ "$(grep -c 'got 0 bytes' "$tmp/err")" = 10 ] && grep -q '21 more samples cannot be read' "$tmp/err"; then
	pass data_lists_ten
else
	fail data_lists_ten "status $rc: $(tail -n 2 err)"
fi
"$gtrain" init texts_binary -o binary.cfg -q 2>/dev/null
sed -i '/on_error/d' binary.cfg
gives data_texts 65 err '2 of 18 samples cannot be read' check binary.cfg --data
gives run_of_texts 65 err 'to skip such files, write data.on_error = "skip"' check binary.cfg
printf 'x,y,t\n' >rows.csv
for i in $(seq 40); do echo "$i.5,$((i % 7)).25,$((i % 2))" >>rows.csv; done
"$gtrain" init rows.csv --target t -o configs/rows.cfg -q
gives data_rows 0 out '40 samples were read; all can be read' check configs/rows.cfg --data
if grep -q 'train = \["../rows.csv"\]' configs/rows.cfg; then
	pass relative_table
else
	fail relative_table "$(grep train configs/rows.cfg)"
fi
echo 1,2 >>rows.csv
gives data_bad_row 65 err '1 of 41 samples cannot be read' check configs/rows.cfg --data

# ---- datasets without some of their files: the sentence names these -------------------------------------------------------------------
mkdir cifar idx
for i in 1 3 4; do head -c 30730 /dev/zero >"cifar/data_batch_$i.bin"; done
lacks='cifar: expected all files of cifar10, but'
gives cifar_batches 66 err "$lacks data_batch_2.bin and data_batch_5.bin are missing" init cifar
mv cifar/data_batch_1.bin cifar/data_batch_2.bin
gives cifar_first 66 err "$lacks data_batch_1.bin and data_batch_5.bin are missing" init cifar
sed 's|data = {.*|data = { root = "cifar"; batch = 32; };|; s|\[1, 8, 8\]|[3, 32, 32]|' "$tmp/tiny.cfg" >cifar.cfg
gives cifar_run 66 err "data.root: $PWD/$lacks data_batch_1.bin and data_batch_5.bin are missing" run cifar.cfg
for i in 1 5; do cp cifar/data_batch_2.bin "cifar/data_batch_$i.bin"; done
gives cifar_test 0 err "$lacks test_batch.bin is missing, so the config has no test split" init cifar
head -c 30730 /dev/zero >cifar/test_batch.bin
run init cifar
if [ "$rc" = 0 ] && [ ! -s err ]; then pass cifar_whole; else fail cifar_whole "status $rc: $(cat err)"; fi
printf '\0\0\010\3\0\0\0\24\0\0\0\2\0\0\0\2%080d' 0 >idx/train-images-idx3-ubyte
gives idx_labels 66 err 'idx: expected all files of an IDX dataset, but train-labels-idx1-ubyte is missing' init idx
{ printf '\0\0\010\1\0\0\0\24'; for i in 0 1 2 3 4; do printf '\0\1\0\1'; done; } >idx/train-labels-idx1-ubyte
run init idx
if [ "$rc" = 0 ] && [ ! -s err ]; then pass idx_train_only; else fail idx_train_only "status $rc: $(cat err)"; fi
cp idx/train-images-idx3-ubyte idx/t10k-images-idx3-ubyte
gives idx_test_labels 0 err 't10k-labels-idx1-ubyte is missing, so the config has no test split' init idx
classes lacking/valid rose tulip
gives no_train 66 err 'lacking: expected a folder "train" with folders of classes beside "valid", got none' init lacking
mkdir -p lacking/train/rose lacking/train/tulip
gives empty_train 65 err 'lacking/train: expected folders of images (.jpg, .jpeg, .png or .webp), one for each class, got none' init lacking

# ---- no free descriptors --------------------------------------------------------------------------------------------------------------
(
	ulimit -n 6
	"$gtrain" init plain >out 2>err
)
rc=$?
if [ $rc = 1 ] && grep -q 'Too many open files' err; then pass descriptors; else fail descriptors "status $rc: $(tail -n 1 err)"; fi
echo "# $runs folders run, $refused are refused by init"
