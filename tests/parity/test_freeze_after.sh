#!/bin/bash
# train.groups with freeze_after: losses and weights of PyTorch (make_freeze.py), the same curve in every parallel mode, the same bits in
# every mode with reproducible = "world", after a resume before, at and after the border, and in a run that is stopped at the border and
# continued with frozen = true; the steps after the border do less.
# tests/run: beside others
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/../cli/cli.sh"
# shellcheck source=tests/parity/freeze.sh
. "$src/tests/parity/freeze.sh"
groups=(-s 'train.groups=({match=["conv1.*","bn1.*"];freeze_after=1.0;},{match="fc1.*";freeze_after=2.0;})')
go after --device "${PARITY_DEVICE:-cpu}" "${groups[@]}"
as_torch after freeze_after.txt
every_mode -s 'train.groups=({match=["conv1.*"];freeze_after=0.7;},{match=["fc2.*"];freeze_after=1.0;},{match="fc1.*";frozen_until=0.9;})'
every_world "${groups[@]}"
resumes whole '7 10 11 20 25' "${groups[@]}"
# With a moving average, micro-batches, evaluations, two ranks and Adam's states in shards; and in a pipeline. The interrupted run begins
# with gradients of 0, so the bits would differ if old ones counted in the norm.
more=(-s data.sampler=gtrain -s train.accumulate=2 -s train.ema.decay=0.9 -s train.eval_every_steps=4)
resumes zero2 '9 10 12' "${groups[@]}" "${more[@]}" -s parallel.nproc=2 -s parallel.mode=zero -s parallel.stage=2
resumes ddp '10 12' "${groups[@]}" "${more[@]}" -s parallel.nproc=2 -s parallel.mode=ddp
resumes pipe '10 12' "${groups[@]}" -s parallel.nproc=2 -s parallel.mode=pipe

# Freezing by hand: the run stops at the border and goes on with these parameters frozen. Without clipping, because the parameters have
# another order in memory then, in which the norm would be summed.
by_hand() { # NAME PATTERNS
	local run=(-s 'reproducible="run"' -s train.clip_norm=0.0)
	go "$1" "${run[@]}" -s "train.groups=({match=$2;freeze_after=1.0;})"
	go "$1_hand" "${run[@]}" -s 'train.groups=()' -s train.steps=10
	"$gtrain" resume "$tmp/$1_hand" -q -s train.steps=0 -s "train.groups=({match=$2;frozen=true;})" >"$tmp/log" 2>&1 ||
		fail "freeze_by_hand_$1" "$(tail -n 1 "$tmp/log")"
	local differ
	differ=$(moved "$tmp/$1" "$tmp/$1_hand" | tr ' ' '\n' | grep -v '^exp_avg' | tr '\n' ' ')
	if [ -z "$differ" ]; then pass "freeze_by_hand_$1"; else fail "freeze_by_hand_$1" "$differ"; fi
}
by_hand first '["conv1.*","bn1.*"]'
by_hand middle '["bn2.*","fc1.*"]'
by_hand last '"fc2.*"'
by_hand weights '["conv?.weight","bn1.weight","fc1.weight"]'
by_hand biases '["*.bias"]'

# What is frozen stays to the bit, with its states; running statistics go on. All that is not frozen moves.
go border "${groups[@]}" -s train.steps=10
got=$(moved "$tmp/border" "$tmp/after" | tr ' ' '\n' | grep -v '^exp_avg' | tr '\n' ' ')
want='bn1.num_batches_tracked bn1.running_mean bn1.running_var bn2.bias bn2.num_batches_tracked bn2.running_mean bn2.running_var bn2.weight'
want+=' conv2.weight fc1.bias fc1.weight fc2.bias fc2.weight '
kept=$(moved "$tmp/border" "$tmp/after" | tr ' ' '\n' | grep '^exp_avg.*\.\(conv1\|bn1\)\.')
if [ -z "$kept" ] && [ "$got" = "$want" ]; then pass freeze_after_stays; else fail freeze_after_stays "$got; $kept"; fi
# A bias of a first normalisation is trained, even if nothing before it is.
go beta -s 'train.groups=({match=["conv1.*","bn1.weight"];frozen=true;})' -s train.steps=2
go beta_start -s 'train.groups=({match=["conv1.*","bn1.weight"];frozen=true;})' -s train.steps=1 -s train.optimizer.lr=0.0
if moved "$tmp/beta" "$tmp/beta_start" | grep -qw bn1.bias; then pass freeze_beta; else fail freeze_beta 'bn1.bias is not trained'; fi

# The program after the border has no kernel of the first layers' backward pass. A phase that begins after the last epoch has none.
"$gtrain" plan "$cfg" --device null "${groups[@]}" -s train.epochs=2 --json >"$tmp/plan" 2>"$tmp/err"
python3 - "$tmp/plan" <<'END'
import json, sys
p = {}
for l in map(json.loads, open(sys.argv[1])):
    p.setdefault(l["program"], []).append((l.get("op"), l.get("layer")))
one, two = p["step"], p.get("step in the epochs from 1 to 2", [])
back = {("conv2d.dw", "conv1"), ("batchnorm.dx", "bn1"), ("tanh.dx", "act1"), ("conv2d.dx", "conv2")}
ok = len(p) == 3 and back <= set(one) and not back & set(two) and ("conv2d.dw", "conv2") in two and ("conv2d", "conv1") in two
print("ok freeze_after_plan" if ok else f"not ok freeze_after_plan: {list(p)} {two}")
END
# Ranks do not reduce buckets in which all is frozen: the last one of three, which has the first layers, or the first one.
reduced() { # NAME PATTERNS EXPECTED MODE...: elements that a rank of two reduces and gathers in a step before, and after the border
	local name=$1 match=$2 want=$3 got
	shift 3
	"$gtrain" plan "$cfg" --device null --world 2 -s parallel.bucket_mb=0.002 --mode "$@" -s train.epochs=2 --json \
		-s "train.groups=({match=$match;freeze_after=1.0;})" >"$tmp/plan" 2>"$tmp/err"
	got=$(python3 -c '
import json, sys
p = {}
for l in map(json.loads, open(sys.argv[1])):
    if "count" in l and l["layer"] != "scalars" and not l["program"].startswith("eval"):
        ways = p.setdefault(l["program"], {})
        ways[l["op"]] = ways.get(l["op"], 0) + l["count"]
print(" | ".join(" ".join(f"{op}:{n}" for op, n in sorted(ways.items())) for ways in p.values()))' "$tmp/plan")
	if [ "$got" = "$want" ]; then pass "freeze_after_$name"; else fail "freeze_after_$name" "$got $(tail -n 1 "$tmp/err")"; fi
}
first='["conv?.*","bn1.*"]' last='["fc?.*"]' b='barrier:0 reduce_scatter'
reduced ddp_first "$first" "$b:13568 | $b:13440" ddp
reduced zero2_last "$last" "$b:13568 | $b:768" zero -s parallel.stage=2
# Parameters are gathered for the forward pass, and for the backward pass of what is trained.
reduced zero3_first "$first" 'all_gather:14336 reduce_scatter:13568 | all_gather:14208 reduce_scatter:13440' zero -s parallel.stage=3
# `gtrain bench` measures the steps of each part of the run.
"$gtrain" bench "$cfg" --device "${PARITY_DEVICE:-cpu}" --steps 2 "${groups[@]}" --json >"$tmp/bench" 2>"$tmp/err"
python3 -c '
import json, sys
b = json.load(open(sys.argv[1]))
got = [(p["when"], p["gflops"] > 0 and abs(p["samples_per_s"] * p["step_ms"] / 64e3 - 1) < 1e-3) for p in b["phases"]]
ok = got == [("in the epochs from 1 to 2", True), ("in the epochs after 2", True)] and b["step_ms"] > 0
print("ok freeze_after_bench" if ok else f"not ok freeze_after_bench: {got}")' "$tmp/bench" ||
	fail freeze_after_bench "$(tail -n 1 "$tmp/err")"
gives freeze_after_check 0 out ', frozen after 1 epoch  (conv1.*, bn1.*)' check "$cfg" "${groups[@]}"
gives freeze_after_all 78 err 'in the epochs after 1' check "$cfg" -s 'train.groups=({match="*";freeze_after=1.0;})'
# With larger batches, a resumed run continues at the same epoch: the group is frozen after three epochs, and two are done.
go grown -s train.epochs=2 -s data.batch=32 -s 'train.groups=({match="*";freeze_after=3.0;})'
gives freeze_after_resume_with_larger_batch 0 err 'the schedules continue at the same epoch, which is now step 20 of 30' \
	resume "$tmp/grown" -q -s data.batch=64 -s train.epochs=3
gives freeze_after_the_end 0 out ', frozen after 3 epochs' check "$cfg" -s 'train.groups=({match="*";freeze_after=3.0;})'
