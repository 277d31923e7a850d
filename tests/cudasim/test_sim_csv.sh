#!/bin/bash
# Tables on the host's CUDA runtime: values, codes and targets are resident on the device, and batches of predictions are copied to it. The
# losses, evaluations and predictions are the CPU's, and a row alone has the prediction that it has in a table.
# tests/run: beside others
set -u
# shellcheck source=tests/cudasim/sim.sh
. "$GTRAIN_SRC/tests/cudasim/sim.sh"
sim_begin sim_csv
cd "$tmp" || exit 1
awk 'function rand_() { seed = seed * 16807 % 2147483647; return seed / 2147483647 }
BEGIN {
	seed = 3
	print "a,b,c,d,y"
	split("red green blue", word, " ")
	for (i = 1; i <= 200; i++) {
		a = rand_() * 4 - 2
		k = int(rand_() * 3) + 1
		printf "%.4f,%s,%s,w%d,%.4f\n", a, (i % 9 ? sprintf("%.3f", rand_()) : "?"), word[k], i % 5, 1000 + 20 * a + 7 * k
	}
}' >all.csv
cat >net.cfg <<'CFG'
schema = 1;
name = "table";
seed = 3;
reproducible = "run";
data = { format = "csv"; train = ["all.csv"]; target = "y"; normalize_target = true; batch = 24; valid = 0.2; };
model = { inputs = ( { name = "codes"; }, { name = "values"; } );
	layers = ( { name = "e"; type = "embeddings"; in = "codes"; }, { type = "concat"; in = ["e", "values"]; },
	{ type = "linear"; out = 16; }, { type = "relu"; }, { type = "linear"; out = 1; } ); };
train = { epochs = 6; loss = "mse"; optimizer = { type = "adam"; lr = 0.02; }; };
checkpoint = { every_epochs = 0; };
log = { every_steps = 1; };
CFG
"$GTRAIN" run net.cfg -q -o cpu --device cpu >/dev/null 2>err || echo "not ok sim_csv: $(head -n 1 err)"
"$sim/bin/gtrain" run net.cfg -q -o sim --device cuda >/dev/null 2>err || echo "not ok sim_csv: $(head -n 1 err)"
# 1e-4: both sum in another order
if paste <(losses cpu) <(losses sim) | awk '{ n++; d = $3 - $6; if ($1 != $4 || $2 != $5 || d * d > 1e-8 * (1 + $3 * $3)) bad++ }
	END { exit !(n == 48 && !bad) }'; then
	echo 'ok sim_csv_losses'
else
	echo "not ok sim_csv_losses: $(losses cpu | wc -l) and $(losses sim | wc -l): $(paste <(losses cpu) <(losses sim) | head -n 3)"
fi
"$GTRAIN" predict cpu all.csv --device cpu >cpu.out 2>err || echo "not ok sim_csv_predict: $(head -n 1 err)"
"$sim/bin/gtrain" predict cpu all.csv --device cuda >sim.out 2>err || echo "not ok sim_csv_predict: $(head -n 1 err)"
if paste -d, cpu.out sim.out | awk -F, 'NR > 1 { n++; d = $3 - $6; if (d * d > 1e-4) bad++ } END { exit !(n == 200 && !bad) }'; then
	echo 'ok sim_csv_predict' # numbers around 1000 from f32
else
	echo "not ok sim_csv_predict: $(paste -d, cpu.out sim.out | head -n 3 | tr '\n' ' ')"
fi
for i in 2 70 201; do
	sed -n "1p;${i}p" all.csv >one.csv
	"$sim/bin/gtrain" predict cpu one.csv --device cuda >one.out 2>err
	if [ "$(tail -n 1 one.out | cut -d, -f3)" = "$(sed -n "${i}p" sim.out | cut -d, -f3)" ]; then
		echo "ok sim_csv_row_$i"
	else
		echo "not ok sim_csv_row_$i: $(tail -n 1 one.out), in the table $(sed -n "${i}p" sim.out) $(head -n 1 err)"
	fi
done
