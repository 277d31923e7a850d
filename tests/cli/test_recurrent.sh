#!/bin/bash
# lstm and gru in whole trainings: every mode gives the bits of one rank, as do a resumed run, one that computes activations again and other
# numbers of threads; 16 bit; names and shapes of the parameters; and what is refused.
# tests/run: beside others
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
cd "$tmp" || exit 1
cp "$src/tests/cli/recurrent.cfg" all.cfg
weights() { "$gtrain" export "$1" -o "$1.safetensors" -q && sha256sum <"$1.safetensors" | cut -c1-16; }
# same NAME DIR: the run in DIR has the weights of the first one
same() {
	if [ "$(weights "$2")" = "$want" ]; then pass "$1"; else fail "$1" "other weights, or none: $(head -n 1 err)"; fi
}

"$gtrain" run all.cfg -q -o all >out 2>err || fail run "$(head -n 1 err)"
acc=$(sed -n 's/.*test accuracy \([0-9.]*\).*/\1/p' out)
if awk -v a="${acc:-0}" 'BEGIN { exit !(a > 0.7) }'; then pass learns; else fail learns "accuracy ${acc:-none}: $(cat out)"; fi
want=$(weights all)
"$gtrain" run all.cfg -q -o part -s train.steps=17 >/dev/null 2>err
"$gtrain" resume part -q -s train.steps=0 >/dev/null 2>err
same resumed part
"$gtrain" run all.cfg -q -o again -s 'model.layers[1].recompute=true' -s 'model.layers[2].recompute=true' >/dev/null 2>err
same recomputed again
for threads in 1 3; do
	OMP_NUM_THREADS=$threads "$gtrain" run all.cfg -q -o threads$threads >/dev/null 2>err
	same threads$threads threads$threads
done
for mode in 'ddp 2' 'ddp 4' 'dp 2' 'zero 2 1' 'zero 2 2' 'zero 4 3' 'pipe 2' 'pipe 4'; do
	read -r m n stage <<<"$mode"
	"$gtrain" run all.cfg -q -o "$m$n$stage" -s "parallel.mode=$m" -s "parallel.nproc=$n" \
		${stage:+-s "parallel.stage=$stage"} >/dev/null 2>err
	same "$m$n${stage:+_stage$stage}" "$m$n$stage"
done
gives bf16 0 out 'test accuracy' run all.cfg -q -o bf16 -s precision=bf16 -s train.epochs=2
gives bf16_ddp 0 out 'test accuracy' run all.cfg -q -o bf16-ddp -s precision=bf16 -s train.epochs=2 -s parallel.mode=ddp \
	-s parallel.nproc=2
if cmp -s <(weights bf16) <(weights bf16-ddp); then pass bf16_same; else fail bf16_same 'one rank and two have other weights'; fi
# rows so few that the update of a linear layer is fused with its gradient, which is no way to make weight_hh
gives few_rows 0 out 'test accuracy' run all.cfg -q -o few -s data.batch=8 -s reproducible=none -s train.epochs=1
gives evaluates 0 out "accuracy $acc" eval all
gives checks 0 out '[4, 12, 40]' check all.cfg
names=$("$gtrain" inspect all 2>/dev/null | grep -o 'lstm\.\(weight\|bias\)_[ih]h_l[01]\(_reverse\)\? ' | sort -u | wc -l)
if [ "$names" = 16 ]; then pass names; else fail names "expected the 16 names of torch.nn.LSTM, got $names"; fi

# what is refused
gives no_sequence 78 err 'expected an input of [batch, tokens, features], got' check all.cfg -s 'model.layers[5].in="max"'
gives no_lengths 78 err 'the lengths of the samples' check all.cfg -s 'model.layers[1].in=["word", "tokens"]'
gives dropout_of_one 78 err 'expected num_layers of at least 2' check all.cfg -s 'model.layers[1].num_layers=1'
gives no_size 78 err 'hidden_size' check all.cfg -s 'model.layers[1]={ name = "lstm"; type = "lstm"; in = "word"; }'
