#!/bin/bash
# A table with more samples than the data.json of a checkpoint lists (GT_SAMPLES_MAX): it trains, the list is left out, and resume and eval
# divide the samples as the run did.
# tests/run: beside others
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
cd "$tmp" || exit 1
awk 'BEGIN { print "x,t"; for (i = 0; i < 2097160; i++) print i ".5," (i % 3 == 0) }' >many.csv
cat >many.cfg <<'CFG'
schema = 1;
name = "many";
seed = 3;
data = { format = "csv"; train = ["many.csv"]; target = "t"; batch = 1024; valid = 0.25; stratify = true; };
model = { inputs = ( { name = "values"; } ); layers = ( { name = "fc"; type = "linear"; out = 2; } ); };
train = { steps = 2; optimizer = { type = "adam"; lr = 0.01; }; };
checkpoint = { dir = "run"; };
log = { every_steps = 1; };
CFG
# the reading needs 60 bytes a row: the hashes of the rows are in memory once
gives memory 0 out 'reading     120 MiB of host memory' check many.cfg
gives trains 0 err '' run many.cfg
data=$(find run -name data.json | head -n 1)
if grep -q '"samples":{"split":"class"}' "$data"; then
	pass list_left_out
else
	fail list_left_out "in $data: $(grep -o '"samples":.\{0,80\}' "$data")"
fi
gives resumes 0 err '' resume run -s train.steps=3
run eval run --split valid --json
if grep -q '"samples":524290\b' "$tmp/out"; then
	pass eval_of_same_samples
else
	fail eval_of_same_samples "status $rc: $(head -c 300 "$tmp/out" "$tmp/err")"
fi
