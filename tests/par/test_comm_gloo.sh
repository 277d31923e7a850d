#!/bin/bash
# The communicator's tables (test_comm, test_comm_fault) over gloo's connections on the loopback.
set -u
if [ ! -e "$GTRAIN_BUILD/lib/gtrain/gloo.so" ]; then
	echo "skip gloo: built without it (libgloo-dev)"
	exit 0
fi
export GTRAIN_TEST_COMM=gloo
for t in test_comm test_comm_fault; do
	"$GTRAIN_BUILD/tests/par/$t" | sed -E 's/^(ok|not ok|skip) /\1 gloo_/; s/^# /# gloo: /'
	[ "${PIPESTATUS[0]}" = 0 ] || echo "not ok gloo_$t: ended with a failure"
done
