#!/bin/bash
# The program and its plugins are protected: position-independent, relocations bound at the start and read-only, no executable stack,
# canaries on stacks, checked string functions. A build that turns optimisation off or brings its own settings has no conflict with it.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/../cli/cli.sh"
build=${GTRAIN_BUILD:-$src/build}

if ! command -v readelf >/dev/null; then
	skip hardening 'no readelf'
	exit 0
fi
# A sanitizer's build or one with HARDEN= or -O0 is not what is shipped.
sanitized=
readelf -sW "$build/bin/gtrain" | grep -q '__asan_init\|__ubsan_handle\|__tsan_init' && sanitized=1
for f in "$build/bin/gtrain" "$build"/lib/gtrain/*.so; do
	name=${f##*/} why=
	[ "$(readelf -hW "$f" | awk '$1 == "Type:" { print $2 }')" = DYN ] || why="$why not position-independent;"
	readelf -dW "$f" | grep -q 'BIND_NOW\|Flags:.* NOW' || why="$why not bound at the start;"
	readelf -lW "$f" | grep -q GNU_RELRO || why="$why relocations stay writable;"
	readelf -lW "$f" | grep GNU_STACK | grep -q E && why="$why executable stack;"
	readelf -sW "$f" | grep -q ' __stack_chk_fail' || why="$why no stack protector;"
	[ -n "$sanitized" ] || readelf -sW "$f" | grep -Eq \
		' __(memcpy|memset|strcpy|strcat|snprintf|vsnprintf|fprintf|printf|read|pread64|memmove)_chk' ||
		why="$why no checked functions;"
	if [ -z "$why" ]; then pass "protected_$name"; else fail "protected_$name" "$why"; fi
done

# flags NAME WANTED UNWANTED MAKE-ARGUMENTS...: what one file is compiled with
flags() {
	local name=$1 wanted=$2 unwanted=$3
	shift 3
	env -u MAKEFLAGS -u MAKELEVEL make --no-print-directory -C "$src" -n -W engine/base/err.c BUILD="$tmp/b" V=1 GLOO= CUDA= "$@" \
		"$tmp/b/obj/engine/base/err.o" \
		>"$tmp/out" 2>&1
	if ! grep -q -- "$wanted" "$tmp/out"; then fail "$name" "no $wanted: $(tail -n 1 "$tmp/out")"
	elif [ -n "$unwanted" ] && grep -q -- "$unwanted" "$tmp/out"; then fail "$name" "$unwanted: $(tail -n 1 "$tmp/out")"
	else pass "$name"; fi
}
flags by_default '-fstack-protector-strong.*-D_FORTIFY_SOURCE=2' ''
flags without_optimisation '-fstack-protector-strong' FORTIFY CFLAGS='-O0 -g'
flags optimisation_turned_off_last '-fstack-protector-strong' FORTIFY CFLAGS='-O2 -O0'
flags no_optimisation_option '-fstack-protector-strong' FORTIFY CFLAGS=-g
flags own_level 'FORTIFY_SOURCE=3' 'FORTIFY_SOURCE=2' CFLAGS='-O2 -D_FORTIFY_SOURCE=3'
flags sanitizer '-fstack-protector-strong' FORTIFY CFLAGS='-O1 -fsanitize=address'
flags turned_off 'c engine/base/err.c' 'FORTIFY\|stack-protector' HARDEN=

# Neither -O0 nor an own level makes the compiler warn.
for cflags in '-O0' '-O2 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=1'; do
	name=no_warning_with$(tr -c 'A-Za-z0-9\n' _ <<<"$cflags")
	env -u MAKEFLAGS -u MAKELEVEL make --no-print-directory -C "$src" BUILD="$tmp/c" GLOO= CUDA= CFLAGS="$cflags -Werror" \
		"$tmp/c/obj/engine/base/err.o" \
		>"$tmp/out" 2>&1
	rc=$?
	rm -rf "$tmp/c"
	if [ $rc = 0 ]; then pass "$name"; else fail "$name" "$(grep -m1 'error' "$tmp/out")"; fi
done
