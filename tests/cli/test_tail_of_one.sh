#!/bin/bash
# A last batch of one sample, whose variance batch normalisation cannot divide by 0: refused, unless the run or its continuation ends before
# it, or the statistics stay as they are.
# tests/run: beside others
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
cat >"$tmp/net.cfg" <<'CFG'
schema = 1; name = "net"; seed = 3;
data = { name = "synthetic"; batch = 16; classes = 4; samples = 33; samples_test = 16; };
model = { input = [1, 4, 4]; layers = ( { type = "flatten"; }, { name = "bn"; type = "batchnorm1d"; },
	{ name = "fc"; type = "linear"; out = 4; } ); };
train = { epochs = 2; optimizer = { type = "sgd"; lr = 0.01; }; };
checkpoint = { dir = "unused"; };
log = { every_steps = 1; };
CFG
why='expected more than one value per channel in training, got a batch of 1'
gives tail_of_one_refused 78 err "$why" run "$tmp/net.cfg" -o "$tmp/a"
gives tail_of_one_reached 78 err "$why" run "$tmp/net.cfg" -o "$tmp/a" -s train.steps=3
gives tail_of_one_ends_before 0 out '(2 steps' run "$tmp/net.cfg" -o "$tmp/b" -s train.steps=2
gives tail_of_one_half 0 out '(1 step' run "$tmp/net.cfg" -o "$tmp/c" -s train.steps=1
gives tail_of_one_resumed_into_it 78 err "$why" resume "$tmp/c" -s train.steps=3
gives tail_of_one_resumed 0 out '(2 steps' resume "$tmp/c" -s train.steps=2
if cmp -s "$tmp/b/latest/model.safetensors" "$tmp/c/latest/model.safetensors"; then
	pass tail_of_one_resume_exact
else
	fail tail_of_one_resume_exact 'other bits than without an interruption'
fi
gives tail_of_one_frozen_stats 0 out '(2 epochs' run "$tmp/net.cfg" -o "$tmp/d" -s 'train.groups=({match="bn.*";frozen_stats=true;})'
