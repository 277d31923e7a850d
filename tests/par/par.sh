# Shared by the tests of the parallel modes; sourced. $GTRAIN, $GTRAIN_SRC, $GTRAIN_BUILD as tests/run sets them.
# shellcheck shell=bash disable=SC2034 # what the tests that source this read
set -u
src=${GTRAIN_SRC:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
gtrain=${GTRAIN:-$src/build/bin/gtrain}
same=${GTRAIN_BUILD:-$src/build}/tests/par/tool_same
nets=$src/tests/par/nets
base=/dev/shm # a checkpoint's fsync costs nothing there
[ -w $base ] || base=${TMPDIR:-/tmp}
tmp=$(mktemp -d "$base/gtrain-par-XXXXXX")
trap 'rm -rf "$tmp"' EXIT
export LC_ALL=C

# mode_args WORD RANKS: the options of a mode, in the array mode. WORD: single, dp, ddp, zero1-3, a schedule of pipe, or such a schedule
# and how many copies of the pipeline, as 1f1b*2, which may share out the optimizer's state, as 1f1b*2+zero1. Sets chunks to what the copies
# and the schedule cut a batch into (1: nothing).
chunks=1
mode_args() {
	mode=()
	chunks=1
	case $1 in
	single) ;;
	dp | ddp) mode=(-s "parallel.mode=$1" --nproc "$2") ;;
	zero?) mode=(-s parallel.mode=zero -s "parallel.stage=${1#zero}" --nproc "$2") ;;
	*)
		chunks=${chunks_of_pipe:-4}
		mode=(-s parallel.mode=pipe -s "parallel.schedule=${1%\**}" -s "parallel.chunks=$chunks" --nproc "$2")
		copies=1
		case $1 in *\**) copies=${1#*\*} ;; esac
		copies=${copies%+*}
		mode+=(-s "parallel.replicas=$copies")
		case $1 in *+zero1) mode+=(-s parallel.across=zero) ;; *) mode+=(-s parallel.across=ddp) ;; esac
		chunks=$((chunks * copies))
		;;
	esac
}

# refusal WORD NET FEATURE: what gtrain is known to refuse, as a regular expression that its sentence matches and that names both sides;
# empty: nothing. A combination that is refused counts as that, never as passed; one that is refused and not listed here has failed.
refusal() {
	case $1-${3-} in zero?-muon | zero?-lamb) echo "parallel.mode = \"zero\" and the optimizer \"$3\" cannot be combined" ;; esac
}

# refused TEST WORD: counts what train() left in why; tell_refused TEST prints the counts
refused() { printf '# %s %s: refused: %s\n' "$1" "$2" "$(printf '%s' "$why" | sed 's/^.*\.cfg:\([0-9]*:\)\{0,1\} //')" >>"$tmp/refused"; }
tell_refused() {
	[ ! -e "$tmp/refused" ] || sort "$tmp/refused" | uniq -c | sed 's/^ *\([0-9]*\) \(.*\): refused: /\2: refused, \1 times: /'
}

# train NAME CFG OPTIONS...: into $tmp/NAME. Sets rc; 0 trained, 1 refused as expected (see expect), 2 anything else, told in why.
expect='' why=''
train() {
	local name=$1 cfg=$2
	shift 2
	rm -rf "${tmp:?}/$name"
	"$gtrain" run -q --no-progress "$cfg" -o "$tmp/$name" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
	rc=$?
	why=$(tail -n 1 "$tmp/err")
	[ $rc = 0 ] && return 0
	[ $rc = 78 ] && [ -n "$expect" ] && grep -q "$expect" "$tmp/err" && return 1
	why="status $rc: $why"
	return 2
}

# compared NAME CFG OPTIONS...: a run with these options against run `one`, which train() made; the limits are those of test_modes.sh.
# tell_worst WHAT prints the worst loss of them all.
compared() {
	local name=$1 cfg=$2 got
	shift 2
	if ! train run "$cfg" "$@"; then
		echo "not ok $name: $why"
	elif got=$("$same" -l 1e-5 -w 1e-4 -m 1e-3 "$tmp/one" "$tmp/run"); then
		echo "ok $name"
		echo "$got" >>"$tmp/figures"
	else
		echo "not ok $name: $got"
	fi
}
tell_worst() {
	echo "# $1 in every mode: worst relative difference of a loss $(sed 's/^loss=\([^@]*\)@.*/\1/' "$tmp/figures" | sort -g | tail -n 1)"
}
