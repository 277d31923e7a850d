#!/bin/bash
# `gtrain bench --world`, `gtrain check --link` and `--suggest`: predictions against closed forms, refused arguments, proposals.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
command -v python3 >/dev/null || { skip cost 'python3 is not installed'; exit 0; }
cd "$tmp" || exit 1
cat >net.cfg <<'CFG'
schema = 1; name = "net"; device = "cpu"; threads = 1;
data = { name = "synthetic"; batch = 64; classes = 10; samples = 512; samples_test = 50; };
model = { input = [1, 8, 8]; layers = ( { type = "flatten"; }, { name = "fc1"; type = "linear"; out = 256; }, { type = "relu"; },
	{ name = "fc2"; type = "linear"; out = 256; }, { type = "relu"; }, { name = "fc3"; type = "linear"; out = 10; } ); };
train = { epochs = 1; optimizer = { type = "sgd"; lr = 0.01; momentum = 0.9; }; };
checkpoint = { dir = ""; };
CFG

# ---- every mode ------------------------------------------------------------------------------------------------------------------------
# Kernels of a plan are measured and found again; without time on the links nothing is exposed, and a slow link makes the step longer.
for mode in ddp 'zero -s parallel.stage=1' 'zero -s parallel.stage=2' 'zero -s parallel.stage=3' pipe \
	'pipe -s parallel.schedule=zero-bubble -s parallel.replicas=2' 'ddp -s train.accumulate=2' \
	'ddp -s parallel.compress=bf16 -s parallel.bucket_mb=0.1' 'zero -s parallel.compress=bf16 -s parallel.bucket_mb=0.1'; do
	# shellcheck disable=SC2206 # words
	words=(-s parallel.mode=$mode)
	name=cost_$(tr -c 'a-z0-9\n' _ <<<"$mode")
	if "$gtrain" bench net.cfg "${words[@]}" --world 4 --steps 3 --json >times.json 2>err &&
		"$gtrain" check net.cfg "${words[@]}" --world 4 --link 1e6TB,0s --times times.json --json >fast.json 2>>err &&
		"$gtrain" check net.cfg "${words[@]}" --world 4 --link 1Gbit,1ms --times times.json --json >slow.json 2>>err &&
		python3 - >why 2>&1 <<'PY'
import json
fast, slow = (json.load(open(f"{f}.json"))["cost"] for f in ("fast", "slow"))
for c in fast, slow:
    assert abs(c["compute_s"] + c["idle_s"] + c["exposed_s"] - c["step_s"]) < 1e-4 * c["step_s"], c
    assert abs(c["efficiency"] - c["compute_s"] / c["step_s"]) < 1e-4 and abs(c["samples_per_s"] * c["step_s"] - 64) < 0.01, c
    assert c["transport"] == "gloo" and c["compute_s"] > 0, c
assert abs(fast["exposed_s"]) < 1e-6 and fast["compute_s"] == slow["compute_s"] and fast["idle_s"] == slow["idle_s"], (fast, slow)
assert slow["exposed_s"] > 0.003 and slow["scaled"] < 0.5, slow
conversions = [k for k in json.load(open("times.json"))["kernels"] if k["op"] in ("cast", "scale")] # of compressed gradients
assert all(k["size"] > 0 for k in conversions), conversions
PY
	then pass "$name"; else fail "$name" "$(cat err why)"; fi
done

# ddp on two ranks with one bucket: no kernel can hide the all_reduce, which begins after the backward pass, nor the exchange of scalars.
"$gtrain" bench net.cfg -s parallel.mode=ddp --world 2 --steps 3 --json >times.json 2>err
"$gtrain" check net.cfg --mode ddp --world 2 --link 1Gbit,1ms --times times.json --json >two.json 2>>err
if python3 - >why 2>&1 <<'PY'
import json
d, k = json.load(open("two.json")), json.load(open("times.json"))["kernels"]
a, b = 1e-3, 8e-9 * 1538 / 1448 # with the headers of TCP, IP and Ethernet
large = [x["bytes"] for x in d["buckets"] if x["bytes"] > 8192]
assert len(large) == len(d["buckets"]) == 1, d["buckets"]
scalars = [t["bytes_sent"] for t in d["ranks"][0]["traffic"] if t["kind"] == "all_gather"][0]
want = sum(4 * a + (64 + x) * b for x in large) + a + (64 + scalars) * b
assert abs(d["cost"]["exposed_s"] - want) < 1e-5 * want, (d["cost"], want)
# other names of calls with a communicator
kernels = sum(x["ms"] for x in k if x["impl"] != "none" and x["op"] != "zero")
assert abs(1e3 * d["cost"]["compute_s"] - kernels) < 0.05 * kernels, (d["cost"], kernels) # the layouts of paper differ in padding
PY
then pass cost_closed_form; else fail cost_closed_form "$(cat err why)"; fi

# Two buckets, and kernels that are 10,000 times as slow: the backward pass hides the all_reduce of the first bucket, as it does in a run,
# in which a thread of each rank communicates.
"$gtrain" bench net.cfg -s parallel.mode=ddp -s parallel.bucket_mb=0.1 --world 2 --steps 3 --json >times2.json 2>err
if python3 - >why 2>&1 <<'PY' &&
import json
d = json.load(open("times2.json"))
for k in d["kernels"]:
    k["ms"] *= 1 if k["op"] in ("record", "wait") else 1e4
json.dump(d, open("slow.json", "w"))
PY
	"$gtrain" check net.cfg --mode ddp -s parallel.bucket_mb=0.1 --world 2 --link 1Gbit,1ms --times slow.json --json >two.json 2>>err &&
	python3 - >why 2>&1 <<'PY'
import json
d = json.load(open("two.json"))
a, b = 1e-3, 8e-9 * 1538 / 1448 # with the headers of TCP, IP and Ethernet
size = [x["bytes"] for x in d["buckets"]]
assert len(size) == 2 and min(size) > 8192, d["buckets"]
scalars = [t["bytes_sent"] for t in d["ranks"][0]["traffic"] if t["kind"] == "all_gather"][0]
want = 4 * a + (64 + size[1]) * b + a + (64 + scalars) * b
assert abs(d["cost"]["exposed_s"] - want) < 1e-3 * want, (d["cost"], want) # the report has 6 digits of a step of about 1 s
assert abs(d["cost"]["communication_s"] - want - 4 * a - (64 + size[0]) * b) < 1e-3 * want, (d["cost"], want)
PY
then pass cost_hidden; else fail cost_hidden "$(cat err why)"; fi

# gpipe on two ranks with two micro-batches, kernels that take no time, and no latency: a rank is blocked until its message has left, so the
# two messages of each direction follow each other, and the backward ones begin when the last forward one has arrived.
gpipe=(-s parallel.mode=pipe -s parallel.schedule=gpipe -s parallel.chunks=2)
"$gtrain" bench net.cfg "${gpipe[@]}" --world 2 --steps 3 --json >times2.json 2>err
if python3 - >why 2>&1 <<'PY' &&
import json
d = json.load(open("times2.json"))
for k in d["kernels"]:
    k["ms"] *= 1e-6
json.dump(d, open("fast.json", "w"))
PY
	"$gtrain" check net.cfg "${gpipe[@]}" --world 2 --link 10Mbit,1ns --times fast.json --json >two.json 2>>err &&
	python3 - >why 2>&1 <<'PY'
import json
d = json.load(open("two.json"))
got = d["cost"]["exposed_s"]
forward = [t["bytes_sent"] for t in d["ranks"][0]["traffic"] if t["kind"] == "send"][0]
want = 2 * forward * 8e-7 * 1538 / 1448
assert abs(got - want) < 0.01 * want, (d["cost"], d["ranks"][0]["traffic"], want)
PY
then pass cost_pipe; else fail cost_pipe "$(cat err why)"; fi

# The memory for a file of times grows with the number of its lines, not with the square.
if python3 - "$gtrain" >why 2>&1 <<'PY'
import resource, subprocess, sys
with open("times.json") as f:
    line = f.read()
with open("many.json", "w") as f:
    f.write(1500 * line)
subprocess.run([sys.argv[1], "check", "net.cfg", "--mode", "ddp", "--world", "2", "--link", "1Gbit,1ms", "--times", "many.json", "--json"],
               check=True, stdout=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss # KiB
assert used < 250000, used
PY
then pass cost_many_lines; else fail cost_many_lines "$(cat why)"; fi

gives cost_text 0 out 'exposed communication' check net.cfg --mode ddp --world 2 --link 1Gbit,1ms --times times.json
gives cost_large 0 out 'efficiency' check net.cfg --mode ddp --world 65536 -s data.batch=65536 -s data.samples=65536 --link 1Gbit,1ms \
	--times times.json
# A rank on a GPU communicates by NCCL, which overlaps with kernels.
gives cost_nccl 0 out 'with NCCL' check net.cfg --mode ddp --world 2 -s device=cuda --device null --link 1Gbit,1ms --times times.json

# ---- refused -----------------------------------------------------------------------------------------------------------------------------
gives cost_no_times 64 err 'which `gtrain bench CFG --world N --json >times.json` measures' check net.cfg --world 2 --link 1Gbit,1ms
gives cost_no_link 64 err 'link and --times need each other' check net.cfg --world 2 --times times.json
gives cost_bad_link 64 err 'such as 100Gbit,5us, got fast' check net.cfg --mode ddp --world 2 --link fast --times times.json
gives cost_missing 66 err 'none.json' check net.cfg --mode ddp --world 2 --link 1Gbit,1ms --times none.json
echo '{"kernels":[{"op":"linear","layer":"fc1","ms":1}]}' >bad.json
gives cost_bad_file 65 err 'bad.json:1: expected the times of kernels' check net.cfg --mode ddp --world 2 --link 1Gbit,1ms --times bad.json
# A line whose kernels do not fit its step, as on a busy machine, gives a warning; with --strict, the command fails.
for at in '1.25 1' '0.7 1' '1 1.5' '2 1.5'; do
	python3 - "$at" <<'PY'
import json, sys
d = json.load(open("times.json"))
line = []
for ratio in map(float, sys.argv[1].split()):
    d["kernels_ms"] = 10 * ratio
    d["step_ms"] = 10
    line.append(json.dumps(d))
open("ratio.json", "w").write("\n".join(line) + "\n")
PY
	"$gtrain" check net.cfg --mode ddp --world 2 --link 1Gbit,1ms --times ratio.json --strict --json -s checkpoint.dir=runs >ratio.out 2>err
	rc=$?
	case $at in
	'1.25 1') want=0 says='' ;;
	'0.7 1') want=65 says='ratio.json:1: the kernels take 7 ms together, but the step took 10 ms' ;;
	'1 1.5') want=65 says='ratio.json:2: the kernels take 15 ms together, but the step took 10 ms' ;;
	*) want=65 says='ratio.json:1: the kernels take 20 ms together, but the step took 10 ms' ;;
	esac
	tr -s '\n ' ' ' <err >line
	if [ $rc = $want ] && grep -q "\"warning\":\"$says" ratio.out && { [ -n "$says" ] || ! [ -s err ]; } &&
		[[ $(<line) = *"$says"* ]]; then pass "cost_ratio_${at// /_}"
	else fail "cost_ratio_${at// /_}" "status $rc: $(cat err)"; fi
done
gives cost_ratio_suggest 0 err 'the kernels take 20 ms together' check net.cfg --suggest --world 4 --link 1Gbit,1ms --times ratio.json
if python3 - 2>err <<'PY'
import json
d = json.load(open("times.json"))
assert abs(d["kernels_ms"] - sum(k["ms"] for k in d["kernels"])) < 1e-3 * d["kernels_ms"], d
PY
then pass cost_sum; else fail cost_sum "$(cat err)"; fi

# bench prints nothing if the data is missing.
"$gtrain" bench net.cfg -s data.name=mnist -s data.root=nowhere --json >empty.json 2>err
gives cost_empty_file 65 err 'empty.json: the file is empty; gtrain bench CFG --world N --json >empty.json writes the times of kernels' \
	check net.cfg --mode ddp --world 2 --link 1Gbit,1ms --times empty.json
printf '\n \n' >blank.json
gives cost_blank_file 65 err 'blank.json: the file is empty' check net.cfg --mode ddp --world 2 --link 1Gbit,1ms --times blank.json
sed 's/"layer":"fc2"/"layer":"fc9"/g' times.json >other.json
gives cost_other_model 65 err 'no time of linear of fc2' check net.cfg --mode ddp --world 2 --link 1Gbit,1ms --times other.json
gives cost_one_rank 64 err 'several ranks, got one rank' check net.cfg --world 1 --link 1Gbit,1ms --times times.json
gives cost_threads 64 err 'mode = "dp" cannot be combined' check net.cfg --mode dp --world 2 --link 1Gbit,1ms --times times.json
gives bench_world_nproc 64 err 'world and --nproc cannot be combined' bench net.cfg --world 2 --nproc 2
gives bench_world_note 0 out '; 2 ranks together, without the time of communication' bench net.cfg --world 2 \
	-s parallel.mode=ddp --steps 2
gives suggest_no_world 64 err 'expected --world N' check net.cfg --suggest
gives suggest_memory 64 err 'such as 80G or 79.5GiB, got much' check net.cfg --suggest --world 4 --memory much
gives memory_alone 64 err 'expected the option --suggest too' check net.cfg --world 4 --memory 80G
gives suggest_mode 64 err 'suggest and --mode cannot be combined' check net.cfg --suggest --world 4 --mode ddp
gives suggest_small 78 err 'no plan for 4 ranks fits into' check net.cfg --suggest --world 4 --memory 1K
"$gtrain" check - --suggest --world 4 <net.cfg >out 2>err
if [ $? = 64 ] && grep -q 'needs a file' err; then pass suggest_stream; else fail suggest_stream "$(cat err)"; fi

# ---- proposals -----------------------------------------------------------------------------------------------------------------------
# With much memory, the mode that neither waits nor sends more; with less than ddp needs, one that fits. The lines are a config that plans.
"$gtrain" check net.cfg --suggest --world 4 --json >all.json 2>err
limit=$(python3 -c 'import json; print(next(s["memory"] for s in json.load(open("all.json"))["suggestions"] if s["way"] == "ddp") - 1)')
{
	"$gtrain" check net.cfg --suggest --world 4 --memory "$limit" --json >less.json
	"$gtrain" check net.cfg --suggest --world 4 --memory "$limit" >less.txt
	"$gtrain" check net.cfg --suggest --world 4 --link 1Gbit,1ms --times times.json --json >timed.json
} 2>>err
if python3 - "$limit" >why 2>&1 <<'PY'
import json, sys
all, less, timed = (json.load(open(f"{f}.json"))["suggestions"] for f in ("all", "less", "timed"))
assert {s["way"] for s in all} == {"ddp", "zero, stage 1", "zero, stage 2", "zero, stage 3", "pipe, 2 ranks", "pipe, 4 ranks"} or \
       {s["way"].split(",")[0] for s in all} == {"ddp", "zero", "pipe"}, all
assert all[0]["why"] == "proposed" and all[0]["idle"] == 0 and all[0]["accumulate"] == 1, all[0]
assert all[0]["bytes_sent"] == min(s["bytes_sent"] for s in all if s["idle"] == 0), all
assert less[0]["memory"] <= int(sys.argv[1]) and less[0]["fits"], less[0]
assert [s["step_s"] for s in timed if s["step_s"]] == sorted(s["step_s"] for s in timed if s["step_s"]) and timed[0]["step_s"] > 0, timed
PY
then pass suggest_order; else fail suggest_order "$(cat err why)"; fi
# A proposal sets all the keys that it prints: those of the config do not change its plan.
"$gtrain" check net.cfg --suggest --world 4 --json -s train.accumulate=4 >other.json 2>err
if cmp -s all.json other.json; then pass suggest_keys
else fail suggest_keys "$(head -c 300 other.json) instead of $(head -c 300 all.json)"; fi
# Times that the file lacks are measured with the commands that --suggest and check print. They set the keys of the plan, not of the config.
"$gtrain" bench net.cfg -s parallel.mode=ddp --world 4 --steps 2 --json 2>err | sed 's/"layer":"fc3"/"layer":"fc9"/g' >'some times.json'
list_commands() { # of the ways that have no prediction
	"$gtrain" check net.cfg --suggest --world 4 -s train.clip_norm=1.5 --link 1Gbit,1ms --times 'some times.json' --json 2>>err |
		python3 -c 'import json, sys
for s in json.load(sys.stdin)["suggestions"]:
    if not s["step_s"]: print((s["why"].split("`") + ["", ""])[1] or s["why"])'
}
list_commands >commands
runs=0
while [ $runs -lt 20 ] && line=$(list_commands | head -n 1) && [[ $line = 'gtrain bench CFG '* ]]; do
	eval "\"\$gtrain\" bench net.cfg --steps 2 ${line#gtrain bench CFG }" 2>>err || break
	runs=$((runs + 1))
done
zero="gtrain bench CFG --world 4 -s train.clip_norm=1.5 -s parallel.mode=zero -s train.accumulate=1 -s parallel.stage=2 --json"
if [ $runs -gt 0 ] && [ -z "$(list_commands)" ] && grep -qxF "$zero >>'some times.json'" commands; then pass suggest_measures
else fail suggest_measures "after $runs commands, the first of which is $(head -n 1 commands): $(list_commands) $(tail -n 3 err)"; fi
sed 's/"layer":"fc2"/"layer":"fc9"/g' times.json >fc9.json
gives cost_command 65 err 'gtrain bench CFG --world 2 -s parallel.bucket_mb=1 -s parallel.mode=zero --json >>fc9.json`' \
	check net.cfg --mode zero -s parallel.bucket_mb=1 --world 2 --link 1Gbit,1ms --times fc9.json
grep -E '^(parallel) = ' less.txt >lines.cfg && cat net.cfg lines.cfg >proposed.cfg
gives suggest_lines 0 out 'ranks ' check proposed.cfg --world 4
