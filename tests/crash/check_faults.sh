#!/bin/bash
# check_faults.sh BUILD: every sweep of faults in its full form (`make check-faults`; the short forms are in `make check`). A table of the
# sweeps, with points, failures and minutes, then "N passed, N failed, N skipped". FAULTS_ONLY: a word in the names of the tests to run.
#
# Each test writes its sweeps as lines "# sweep NAME: N points, N failures…".
set -u
build=$1
cd "$(dirname "$0")/../.." || exit 1
export SWEEP=full FAULTS=full TEST_TIMEOUT=${TEST_TIMEOUT:-7200}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
# What is killed and struck in a process; runs as a whole; ranks.
tests="$build/tests/crash/test_powerloss $build/tests/crash/test_powerloss_history $build/tests/crash/test_corrupt
$build/tests/crash/test_iosweep $build/tests/crash/test_oom $build/tests/crash/test_diskfull
tests/crash/test_kill.sh tests/crash/test_run_sweep.sh tests/crash/test_run_kill.sh tests/resume/test_resume_exact.sh
tests/par/test_faults.sh"
passed=0 failed=0 skipped=0 points=0 failures=0
: >"$out/table"
began=$SECONDS
for t in $tests; do
	[[ $t = *"${FAULTS_ONLY:-}"* ]] || continue
	name=$(basename "$t" .sh)
	start=$SECONDS
	echo "$name ..."
	tests/run "$build" "$t" >"$out/log" 2>&1
	grep -a '^not ok \|^skip ' "$out/log"
	minutes=$(awk "BEGIN { printf \"%.1f\", ($SECONDS - $start) / 60 }")
	read -r p f s < <(tail -n 1 "$out/log" | sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p')
	passed=$((passed + ${p:-0})) failed=$((failed + ${f:-1})) skipped=$((skipped + ${s:-0}))
	if [ "$(grep -c '^# sweep ' "$out/log")" = 0 ] && [ "${s:-0}" = 0 ]; then
		echo "not ok $name: it wrote no line about its sweeps"
		failed=$((failed + 1))
	fi
	sed -n 's/^# sweep \(.*\): \([0-9]*\) points, \([0-9]*\) failures.*/\1\t\2\t\3/p' "$out/log" | while IFS=$'\t' read -r sweep n bad; do
		printf '%s\t%s\t%s\t%s\n' "$sweep" "$n" "$bad" "$minutes"
		minutes=''
	done >>"$out/table"
done
printf '\n%-52s %9s %9s %9s\n' sweep points failures minutes
while IFS=$'\t' read -r sweep n bad minutes; do
	printf '%-52s %9d %9d %9s\n' "$sweep" "$n" "$bad" "$minutes"
	points=$((points + n)) failures=$((failures + bad))
done <"$out/table"
printf '%-52s %9d %9d %9.1f\n\n' 'all' "$points" "$failures" "$(awk "BEGIN { print ($SECONDS - $began) / 60 }")"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
