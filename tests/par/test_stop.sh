#!/bin/bash
# A user's stop is no fault: the ranks agree, save a checkpoint and end as 128+n; so do those of other hosts, whose launchers name the host
# that was stopped; nothing starts again. Two launchers on this machine are two hosts.
# shellcheck source=tests/par/start.sh
. "$(dirname "$0")/start.sh"
cd "$tmp" || exit 1
cat >ddp.cfg <<'E2'
schema = 1;
name = "ddp";
threads = 1;
data = { name = "synthetic"; batch = 30; classes = 10; samples = 320; samples_test = 64; };
model = { input = [1, 12, 12]; layers = ( { type = "flatten"; }, { name = "a"; type = "linear"; out = 40; }, { type = "relu"; },
	{ name = "b"; type = "linear"; out = 10; } ); };
train = { epochs = 1000000; eval_every_epochs = 1000000; optimizer = { type = "adam"; lr = 0.001; }; };
parallel = { mode = "ddp"; };
checkpoint = { dir = "unused"; every_epochs = 0; every_steps = 200; keep = 2; };
E2
(umask 077 && od -An -tx1 -N32 /dev/urandom | tr -d ' \n' >token)

# begin DIR ARGS...: a launcher, its process in pid[0]
begin() {
	GTRAIN_TEST_MARK=$mark timeout --foreground 60 "$gtrain" run ddp.cfg -o "$@" >"$1.0" 2>&1 &
	pid=($!)
}
# hosts DIR: two launchers, their processes in pid[]. timeout passes a signal on, with --foreground once: a second SIGINT means another
# thing.
hosts() {
	local n
	pid=()
	for n in 0 1; do
		GTRAIN_TEST_MARK=$mark timeout --foreground 60 "$gtrain" run ddp.cfg -o "$1" --nproc 1 --nnodes 2 --master-addr 127.0.0.1 \
			--master-port "$port" \
			--token-file token --max-restarts 3 --node-rank $n >"$1.$n" 2>&1 &
		pid+=($!)
	done
}
# await DIR: its first checkpoint, and that its launchers have met
await() {
	wait_for [ -e "$1/latest" ]
	[ ! -e "$1.1" ] || wait_for met "$1.1"
}
# rank N: the process of rank N
rank() {
	# shellcheck disable=SC2046
	grep -lzs "^GTRAIN_RANK=$1$" $(marked) /dev/null | sed 's,/proc/\([0-9]*\)/.*,\1,'
}
# ended NAME DIR STATUSES: both hosts, or the only one, ended so, in order, with a whole checkpoint, and nothing started again
ended() {
	local rc='' p rest
	for p in "${pid[@]}"; do
		wait "$p"
		rc="$rc${rc:+ }$?"
	done
	rest=$(left)
	if [ "$rc" != "$3" ]; then
		fail "$1" "statuses $rc, not $3: $(tail -n 3 "$2".?)"
	elif grep -q 'restart 1' "$2".?; then
		fail "$1" "started again: $(cat "$2".?)"
	elif ! "$gtrain" inspect "$2" --verify >"$2.inspect" 2>&1; then
		fail "$1" "$(cat "$2.inspect")"
	elif [ -n "$rest" ]; then
		fail "$1" "left behind: $rest"
	else
		pass "$1"
	fi
}
# named NAME FILE REGEXP
named() {
	if [ "$(tail -n 1 "$2" | grep -c "$3")" = 1 ]; then pass "$1"; else fail "$1" "no line '$3': $(cat "$2")"; fi
}

# ---- two hosts ----
for n in 0 1; do
	hosts node$n
	await node$n
	kill -INT "${pid[$n]}"
	ended interrupt_$n node$n '130 130'
	named interrupt_${n}_here node$n.$n '^gtrain: ended by signal 2 (Interrupt) after step [0-9]*$'
	named interrupt_${n}_there node$n.$((1 - n)) \
		"^gtrain: node $n (.*) was stopped by signal 2 (Interrupt): ended by signal 2 (Interrupt) after step [0-9]*$"
done
hosts term
await term
kill -TERM "${pid[1]}"
ended terminate term '143 143'
# Rank 0 prints the command that continues the run on its host.
again="--nproc 1 --nnodes 2 --master-addr 127.0.0.1 --master-port $port --token-file token --max-restarts 3"
if grep -q "^ended early .* resume term $again\` continues; the other hosts also need their --node-rank$" term.0; then
	pass how_to_continue
else
	fail how_to_continue "$(cat term.0)"
fi
hosts twice
await twice
kill -INT "${pid[0]}"
kill -INT "${pid[0]}"
ended interrupt_twice twice '130 130'

# In the back-off before a restart: nobody is connected then, and the other host would wait for ranks that do not come.
hosts pause
await pause
kill -KILL "$(rank 1)"
both_pause() { [ "$(cat pause.? | grep -c 'restart 1 of 3')" = 2 ]; }
wait_for both_pause
kill -TERM "${pid[1]}"
wait "${pid[0]}"
rc=$?
wait "${pid[1]}"
rc="$rc $?"
if [ "$rc" = "143 143" ] && grep -q '^gtrain: node 1 (.*) was stopped by signal 15' pause.0; then
	pass in_pause
else
	fail in_pause "statuses $rc: $(tail -n 2 pause.?)"
fi

# ---- one host ----
# A rank that gets the signal itself, as from a scheduler that signals every process: the ranks agree all the same.
begin rank --nproc 2 --max-restarts 2
await rank
kill -TERM "$(rank 1)"
ended rank_terminated rank 143
named rank_terminated_why rank.0 '^gtrain: ended by signal 15 (Terminated) after step [0-9]*$'

# Nobody reads standard output any more: the run ends by a checkpoint and as SIGPIPE would end it, as a single process does, and is not
# started again.
for n in 1 2; do
	m='-s parallel.mode=single'
	[ $n = 2 ] && m='--nproc 2 --max-restarts 2'
	# shellcheck disable=SC2086
	timeout 60 "$gtrain" run ddp.cfg -o pipe$n --json $m 2>pipe$n.0 | head -c 10 >pipe$n.out
	rc=${PIPESTATUS[0]}
	if [ "$rc" != 141 ] || [ "$(head -c 10 pipe$n.out)" != '{"event":"' ] || [ -s pipe$n.0 ]; then
		fail pipe_$n "status $rc: $(cat pipe$n.0)"
	elif ! "$gtrain" inspect pipe$n --verify >pipe.inspect 2>&1; then
		fail pipe_$n "$(cat pipe.inspect)"
	else
		pass pipe_$n
	fi
done
