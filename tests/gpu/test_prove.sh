#!/bin/bash
# shellcheck disable=SC2016 # texts of other scripts
# make prove-gpu on the host's CUDA runtime: the file and the page of a run, of one with a wrong kernel and a failing section, of one that
# is interrupted, and no file without a GPU. Programs of check.sh are replaced where their results are made up.
# tests/run: beside others
set -u
here=$GTRAIN_SRC/tests/gpu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
# shellcheck source=tests/cudasim/sim.sh
. "$GTRAIN_SRC/tests/cudasim/sim.sh"
export TMPDIR=$tmp OMP_WAIT_POLICY=passive TORCH_PYTHON=/nonexistent
unset CUDA_VISIBLE_DEVICES OUT
ok() { # NAME WHY: ok where WHY is empty
	if [ -z "$2" ]; then echo "ok $1"; else echo "not ok $1: $2"; fi
}
# prove DIR BUILD VARIABLE=VALUE...: its status in $rc, its page in $page, its file in $json
prove() {
	local dir=$tmp/$1 build=$2
	shift 2
	mkdir "$dir"
	env OUT="$dir" "$@" "$here/prove.sh" "$build" >"$dir/out" 2>&1
	rc=$?
	find_proof "$dir"
}
find_proof() {
	page=$(compgen -G "$1/gpu-proof-*.txt" | head -n 1)
	json=$(compgen -G "$1/gpu-proof-*.json" | head -n 1)
	page=${page:-$1/no-page} json=${json:-$1/no-file}
}
has() { grep -qE -- "$1" "$page" || why="$why the page lacks \"$1\";"; }
lacks() { ! grep -qE -- "$1" "$page" || why="$why the page has \"$(grep -m 1 -E -- "$1" "$page")\";"; }
# holds EXPRESSION...: of Python, about the file: p. Without python3, only its first and last characters are looked at.
holds() {
	if ! command -v python3 >/dev/null; then
		[ "$(head -c 1 "$json")$(tail -c 2 "$json")" = '{}' ] || why="$why the file is not whole;"
		return
	fi
	why="$why$(python3 - "$json" "$@" <<'PY' 2>&1 | tail -n 1
import json, sys
p = json.load(open(sys.argv[1]))
section = {s["name"]: s for s in p["sections"]}
smoke = {(s["config"], s["precision"]): s for s in p["smokes"]}
print("".join(f" not in the file: {e};" for e in sys.argv[2:] if not eval(e)), end="")
PY
	)"
}

# ---- without a GPU ---------------------------------------------------------------------------------------------------------------------
if "$GTRAIN" devices --json 2>/dev/null | grep '"backend":"cuda"' | grep -q '"usable":true'; then
	echo 'skip prove_without_a_gpu: there is one'
else
	prove none "$GTRAIN_BUILD"
	why=
	[ $rc = 69 ] && grep -q '^prove-gpu: no usable GPU: .' "$tmp/none/out" && [ ! -e "$json" ] && [ ! -e "$page" ] ||
		why="status $rc: $(tail -n 1 "$tmp/none/out")"
	ok prove_without_a_gpu "$why"
	why=$(make -n -C "$GTRAIN_SRC" BUILD="$GTRAIN_BUILD" prove-gpu 2>&1 |
		grep -n 'prove.sh --probe\|LINK.*tests/\|prove.sh [^-]' | head -n 1)
	[[ $why = *'prove.sh --probe'* ]] && why= || why="the first command is: $why"
	ok probe_before_tests "$why"
	"$here/prove.sh" --probe "$GTRAIN_BUILD" >"$tmp/probe" 2>&1
	rc=$?
	[ $rc = 69 ] && grep -q '^prove-gpu: no usable GPU: .' "$tmp/probe" && why= || why="status $rc: $(cat "$tmp/probe")"
	ok probe_without_a_gpu "$why"
fi
sim_needed prove_simulated

# ---- nothing fails ---------------------------------------------------------------------------------------------------------------------
mkdir "$tmp/bin"
cat >"$tmp/bin/nvidia-smi" <<'SMI'
#!/bin/sh
# A driver that does not know one of the fields, and so rejects a query that has it
for a; do
	case $a in
	--query-gpu=*mig.mode.current*) echo 'Field "mig.mode.current" is not a valid field to query.'; exit 2 ;;
	--query-gpu=clocks.sm,*) echo '210 MHz, 405 MHz, 33, 61.20 W, P8, 12 MiB, 0, 0x0000000000000001' ;;
	--query-gpu=driver_version) echo 580.65.06 ;;
	--query-gpu=power.limit) echo '700.00 W' ;;
	--query-gpu=ecc.mode.current) echo Enabled ;;
	--query-gpu=*) echo '[N/A]' ;;
	esac
done
SMI
cat >"$tmp/bin/compute-sanitizer" <<'SANITIZER'
#!/bin/sh
if [ "$1" = --version ]; then echo 'Version 2025.3.1.0'; else printf '========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n'; fi
SANITIZER
chmod +x "$tmp"/bin/*
cat >"$tmp/small.cfg" <<'CFG'
schema = 1; name = "small"; seed = 3;
data = { name = "synthetic"; batch = 8; classes = 4; samples = 40; samples_test = 16; };
model = { input = [3, 8, 8]; layers = ( { name = "c1"; type = "conv2d"; out = 4; kernel = 3; padding = 1; }, { type = "relu"; },
	{ type = "flatten"; }, { name = "fc"; type = "linear"; out = 4; } ); };
train = { epochs = 3; optimizer = { type = "adam"; lr = 0.005; }; };
checkpoint = { dir = "unused"; };
CFG
cat >"$tmp/text.cfg" <<'CFG'
schema = 1; name = "text"; seed = 3;
data = { name = "synthetic"; samples = 40; samples_test = 16; classes = 4; batch = 8; };
model = { inputs = ( { name = "tokens"; shape = [12]; vocabulary = 9; }, { name = "lengths"; } ); layers = (
	{ name = "words"; type = "embedding"; in = "tokens"; embedding_dim = 16; }, { name = "at"; type = "positional"; },
	{ name = "mean"; type = "pool_tokens"; in = ["at", "lengths"]; }, { name = "fc"; type = "linear"; out = 4; } ); };
train = { epochs = 3; optimizer = { type = "sgd"; lr = 0.05; momentum = 0.9; }; };
checkpoint = { dir = "unused"; };
CFG
prove whole "$sim" PATH="$tmp/bin:$PATH" PROVE_CHECKS='sanitizer offers table device calls' PROVE_CONFIGS="$tmp/small.cfg $tmp/text.cfg" \
	PROVE_BUDGET=400 HOME="$tmp"
why=
[ $rc = 0 ] || why="status $rc: $(tail -n 1 "$tmp/whole/out");"
case ${json##*/} in gpu-proof-simulated-on-the-host-*.json) ;; *) why="$why the file is called ${json##*/};" ;; esac
[ -s "${json%.json}.log" ] || why="$why there is no log;"
holds 'p["proof"] == 1' \
	'p["state"] == "complete"' \
	'p["result"] == "passed"' \
	'p["simulated"] is True' \
	'p["failed"] == 0' \
	'p["passed"] > 90' \
	'p["not_run"] == 0 and p["not_started"] == []' \
	'p["seconds"] <= p["budget"] == 400' \
	'p["began"].startswith("20")' \
	'p["facts"]["card"]["name"] == "simulated on the host"' \
	'p["facts"]["card"]["driver_version"] == "580.65.06"' \
	'p["facts"]["card"]["ecc.mode.current"] == "Enabled"' \
	'p["facts"]["card"]["power.limit"] == "700.00 W"' \
	'"mig.mode.current" not in p["facts"]["card"]' \
	'p["facts"]["before"]["power.draw"] == "61.20 W"' \
	'p["facts"]["after"]["pstate"] == "P8"' \
	'p["facts"]["libraries"]["compute-sanitizer"].startswith("2025.3")' \
	'p["facts"]["libraries"]["cuDNN"].startswith("9.")' \
	'p["facts"]["gtrain"]["commit"] in sys.argv[1]' \
	'"processor" in p["facts"]["machine"]' \
	'[s["name"] for s in p["sections"]] == ["offers", "table", "device", "calls", "sanitizer", "bench"]' \
	'section["table"]["state"] == "passed" and section["table"]["passed"] >= 8 and section["table"]["figures"]' \
	'section["sanitizer"]["passed"] == 6' \
	'section["bench"]["state"] == "passed" and section["bench"]["passed"] == 1' \
	'section["calls"]["state"] == "skipped" and section["calls"]["skips"]' \
	'smoke["small", "fp32"]["state"] == "passed"' \
	'smoke["small", "bf16"]["state"] == "passed"' \
	'smoke["text", "fp16"]["state"] == "passed"' \
	'smoke["small", "fp32"]["phases"][-1]["status"] == "ok"' \
	'len(p["smokes"]) == 8' \
	'[e["differ"] for e in smoke["text", "fp32"]["phases"] if e["phase"] == "operations"] == [0]' \
	'any(w["source"] == "table" and w["operation"] == "linear" and w["type"] == "bf16" and w["share"] < 1 for w in p["worst"])' \
	'any(w["source"] == "smoke" and w["operation"] == "conv2d" and w["where"] == "small: c1" for w in p["worst"])' \
	"\"$tmp\" not in json.dumps(p)"
ok prove_writes_a_file "$why"
why=
has '^gtrain .* on simulated on the host$'
has 'The card is simulated on the host: this page says nothing about a GPU'
has '^RESULT: nothing failed$'
has '^[0-9]+ passed, 0 failed, [0-9]+ skipped, 0 not run$'
has 'driver_version +580.65.06'
has '^table +passed +[0-9]+ +0 +0 '
has '^small +fp32 +passed +8 +[1-9][0-9]* +0 +0 +0\.'
has '^linear +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+  '
has '^conv2d.* small: c1$'
has 'calls: it has no short form'
has '^[|] MLP-32, .* [|] [0-9.]+ ms [|]'
lacks "$tmp"
[ "$(awk '{ if (length($0) > 200) n++ } END { print n + 0 }' "$page")" = 0 ] || why="$why lines of the page are too long;"
ok prove_writes_a_page "$why"
echo "# prove: $(wc -c <"$json") bytes of JSON, $(wc -l <"$page") lines, $(sed -n 's/.*, \([0-9]* of 400 s\)$/\1/p' "$page")"

# ---- a wrong kernel and a failing section: both are named, and the rest still runs -----------------------------------------------------
mkdir -p "$tmp/bad/tests/ops"
cp -r "$sim/bin" "$sim/lib" "$tmp/bad"
printf '#!/bin/sh\necho "ok a"\necho "not ok b: made up"\nexit 1\n' >"$tmp/bad/tests/ops/test_ops"
printf '#!/bin/sh\nfor i in 1 2 3 4; do echo "ok update $i"; done\n' >"$tmp/bad/tests/ops/test_updates"
chmod +x "$tmp"/bad/tests/ops/*
library=$GTRAIN_BUILD/libgtrain.a why='' built=''
sed 's/to_float(x\[k\]) + w)/to_float(x[k]) - w)/' "$GTRAIN_SRC/kernels/cuda/tokens.cu" >"$tmp/tokens.cu"
if cmp -s "$tmp/tokens.cu" "$GTRAIN_SRC/kernels/cuda/tokens.cu"; then
	why='tokens.cu has no such text'
elif [ ! -e "$library" ] || [ ! -d "$sim/obj/kernels/cuda" ]; then
	echo 'skip prove_names_a_wrong_kernel: the objects of the simulator are not there'
else
	mapfile -t others < <(printf '%s\n' "$sim"/obj/kernels/cuda/*.o | grep -v '/tokens\.cu\.o$')
	${CXX:-g++} -std=c++17 -O1 -w -fPIC -ffp-contract=off -pthread -D_GNU_SOURCE -I"$GTRAIN_SRC/tests/cudasim/include" \
		-I"$GTRAIN_SRC/engine" -I"$GTRAIN_SRC/kernels" -x c++ -c "$tmp/tokens.cu" -o "$tmp/tokens.o" 2>"$tmp/err" &&
		${CXX:-g++} -shared "${others[@]}" "$tmp/tokens.o" "$library" -o "$tmp/bad/lib/gtrain/cuda.so" -L"$sim/lib/gtrain" -lcudasim \
			-Wl,-rpath,'$ORIGIN' -ldl -lm 2>"$tmp/err" && built=1 || why="cannot build it: $(head -n 1 "$tmp/err")"
fi
[ -z "$built" ] || prove wrong "$tmp/bad" PROVE_CHECKS='operations updates' PROVE_CONFIGS="$tmp/text.cfg $tmp/small.cfg" PROVE_BUDGET=100 \
	PROVE_BENCH=
if [ -n "$built" ]; then
	[ $rc = 1 ] || why="status $rc: $(tail -n 1 "$tmp/wrong/out");"
	has '^RESULT: FAILED$'
	has 'operations: b: made up'
	has 'smoke test of text in fp32: .*the first of them is positional of at'
	has 'smoke test of text in fp32: step 1: positional of at \(.*\): worst [0-9.e+-]+ of [0-9.e+-]+ at \[[0-9, ]+\] of y'
	has '^updates +passed +4 '
	has '^small +fp32 +passed '
	holds 'p["result"] == "failed" and p["state"] == "complete" and p["failed"] >= 2' 'section["operations"]["state"] == "failed"' \
		'section["operations"]["failures"] == ["b: made up"]' 'section["updates"]["state"] == "passed"' \
		'smoke["text", "fp32"]["state"] == "failed" and "positional of at" in smoke["text", "fp32"]["why"]' \
		'smoke["small", "fp32"]["state"] == "passed"'
fi
[ -z "$built$why" ] || ok prove_names_a_wrong_kernel "$why"

# ---- interrupted -----------------------------------------------------------------------------------------------------------------------
# hang DIR: the first section passes, the second one hangs; waits until the file has the first one. The process of prove.sh in $prove
printf '#!/bin/sh\necho $$ >"%s/hangs"\nexec sleep 1234.75\n' "$tmp" >"$tmp/bad/tests/ops/test_ops"
hang() {
	mkdir "$tmp/$1"
	rm -f "$tmp/hangs"
	OUT=$tmp/$1 PROVE_CHECKS='updates operations' PROVE_CONFIGS="$tmp/small.cfg" PROVE_BUDGET=1000 PROVE_BENCH='' \
		env --default-signal=INT "$here/prove.sh" "$tmp/bad" >"$tmp/$1/out" 2>&1 &
	prove=$!
	for _ in $(seq 600); do
		find_proof "$tmp/$1"
		[ -s "$tmp/hangs" ] && grep -q '"name":"updates","what":"[^"]*","state":"passed"' "$json" 2>/dev/null && break
		sleep 0.1
	done
}
# bash loses a SIGINT that arrives between the end of a command and its own return from it, so a process that goes on gets it again
send() {
	for _ in $(seq 100); do
		kill "-$1" $prove 2>/dev/null
		for _ in $(seq 50); do
			grep -qs '^[0-9]* ([^)]*) [^Z]' /proc/$prove/stat || return
			sleep 0.1
		done
	done
}
for signal in INT TERM KILL; do
	hang "after_$signal"
	send $signal
	wait $prove 2>/dev/null
	rc=$? why=
	find_proof "$tmp/after_$signal"
	if [ $signal != KILL ]; then
		[ $rc = $((128 + $(kill -l $signal))) ] || why="status $rc: $(tail -n 2 "$tmp/after_$signal/out");"
		state=interrupted
		for _ in $(seq 100); do grep -q 1234 "/proc/$(cat "$tmp/hangs")/cmdline" 2>/dev/null || break; sleep 0.1; done
		! grep -q 1234 "/proc/$(cat "$tmp/hangs")/cmdline" 2>/dev/null || why="$why a process is left;"
	else
		state=unfinished
		kill "$(cat "$tmp/hangs")" 2>/dev/null
	fi
	holds "p[\"state\"] == p[\"result\"] == \"$state\"" 'section["updates"]["state"] == "passed"' \
		'section.get("operations", {"state": "interrupted"})["state"] == "interrupted"' '"smoke test of small" in p["not_started"]'
	has "^RESULT: $state"
	has "The run is $state: the page shows what was done until then"
	ok "prove_after_SIG$signal" "$why"
done
