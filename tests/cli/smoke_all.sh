#!/bin/bash
# smoke_all.sh BUILD OPTIONS...: `gtrain run CFG --smoke OPTIONS` of every config in configs/, without the data of the user; a line each,
# and the sum.
set -u
unset GTRAIN_DATA XDG_CACHE_HOME
export HOME=/nonexistent
cd "$(dirname "$0")/../.." || exit 1
gtrain=$1/bin/gtrain
shift
log=$(mktemp)
trap 'rm -f "$log"' EXIT
passed=0 failed=0
for cfg in configs/*.cfg; do
	start=$(date +%s.%N)
	"$gtrain" run "$cfg" --smoke "$@" >"$log" 2>&1
	rc=$?
	printf '%-34s %6.1f s  exit %d\n' "$cfg" "$(awk "BEGIN { print $(date +%s.%N) - $start }")" "$rc"
	sed 's/^/    /' "$log"
	if [ $rc = 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
done
echo "$passed passed, $failed failed"
[ $failed = 0 ] && [ $passed -gt 0 ]
