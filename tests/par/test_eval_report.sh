#!/bin/bash
# gtrain eval --report: the same report on any number of ranks, in every mode and precision, and on the host's CUDA runtime; its forms.
# tests/run: beside others
# shellcheck source=tests/par/par.sh
. "$(dirname "$0")/par.sh"
# shellcheck source=tests/cudasim/sim.sh
. "$src/tests/cudasim/sim.sh"
if ! command -v python3 >/dev/null; then
	echo 'skip eval_report: python3 is not installed'
	exit 0
fi
cd "$tmp" || exit 1
net() { # CLASSES
	cat <<CFG
schema = 1; name = "net"; seed = 5;
data = { name = "synthetic"; batch = 32; classes = $1; samples = 640; samples_test = 101; eval_batch = 50; };
model = { input = [1, 8, 8]; layers = ( { type = "flatten"; }, { name = "fc0"; type = "linear"; out = 24; }, { type = "relu"; },
	{ name = "fc1"; type = "linear"; out = 24; }, { type = "relu"; }, { name = "fc2"; type = "linear"; out = $1; } ); };
train = { epochs = 3; optimizer = { type = "sgd"; lr = 0.05; momentum = 0.9; }; };
checkpoint = { dir = "unused"; };
CFG
}
net 7 >net.cfg
net 60 >wide.cfg
"$gtrain" run -q --no-progress net.cfg -o net >/dev/null 2>"$tmp/err" || { echo "not ok eval_report: $(tail -n 1 "$tmp/err")"; exit 1; }
"$gtrain" run -q --no-progress wide.cfg -o wide >/dev/null 2>"$tmp/err" || { echo "not ok eval_report: $(tail -n 1 "$tmp/err")"; exit 1; }

# consistent FILE: the report agrees with the scores that the loss kernel counts, and with its own matrix.
cat >check.py <<'PY'
import json, sys
a = json.load(open(sys.argv[1]))
r = a["report"]
m, k = r["confusion"], len(r["classes"])
assert a["samples"] == r["samples"] == sum(map(sum, m)), a["samples"]
assert abs(a["acc"] - r["accuracy"]) < 1e-8 and abs(a["top5"] - r["top5"]) < 1e-8, (a["acc"], r["accuracy"])
# the kernel computes each loss in f32; bf16 rounds outputs to 2^-8 before both, so that they agree as well
assert abs(a["loss"] - r["log_loss"]) < 1e-5 * a["loss"], (a["loss"], r["log_loss"])
for c in range(k):
    s = r["classes"][c]
    assert s["class"] == c and s["support"] == sum(m[c]) and s["predicted"] == sum(row[c] for row in m), s
    assert abs(s["precision"] * s["predicted"] - m[c][c]) < 1e-9 and abs(s["recall"] * s["support"] - m[c][c]) < 1e-9, s
assert sum(p["samples"] for p in r["confused"]) == a["samples"] - sum(m[c][c] for c in range(k))
assert all(m[p["class"]][p["predicted"]] == p["samples"] for p in r["confused"])
if len(sys.argv) > 2:  # another run of the same evaluation
    b = json.load(open(sys.argv[2]))
    tolerance = float(sys.argv[3])
    def same(x, y, at):
        if isinstance(x, dict):
            assert x.keys() == y.keys(), at
            for key in x:
                if key not in ("seconds", "time"):
                    same(x[key], y[key], at + "." + key)
        elif isinstance(x, list):
            assert len(x) == len(y), at
            for i, (p, q) in enumerate(zip(x, y)):
                same(p, q, at + "[%d]" % i)
        elif isinstance(x, float):
            assert abs(x - y) <= tolerance * (1 + abs(x)), (at, x, y)
        else:
            assert x == y, (at, x, y)
    same(a, b, "")
PY
consistent() { # NAME FILES...
	local name=$1
	shift
	if python3 check.py "$@" 2>why; then echo "ok $name"; else echo "not ok $name: $(tail -n 1 why) $(tail -n 1 err)"; fi
}
report() { # OUT PROGRAM ARGS...
	local out=$1 program=$2
	shift 2
	"$program" eval net --report --json "$@" >"$out" 2>err </dev/null
}
report one.json "$gtrain"
consistent report_of_one_rank one.json

# 101 samples in batches of 50: the last batch has one sample, so three of four ranks have none. Another partition of a batch changes the
# order of a sum, that is an output by some 2^-24, and no class of these samples.
for word in ddp dp zero1 zero3 gpipe '1f1b*2'; do
	for ranks in 1 2 4; do
		case $word-$ranks in *'*2-1') continue ;; esac
		mode_args "$word" $ranks
		report ranks.json "$gtrain" "${mode[@]}"
		consistent "report_${word//\*/x}_$ranks" ranks.json one.json 1e-6
	done
done
report bf16.json "$gtrain" -s precision=bf16
consistent report_bf16 bf16.json
report mirrored.json "$gtrain" -s eval.tta=mirror
consistent report_tta mirrored.json
report train.json "$gtrain" --split train --nproc 3 -s parallel.mode=ddp -s data.eval_batch=64
report train1.json "$gtrain" --split train
consistent report_train train.json train1.json 1e-6
why=$(sim_absent)
if [ -n "$why" ]; then
	echo "skip report_cuda: $why"
else
	report cuda.json "$sim/bin/gtrain" --device cuda
	consistent report_cuda cuda.json one.json 1e-5 # sums in another order
	report cuda2.json "$sim/bin/gtrain" --device cuda --nproc 2 -s parallel.mode=ddp
	consistent report_cuda_2 cuda2.json one.json 1e-5
	report cuda16.json "$sim/bin/gtrain" --device cuda -s precision=fp16
	consistent report_cuda_fp16 cuda16.json
fi

# A checkpoint of a pipeline with copies, or with parallel.cuts, is evaluated on one rank.
mode_args 'gpipe*2' 4
"$gtrain" run -q --no-progress net.cfg -o copies "${mode[@]}" -s parallel.nproc=4 >/dev/null 2>err
"$gtrain" run -q --no-progress net.cfg -o cuts --nproc 2 -s parallel.mode=pipe -s parallel.nproc=2 -s 'parallel.cuts=["fc2"]' \
	>/dev/null 2>err
printf '\0\0\010\003\0\0\0\001\0\0\0\010\0\0\0\010%064d' 7 >one.idx
for run in copies cuts; do
	"$gtrain" eval $run --report --json >"$run.json" 2>err </dev/null
	consistent report_of_$run $run.json
	if "$gtrain" predict $run one.idx >out 2>err; then echo "ok predict_with_$run"; else
		echo "not ok predict_with_$run: $(tail -n 1 err)"; fi
done

# the text fits the terminal; the matrix is shown where it fits, and else the confused pairs
for width in 45 60 80 200; do
	for run in net wide; do
		COLUMNS=$width LC_ALL=C "$gtrain" eval $run --report >text 2>err
		longest=$(sed 1d text | awk 'length > m { m = length } END { print m + 0 }')
		want='Confusion (row'
		[ $run = net ] || want='The most frequent confusions, 20 of'
		if [ "$longest" -le $width ] && grep -q "$want" text; then echo "ok text_${run}_$width"
		else echo "not ok text_${run}_$width: $longest columns, $(grep -c "$want" text) lines with '$want'"; fi
	done
done
if grep -q 'The 20 classes of 60 with the lowest F1' text; then echo 'ok text_worst'; else echo "not ok text_worst: $(sed -n 3p text)"; fi
COLUMNS=20 "$gtrain" eval net --report >text 2>err
if grep -q 'The most frequent confusions' text; then echo 'ok text_narrow'; else echo 'not ok text_narrow: no pairs in 20 columns'; fi
"$gtrain" eval net --report --csv >report.csv 2>err
if python3 -c '
import csv, json
r = json.load(open("one.json"))["report"]["classes"]
for a, b in zip(csv.DictReader(open("report.csv")), r, strict=True):
    assert a.keys() == b.keys() and all(str(b[k] if b[k] is not None else "") == a[k] or float(a[k]) == b[k] for k in a), (a, b)
' 2>why; then echo 'ok csv'; else echo "not ok csv: $(tail -n 1 why)"; fi
refused_with() { # NAME STATUS TEXT ARGS...
	local name=$1 status=$2 text=$3
	shift 3
	"$gtrain" eval net "$@" >out 2>err
	rc=$?
	if [ $rc = "$status" ] && grep -qF -- "$text" err; then echo "ok $name"; else echo "not ok $name: $rc: $(head -n 1 err)"; fi
}
refused_with csv_alone 64 '--csv: expected --report too, got only --csv' --csv
refused_with csv_and_json 64 '--csv and --json cannot be combined' --report --csv --json
refused_with ranks_single 78 'parallel.mode' --nproc 2
