#!/bin/bash
# train.ema: the average of torch.optim.swa_utils.AveragedModel (make_ema.py), evaluated, saved as the model, used by eval, and the same
# bits in every mode and after a resume.
# tests/run: beside others
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/../cli/cli.sh"
golden=$src/tests/golden/ema.txt cfg=$src/tests/parity/freeze.conf
export OMP_WAIT_POLICY=passive
# An evaluation keeps the trained weights beside their average, and check counts them.
tiny_config
# memory NAME EXPRESSION ARGS...: of m, the bytes by kind
memory() {
	local name=$1 expression=$2
	shift 2
	run check "$tmp/tiny.cfg" --json "$@"
	if python3 -c '
import json, sys
m = json.load(open(sys.argv[1]))["memory"]
sys.exit(not eval(sys.argv[2]))' "$tmp/out" "$expression"; then
		pass "$name"
	else
		fail "$name" "$(sed 's/.*"memory":\({[^}]*}\).*/\1/' "$tmp/out")"
	fi
}
memory ema_kept 'm["weights kept in evaluations"] == m["parameters"] > 0' -s train.ema.decay=0.9
memory ema_none '"weights kept in evaluations" not in m'
if [ ! -d /usr/share/datasets/fashion-mnist ] && [ ! -d "${GTRAIN_DATA:-}/fashion-mnist" ]; then
	skip ema 'no FashionMNIST in /usr/share/datasets/fashion-mnist'
	exit 0
fi
base=(-s 'train.groups=()' -s train.ema.decay=0.9 -s train.eval_every_epochs=1 -s train.epochs=5)
go() { # NAME ARGS...: a run into $tmp/NAME
	local name=$1
	shift
	"$gtrain" run "$cfg" -o "$tmp/$name" -q --no-progress "${base[@]}" "$@" >"$tmp/log" 2>&1 || fail "ema_$name" "$(tail -n 1 "$tmp/log")"
}
digest() { cat "$tmp/$1/latest/"{model,optimizer}.safetensors 2>/dev/null | sha256sum; }
go one --device "${PARITY_DEVICE:-cpu}"
python3 - "$golden" "$tmp/one" <<'END'
import json, math, os, struct, sys
golden, run = sys.argv[1:]
raw = open(os.path.join(run, "latest", "model.safetensors"), "rb").read()
n = struct.unpack("<Q", raw[:8])[0]
got = {}
for name, t in json.loads(raw[8:8 + n]).items():
    if name != "__metadata__":
        b = raw[8 + n + t["data_offsets"][0]:8 + n + t["data_offsets"][1]]
        got[name] = struct.unpack(f"<{math.prod(t['shape'])}{'q' if t['dtype'] == 'I64' else 'f'}", b)
words = [line.split() for line in open(golden)]
loss = {int(w[1]): float(w[2]) for w in words if w[0] == "loss"}
evals = {int(w[1]): float(w[2]) for w in words if w[0] == "eval"}
want = {w[1]: (int(w[2]), float(w[3]), float(w[4])) for w in words if w[0] == "at"}
log = [json.loads(line) for line in open(os.path.join(run, "metrics.jsonl"))]
train = {e["step"]: e["loss"] for e in log if e["event"] == "train"}
test = {e["epoch"]: e["loss"] for e in log if e["event"] == "eval"}
def say(name, worst, bound, ok=True):
    print(f"# {name}: worst relative difference to PyTorch: {worst:.2e}")
    print(f"ok {name}" if ok and worst < bound else f"not ok {name}: {worst:.3e}")
# Rounding in f32 over 50 steps of a small, smooth net. The trained weights' own losses on the test images are per cents away.
say("ema_losses", max(abs(train[t] - v) / v for t, v in loss.items()), 1e-4, len(loss) == 50)
say("ema_evaluated", max(abs(test[e] - v) / v for e, v in evals.items()), 1e-4, len(evals) == 5)
say("ema_tensors", max(max(abs(math.sqrt(sum(x * x for x in got[k])) - norm), abs(sum(got[k]) - total) / math.sqrt(n)) / norm
                       for k, (n, norm, total) in want.items()), 1e-4, len(want) == len(got))
END
evaluated=$(grep '"event":"eval"' "$tmp/one/metrics.jsonl" | tail -n 1 | sed 's/.*"loss":\([0-9.]*\).*/\1/')
run eval "$tmp/one" --json
got=$(sed 's/.*"loss":\([0-9.]*\).*/\1/' "$tmp/out")
if [ "${got:0:7}" = "${evaluated:0:7}" ]; then pass ema_eval; else fail ema_eval "expected $evaluated, got $got"; fi

# reproducible = "world": the same bits on one rank and in every mode, average and trained weights.
world=(-s 'reproducible="world"' -s data.sampler=gtrain -s train.steps=12 -s train.clip_norm=0.0 -s parallel.shards=4)
go world "${world[@]}"
while read -r name mode ranks more; do
	# shellcheck disable=SC2086
	go "$name" "${world[@]}" -s parallel.mode="$mode" --nproc "$ranks" $more
	if [ "$(digest "$name")" = "$(digest world)" ]; then pass "ema_$name"; else fail "ema_$name" 'other bits than one rank'; fi
done <<'END'
ddp ddp 2
dp dp 2
zero1 zero 2
zero3 zero 2 -s parallel.stage=3
pipe pipe 2
copies pipe 4 -s parallel.replicas=2 -s parallel.across=zero
END
# Sharded gradients and fused updates of several ranks, which the above do not have.
go apart -s parallel.mode=zero -s parallel.stage=3 --nproc 2
go fused -s parallel.mode=ddp --nproc 2 -s train.clip_norm=0.0 -s train.ema.warmup=true -s train.steps=12
python3 - "$tmp/one" "$tmp/apart" <<'END'
import json, os, sys
a, b = ([e["loss"] for e in map(json.loads, open(os.path.join(d, "metrics.jsonl"))) if e["event"] == "eval"] for d in sys.argv[1:3])
worst = max((abs(x - y) / x for x, y in zip(a, b)), default=9)
# Ranks normalise over halves of a batch.
print("ok ema_sharded" if len(a) == len(b) == 5 and worst < 0.1 else f"not ok ema_sharded: {b}, not {a}")
END

# A resume ends with the same bits; a run can begin and stop to average.
go whole -s 'reproducible="run"' -s precision=bf16
go half -s 'reproducible="run"' -s precision=bf16 -s train.steps=17
"$gtrain" resume "$tmp/half" -q -s train.steps=0 >"$tmp/log" 2>&1
if [ "$(digest half)" = "$(digest whole)" ]; then pass ema_resume; else fail ema_resume "other bits: $(tail -n 1 "$tmp/log")"; fi
go off -s train.ema.decay=0.0 -s 'reproducible="run"' -s train.steps=20
go stop -s 'reproducible="run"' -s train.steps=10
"$gtrain" resume "$tmp/stop" -q -s train.steps=20 -s train.ema.decay=0.0 >"$tmp/log" 2>&1
if [ "$(digest stop)" = "$(digest off)" ]; then pass ema_stop; else fail ema_stop "other bits than without: $(tail -n 1 "$tmp/log")"; fi
"$gtrain" resume "$tmp/off" -q -s train.steps=30 -s train.ema.decay=0.99 >"$tmp/log" 2>&1 || fail ema_begin "$(tail -n 1 "$tmp/log")"
gives ema_inspect 0 out 'trained.fc1.weight' inspect "$tmp/off"
gives ema_said 0 err 'moving average of the weights (decay 0.9)' run "$cfg" "${base[@]}" -s train.steps=1
