#!/bin/bash
# Batches of sequences of different lengths (data.lengths, data.buckets): synthetic tokens, every mode, and what is refused.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
cd "$tmp" || exit 1
cat >bag.cfg <<'CFG'
schema = 1;
name = "sequences";
seed = 3;
reproducible = "world";
data = { name = "synthetic"; samples = 500; samples_test = 210; classes = 4; batch = 32; valid = 0.2; };
model = {
	inputs = ( { name = "tokens"; shape = [40]; vocabulary = 9; }, { name = "lengths"; } );
	layers = (
		{ type = "embedding_bag"; in = ["tokens", "lengths"]; embedding_dim = 16; padding_idx = 0; },
		{ type = "relu"; },
		{ name = "fc"; type = "linear"; out = 4; }
	);
};
train = { epochs = 6; optimizer = { type = "adam"; lr = 0.02; }; };
checkpoint = { every_epochs = 0; };
CFG
weights() { "$gtrain" export "$1" -o "$1.safetensors" -q && sha256sum <"$1.safetensors" | cut -c1-16; }

"$gtrain" run bag.cfg -q -o bag >out 2>err || fail run "$(head -n 1 err)"
acc=$(sed -n 's/.*test accuracy \([0-9.]*\).*/\1/p' out)
if awk -v a="${acc:-0}" 'BEGIN { exit !(a > 0.75) }'; then pass learns; else fail learns "accuracy ${acc:-none}: $(cat out)"; fi
want=$(weights bag)
for steps in 1 7 13 14 20; do # the thirteenth step is the short last batch of an epoch
	"$gtrain" run bag.cfg -q -o part$steps -s train.steps=$steps >/dev/null 2>&1
	"$gtrain" resume part$steps -q -s train.steps=0 >/dev/null 2>err || fail "resume_$steps" "$(head -n 1 err)"
	if [ "$(weights part$steps)" = "$want" ]; then pass "resumed_after_$steps"; else fail "resumed_after_$steps" 'other weights'; fi
done
for mode in 'ddp 2' 'dp 2' 'zero 4' 'pipe 2' 'ddp 4'; do
	read -r m n <<<"$mode"
	"$gtrain" run bag.cfg -q -o "$m$n" -s "parallel.mode=$m" -s "parallel.nproc=$n" >/dev/null 2>err
	rc=$?
	if [ $rc = 0 ] && [ "$(weights "$m$n")" = "$want" ]; then
		pass "$m$n"
	else
		fail "$m$n" "status $rc, or other weights: $(head -n 1 err)"
	fi
done
# A thread that gathers batches ahead, and one that does not, deliver the same.
"$gtrain" run bag.cfg -q -o ahead -s data.prefetch=3 >/dev/null 2>err || fail prefetch "$(head -n 1 err)"
if [ "$(weights ahead)" = "$want" ]; then pass prefetch; else fail prefetch 'other weights'; fi
# The padding does not count: a single length gives the same losses, with the same order of samples.
loss() { sed -n 's/.*"event":"train".*"loss":\([0-9.]*\).*/\1/p' "$1/metrics.jsonl"; }
"$gtrain" run bag.cfg -q -o one -s 'data.lengths=[40]' -s log.every_steps=1 >/dev/null 2>err || fail one_length "$(head -n 1 err)"
"$gtrain" run bag.cfg -q -o three -s 'data.lengths=[8, 24, 40]' -s log.every_steps=1 >/dev/null 2>err || fail three "$(head -n 1 err)"
if [ "$(loss one | wc -l)" = 78 ] && paste <(loss one) <(loss three) | awk '{ d = $1 - $2; if (d > 1e-5 || d < -1e-5) exit 1 }'; then
	pass one_length
else
	fail one_length "other losses than with three lengths: $(paste <(loss one) <(loss three) | head -n 3)"
fi
gives eval 0 out 'accuracy' eval bag
gives accumulate 0 out 'accuracy' run bag.cfg -q -o accumulate -s train.accumulate=4 -s reproducible=none
gives no_buckets 0 out 'accuracy' run bag.cfg -q -o none -s data.buckets=0
gives in_order 0 out 'accuracy' run bag.cfg -q -o order -s data.shuffle=false
gives torch_order 0 out 'accuracy' run bag.cfg -q -o torch -s data.sampler=torch -s reproducible=none
gives bf16 0 out 'accuracy' run bag.cfg -q -o bf16 -s precision=bf16
gives check 0 out 'one batch' check bag.cfg
gives bench 0 out 'step' bench bag.cfg
gives lr_find 0 out 'lr' lr-find bag.cfg

# what is refused
gives too_short 78 err 'expected the last length to be 40, the longest sequence that the model reads, got 24' \
	run bag.cfg -q -o x -s 'data.lengths=[8, 24]'
gives not_ascending 78 err 'data.lengths: expected ascending whole numbers, got 8 after' check bag.cfg -s 'data.lengths=[24, 8, 40]'
gives not_whole 78 err 'data.lengths: expected ascending whole numbers, got 8.5' check bag.cfg -s 'data.lengths=[8.5, 40.0]'
gives too_many 78 err 'expected at most 8 lengths' check bag.cfg -s 'data.lengths=[1, 2, 3, 4, 5, 6, 7, 8, 40]'
gives torch_buckets 78 err 'data.buckets: does not go together with data.sampler = "torch"' \
	check bag.cfg -s data.sampler=torch -s data.buckets=4
gives order_buckets 78 err 'data.buckets: does not go together with data.shuffle = false' \
	check bag.cfg -s data.shuffle=false -s data.buckets=4
gives no_tokens 78 err 'data.lengths: only sequences of tokens use this key' check bag.cfg -s 'data.lengths=[40]' \
	-s 'model.inputs=( { name = "codes"; shape = [40]; } )' \
	-s 'model.layers=( { type = "embeddings"; in = "codes"; }, { type = "linear"; out = 4; } )'
