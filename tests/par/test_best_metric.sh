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
import json, os, subprocess, sys
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
if score == "auc":
    r = json.loads(subprocess.run([sys.argv[3], "eval", run + "/best", "--split", split, "--report", "--json", "--nproc", "1"],
                                  stdout=subprocess.PIPE, check=True).stdout)
    assert abs(r["report"]["auc"] - best["auc"]) < 1e-8, (r["report"]["auc"], best)
PY
for metric in train/acc train/loss train/top5 valid/acc valid/loss valid/top5 valid/f1 valid/auc test/acc test/loss test/top5 test/f1; do
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
