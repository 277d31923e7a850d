#!/bin/bash
# An elastic run with a rank that SIGKILL does not end, as one that waits for a network file system which does not answer: host 0 treats its
# host as lost after 30 s, and goes on without it. When the rank has ended at last, the host joins again.
# Such a rank is one that a debugger holds: the kernel does not report its end to its launcher until the debugger has taken note of it.
# shellcheck source=tests/par/start.sh
. "$(dirname "$0")/start.sh"
cd "$tmp" || exit 1
command -v python3 >/dev/null || { skip stuck_rank 'no python3, which is the debugger'; exit; }
endless_net 32 5.0 500 token
host() { # NUMBER
	GTRAIN_TEST_MARK=$mark STUCK_HOST=$1 "$gtrain" run net.cfg -o d --nproc 1 --nnodes 1:2 --node-rank "$1" --master-addr 127.0.0.1 \
		--master-port "$port" --token-file token --no-progress >"$1.out" 2>&1 &
	pid[$1]=$!
}
rank_of() { # HOST
	# shellcheck disable=SC2046
	grep -lzs "^STUCK_HOST=$1$" $(marked) | sed 's,/proc/\([0-9]*\)/.*,\1,' | while read -r p; do
		! grep -qz '^GTRAIN_RANK=' "/proc/$p/environ" || echo "$p"
	done
}
await() { # PATTERN SECONDS: until host 0 has printed it
	local i
	for ((i = 0; i < 20 * $2; i++)); do
		grep -q -- "$1" 0.out && return
		sleep 0.05
	done
	return 1
}
check() { # NAME STATUS WHAT
	if [ "$2" = 0 ]; then pass "stuck_rank_$1"; else fail "stuck_rank_$1" "$3"; fi
}
host 0
host 1
await '2 hosts, 2 ranks, from' 30 && for _ in $(seq 600); do
	[ -e d/latest ] && break
	sleep 0.05
done
stuck=$(rank_of 1)
python3 - "$stuck" >debugger 2>&1 <<'END' &
import ctypes, os, sys, time
SEIZE = 0x4206
libc = ctypes.CDLL(None, use_errno=True)
failed = libc.ptrace(ctypes.c_long(SEIZE), ctypes.c_long(int(sys.argv[1])), None, None)
print(os.strerror(ctypes.get_errno()) if failed else "holds", flush=True)
time.sleep(0 if failed else 600)
END
debugger=$!
for _ in $(seq 100); do
	[ -s debugger ] && break
	sleep 0.05
done
if ! grep -q holds debugger; then
	skip stuck_rank "ptrace: $(cat debugger)"
	kill -TERM "${pid[@]}"
	wait
	exit
fi
begun=$(date +%s)
# shellcheck disable=SC2046
kill -KILL $(rank_of 0)
await '^host 1 (.*) is treated as lost: its ranks have not ended for 30 s after the attempt$' 90 &&
	await '^host 1 (.*) is lost; 1 host, 1 rank, from the checkpoint of step' 30
check is_lost $? "$(cat 0.out 1.out)"
echo "# stuck_rank: the run has gone on after $(($(date +%s) - begun)) s"
[ "$(sed -n 's/^State:\t\(.\).*/\1/p' "/proc/$stuck/status")" = Z ] && kill -0 "${pid[1]}"
check still_held $? "the rank has ended, or its launcher has"
kill -KILL "$debugger"
await '^host 1 (.*) joins; 2 hosts, 2 ranks, from the checkpoint of step' 60
check joins_again $? "$(cat 0.out 1.out)"
kill -TERM "${pid[0]}"
wait "${pid[0]}"
rc=$?
wait "${pid[1]}"
rc="$rc $?"
[ "$rc" = '143 143' ] && [ -z "$(left)" ]
check ends $? "$rc $(cat 0.out 1.out) $(left)"
