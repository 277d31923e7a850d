#!/bin/bash
# Resumes after the number of optimizer steps of an epoch has changed, by more or fewer samples or by another batch: the schedules of a run
# that is counted in epochs continue at the same place in epochs, end with the run, and a later resume continues from there.
# tests/run: beside others
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
cd "$tmp" || exit 1

check() { if [ "$2" = "$3" ]; then pass "$1"; else fail "$1" "expected $3, got $2"; fi; }
check_has() { if grep -qF -- "$2" "$tmp/$3"; then pass "$1"; else fail "$1" "no '$2' in std$3: $(head -n 4 "$tmp/$3")"; fi; }
check_lacks() { if grep -qF -- "$2" "$tmp/$3"; then fail "$1" "'$2' in std$3"; else pass "$1"; fi; }
rows() { echo 'x,y,t'; for i in $(seq 1 "$1"); do echo "$i.5,-1.25,dark"; echo "$i.5,2.75,light"; done; }
rows 40 >small.csv
rows 80 >large.csv
cat >run.cfg <<'CFG'
schema = 1;
name = "run";
data = { root = "."; format = "csv"; train = ["table.csv"]; target = "t"; batch = 16; };
model = { inputs = ( { name = "values"; } ); layers = ( { name = "fc"; type = "linear"; out = 2; } ); };
train = { epochs = 4; optimizer = { type = "adam"; lr = 0.01; }; schedule = { type = "cosine"; }; };
checkpoint = { dir = "unused"; };
log = { every_steps = 1; };
CFG
# start NAME ARGS...: a run of 4 epochs of 5 steps
start() {
	local name=$1
	shift
	cp small.csv table.csv
	run run run.cfg -s "checkpoint.dir=$name" -q "$@"
	check "$name: trains 4 epochs" "$rc" 0
}
# rates DIR: the learning rates of the steps, from the 11th on
rates() { sed -n 's/.*"event":"train".*"step":\([0-9]*\),.*"lr":\([^,}]*\).*/\1 \2/p' "$1/metrics.jsonl" | awk '$1 > 10 { print $2 }'; }
# near A B: whether two numbers differ by less than 1e-9
near() { awk -v a="$1" -v b="$2" 'BEGIN { d = a - b; exit !(d < 1e-9 && d > -1e-9) }' && echo near || echo "$1, not $2"; }
cosine() { awk -v x="$1" -v n="$2" 'BEGIN { printf "%.15g", 0.01 * (1 + cos(3.14159265358979 * x / n)) / 2 }'; }

start more
cp large.csv table.csv
run resume more/step-00000010
check "more samples: resumes" "$rc" 0
check_has "more samples: the warning says where the schedules continue" \
	"an epoch has 10 optimizer steps now, and had 5 before; the schedules continue at the same epoch, which is now step 20 of 40" err
check_has "more samples: the result counts epochs" "(4 epochs," out
check "more samples: 2 epochs of 10 steps follow" "$(rates more | wc -l)" 20
check "more samples: the first rate is that of the middle" "$(near "$(rates more | head -n 1)" "$(cosine 20 40)")" near
check "more samples: the last rate is that of the last step" "$(near "$(rates more | tail -n 1)" "$(cosine 39 40)")" near
last=$(sed -n 's/.*"event":"end".*"step":\([0-9]*\),.*/\1/p' more/metrics.jsonl)
check "more samples: the last step" "$last" 30

rates more >once
run resume more/step-00000020
check "from a later step: resumes" "$rc" 0
check_lacks "from a later step: nothing has changed" "optimizer steps now" err
check "from a later step: the same rates" "$(rates more | tail -n 10 | cmp - <(tail -n 10 once) && echo same)" same

start fewer
rows 24 >table.csv
run resume fewer/step-00000010
check_has "fewer samples: the warning says where the schedules continue" "which is now step 6 of 12" err
check "fewer samples: the first rate" "$(near "$(rates fewer | head -n 1)" "$(cosine 6 12)")" near
check "fewer samples: the last rate" "$(near "$(rates fewer | tail -n 1)" "$(cosine 11 12)")" near
check_has "fewer samples: the result counts epochs" "(4 epochs," out

start batch
run resume batch/step-00000010 -s data.batch=8
check_has "another batch: the warning says where the schedules continue" "which is now step 20 of 40" err
check "another batch: the last rate" "$(near "$(rates batch | tail -n 1)" "$(cosine 39 40)")" near

# in the middle of an epoch: step 12 of 5 an epoch is 2 steps into epoch 3
start middle -s checkpoint.every_steps=4 -s checkpoint.keep=9
cp large.csv table.csv
run resume middle/step-00000012
check_has "in an epoch: the warning says where the schedules continue" "which is now step 22 of 40" err
check "in an epoch: the last rate" "$(near "$(rates middle | tail -n 1)" "$(cosine 39 40)")" near
check_has "in an epoch: the result counts epochs" "(4 epochs," out

start steps -s train.steps=20
cp large.csv table.csv
run resume steps/step-00000010
check_lacks "a run in steps: its schedule does not depend on the epoch" "optimizer steps now" err
check "a run in steps: the rates are those of the steps" "$(near "$(rates steps | head -n 1)" "$(cosine 10 20)")" near

start unit -s train.steps=20 -s 'train.schedule={type="multistep";milestones=[2];unit="epoch";}'
cp large.csv table.csv
run resume unit/step-00000010
check_has "a run in steps with a schedule in epochs" 'schedules with unit = "epoch" continue at a different epoch' err

start constant -s 'train.schedule={type="constant";}'
cp large.csv table.csv
run resume constant/step-00000010
check_lacks "without a schedule there is nothing to say" "optimizer steps now" err
