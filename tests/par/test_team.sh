#!/bin/bash
# Ranks become a team, by every way of starting them, and none of them waits for one that will not come.
# shellcheck source=tests/par/start.sh
. "$(dirname "$0")/start.sh"
cd "$tmp" || exit 1

# launched NAME CODE TEXT ARGS...: tool_team's own launcher ends with CODE and prints TEXT, and nothing is left.
launched() {
	local name=$1 code=$2 text=$3 rc rest
	shift 3
	start "$tool" "$@" >"$name.out" 2>&1
	rc=$?
	rest=$(left)
	if [ $rc != "$code" ]; then
		fail "$name" "ended with $rc, not $code: $(cat "$name.out")"
	elif ! grep -qE -- "$text" "$name.out"; then
		fail "$name" "no '$text': $(cat "$name.out")"
	elif [ -n "$rest" ]; then
		fail "$name" "left behind: $rest"
	else
		pass "$name"
	fi
}

# exchanges: what a start waits for on a slow network. Everything is said in the one in which the ranks meet.
for n in 1 2 3 5; do
	launched "launch_$n" 0 "^team how=gtrain world=$n sum=$((10 * n * (n + 1) / 2)) comm=$([ $n = 1 ] && echo none exchanges=0 ||
		echo shm exchanges=1) " -n $n
done
# A rank deaf to SIGTERM waits in a collective: the launcher's word reaches it there, before the grace is over and SIGKILL comes.
launched killed 137 "^why rank 1 was killed by signal 9 \(Killed\) at step 3" -n 3 '*:deaf' 1:kill
launched crashed 139 "^why rank 2 was killed by signal 11 \(Segmentation fault\) at step 3" -n 3 2:segv
launched left_early 74 "^why rank 1: its disk is full" -n 3 '*:deaf' 1:leave
launched stopped 75 "^why rank 1 is stopped .*made no progress for [0-9.]+ s at step 3" -n 3 -t 1 -s 1000000 '*:deaf' 1:stop
launched hangs 75 "^why rank 2 made no progress for [0-9.]+ s at step 3 \(evaluating\)" -n 3 -t 1 -s 1000000 '*:deaf' 2:hang
slow=$(sed -n 's/.*end_s=//p' killed.out left_early.out stopped.out hangs.out | awk '$1 > m { m = $1 } END { print m }')
echo "# from the failure to the last rank's end: at most $slow s"
# SIGKILL comes after 1.5 s; a rank that only that ended would show as more. The rest is for a loaded machine.
if awk "BEGIN { exit !($slow < 1.4) }"; then pass nobody_waits_in_vain; else fail nobody_waits_in_vain "$slow s"; fi
launched other_config 78 "rank 2 and rank 0 differ in their config: [0-9a-f]{32} instead of [0-9a-f]{32}" -n 3 -c 2
launched other_start 78 "rank 1 and rank 0 differ in their start: from the checkpoint of step 5 instead of from the beginning" -n 3 -d 1
launched other_program 78 "rank 1 and rank 0 differ in their program" -n 3 '*:program'

GTRAIN_TEST_MARK=$mark "$tool" -n 3 -s 100000000 -m met >out 2>&1 &
pid=$!
wait_for [ -e met ]
kill -KILL $pid
wait $pid 2>/dev/null
rest=$(left)
if [ -z "$rest" ]; then pass launcher_killed; else fail launcher_killed "left behind: $rest"; fi

# ---- ranks that something else started ----
for how in torchrun openmpi mpich slurm; do
	for n in 2 3; do
		join $how $n
		case $how in openmpi) word='Open MPI' ;; mpich) word=MPICH ;; slurm) word=Slurm ;; *) word=torchrun ;; esac
		want="team how=$word world=$n sum=$((5 * n * (n + 1))) comm=shm exchanges=1 "
		rest=$(left)
		if ! grep -q "^$want" rank.0 || [ -n "$rest" ] || [[ $codes == *[!0\ ]* ]]; then
			fail "${how}_$n" "statuses $codes, $(cat rank.*), left: $rest"
		else
			pass "${how}_$n"
		fi
	done
done
join slurm 2
threads=$(sed -n 's/.*threads=//p' rank.0)
cores=$(($(nproc) / 2))
if [ "$threads" -ge 1 ] && [ "$threads" -le "$((cores > 1 ? cores : 1))" ]; then
	pass cores_are_shared_out
else
	fail cores_are_shared_out "threads=$threads of $(nproc)"
fi
OMP_NUM_THREADS=3 join slurm 2
if grep -q 'threads=0$' rank.0; then pass omp_num_threads_wins; else fail omp_num_threads_wins "$(cat rank.0)"; fi

# Two starts at the same time, alike but for the process that made them, do not mix.
for job in 1 2 3; do
	(
		mkdir -p job$job && tmp=$tmp/job$job && join mpich 2 -s $((10 * job))
		echo "$codes" >"$tmp/codes"
	) &
done
wait
if grep -q "sum=30 " job1/rank.0 && grep -q "sum=60 " job2/rank.0 && grep -q "sum=90 " job3/rank.0; then
	pass jobs_side_by_side
else
	fail jobs_side_by_side "$(cat job?/rank.* job?/codes)"
fi

join mpich 3 1:kill
if grep -q "rank 1 has died" rank.0 && grep -q "rank 1 has died" rank.2 && [ "$codes" = "75 137 75 " ]; then
	pass joined_rank_dies
else
	fail joined_rank_dies "statuses $codes: $(cat rank.0 rank.2)"
fi
ABSENT=2 join slurm 3 -t 1
if grep -q "rank 2 of the 3 ranks that Slurm started did not reach rank 0 in time" rank.0 && [ "$codes" = "75 75 " ]; then
	pass joined_rank_absent
else
	fail joined_rank_absent "statuses $codes: $(cat rank.0 rank.1)"
fi
ABSENT=0 join slurm 3 -t 1
if grep -q "rank 1 did not reach rank 0 of the 3 ranks that Slurm started: rank 0 does not listen" rank.1 && [ "$codes" = "75 75 " ]; then
	pass rank_0_absent
else
	fail rank_0_absent "statuses $codes: $(cat rank.1)"
fi

# ---- another user has taken the name ----
# Ranks that a script starts have no secret in common: their name can be told, and who holds it is named at once. torchrun's have its
# process.
if [ "$(id -u)" = 0 ] && command -v python3 >/dev/null; then
	python3 "$src/tests/par/squat.py" "$(printf 'torchrun 0 2 127.0.0.1 %d 0' "$port")" 65534 >squat.out 2>&1 &
	squat=$!
	wait_for grep -qs ready squat.out
	join torchrun 2
	why="process $squat of user 65534 occupies the socket name with which the ranks that torchrun started find each other:"
	why="$why end the process, or let gtrain start the ranks"
	if [ "$codes" = "75 75 " ] && grep -q "rank 0: $why" rank.0 && grep -q "rank 1: $why" rank.1; then
		pass squatted
	else
		fail squatted "statuses $codes: $(cat squat.out rank.0 rank.1)"
	fi
	TORCHELASTIC_RUN_ID=none join torchrun 2
	if [ "$codes" = "0 0 " ] && grep -q "^team how=torchrun world=2 " rank.0; then
		pass not_squatted
	else
		fail not_squatted "statuses $codes: $(cat rank.0 rank.1)"
	fi
	kill $squat
	wait $squat 2>/dev/null
else
	skip squatted "needs root, for a process of another user, and python3"
fi

# ---- several hosts ----
(umask 077 && od -An -tx1 -N32 /dev/urandom | tr -d ' \n' >token && od -An -tx1 -N32 /dev/urandom | tr -d ' \n' >other && cp token open)
chmod 644 open
# alone HOST TOKEN ARGS...: what a rank of its own on one of two hosts says
alone() {
	local rank=$1
	shift
	RANK=$rank WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port start "$tool" "$@"
}
out=$(alone 0)
rc=$? needs='ranks on several hosts need the same token: expected --token-file'
if [ $rc = 64 ] && [[ $out == *"torchrun started 2 ranks, 1 of them on this host, and $needs"* ]]; then
	pass no_token
else
	fail no_token "$out"
fi
out=$(alone 0 -f open)
if [ $? = 64 ] && [[ $out == *"no other user can read"* ]]; then pass open_token; else fail open_token "$out"; fi
alone 1 -f token >host1 2>&1 &
alone 0 -f token >host0 2>&1
wait $!
if grep -q "^team how=torchrun world=2 sum=30" host0; then pass token_by_file; else fail token_by_file "$(cat host0 host1)"; fi

# hosts NAME ARGS...: two launchers with two ranks each, as on two hosts. Output in host0, host1, statuses in $codes.
hosts() {
	start "$tool" -n 2 -N 2 -R 1 -p "$port" -f "${OTHER:-token}" "$@" >host1 2>&1 &
	start "$tool" -n 2 -N 2 -R 0 -p "$port" -f token "$@" >host0 2>&1
	codes=$?
	wait $!
	codes="$codes $?"
}
hosts
rest=$(left)
if grep -q "^team how=gtrain world=4 sum=100 comm=shm exchanges=1 " host0 && [ "$codes" = "0 0" ] && [ -z "$rest" ]; then
	pass two_launchers
else
	fail two_launchers "statuses $codes, $(cat host0 host1), left: $rest"
fi
# said NAME STATUSES HOST0 HOST1: both hosts tell the same cause, and leave nothing
said() {
	local rest
	rest=$(left)
	if grep -Eq "^why $3" host0 && grep -Eq "^why $4" host1 && [ "$codes" = "$2" ] && [ -z "$rest" ]; then
		pass "$1"
	else
		fail "$1" "statuses $codes, $(tr "\n" "|" <host0) / $(tr "\n" "|" <host1), left: $rest"
	fi
}
hosts 3:kill
said other_host_fails "75 137" "node 1 \($(hostname)\): rank 3 was killed by signal 9 \(Killed\) at step 3$" \
	"rank 3 was killed by signal 9 \(Killed\) at step 3$"
hosts 0:leave
said first_host_fails "74 75" "rank 0: its disk is full$" "node 0 \($(hostname)\): rank 0: its disk is full$"
hosts 1:nan 3:hang # what cannot pass is the status of every host: none of them is to start again
said diverged "3 3" "rank 1: its loss is not finite$" "node 0 \($(hostname)\): rank 1: its loss is not finite$"
hosts -t 1 '*:deaf' 2:stop
said other_host_hangs "75 75" "node 1 \($(hostname)\): rank 2 is stopped .*made no progress for [0-9.]+ s at step 3$" \
	"rank 2 is stopped .*made no progress for [0-9.]+ s at step 3$"
# Before the ranks meet, the others would wait for minutes.
hosts -e 3
said other_host_never_starts "66 66" "node 1 \($(hostname)\): rank 3: its data is missing$" "rank 3: its data is missing$"
GTRAIN_TEST_MARK=$mark timeout 60 "$tool" -n 2 -N 2 -R 0 -p "$port" -f token -s 100000000 -m hosts_met >host0 2>&1 &
pid=$!
GTRAIN_TEST_MARK=$mark "$tool" -n 2 -N 2 -R 1 -p "$port" -f token -s 100000000 >host1 2>&1 &
gone=$!
wait_for [ -e hosts_met ]
wait_for met host1
kill -KILL $gone
wait $gone 2>/dev/null
wait $pid
codes="$? 137"
echo "why killed" >host1
said other_launcher_killed "75 137" "node 1 \($(hostname)\): its launcher has ended$" ""
# Garbage, silence and a wrong token at every port where a launcher may listen.
start "$tool" -n 1 -N 2 -R 0 -p "$port" -f token -s 20000 >host0 2>&1 &
pid=$!
start "$tool" -n 1 -N 2 -R 1 -p "$port" -f other -s 20000 -t 1 >stranger 2>&1 &
for ((k = 0; k < 16; k++)); do
	exec {fd}<>"/dev/tcp/127.0.0.1/$((port + k))" && head -c 5000 /dev/urandom >&"$fd"
done 2>/dev/null
start "$tool" -n 1 -N 2 -R 1 -p "$port" -f token -s 20000 >host1 2>&1
codes=$?
wait $pid
codes="$? $codes"
if grep -q "^team how=gtrain world=2" host0 && [ "$codes" = "0 0" ]; then
	pass strangers
else
	fail strangers "statuses $codes, $(cat host0 host1)"
fi
if listening | grep -q "$(printf ':%04X' "$port")"; then fail port_is_free "$port is held"; else pass port_is_free; fi
