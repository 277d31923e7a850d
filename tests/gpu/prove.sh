#!/bin/bash
# prove.sh [--probe] [BUILD]: what a card shows about the CUDA backend, in one file and a page of text for a report (make prove-gpu), from
# a build tree or a folder of `make gpu-folder`. In PROVE_BUDGET seconds (600), the most informative work first: facts about the card and
# its libraries; the sections of check.sh; `gtrain run CFG --smoke --against cpu` of the configs; compute-sanitizer; bench.sh. What did not
# fit is listed. Writes gpu-proof-CARD-COMMIT.json, .txt (the page) and .log (all lines of check.sh) into $OUT or BUILD, again after each
# part, so that a run that is interrupted, or a machine that stops, leaves what was done until then.
# Ends with 0 if nothing failed, 1 if something did, 69 without a usable GPU, 128 + N after signal N. --probe: only looks for a GPU, so
# that `make prove-gpu` needs no minutes for the tests' programs before it says that there is none.
# Environment: PROVE_BUDGET; PROVE_CHECKS (sections of check.sh, all), PROVE_CONFIGS (names in configs/, or files; all); "none": none;
# PROVE_BENCH= (empty): no bench.sh; TORCH_PYTHON (python3: one that has torch). On the host's CUDA runtime (BUILD=build/cudasim) all of it
# is shortened: a ResNet takes minutes there.
# Not yet run on a GPU: written and tested on the host's CUDA runtime. README.md has more.
set -u
here=$(cd "$(dirname "$0")" && pwd)
src=$(cd "$here/../.." && pwd)
probe=
if [ "${1:-}" = --probe ]; then
	probe=yes
	shift
fi
build=${1:-}
[ -n "$build" ] || build=$([ -x "$src/bin/gtrain" ] && echo "$src" || echo "$src/build")
build=$(cd "$build" && pwd) || exit 66
start=$SECONDS begun_at=$(date -u +%Y-%m-%dT%H:%MZ) budget=${PROVE_BUDGET:-600} state=unfinished simulated=false
torch_python=${TORCH_PYTHON:-python3}
smoke_limit=180 # seconds of a smoke test, after which it counts as failed: two cores take about 60, a simulated card has no limit
export GTRAIN=$build/bin/gtrain CUDA_DEVICE_ORDER=PCI_BUS_ID
commit=$(cat "$src/COMMIT" 2>/dev/null || git -C "$src" describe --always --dirty --abbrev=10 2>/dev/null || echo unknown)
if [ -e "$build/lib/gtrain/libcudasim.so" ]; then simulated=true smoke_limit=$((budget + 1)); fi

# ---- a usable GPU --------------------------------------------------------------------------------------------------------------------
loader_path=${LD_LIBRARY_PATH:-}
# shellcheck source=tests/gpu/cuda_libs.sh
. "$here/cuda_libs.sh"
row=$("$GTRAIN" devices --json 2>/dev/null | grep '"backend":"cuda"' | head -n 1)
if ! grep -q '"usable":true' <<<"$row"; then
	why=$(sed -n 's/.*"detail":"\([^"]*\)".*/\1/p' <<<"$row")
	echo "prove-gpu: no usable GPU: ${why:-there is no CUDA backend in $build}" >&2
	exit 69
fi
[ -z "$probe" ] || exit 0
card=$(sed -n 's/.*"name":"\([^"]*\)".*/\1/p' <<<"$row")
proof=${OUT:-$build}/gpu-proof-$(tr -cs 'A-Za-z0-9.\n' '[-*]' <<<"$card")-$commit

work=$(mktemp -d)
mkdir "$work/smoke" "$work/home"
: >"$work/facts.tsv"
hide=
for pair in "$build"$'\tBUILD' "$src"$'\tSOURCE' "$work"$'\tTMP' "${HOME:-}"$'\t~'; do
	case ${pair%%$'\t'*} in ?*/* | /?*) hide+=${hide:+$'\n'}$pair ;; esac
done
# shellcheck source=tests/gpu/proof_facts.sh
. "$here/proof_facts.sh"
# shellcheck source=tests/gpu/proof_read.sh
. "$here/proof_read.sh"
# shellcheck source=tests/gpu/proof_write.sh
. "$here/proof_write.sh"

# ---- what is written, and when ---------------------------------------------------------------------------------------------------------
# list_absent: what has not begun
list_absent() {
	local name
	for name in "${checks[@]}"; do grep -q "^$name	" "$work/sections.tsv" || echo "section $name"; done
	for name in "${configs[@]}"; do
		name=$(name_config "$name")
		grep -q "^$name	" "$work/smokes.tsv" || echo "smoke test of $name"
	done
	[ -z "$bench" ] || grep -q '^bench	' "$work/sections.tsv" || echo 'section bench'
}
write_proof() {
	read_results
	list_absent >"$work/absent"
	cat "$work"/check-*.log >"$proof.log" 2>/dev/null
	write_json >"$proof.json.new" && mv "$proof.json.new" "$proof.json" && write_page >"$proof.txt.new" && mv "$proof.txt.new" "$proof.txt"
}

child='' smoke='' before='' starting=''
# run_limited SECONDS COMMAND...: in a process group of its own, of which nothing is left afterwards; the status of the command, 124 or 137
# if it was ended. The proof is written when $watched, a log, has grown.
watched=
run_limited() {
	local limit=$1 rc size=0 now
	shift
	before=$! starting=yes
	timeout -k 3 "$limit" "$@" &
	child=$! starting=
	while [ -n "$watched" ] && kill -0 $child 2>/dev/null; do
		sleep 1
		now=$(stat -c %s "$watched" 2>/dev/null)
		[ "${now:-0}" = "$size" ] || { size=$now && write_proof; }
	done
	wait $child
	rc=$?
	kill -KILL -- -$child 2>/dev/null
	child=
	return $rc
}
end_early() { # STATUS
	trap '' INT TERM HUP
	[ -z "$starting" ] || [ "$!" = "$before" ] || child=$! # the signal came before run_limited had stored it
	if [ -n "$child" ]; then
		kill -TERM "$child" 2>/dev/null
		wait "$child"
		kill -KILL -- "-$child" 2>/dev/null
	fi
	state=interrupted
	[ -z "$smoke" ] || read_smoke "$smoke"
	write_proof
	echo "prove-gpu: interrupted; what was done until then: $proof.json and .txt" >&2
	exit "$1"
}
trap 'rm -rf "$work"' EXIT

left() { echo $((budget - 5 - SECONDS + start)); } # 5 s: to write the proof
share() { awk -v n="$(left)" -v part="$1" 'BEGIN { printf "%d", n * part }'; } # of the seconds that are left

# ---- checks ----------------------------------------------------------------------------------------------------------------------------
rounds=0
run_checks() { # SECONDS SECTION...
	local seconds=$1
	shift
	if [ "$seconds" -lt 5 ] || [ $# = 0 ]; then return; fi
	rounds=$((rounds + 1))
	watched=$work/check-$rounds.log
	CHECK_LOG=$watched CHECK_BUDGET=$seconds LD_LIBRARY_PATH=$loader_path run_limited $((seconds + 20)) \
		bash "$here/check.sh" "$build" "$@" > >(grep -v '^# \|^[0-9]* passed\|^skip .*: the budget of ') 2>&1
	watched=
	write_proof
}
list_unrun() { awk -F '\t' '$2 == "not run" { print $1 }' "$work/sections.tsv"; } # sections that were left out, or cut, by the budget

# ---- smoke tests -----------------------------------------------------------------------------------------------------------------------
name_config() { basename "$1" .cfg; }
# order_configs FILE...: first the file with the most layer types, losses, optimizers and modes, then always the one that adds the most
order_configs() {
	grep -oHE '(type|mode|loss|block|precision) = "[a-z0-9_]*"' "$@" | sort -u | awk '
	{
		file = $0
		sub(/:.*/, "", file)
		if (!(file in has)) name[++n] = file
		has[file] = has[file] "\n" substr($0, length(file) + 2)
	}
	END {
		for (;;) {
			most = -1
			for (i = 1; i <= n; i++) {
				if (done[i]) continue
				m = split(has[name[i]], w, "\n")
				new = 0
				for (j = 2; j <= m; j++) new += !(w[j] in seen)
				if (new > most) { most = new; best = i }
			}
			if (most < 0) exit
			print name[best]
			done[best] = 1
			m = split(has[name[best]], w, "\n")
			for (j = 2; j <= m; j++) seen[w[j]]
		}
	}'
}
# run_smoke SECONDS CONFIG PRECISION: of a config in its own precision ("config") or in another one. A config that needs data or weights
# that are not here gets generated ones, because gtrain finds no home.
run_smoke() {
	local limit=$1 cfg=$2 name precision=$3 cut=0 rc began=$SECONDS file sets=()
	[ "$limit" -ge 10 ] || return
	name=$(name_config "$cfg")
	file=$work/smoke/$name-$precision
	smoke=$file
	[ "$precision" = config ] || sets=(-s "precision=\"$precision\"")
	if [ "$limit" -lt $smoke_limit ]; then cut=1; else limit=$smoke_limit; fi
	echo "$name $precision - 0 $limit $cut" >"$file.run"
	run_limited "$limit" env HOME="$work/home" XDG_CACHE_HOME="$work/cache" \
		CUDA_CACHE_PATH="${CUDA_CACHE_PATH:-${HOME:-}/.nv/ComputeCache}" OMP_WAIT_POLICY=passive GTRAIN_NAN_MEMORY=1 \
		"$GTRAIN" run "$cfg" --smoke --against cpu --device cuda --json "${sets[@]}" \
		>"$file.json" 2>"$file.err"
	rc=$?
	echo "$name $precision $rc $((SECONDS - began)) $limit $cut" >"$file.run"
	read_smoke "$file"
	smoke=
	write_proof
	awk -F '\t' '{ printf "smoke %-22s %-6s %-8s %4d s  %s\n", $1, $2, ($3 == "failed" ? "FAILED" : $3), $4, substr($14, 1, 200) }' \
		"$file.row"
}
run_smokes() { # SECONDS PRECISION...: those that have not run; a precision of a config that is the config's own has run
	local until=$((SECONDS + $1)) precision cfg
	shift
	for precision; do
		for cfg in "${configs[@]}"; do
			awk -F '\t' -v c="$(name_config "$cfg")" -v p="$precision" '
				$1 == c && (p == "config" || $2 == p) && $3 != "not run" { found = 1 }
				END { exit found }' "$work/smokes.tsv" || continue
			run_smoke $((until - SECONDS)) "$cfg" "$precision"
		done
	done
}

# ---- speed -----------------------------------------------------------------------------------------------------------------------------
run_bench() { # SECONDS
	local seconds=$1 rc began=$SECONDS why=''
	if ! command -v python3 >/dev/null; then
		echo 'skip 0 python3 is not installed' >"$work/bench.run"
		return
	fi
	if [ "$seconds" -lt 40 ]; then
		echo "cut 0 the budget of $seconds s is too small" >"$work/bench.run"
		return
	fi
	echo '- 0' >"$work/bench.run"
	rm -f "$work/bench.md"
	LD_LIBRARY_PATH=$loader_path TORCH_PYTHON=$torch_python BENCH_OUT=$work/bench.md BENCH_BUDGET=$((seconds - 20)) \
		run_limited "$seconds" bash "$here/bench.sh" "$build" >"$work/bench.out" 2>"$work/bench.err"
	rc=$?
	case $rc in
	0) ;;
	124 | 137) rc=cut why="the budget of $seconds s was used up" ;;
	*) why=$(grep -m 1 'FAILED' "$work/bench.out" || tail -n 1 "$work/bench.err") ;;
	esac
	[ -s "$work/bench.md" ] || grep '^\[' "$work/bench.err" >"$work/bench.md" # a line a measurement, of a run that was ended
	echo "$rc $((SECONDS - began)) $why" >"$work/bench.run"
	write_proof
}

# ---- all of it ---------------------------------------------------------------------------------------------------------------------------
if [ $simulated = true ]; then
	export CHECK_TINY=${CHECK_TINY-1} BENCH_TINY=${BENCH_TINY-1} BENCH_ONLY=${BENCH_ONLY-mlp} BENCH_ROUNDS=${BENCH_ROUNDS-1}
	PROVE_CONFIGS=${PROVE_CONFIGS-tutorial_mlp_sgd lenet adult_tabular imdb_bag}
fi
bash "$here/check.sh" --list >"$work/list"
read -ra checks <<<"${PROVE_CHECKS:-$(awk '{ print $1 }' "$work/list" | tr '\n' ' ')}"
[ "${checks[*]}" != none ] || checks=()
[ -d "$src/data" ] && export GTRAIN_DATA=${GTRAIN_DATA:-$src/data}
if [ -n "${PROVE_CONFIGS:-}" ]; then
	configs=()
	for name in $PROVE_CONFIGS; do
		if [ -e "$name" ]; then configs+=("$name"); elif [ "$name" != none ]; then configs+=("$src/configs/$name.cfg"); fi
	done
else
	mapfile -t configs < <(order_configs "$src"/configs/*.cfg)
fi
bench=${PROVE_BENCH-yes}
first=() last=() # compute-sanitizer is slow, and comes after the smoke tests
for name in "${checks[@]}"; do if [ "$name" = sanitizer ]; then last=(sanitizer); else first+=("$name"); fi; done

trap 'end_early 129' HUP
trap 'end_early 130' INT
trap 'end_early 143' TERM
index=${CUDA_VISIBLE_DEVICES:-0}
echo "prove-gpu: $card, at most $budget s; writes $proof.json and .txt"
{ write_facts "$row" "${index%%,*}" && query_state before "${index%%,*}"; } >"$work/facts.tsv"
write_proof || { echo "prove-gpu: cannot write $proof.json" >&2 && exit 73; }
run_checks "$(share 0.45)" "${first[@]}"
run_smokes "$(share 0.5)" config
run_checks "$(share 0.4)" "${last[@]}"
[ -z "$bench" ] || run_bench "$(left)"
# What is left of the time: what did not fit, then other precisions
mapfile -t first < <(list_unrun | grep -v '^bench$')
run_checks "$(left)" "${first[@]}"
run_smokes "$(left)" config bf16 tf32 fp16 fp32
query_state after "${index%%,*}" >>"$work/facts.tsv"
state=complete
write_proof
sed -n '/^RESULT/,/^$/p' "$proof.txt"
echo "attach to a report: $proof.txt and .json"
[ "$(result_word)" = passed ]
