#!/bin/bash
# gtrain eval --predictions: the losses of the samples make the reported loss, with every loss and kind of target, also on several ranks,
# with test-time augmentation and where rows are left out; each row names its sample; the file is replaced as a whole.
# tests/run: beside others
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
cd "$tmp" || exit 1

# number KEY: a number of the JSON line in out
number() { sed -n "s/.*\"$1\":\\([-0-9.e+]*\\).*/\\1/p" out; }
# mean COLUMN...: the mean over the rows of an awk expression, of which the columns of p.csv are c["NAME"]
mean() {
	awk -F, "NR == 1 { for (i = 1; i <= NF; i++) name[i] = \$i; next }
		{ for (i = 1; i <= NF; i++) c[name[i]] = \$i } c[\"loss\"] != \"\" { s += $1; w += ${2:-1} } END { printf \"%.12g\", s / w }" p.csv
}
# near A B: they differ by at most 2e-6 of B: the kernels compute a loss in f32, here it is computed in double
near() {
	awk -v a="$1" -v b="$2" 'BEGIN { d = a - b; d = d < 0 ? -d : d; m = b < 0 ? -b : b
		exit !(a != "" && b != "" && d <= 2e-6 * m + 1e-12) }'
}
# evaluates NAME ROWS ARGS...: gtrain eval --json --predictions p.csv ARGS, which writes ROWS rows whose mean loss is the reported one
evaluates() {
	local name=$1 rows=$2
	shift 2
	rm -f p.csv
	if ! "$gtrain" eval "$@" --json --predictions p.csv >out 2>err; then
		fail "$name" "$(head -n 1 err)"
	elif [ "$(wc -l <p.csv)" != $((rows + 1)) ]; then
		fail "$name" "$(wc -l <p.csv) lines in p.csv"
	elif ! near "$(mean 'c["loss"]' "${weight:-1}")" "$(number loss)"; then
		fail "$name" "mean loss $(mean 'c["loss"]' "${weight:-1}"), reported $(number loss)"
	else
		pass "$name"
	fi
}
accuracy() {
	if near "$(mean 'c["label"] == c["prediction"]')" "$(number acc)"; then pass "$1"; else
		fail "$1" "$(mean 'c["label"] == c["prediction"]'), reported $(number acc)"; fi
}

# ---- classes ---------------------------------------------------------------------------------------------------------------------------
cat >net.cfg <<'CFG'
schema = 1; name = "net"; seed = 5;
data = { name = "synthetic"; batch = 16; classes = 3; samples = 90; samples_test = 77; valid = 0.2; };
model = { input = [1, 6, 6]; layers = ( { type = "flatten"; }, { name = "fc"; type = "linear"; out = 3; } ); };
train = { epochs = 2; optimizer = { type = "sgd"; lr = 0.05; }; };
checkpoint = { dir = "unused"; };
CFG
sed 's/{ name = "fc"; type = "linear"; out = 3; }/&, { type = "log_softmax"; }/' net.cfg >nll.cfg
trains() { "$gtrain" run "$@" -q >/dev/null 2>err || fail "train_$2" "$(head -n 1 err)"; }
losses=$("$gtrain" check net.cfg -s train.loss=unknown 2>&1 | sed 's/, got.*//' | grep -o '"[a-z_0-9]*"' | tr -d '"')
if [ "$(wc -w <<<"$losses")" -gt 5 ]; then pass losses; else fail losses "$losses"; fi
for loss in $losses; do
	cfg=net.cfg
	"$gtrain" check net.cfg -s train.loss="$loss" 2>&1 | grep -q 'expects the output of log_softmax' && cfg=nll.cfg
	trains $cfg -o "$loss" -s train.loss="$loss"
	evaluates "loss_$loss" 77 "$loss" --split test
	accuracy "accuracy_$loss"
done
evaluates split_valid 18 cross_entropy --split valid
accuracy split_valid_accuracy
evaluates split_train 72 cross_entropy --split train
if [ "$(head -n 1 p.csv)" = path,label,prediction,probability_0,probability_1,probability_2,loss ]; then pass columns; else
	fail columns "$(head -n 1 p.csv)"; fi
if near "$(mean 'c["probability_0"] + c["probability_1"] + c["probability_2"]')" 1 &&
	cut -d, -f1 p.csv | sed -n 2p | grep -q '^synthetic\[[0-9]*\]$'; then
	pass probabilities
else
	fail probabilities "$(sed -n 2p p.csv)"
fi
evaluates tta 77 cross_entropy --split test -s eval.tta=mirror
accuracy tta_accuracy
trains net.cfg -o smooth -s train.label_smoothing=0.2
evaluates label_smoothing 77 smooth --split test
trains net.cfg -o weighted -s 'train.class_weights=[1.0,2.0,5.0]'
weight='(c["label"] == 0 ? 1 : c["label"] == 1 ? 2 : 5)' evaluates class_weights 77 weighted --split test
# samples with the ignored label have a row without a loss
trains net.cfg -o ignoring -s train.ignore_index=1
evaluates ignored_label 77 ignoring --split test
if awk -F, 'NR > 1 && ($2 == 1) != ($7 == "") { exit 1 } $2 == 1 { n++ } END { exit !n }' p.csv; then
	pass ignored_rows
else
	fail ignored_rows "$(head -n 3 p.csv)"
fi
# the order is that of the split on any number of ranks, in every mode
evaluates one_rank 77 cross_entropy --split test
cut -d, -f1-3 p.csv >one.csv
for mode in ddp dp pipe; do
	evaluates "ranks_$mode" 77 cross_entropy --split test --nproc 2 -s parallel.mode=$mode
	if cut -d, -f1-3 p.csv | cmp -s - one.csv; then pass "order_$mode"; else fail "order_$mode" "$(sed -n 2p p.csv)"; fi
done

# ---- tables ----------------------------------------------------------------------------------------------------------------------------
awk 'function rand_() { seed = (seed * 16807) % 2147483647; return seed / 2147483647 }
BEGIN {
	seed = 7
	print "id,a,b,price,age,red,blue,kind"
	for (i = 1; i <= 120; i++) {
		a = rand_(); b = rand_()
		printf "row%d,%.4f,%.4f,%.2f,%.3f", i, a, b, 200000 + 90000 * a * b, 30 + 9 * a - b
		printf ",%d,%d,%s\n", (a > 0.5), (b > 0.7), (a > b ? "hi" : "lo")
	}
}' | sed 's/,lo$/,"lo, ""x"""/' >rows.csv
cat >table.cfg <<'CFG'
schema = 1; name = "table"; seed = 3;
data = { format = "csv"; train = ["rows.csv"]; target = ["price", "age"]; ignore = ["id", "red", "blue", "kind"]; batch = 16; valid = 0.25;
	normalize_target = true; };
model = { inputs = ( { name = "values"; } );
	layers = ( { type = "linear"; out = 8; }, { type = "relu"; }, { type = "linear"; out = 2; } ); };
train = { epochs = 8; loss = "mse"; optimizer = { type = "adam"; lr = 0.05; }; };
checkpoint = { dir = "unused"; };
CFG
for loss in mse l1 smooth_l1; do
	trains table.cfg -o "numbers_$loss" -s train.loss=$loss
	evaluates "numbers_$loss" 25 "numbers_$loss" --split valid
done
abs() { echo "($1 > $2 ? $1 - $2 : $2 - $1)"; }
mae=$(mean "($(abs 'c["price"]' 'c["predicted_price"]') + $(abs 'c["age"]' 'c["predicted_age"]')) / 2")
if [ "$(head -n 1 p.csv)" = path,price,age,predicted_price,predicted_age,loss ] && near "$mae" "$(number mae)"; then pass numbers_mae; else
	fail numbers_mae "$mae, reported $(number mae)"; fi
# path is FILE:LINE: the line has the targets of the row
if awk -F, 'NR == FNR { price[FNR] = $4; age[FNR] = $5; next } FNR > 1 { sub(/.*:/, "", $1)
	if ($2 - price[$1] > 0.02 || price[$1] - $2 > 0.02 || $3 - age[$1] > 1e-5 || age[$1] - $3 > 1e-5) exit 1; n++ }
	END { exit !n }' rows.csv p.csv; then
	pass lines
else
	fail lines "$(sed -n 2p p.csv)"
fi
cp p.csv all.csv
# also where a row before is left out, or where data.limit takes a part
sed '5s/0\.[0-9]*/none/' rows.csv >holed.csv
trains table.cfg -o holed -s 'data.train=["holed.csv"]' -s data.on_error=skip
evaluates skipped_row 25 holed --split valid
sed 's/,/ /g' holed.csv >plain
if tail -n +2 p.csv | while IFS=, read -r path price _; do
	line=$(sed -n "${path##*:}p" plain | cut -d' ' -f4)
	awk -v a="$price" -v b="$line" 'BEGIN { exit !(a - b < 0.02 && b - a < 0.02) }' || exit 1
done; then pass skipped_lines; else fail skipped_lines "$(sed -n 2p p.csv)"; fi
# several labels of a row
trains table.cfg -o labels -s 'data.target=["red","blue"]' -s 'data.ignore=["id","price","age","kind"]' -s data.normalize_target=false \
	-s train.loss=bce -s 'train.pos_weight=[1.0,3.0]'
evaluates labels 25 labels --split valid
if [ "$(head -n 1 p.csv)" = path,label_red,label_blue,prediction_red,prediction_blue,probability_red,probability_blue,loss ] &&
	near "$(mean '(c["probability_red"] > 0.5) == c["prediction_red"]')" 1; then
	pass labels_columns
else
	fail labels_columns "$(head -n 2 p.csv)"
fi
# names with commas and quotes
trains table.cfg -o kinds -s 'data.target="kind"' -s 'data.ignore=["id","price","age","red","blue"]' -s data.normalize_target=false \
	-s train.loss=cross_entropy
run eval kinds --split valid --predictions p.csv
if head -n 1 p.csv | grep -qF ',probability_hi,"probability_lo, ""x""",loss' && grep -qF ',"lo, ""x""",' p.csv; then pass quoted; else
	fail quoted "$(head -n 2 p.csv)"; fi

# ---- texts -----------------------------------------------------------------------------------------------------------------------------
for i in 1 2 3 4 5 6 7 8; do
	mkdir -p texts/train/good texts/train/bad texts/test/good texts/test/bad
	echo "a fine film $i" | tee texts/train/good/$i.txt >texts/test/good/$i.txt
	echo "a poor film $i" | tee texts/train/bad/$i.txt >texts/test/bad/$i.txt
done
: >texts/test/bad/3.txt
cat >texts.cfg <<'CFG'
schema = 1; name = "texts"; seed = 3;
data = { format = "text"; root = "texts"; batch = 4; on_error = "skip"; min_freq = 1; };
model = { inputs = ( { name = "tokens"; }, { name = "lengths"; } );
	layers = ( { name = "emb"; type = "embedding"; embedding_dim = 8; in = "tokens"; }, { type = "pool_tokens"; in = ["emb", "lengths"]; },
		{ type = "linear"; out = 2; } ); };
train = { epochs = 2; optimizer = { type = "adam"; lr = 0.05; }; };
checkpoint = { dir = "unused"; };
CFG
trains texts.cfg -o texts_run
evaluates texts 15 texts_run --split test
accuracy texts_accuracy
if [ "$(tail -n +2 p.csv | cut -d, -f1,2 | sed 's|.*texts/||' | tr '\n' ' ')" = "$(for c in bad good; do
	for i in 1 2 3 4 5 6 7 8; do [ $c$i = bad3 ] || echo "test/$c/$i.txt,$c"; done
done | tr '\n' ' ')" ]; then pass texts_named; else fail texts_named "$(head -n 3 p.csv)"; fi

# ---- the file --------------------------------------------------------------------------------------------------------------------------
echo old >p.csv
gives failed 66 err 'absent.csv' eval numbers_l1 --predictions p.csv -s 'data.train=["absent.csv"]'
if [ "$(cat p.csv)" = old ] && [ -z "$(ls p.csv.* 2>/dev/null)" ]; then pass failed_keeps; else fail failed_keeps "$(ls p.csv*)"; fi
gives replaced 0 err 'wrote p.csv' eval numbers_smooth_l1 --split valid --predictions p.csv
if cmp -s p.csv all.csv && [ -z "$(ls p.csv.* 2>/dev/null)" ]; then pass replaced_whole; else fail replaced_whole "$(head -n 1 p.csv)"; fi
gives no_folder 73 err 'none/p.csv: cannot create: No such file or directory' eval numbers_l1 --split valid --predictions none/p.csv
gives to_stdout 64 err '--predictions: expected the name of a file, got -' eval numbers_l1 --predictions -
# the report, the scores and the file together
gives report 0 out 'predicted' eval cross_entropy --split test --report --predictions p.csv --csv
