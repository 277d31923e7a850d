#!/bin/bash
# Layers for integers and sequences in whole trainings: every mode gives the bits of one rank, as do a resumed run and one that computes
# activations again; 16 bit; and what is refused.
# tests/run: beside others
# shellcheck source=tests/cli/same_bits.sh
. "$(dirname "$0")/same_bits.sh"
trains "$src/tests/cli/sequences.cfg" 0.8 -s train.recompute=cheap -s 'model.layers[3].recompute=true' \
	-s 'model.layers[5].recompute=true'
trains_in 'ddp 2' 'dp 2' 'zero 2 1' 'zero 2 2' 'zero 4 3' 'pipe 2' 'pipe 4'
gives checks 0 out '[4, 12, 16]' check all.cfg

# Without reproducible = "world", sgd updates only the rows that a batch names. Clipping at 1e30 clips nothing but needs all gradients.
for precision in fp32 bf16; do
	for clip in 0.0 1e30; do
		"$gtrain" run all.cfg -q -o $precision-$clip -s reproducible=run -s 'train.optimizer={type="sgd";lr=0.05;}' \
			-s train.clip_norm=$clip -s precision=$precision -s train.epochs=3 >/dev/null 2>err
	done
	"$gtrain" plan all.cfg -s reproducible=run -s 'train.optimizer={type="sgd";lr=0.05;}' -s precision=$precision >out
	if [ "$(grep -c 'embedding.*dw+update' out)" = 7 ] && [ "$(weights $precision-0.0)" = "$(weights $precision-1e30)" ]; then
		pass "rows_only_$precision"
	else
		fail "rows_only_$precision" "$(grep -c 'embedding.*dw+update' out) updates of rows, not 7, or other weights: $(head -n 1 err)"
	fi
done

# what is refused
gives no_table 78 err 'put a layer of type "embedding" before this layer' check all.cfg \
	-s 'model.layers=( { type = "linear"; in = "tokens"; out = 4; } )'
gives no_codes 78 err 'expected tokens of [batch, tokens]' check all.cfg -s 'model.layers[15].in="norm"'
gives small_table 78 err 'expected at least 50' check all.cfg -s 'model.layers[0].num_embeddings=49'
gives heads 78 err 'expected a divisor of 16, the features' check all.cfg -s 'model.layers[3].num_heads=3'
gives max_len 78 err 'expected at least 12, the tokens' check all.cfg -s 'model.layers[1].max_len=11'
gives no_lengths 78 err 'the lengths of the samples' check all.cfg -s 'model.layers[3].in=["norm", "codes"]'
gives layernorm_of_more_dimensions 78 err 'dims: expected at most 2 (all dimensions of the input' check all.cfg \
	-s 'model.layers[6].type="layernorm"' -s 'model.layers[6].dims=3'
gives rank_3 78 err '[batch, tokens, features]' check all.cfg -s 'model.layers[6].type="groupnorm"' -s 'model.layers[6].num_groups=2'
gives vocabulary_of_values 78 err 'expected "codes" or "tokens", because the key vocabulary is set' check all.cfg \
	-s 'model.inputs=( { name = "values"; shape = [3]; vocabulary = 7; } )'
gives columns 78 err 'one for each column' check all.cfg -s 'model.layers[17].embedding_dim=[3, 4]'
