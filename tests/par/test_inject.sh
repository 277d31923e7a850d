#!/bin/bash
# Faults in many ranks. tests/par/tool_fault.c kills, crashes, stops or slows one rank of a run, from the connection of the ranks to the
# last checkpoint, in ddp, zero and a pipeline with copies. After each fault: the exit status is that of the fault; standard error has one
# sentence, which names the rank, its step and its phase; a slowed rank does not end the run; no process, shared memory or temporary file is
# left; the newest checkpoint verifies; and the resumed run, on two ranks or on all, ends with the bits of one rank.
#   INJECT        number of faults (12)
#   INJECT_RANKS  ranks of a run (8): an even divisor of 64, the number of shards
#   INJECT_SEED   another choice of ranks, modes, steps and moments
#   INJECT_LOG    a file that gets one line for each fault
# The table in tests/bench/RESULTS.md: INJECT=300 INJECT_RANKS=64 TEST_TIMEOUT=3600 tests/run build tests/par/test_inject.sh
# Goal: on average at most 1 s from the fault to the end of the last process; for a stopped rank, from the end of parallel.timeout.
# shellcheck source=tests/par/par.sh
. "$(dirname "$0")/par.sh"
tool=${GTRAIN_BUILD:-$src/build}/tests/par/tool_fault
cfg=$nets/inject.cfg
count=${INJECT:-12}
ranks=${INJECT_RANKS:-8}
RANDOM=${INJECT_SEED:-20261128}
log=${INJECT_LOG:-/dev/null}
timeout=4 # of a run in which a rank is stopped: seconds, longer than a busy machine keeps a rank from running
last=40   # steps of the run
chunks_of_pipe=2
faults=(kill segv stop kill slow segv kill) # the two lengths have no common divisor: every fault meets every phase
phases=(connecting reading first training evaluating saving)
modes=(ddp zero1 zero2 zero3 "1f1b*$((ranks / 2))")
injected=0 bad=0 missed=0
mkdir "$tmp/scratch"
export TMPDIR=$tmp/scratch
: >"$tmp/begun"

digest() { cat "$1/step-000000$last"/{model,optimizer}.safetensors 2>/dev/null | sha256sum; }
field() { [[ "$told " =~ \ $1=(\"([^\"]*)\"|[^\ ]*)\  ]] && echo "${BASH_REMATCH[2]:-${BASH_REMATCH[1]#\"\"}}"; }
wrong() {
	echo "not ok inject $name: $1"
	bad=$((bad + 1))
}

# inject FAULT PHASE RANK STEP: the tool's line in $told, standard error in $tmp/err. Returns 1 if the moment never came.
inject() {
	local follow=() words=$2 args=(-s parallel.timeout=60)
	case $2 in
	connecting | reading | first) follow=(-t) ;; # they are shorter than a look at the board
	esac
	[ "$2" != reading ] || words='reading data and planning'
	[ "$1" != stop ] || args=(-s "parallel.timeout=$timeout")
	rm -rf "$tmp/run"
	told=$("$tool" -p "$words" "${follow[@]}" -r "$3" -k "$4" -d $((RANDOM % (60 * ranks))) "$1" \
		"$gtrain" run -q --no-progress "$cfg" -o "$tmp/run" "${args[@]}" "${mode[@]}" 2>"$tmp/err" </dev/null | tail -n 1)
	case $told in
	fault=none* | *'phase="" step='$last' '*) return 1 ;; # the rank was about to end, or had ended
	fault=*) return 0 ;;
	esac
	wrong "$(tail -n 1 "$tmp/err")"
	return 1
}

# check_end FAULT RANK: the exit status and the sentence
check_end() {
	local status want what where phase step
	status=$(field status) phase=$(field phase) step=$(field step)
	where="at step $step"
	[ "$step" -ge 0 ] || where='before step 0'
	[ -z "$phase" ] || where="$where ($phase)"
	case $1 in
	kill) want=137 what='was killed by signal 9 (Killed)' ;;
	segv) want=139 what='was killed by signal 11 (Segmentation fault)' ;;
	stop) want=75 what='is stopped (a SIGSTOP, or a debugger)' ;;
	slow) want=0 what= ;;
	esac
	[ "$status" = $want ] || wrong "status $status, expected $want: $told $(tail -n 1 "$tmp/err")"
	if [ "$1" = slow ]; then
		[ ! -s "$tmp/err" ] || wrong "the slowed run says: $(cat "$tmp/err")"
		return
	fi
	[ "$(wc -l <"$tmp/err")" = 1 ] || wrong "not one sentence: $(cat "$tmp/err")"
	case $(cat "$tmp/err") in
	"gtrain: rank $2 $what"*"$where") ;;
	*) wrong "expected \"rank $2 $what … $where\", got: $(cat "$tmp/err")" ;;
	esac
}

# check_rest FAULT NUMBER: what is left, and the resumed run
check_rest() {
	local on=(-s parallel.mode=ddp --nproc 2) again
	[ "$(field left)" = 0 ] || wrong "processes are left: $told"
	[ -z "$(ls -A "$tmp/scratch")" ] || wrong "temporary files are left: $(ls -A "$tmp/scratch")"
	if [ "$1" != slow ]; then
		[ $(($2 % 8)) != 3 ] || on=("${mode[@]}")
		again=(run "$cfg" -o "$tmp/run") # the rank was lost before the first checkpoint
		if ls -d "$tmp"/run/step-???????? >/dev/null 2>&1; then
			"$gtrain" inspect --verify "$tmp/run" >/dev/null 2>"$tmp/err" || wrong "the newest checkpoint: $(tail -n 1 "$tmp/err")"
			again=(resume "$tmp/run")
		fi
		"$gtrain" "${again[@]}" -q --no-progress -s parallel.timeout=60 "${on[@]}" >/dev/null 2>"$tmp/err" </dev/null ||
			wrong "resumed: $(tail -n 1 "$tmp/err")"
	fi
	[ "$(digest "$tmp/run")" = "$want_digest" ] || wrong "it ends with other bits than one rank"
	[ -z "$(find "$tmp/run" -name '*.tmp-*' -o -name '*.old-*')" ] || wrong "left behind: $(cd "$tmp/run" && echo *.tmp-* *.old-*)"
}

if ! train whole "$cfg"; then
	echo "not ok inject: the undisturbed run: $why"
	exit
fi
want_digest=$(digest "$tmp/whole")
for ((i = 0; i < count; i++)); do
	fault=${faults[i % ${#faults[@]}]} phase=${phases[i % ${#phases[@]}]} word=${modes[RANDOM % ${#modes[@]}]}
	rank=$((RANDOM % ranks)) before=$bad name="$i $word $phase $fault"
	mode_args "$word" "$ranks"
	for try in 1 2 3 4 5 6; do
		# evaluations and checkpoints follow every tenth step
		step=-1
		case $phase in training | evaluating | saving) step=$((1 + RANDOM % (last - 10))) ;; esac
		inject "$fault" "$phase" "$rank" "$step" && break
		missed=$((missed + 1))
		[ $try != 6 ] || wrong "the moment never came in rank $rank"
	done
	[ $bad = "$before" ] || continue
	injected=$((injected + 1))
	check_end "$fault" "$rank"
	seconds=$(field seconds)
	[ "$fault" != stop ] || seconds=$(awk -v s="$seconds" -v t=$timeout 'BEGIN { printf "%.3f", (s > t ? s - t : 0) }')
	[ "$fault" = slow ] || echo "$seconds" >>"$tmp/ended"
	echo "$name rank=$rank $told ended=$seconds | $(head -n 1 "$tmp/err")" >>"$log"
	echo "$fault" >>"$tmp/faults"
	check_rest "$fault" "$i"
	[ $bad != "$before" ] || echo "ok inject $name"
done

name=all
left=$(find /dev/shm -maxdepth 1 -name '*gtrain*' ! -type d -newer "$tmp/begun" 2>/dev/null | wc -l)
[ "$left" = 0 ] || wrong "/dev/shm has $left files more than before"
[ $injected = "$count" ] || wrong "only $injected of $count faults met their moment"
sort -n "$tmp/ended" | awk -v ranks="$ranks" '{ v[NR] = $1; sum += $1 }
	END { printf "# inject: %d ranks: from a fault to the end of the last process, %d times: mean %.3f s, median %.3f s, slowest %.3f s\n",
		ranks, NR, sum / NR, v[int((NR + 1) / 2)], v[NR]; exit sum / NR > 1 }' || wrong 'the mean is above the goal of 1 s'
kinds=$(sort "$tmp/faults" | uniq -c | awk '{ printf "%s%s %d", s, $2, $1; s = ", " }')
echo "# sweep faults in $ranks ranks: $injected points, $bad failures ($kinds); $missed moments were missed and tried again"
[ $bad != 0 ] || echo 'ok inject nothing left'
