#!/usr/bin/env bash
# check-changed.sh BUILD [BASE]: prints the tests that tests/rooms.txt names for the files that differ from the commit BASE (HEAD: what is
# not committed), untracked ones included: programs as BUILD/tests/ROOM/test_NAME, scripts as tests/ROOM/test_NAME.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:?usage: check-changed.sh BUILD [BASE]} base=${2:-HEAD}
# tests_of PATTERN: prints the arguments of tests/run and make for ROOM/NAME of the table
tests_of() {
	local f
	for f in tests/${1%/*}/test_${1##*/}; do [ ! -e "$f" ] || echo "$f"; done
	for f in tests/${1%/*}/test_${1##*/}.c; do [ ! -e "$f" ] || echo "$build/${f%.c}"; done
}
{
	git diff --name-only "$base" --
	git ls-files -o --exclude-standard
} | sort -u | while read -r file; do
	case $file in
	tests/*/test_*.sh) [ ! -e "$file" ] || echo "$file" ;;
	tests/*/test_*.c) [ ! -e "$file" ] || echo "$build/${file%.c}" ;;
	*)
		row=$(awk -v file="$file" '!/^#/ && index(file, $1) == 1 && length($1) > best { best = length($1); row = $0 }
			END { print row }' tests/rooms.txt)
		read -ra words <<<"$row"
		for word in "${words[@]:1}"; do tests_of "$word"; done
		;;
	esac
done | grep -v '\.c$' | sort -u
