#!/bin/bash
# The index of image contents (data.index): a run with it has the bits of a run without it; changed, added and removed images are noticed as
# without it; a damaged index is not used, and a cache that cannot be written is not an error. Its states: tests/unit/test_content_index.c.
# tests/run: beside others
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
cd "$tmp" || exit 1
export XDG_CACHE_HOME=$tmp/cache
index=$tmp/cache/gtrain/index
dark=iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAAAAADhZOFXAAAADklEQVR42mOQgwIGyhgADlcHgX3rLBkAAAAASUVORK5CYII=
light=iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAAAAADhZOFXAAAADklEQVR42mO4AwUMlDEAvLE3ASmzY08AAAAASUVORK5CYII=
# image CLASS NUMBER: a picture; what follows the end of a PNG file makes its bytes differ
image() { if [ "$1" = dark ]; then echo $dark; else echo $light; fi | base64 -d && printf '%s %06d' "$1" "$2"; }
mkdir -p folder/train/dark folder/train/light folder/test/dark folder/test/light
for i in $(seq 10 69); do
	for c in dark light; do
		image $c "$i" >"folder/train/$c/$i.png"
		[ "$i" -ge 20 ] || image $c $((100 + i)) >"folder/test/$c/$i.png"
	done
done
(cd folder/train && echo 'file,label' && printf '%s\n' */*.png | sed 's|\([^/]*\)/.*|&,\1|') >list.csv
cat >net.cfg <<'CFG'
schema = 1;
name = "indexed";
seed = 3;
reproducible = "run";
data = { root = "folder"; format = "folder"; batch = 16; valid = 0.25; stratify = true; index = "always"; };
model = { input = [1, 8, 8]; layers = ( { type = "flatten"; }, { name = "fc"; type = "linear"; out = 2; } ); };
train = { epochs = 2; optimizer = { type = "adam"; lr = 0.01; }; };
checkpoint = { every_epochs = 1; best = { metric = "valid/acc"; }; };
log = { every_steps = 1; };
CFG

# bits DIR: the weights of the run, the facts and samples in its checkpoint, and its losses
bits() {
	"$gtrain" export "$1" -o "$1.safetensors" -q && cat "$1.safetensors" "$1"/step-*/data.json >"$1.bits" &&
		grep -o '"step":[^,]*\|"loss":[^,]*' "$1/metrics.jsonl" | sort -u >>"$1.bits" && sha256sum <"$1.bits" | cut -c1-16
}

# same NAME TEXT ARGS...: gtrain ARGS makes or continues the run NAME, which ends with the bits of the run without an index, and warns with
# TEXT; "": it has no warning about the index
same() {
	local name=$1 text=$2
	shift 2
	if ! "$gtrain" "$@" >/dev/null 2>"$tmp/err"; then
		fail "$name" "$(head -n 1 "$tmp/err")"
	elif [ "$(bits "$name")" != "$plain" ]; then
		fail "$name" 'other weights, facts or losses than without an index'
	elif [ -n "$text" ] && ! grep -qF "$text" "$tmp/err"; then
		fail "$name" "no '$text' in $(cat "$tmp/err")"
	elif [ -z "$text" ] && grep -q 'data.index' "$tmp/err"; then
		fail "$name" "$(cat "$tmp/err")"
	else
		pass "$name"
	fi
}

"$gtrain" run net.cfg -q -o plain -s data.index=never >/dev/null 2>err || fail plain "$(cat err)"
plain=$(bits plain)
[ -n "$plain" ] || fail plain 'no bits'
if [ -d cache ]; then fail never_writes 'data.index = "never" has made a cache'; else pass never_writes; fi
# Files that were changed a moment ago are not recorded. A run that ends more than GT_CONTENT_SETTLED_S = 2 s after the change proves
# nothing.
for n in 1 2 3 4 5; do
	rm -rf cache
	begun=$(date +%s)
	find folder -type f -exec touch {} +
	same just_made_$n '' run net.cfg -q -o just_made_$n
	took=$(($(date +%s) - begun))
	[ "$took" -gt 2 ] || break
done
if [ "$took" -gt 2 ]; then skip unsettled 'a run takes longer than a change stays recent'
elif find cache -name '*.index' 2>/dev/null | grep -q .; then fail unsettled "an index of files of this moment"; else pass unsettled; fi
sleep 3.1
same first '' run net.cfg -q -o first
file=$(echo "$index"/*.index)
if [ -f "$file" ]; then
	pass written
else
	# file systems of which gtrain does not know whether they keep inode numbers and change times
	skip written "no index on $(stat -f -c %T .)"
	exit 0
fi
same second '' run net.cfg -q -o second
same threads '' run net.cfg -q -o threads -s threads=8
n=$(find cache -name '*.index' | wc -l)
if [ "$n" = 1 ]; then pass one_index; else fail one_index "$n indices of one folder"; fi

# With an index, no image is opened before the first step.
if command -v strace >/dev/null && strace -o /dev/null true 2>/dev/null; then
	for keep in always never; do
		strace -f -e trace=openat -o "$keep.calls" "$gtrain" run net.cfg -q -o "traced_$keep" -s data.index=$keep >/dev/null 2>&1
		sed '/\.jsonl/q' "$keep.calls" | grep -c '\.png' >"$keep.opened"
	done
	if [ "$(cat always.opened)" = 0 ] && [ "$(cat never.opened)" = 140 ]; then
		pass opens_no_image
	else
		fail opens_no_image "$(cat always.opened) images opened with the index, $(cat never.opened) without"
	fi
else
	skip opens_no_image 'strace does not run'
fi

# a subset of the images does not make the index smaller
cp "$file" good.index
gives limited 0 out '' run net.cfg -o limited -s data.limit=40
gives listed 0 out '' run net.cfg -o listed -s data.format=list -s "data.train=[\"$PWD/list.csv\"]" -s data.root=folder/train
if cmp -s "$file" good.index || [ "$(find cache -name '*.index' | wc -l)" = 2 ]; then pass subset; else fail subset 'another index'; fi
find "$index" -name '*.index' ! -path "$file" -delete

# resumed runs and evaluations
"$gtrain" run net.cfg -q -o stopped -s train.epochs=1 >/dev/null 2>err || fail stopped "$(cat err)"
for i in 1 2 3 4 5; do cp -r stopped "was$i"; done
same stopped '' resume stopped -s train.epochs=2
said() { grep -o 'the data has changed.*' "$tmp/err" | head -n 1; }
# noticed NAME DIR COUNTS: a resume and an eval of DIR with and without the index count the same changed images, and end with the same
noticed() {
	cp -r "$2" with
	cp -r "$2" without
	run resume with -s train.epochs=2 -s log.every_steps=1
	local first=$rc text scores=
	text=$(said)
	run resume without -s train.epochs=2 -s data.index=never
	if [ "$first$rc" != 00 ] || [[ "$text" != *"$3"* ]] || [ "$text" != "$(said)" ]; then
		fail "$1" "status $first and $rc: '$text', and without an index '$(said)'"
	elif [ "$(bits with)" != "$(bits without)" ]; then
		fail "$1" 'other weights, facts or losses than without an index'
	else
		pass "$1"
	fi
	for keep in always never; do
		run eval first --split valid --json -s data.index=$keep
		scores="$scores $(grep -o '"\(samples\|loss\|acc\)":[^,]*' "$tmp/out")"
		[ $keep = never ] || first=$scores
	done
	if [ -n "$first" ] && [ "$scores" = "$first$first" ]; then pass "eval_$1"; else fail "eval_$1" "$scores"; fi
	rm -rf with without
}
noticed unchanged was1 ''
one=folder/train/dark/20.png
touch -r $one time
printf 'dork' | dd of=$one bs=1 seek=75 conv=notrunc status=none # as many bytes, in place, with the earlier mtime
touch -r time $one
noticed changed was1 '0 are missing and 1 has changed; 0 are new'
image dark 20 >new.png
touch -r time new.png
mv new.png folder/train/dark/21.png # another file with the name, size and mtime of the earlier one
noticed replaced was2 '0 are missing and 2 have changed; 0 are new'
rm folder/train/light/30.png
noticed removed was3 '1 is missing and 2 have changed; 0 are new'
image light 700 >folder/train/light/700.png
noticed added was4 '1 is missing and 2 have changed; 1 is new'
mv folder/train/light/40.png folder/train/light/swap.png
mv folder/train/light/41.png folder/train/light/40.png
mv folder/train/light/swap.png folder/train/light/41.png
noticed exchanged was5 '1 is missing and 4 have changed; 1 is new'

# a folder that cannot be written, damaged indices, and a cache that cannot be written
sleep 3.1
chmod -R a-w folder
find folder | sort >before.list
"$gtrain" run net.cfg -q -o plain2 -s data.index=never >/dev/null 2>err || fail plain2 "$(cat err)"
plain=$(bits plain2)
same read_only '' run net.cfg -q -o read_only
if find folder | sort | cmp -s before.list -; then pass folder_untouched; else fail folder_untouched 'files in the folder of the data'; fi
chmod -R u+w folder
sleep 3.1
"$gtrain" run net.cfg -q -o after_chmod >/dev/null 2>&1
cp "$file" good.index
printf x | dd of="$file" bs=1 seek=9000 conv=notrunc status=none
same damaged 'could not be used: it is damaged' run net.cfg -q -o damaged
same repaired '' run net.cfg -q -o repaired
truncate -s 5000 "$file"
same shorter 'it is shorter than its header says' run net.cfg -q -o shorter
chmod g+w "$file"
same foreign 'another user can change it' run net.cfg -q -o foreign
rm "$file" && ln -s "$tmp/good.index" "$file"
same link 'symbolic link' run net.cfg -q -o link
touch blocked
XDG_CACHE_HOME=$tmp/blocked same unwritable 'no index of their contents was written' run net.cfg -q -o unwritable

# two ranks, which both hash the images
plain=
"$gtrain" run net.cfg -q -o ranks_plain -s data.index=never -s parallel.mode=ddp --nproc 2 >/dev/null 2>err || fail ranks_plain "$(cat err)"
plain=$(bits ranks_plain)
rm -rf cache
same ranks_first '' run net.cfg -q -o ranks_first -s parallel.mode=ddp --nproc 2
same ranks_second '' run net.cfg -q -o ranks_second -s parallel.mode=ddp --nproc 2
if find cache -name '*.tmp-*' | grep -q .; then fail no_temporaries "$(ls "$index")"; else pass no_temporaries; fi

# data without an index
tar -cf images.tar -C folder train
gives archive 0 err 'there is no index of the images, because they are in an archive' run net.cfg -o archive -s data.root=images.tar
gives no_key 78 err 'does not use this key' check net.cfg -s data.format=idx -s data.index=always
if grep -q 'data.index' <("$gtrain" run net.cfg -o auto -s data.index=auto 2>&1); then fail auto_small 'a note'; else pass auto_small; fi

# a large folder: init makes the index
rm -rf cache
mkdir -p large/a large/b
for c in a b; do # many files of one size from one long file
	for i in $(seq 100); do image dark "$i"; done >hundred
	for _ in $(seq 100); do cat hundred; done | split -b "$(image dark 1 | wc -c)" -d -a 5 --additional-suffix=.png - large/$c/
done
sleep 3.1
run init large -o large.cfg
if [ "$(stat -c %s "$index"/*.index)" -ge $((20000 * 16)) ]; then pass init_writes; else fail init_writes 'no index of 20000 images'; fi
rm large/a/00000.png
rm -rf cache
run init large -o smaller.cfg
if [ "$rc" != 0 ] || [ -d cache ]; then fail small_has_none 'an index of 19999 images'; else pass small_has_none; fi
