#!/bin/bash
# Parameter groups, first values and views in whole runs: what is frozen stays, what is not moves; resumed runs and the errors that need the
# model's names.
# tests/run: beside others
set -u
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cat >"$tmp/net.cfg" <<'CFG'
schema = 1; name = "net"; seed = 5; reproducible = "run";
data = { name = "synthetic"; samples = 48; samples_test = 30; classes = 4; batch = 16; mean = [0.5]; std = [0.25];
	augment = ( { type = "pad_crop"; pad = 2; mode = "reflect"; }, { type = "hflip"; alternate = true; } ); };
model = { input = [3, 12, 12]; layers = (
	{ name = "whiten"; type = "conv2d"; out = 24; kernel = 2; init = "whitening"; init_samples = 20; },
	{ type = "gelu"; },
	{ name = "conv"; type = "conv2d"; out = 32; kernel = 3; padding = 1; bias = false; init = "dirac"; },
	{ name = "bn"; type = "batchnorm2d"; },
	{ type = "gelu"; },
	{ type = "flatten"; },
	{ name = "head"; type = "linear"; out = 4; init_std = 1.0; },
	{ type = "scale"; factor = 0.01; } ); };
train = { epochs = 3; optimizer = { type = "adam"; lr = 0.01; };
	groups = ( { match = ["whiten.weight", "bn.weight"]; frozen = true; },
		{ match = "whiten.bias"; freeze_after = 1.0; optimizer = { type = "sgd"; lr = 0.1; momentum = 0.9; }; },
		{ match = "conv.weight"; optimizer = { type = "muon"; lr = 0.02; }; schedule = { type = "polynomial"; t_max = 3.0; }; },
		{ match = "head.weight"; optimizer = { type = "lion"; lr = 0.001; }; } ); };
eval = { tta = "mirror_translate"; };
checkpoint = { dir = ""; every_epochs = 1; keep = 9; };
log = { every_steps = 1; };
CFG
run() { # DIR ARGS...: the program's status
	local dir=$1
	shift
	"$GTRAIN" run "$tmp/net.cfg" -o "$dir" -q --no-progress "$@" >"$tmp/out" 2>"$tmp/log"
}
same() { # NAME WHAT: `ok` if the condition that follows holds
	local name=$1
	shift
	if "$@"; then echo "ok $name"; else echo "not ok $name: $(tail -n 1 "$tmp/log")"; fi
}
refused() { # NAME STATUS PATTERN ARGS...
	local name=$1 want=$2 pattern=$3
	shift 3
	run "$tmp/refused" "$@"
	local rc=$?
	if [ $rc = "$want" ] && grep -q -- "$pattern" "$tmp/log"; then
		echo "ok $name"
	else
		echo "not ok $name: status $rc, $(cat "$tmp/log")"
	fi
	rm -rf "$tmp/refused"
}
run "$tmp/a" || { echo "not ok groups_run: $(cat "$tmp/log")"; exit 1; }
echo "ok groups_run"
printf '%s\n' "$tmp"/a/step-* | sort >"$tmp/steps"
# The rates of the groups: frozen, frozen after an epoch of 3 steps, along a line to 0 after 9, constant.
python3 - "$tmp/a/metrics.jsonl" <<'PY'
import json, sys
got = [l["lr_groups"] for l in map(json.loads, open(sys.argv[1])) if l["event"] == "train"]
want = [[0, 0.1 if i < 3 else 0, 0.02 * (1 - i / 9), 0.001] for i in range(9)]
near = len(got) == 9 and all(len(g) == 4 and all(abs(a - b) < 1e-12 for a, b in zip(g, w)) for g, w in zip(got, want))
print("ok groups_in_metrics" if near else f"not ok groups_in_metrics: {got}")
PY
"$GTRAIN" check "$tmp/net.cfg" >"$tmp/out" 2>"$tmp/log"
if grep -q 'groups\[0\]  frozen  (whiten.weight, bn.weight)$' "$tmp/out" &&
	grep -q 'groups\[2\]  0.02 at 0%, .*(conv.weight)$' "$tmp/out"; then echo 'ok groups_in_check'
else echo "not ok groups_in_check: $(grep groups "$tmp/out" "$tmp/log" | head -n 3)"; fi
if "$GTRAIN" check "$tmp/net.cfg" --json | python3 -c '
import json, sys
g = json.load(sys.stdin)["groups"]
sys.exit(not (len(g) == 4 and g[0]["frozen"] and g[1]["lr"][0] == 0.1 and g[1]["lr"][4] == 0
    and [x["freeze_after"] for x in g] == [0, 1, 0, 0]))'
then echo 'ok groups_in_check_json'; else echo 'not ok groups_in_check_json'; fi
if "$GTRAIN" run "$tmp/net.cfg" -o "$tmp/plain" -q --no-progress -s 'train.groups=()' -s train.steps=1 >"$tmp/out" 2>"$tmp/log" &&
	! grep -q lr_groups "$tmp/plain/metrics.jsonl"; then
	echo 'ok no_groups_in_metrics'; else echo "not ok no_groups_in_metrics: $(tail -n 1 "$tmp/log")"; fi
cat >"$tmp/tensors.py" <<'PY'
import array, json, math, struct, sys
def read(path):
    raw = open(path, "rb").read()
    (n,) = struct.unpack_from("<Q", raw)
    out = {}
    for name, t in json.loads(raw[8:8 + n]).items():
        if name != "__metadata__" and t["dtype"] == "F32":
            b, e = t["data_offsets"]
            out[name] = (t["shape"], array.array("f", raw[8 + n + b:8 + n + e]))
    return out
steps = [l.strip() for l in open(sys.argv[1])]
w = [read(s + "/model.safetensors") for s in steps]
def say(name, ok, why=""):
    print(f"ok {name}" if ok else f"not ok {name}: {why}")
say("groups_frozen_stay", all(w[0][k] == w[-1][k] for k in ("whiten.weight", "bn.weight")))
say("groups_freeze_after", w[0]["whiten.bias"] == w[-1]["whiten.bias"] and w[0]["whiten.bias"][1].count(0.0) < 24)
say("groups_others_move", all(w[0][k] != w[-1][k] for k in ("conv.weight", "bn.bias", "head.weight", "head.bias")))
say("groups_states", sorted(read(steps[-1] + "/optimizer.safetensors")) == sorted(
    ["momentum_buffer.whiten.bias", "momentum_buffer.conv.weight", "exp_avg.head.weight"]
    + [f"{s}.{p}" for s in ("exp_avg", "exp_avg_sq") for p in ("bn.bias", "head.bias")]),
    str(sorted(read(steps[-1] + "/optimizer.safetensors"))))
v = w[0]["whiten.weight"][1]
say("whitening_has_both_signs", all(v[i] == -v[i + len(v) // 2] for i in range(len(v) // 2)))
# the first values: a rate of 0 leaves them
first = read(sys.argv[2] + "/latest/model.safetensors")
h = first["head.weight"][1]
mean = math.fsum(h) / len(h)
say("init_std", abs(math.sqrt(math.fsum((x - mean) ** 2 for x in h) / (len(h) - 1)) - 1) < 1e-5)
c = first["conv.weight"][1]  # [32, 24, 3, 3]
eye = all(c[(i * 24 + j) * 9 + k] == (1.0 if i == j and k == 4 else 0.0) for i in range(24) for j in range(24) for k in range(9))
say("zeros_are_zeros", not any(first["bn.weight"][1]) and any(first["head.weight"][1]))
say("dirac_is_the_identity", eye and any(x != 0 and abs(x) < 1 for x in c[24 * 24 * 9:]))
PY
run "$tmp/still" -s 'model.layers[3].init=zeros' \
	-s train.optimizer.lr=0.0 -s "train.groups[1].optimizer.lr=0.0" -s "train.groups[2].optimizer.lr=0.0" -s train.steps=1
python3 "$tmp/tensors.py" "$tmp/steps" "$tmp/still"

# killed after the first epoch and resumed: the same bits
run "$tmp/b" -s train.steps=3
"$GTRAIN" resume "$tmp/b" -s train.steps=0 -q --no-progress >/dev/null 2>"$tmp/log" || echo "not ok groups_resume_ran: $(cat "$tmp/log")"
same groups_resume_exact cmp -s "$tmp/a/latest/model.safetensors" "$tmp/b/latest/model.safetensors"
same groups_resume_states cmp -s "$tmp/a/latest/optimizer.safetensors" "$tmp/b/latest/optimizer.safetensors"
run "$tmp/bf16" -s precision=bf16
same groups_bf16 test -e "$tmp/bf16/latest/model.safetensors"

# views: evaluation by eval is that of training, its batch does not matter, and without views it differs
loss() { "$GTRAIN" eval "$tmp/a" --json "$@" 2>"$tmp/log" | sed -n 's/.*"loss":\([0-9.e-]*\).*/\1/p'; }
near() { awk -v a="$1" -v b="$2" 'BEGIN { d = a - b; exit !(a != "" && b != "" && d * d < 1e-12 * a * a) }'; }
trained=$(sed -n 's/.*"event":"eval","step":9.*"loss":\([0-9.e-]*\).*/\1/p' "$tmp/a/metrics.jsonl")
same tta_eval near "$trained" "$(loss)"
same tta_any_batch near "$trained" "$(loss -s data.eval_batch=7)"
if near "$trained" "$(loss -s eval.tta=none)"; then echo "not ok tta_changes: the same loss without views"; else echo "ok tta_changes"; fi

refused groups_no_match 78 'train.groups\[3\].match' -s 'train.groups[3]={ match = "fc*"; lr_mul = 2.0; }'
refused frozen_stats_none 78 \
	'train.groups\[3\].frozen_stats: expected a match that includes the weight and bias of a batch normalisation, got none' \
	-s 'train.groups[3]={ match = "head.*"; frozen_stats = true; }'
refused frozen_stats_half 78 \
	'train.groups\[0\].frozen_stats: expected match to name both bn.weight and bn.bias or neither of them, got only bn.weight' \
	-s 'train.groups[0].frozen_stats=true'
refused frozen_stats_untracked 78 'got bn with track_running_stats = false' -s 'train.groups[3]={ match = "bn.*"; frozen_stats = true; }' \
	-s 'train.groups[0].match="whiten.weight"' -s 'model.layers[3].track_running_stats=false'
refused frozen_stats_later 78 'frozen_stats: frozen_stats = true and freeze_after = 1 cannot be combined' \
	-s 'train.groups[3]={ match = "bn.*"; frozen_stats = true; freeze_after = 1.0; }' \
	-s 'train.groups[0].match="whiten.weight"'
# A normalisation without parameters is matched by the names that they would have.
run "$tmp/plain_bn" -s 'train.groups=({ match = "bn.*"; frozen_stats = true; })' -s 'model.layers[3].affine=false'
same frozen_stats_without_affine grep -q '"event":"epoch"' "$tmp/plain_bn/metrics.jsonl"
if "$GTRAIN" check "$tmp/plain_bn/config.cfg" >"$tmp/out" 2>"$tmp/log" &&
	grep -q 'groups\[0\]  .*, statistics frozen  (bn\.\*)$' "$tmp/out"; then echo 'ok frozen_stats_in_check'
else echo "not ok frozen_stats_in_check: $(cat "$tmp/log"; grep groups "$tmp/out")"; fi
refused groups_taken 78 'train.groups\[3\].match' -s 'train.groups[3]={ match = "conv.weight"; lr_mul = 2.0; }'
refused muon_of_a_bias 78 'head.bias' -s 'train.groups[3]={ match = "head.*"; optimizer = { type = "muon"; lr = 0.1; }; }'
refused muon_of_the_rest 78 'train.optimizer.type' -s train.optimizer.type=muon
refused whitening_odd 78 'even number of filters' -s 'model.layers[0].out=23'
refused whitening_not_first 78 'the model.s input' -s 'model.layers[2].init=whitening'
refused dirac_of_linear 78 'is for convolutions' -s 'model.layers[6].init=dirac'
