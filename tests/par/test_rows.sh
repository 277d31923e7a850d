#!/bin/bash
# Tables of which one rank updates only the rows that a batch names (embedding.dw+update), in every mode: the curve and the weights are the
# same where ranks share out the rows, and where they add up the gradient of the whole table.
# tests/run: beside others
# shellcheck source=tests/par/par.sh
. "$(dirname "$0")/par.sh"
cat >"$tmp/rows.cfg" <<'CFG'
schema = 1;
name = "rows";
seed = 3;
data = { name = "synthetic"; samples = 203; samples_test = 40; classes = 4; batch = 24; };
model = {
	inputs = ( { name = "tokens"; shape = [9]; vocabulary = 200; }, { name = "lengths"; },
		{ name = "codes"; shape = [2]; vocabulary = 50; } );
	layers = (
		{ name = "word"; type = "embedding"; in = "tokens"; embedding_dim = 8; padding_idx = 0; },
		{ name = "mean"; type = "pool_tokens"; in = ["word", "lengths"]; },
		{ name = "bag"; type = "embedding_bag"; in = ["tokens", "lengths"]; embedding_dim = 5; mode = "sum"; },
		{ name = "cols"; type = "embeddings"; in = "codes"; },
		{ name = "all"; type = "concat"; in = ["mean", "bag", "cols"]; },
		{ name = "fc"; type = "linear"; out = 4; }
	);
};
train = { steps = 14; eval_every_epochs = 0; optimizer = { type = "sgd"; lr = 0.2; }; };
checkpoint = { dir = "unused"; every_epochs = 0; };
log = { every_steps = 1; };
CFG
rows=$("$gtrain" plan "$tmp/rows.cfg" 2>&1 | sed '/^# last step/,$d' | grep -c ' embedding\(_bag\)\?\.dw+update ')
if [ "$rows" = 4 ]; then
	echo "ok rows_one_rank"
else
	echo "not ok rows_one_rank: expected four updates of rows, got $rows"
fi
# small tables, whose gradients are added up, and large ones, of which each rank updates a part (gt_plan_factors)
for vocabulary in 200 9000; do
	large=(-s "model.inputs[0].vocabulary=$vocabulary")
	train one "$tmp/rows.cfg" "${large[@]}" || echo "not ok rows_$vocabulary: one rank: $why"
	for m in dp:2 ddp:2 ddp:3 zero1:2 zero2:3 zero3:2 1f1b:2 zero-bubble:2 '1f1b*2+zero1:4'; do
		mode_args "${m%:*}" "${m#*:}"
		compared "rows_${vocabulary}_$m" "$tmp/rows.cfg" "${large[@]}" "${mode[@]}"
	done
done
# tables of one optimizer among layers of another
mixed=(-s 'train.optimizer={type="adam";lr=0.01;}' -s 'train.groups=({match=["word.*","bag.*"];optimizer={type="sgd";lr=0.2;};})')
for vocabulary in 200 9000; do
	own=(-s "model.inputs[0].vocabulary=$vocabulary" "${mixed[@]}")
	train one "$tmp/rows.cfg" "${own[@]}" || echo "not ok rows_mixed_$vocabulary: one rank: $why"
	for m in dp:2 ddp:2 ddp:3 zero1:2 zero2:3 zero3:2 1f1b:2; do
		mode_args "${m%:*}" "${m#*:}"
		compared "rows_mixed_${vocabulary}_$m" "$tmp/rows.cfg" "${own[@]}" "${mode[@]}"
	done
done
tell_worst tables
two=(-s parallel.nproc=2)
updates() { "$gtrain" plan "$tmp/rows.cfg" "${two[@]}" "$@" 2>&1 | sed '/^# evaluation/,$d' | grep -c ' embedding\(_bag\)\?\.dw+update '; }
# one rank updates the rows of two of four tables; several store all gradients, as adam needs those of the others
two=()
got="$(updates "${mixed[@]}" -s data.samples=192) $(updates -s train.optimizer.type=adam)"
two=(-s parallel.nproc=2)
got+=" $(updates -s parallel.mode=ddp "${mixed[@]}" "${large[@]}")"
if [ "$got" = "2 0 0" ]; then
	echo "ok rows_mixed_planned"
else
	echo "not ok rows_mixed_planned: expected 2, 0 and 0 updates of rows, got $got"
fi
got="$(updates -s parallel.mode=ddp) $(updates -s parallel.mode=ddp "${large[@]}") $(updates -s parallel.mode=dp "${large[@]}")"
# with 203 samples, the last step of an epoch has a plan of its own
if [ "$got" = "0 8 8" ]; then echo "ok rows_ranks"; else echo "not ok rows_ranks: expected 0, 8 and 8 updates of rows, got $got"; fi

# a large table whose gradient is added up
whole=(-s parallel.mode=zero -s parallel.stage=3)
"$gtrain" check "$tmp/rows.cfg" "${two[@]}" "${large[@]}" "${whole[@]}" >"$tmp/out" 2>"$tmp/err"
if grep -q '2 ranks add up the gradient of all 9000 rows of [a-z]*.weight, of which a batch uses at most 216;' "$tmp/err" &&
	! "$gtrain" check "$tmp/rows.cfg" "${two[@]}" "${whole[@]}" 2>&1 | grep -q 'add up the gradient' &&
	! "$gtrain" check "$tmp/rows.cfg" "${two[@]}" "${large[@]}" -s parallel.mode=ddp 2>&1 | grep -q 'add up the gradient' &&
	! "$gtrain" check "$tmp/rows.cfg" "${large[@]}" 2>&1 | grep -q 'add up the gradient'; then
	echo "ok rows_warned"
else
	echo "not ok rows_warned: $(cat "$tmp/err")"
fi
