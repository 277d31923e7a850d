#!/bin/bash
# The index of a table (data.index): a run with it has the bits of a run without it; a stale, damaged or foreign index is not used, and a
# cache that cannot be written is not an error.
# tests/run: beside others
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
cd "$tmp" || exit 1
export XDG_CACHE_HOME=$tmp/cache
index=$tmp/cache/gtrain/index
awk 'BEGIN {
	srand(5); print "x,y,colour,day,note,t"
	split("red green blue", word)
	for (i = 0; i < 3000; i++)
		printf "%.3f,%s,%s,2024-%02d-%02d,\"%s %s %s\nof %d\",%d\n", rand(), i % 17 ? rand() * 40 : "", word[1 + i % 3], 1 + i % 12,
			1 + i % 28, word[1 + i % 3], word[1 + int(rand() * 3)], i % 7 ? "thing" : "other", i % 5, rand() < .5
}' >table.csv
cat >net.cfg <<'CFG'
schema = 1;
name = "indexed";
seed = 3;
reproducible = "run";
data = { format = "csv"; train = ["table.csv"]; target = "t"; batch = 64; valid = 0.25; stratify = true; index = "always";
	columns = ( { name = "note"; type = "text"; }, { name = "day"; type = "date"; } ); };
model = { inputs = ( { name = "values"; }, { name = "codes"; }, { name = "tokens"; } ); layers = (
	{ name = "e"; type = "embeddings"; in = "codes"; },
	{ name = "w"; type = "embedding_bag"; in = "tokens"; embedding_dim = 4; },
	{ name = "all"; type = "concat"; in = ["values", "e", "w"]; },
	{ name = "fc"; type = "linear"; out = 2; } ); };
train = { epochs = 2; optimizer = { type = "adam"; lr = 0.01; }; };
checkpoint = { every_epochs = 1; best = { metric = "valid/acc"; }; };
log = { every_steps = 1; };
CFG
sleep 3.1 # a file that was changed a moment ago has no index

# bits DIR: the weights of the run, the facts and samples in its checkpoint, and its losses
bits() {
	"$gtrain" export "$1" -o "$1.safetensors" -q && cat "$1.safetensors" "$1"/step-*/data.json >"$1.bits" &&
		grep -o '"step":[^,]*\|"loss":[^,]*' "$1/metrics.jsonl" | sort -u >>"$1.bits" && sha256sum <"$1.bits" | cut -c1-16
}

# same NAME ARGS...: gtrain ARGS makes or continues the run NAME, which ends with the bits of the run without an index
same() {
	local name=$1
	shift
	if ! "$gtrain" "$@" >/dev/null 2>"$tmp/err"; then
		fail "$name" "$(head -n 1 "$tmp/err")"
	elif [ "$(bits "$name")" = "$plain" ]; then
		pass "$name"
	else
		fail "$name" 'other weights, facts or losses than without an index'
	fi
}

# uses NAME TEXT: a check prints the same columns and samples as without an index; if TEXT is given, it warns with this text and makes
# the index again, so that the next check uses it without a warning
uses() {
	local text=${2-}
	run check net.cfg
	grep -v '^reading\|^datasets\|^total  \|^tokens' "$tmp/out" >now.out
	if [ "$rc" != 0 ] || ! cmp -s plain.out now.out; then
		fail "$1" "status $rc: $(diff plain.out now.out | head -n 4) $(head -n 1 "$tmp/err")"
	elif [ -n "$text" ] && ! grep -qF "$text" "$tmp/err"; then
		fail "$1" "no '$text' in $(cat "$tmp/err")"
	elif [ -n "$text" ]; then
		uses "$1"
	elif grep -q '^reading' "$tmp/out" || grep -q 'data.index' "$tmp/err"; then
		fail "$1" "the index was not used: $(grep data.index "$tmp/err")"
	else
		pass "$1"
	fi
}

"$gtrain" check net.cfg -s data.index=never 2>err | grep -v '^reading\|^datasets\|^total  \|^tokens' >plain.out
if [ -d cache ]; then fail never_writes 'data.index = "never" has made a cache'; else pass never_writes; fi
"$gtrain" run net.cfg -q -o plain -s data.index=never >/dev/null 2>err || fail plain "$(cat err)"
plain=$(bits plain)
[ -n "$plain" ] || fail plain 'no bits'

same first_run run net.cfg -q -o first_run
file=$(echo "$index"/*.index)
if [ -f "$file" ]; then pass written; else fail written "no index in $index"; fi
uses check_after_run
same second_run run net.cfg -q -o second_run
same eight_threads run net.cfg -q -o eight_threads -s threads=8

# resumed runs: with the index, and with the index deleted
"$gtrain" run net.cfg -q -o stopped -s train.epochs=1 >/dev/null 2>err || fail stopped "$(cat err)"
cp -r stopped without
same stopped resume stopped -s train.epochs=2
rm -rf cache
same without resume without -s train.epochs=2
gives eval_without 0 out '' eval plain --split valid --json
cp "$tmp/out" eval.out
"$gtrain" check net.cfg >/dev/null 2>&1
uses made_again
gives eval_with 0 out '' eval first_run --split valid --json
scores() { grep -o '"\(samples\|loss\|acc\)":[^,]*' "$1"; }
if [ -n "$(scores eval.out)" ] && [ "$(scores eval.out)" = "$(scores "$tmp/out")" ]; then
	pass eval_same
else
	fail eval_same "$(diff eval.out "$tmp/out")"
fi

# damaged files
file=$(echo "$index"/*.index)
cp "$file" good.index
size=$(stat -c %s "$file")
# put NAME TEXT: the check after a change of the index warns with TEXT
damaged() {
	uses "$1" "$2"
	cmp -s good.index "$file" || fail "$1_again" 'the new index differs from the first one'
}
truncate -s $((size - 1)) "$file" && damaged shorter 'it is shorter than its header says'
truncate -s 100 "$file" && damaged cut_header 'it is shorter than a header'
: >"$file" && damaged empty 'it is shorter than a header'
echo >>"$file" && damaged longer 'it is longer than its header says'
flip() { # flip OFFSET: changes a bit of the byte
	printf "\\x$(printf %02x $((0x$(xxd -s "$1" -l 1 -p "$file") ^ 16)))" | dd of="$file" bs=1 seek="$1" conv=notrunc status=none
}
flip 100 && damaged flipped_header 'its header is damaged'
flip 2 && damaged flipped_magic 'its format is not that of this gtrain'
for at in 4100 8200 $((size - 5)); do
	flip "$at" && damaged "flipped_$at" 'it is damaged'
done
chmod g+w "$file" && uses writable_by_group 'another user can change it'
rm "$file" && ln -s "$tmp/good.index" "$file" && uses link 'symbolic link'

# a changed table, and changed keys
cp table.csv before.csv
echo '0.5,1,red,2024-01-01,red thing,1' >>table.csv
sleep 3.1
run check net.cfg
if grep -qF "table.csv has changed since" "$tmp/err" && grep -q '2,2[0-9]* train' "$tmp/out"; then
	pass changed
else
	fail changed "$(cat "$tmp/err"; grep train "$tmp/out")"
fi
for _ in 1 2 3 4 5; do # a check that ends more than SETTLED_S = 2 s (datasets/index_place.c) after the change proves nothing
	begun=$(date +%s)
	touch table.csv
	run check net.cfg
	took=$(($(date +%s) - begun))
	[ "$took" -gt 2 ] || break
done
if [ "$took" -gt 2 ]; then skip just_changed 'a check takes longer than a change stays recent'
elif [ "$rc" = 0 ] && grep -qF 'no index was written: a file was changed' "$tmp/err"; then pass just_changed
else fail just_changed "status $rc: $(cat "$tmp/err")"; fi
mv before.csv table.csv
sleep 3.1
uses moved_back 'has changed since'
for limit in 2200 2500 2800; do
	gives "limit_$limit" 0 out '' check net.cfg -s data.limit=$limit
done
n=$(find "$index" -name '*.index' | wc -l)
if [ "$n" = 2 ]; then pass two_kept; else fail two_kept "$n indices of one table"; fi
"$gtrain" check net.cfg >/dev/null 2>&1
uses after_other_keys

# a cache that cannot be written
touch blocked
XDG_CACHE_HOME=$tmp/blocked gives no_cache 0 err 'no index was written' check net.cfg
XDG_CACHE_HOME=$tmp/blocked same unwritable run net.cfg -q -o unwritable
mkdir small
# on_tmpfs COMMANDS: `check` with a cache on a file system of 1 MiB, after COMMANDS in its directory
on_tmpfs() {
	XDG_CACHE_HOME=$tmp/small unshare -rm bash -c "mount -t tmpfs -o size=1m none small && { $1; } && '$gtrain' check net.cfg" >out 2>err
}
if unshare -rm mount -t tmpfs -o size=1m none small 2>/dev/null; then
	for case in 'full true' 'readonly mkdir -p small/gtrain/index && mount -o remount,ro small'; do
		words='an index of [0-9.]* KiB would leave less than 128 MiB of the disk free ([0-9.]* [KM]iB are free)'
		[ "${case%% *}" = full ] || words='small/gtrain/index is on a read-only file system; set XDG_CACHE_HOME'
		if on_tmpfs "${case#* }" && tr '\n' ' ' <err | tr -s ' ' | grep -q "no index was written: .*$words"; then pass "${case%% *}_disk"
		else fail "${case%% *}_disk" "$(cat err)"; fi
	done
else
	skip full_disk 'no user namespaces'
fi
# relative paths of a cache are ignored
(
	unset XDG_CACHE_HOME
	HOME=here gives relative_home 0 err 'nor HOME is set to an absolute path' check net.cfg
)
if [ -e here ]; then fail relative_home_ignored "$(find here)"; else pass relative_home_ignored; fi
printf 'x,t\n1,0\n2,1\nbad,0\n%s' "$(seq -f '%g.5,1' 200)" >odd.csv
gives left_out 0 err 'because rows or cells of the data were left out' check net.cfg -s 'data.train=["odd.csv"]' -s data.on_error=skip \
	-s data.columns=[] -s 'model.inputs=({name="values";})' -s 'model.layers=({type="linear";out=2;})'

# the split "test", whose rows are converted with the facts of the training split
rm -rf cache
{ head -n 1 table.csv; tail -n 400 table.csv; } | sed 's/^[0-9.]*,/1.5,/' >test.csv
sleep 3.1
run eval plain -s 'data.test=["test.csv"]' -s data.index=never --json
scores "$tmp/out" >never.scores
for again in first again; do
	gives "test_$again" 0 out '"samples":' eval plain -s 'data.test=["test.csv"]' -s data.index=always --json
	if cmp -s never.scores <(scores "$tmp/out") && [ -s never.scores ]; then
		pass "test_scores_$again"
	else
		fail "test_scores_$again" "$(scores "$tmp/out" | diff never.scores -)"
	fi
done
file=$(echo "$index"/*.index)
flip 8200
gives test_damaged 0 out '"samples":' eval plain -s 'data.test=["test.csv"]' -s data.index=always --json
if cmp -s never.scores <(scores "$tmp/out") && ls "$file" >/dev/null; then
	pass test_made_again
else
	fail test_made_again 'other scores, or no index'
fi
n=$(find "$index" -name '*.index' | wc -l)
gives other_facts 0 err '' check net.cfg -s 'data.test=["test.csv"]' -s data.valid_seed=8
now=$(find "$index" -name '*.index' | wc -l)
if [ "$n $now" = '1 3' ]; then pass own_facts; else fail own_facts "$n, then $now indices"; fi

# two processes and two ranks at once, without an index before
rm -rf cache
"$gtrain" run net.cfg -q -o beside >/dev/null 2>&1 &
same with_other run net.cfg -q -o with_other
wait
same beside resume beside -s train.epochs=2
"$gtrain" run net.cfg -q -o ranks_plain -s data.index=never -s parallel.mode=ddp --nproc 2 >/dev/null 2>err || fail ranks_plain "$(cat err)"
plain=$(bits ranks_plain)
rm -rf cache
same ranks_first run net.cfg -q -o ranks_first -s parallel.mode=ddp --nproc 2
same ranks_second run net.cfg -q -o ranks_second -s parallel.mode=ddp --nproc 2
if find "$index" -name '*.tmp-*' | grep -q .; then fail no_temporaries "$(ls "$index")"; else pass no_temporaries; fi
