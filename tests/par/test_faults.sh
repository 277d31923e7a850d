#!/bin/bash
# Faults in a real run of four ranks (tests/par/tool_fault.c hits them): a rank is killed, crashes, exits or is stopped; in every phase and
# mode. What must come of it: the run ends with the status of that fault and the rank is named, or it starts again and ends well; no process
# is left; what is resumed ends with the bits of the run that nobody disturbed; no temporary folder is left behind then. And the launcher is
# killed, interrupted, terminated. The ranks of dp are threads of one process, which a launcher watches only where it may start again.
# FAULTS=full: every phase x fault x mode, ended and restarted (FAULTS_MODES: only these modes); else a part of them. FAULTS_SEED: another
# choice of ranks, steps and moments.
#
# Goals: half of the ends within 2 s of the fault; of a stopped rank within parallel.timeout + 1 s. The figures have the slowest.
# shellcheck source=tests/par/par.sh
. "$(dirname "$0")/par.sh"
tool=${GTRAIN_BUILD:-$src/build}/tests/par/tool_fault
cfg=$nets/faults.cfg
RANDOM=${FAULTS_SEED:-20240611}
timeout=4 # of a stopped rank: seconds, longer than a busy machine keeps a rank from running
injected=0 bad=0 missed=0
: >"$tmp/ended"
: >"$tmp/stopped"
: >"$tmp/again"
declare -A want

digest() { cat "$1"/step-00000110/{model,optimizer}.safetensors 2>/dev/null | sha256sum; }
wrong() {
	echo "not ok faults $1: $2"
	bad=$((bad + 1))
}
field() { sed -n "s/.*$1=\"\\{0,1\\}\\([^\" ]*\\).*/\\1/p" "$tmp/told"; }

# undisturbed WORD ACC: its digest is kept
undisturbed() {
	[ -z "${want[$1-$2]:-}" ] || return 0
	mode_args "$1" 4
	expect=$(refusal "$1" faults)
	train whole "$cfg" -s "train.accumulate=$2" "${mode[@]}"
	case $? in
	1)
		refused faults "$1"
		return 1
		;;
	2)
		wrong "$1" "the undisturbed run: $why"
		return 1
		;;
	esac
	want[$1-$2]=$(digest "$tmp/whole")
}

# resumed NAME WORD ACC: goes on with $tmp/run, or begins it where nothing was committed
resumed() {
	mode_args "$2" 4
	[ "$2" = dp ] || mode+=(-s parallel.timeout=60) # the checkpoint's config has that of the fault
	if ls -d "$tmp"/run/step-???????? >/dev/null 2>&1; then
		"$gtrain" inspect --verify "$tmp/run" >/dev/null 2>"$tmp/err" || wrong "$1" "what is left does not verify: $(tail -n 1 "$tmp/err")"
		"$gtrain" resume -q --no-progress "$tmp/run" "${mode[@]}" >/dev/null 2>"$tmp/err" </dev/null
	else
		"$gtrain" run -q --no-progress "$cfg" -o "$tmp/run" -s "train.accumulate=$3" "${mode[@]}" >/dev/null 2>"$tmp/err" </dev/null
	fi || wrong "$1" "resumed: $(tail -n 1 "$tmp/err")"
	[ "$(digest "$tmp/run")" = "${want[$2-$3]}" ] || wrong "$1" "resumed, it ends with other bits than undisturbed"
	[ -z "$(find "$tmp/run" -name '*.tmp-*' -o -name '*.old-*')" ] || wrong "$1" "left behind: $(cd "$tmp/run" && echo *.tmp-* *.old-*)"
}

# hit NAME PHASE FAULT RANK STEP RESTARTS WORD ACC: the line of tool_fault in $tmp/told; 1: the moment never came
hit() {
	local phase=$2 fault=$3 rank=$4 step=$5 restarts=$6 most=1500 try where at
	local args=(-s "train.accumulate=$8")
	[ "$7" = dp ] || args+=(-s "parallel.timeout=$timeout")
	mode_args "$7" 4
	[ "$restarts" = 0 ] || args+=(--max-restarts "$restarts")
	case $phase in
	start) where=start most=30000 ;; # microseconds
	loading | evaluating | saving) where=$phase ;;
	*) where=training ;;
	esac
	for try in {1..16}; do
		rm -rf "$tmp/run"
		at=$((RANDOM % most))
		[ "$try" -lt 3 ] || at=0
		# Every try aims at another step: after some, the evaluation or the checkpoint begins at once.
		[ "$try" = 1 ] || step=$((1 + RANDOM % 95))
		aimed=$step
		if [ "$phase" = loading ]; then
			cp -r "$tmp/stage" "$tmp/run"
			"$tool" -t -p "$where" -r "$rank" "$fault" "$gtrain" resume -q --no-progress --from 75 "${args[@]}" "${mode[@]}" "$tmp/run" \
				>"$tmp/told" 2>"$tmp/err" </dev/null
		else
			"$tool" -p "$where" -r "$rank" -k "$step" -d $at "$fault" "$gtrain" run -q --no-progress "$cfg" -o "$tmp/run" "${args[@]}" \
				"${mode[@]}" >"$tmp/told" 2>"$tmp/err" </dev/null
		fi
		case $? in
		0) case $phase-$(field phase) in
			evaluating-evaluating | saving-saving | loading-loading | training- | accumulation- | start-*) return 0 ;;
			esac ;;
		3) ;;
		*)
			wrong "$1" "$(tail -n 1 "$tmp/err")"
			return 1
			;;
		esac
		missed=$((missed + 1))
	done
	wrong "$1" "rank $rank was never seen $phase: $(cat "$tmp/told")"
	return 1
}

# rank_fault WORD PHASE FAULT RESTARTS
rank_fault() {
	if [ "$1" = dp ]; then
		[ "$4" = 1 ] && [ "$3" != stop ] || return # nobody watches, or nobody has a time limit
	fi
	local rank=$((RANDOM % 4)) step=$((1 + RANDOM % 95)) acc=1 name=$1-$2-$3-$4 status before=$bad
	if [ "$3" = exit ] && [ "$(uname -m)" != x86_64 ]; then
		echo "skip faults $name: tool_fault makes a rank call exit on x86-64 only"
		return
	fi
	[ "$2" != accumulation ] || acc=4
	[ "$1" != dp ] || rank=0
	undisturbed "$1" $acc || return
	if [ "$2" = loading ]; then
		rm -rf "$tmp/stage"
		mode_args "$1" 4
		"$gtrain" run -q --no-progress "$cfg" -o "$tmp/stage" "${mode[@]}" >/dev/null 2>&1 </dev/null
	fi
	hit "$name" "$2" "$3" $rank $step "$4" "$1" $acc || return
	injected=$((injected + 1))
	status=$(field status)
	[ "$(field left)" = 0 ] || wrong "$name" "processes are left: $(cat "$tmp/told")"
	if [ "$4" = 0 ]; then
		case $3 in kill) [ "$status" = 137 ] ;; segv) [ "$status" = 139 ] ;; exit) [ "$status" = 74 ] ;; stop) [ "$status" = 75 ] ;; esac ||
			wrong "$name" "status $status: $(cat "$tmp/told") $(tail -n 1 "$tmp/err")"
		grep -q "rank $rank " "$tmp/err" || wrong "$name" "rank $rank is not named: $(tail -n 1 "$tmp/err")"
		field seconds >>"$tmp/$([ "$3" = stop ] && echo stopped || echo ended)"
		resumed "$name" "$1" $acc
	else
		[ "$status" = 0 ] || wrong "$name" "started again, it ended with $status: $(tail -n 1 "$tmp/err")"
		[ "$(digest "$tmp/run")" = "${want[$1-$acc]}" ] || wrong "$name" "started again, it ends with other bits than undisturbed"
		[ "$3" = stop ] || field again >>"$tmp/again"
	fi
	[ $bad != "$before" ] || echo "ok faults $name"
}

# launcher_fault WORD FAULT STATUS
launcher_fault() {
	local name=$1-$2 before=$bad status n step=$((5 + RANDOM % 60)) restarts=0
	[ "$1" != dp ] || restarts=1
	undisturbed "$1" 1 || return
	hit "$name" training "$2" 0 $step $restarts "$1" 1 || return
	injected=$((injected + 1))
	status=$(field status)
	[ "$status" = "$3" ] || wrong "$name" "status $status, not $3: $(cat "$tmp/told") $(tail -n 1 "$tmp/err")"
	[ "$(field left)" = 0 ] || wrong "$name" "processes are left: $(cat "$tmp/told")"
	field seconds >>"$tmp/ended"
	case $2 in int | term | term2) # every rank ended in order: a checkpoint of a step between the periodic ones
		n=$(basename "$(readlink "$tmp/run/latest")")
		n=$((10#${n#step-}))
		if [ $n -lt "$aimed" ] || [ $n -ge 110 ]; then wrong "$name" "the checkpoint is of step $n, and the signal came at step $aimed"; fi
		;;
	esac
	resumed "$name" "$1" 1
	[ $bad != "$before" ] || echo "ok faults $name"
}

: >"$tmp/shm"
if [ "${FAULTS:-}" = full ]; then
	for word in ${FAULTS_MODES:-dp ddp zero1 zero2 zero3 gpipe 1f1b interleaved zero-bubble 1f1b*2}; do
		for phase in start training accumulation evaluating saving loading; do
			for fault in kill segv exit stop; do
				for restarts in 0 1; do rank_fault "$word" $phase $fault $restarts; done
			done
		done
		launcher_fault "$word" launcher 137
		launcher_fault "$word" int 130
		launcher_fault "$word" int2 130
		launcher_fault "$word" term 143
		launcher_fault "$word" term2 143
	done
else
	while read -r word phase fault restarts; do rank_fault "$word" "$phase" "$fault" "$restarts"; done <<-'END'
		dp saving kill 1
		ddp start exit 0
		ddp training kill 1
		ddp accumulation segv 0
		ddp saving kill 0
		zero1 evaluating kill 0
		zero2 saving segv 1
		zero3 training stop 0
		zero3 loading exit 1
		1f1b training kill 0
		zero-bubble saving exit 1
	END
	launcher_fault ddp launcher 137
	launcher_fault zero1 term2 143
	launcher_fault ddp int2 130
fi
# gtrain gives nothing a name there; folders are those of tests
left=$(find /dev/shm -maxdepth 1 -name '*gtrain*' ! -type d -newer "$tmp/shm" 2>/dev/null | wc -l)
[ "$left" = 0 ] || wrong "/dev/shm" "$left files more than before"

tell_refused
# seconds NAME FILE GOAL: median and slowest; the median is held to the goal, the slowest is the machine's load too
seconds() {
	sort -n "$tmp/$2" | awk -v name="$1" -v goal="$3" '{ v[NR] = $1 }
		END { if (!NR) exit 0; m = v[int((NR + 1) / 2)]; printf "# faults: %s: %d, median %.3f s, slowest %.3f s\n", name, NR, m, v[NR];
		exit m >= goal }' ||
		wrong "$2" "the median is above the goal of $3 s"
}
seconds 'from a fault to the end of the run' ended 2
seconds "from the stop of a rank to the end of the run, timeout $timeout s" stopped $((timeout + 1))
seconds 'from a fault to the ranks of the next attempt, 1 s of which it waits' again 3
echo "# sweep ranks killed, crashed, stopped: $injected points, $bad failures, $missed moments were missed and tried again"
if [ $bad = 0 ] && [ $injected -gt 0 ]; then
	echo "ok faults nothing left"
elif [ $bad = 0 ]; then
	echo "not ok faults: none was injected"
fi
