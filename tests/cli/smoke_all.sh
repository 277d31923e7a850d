#!/bin/bash
# smoke_all.sh BUILD OPTIONS...: `gtrain run CFG --smoke OPTIONS` of every config in configs/, without the data of the user, and of configs
# that `gtrain init` writes from each of its templates; a line each, and the sum.
set -u
unset GTRAIN_DATA XDG_CACHE_HOME
cd "$(dirname "$0")/../.." || exit 1
gtrain=$1/bin/gtrain
tests=$1/tests/cli
shift
tmp=$(mktemp -d)
export HOME=$tmp/home # does not exist, and if a program creates it, it is removed
log=$tmp/log
trap 'rm -rf "$tmp"' EXIT
passed=0 failed=0

# Small data for `gtrain init`: two classes of texts; a table with categories, numbers and texts; 64 images of 28 x 28 pixels in IDX files.
mkdir -p "$tmp/texts/good" "$tmp/texts/bad" "$tmp/images"
for i in $(seq 1 20); do
	echo "a good text of number $i" >"$tmp/texts/good/$i.txt"
	echo "the bad text with number $i" >"$tmp/texts/bad/$i.txt"
done
awk 'BEGIN {
	print "colour,size,note,price,kind"
	for (i = 0; i < 120; i++)
		printf "%s,%.2f,what %d people say about it is as long as a text %d,%.3f,%s\n", i % 3 ? "red" : "blue", i / 7, i, i * i,
			i / 3, i % 2 ? "a" : "b"
}' >"$tmp/table.csv"
for split in train t10k; do
	{ printf '\0\0\010\003\0\0\0\100\0\0\0\034\0\0\0\034' && head -c 50176 "$gtrain"; } >"$tmp/images/$split-images-idx3-ubyte"
	{ printf '\0\0\010\001\0\0\0\100' && for _ in $(seq 1 32); do printf '\0\1'; done; } >"$tmp/images/$split-labels-idx1-ubyte"
done
init() { # NAME ARGS...
	local name=$1
	shift
	"$gtrain" init "$@" -o "$tmp/init_$name.cfg" >"$log" 2>&1 && return
	cat "$log"
	failed=$((failed + 1))
}
init text "$tmp/texts"
init images "$tmp/images"
init classes "$tmp/table.csv" --target kind
init numbers "$tmp/table.csv" --target price
[ ! -x "$tests/tool_images" ] || { "$tests/tool_images" "$tmp/files" >"$log" 2>&1 && mkdir "$tmp/photos" &&
	cp -r "$tmp/files/rgb" "$tmp/photos/one" && cp -r "$tmp/files/rgb" "$tmp/photos/two" && init photos "$tmp/photos"; }

for cfg in configs/*.cfg "$tmp"/init_*.cfg; do
	start=$(date +%s.%N)
	"$gtrain" run "$cfg" --smoke "$@" >"$log" 2>&1
	rc=$?
	printf '%-34s %6.1f s  exit %d\n' "${cfg#"$tmp/"}" "$(awk "BEGIN { print $(date +%s.%N) - $start }")" "$rc"
	sed 's/^/    /' "$log"
	if [ $rc = 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
done
echo "$passed passed, $failed failed"
[ $failed = 0 ] && [ $passed -gt 0 ]
