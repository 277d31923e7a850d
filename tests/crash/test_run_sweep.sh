#!/bin/bash
# A run, a resume, a resume from an older step and a run on two ranks, killed at every call that changes the run's directory, and with every
# such call failing by ENOSPC, EIO or EINTR or writing half (fault_at.c, preloaded). What must hold then: every checkpoint that was there
# verifies; what is left resumes, and ends with the bits of the run that nobody disturbed; metrics.jsonl has each step once; nothing is left
# over. SWEEP=full: every call (`make check-faults`). Else about SWEEP calls a scenario (default 6), others at other SWEEP_SEED.
# SWEEP_KINDS: only these faults.
set -u
src=${GTRAIN_SRC:-$(cd "$(dirname "$0")/../.." && pwd)}
gtrain=${GTRAIN:-$src/build/bin/gtrain}
sweep=${SWEEP:-6} seed=${SWEEP_SEED:-1}
export OMP_NUM_THREADS=1 # tiny layers, and a machine that other tests use too
base=/dev/shm
[ -w $base ] || base=${TMPDIR:-/tmp}
tmp=$(mktemp -d "$base/gtrain-sweep-XXXXXX")
trap 'rm -rf "$tmp"' EXIT
dir=$tmp/run
if ! ${CC:-gcc} -O1 -shared -fPIC -D_GNU_SOURCE "$src/tests/crash/fault_at.c" -o "$tmp/fault_at.so" -pthread 2>"$tmp/cc"; then
	echo "skip run_sweep: no preloaded library: $(head -n 1 "$tmp/cc")"
	exit 0
fi
asan=$(ldd "$gtrain" 2>/dev/null | awk '/libasan/ { print $3 }')
preload="${asan:+$asan }$tmp/fault_at.so"

cat >"$tmp/t.cfg" <<'CFG'
schema = 1;
name = "swept";
seed = 3;
reproducible = "run";
data = { name = "synthetic"; samples = 256; samples_test = 32; batch = 32; classes = 10; };
model = { input = [1, 8, 8]; layers = ( { type = "flatten"; }, { type = "linear"; out = 16; }, { type = "relu"; },
	{ type = "linear"; out = 10; } ); };
train = { steps = 12; optimizer = { type = "sgd"; lr = 0.05; momentum = 0.9; }; };
checkpoint = { dir = "unused"; every_steps = 4; every_epochs = 0; keep = 3; best = { metric = "test/acc"; mode = "max"; }; };
log = { every_steps = 1; };
CFG
last="step-00000012" # the last checkpoint

digests() { # of the final checkpoint's tensors, as its manifest says and gtrain has verified
	grep -o '"name":"[a-z]*.safetensors","bytes":[0-9]*,"xxh3":"[0-9a-f]*"' "$dir/$last/manifest.json" 2>&1
}
calm() { "$gtrain" "$@" -q --no-progress >"$tmp/out" 2>&1 </dev/null; }

# hit KIND N COMMAND...: the command with its Nth call struck. Status in $rc, words in $tmp/struck, the call in $call.
hit() {
	local kind=$1 at=$2
	shift 2
	rm -f "$tmp/log"
	{ FAULT_DIR=$dir FAULT_LOG=$tmp/log FAULT_KIND=$kind FAULT_AT=$at LD_PRELOAD=$preload "$gtrain" "$@" -q --no-progress >"$tmp/struck" \
		2>&1 </dev/null; } 2>/dev/null
	rc=$?
	call="$kind at call $at ($(sort -n "$tmp/log" 2>/dev/null | tail -n 1 | cut -d' ' -f2- | sed "s|$dir||"))"
}

wrong() {
	failures=$((failures + 1))
	echo "not ok run_sweep: $scenario, $call: $1"
}

# The steps of metrics.jsonl. Each stands there once, in order; a line whose write failed may be missing, as training goes on without it.
train_steps() {
	sed -n 's/^{"event":"train",.*"step":\([0-9]*\),.*}$/\1/p' "$dir/metrics.jsonl" | tr '\n' ' '
}
whole_metrics() {
	train_steps | tr ' ' '\n' | awk -v lost="$lost" '/./ { n++; if ($1 <= last || $1 > 12) bad = 1; last = $1 }
		END { exit bad || n < 12 - lost }'
}

# What is left must go on to the same end.
goes_on() {
	local d
	for d in "$dir"/step-????????; do
		[ -d "$d" ] && ! calm inspect --verify "$d" && wrong "$(basename "$d") does not verify: $(tail -n 1 "$tmp/out")"
	done
	for d in $kept; do # those from before the fault, here or moved aside: none is lost
		grep -rqxF --include=manifest.json -- "$(cat "$template/$d/manifest.json")" "$dir" || wrong "$d is lost"
	done
	if ls -d "$dir"/step-???????? >/dev/null 2>&1; then
		calm resume "$dir" "${on_ranks[@]}"
	else
		rm -rf "$dir"
		calm run "$tmp/t.cfg" -o "$dir" "${on_ranks[@]}" "${mode[@]}"
	fi || wrong "resumed: $(tail -n 1 "$tmp/out")"
	[ "$(digests)" = "$want" ] || wrong "resumed, it ends with other digests: $(digests | tr '\n' ' ')"
	whole_metrics || wrong "metrics.jsonl has the steps $(train_steps)"
	[ -z "$(find "$dir" -name 'next-*' -o -name '*.tmp-*' -o -name '*.old-*' -o -name '*.prev-*' -o -name '*.tmp')" ] ||
		wrong "left over: $(cd "$dir" && find . -name '*.tmp*' -o -name '*.old-*' -o -name '*.prev-*')"
}

start() {
	rm -rf "$dir"
	[ -z "$template" ] || cp -a "$template" "$dir"
}

# scenario NAME TEMPLATE KEPT KINDS -- COMMAND...
scenario() {
	local kinds=$4 total n k
	scenario=$1 template=$2 kept=$3
	shift 5
	start
	hit kill 0 "$@"
	total=$(awk '$1 > n { n = $1 } END { print n + 0 }' "$tmp/log" 2>/dev/null)
	if [ $rc != 0 ] || [ "$(digests)" != "$want" ] || [ "$total" -lt 20 ]; then
		echo "not ok run_sweep: $scenario: undisturbed, it ended with $rc after $total calls: $(tail -n 1 "$tmp/struck")"
		return
	fi
	for kind in ${SWEEP_KINDS:-$kinds}; do
		points=0 failures=0 lost=0 began=$SECONDS
		case $kind in ENOSPC | EIO) lost=1 ;; esac
		step=1
		[ "$sweep" = full ] || step=$((total / sweep > 1 ? total / sweep : 1))
		for ((n = 1 + (step > 1 ? seed % step : 0); n <= total; n += step)); do
			start
			hit "$kind" "$n" "$@"
			points=$((points + 1))
			k=$(awk '{ if ($1 > n) n = $1 } END { print n + 0 }' "$tmp/log")
			if [ "$kind" = kill ]; then
				[ $rc = 137 ] || wrong "ended with $rc, not by the kill: $(tail -n 1 "$tmp/struck")"
			elif [ "$kind" = short ]; then
				[ "$k" -lt "$n" ] && break # fewer writes than calls
				[ $rc = 0 ] || wrong "ended with $rc: $(tail -n 1 "$tmp/struck")"
			elif [ $rc != 0 ] && { [ $rc != 74 ] && [ $rc != 73 ]; } || { [ $rc != 0 ] && ! grep -qF "$dir" "$tmp/struck"; }; then
				wrong "ended with $rc, expected 0, or 73 or 74 and a file: $(tail -n 1 "$tmp/struck")"
			elif [ $rc = 0 ] && [ "$(digests)" != "$want" ]; then
				wrong "ended with 0 and other digests"
			fi
			goes_on
		done
		echo "# sweep $kind, $scenario: $points points, $failures failures, $((SECONDS - began)) s"
		if [ $failures = 0 ] && [ $points -gt 3 ]; then
			echo "ok run_sweep_${kind}_${scenario// /_}"
		elif [ $failures = 0 ]; then
			echo "not ok run_sweep_${kind}_${scenario// /_}: only $points points"
		fi
	done
}

undisturbed() { # OPTIONS...: its digests in $want
	rm -rf "$dir"
	calm run "$tmp/t.cfg" -o "$dir" "$@" || { echo "not ok run_sweep: the undisturbed run: $(tail -n 1 "$tmp/out")"; exit 1; }
	want=$(digests)
}

# That the preloaded library sees every call that changes the directory: strace counts them too.
sees_all() {
	local total traced
	if ! command -v strace >/dev/null || ! strace -qq -e trace=none true 2>/dev/null; then
		echo "skip run_sweep_sees_all: no strace, or ptrace is not permitted here"
		return
	fi
	rm -rf "$dir"
	hit kill 0 run "$tmp/t.cfg" -o "$dir"
	total=$(awk '$1 > n { n = $1 } END { print n + 0 }' "$tmp/log")
	rm -rf "$dir"
	strace -f -qq -y -s 0 -o "$tmp/trace" -e trace=%file,%desc "$gtrain" run "$tmp/t.cfg" -o "$dir" -q --no-progress >/dev/null 2>&1
	calls='writev?|pwrite(64|v|v2)|f(data)?sync|mkdir(at)?|rename(at2?)?|(sym)?link(at)?|unlink(at)?|rmdir|f?truncate|fallocate'
	calls="^($calls|f?chmod(at)?|sendfile|copy_file_range)\$"
	traced=$(grep -F "$dir" "$tmp/trace" | awk -v calls="$calls" '{ sub(/\(.*/, "", $2) }
		$2 ~ calls || ($2 ~ /^(creat|open|openat|openat2)$/ && /O_CREAT/) { n++ } END { print n + 0 }')
	if [ "$total" = "$traced" ]; then
		echo "ok run_sweep_sees_all"
	else
		echo "not ok run_sweep_sees_all: the library counts $total calls, strace $traced"
	fi
}

on_ranks=() mode=()
undisturbed
sees_all
cp -a "$dir" "$tmp/finished"
cp -a "$dir" "$tmp/half" # as a kill before the second commit leaves it
rm -rf "$tmp/half/$last" "$tmp/half/step-00000008" "$tmp/half/best"
ln -sfn step-00000004 "$tmp/half/latest"
sed -i '/"step":\(5\|6\|7\|8\|9\|10\|11\|12\),/d' "$tmp/half/metrics.jsonl"

scenario run '' '' 'kill ENOSPC EIO EINTR short' -- run "$tmp/t.cfg" -o "$dir"
scenario resume "$tmp/half" step-00000004 'kill ENOSPC EIO EINTR short' -- resume "$dir"
scenario 'resume from an older step' "$tmp/finished" 'step-00000004 step-00000008 step-00000012' 'kill ENOSPC EIO EINTR short' -- resume \
	"$dir" --from 4
on_ranks=(--nproc 2) mode=(-s parallel.mode=ddp)
undisturbed "${on_ranks[@]}" "${mode[@]}"
scenario 'two ranks' '' '' 'kill EIO' -- run "$tmp/t.cfg" -o "$dir" "${on_ranks[@]}" "${mode[@]}"
