#!/bin/bash
# The name of host 0 in an elastic run: a host that joins tries all of its addresses, of IPv6 and of IPv4, and looks the name up again. The
# name `head` is in an /etc/hosts of this test's own, and its first address belongs to a network in which no host answers.
# shellcheck source=tests/par/start.sh
. "$(dirname "$0")/start.sh"
if [ -z "${HOST_NAME_INSIDE:-}" ]; then # networks and mounts of this test end with it
	unshare -n -m true 2>/dev/null || { skip host_name 'no network namespaces'; exit; }
	HOST_NAME_INSIDE=1 exec unshare -n -m "$0"
fi
[ -e "$GTRAIN_BUILD/lib/gtrain/gloo.so" ] || { skip host_name "built without gloo (libgloo-dev)"; exit; }
cd "$tmp" || exit 1
dead=2001:db8::99
echo "$dead head" >hosts
echo 'hosts: files' >nsswitch.conf
ip link set lo up && ip link add veth0 type veth peer name veth1 && ip link set veth0 up && ip link set veth1 up &&
	ip -6 addr add 2001:db8::1/64 dev veth0 nodad && mount --bind hosts /etc/hosts && mount --bind nsswitch.conf /etc/nsswitch.conf ||
	{ skip host_name 'no mounts, no IPv6, no veth or no iproute2'; exit; }
endless_net 32 20.0 1000 token
nodes=1:2
host() { # NUMBER ADDRESS OPTIONS...
	local number=$1 address=$2
	shift 2
	GTRAIN_TEST_MARK=$mark "$gtrain" run net.cfg -o d --nproc 1 --nnodes "$nodes" --node-rank "$number" --master-addr "$address" \
		--master-port "$port" --token-file token --no-progress "$@" >>"$number.out" 2>&1 &
	pid[number]=$!
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
	if [ "$2" = 0 ]; then pass "host_name_$1"; else fail "host_name_$1" "$3"; fi
}
host 0 127.0.0.1
await '1 host, 1 rank, from' 30
host 1 head
sleep 3
! grep -q 'joins' 0.out
check dead_address $? "$(cat 0.out 1.out)"
# the name gets a second address, which is the right one
printf '%s head\n127.0.0.1 head\n' "$dead" >hosts
[ "$(getent -A ahosts head | awk '$2 == "STREAM" { print $1 }' | tr '\n' ' ')" = "$dead 127.0.0.1 " ]
check order $? "$(getent -A ahosts head)"
begun=$EPOCHREALTIME
await 'joins; 2 hosts, 2 ranks, from' 40
check looked_up_again $? "$(cat 0.out 1.out)"
echo "# host_name: joined $(awk -v a="$begun" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }') s after the name had a right address"
kill -KILL "${pid[1]}"
await 'is lost; 1 host, 1 rank, from' 30
# a host that starts now finds the dead address first, and joins all the same
: >1.out
: >0.out
host 1 head
await 'joins; 2 hosts, 2 ranks, from' 30
check second_address $? "$(cat 0.out 1.out)"
kill -TERM "${pid[0]}"
grep -q joins 0.out || kill -TERM "${pid[1]}"
wait "${pid[0]}"
rc=$?
wait "${pid[1]}"
rc="$rc $?"
[ "$rc" = '143 143' ]
check ends $? "$rc $(cat 0.out 1.out)"

# ---- host 0 itself ----------------------------------------------------------------------------------------------------------------
# next_checkpoint: until the run has saved another checkpoint, half a minute at most
next_checkpoint() {
	local before _
	before=$(readlink d/latest)
	for _ in $(seq 600); do
		[ "$(readlink d/latest)" != "$before" ] && return
		kill -0 "${pid[0]}" 2>/dev/null || return
		sleep 0.05
	done
	return 1
}
# again NAME: kills a rank; the next attempt saves a checkpoint
again() {
	: >0.out
	# shellcheck disable=SC2046
	kill -KILL $(grep -lzs "^GTRAIN_RANK=1$" $(marked) | sed 's,/proc/\([0-9]*\)/.*,\1,')
	await 'resuming from d/step' 30 && next_checkpoint
	check "$1" $? "$(cat 0.out 1.out)"
}
# It keeps its address: it does not need a name server again.
rm -rf d
: >0.out
: >1.out
nodes=2
ip addr add 10.99.0.1/24 dev veth0
printf '10.99.0.1 own\n10.99.0.1 there\n' >hosts
host 0 own --max-restarts 5
host 1 there --max-restarts 5
next_checkpoint
echo '10.99.0.1 there' >hosts
again keeps_address
# It looks the name up again if it has lost the address.
printf '10.99.0.2 own\n10.99.0.2 there\n' >hosts
ip addr del 10.99.0.1/24 dev veth0
ip addr add 10.99.0.2/24 dev veth0
again asks_for_new_address
kill -TERM "${pid[0]}" || kill -KILL "${pid[1]}"
wait "${pid[0]}"
rc=$?
wait "${pid[1]}"
rc="$rc $?"
[ "$rc" = '143 143' ]
check own_ends $? "$rc $(cat 0.out 1.out)"
