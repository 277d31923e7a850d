#!/bin/bash
# configs/finetune_bert.cfg with small sizes, on synthetic tokens: it loads the state dict of Hugging Face's
# BertForSequenceClassification and has its losses: of single samples, and in a training, on one rank and in other modes (make_bert.py).
# tests/run: beside others
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/../cli/cli.sh"
cd "$tmp" || exit 1
golden=$src/tests/golden/bert.txt
python3 "$src/tests/parity/make_bert.py" weights bert.safetensors || exit 1
# The test's sizes, synthetic tokens in place of texts, no dropout.
sed -e 's/hidden = 3072/hidden = 64/; s/768/32/; s/max_len = 512/max_len = 20/; s/num_embeddings = 30522/num_embeddings = 30/' \
	-e 's/repeat = 12; heads = 12/repeat = 2; heads = 4/; s/p = 0.1;/p = 0.0;/; /"classifier"/s/out = 2/out = 4/' \
	-e 's/{ name = "tokens"; }/{ name = "tokens"; shape = [12]; vocabulary = 30; }/' \
	-e 's/file = "model.safetensors"/file = "bert.safetensors"/' \
	-e '/^data = {/,/^};/d; /^train = {/,/^};/d; /^checkpoint = /d' "$src/configs/finetune_bert.cfg" >bert.cfg
cat >>bert.cfg <<'CFG'
data = { name = "synthetic"; samples = 400; samples_test = 64; classes = 4; batch = 16; sampler = "torch"; };
train = { steps = 40; eval_every_epochs = 0; optimizer = { type = "adamw"; lr = 1.0e-3; weight_decay = 0.01; }; };
log = { every_steps = 1; };
CFG
# losses NAME WHAT RUN: the losses of a run are those of the golden's lines WHAT. What may differ: f32 sums in another order, 2^-24 each, of
# 32 products a layer; a training of 40 steps of Adam makes at most ten times as much of it.
losses() {
	local worst
	sed -nE 's/.*"event":"train","step":([0-9]+).*"loss":([^,}]+).*/\1 \2/p' "$3/metrics.jsonl" >got
	worst=$(paste -d ' ' <(grep "^$2 " "$golden") got | awk '{ d = ($3 - $5) / $3; if (d < 0) d = -d
		if ($2 != $4 || !(d <= 1)) d = 9; if (d > m) m = d } END { print NR < 40 ? 9 : m + 0 }')
	if awk "BEGIN { exit !($worst <= 1e-5) }"; then pass "$1"; else fail "$1" "losses differ by $worst: $(head -n 1 err)"; fi
	echo "# bert: $1: losses within $worst"
}
# A rate that changes no weight: 60 batches of one sample.
"$gtrain" run bert.cfg -q -o samples -s data.batch=1 -s train.steps=60 -s 'train.optimizer={type="sgd";lr=1e-30;}' >out 2>err
losses samples sample samples
gives loads 0 out '33 of 33 tensors' check bert.cfg
"$gtrain" run bert.cfg -q -o one >out 2>err
losses training step one
for mode in 'ddp 2' 'zero 2' 'pipe 2'; do
	read -r m n <<<"$mode"
	"$gtrain" run bert.cfg -q -o "$m" -s "parallel.mode=$m" -s "parallel.nproc=$n" >out 2>err
	losses "$m$n" step "$m"
done
sed 's/; part = \[1, 3\]//' bert.cfg >no_part.cfg
gives part_and_whole 65 err 'expected one tensor for a part of layer.0.attention.in_proj_bias' run no_part.cfg -o no_part
sed '/self.key.weight/d' bert.cfg >missing.cfg
gives missing_part 65 err 'expected 3 parts of layer.0.attention.in_proj_weight, got none for part 1' check missing.cfg
sed 's/part = \[1, 3\]/part = [3, 3]/' bert.cfg >range.cfg
gives part_range 78 err 'expected [i, n] with i below n' check range.cfg
