# shellcheck shell=bash
# Sourced by tests that run on the host's CUDA runtime: sets `sim`, the folder of its build, or of a build on a machine with a GPU
# (GTRAIN_SIM, tests/gpu/check.sh). sim_absent: why there is none, or nothing.
sim=${GTRAIN_SIM:-$GTRAIN_BUILD/cudasim}
export GTRAIN_NAN_MEMORY=1 # activations and workspaces begin as NaN, which shows kernels that read memory before it is written
sim_absent() {
	if [ ! -e "$sim/lib/gtrain/cuda.so" ]; then
		echo 'built without a C++ compiler'
	elif grep -q __asan_init "$sim/lib/gtrain/cuda.so"; then
		echo 'the coroutines of cudasim and AddressSanitizer cannot be combined (it has guard pages of its own)'
	fi
}
# sim_needed NAME: ends the test with a skip where there is none
sim_needed() {
	local why
	why=$(sim_absent)
	[ -z "$why" ] || { echo "skip $1: $why"; exit 0; }
}
# sim_begin NAME: begins a test in a folder of its own, $tmp. The caches of this test are in it, too.
sim_begin() {
	sim_needed "$1"
	tmp=$(mktemp -d)
	trap 'rm -rf "$tmp"' EXIT
	export XDG_CACHE_HOME=$tmp/cache OMP_WAIT_POLICY=passive
}
# ok NAME WHY: ok if WHY is empty
ok() {
	if [ -z "$2" ]; then echo "ok $1"; else echo "not ok $1: $2"; fi
}

# losses DIR: step and loss of every training step and evaluation; curve DIR: all that a run records of them and of skipped steps, without
# times; digest DIR: of weights and moments
losses() { sed -nE 's/.*"event":"(train|eval)","step":([0-9]+).*"loss":([^,}]+).*/\1 \2 \3/p' "$1/metrics.jsonl"; }
curve() { grep -E '"event":"(train|skip|eval)"' "$1/metrics.jsonl" | sed -E 's/,"(samples_per_s|time)":[^,}]*//g'; }
digest() { cat "$1/latest/model.safetensors" "$1/latest/optimizer.safetensors" 2>/dev/null | sha256sum | cut -d' ' -f1; }

# worst A B LEAST: prints the largest relative difference of the losses of two runs, 9 if they have not the same LEAST or more events
worst() {
	paste -d ' ' <(losses "$1") <(losses "$2") |
		awk -v least="$3" '{ d = ($3 - $6) / $3; if (d < 0) d = -d; if ($1 != $4 || $2 != $5 || !(d <= 1)) d = 9; if (d > m) m = d }
			END { if (NR < least) m = 9; print m + 0 }'
}
# close NAME A B TOLERANCE LEAST: the same LEAST or more events, losses within TOLERANCE of each other, relatively
close() {
	local most
	if [ -e "$2.failed" ] || [ -e "$3.failed" ]; then
		echo "not ok $1: $(cat "$2.failed" "$3.failed" 2>/dev/null | head -n 1)"
		return
	fi
	most=$(worst "$2" "$3" "$5")
	if awk "BEGIN { exit !($most <= $4) }"; then echo "ok $1"; else echo "not ok $1: losses differ by $most"; fi
	echo "# cudasim: $1: losses within $most"
}

# agrees NAME CPU-OPTIONS -- OPTIONS: every loss of the CPU and of the device within 1e-4 of each other (they sum in another order)
agrees() {
	local name=$1 cpu=()
	shift
	while [ "$1" != -- ]; do
		cpu+=("$1")
		shift
	done
	shift
	"$GTRAIN" run net.cfg -q -o "$name-c" --device cpu "${cpu[@]}" >/dev/null 2>err || echo "not ok $name: $(head -n 1 err)"
	if ! "$sim/bin/gtrain" run net.cfg -q -o "$name" --device cuda "${cpu[@]}" "$@" >/dev/null 2>err; then
		echo "not ok $name: $(head -n 1 err)"
	elif ! paste <(losses "$name-c") <(losses "$name") | awk '
		{ n++; d = $3 - $6; d = d < 0 ? -d : d; if ($1 != $4 || $2 != $5 || d > 1e-4 * (1 + $3)) { print; bad = 1 } }
		END { exit bad || n < 20 }' >apart; then
		echo "not ok $name: $(head -n 2 apart)"
	else
		echo "ok $name"
	fi
}

# sim_train DIR ARGS...: $tmp/net.cfg on the device; the status in DIR.rc, the output in DIR.out
sim_train() {
	local dir=$1
	shift
	rm -rf "$dir"
	"$sim/bin/gtrain" run "$tmp/net.cfg" --device cuda --no-progress -o "$dir" "$@" >"$dir.out" 2>&1
	echo $? >"$dir.rc"
}
# sim_same NAME A B: two such runs have the same status, curve, weights and moments
sim_same() {
	local why=
	[ "$(cat "$2.rc" "$3.rc")" = $'0\n0' ] || why="status $(cat "$2.rc" "$3.rc" | tr '\n' ' '): $(tail -qn 1 "$2.out" "$3.out" |
		tr '\n' ' ')"
	[ -n "$why" ] || [ "$(curve "$2" | wc -l)" -gt 10 ] || why='no losses'
	[ -n "$why" ] || cmp -s <(curve "$2") <(curve "$3") || why="the curves differ: $(diff <(curve "$2") <(curve "$3") | sed -n 2p)"
	[ -n "$why" ] || [ "$(digest "$2")" = "$(digest "$3")" ] || why='the weights differ'
	ok "$1" "$why"
}
