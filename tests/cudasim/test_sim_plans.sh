#!/bin/bash
# The plan for a GPU that is not there (--device null:cuda) has the calls of the plan that the CUDA backend makes: of every config, and
# with options that decide which operations are fused. Each config is planned in one of four precisions, the next config in the next one;
# SIM_PLANS_TURN=1, 2 or 3 begins with another precision, SIM_PLANS_FULL=1 tries all four.
# tests/run: beside others
set -u
# shellcheck source=tests/cudasim/sim.sh
. "$GTRAIN_SRC/tests/cudasim/sim.sh"
sim_begin plans
data=(-s data.name=synthetic -s data.root= -s data.classes=10 -s data.samples=60000 -s data.samples_test=10000)
export CUDASIM_DNN_IDLE=1 XDG_CACHE_HOME=$tmp/cache
total=0 differ=0 planned=0
# same NAME CONFIG OPTIONS...
same() {
	local name=$1 cfg=$2
	shift 2
	for device in cuda null:cuda; do
		"$sim/bin/gtrain" plan "$cfg" --device "$device" --json "$@" >"$tmp/out" 2>"$tmp/log"
		echo "exit $?" >"$tmp/$device"
		# steps, operations and layers; a refusal differs in the sentences of the two backends
		grep -o '"kind":"[^"]*"\|"op":"[^"]*"\|"layer":"[^"]*"' "$tmp/out" >>"$tmp/$device"
	done
	total=$((total + 1))
	[ "$(head -n 1 "$tmp/cuda")" != 'exit 0' ] || planned=$((planned + 1))
	cmp -s "$tmp/cuda" "$tmp/null:cuda" && return
	differ=$((differ + 1))
	echo "not ok plan_of_$name: $(diff "$tmp/cuda" "$tmp/null:cuda" | head -n 4 | tr '\n' ' ')$(tail -n 1 "$tmp/log")"
}
# Two classes of texts of 1 to 1000 words, word pieces for them, and a table.
awk -v dir="$tmp/texts" 'function rand_() { seed = seed * 16807 % 2147483647; return seed / 2147483647 }
BEGIN {
	seed = 3
	for (i = 0; i < 120; i++) {
		folder = dir "/" (i % 2 ? "pos" : "neg")
		if (i < 2) system("mkdir -p " folder)
		for (k = int(exp(rand_() * 7)); k >= 0; k--) printf "w%d ", int(rand_() * 40) >(folder "/" i ".txt")
		close(folder "/" i ".txt")
	}
}'
printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' w '##'{0..9} >"$tmp/vocab.txt"
for i in {1..200}; do
	echo "$((20 + i % 50)), Private, $((20000 + i * 37)), HS-grad, $((i % 16)), Divorced, Sales, Wife, Other, Male, 0, 0, 40, India, $(
		[ $((i % 3)) = 0 ] && echo '>50K' || echo '<=50K')"
done >"$tmp/adult.data"

precisions=(bf16 fp32 fp16 tf32) turn=${SIM_PLANS_TURN:-0} configs=0
for cfg in "$GTRAIN_SRC"/configs/*.cfg; do
	name=$(basename "$cfg" .cfg)
	case $name in
	imdb_*) input=(-s "data.root=$tmp/texts") ;;
	finetune_bert) input=(-s "data.root=$tmp/texts" -s "data.vocab=$tmp/vocab.txt") ;;
	adult_tabular) input=(-s "data.train=[\"$tmp/adult.data\"]") ;;
	*) input=("${data[@]}") ;;
	esac
	all=("${precisions[@]}")
	[ -n "${SIM_PLANS_FULL:-}" ] || all=("${precisions[turn % 4]}")
	for p in "${all[@]}"; do
		configs=$((configs + 1))
		same "${name}_$p" "$cfg" "${input[@]}" -s parallel.mode=single -s reproducible=run -s "precision=$p"
	done
	turn=$((turn + 1))
done
[ "$planned" -eq "$configs" ] || echo "not ok plans_of_configs: $planned of $configs were made"
for name in sequences recurrent recompute; do
	same "$name" "$GTRAIN_SRC/tests/cli/$name.cfg"
done
# A last layer with 32 outputs and with 33, batches around the limits of the fused operations, a clipped norm, Adam, accumulation.
mlp=$GTRAIN_SRC/configs/tutorial_mlp_sgd.cfg
for o in data.batch=512 data.batch=513 data.batch=1024 data.batch=1025 data.classes=32 train.clip_norm=1.0 train.optimizer.type=adam \
	train.accumulate=2 precision=fp16 train.ema.decay=0.9 reproducible=run reproducible=world; do
	same "mlp_$o" "$mlp" "${data[@]}" -s "$o"
done
least=$((configs + 14)) # reproducible=world is refused
[ "$planned" -ge "$least" ] || echo "not ok plans_of_a_described_gpu: only $planned of $total plans were made"
[ "$differ" -ne 0 ] || [ "$planned" -lt "$least" ] || echo 'ok plans_of_a_described_gpu'
echo "# sim_plans: $total plans, $planned made, $differ differ; $configs of configs"
