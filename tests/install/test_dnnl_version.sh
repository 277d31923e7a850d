#!/bin/bash
# A version of oneDNN that gtrain cannot be built with is refused in one line, before anything is compiled; another one builds again.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/../cli/cli.sh"

# fake MAJOR MINOR: headers of that version in $tmp/inc
fake() {
	mkdir -p "$tmp/inc"
	printf '#define DNNL_VERSION_MAJOR %s\n#define DNNL_VERSION_MINOR %s\n' "$1" "$2" >"$tmp/inc/dnnl_version.h"
}
check() {
	"$src/scripts/dnnl-version.sh" "$tmp/version" gcc "-I$tmp/inc" >"$tmp/out" 2>"$tmp/err"
	rc=$?
}

for v in '2 6' '2 7' '2 12' '3 0' '3 7' '3 14'; do
	# shellcheck disable=SC2086
	fake $v
	check
	if [ $rc = 0 ] && [ "$(cat "$tmp/version")" = "${v/ /.}" ] && [ ! -s "$tmp/err" ]; then pass "takes_${v/ /_}"
	else fail "takes_${v/ /_}" "status $rc, $(cat "$tmp/version" "$tmp/err")"; fi
done
for v in '1 7' '2 0' '2 5' '4 0' '12 6' '20 3'; do
	# shellcheck disable=SC2086
	fake $v
	check
	if [ $rc = 69 ] && [ "$(wc -l <"$tmp/err")" = 1 ] &&
		grep -q "oneDNN ${v/ /.} is not supported.*2\.6.*3\.x" "$tmp/err"; then pass "refuses_${v/ /_}"
	else fail "refuses_${v/ /_}" "status $rc, $(cat "$tmp/err")"; fi
done

"$src/scripts/dnnl-version.sh" "$tmp/version" gcc -nostdinc >"$tmp/out" 2>"$tmp/err"
rc=$?
if [ $rc = 69 ] && [ "$(wc -l <"$tmp/err")" = 1 ] && grep -q 'libdnnl-dev' "$tmp/err"; then pass headers_missing
else fail headers_missing "status $rc, $(cat "$tmp/err")"; fi

# make stops before it compiles a file of the backend, and says that one line.
fake 4 1
make --no-print-directory -C "$src" BUILD="$tmp/b" CFLAGS="-O0 -I$tmp/inc" "$tmp/b/obj/kernels/cpu/dnnl_util.o" >"$tmp/out" 2>"$tmp/err"
rc=$?
if [ $rc = 0 ] || [ -e "$tmp/b/obj/kernels/cpu/dnnl_util.o" ]; then fail make_refuses "status $rc"
elif [ "$(grep -vc '^make' "$tmp/err")" != 1 ] ||
	! grep -q '^oneDNN 4.1 is not supported' "$tmp/err"; then fail make_refuses "$(cat "$tmp/err")"
else pass make_refuses; fi

# The file with the version keeps its time while the version stays, so that nothing is built again without need.
fake 3 7
check
touch -d @1000 "$tmp/version"
check
if [ "$(stat -c %Y "$tmp/version")" = 1000 ]; then pass same_version_builds_nothing
else fail same_version_builds_nothing 'the file was written again'; fi
fake 3 8
check
if [ "$(stat -c %Y "$tmp/version")" != 1000 ]; then pass other_version_builds_again
else fail other_version_builds_again 'the file was not written'; fi
