#!/bin/bash
# kill -9 at every system call of a save that concerns the disk, retention and the replacing of a step included: after each kill the newest
# checkpoint that verifies is the last one committed or the one being committed. (The page cache survives a kill: what a power cut leaves
# is test_powerloss's matter.)
set -u
tool=${GTRAIN_BUILD:-build}/tests/crash/tool_ckpt
calls='openat write fsync close mkdir rename renameat2 symlink unlink unlinkat rmdir flock'
calls+=' ftruncate pwrite64 getdents64 readlink newfstatat'
base=/dev/shm
[ -w $base ] || base=${TMPDIR:-/tmp}
dir=$(mktemp -d "$base/gtrain-kill-XXXXXX")
trap 'rm -rf "$dir"' EXIT
if ! command -v strace >/dev/null; then
	echo "skip kill_every_syscall: no strace"
	exit 0
fi
if ! strace -qq -e trace=none true 2>/dev/null; then
	echo "skip kill_every_syscall: ptrace is not permitted here"
	exit 0
fi

"$tool" save "$dir/template" 1 2 2 >/dev/null || { echo "not ok kill_every_syscall: the template could not be saved"; exit 1; }

# run NAME FROM TO CALL N: saves FROM..TO on a copy of the template, killed at the Nth CALL; checks what is left.
points=0 failures=0
run() {
	cp -r "$dir/template" "$dir/run"
	{ # without braces, bash prints a message for each kill
		strace -qq -o /dev/null -e trace="$4" -e inject="$4:signal=SIGKILL:when=$5" "$tool" save "$dir/run" "$2" "$3" 2 >"$dir/out"
	} 2>/dev/null
	rc=$?
	lo=2 hi=2
	while read -r word step; do
		case $word in
		begin) [ "$step" -gt "$hi" ] && hi=$step ;;
		done) [ "$step" -gt "$lo" ] && lo=$step ;;
		esac
	done <"$dir/out"
	points=$((points + 1))
	if [ $rc != 137 ]; then
		echo "not ok kill_$1: $4 number $5: the process ended with $rc, not by the kill"
		failures=$((failures + 1))
	elif ! "$tool" check "$dir/run" "$lo" "$hi" >"$dir/check" 2>&1; then
		echo "not ok kill_$1: $4 number $5: $(head -c 300 "$dir/check")"
		failures=$((failures + 1))
	fi
	rm -rf "$dir/run"
}

# sweep NAME FROM TO: one run on a record, to count the calls, then one for each of them behind the first begin.
sweep() {
	cp -r "$dir/template" "$dir/run"
	strace -qq -o "$dir/trace" -e trace="${calls// /,}" "$tool" save "$dir/run" "$2" "$3" 2 >/dev/null
	"$tool" check "$dir/run" "$3" "$3" >/dev/null || echo "not ok kill_$1: an undisturbed run fails"
	rm -rf "$dir/run"
	points=0 failures=0
	for call in $calls; do
		n=$(grep -c "^$call(" "$dir/trace")
		# Calls before the folder is opened belong to the dynamic linker.
		first=$(awk -v c="$call(" '/\.lock/ { on = 1 } index($0, c) == 1 { k++; if (on) { print k; exit } }' "$dir/trace")
		[ -n "$first" ] || continue
		for ((k = first; k <= n; k++)); do
			run "$1" "$2" "$3" "$call" "$k"
		done
	done
	echo "# sweep kill in a save, ${1//_/ }: $points points, $failures failures"
	if [ $failures = 0 ] && [ $points -gt 60 ]; then
		echo "ok kill_$1"
	elif [ $failures = 0 ]; then
		echo "not ok kill_$1: only $points points"
	fi
}

sweep new_steps 3 4
sweep same_step 2 2
