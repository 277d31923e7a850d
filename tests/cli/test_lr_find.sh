#!/bin/bash
# gtrain lr-find: its steps are those of a run, in every mode; when it ends; what it prints, and that it writes nothing.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
if ! command -v python3 >/dev/null; then
	skip lr_find 'python3 is not installed'
	exit 0
fi
cat >"$tmp/net.cfg" <<'CFG'
schema = 1;
name = "net";
seed = 5;
device = "cpu";
threads = 1;
data = { name = "synthetic"; batch = 32; classes = 4; samples = 200; samples_test = 64; };
model = { input = [1, 8, 8]; layers = ( { name = "conv"; type = "conv2d"; out = 8; kernel = 3; }, { name = "bn"; type = "batchnorm2d"; },
	{ type = "relu"; }, { type = "flatten"; }, { name = "fc"; type = "linear"; out = 32; }, { type = "relu"; },
	{ name = "head"; type = "linear"; out = 4; } ); };
train = { epochs = 20; optimizer = { type = "sgd"; lr = 0.05; momentum = 0.9; }; };
checkpoint = { dir = "left"; };
log = { every_steps = 1; };
CFG
mkdir "$tmp/work"
cd "$tmp/work" || exit 1

# check NAME EXPRESSION [FILE]: a Python expression of c, the object in FILE (default: $tmp/out), and of run, the losses in $tmp/run
cat >"$tmp/check.py" <<'PY'
import json, os, sys
lines = open(sys.argv[2]).read().splitlines()
assert len(lines) == 1, f"{len(lines)} lines"
c = json.loads(lines[0])
run = []
if os.path.exists(sys.argv[3]):
    run = [e["loss"] for e in map(json.loads, open(sys.argv[3] + "/metrics.jsonl")) if e["event"] == "train"]
lr, loss, smooth = ([p[k] for p in c["curve"]] for k in ("lr", "loss", "smooth"))
def near(a, b, tol):
    return len(a) == len(b) and all(abs(x - y) <= tol * (1 + abs(y)) for x, y in zip(a, b))
def average(v):
    a, out, f = 0, [], 0.98 ** (100 / c["steps"])
    for i, x in enumerate(v):
        a = f * a + (1 - f) * x
        out.append(a / (1 - f ** (i + 1)))
    return out
assert eval("(" + sys.argv[1] + ")"), {k: c[k] for k in c if k != "curve"} | {"points": len(loss), "loss": loss[:3], "run": run[:3]}
PY
check() {
	if [ "$rc" != 0 ]; then
		fail "$1" "ended with $rc: $(tail -n 1 "$tmp/err")"
	elif why=$(python3 "$tmp/check.py" "$2" "${3:-$tmp/out}" "$tmp/run" 2>&1); then
		pass "$1"
	else
		fail "$1" "$(tail -n 1 <<<"$why")"
	fi
}

run lr-find "$tmp/net.cfg" --json
cp "$tmp/out" "$tmp/first"
check range 'lr[0] == 1e-7 and all(abs(b / a - 10 ** (8 / 99)) < 1e-9 for a, b in zip(lr, lr[1:])) and c["steps"] == 100'
# Both sides add the same doubles in the same order; the losses that are printed have 9 digits.
check smooth 'near(average(loss), smooth, 1e-8) and c["ended"] == "rise" and smooth[-1] > 4 * min(smooth) and smooth[-2] <= 4 * min(smooth)'
check suggests '1e-7 < c["suggestion"] < 1 and c["suggestion"] == c["suggestions"]["valley"] and c["suggestions"]["minimum/10"] > 0'
run lr-find "$tmp/net.cfg" --json
if cmp -s "$tmp/out" "$tmp/first"; then pass same_seed_same_curve; else fail same_seed_same_curve 'two tests differ'; fi
run lr-find "$tmp/net.cfg" --json -s seed=6
if cmp -s "$tmp/out" "$tmp/first"; then fail other_seed 'the seed changes nothing'; else pass other_seed; fi
run lr-find "$tmp/net.cfg" --json --from 0.001 --to 0.1 --steps 40
check other_range 'len(lr) == 40 and lr[0] == 0.001 and lr[-1] == 0.1 and c["ended"] == "range" and near(average(loss), smooth, 1e-8)'

# A range that is a point: the losses are those of a run with that rate, 6 full batches an epoch. The rates differ by one in a million.
# as_run NAME OPTIONS...
as_run() {
	local name=$1
	shift
	rm -rf "$tmp/run"
	run run "$tmp/net.cfg" -q -o "$tmp/run" -s train.steps=6 -s train.eval_every_epochs=0 "$@"
	[ "$rc" = 0 ] || fail "${name}_run" "$(tail -n 1 "$tmp/err")"
	run lr-find "$tmp/net.cfg" --json --from 0.05 --to 0.05000005 --steps 20 "$@"
	check "$name" 'len(run) == 6 and len(loss) == 20 and near(run, loss[:6], 1e-5)'
	rm -rf "$tmp/run"
}
as_run sgd
as_run adamw -s 'train.optimizer.type="adamw"' -s train.layer_decay=0.5 -s train.clip_norm=1.0
as_run groups -s \
	'train.groups=({match=["fc.*"];optimizer={type="adam";lr=0.002;};},{match=["conv.*"];frozen=true;},{match=["bn.*"];lr_mul=0.5;})'
as_run frozen_until -s 'train.groups=({match=["conv.*","bn.*"];frozen_until=3.0;})'
as_run ema -s train.ema.decay=0.9
as_run weights -s "train.class_weights=[1.0,2.0,0.5,3.0]" -s train.label_smoothing=0.1 -s train.accumulate=2
as_run drop_last -s data.drop_last=true
as_run bf16 -s 'precision="bf16"'
as_run recompute -s 'train.recompute="cheap"'
as_run ddp -s 'parallel.mode="ddp"' --nproc 2
as_run dp -s 'parallel.mode="dp"' --nproc 2
as_run zero -s 'parallel.mode="zero"' -s parallel.stage=3 --nproc 2
as_run pipe -s 'parallel.mode="pipe"' -s parallel.chunks=2 --nproc 2
as_run world -s 'reproducible="world"' -s parallel.shards=2 -s 'parallel.mode="ddp"' --nproc 2

# More steps than an epoch has, and an epoch that is shorter than a batch.
run lr-find "$tmp/net.cfg" --json -s data.samples=20 --steps 30
check less_than_a_batch 'len(loss) > 6 and loss[0] > 0'
run lr-find "$tmp/net.cfg" --json -s 'train.schedule={type="cosine";warmup=50.0;}'
if cmp -s "$tmp/out" "$tmp/first"; then pass no_schedule; else fail no_schedule 'a schedule changes the curve'; fi
run lr-find "$tmp/net.cfg" --json -s \
	'train.groups=({match=["fc.*"];optimizer={type="sgd";lr=0.5;momentum=0.9;};},{match=["conv.*"];frozen=true;})'
check group_rates 'abs(c["groups"][0] / c["suggestion"] - 10) < 1e-9 and c["groups"][1] is None'

# Ends.
run lr-find "$tmp/net.cfg" --json --from 1e-3 --to 1e30 --steps 20
if [ "$rc" = 1 ]; then rc=0; fi
check ends_early 'c["ended"] in ("rise", "diverged") and len(loss) < 20'
gives no_suggestion 1 err 'the curve gives no suggestion' lr-find "$tmp/net.cfg" --from 100 --to 1e6
gives diverged_at_once 3 err 'not finite' lr-find "$tmp/net.cfg" -s "data.std=[1.0e-40]"
gives from_above_to 64 err '0 < from < to, got 1 and 0.1' lr-find "$tmp/net.cfg" --from 1 --to 0.1
gives from_zero 64 err "--from: expected a number > 0, got '0'" lr-find "$tmp/net.cfg" --from 0
gives from_nan 64 err "--from: expected a number > 0, got 'nan'" lr-find "$tmp/net.cfg" --from nan
gives few_steps 64 err '--steps: expected an integer from 10' lr-find "$tmp/net.cfg" --steps 9
gives no_ratio 78 err 'expected a number > 0, because gtrain lr-find multiplies it and train.groups' lr-find "$tmp/net.cfg" \
	-s train.optimizer.lr=0.0 -s 'train.groups=({match=["fc.*"];optimizer={type="adam";lr=0.002;};})'

# Images from files.
python3 "$src/tests/cli/make_images.py" "$tmp/images" 12 20 rose aster tulip
run init "$tmp/images" -o "$tmp/images.cfg"
run lr-find "$tmp/images.cfg" --json --steps 12 -s data.batch=8 -s 'model.input=[3,16,16]' -s data.augment='()' -s eval.transforms='()' \
	-s 'model.layers=({type="flatten";},{type="linear";out=3;})' -s device=cpu --from 1e-4 --to 0.1
if [ "$rc" = 1 ]; then rc=0; fi
check folder 'len(loss) == 12'

# What it prints: as wide as the terminal, in the locale's characters; a number and a curve.
for locale in C.UTF-8 C; do
	for columns in 40 72 300; do
		LC_ALL=$locale COLUMNS=$columns "$gtrain" lr-find "$tmp/net.cfg" --color never >"$tmp/out" 2>"$tmp/err"
		if why=$(LC_ALL=$locale python3 -c '
import sys
text = open(sys.argv[1], "rb").read()
plot = [l for l in text.decode("utf-8").splitlines() if l[9:10] in "│|└+" and l[9:10]]
assert len(plot) == 17, f"{len(plot)} lines of a plot"
width = max(map(len, plot))
assert width == min(int(sys.argv[3]), 100), f"{width} columns"
assert b"\x1b" not in text
if sys.argv[2] == "C":
    assert text.isascii(), "characters that are not ASCII"
else:
    assert any(0x2800 < ord(c) < 0x2900 for l in plot for c in l), "no dots"
assert sum(l.count("V") for l in plot) == 1, "no mark of the valley"
' "$tmp/out" "$locale" "$columns" 2>&1); then
			pass "plot_${locale}_$columns"
		else
			fail "plot_${locale}_$columns" "$(tail -n 1 <<<"$why")"
		fi
	done
done
run lr-find "$tmp/net.cfg" -s seed=5 -s 'name="two words"'
if [ "$rc" != 0 ] || grep -q 'use at least' "$tmp/err"; then
	fail enough_steps "rc $rc: $(head -n 1 "$tmp/err")"
else
	pass enough_steps
fi
# The last line is a command that a shell takes.
line=$(tail -n 1 "$tmp/out")
if [[ $line == *" run $tmp/net.cfg -s seed=5 -s 'name=\"two words\"' -s train.optimizer.lr="* ]]; then
	pass command_to_paste
else
	fail command_to_paste "$line"
fi
if (cd "$tmp/work" && eval "$line -q -o '$tmp/pasted'" >"$tmp/log" 2>&1); then
	pass command_runs
else
	fail command_runs "$(tail -n 1 "$tmp/log")"
fi
# With checkpoints in the directory of the config, a run needs --new. A path with a blank is one word.
run run "$tmp/net.cfg" -q -s train.epochs=1 -s 'checkpoint.dir="a run"'
run lr-find "$tmp/net.cfg" -q -s 'checkpoint.dir="a run"'
line=$(tail -n 1 "$tmp/out")
if [[ $line == *" run $tmp/net.cfg --new -s 'checkpoint.dir=\"a run\"' -s train.optimizer.lr="* ]] &&
	eval "$line -q -s train.epochs=1" >"$tmp/log" 2>&1 && [ -d 'a run-2' ]; then
	pass command_new
else
	fail command_new "$line: $(tail -n 1 "$tmp/log")"
fi
rm -rf 'a run' 'a run-2'
gives warns_of_few_steps 0 err 'use at least 100 steps' lr-find "$tmp/net.cfg" --steps 60
gives suggestion_of_group 0 out " -s 'train.groups[0].optimizer.lr=" lr-find "$tmp/net.cfg" \
	-s 'train.groups=({match=["fc.*"];optimizer={type="sgd";lr=0.5;};})'
run lr-find "$tmp/net.cfg" -q
if [ "$(wc -l <"$tmp/out")" = 2 ] && [ ! -s "$tmp/err" ]; then pass quiet; else fail quiet "$(head -n 3 "$tmp/out")"; fi
if [ -z "$(ls -A)" ]; then pass writes_nothing; else fail writes_nothing "$(find . | head -n 3 | tr '\n' ' ')"; fi
