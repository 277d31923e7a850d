# Shared by the tests of the command line; sourced. $GTRAIN is the binary, $GTRAIN_SRC the source tree (tests/run sets both).
# shellcheck shell=bash
set -u
src=${GTRAIN_SRC:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
gtrain=${GTRAIN:-$src/build/bin/gtrain}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
unset NO_COLOR
export TERM=xterm-256color LC_ALL=C.UTF-8

pass() { echo "ok $1"; }
fail() { echo "not ok $1: $2"; }
skip() { echo "skip $1: $2"; }

# wait_for COMMAND...: repeats the command until it succeeds. The limit of two minutes is for a run that hangs, not for a slow machine.
wait_for() {
	local limit=$((SECONDS + 120))
	until "$@"; do
		[ $SECONDS -lt $limit ] || return 1
		sleep 0.02
	done
}
# ours REGEXP: the processes whose command line matches and whose working directory is $tmp, so that those of another test are left alone
ours() {
	local p
	for p in $(pgrep -f -- "$1"); do
		if [ "/proc/$p/cwd" -ef "$tmp" ]; then echo "$p"; fi
	done
}
none_of_ours() { [ -z "$(ours "$1")" ]; }
# lines FILE N: the file has N lines or more
lines() { [ -e "$1" ] && [ "$(wc -l <"$1")" -ge "$2" ]; }

# run ARGS...: leaves the exit status in $rc and the output in $tmp/out and $tmp/err.
run() {
	"$gtrain" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
	rc=$?
}

# gives NAME STATUS WHERE TEXT ARGS...: gtrain ARGS ends with STATUS, and TEXT stands in WHERE (out or err).
gives() {
	local name=$1 status=$2 where=$3 text=$4
	shift 4
	run "$@"
	if [ "$rc" != "$status" ]; then
		fail "$name" "gtrain $* ended with $rc, not $status: $(head -n 1 "$tmp/err")"
	elif ! grep -qF -- "$text" "$tmp/$where"; then
		fail "$name" "no '$text' in std$where of gtrain $*: $(head -n 3 "$tmp/$where")"
	else
		pass "$name"
	fi
}

# divides NAME TOTAL ARGS...: gtrain check ARGS divides TOTAL samples, of which about a fifth are in the split valid
divides() {
	local name=$1 total=$2
	shift 2
	run check "$@"
	if tr -d , <"$tmp/out" | grep -o '[0-9]* train [0-9]* valid' | head -n 1 |
		awk -v n="$total" '{ some = 1; d = $3 / n - 0.2 } END { exit !(some && $1 + $3 == n && d < 0.06 && d > -0.06) }'; then
		pass "$name"
	else
		fail "$name" "status $rc, not $total samples with a fifth in valid: $(grep -o '[0-9,]* train.*' "$tmp/out" | head -n 1)"
	fi
}

# the names of the commands, from the help
commands() { "$gtrain" -h | sed -n '/^commands/,/^$/s/^  \([a-z-]*\) .*/\1/p'; }

# A config that trains in a moment, without files: $tmp/tiny.cfg
tiny_config() {
	cat >"$tmp/tiny.cfg" <<'CFG'
schema = 1;
name = "tiny";
data = { name = "synthetic"; batch = 32; classes = 4; samples = 256; samples_test = 64; };
model = { input = [1, 8, 8]; layers = ( { type = "flatten"; }, { name = "fc"; type = "linear"; out = 4; } ); };
train = { epochs = 2; optimizer = { type = "sgd"; lr = 0.01; }; };
checkpoint = { dir = "unused"; };
log = { every_steps = 1; };
CFG
}
