#!/bin/bash
# -h of gtrain and of every command: stdout, status 0, and what the tables promise.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"

gives version 0 out 'gtrain 0.' --version
gives help 0 out 'usage: gtrain COMMAND' -h
gives help_long 0 out 'usage: gtrain COMMAND' --help
gives help_command 0 out 'usage: gtrain run' help run
gives help_after_operand 0 out 'usage: gtrain run' run x.cfg -h
gives help_unknown 64 err "did you mean 'run'?" help rum

n=0
for c in $(commands); do
	gives "help_$c" 0 out "usage: gtrain $c" "$c" -h
	[ -s "$tmp/err" ] && fail "help_${c}_quiet" "-h wrote to stderr"
	long=$(awk 'length > 85' "$tmp/out" | head -n 1)
	[ -n "$long" ] && fail "help_${c}_width" "a line of more than 85 columns: $long"
	n=$((n + 1))
done
if [ "$n" -ge 12 ]; then pass every_command; else fail every_command "only $n commands in the help"; fi
