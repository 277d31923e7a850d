#!/bin/bash
# Layers for integers and sequences in whole trainings: every mode gives the bits of one rank, as do a resumed run and one that computes
# activations again; 16 bit; and what is refused.
# tests/run: beside others
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
cd "$tmp" || exit 1
cp "$src/tests/cli/sequences.cfg" all.cfg
weights() { "$gtrain" export "$1" -o "$1.safetensors" -q && sha256sum <"$1.safetensors" | cut -c1-16; }
# same NAME DIR: the run in DIR has the weights of the first one
same() {
	if [ "$(weights "$2")" = "$want" ]; then pass "$1"; else fail "$1" "other weights, or none: $(head -n 1 err)"; fi
}

"$gtrain" run all.cfg -q -o all >out 2>err || fail run "$(head -n 1 err)"
acc=$(sed -n 's/.*test accuracy \([0-9.]*\).*/\1/p' out)
if awk -v a="${acc:-0}" 'BEGIN { exit !(a > 0.8) }'; then pass learns; else fail learns "accuracy ${acc:-none}: $(cat out)"; fi
want=$(weights all)
"$gtrain" run all.cfg -q -o part -s train.steps=17 >/dev/null 2>err
"$gtrain" resume part -q -s train.steps=0 >/dev/null 2>err
same resumed part
"$gtrain" run all.cfg -q -o again -s train.recompute=cheap \
	-s 'model.layers[3].recompute=true' -s 'model.layers[5].recompute=true' >/dev/null 2>err
same recomputed again
for mode in 'ddp 2' 'dp 2' 'zero 2 1' 'zero 2 2' 'zero 4 3' 'pipe 2' 'pipe 4'; do
	read -r m n stage <<<"$mode"
	"$gtrain" run all.cfg -q -o "$m$n$stage" -s "parallel.mode=$m" -s "parallel.nproc=$n" \
		${stage:+-s "parallel.stage=$stage"} >/dev/null 2>err
	same "$m$n${stage:+_stage$stage}" "$m$n$stage"
done
gives bf16 0 out 'test accuracy' run all.cfg -q -o bf16 -s precision=bf16 -s train.epochs=2
gives bf16_ddp 0 out 'test accuracy' run all.cfg -q -o bf16-ddp -s precision=bf16 -s train.epochs=2 -s parallel.mode=ddp \
	-s parallel.nproc=2
if cmp -s <(weights bf16) <(weights bf16-ddp); then pass bf16_same; else fail bf16_same 'one rank and two have other weights'; fi
gives evaluates 0 out "accuracy $acc" eval all
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
gives vocabulary_of_values 78 err 'expected codes or tokens beside vocabulary' check all.cfg \
	-s 'model.inputs=( { name = "values"; shape = [3]; vocabulary = 7; } )'
gives columns 78 err 'one for each column' check all.cfg -s 'model.layers[17].embedding_dim=[3, 4]'
