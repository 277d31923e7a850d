#!/bin/bash
# The first pass over a large table (data.index): its memory is bounded, its result is that of a pass in memory, and a pass that is killed
# or that fills the disk leaves nothing behind.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
cd "$tmp" || exit 1
export XDG_CACHE_HOME=$tmp/cache
index=$tmp/cache/gtrain/index
# 400,000 rows, 62 MB: numbers, categories with a missing value, dates, two columns of texts (one with line breaks), and classes
awk 'BEGIN {
	srand(7); print "x,y,colour,day,note,more,t"
	split("red green blue", word)
	for (i = 0; i < 2000; i++) {
		text[i] = ""
		for (k = 0; k < 10 + i % 20; k++)
			text[i] = text[i] " w" int(rand() * rand() * 5000)
	}
	for (i = 0; i < 400000; i++)
		printf "%.3f,%s,%s,2024-%02d-%02d,%d%s,\"more\n%s\",%d\n", rand(), i % 17 ? rand() * 40 : "", word[1 + i % 3], 1 + i % 12,
			1 + i % 28, i, text[i % 2000], i % 5 ? "thing" : "other " i % 7, rand() < .5
}' >table.csv
cat >net.cfg <<'CFG'
schema = 1;
name = "scanned";
seed = 3;
reproducible = "run";
data = { format = "csv"; train = ["table.csv"]; target = "t"; batch = 4096; valid = 0.25; stratify = true; index = "always";
	columns = ( { name = "note"; type = "text"; }, { name = "more"; type = "text"; }, { name = "day"; type = "date"; } ); };
model = { inputs = ( { name = "values"; }, { name = "codes"; }, { name = "tokens"; } ); layers = (
	{ name = "e"; type = "embeddings"; in = "codes"; },
	{ name = "w"; type = "embedding_bag"; in = "tokens"; embedding_dim = 1; },
	{ name = "all"; type = "concat"; in = ["values", "e", "w"]; },
	{ name = "fc"; type = "linear"; out = 2; } ); };
train = { epochs = 1; optimizer = { type = "sgd"; lr = 0.01; }; };
checkpoint = { every_epochs = 1; };
CFG
sleep 3.1 # a file that was changed a moment ago has no index

# peak ARGS...: runs gtrain ARGS, and prints its peak of resident memory in MiB; the status is in the file rc, the output in out and err
peak() {
	python3 -c 'import resource, subprocess, sys
rc = subprocess.call(sys.argv[1:], stdout=open("out", "w"), stderr=open("err", "w"))
open("rc", "w").write(str(rc))
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)' "$gtrain" "$@"
}
# least LIMIT ARGS...: sets scan to the peak of gtrain ARGS without an index before; repeats this up to twice while it is LIMIT or more: on
# a busy machine, the thread that unmaps pages may start late
least() {
	local limit=$1
	shift
	for _ in 1 2 3; do
		rm -rf cache spilled.cfg
		scan=$(peak "$@")
		[ "$scan" -lt "$limit" ] && break
	done
}
facts() { grep -v '^reading\|^datasets\|^total  ' "$1"; }

case $(stat -f -c %T "$tmp") in # datasets/file_system.h: elsewhere, the rows are in memory
ext* | xfs | overlay*) in_files=true ;;
*) in_files=false ;;
esac
# in_file CASE CONDITION...: passes if the test CONDITION holds
in_file() {
	local name=$1
	shift
	if ! $in_files; then
		skip "$name" "the temporary directory is on $(stat -f -c %T "$tmp"), where rows are not kept in temporary files"
	elif "$@"; then
		pass "$name"
	else
		fail "$name" "$scan MiB, $plain MiB in memory, $(grep '^reading' out)"
	fi
}
smaller() { [ "$scan" -lt "$1" ] && [ "$plain" -gt "$2" ]; }

plain=$(peak check net.cfg -s data.index=never)
facts out >plain.out
least 150 check net.cfg
echo "# a table of $(($(stat -c %s table.csv) / 1000000)) MB: $plain MiB without an index, $scan MiB in the scan that writes it"
if [ "$(cat rc)" = 0 ] && facts out | cmp -s plain.out -; then
	pass same_facts
else
	fail same_facts "$(facts out | diff plain.out -) $(cat err)"
fi
# 64 MiB of mapped pages, the program, and the vocabulary of 400,000 numbers
in_file bounded smaller 150 180
in_file reading grep -q '^reading  *64' out
file=$(echo "$index"/*.index)
if [ "$(find "$index" -type f ! -name .lock | wc -l)" = 1 ] && [ -f "$file" ]; then
	pass only_index
else
	fail only_index "$(ls "$index")"
fi
cp "$file" good.index

# bits DIR: the weights of the run, and the facts in its checkpoint
bits() { "$gtrain" export "$1" -o "$1.safetensors" -q && cat "$1.safetensors" "$1"/step-*/data.json | sha256sum | cut -c1-16; }
"$gtrain" run net.cfg -q -o plain -s data.index=never >/dev/null 2>err || fail plain "$(cat err)"
"$gtrain" run net.cfg -q -o mapped >/dev/null 2>err || fail mapped "$(cat err)"
rm -rf cache
"$gtrain" run net.cfg -q -o scanned >/dev/null 2>err || fail scanned "$(cat err)"
for name in mapped scanned; do
	if [ -d plain ] && [ "$(bits "$name")" = "$(bits plain)" ]; then
		pass "same_bits_$name"
	else
		fail "same_bits_$name" 'other weights or facts'
	fi
done

# killed while it reads, converts and writes
seconds=$(python3 -c 'import subprocess, sys, time
start = time.monotonic()
subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(time.monotonic() - start)' "$gtrain" check net.cfg -s data.index=never)
for part in 0.3 0.6 0.8 1; do
	rm -rf cache
	(timeout -s KILL "$(awk -v s="$seconds" -v p="$part" 'BEGIN { print s * p }')" "$gtrain" check net.cfg; true) >/dev/null 2>&1
	if find cache -name '*.index' | grep -q . && ! cmp -s good.index "$index"/*.index; then
		fail "killed_$part" 'there is an index that is not whole'
	elif find cache -type f ! -name .lock ! -name '*.index' ! -name '*.index.tmp-*' | grep -q .; then
		fail "killed_$part" "$(find cache -type f)"
	else
		pass "killed_$part"
	fi
done
peak check net.cfg >/dev/null
if cmp -s good.index "$index"/*.index && [ "$(find "$index" -type f ! -name .lock | wc -l)" = 1 ]; then
	pass after_kill
else
	fail after_kill "$(ls -l "$index") $(cat err)"
fi

# a disk without room, and a directory that cannot be written: as without an index, with a warning
rm -rf cache
if (ulimit -f 2048 && exec "$gtrain" check net.cfg >out 2>err) && facts out | cmp -s plain.out - &&
	grep -q 'no index was written' err && ! find cache -type f ! -name .lock | grep -q .; then
	pass full_disk
else
	fail full_disk "$(facts out | diff plain.out -) $(cat err) $(find cache -type f)"
fi
rm -rf cache
mkdir -p "$index"
chmod a-w "$index"
if touch "$index/file" 2>/dev/null; then
	rm "$index/file"
	skip read_only 'this user may write to every directory'
else
	peak check net.cfg >/dev/null
	if [ "$(cat rc)" = 0 ] && facts out | cmp -s plain.out - && grep -q 'no index was written' err; then
		pass read_only
	else
		fail read_only "$(facts out | diff plain.out -) $(cat err)"
	fi
fi
chmod u+w "$index"

# init of a table of more than 256 MiB, which gets an index by itself: the config is that of a pass in memory, which init makes if there
# is no cache
rm -rf cache
head -n 8001 table.csv >part.csv
run init part.csv --target t -o small.cfg
if [ "$rc" = 0 ] && [ ! -d cache ]; then pass init_small; else fail init_small "status $rc, $(find cache) $(cat err)"; fi
{ cat table.csv; for _ in 1 2 3 4; do tail -n +2 table.csv; done; } >large.csv
least 180 init large.csv --target t -o spilled.cfg
status=$(cat rc)
plain=$(unset XDG_CACHE_HOME HOME && peak init large.csv --target t -o memory.cfg)
echo "# init of $(($(stat -c %s large.csv) / 1000000)) MB: $plain MiB in memory, $scan MiB in files"
if [ "$status $(cat rc)" = '0 0' ] && diff <(sed s/spilled/memory/ spilled.cfg) memory.cfg >changes; then
	pass init_same
else
	fail init_same "$(cat changes err)"
fi
in_file init_bounded smaller 180 280
