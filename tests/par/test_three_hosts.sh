#!/bin/bash
# Three hosts of two ranks each: when a rank fails, every host ends with one line, which names the first rank, its host and its cause, in
# each mode and in elastic runs. The hosts are process namespaces, whose ranks share no memory and communicate by gloo.
# shellcheck source=tests/par/start.sh
. "$(dirname "$0")/start.sh"
[ -e "$GTRAIN_BUILD/lib/gtrain/gloo.so" ] || { skip three_hosts "built without gloo (libgloo-dev)"; exit 0; }
unshare -p -f --mount-proc true 2>/dev/null || { skip three_hosts "no process namespaces"; exit 0; }
cd "$tmp" || exit 1
(umask 077 && od -An -tx1 -N32 /dev/urandom | tr -d ' \n' >token)
cat >net.cfg <<'CFG'
schema = 1;
name = "net";
threads = 1;
data = { name = "synthetic"; samples = 512; samples_test = 64; batch = 48; classes = 10; };
model = { input = [1, 8, 8]; layers = ( { type = "flatten"; }, { type = "linear"; out = 32; }, { type = "relu"; },
	{ type = "linear"; out = 32; }, { type = "relu"; }, { type = "linear"; out = 32; }, { type = "relu"; },
	{ type = "linear"; out = 10; } ); };
train = { epochs = 1000000; eval_every_epochs = 1000000; optimizer = { type = "sgd"; lr = 0.001; }; };
parallel = { mode = "ddp"; timeout = 20.0; };
checkpoint = { dir = "unused"; every_epochs = 0; every_steps = 100; keep = 2; };
CFG
host() { # NUMBER OPTIONS...
	local n=$1
	shift
	# shellcheck disable=SC2016
	GTRAIN_TEST_MARK=$mark THREE_HOST=$n unshare -p -f --mount-proc sh -c '"$@"; exit $?' sh "$gtrain" run net.cfg -o d --nproc 2 \
		--nnodes "${nodes:-3}" --node-rank "$n" --master-addr 127.0.0.1 --master-port "$port" --token-file token --no-progress -q "$@" \
		>"$n.out" 2>&1 &
	pid[n]=$!
}
# of the processes of this test, those with this variable and value
with() { grep -lzs "^$1=$2$" $(marked) /dev/null | sed 's,/proc/\([0-9]*\)/.*,\1,'; }
launcher() { # HOST
	local p
	for p in $(with THREE_HOST "$1"); do
		if [ "/proc/$p/exe" -ef "$gtrain" ] && ! grep -qz '^GTRAIN_RANK=' "/proc/$p/environ"; then echo "$p"; fi
	done
}
# try NAME FAULT STATUSES HOST RANK SENTENCE OPTIONS...: FAULT is a command. SENTENCE (a regular expression) is the end of every host's last
# line: on HOST after RANK, on the others after "node HOST (…): " and RANK. A launcher that was killed prints nothing.
try() {
	local name=$1 fault=$2 want=$3 at=$4 rank=$5 sentence=$6 n rc='' bad='' line expect
	shift 6
	rm -rf d moved ./?.out
	for n in 0 1 2; do host $n "$@"; done
	wait_for [ -e d/latest ]
	wait_for met 1.out 2.out
	if ! eval "$fault"; then
		bad='the fault could not be made; '
		# shellcheck disable=SC2046
		kill -KILL $(marked | sed 's,/proc/\([0-9]*\)/.*,\1,')
	fi
	for n in 0 1 2; do
		wait "${pid[n]}"
		rc+="$? "
	done
	[ "$rc" = "$want " ] || bad+="statuses $rc, expected $want; "
	for n in 0 1 2; do
		[ "$name.$n" != "launcher_killed.$at" ] || continue
		line=$(tail -n 1 $n.out)
		expect="^gtrain: node $at \\(.+\\): $rank$sentence"
		[ $n != "$at" ] || expect="^gtrain: $rank$sentence"
		[[ $line =~ $expect ]] || bad+="host $n: $line; "
		[ "$(grep -v '^gtrain: warning: log.command' $n.out | grep -c '^gtrain: ')" = 1 ] || bad+="more than one line: $(cat $n.out)"
	done
	[ -z "$(left)" ] || bad+="left behind: $(left)"
	if [ -z "$bad" ]; then pass "three_hosts_$name"; else fail "three_hosts_$name" "$bad"; fi
}
killed='was killed by signal 9 \(Killed\) at step [0-9]+'
# shellcheck disable=SC2016
for mode in ddp 'zero -s parallel.stage=2' 'pipe -s parallel.schedule=1f1b'; do
	# shellcheck disable=SC2086
	try "killed_${mode%% *}" 'kill -KILL $(with GTRAIN_RANK 3)' '75 137 75' 1 'rank 3 ' "$killed" -s parallel.mode=$mode
done
# shellcheck disable=SC2016
try crashed 'kill -SEGV $(with GTRAIN_RANK 4)' '75 75 139' 2 'rank 4 ' 'was killed by signal 11'
# rank 0 cannot write a checkpoint, and takes seconds to end, while the others have long lost it
no_directory='d/.*: .*Not a directory'
try own_error 'mv d moved; echo >d' '74 75 75' 0 'rank 0: ' "$no_directory" -s 'log.command=sleep 3'
# shellcheck disable=SC2016
try launcher_killed 'kill -KILL $(launcher 1)' '75 137 75' 1 '' 'its launcher has ended'
# shellcheck disable=SC2016
try stopped 'kill -TERM $(launcher 2)' '143 143 143' 2 '' '.*ended by signal 15 \(Terminated\) after step [0-9]+'
# shellcheck disable=SC2016
nodes=1:3 try elastic_killed 'kill -KILL $(with GTRAIN_RANK 3)' '75 137 75' 1 'rank 3 ' "$killed"
nodes=1:3 try elastic_own_error 'mv d moved; echo >d' '74 75 75' 0 'rank 0: ' "$no_directory"
