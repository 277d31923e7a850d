#!/bin/bash
# The configs of tables and texts in configs/ against PyTorch: 100 steps, every loss, the final weights and the evaluation (goldens by
# make_parity.py). Changed are the data, which is synthetic and has samples of different lengths and a smaller last batch, dropout, whose
# random numbers are not PyTorch's, the number of steps, and the momentum, which is constant. CONFIGS_DEVICE: not cpu.
# tests/run: beside others
set -u
here=$GTRAIN_SRC/tests/parity
export OMP_WAIT_POLICY=passive
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
words='{ name = "tokens"; shape = [12]; vocabulary = 30; }, { name = "lengths"; }'
columns='{ name = "codes"; shape = [3]; vocabulary = 30; }, { name = "values"; shape = [4]; }'
for name in adult_tabular imdb_bag imdb_lstm imdb_transformer; do
	inputs=$words
	[ $name = adult_tabular ] && inputs=$columns
	sed -e '/^data = {/,/^};/d' -e '/^checkpoint = {/,$d' -e 's/^seed = .*/seed = 42;/' \
		-e "s/^\tinputs = .*/\tinit = \"torch\"; inputs = ( $inputs );/" -e 's/ p = 0\.[0-9]*;/ p = 0.0;/' \
		-e 's/^\tepochs = .*/\tsteps = 100; eval_every_epochs = 0;/' -e 's/ t_max = 5\.0;//' \
		"$GTRAIN_SRC/configs/$name.cfg" >"$tmp/$name.cfg"
	cat >>"$tmp/$name.cfg" <<-'CFG'
		data = { name = "synthetic"; samples = 400; samples_test = 200; classes = 2; batch = 48; sampler = "torch"; };
		checkpoint = { every_epochs = 0; };
		log = { every_steps = 1; };
	CFG
	plain=(-s train.schedule.cycle_momentum=false)
	[ $name != imdb_bag ] || plain=()
	if "$GTRAIN" run "$tmp/$name.cfg" -o "$tmp/$name" --device "${CONFIGS_DEVICE:-cpu}" --no-progress -q "${plain[@]}" \
		>"$tmp/log" 2>&1; then
		python3 "$here/compare.py" "config_$name" "$GTRAIN_SRC/tests/golden/parity/config_$name.txt" "$tmp/$name/metrics.jsonl" \
			"$tmp/$name/latest/model.safetensors"
	else
		echo "not ok parity config_$name: $(tail -n 1 "$tmp/log")"
	fi
done
