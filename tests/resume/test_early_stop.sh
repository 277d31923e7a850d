#!/bin/bash
# train.early_stop and the schedule plateau in whole runs: when they act, in every mode, and the same bits after a resume.
# tests/run: beside others
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/../cli/cli.sh"
tiny_config
# The loss falls by less and less: soon by less than min_delta, and by less than a fifth of itself.
base=(-s train.epochs=12 -s train.optimizer.lr=0.5 -s 'reproducible="run"' -s checkpoint.every_epochs=1 -s checkpoint.every_steps=5
	-s checkpoint.keep=99)
stop=(-s train.early_stop.metric=test/loss -s train.early_stop.patience=3 -s train.early_stop.min_delta=0.05)
plateau=(-s 'train.schedule={type="plateau";metric="test/loss";patience=0;factor=0.5;threshold=0.2;}')
go() { # NAME ARGS...
	local name=$1
	shift
	"$gtrain" run "$tmp/tiny.cfg" -o "$tmp/$name" --no-progress "${base[@]}" "$@" >"$tmp/out" 2>"$tmp/log" ||
		fail "early_$name" "$(tail -n 1 "$tmp/log")"
}
digest() { cat "$tmp/$1/latest/"*.safetensors | sha256sum; }
status() { tail -n 1 "$tmp/$1/metrics.jsonl" | sed 's/.*"status":"\([a-z ]*\)".*/\1/'; }
go stop "${stop[@]}"
python3 - "$tmp/stop" <<'END'
import json, sys
log = [json.loads(line) for line in open(sys.argv[1] + "/metrics.jsonl")]
loss = [e["loss"] for e in log if e["event"] == "eval"]
best, bad, end = float("inf"), 0, 0
for i, v in enumerate(loss):
    best, bad = (v, 0) if v < best - 0.05 else (best, bad + 1)
    if bad == 3:
        end = end or i + 1
ok = log[-1]["status"] == "early stop" and len(loss) == end < 12
print("ok early_stop" if ok else f"not ok early_stop: {log[-1]}, losses {loss}")
END
if grep -q 'train.early_stop ended the run' "$tmp/log" &&
	grep -q 'next: .* eval ' "$tmp/log"; then pass early_stop_said; else
	fail early_stop_said "$(cat "$tmp/log")"; fi
run resume "$tmp/stop"
if [ "$rc" = 0 ] && [ "$(status stop)" = 'early stop' ] && ! grep -q 'nan' "$tmp/out" "$tmp/err" &&
	grep -q 'was stopped early (train.early_stop) after .*; to train longer, add -s train.early_stop.patience=N' "$tmp/out" "$tmp/err"
then pass early_stop_again; else fail early_stop_again "$(cat "$tmp/err")"; fi
go plateau "${plateau[@]}"
python3 - "$tmp/plateau" <<'END'
import json, sys
log = [json.loads(line) for line in open(sys.argv[1] + "/metrics.jsonl")]
lr, best, bad = 0.5, float("inf"), []
for e in log:
    if e["event"] == "train" and e["lr"] != lr:
        bad.append((e["step"], e["lr"], lr))
    elif e["event"] == "eval":
        if e["loss"] < best * (1 - 0.2):
            best = e["loss"]
        else:
            lr *= 0.5
print("ok plateau_rates" if not bad and lr < 0.1 else f"not ok plateau_rates: {bad[:3]}, {lr}")
END
# Going back to any checkpoint, in mid-epoch too, ends with the same bits.
again() { # NAME RUN STEP
	cp -r "$tmp/$2" "$tmp/$1"
	run resume "$tmp/$1" --from "$3" -q
	if [ "$rc" = 0 ] && [ "$(digest "$1")" = "$(digest "$2")" ] && [ "$(status "$1")" = "$(status "$2")" ]; then pass "$1"; else
		fail "$1" "other bits or another end than without interruption: $(tail -n 1 "$tmp/err") $(status "$1")"; fi
}
for k in 5 16 35 50; do again "plateau_resume_$k" plateau $k; done
for k in 5 8 15; do again "early_stop_resume_$k" stop $k; done
# A run that is cut short evaluates at its end once more, which must not count: a resume ends as the whole run. An epoch has 8 steps.
cut() { # RUN STEP OPTIONS...
	local name=$1_cut_at_$2 whole=$1 step=$2
	shift 2
	go "$name" "$@" -s train.steps="$step"
	run resume "$tmp/$name" -q -s train.steps=0
	if [ "$rc" = 0 ] && [ "$(digest "$name")" = "$(digest "$whole")" ] && [ "$(status "$name")" = "$(status "$whole")" ]; then
		pass "$name"
	else
		fail "$name" "other bits or another end than without the cut: $(tail -n 1 "$tmp/err")"
	fi
}
for k in 11 16 19; do cut plateau $k "${plateau[@]}"; done
# Three steps before the evaluation at which early_stop ends the run: one more that counts would end it there.
last=$(grep -c '"event":"train"' "$tmp/stop/metrics.jsonl")
cut stop $((last - 3)) "${stop[@]}"
# Resumed with another metric. No loss here is below the accuracies of the first two epochs: compared with them, it would not be better.
slow=(-s train.optimizer.lr=0.004 -s train.early_stop.patience=2 -s train.schedule.type=plateau -s train.schedule.patience=0
	-s train.schedule.factor=0.1 -s train.schedule.metric=test/acc)
go other "${slow[@]}" -s train.early_stop.metric=test/acc -s train.early_stop.patience=99 -s train.schedule.patience=99 -s train.epochs=2
run resume "$tmp/other" "${slow[@]}" -s train.early_stop.metric=test/loss -s train.schedule.metric=test/loss -s train.epochs=6
python3 - "$tmp/other" "$tmp/err" <<'END'
import json, sys
log = [json.loads(line) for line in open(sys.argv[1] + "/metrics.jsonl")]
loss = [e["loss"] for e in log if e["event"] == "eval"]
acc = [e["acc"] for e in log if e["event"] == "eval"]
rates = {e["lr"] for e in log if e["event"] == "train"}
falls = all(a > b for a, b in zip(loss, loss[1:])) and loss[-1] > max(acc[:2])
ok = falls and log[-1]["status"] == "ok" and len(loss) == 6 and rates == {0.004}
print("ok other_metric" if ok else f"not ok other_metric: {log[-1]}, losses {loss}, accuracies {acc}, rates {rates}")
said = open(sys.argv[2]).read()
want = [f"train.{k}.metric was test/acc and is now test/loss, so the earlier values no longer count" for k in ("early_stop", "schedule")]
print("ok other_metric_said" if all(w in said for w in want) else f"not ok other_metric_said: {said[-300:]}")
END
# The reductions of the learning rate until then remain.
cp -r "$tmp/plateau" "$tmp/reduced"
run resume "$tmp/reduced" -q -s train.schedule.metric=test/acc -s train.epochs=13
python3 - "$tmp/reduced" <<'END'
import json, sys
lr = {e["step"]: e["lr"] for e in map(json.loads, open(sys.argv[1] + "/metrics.jsonl")) if e["event"] == "train"}
print("ok reductions_remain" if len(lr) == 104 and lr[97] <= lr[96] < 0.1 else f"not ok reductions_remain: {lr.get(96)}, {lr.get(97)}")
END
go ranks "${stop[@]}" "${plateau[@]}" -s 'reproducible="world"' -s parallel.shards=2
go ranks2 "${stop[@]}" "${plateau[@]}" -s 'reproducible="world"' -s parallel.shards=2 -s parallel.mode=ddp --nproc 2
if [ "$(digest ranks)" = "$(digest ranks2)" ]; then pass early_stop_ranks; else fail early_stop_ranks 'other bits on two ranks'; fi
gives early_stop_no_split 78 err 'train.early_stop.metric: expected data.valid > 0, which the metric "valid/loss" needs' \
	check "$tmp/tiny.cfg" -s train.early_stop.metric=valid/loss
gives plateau_no_split 78 err 'train.schedule.metric: expected data.valid > 0, which the metric "valid/loss" needs' check "$tmp/tiny.cfg" \
	-s train.schedule.type=plateau
gives early_stop_empty_split 78 err 'train.early_stop.metric: expected a metric of an evaluated split, got "valid/f1", but the split' \
	check "$tmp/tiny.cfg" -s train.early_stop.metric=valid/f1 -s data.valid=0.001
gives early_stop_no_numbers 78 err '"test/mae" cannot be combined with train.loss = "cross_entropy"' check "$tmp/tiny.cfg" \
	-s train.early_stop.metric=test/mae
scores='"test/loss", "test/acc", "test/top5", "test/f1", "test/mcc", "test/balanced_acc" or "test/auc"'
gives plateau_no_numbers 78 err "the metric needs columns of numbers; write $scores" \
	check "$tmp/tiny.cfg" -s train.schedule.type=plateau -s train.schedule.metric=test/r2
gives plateau_in_group 78 err 'expected a type whose learning rates are known before the run' check "$tmp/tiny.cfg" \
	-s 'train.groups=({match="fc.*";schedule={type="plateau";};})'
