#!/bin/bash
# checkpoint.best.metric: each score of each split selects the checkpoint that metrics.jsonl says, on one rank and on several; the macro F1
# is that of `gtrain eval --report`.
# tests/run: beside others
# shellcheck source=tests/par/par.sh
. "$(dirname "$0")/par.sh"
if ! command -v python3 >/dev/null; then
	echo 'skip best_metric: python3 is not installed'
	exit 0
fi
cd "$tmp" || exit 1
# Few samples of many classes and a large learning rate: every score goes up and down.
cat >net.cfg <<'CFG'
schema = 1; name = "net"; seed = 5;
data = { name = "synthetic"; batch = 16; classes = 9; samples = 150; samples_test = 77; valid = 0.3; };
model = { input = [1, 6, 6]; layers = ( { type = "flatten"; }, { name = "fc0"; type = "linear"; out = 24; }, { type = "relu"; },
	{ name = "fc1"; type = "linear"; out = 9; } ); };
train = { epochs = 6; optimizer = { type = "sgd"; lr = 0.3; momentum = 0.9; }; };
checkpoint = { dir = "unused"; };
CFG
cat >check.py <<'PY'
import json, math, os, subprocess, sys
run, metric = sys.argv[1:3]
split, score = metric.split("/")
lines = [json.loads(l) for l in open(run + "/metrics.jsonl")]
seen = {e["step"]: e for e in lines if (e["event"] == "epoch" if split == "train" else e.get("split") == split and e["event"] == "eval")}
assert len(seen) == 6, seen
for e in seen.values():
    assert ("f1" in e) == (metric.endswith("f1")), e
pick = min if score == "loss" else max
best = pick(seen.values(), key=lambda e: (e[score], e["step"] if score == "loss" else -e["step"]))
end = lines[-1]["best"]
assert (end["metric"], end["value"], end["step"]) == (metric, best[score], best["step"]), (end, best)
assert os.readlink(run + "/best").endswith("step-%08d" % best["step"])
if score == "f1":
    r = json.loads(subprocess.run([sys.argv[3], "eval", run + "/best", "--split", split, "--report", "--json", "--nproc", "1"],
                                  stdout=subprocess.PIPE, check=True).stdout)
    # 9 significant digits in metrics.jsonl
    assert abs(r["report"]["macro"]["f1"] - best["f1"]) < 1e-8, (r["report"]["macro"], best)
if score in ("mcc", "balanced_acc"):  # from the confusion matrix of the report
    r = json.loads(subprocess.run([sys.argv[3], "eval", run + "/best", "--split", split, "--report", "--json", "--nproc", "1"],
                                  stdout=subprocess.PIPE, check=True).stdout)["report"]
    of = [(c["support"], c["predicted"], c["recall"]) for c in r["classes"]]
    n, right = sum(s for s, _, _ in of), sum(s * recall for s, _, recall in of)
    mcc = (right * n - sum(s * p for s, p, _ in of)) / math.sqrt(
        (n * n - sum(s * s for s, _, _ in of)) * (n * n - sum(p * p for _, p, _ in of)))
    want = mcc if score == "mcc" else sum(recall for s, _, recall in of if s) / sum(s > 0 for s, _, _ in of)
    assert abs(want - best[score]) < 1e-8, (want, best)
if score == "auc":
    r = json.loads(subprocess.run([sys.argv[3], "eval", run + "/best", "--split", split, "--report", "--json", "--nproc", "1"],
                                  stdout=subprocess.PIPE, check=True).stdout)
    assert abs(r["report"]["auc"] - best["auc"]) < 1e-8, (r["report"]["auc"], best)
PY
for metric in train/acc train/loss train/top5 valid/acc valid/loss valid/top5 valid/f1 valid/auc valid/mcc valid/balanced_acc \
	test/acc test/loss test/top5 test/f1; do
	for word in single ddp 'gpipe*2' dp; do
		case $metric-$word in */f1-* | */auc-* | train/acc-* | *-single) ;; *) continue ;; esac
		mode_args "$word" "$([ "$word" = 'gpipe*2' ] && echo 4 || echo 2)"
		[ "$word" = single ] && mode=()
		name=best_${metric/\//_}_${word//\*/x}
		train run net.cfg -s "checkpoint.best.metric=$metric" -s checkpoint.keep=1 "${mode[@]}"
		if [ $rc = 0 ] && python3 check.py run "$metric" "$gtrain" 2>why.txt; then echo "ok $name"; else
			echo "not ok $name: $why $(tail -n 1 why.txt)"; fi
	done
done
# Each of the three keys can watch a score of its own, and all of them are measured in one evaluation.
train run net.cfg -s checkpoint.best.metric=test/f1 -s train.early_stop.metric=test/auc -s train.early_stop.patience=1 \
	-s train.schedule.type=plateau -s train.schedule.metric=valid/f1
python3 - run <<'PY' >why.txt 2>&1 && echo 'ok three_scores' || echo "not ok three_scores: $why $(tail -n 1 why.txt)"
import json, sys
lines = [json.loads(l) for l in open(sys.argv[1] + "/metrics.jsonl")]
auc = [e["auc"] for e in lines if e["event"] == "eval" and e["split"] == "test"]
assert len(auc) < 6 and all("f1" in e and "auc" in e for e in lines if e["event"] == "eval"), lines
assert auc.index(max(auc)) == len(auc) - 2 and lines[-1]["status"] == "early stop", auc
PY
# Targets that are numbers: scikit-learn's errors, computed here in double from what `gtrain predict` prints for the rows of the split.
python3 - <<'PY'
import random
random.seed(3)
for name, n in ("rows", 150), ("rows_test", 77):
    with open(name + ".csv", "w") as f:
        print("a,b,price,age", file=f)
        for _ in range(n):
            a, b = random.uniform(-1, 1), random.uniform(-1, 1)
            price, age = 250000 + 90000 * a * b + random.gauss(0, 9000), 30 + 9 * a - 5 * b * b + random.gauss(0, 1)
            print(f"{a:.6f},{b:.6f},{price:.2f},{age:.3f}", file=f)
PY
cat >numbers.cfg <<'CFG'
schema = 1; name = "numbers"; seed = 5;
data = { format = "csv"; train = ["rows.csv"]; test = ["rows_test.csv"]; target = ["price", "age"]; batch = 16; valid = 0.2;
	normalize_target = true; };
model = { inputs = ( { name = "values"; } ); layers = ( { name = "fc0"; type = "linear"; out = 16; }, { type = "relu"; },
	{ name = "fc1"; type = "linear"; out = 2; } ); };
train = { epochs = 6; loss = "mse"; optimizer = { type = "sgd"; lr = 0.2; momentum = 0.9; }; };
checkpoint = { dir = "unused"; };
CFG
cat >numbers.py <<'PY'
import csv, json, math, os, subprocess, sys
run, metric, gtrain = sys.argv[1:4]
split, score = metric.split("/")
lines = [json.loads(l) for l in open(run + "/metrics.jsonl")]
seen = [e for e in lines if e["event"] == "eval" and e["split"] == split]
assert len(seen) == 6 and all(k in e for e in seen for k in ("mae", "rmse", "r2")), seen
best = (max if score == "r2" else min)(seen, key=lambda e: e[score])
end = lines[-1]["best"]
assert (end["metric"], end["value"], end["step"]) == (metric, best[score], best["step"]), (end, best)
assert os.readlink(run + "/best").endswith("step-%08d" % best["step"])
got = json.loads(subprocess.run([gtrain, "eval", run, "--split", split, "--json", "--nproc", "1"], stdout=subprocess.PIPE,
                                check=True).stdout)
if split == "test":
    rows = list(csv.DictReader(open("rows_test.csv")))
    out = subprocess.run([gtrain, "predict", run, "rows_test.csv"], stdout=subprocess.PIPE, check=True, universal_newlines=True).stdout
    pred = list(csv.DictReader(out.splitlines()))
    want = {"mae": 0, "rmse": 0, "r2": 0}
    for c in "price", "age":
        y, z = [float(r[c]) for r in rows], [float(p[c]) for p in pred]
        square = sum((a - b) ** 2 for a, b in zip(y, z))
        mean = sum(y) / len(y)
        want["mae"] += sum(abs(a - b) for a, b in zip(y, z)) / len(y) / 2
        want["rmse"] += math.sqrt(square / len(y)) / 2
        want["r2"] += (1 - square / sum((a - mean) ** 2 for a in y)) / 2
    for k, v in want.items():  # predictions are printed as f32, whose rounding of 250,000 is 1e-6 of an error of 10,000
        assert abs(got[k] - v) < 2e-6 * max(1, abs(v)), (k, got[k], v)
for k in "mae", "rmse", "r2":  # 9 digits; on several ranks the last bits of outputs differ
    assert abs(got[k] - best[k]) < 1e-5 * max(1, abs(best[k])), (k, got, best)
PY
for metric in valid/mae test/mae test/rmse test/r2; do
	for word in single ddp zero2 'gpipe*2' dp; do
		case $metric-$word in test/mae-* | *-single) ;; *) continue ;; esac
		mode_args "$word" "$([ "$word" = 'gpipe*2' ] && echo 4 || echo 2)"
		[ "$word" = single ] && mode=()
		name=best_${metric/\//_}_${word//\*/x}
		train run numbers.cfg -s "checkpoint.best.metric=$metric" -s checkpoint.keep=1 "${mode[@]}"
		if [ $rc = 0 ] && python3 numbers.py run "$metric" "$gtrain" 2>why.txt; then echo "ok $name"; else
			echo "not ok $name: $why $(tail -n 1 why.txt)"; fi
	done
done
# an interrupted run has the same best: the scores of the epoch and the best until then are in the checkpoint
mode=()
train whole net.cfg -s checkpoint.best.metric=train/acc
train run net.cfg -s checkpoint.best.metric=train/acc -s train.steps=17
"$gtrain" resume run -q --no-progress -s train.steps=0 >out 2>err
bests() { sed -n 's/.*"event":"end".*"best":{\([^}]*\)}.*/\1/p' "$1/metrics.jsonl" | tail -n 1; }
if [ -n "$(bests whole)" ] && [ "$(bests whole)" = "$(bests run)" ]; then echo 'ok best_resumed'; else
	echo "not ok best_resumed: $(bests whole) and $(bests run); $(tail -n 1 err)"; fi
"$gtrain" run net.cfg -o refused -s checkpoint.best.metric=train/f1 >out 2>err
rc=$?
if [ $rc = 78 ] && grep -q 'checkpoint.best.metric' err; then echo 'ok best_refused'; else
	echo "not ok best_refused: $rc $(tail -n 1 err)"; fi
