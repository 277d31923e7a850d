#!/bin/bash
# lstm and gru in whole trainings: every mode gives the bits of one rank, as do a resumed run, one that computes activations again and other
# numbers of threads; 16 bit; names and shapes of the parameters; and what is refused.
# tests/run: beside others
# shellcheck source=tests/cli/same_bits.sh
. "$(dirname "$0")/same_bits.sh"
trains "$src/tests/cli/recurrent.cfg" 0.7 -s 'model.layers[1].recompute=true' -s 'model.layers[2].recompute=true'
for threads in 1 3; do
	OMP_NUM_THREADS=$threads "$gtrain" run all.cfg -q -o threads$threads >/dev/null 2>err
	same threads$threads threads$threads
done
trains_in 'ddp 2' 'ddp 4' 'dp 2' 'zero 2 1' 'zero 2 2' 'zero 4 3' 'pipe 2' 'pipe 4'
# rows so few that the update of a linear layer is fused with its gradient, which is no way to make weight_hh
gives few_rows 0 out 'test accuracy' run all.cfg -q -o few -s data.batch=8 -s reproducible=none -s train.epochs=1
gives checks 0 out '[4, 12, 40]' check all.cfg
names=$("$gtrain" inspect all 2>/dev/null | grep -o 'lstm\.\(weight\|bias\)_[ih]h_l[01]\(_reverse\)\? ' | sort -u | wc -l)
if [ "$names" = 16 ]; then pass names; else fail names "expected the 16 names of torch.nn.LSTM, got $names"; fi

# what is refused
gives no_sequence 78 err 'expected an input of [batch, tokens, features], got' check all.cfg -s 'model.layers[5].in="max"'
gives no_lengths 78 err 'the lengths of the samples' check all.cfg -s 'model.layers[1].in=["word", "tokens"]'
gives dropout_of_one 78 err 'expected num_layers of at least 2' check all.cfg -s 'model.layers[1].num_layers=1'
gives no_size 78 err 'hidden_size' check all.cfg -s 'model.layers[1]={ name = "lstm"; type = "lstm"; in = "word"; }'
