#!/bin/bash
# tests/run: beside others
# OMP_NUM_THREADS: which values are followed, and what is said of the others. The seconds of a run whose clock runs backwards.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
tiny_config
run run "$tmp/tiny.cfg" -q -o "$tmp/plain"
weights() { sha256sum <"$tmp/$1/latest/model.safetensors"; }
# ignored NAME VALUE: the run is that without the variable, with a warning.
ignored() {
	export OMP_NUM_THREADS=$2
	run run "$tmp/tiny.cfg" -q -o "$tmp/$1"
	if [ "$rc" != 0 ]; then
		fail "$1" "ended with $rc: $(tail -n 1 "$tmp/err")"
	elif ! grep -qF "expected a number from 1 to 4096 in the variable OMP_NUM_THREADS, got \"$2\"" "$tmp/err"; then
		fail "$1" "no warning: $(head -n 2 "$tmp/err")"
	elif [ "$(weights "$1")" != "$(weights plain)" ]; then
		fail "$1" 'other weights'
	else
		pass "$1"
	fi
}
ignored crashes_libgomp 100000
ignored just_too_many 4097
ignored not_an_int 99999999999
ignored a_word abc
ignored zero 0
ignored negative -3
ignored a_fraction 1.5
export OMP_NUM_THREADS=100000
gives check_warns 0 err 'OMP_NUM_THREADS' check "$tmp/tiny.cfg"
gives strict 78 err 'OMP_NUM_THREADS' check --strict "$tmp/tiny.cfg" -s 'checkpoint.dir="d"'
run check "$tmp/tiny.cfg" -s threads=1
if grep -q OMP_NUM "$tmp/err"; then fail key_decides 'a warning beside threads = 1'; else pass key_decides; fi
gives more_than_processors 0 err 'threads are more than the' check "$tmp/tiny.cfg" -s threads=4096
for value in 1 1,1; do
	export OMP_NUM_THREADS=$value
	run check "$tmp/tiny.cfg"
	if grep -q OMP_NUM "$tmp/err"; then fail "followed_$value" "$(head -n 1 "$tmp/err")"; else pass "followed_$value"; fi
done
unset OMP_NUM_THREADS

cat >"$tmp/back.c" <<'C'
#include <dlfcn.h>
#include <time.h>
int clock_gettime(clockid_t id, struct timespec *t)
{
	static int (*real)(clockid_t, struct timespec *);
	static int calls;
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
	int rc = real(id, t);
	if (!rc && id == CLOCK_MONOTONIC)
		t->tv_sec -= 3600L * __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
	return rc;
}
C
if ! ${CC:-gcc} -O1 -shared -fPIC -D_GNU_SOURCE -o "$tmp/back.so" "$tmp/back.c" -ldl 2>"$tmp/cc"; then
	skip clock_backwards "${CC:-gcc} cannot make a shared library: $(head -n 1 "$tmp/cc")"
elif grep -q __asan_init "$gtrain"; then
	skip clock_backwards 'AddressSanitizer must be the first library'
else
	LD_PRELOAD=$tmp/back.so run run "$tmp/tiny.cfg" -q -o "$tmp/back"
	if [ "$rc" = 0 ] && grep -q '"seconds":0' "$tmp/back/metrics.jsonl" && ! grep -q '"seconds":-' "$tmp/back/metrics.jsonl"; then
		pass clock_backwards
	else
		fail clock_backwards "rc $rc: $(grep -o '"seconds":[^,]*' "$tmp/back/metrics.jsonl" | head -n 3 | tr '\n' ' ')"
	fi
fi
