#!/bin/bash
# An elastic run under attack: 1,000 connections that say nothing, garbage on all ports, hosts with another token, and a host that joins and
# falls silent. The run goes on without a new attempt, and a host can join meanwhile.
# shellcheck source=tests/par/start.sh
. "$(dirname "$0")/start.sh"
cd "$tmp" || exit 1
endless_net 48 5.0 1000 token other
host() { # NUMBER TOKEN
	GTRAIN_TEST_MARK=$mark "$gtrain" run net.cfg -o d --nproc 1 --nnodes 1:3 --node-rank "$1" --master-addr 127.0.0.1 \
		--master-port "$port" --token-file "$2" --no-progress -q >>"$1.out" 2>&1 &
	pid[$1]=$!
}
await() { # FILE PATTERN SECONDS
	local i
	for ((i = 0; i < 20 * $3; i++)); do
		grep -q -- "$2" "$1" 2>/dev/null && return
		sleep 0.05
	done
	return 1
}
formations() { grep -c ' hosts\?, [0-9]* ranks\?, from ' 0.out; }
check() { # NAME STATUS WHAT
	if [ "$2" = 0 ]; then pass "host_attacks_$1"; else fail "host_attacks_$1" "$3"; fi
}
host 0 token
await 0.out '1 host, 1 rank, from' 30
python3 "$src/tests/par/attack_hosts.py" "$port" 12 >attack.out 2>&1 &
attack=$!
await attack.out '^silent ' 60
check silent $? "$(cat attack.out)"
host 2 other
await 2.out 'it has a different token: start all hosts with the same --token-file' 30
check other_token $? "$(cat 2.out)"
await 0.out 'claims to be host [12] has a different token and was rejected' 10 # the attack also claims to be host 1
check warns_of_token $? "$(cat 0.out) / $(cat 2.out)"
kill -KILL "${pid[2]}"
[ "$(formations)" = 1 ] && kill -0 "${pid[0]}"
check goes_on $? "$(cat 0.out)"
# a host joins during the attack
host 1 token
await 0.out 'host 1 (.*) joins; 2 hosts, 2 ranks, from the checkpoint' 30
check joins $? "$(cat 0.out 1.out)"
wait $attack
[ "$(formations)" = 2 ]
check no_more_attempts $? "$(cat 0.out)"
# A host joins and falls silent: it is not a reason for a new attempt. A host that is stopped later than a second after its start may have
# sent a further message (BEAT_S of engine/launch/membership.c), and is not silent long enough: then once more.
for _ in 1 2 3; do
	begun=$EPOCHREALTIME
	host 2 token
	sleep 0.7
	kill -STOP "${pid[2]}"
	awk -v a="$begun" -v b="$EPOCHREALTIME" 'BEGIN { exit !(b - a <= 1) }' && break
	kill -KILL "${pid[2]}"
	wait "${pid[2]}" 2>/dev/null
done
sleep 8
[ "$(formations)" = 2 ]
check silent_host $? "$(cat 0.out 2.out)"
kill -KILL "${pid[2]}"
kill -TERM "${pid[0]}"
wait "${pid[0]}"
rc=$?
wait "${pid[1]}"
rc="$rc $?"
[ "$rc" = '143 143' ]
check ends $? "$rc $(cat 0.out 1.out)"
echo "# host_attacks: $(tr '\n' ' ' <attack.out)connections, $(formations) attempts"
