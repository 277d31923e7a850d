#!/bin/bash
# `gtrain check` of several ranks, what it refuses, and that `gtrain run` says the same before it starts any of them.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
cd "$tmp" || exit 1
cat >net.cfg <<'CFG'
schema = 1;
name = "net";
seed = 1;
device = "cpu";
data = { name = "synthetic"; batch = 24; classes = 10; samples = 100; samples_test = 50; };
model = { input = [1, 8, 8]; layers = (
	{ type = "flatten"; },
	{ name = "fc1"; type = "linear"; out = 64; }, { type = "relu"; },
	{ name = "fc2"; type = "linear"; out = 64; }, { type = "relu"; },
	{ name = "fc3"; type = "linear"; out = 64; }, { type = "relu"; },
	{ name = "fc4"; type = "linear"; out = 64; }, { type = "relu"; },
	{ name = "fc5"; type = "linear"; out = 64; }, { type = "relu"; },
	{ name = "fc6"; type = "linear"; out = 10; } ); };
train = { epochs = 1; optimizer = { type = "adam"; lr = 0.01; }; };
parallel = { mode = "ddp"; };
checkpoint = { dir = ""; };
CFG

# number EXPRESSION FILE: of a JSON object d
number() { python3 -c "import json; d = json.load(open('$2')); print($1)"; }
equal() { # name, expected, got
	if [ "$2" = "$3" ]; then pass "$1"; else fail "$1" "expected $2, got $3"; fi
}

# ---- whose number of ranks ---------------------------------------------------------------------------------------------------------------
"$gtrain" check net.cfg --json >auto.json
"$gtrain" check net.cfg --json -s parallel.nproc=3 >own.json
"$gtrain" check net.cfg --json -s parallel.nproc=3 --world 4 >given.json
(umask 077 && printf "%064d" 7 >token)
"$gtrain" run net.cfg -n --json --nproc 2 --nnodes 3 --master-addr 127.0.0.1 --token-file token >dry.json
equal world_auto '1 1' "$(number 'd["world"], len(d["ranks"])' auto.json | tr -d '(),')"
equal world_is_auto 'True False False' "$(for f in auto own given; do number 'd.get("world_is_auto", False)' $f.json; done | paste -sd' ')"
gives world_auto_said 0 out 'ranks       1 here; a run chooses the number for its machine (parallel.nproc = "auto"); --world N shows' \
	check net.cfg
for args in '--world 2' '-s parallel.nproc=1' '-s parallel.mode=single'; do
	# shellcheck disable=SC2086 # two words
	run check net.cfg $args
	if [ "$rc" = 0 ] && ! grep -q 'number for its machine' "$tmp/out"; then pass "world_said_$args"; else fail "world_said_$args" "$rc"; fi
done
equal world_own '3 3' "$(number 'd["world"], len(d["ranks"])' own.json | tr -d '(),')"
equal world_given '4 4' "$(number 'd["world"], len(d["ranks"])' given.json | tr -d '(),')"
equal world_dry_run '6 6' "$(number 'd["world"], len(d["ranks"])' dry.json | tr -d '(),')"

# ---- what is shared out ------------------------------------------------------------------------------------------------------------------
# Bytes of the flat arenas on a rank of 4: ddp's, then with each stage of zero less. Memory in common would hide it: not on a GPU.
"$gtrain" check net.cfg --json --world 4 -s device=cuda --device null -s parallel.bucket_mb=0.001 >ddp.json
for stage in 1 2 3; do
	"$gtrain" check net.cfg --json --world 4 -s device=cuda --device null -s parallel.bucket_mb=0.001 -s parallel.mode=zero \
		-s parallel.stage=$stage >zero$stage.json
done
if python3 - >why 2>&1 <<'PY'
import json
def arenas(f):
    m = json.load(open(f))["memory"]
    return [m[k] for k in ("parameters", "gradients", "optimizer state")]
d, z = arenas("ddp.json"), [arenas("zero%d.json" % s) for s in (1, 2, 3)]
print(d, z)
assert z[0][2] == z[1][2] == z[2][2] < d[2] / 3, "a fourth of the state, in every stage"
assert z[0][0] >= d[0] and z[0][1] >= d[1]
assert z[1][1] < z[0][1] and z[1][0] == z[0][0]
assert z[2][0] < z[1][0] and z[2][1] == z[1][1]
w = json.load(open("zero1.json"))
assert sum(b["bytes"] for b in w["buckets"]) == w["memory"]["gradients"], "the buckets are the arena"
assert all(b["shard_bytes"] * 4 == b["bytes"] for b in w["buckets"])
assert {o["parameter"] for o in w["owners"]} == {"fc%d.%s" % (i, k) for i in range(1, 7) for k in ("weight", "bias")}
# of n bytes on 4 ranks, all_reduce sends 2 n 3/4, reduce_scatter and all_gather n 3/4 each: the same
def sent(f):
    return sum(t["bytes_sent"] for t in json.load(open(f))["ranks"][0]["traffic"] if t["group"] == "data")
for f, kinds in (("ddp.json", {"all_reduce"}), ("zero1.json", {"reduce_scatter", "all_gather"})):
    r = json.load(open(f))
    assert sent(f) == 6 * r["memory"]["gradients"] // 4, (f, sent(f))
    assert {t["kind"] for t in r["ranks"][3]["traffic"] if t["group"] == "data"} == kinds
assert [r["samples"] for r in w["ranks"]] == [6, 6, 6, 6]
PY
then pass zero_stages_smaller; else fail zero_stages_smaller "$(tr '\n' ' ' <why)"; fi

# ---- refusals: the same sentence, once, and no rank's name ---------------------------------------------------------------------------
# same NAME SENTENCE STATUS OPTIONS...: of check --world 2 and of run --nproc 2
same() {
	local name=$1 sentence=$2 status=$3 c r
	shift 3
	"$gtrain" check net.cfg --world 2 "$@" >out 2>check.err
	c=$?
	"$gtrain" run net.cfg --nproc 2 "$@" >out 2>run.err
	r=$?
	[ "${check:-yes}" = yes ] || c=$status
	[ "${check:-yes}" = yes ] || cp run.err check.err
	if [ "$c" = "$status" ] && [ "$r" = "$status" ] && [ "$(wc -l <run.err)" = 1 ] && cmp -s check.err run.err &&
		grep -qF "$sentence" run.err && ! grep -q 'rank [0-9]' run.err; then
		pass "refuse_$name"
	else
		fail "refuse_$name" "check $c: $(head -n 1 check.err); run $r: $(head -n 2 run.err)"
	fi
}
same outputs 'expected at least 12 outputs' 78 -s data.classes=12
same fp16_on_cpu 'precision = "fp16" and device "cpu" cannot be combined' 78 -s precision=fp16
same batch_too_small 'data.batch: expected at least' 78 -s data.batch=1
same strided 'because data.sampler = "torch" gives every rank the same number of samples' 78 -s data.batch=25 -s data.sampler=torch
same muon 'parallel.mode = "zero" and the optimizer "muon" cannot be combined' 78 -s parallel.mode=zero -s train.optimizer.type=muon
pipe=(-s parallel.mode=pipe -s parallel.replicas=2)
same muon_across 'parallel.across = "zero" and the optimizer "muon" cannot be combined' 78 "${pipe[@]}" -s parallel.across=zero \
	-s train.optimizer.type=muon
same across_stage 'parallel.stage: parallel.mode = "pipe" does not use this key; zero does' 78 "${pipe[@]}" -s parallel.across=zero \
	-s parallel.stage=2
same stage_across 'parallel.stage: parallel.mode = "pipe" does not use this key; zero does' 78 "${pipe[@]}" -s parallel.stage=2
same across_zero 'parallel.across: parallel.mode = "zero" does not use this key; pipe does' 78 -s parallel.mode=zero -s parallel.across=zero
same shards 'parallel.shards: expected a multiple of the number of ranks' 78 -s reproducible=world -s parallel.shards=1
gives shards_three 78 err 'parallel.shards: expected a power of two as the number of ranks that share the batch' check net.cfg --world 3 \
	-s reproducible=world
same best 'checkpoint.best.metric: expected a metric of an evaluated split, got "valid/acc"' 78 \
	-s checkpoint.best.metric=valid/acc -s data.valid=0.001
check=no same data_missing '/nonexistent does not exist' 66 -s data.name=cifar10 -s data.root=/nonexistent -s data.samples=0 \
	-s data.samples_test=0 -s data.classes=0 -s 'model.input=[3,32,32]'
"$gtrain" run net.cfg -q -o used --nproc 2 >out 2>err
check=no same dir_used 'used: the directory contains the checkpoints of another run' 73 -o used

# ---- a mode by option, with the checks of the file -----------------------------------------------------------------------------------
expect_mode() { # name, sentence, options...
	local name=$1 sentence=$2
	shift 2
	if "$gtrain" check net.cfg "$@" >out 2>err; then
		fail "$name" "accepted"
	elif grep -qF -- "$sentence" err; then
		pass "$name"
	else
		fail "$name" "$(head -n 1 err)"
	fi
}
expect_mode mode_checks_keys 'parallel.stage' -s parallel.mode=zero -s parallel.stage=2 --mode ddp
expect_mode mode_single 'parallel.mode = "single" and 2 ranks cannot be combined' --mode single --world 2
# In a large world, equal ranks are planned once, and the rows cover all ranks.
for mode in 'ddp' 'zero' 'pipe -s parallel.replicas=16384'; do
	# shellcheck disable=SC2086 # words
	"$gtrain" check net.cfg --world 65536 --json -s data.batch=300000 -s data.samples=1000001 --mode $mode >large.json 2>err
	equal "largest_${mode%% *}" 'True True True' "$(number '[sum(r["last"] + 1 - r["rank"] for r in d["ranks"]) == d["world"],
		sum(r["samples"] * (r["last"] + 1 - r["rank"]) for r in d["ranks"] if r["place"] == 0) == 300000, len(d["ranks"]) < 100]' \
		large.json | tr -d '[],')"
done
expect_mode too_many '--world: expected an integer from 1 to 65536' --world 65537
"$gtrain" check net.cfg --mode zero --world 2 --json >mode.json && equal mode_by_option zero "$(number 'd["mode"]' mode.json)"
# The file's stage is zero's: --mode takes it with it, and a run that goes back has it again.
sed 's/mode = "ddp";/mode = "zero"; stage = 3;/' net.cfg >zero.cfg
if "$gtrain" check zero.cfg --mode pipe --world 4 -s parallel.replicas=2 -s parallel.across=zero --json >mode.json 2>err; then
	equal mode_leaves_stage 'optimizer state' "$(number 'd["sharded"]' mode.json)"
else fail mode_leaves_stage "$(head -n 1 err)"; fi
"$gtrain" plan net.cfg --world 2 --rank 2 >out 2>err
if grep -q -- '--rank 2: expected a rank from 0 to 1' err; then pass plan_rank; else fail plan_rank "$(head -n 1 err)"; fi

# --time: the measured step times the numbers of steps; not with what it cannot measure
cat >"$tmp/timed.cfg" <<'CFG'
schema = 1; name = "timed";
data = { name = "synthetic"; batch = 32; classes = 4; samples = 640; samples_test = 64; };
model = { input = [1, 8, 8]; layers = ( { type = "flatten"; }, { name = "fc"; type = "linear"; out = 4; } ); };
train = { epochs = 3; optimizer = { type = "sgd"; lr = 0.01; }; };
CFG
gives time_measured 0 out 'for the run on this machine, without evaluations (10 steps of ' check "$tmp/timed.cfg" --time --device cpu
run check "$tmp/timed.cfg" --time --device cpu --json
if sed -nE 's/.*"time":\{"step_s":([^,]*),"epoch_s":([^,]*),"run_s":([^}]*)\}.*/\1 \2 \3/p' "$tmp/out" |
	awk '{ n++; e = $2 / $1; r = $3 / $1; good = $1 > 0 && e > 19.99 && e < 20.01 && r > 59.9 && r < 60.1 }
		END { exit !(n == 1 && good) }'; then
	pass time_json
else fail time_json "$(grep -o '"time".\{60\}' "$tmp/out")"; fi
gives time_of_ranks 64 err '--time measures one rank, and this plan has 2' check "$tmp/timed.cfg" --time --mode ddp --world 2
gives time_without_a_device 64 err '--device null' check "$tmp/timed.cfg" --time --device null
