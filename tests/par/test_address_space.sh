#!/bin/bash
# What ranks need of the machine is named where it is missing: address space for all of its memory, and pidfd_open (Linux 5.3).
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/../cli/cli.sh"
tiny_config
cd "$tmp" || exit 1
ranks=(run tiny.cfg --device cpu --nproc 2 -s parallel.mode=ddp -q --no-progress -o ranks)

run "${ranks[@]}"
if [ "$rc" = 0 ]; then pass two_ranks_train; else fail two_ranks_train "status $rc: $(tail -n 1 "$tmp/err")"; fi

# A sanitizer's own mappings are larger than any limit.
kib=$(awk '/^MemTotal:/ { print $2 }' /proc/meminfo)
if grep -aq __asan_init "$gtrain"; then
	skip limit_of_address_space 'the address sanitizer maps more'
elif (ulimit -v $((kib / 2 + 500000)) && "$gtrain" run tiny.cfg --device cpu -q --no-progress -o one >"$tmp/out" 2>"$tmp/err"); then
	pass one_rank_needs_no_reserve
	rm -r ranks
	(ulimit -v $((kib / 2 + 500000)) && "$gtrain" "${ranks[@]}" >"$tmp/out" 2>"$tmp/err")
	rc=$?
	if [ $rc != 0 ] && grep -q 'cannot reserve [0-9]* bytes of address space .*ulimit -v unlimited' \
		"$tmp/err"; then pass limit_of_address_space
	else fail limit_of_address_space "status $rc: $(tail -n 1 "$tmp/err")"; fi
else
	fail one_rank_needs_no_reserve "$(tail -n 1 "$tmp/err")"
fi

# strace stands for an older kernel.
if ! strace -qq -e trace=none true 2>/dev/null; then
	skip pidfd_open_missing 'strace cannot trace here'
	exit 0
fi
rm -rf ranks
strace -f -qq -o /dev/null -e trace=pidfd_open -e inject=pidfd_open:error=ENOSYS "$gtrain" "${ranks[@]}" >"$tmp/out" 2>"$tmp/err"
rc=$?
if [ $rc != 0 ] && grep -q 'cannot watch the process of rank [01]: pidfd_open: Function not implemented (ranks need Linux 5.3 or later)' \
	"$tmp/err"; then
	pass pidfd_open_missing
else
	fail pidfd_open_missing "status $rc: $(tail -n 1 "$tmp/err")"
fi
