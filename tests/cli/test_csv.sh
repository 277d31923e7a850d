#!/bin/bash
# Tables (data.format = "csv"): what is learned from the training split, training in any mode, resuming, evaluation, and bad input.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
cd "$tmp" || exit 1
# A table of 600 rows: y is a number that follows from a, b and the words of c; level is high where y is above its median.
awk 'function rand_() { seed = seed * 16807 % 2147483647; return seed / 2147483647 }
BEGIN {
	seed = 5
	print "id,a,b,c,y,level"
	split("red green blue", word, " ")
	for (i = 1; i <= 600; i++) {
		a = rand_() * 4 - 2
		b = 100 + 10 * rand_()
		k = int(rand_() * 3) + 1
		y = 2 * a - (b - 105) / 2 + (k == 2 ? 1.5 : k == 3 ? -1.5 : 0)
		printf "row%d,%.4f,%s,%s,%.4f,%s\n", i, a, i % 20 ? sprintf("%.3f", b) : "?", word[k], y, (y > 0 ? "high" : "low")
	}
}' >all.csv
{
	head -n 1 all.csv
	tail -n +2 all.csv | awk 'NR > 480'
} >test.csv
head -n 481 all.csv >train.csv
cat >numbers.cfg <<'CFG'
schema = 1;
name = "table";
seed = 3;
reproducible = "world";
data = { format = "csv"; train = ["train.csv"]; test = ["test.csv"]; target = "y"; ignore = ["level"]; batch = 32; valid = 0.2; };
model = { inputs = ( { name = "values"; } ); 
	layers = ( { type = "linear"; out = 32; }, { type = "relu"; }, { type = "linear"; out = 1; } ); };
train = { epochs = 10; loss = "mse"; optimizer = { type = "adam"; lr = 0.02; }; };
checkpoint = { every_epochs = 0; best = { metric = "valid/loss"; }; };
CFG
sed -e 's/target = "y"; ignore = \["level"\]/target = "level"; ignore = ["y"]; stratify = true/; s/"mse"/"cross_entropy"/' \
	-e 's/out = 1;/out = 2;/' numbers.cfg >classes.cfg
weights() { "$gtrain" export "$1" -o "$1.safetensors" -q && sha256sum <"$1.safetensors" | cut -c1-16; }

# ---- what is learned, and where it is kept --------------------------------------------------------------------------------------------
gives check 0 out '391 train, 89 valid, 120 test' check numbers.cfg
"$gtrain" run numbers.cfg -o numbers >out 2>err || fail numbers "$(head -n 1 err)"
if awk -v l="$(sed -n 's/.*test loss \([0-9.e-]*\).*/\1/p' out)" 'BEGIN { exit !(l != "" && l + 0 < 3) }'; then
	pass numbers_learns
else
	fail numbers_learns "$(cat out err)"
fi
echo "# numbers: $(tail -n 1 out)"
if grep -q '^epoch 1/10  train loss [0-9.]*  valid loss [0-9.]* MAE [0-9.]* RMSE [0-9.]* R2 [-0-9.]*  test loss [0-9.]* MAE ' err; then
	pass numbers_rows
else
	fail numbers_rows "$(head -n 3 err)"
fi
"$gtrain" run classes.cfg -q -o classes >out 2>err || fail classes "$(head -n 1 err)"
if awk -v a="$(sed -n 's/.*test accuracy \([0-9.]*\).*/\1/p' out)" 'BEGIN { exit !(a != "" && a + 0 > 0.8) }'; then
	pass classes_learns
else
	fail classes_learns "$(cat out err)"
fi
echo "# classes: $(tail -n 1 out)"
# has NAME FILE TEXT
has() { if grep -qF -- "$3" "$2"; then pass "$1"; else fail "$1" "no '$3' in $2: $(cut -c1-600 "$2")"; fi; }
has facts_task numbers/latest/data.json '"task":"numbers"'
has facts_ignored numbers/latest/data.json '{"name":"id","type":"ignore"}'
has facts_missing numbers/latest/data.json '"missing":true'
has facts_words numbers/latest/data.json '"name":"c","type":"categorical","words":['
has facts_classes classes/latest/data.json '"classes":["high","low"]'
gives eval_test 0 out 'test loss' eval numbers
has metrics_count numbers/metrics.jsonl '"samples":120'
gives eval_counts 0 out '(120 samples' eval numbers
gives check_types 0 out 'categorical           3 different' check numbers.cfg
gives check_why 0 out 'words that are all different' check numbers.cfg
gives check_json 0 out '"columns":[{"name":"id","type":"ignore","why":"words that are all different","missing":0},' check numbers.cfg --json
gives check_reading 0 out 'of host memory before training' check numbers.cfg
gives check_unread 0 err 'the model does not read the column "c"; add { name = "codes"; }' check numbers.cfg
gives eval_valid 0 out 'valid loss' eval numbers --split valid
# Without --split, a checkpoint whose data has no split test is evaluated on valid.
gives eval_no_test 0 out 'valid loss' eval numbers -s data.test=[]
gives eval_no_test_says 0 err 'the data has no split "test"; evaluating "valid"' eval numbers -s data.test=[]
gives eval_no_test_quiet 0 out '"split":"valid","samples":89,' eval numbers -s data.test=[] -q --json
if [ -s err ]; then fail eval_no_test_is_quiet "$(cat err)"; else pass eval_no_test_is_quiet; fi
gives eval_no_test_ranks 0 out 'valid loss' eval numbers -s data.test=[] --nproc 2 -s parallel.mode=ddp
gives eval_no_test_threads 0 out 'valid loss' eval numbers -s data.test=[] --nproc 2 -s parallel.mode=dp --report
gives eval_test_given 66 err 'the split "test" has no samples' eval numbers -s data.test=[] --split test
gives target_near 78 err '/train.csv, got "levl"; did you mean "level"?' check numbers.cfg -s data.target=levl
gives target_case 78 err '/train.csv, got "Y"; did you mean "y"?' check numbers.cfg -s data.target=Y
gives eval_only_train 66 err 'the splits "valid" and "test" have no samples' eval classes -s data.test=[] -s data.valid=0 \
	-s data.stratify=false -s checkpoint.best.metric=
gives report_numbers 0 out 'RMSE' eval numbers --report
gives report_classes 0 out 'ROC AUC' eval classes --report

# Nothing is learned from the splits valid and test: the facts do not change when their rows do.
cp numbers/latest/data.json before.json
awk -F, 'BEGIN { OFS = "," } NR > 1 { $2 = 1000; $4 = "violet" } 1' test.csv >other.csv
"$gtrain" run numbers.cfg -q -o other -s "data.test=[\"$PWD/other.csv\"]" -s train.steps=2 >out 2>err || fail other "$(head -n 1 err)"
facts() { sed 's/,"samples":{.*//' "$1"; } # without the list of samples, which has those of the split test
if [ "$(facts before.json)" = "$(facts other/latest/data.json)" ]; then
	pass test_is_not_learned
else
	fail test_is_not_learned 'other facts'
fi

# ---- the same weights in any way of running -------------------------------------------------------------------------------------------
for cfg in numbers classes; do
	want=$(weights $cfg)
	equal() { if [ "$(weights "$2")" = "$want" ]; then pass "$1"; else fail "$1" "other weights: $(head -n 1 err)"; fi; }
	"$gtrain" run $cfg.cfg -q -o $cfg-part -s train.steps=17 >/dev/null 2>err || fail "${cfg}_part" "$(head -n 1 err)"
	"$gtrain" resume $cfg-part -q -s train.steps=0 >/dev/null 2>err
	equal "${cfg}_resumed" $cfg-part
	# the resumed run has the scores of the whole epoch in which it was interrupted
	epochs() { grep -o '"event":"epoch".*"samples":[0-9]*' "$1/metrics.jsonl"; }
	declare -A samples=([numbers]=391 [classes]=384) # of 480 rows; data.stratify takes a fifth of each class
	if [ "$(epochs $cfg | grep -c "\"samples\":${samples[$cfg]}")" = 10 ]; then
		pass "${cfg}_epochs"
	else
		fail "${cfg}_epochs" "$(epochs $cfg | head -n 2)"
	fi
	if [ "$(epochs $cfg)" = "$(epochs $cfg-part)" ]; then
		pass "${cfg}_resumed_epochs"
	else
		fail "${cfg}_resumed_epochs" "$(diff <(epochs $cfg) <(epochs $cfg-part) | head -n 3)"
	fi
	for mode in 'ddp 2' 'dp 2' 'ddp 4' 'zero 4'; do
		read -r m n <<<"$mode"
		"$gtrain" run $cfg.cfg -q -o "$cfg-$m$n" -s "parallel.mode=$m" -s "parallel.nproc=$n" >/dev/null 2>err
		equal "${cfg}_$m$n" "$cfg-$m$n"
	done
	"$gtrain" run $cfg.cfg -q -o $cfg-dp-part -s train.steps=17 -s parallel.mode=dp -s parallel.nproc=2 >/dev/null 2>err
	"$gtrain" resume $cfg-dp-part -q -s train.steps=0 >/dev/null 2>err
	equal "${cfg}_dp_resumed" $cfg-dp-part
	gives "${cfg}_eval_ranks" 0 out 'loss' eval $cfg --nproc 2 -s parallel.mode=ddp
done
# a run that resumes keeps its split and what it has learned, and says what is different
awk -F, 'BEGIN { OFS = "," } NR == 9 { $4 = "pink" } 1' train.csv >pink.csv
cp -r numbers-part other-split && cp -r numbers-part other-file
gives resume_other_split 0 err "samples stay in the run's earlier split (train or valid), although data.valid" \
	resume other-split -s train.epochs=11 -s data.valid=0.3
gives resume_other_split_valid 0 out '(89 samples' eval other-split --split valid
gives resume_other_file 0 err "of the run's 600 samples, 1 is missing and 0 have changed; 1 is new" resume other-file -s train.epochs=11 \
	-s "data.train=[\"$PWD/pink.csv\"]"
has resume_other_file_words other-file/latest/data.json '"name":"c","type":"categorical","words":["red","green","blue"]'
cp -r numbers-part other-keys
gives resume_other_keys 65 err 'the data has not changed since the run; remove the data key' \
	resume other-keys -s train.epochs=11 -s 'data.columns=({ name = "a"; type = "categorical"; })'
# data that has moved
mv train.csv moved.csv
gives resume_moved 66 err "train.csv: No such file or directory; if the data has moved, add -s 'data.train=" \
	resume numbers-part -s train.epochs=11
gives eval_moved 66 err "if the data has moved, add -s 'data.train=" eval numbers --split valid
gives eval_moved_root 66 err "if the data has moved, add -s 'data.train=" eval numbers --split valid -s data.root=elsewhere
gives eval_moved_given 0 out 'valid loss' eval numbers --split valid -s "data.train=[\"$PWD/moved.csv\"]"
mv moved.csv train.csv
# an evaluation of a part of the training table uses what the checkpoint has learned, and warns if the table has changed
gives eval_same 0 out 'valid loss' eval numbers --split valid
if [ -s err ]; then fail eval_same_says "$(cat err)"; else pass eval_same_says; fi
gives eval_changed 0 err "of the run's 480 samples, 1 is missing and 0 have changed; 1 is new" \
	eval numbers --split valid -s "data.train=[\"$PWD/pink.csv\"]"
gives eval_changed_why 0 err "samples stay in the run's earlier split (train or valid)" eval numbers --split valid -s data.valid=0.3
gives eval_test_silent 0 out 'test loss' eval numbers -s "data.train=[\"$PWD/pink.csv\"]"
if [ -s err ]; then fail eval_test_says "$(cat err)"; else pass eval_test_says; fi
gives resume_nothing_lost 0 out 'every digest matches' inspect numbers-part --verify
# several files are one table
head -n 200 train.csv >first.csv
{
	head -n 1 train.csv
	tail -n +201 train.csv
} >second.csv
"$gtrain" run numbers.cfg -q -o files -s "data.train=[\"$PWD/first.csv\", \"$PWD/second.csv\"]" >/dev/null 2>err ||
	fail files "$(head -n 1 err)"
if [ "$(weights files)" = "$(weights numbers)" ]; then pass several_files; else fail several_files 'other weights'; fi
gives several_files_named 0 out 'first.csv and 1 more file' check numbers.cfg -s "data.train=[\"$PWD/first.csv\", \"$PWD/second.csv\"]"

# ---- prediction ------------------------------------------------------------------------------------------------------------------------
gives predict_numbers 0 out 'path,index,y' predict numbers test.csv
if [ "$(wc -l <out)" = 121 ]; then pass predict_every_row; else fail predict_every_row "$(wc -l <out) lines"; fi
gives predict_classes 0 out 'path,index,level,probability_high,probability_low' predict classes test.csv
cp out all.out
gives predict_json 0 out '"top":[{"class":' predict classes test.csv --json --top 2
gives predict_json_numbers 0 out '"values":{"y":' predict numbers test.csv --json
# --top has the effect that it has on images, and is refused where there are no classes
gives predict_top 0 out 'path,index,class,name,probability' predict classes test.csv --top 1
if cmp -s <(tail -n +2 all.out | cut -d, -f1-3) <(tail -n +2 out | cut -d, -f1,2,4) && awk -F, 'NF != 5 { exit 1 }' out; then
	pass predict_top_class
else
	fail predict_top_class "$(head -n 2 out)"
fi
run predict classes test.csv --top 3 # the model has two classes
if [ "$(head -n 1 out)" = path,index,class,name,probability,class_2,name_2,probability_2,class_3,name_3,probability_3 ] &&
	awk -F, 'NR > 1 && (NF != 11 || $5 < $8 || ($5 + $8 - 1) ^ 2 > 1e-12 || $9 != "") { exit 1 }' out; then
	pass predict_top_3
else
	fail predict_top_3 "$(head -n 2 out)"
fi
gives predict_top_numbers 64 err '--top 2: expected a model that predicts classes, got numbers, which predicts values ("y")' \
	predict numbers test.csv --top 2
# rows on standard input are those of a file, also compressed ones
from_stdin() { "$gtrain" predict classes "$@" >out 2>err; rc=$?; }
from_stdin - <test.csv
if [ $rc = 0 ] && cmp -s <(cut -d, -f2- all.out) <(cut -d, -f2- out) && [ "$(cut -d, -f1 out | sort -u | tr '\n' ' ')" = '- path ' ]; then
	pass predict_stdin
else
	fail predict_stdin "status $rc: $(head -n 2 err)"
fi
if gzip -c test.csv | "$gtrain" predict classes - 2>err | cmp -s out -; then pass predict_stdin_gz; else
	fail predict_stdin_gz "$(head -n 2 err)"; fi
# stdin_refused NAME STATUS TEXT ARGS...: the rows in file rows
stdin_refused() {
	from_stdin "${@:4}" <rows
	if [ $rc = "$2" ] && grep -qF -- "$3" err; then pass "$1"; else fail "$1" "status $rc: $(head -n 2 err)"; fi
}
{ head -n 3 test.csv; echo 'x,y'; } >rows
stdin_refused predict_stdin_line 65 'standard input:4: expected 6 fields, as in line 1, got 2' -
: >rows
stdin_refused predict_stdin_empty 66 'standard input: expected the rows of a table, got nothing' -
echo "$PWD/test.csv" >rows
stdin_refused predict_stdin_twice 64 'expected standard input at most once, got it twice' - -
stdin_refused predict_stdin_paths 65 'standard input:1: expected the columns of the training data; ' -
from_stdin @- <rows
if [ $rc = 0 ] && cmp -s all.out <(sed "s|$PWD/||" out); then pass predict_stdin_list; else fail predict_stdin_list "$(cat err)"; fi
# the prediction behind the columns of the input, whose cells stay as they are
sed '2s/^[^,]*/" 0.5, 1"/; 3s/^\([^,]*\)/" \1 "/' test.csv | sed '2d' >cells.csv
gives append 0 out ',predicted_level,probability_high,probability_low' predict classes cells.csv --append
if cmp -s <(sed 's/^" \([^"]*\) "/ \1 /' cells.csv) <(sed 's/,predicted_level.*//' out | cut -d, -f1-6) &&
	cmp -s <(tail -n +3 all.out | cut -d, -f3-) <(tail -n +2 out | cut -d, -f7-); then
	pass append_rows
else
	fail append_rows "$(head -n 3 out)"
fi
head -n 1 test.csv | tr , ';' >semicolons.csv
tail -n +2 test.csv | tr , ';' >>semicolons.csv
gives keep 0 out 'level,a,predicted_level,probability_high,probability_low' predict classes semicolons.csv test.csv --keep level,a
if [ "$(wc -l <out)" = 241 ] && cmp -s <(paste -d, <(cut -d, -f6 test.csv) <(cut -d, -f2 test.csv)) <(head -n 121 out | cut -d, -f1,2) &&
	cmp -s <(head -n 121 out | tail -n 120) <(tail -n 120 out); then
	pass keep_rows
else
	fail keep_rows "$(head -n 3 out)"
fi
gives keep_json 0 out '"row":{"level":"' predict classes test.csv --keep level --json
gives keep_numbers 0 out 'y,predicted_y' predict numbers test.csv --keep y
gives keep_absent 64 err '--keep: expected a column of test.csv, got "none"; the columns are "id", ' predict classes test.csv --keep a,none
gives keep_top 0 out 'a,predicted_class,predicted_name,predicted_probability' predict classes test.csv --keep a --top 1
cut -d, -f1-4 test.csv >fewer.csv
gives append_other_columns 64 err '--append: expected the columns of test.csv in fewer.csv, because the output is one table' \
	predict classes test.csv fewer.csv --append
# the columns of all files are compared before the first row is printed
gives keep_second_file 64 err '--keep: expected a column of fewer.csv, got "level"' predict classes test.csv fewer.csv --keep level
if [ -s out ]; then fail keep_second_file_silent "$(head -n 1 out)"; else pass keep_second_file_silent; fi
"$gtrain" predict classes test.csv --append >twice.csv 2>err
gives append_twice 64 err 'the input and the prediction both have a column "predicted_level"; select the columns' \
	predict classes twice.csv --append
if [ -s out ]; then fail append_twice_silent "$(head -n 1 out)"; else pass append_twice_silent; fi
gives append_and_keep 64 err '--append and --keep cannot be combined' predict classes test.csv --append --keep a
gives text_of_tables 64 err 'which is a model of tables; write the text into a row of a table' predict classes --text 'a text'
# what is counted in its predictions is what an evaluation measures
acc=$(paste -d, <(tail -n +2 all.out | cut -d, -f3) <(tail -n +2 test.csv | cut -d, -f6) |
	awk -F, '{ n += $1 == $2 } END { printf "%.4f\n", n / NR }')
gives predict_is_evaluation 0 out "test accuracy $acc" eval classes
# a row alone, in another place of the table, and without the target and ignored columns, has the same digits
cut -d, -f1-4 test.csv | { read -r head; echo "$head"; tac; } >turned.csv
run predict classes turned.csv
if cmp -s <(tail -n +2 all.out | cut -d, -f3-) <(tail -n +2 out | tac | cut -d, -f3-); then
	pass predict_any_order
else
	fail predict_any_order "$(head -n 2 err)"
fi
for i in 2 66 100 121; do
	sed -n "1p;${i}p" turned.csv >one.csv
	run predict classes one.csv
	if [ "$(tail -n 1 out | cut -d, -f3-)" = "$(sed -n "$((123 - i))p" all.out | cut -d, -f3-)" ]; then
		pass "predict_row_$i"
	else
		fail "predict_row_$i" "$(tail -n 1 out) $(sed -n "$((123 - i))p" all.out)"
	fi
done
# columns in another order, and a value that is missing in prediction only
awk -F, 'BEGIN { OFS = "," } { print $4, $3, $2 }' test.csv >order.csv
run predict classes order.csv
if cmp -s <(cut -d, -f3- all.out) <(cut -d, -f3- out); then pass predict_by_names; else fail predict_by_names "$(head -n 2 err)"; fi
printf 'a,b,c\n,104,violet\n' >strange.csv
gives predict_strange 0 out 'strange.csv,0,' predict classes strange.csv
printf 'a,c\n1,red\n' >lacking.csv
gives predict_lacking 65 err 'lacking.csv:1: expected the columns of the training data; "b" is missing' predict classes lacking.csv
# a folder means the tables in it; a model of tables needs no images
mkdir tables empty_folder
cp lacking.csv tables/.hidden.csv
gzip -c strange.csv >tables/b.csv.gz
cp strange.csv tables/a.csv
gives predict_folder 0 out 'tables/b.csv.gz,0,' predict classes tables
if [ "$(wc -l <out)" = 3 ]; then pass predict_folder_rows; else fail predict_folder_rows "$(cat out)"; fi
gives predict_no_table 66 err 'expected tables (.csv, .tsv or .jsonl, also with .gz, .npy or .npz) in the folder or below it, found none' \
	predict classes empty_folder
gives predict_no_file 66 err 'absent.csv' predict classes absent.csv
gives predict_some 65 err '1 of 3 files could not be predicted' predict classes test.csv lacking.csv order.csv
if [ "$(grep -c '^order.csv,' out)" = 120 ]; then pass predict_others; else fail predict_others "$(tail -n 1 out)"; fi
printf 'a,b,c\n1e999,104,red\n' >far.csv
gives predict_range 65 err 'far.csv:2: column "a": expected a number of a magnitude of at most 3.4e38' predict classes far.csv

# ---- categorical columns, normalised targets, and gtrain init ---------------------------------------------------------------------
sed -e 's/inputs = .*/inputs = ( { name = "codes"; }, { name = "values"; } );/' \
	-e 's/layers = (/layers = ( { name = "w"; type = "embeddings"; in = "codes"; }, { type = "concat"; in = ["w", "values"]; },/' \
	-e 's/target = /normalize_target = true; target = /' numbers.cfg >mixed.cfg
"$gtrain" run mixed.cfg -q -o mixed >out 2>err || fail mixed "$(head -n 1 err)"
run eval mixed --report --json
rmse=$(sed -n 's/.*"rmse":\([0-9.e-]*\).*/\1/p' out)
if awk -v r="$rmse" 'BEGIN { exit !(r != "" && r + 0 < 0.5) }'; then pass mixed_learns; else fail mixed_learns "RMSE ${rmse:-none}"; fi
echo "# mixed: RMSE $rmse"
# the numbers that are predicted have the error that the report has
run predict mixed test.csv
got=$(paste -d, <(tail -n +2 out | cut -d, -f3) <(tail -n +2 test.csv | cut -d, -f5) |
	awk -F, '{ s += ($1 - $2) ^ 2 } END { printf "%.5f\n", sqrt(s / NR) }')
if [ "$got" = "$(printf '%.5f' "$rmse")" ]; then pass normalised_report; else fail normalised_report "$got, not $rmse"; fi
want=$(weights mixed)
for mode in 'ddp 2' 'zero 4'; do
	read -r m n <<<"$mode"
	"$gtrain" run mixed.cfg -q -o "mixed-$m$n" -s "parallel.mode=$m" -s "parallel.nproc=$n" >/dev/null 2>err
	if [ "$(weights "mixed-$m$n")" = "$want" ]; then pass "mixed_$m$n"; else fail "mixed_$m$n" "other weights: $(head -n 1 err)"; fi
done
gives normalised_classes 78 err 'cannot be combined with train.loss = "cross_entropy", whose targets are classes' \
	check classes.cfg -s data.normalize_target=true
for target in y level; do
	gives "init_$target" 0 err 'gtrain check' init train.csv --target $target -o "init-$target.cfg"
	run check "init-$target.cfg" --strict # without a warning that the config has no directory
	if [ "$rc" = 0 ]; then pass "init_${target}_check"; else fail "init_${target}_check" "$(head -n 1 err)"; fi
	gives "init_${target}_why" 0 out 'given; numbers' check "init-$target.cfg"
	gives "init_${target}_why_else" 0 out 'given; without the entry, continuous: numbers' check "init-$target.cfg" \
		-s 'data.columns=({name="a";type="categorical";})'
	# rows without a target are left out, and the config says so; another bad row is an error
	awk -F, -v t=$target 'BEGIN { OFS = "," } NR == 3 || NR == 9 { $(t == "y" ? 5 : 6) = "" } 1' train.csv >untargeted.csv
	gives "init_${target}_untargeted" 0 out 'on_error = "skip"; # 2 rows have no target' init untargeted.csv --target $target
	run init untargeted.csv --target $target -o "untargeted-$target.cfg"
	divides "init_${target}_untargeted_check" 478 "untargeted-$target.cfg"
	echo 'x,1' >>untargeted.csv
	gives "init_${target}_bad_row" 65 err 'untargeted.csv:482: expected 6 fields' init untargeted.csv --target $target
	"$gtrain" run "init-$target.cfg" -q -o "init-$target" -s train.steps=200 >out 2>err || fail "init_$target" "$(head -n 1 err)"
	echo "# init of $target: $(tail -n 1 out)"
	# the command that a run proposes works: the table has no split "test"
	run run "init-$target.cfg" -o "next-$target" -s train.steps=3
	next=$(sed -n 's/^next: .*gtrain //p' err)
	# shellcheck disable=SC2086
	gives "init_${target}_next" 0 out 'valid ' ${next:-none}
	# the types in the config are those that the run infers
	"$gtrain" run "init-$target.cfg" -q -o "bare-$target" -s 'data.columns=[]' -s train.steps=1 >/dev/null 2>err ||
		fail "bare_$target" "$(head -n 1 err)"
	if cmp -s "init-$target/latest/data.json" "bare-$target/latest/data.json"; then
		pass "init_${target}_types"
	else
		fail "init_${target}_types" 'other facts'
	fi
done
tail -n +2 train.csv | cut -d, -f2- >bare.csv
gives init_no_header 0 out 'header = "no";' init bare.csv --target c5
gives init_which_target 64 err 'one of: id, a, b, c, y, level' init train.csv
gives init_wrong_target 78 err '--target: expected a column of' init train.csv --target why
gives init_wrong_target_columns 78 err 'got "why"; its columns are' init train.csv --target why
gives init_target_twice 78 err '--target: ' init train.csv --target y --target y
sed '1s/.*/x,x,b,c,y,level/' train.csv >twice.csv
gives init_header_twice 78 err '"c5", "c6", because the first line has a number, a date, a long text or a text twice, so ' \
	init twice.csv --target y
# identifiers of more than 2^20 different values, the first of which are numbers
awk 'BEGIN { print "id,name,x,y"
	for (i = 0; i < 1060000; i++) print (i < 9 ? i : "i" i) ",n" i "," i % 7 "." i % 9 "," i % 2 }' >many.csv
gives init_many 0 out '{ name = "id"; type = "ignore"; }, // more than 1048576 different words' init many.csv --target y
gives init_many_names 0 out '{ name = "name"; type = "ignore"; }, // more than 1048576 different words' init many.csv --target y
rm many.csv
awk -F, 'BEGIN { OFS = "," } { print (NR > 1 ? "n" NR : "name"), $0 }' train.csv >named.csv
gives init_identifiers 64 err '--target name: expected a column of classes or numbers, got a different word in each of' \
	init named.csv --target name -o named.cfg
if [ -e named.cfg ]; then fail init_identifiers_file 'named.cfg exists'; else pass init_identifiers_file; fi
awk -F, 'BEGIN { OFS = "," } NR > 470 { $6 = "rare" NR } 1' train.csv >rare.csv
"$gtrain" init rare.csv --target level -o rare.cfg -q # classes of one row are trained, and no row of them is in the split valid
gives init_rare 0 out 'valid accuracy' run rare.cfg -q -s train.steps=2
awk 'NR < 472' rare.csv >once.csv # a class of one row is trained
gives init_once 0 out 'the target has 3 classes' init once.csv --target level
sed 's/,/;/g; s/\([0-9]\)\.\([0-9]\)/\1,\2/g' train.csv >german.csv
gives init_commas 0 out 'decimal = ",";' init german.csv --target y
gives check_commas 65 err 'german.csv:2: column "y": expected a number with a decimal point and without commas, got "-6,2881"; write' \
	check init-y.cfg -s "data.train=[\"$PWD/german.csv\"]" -s 'data.columns=[]'
# numbers in another notation are the same numbers, in training, evaluation and prediction
sed 's/,/;/g; s/\([0-9]\)\.\([0-9]\)/\1,\2/g; s/;1\([01][0-9],\)/;0.1\1/' train.csv >dotted.csv
# (the texts of a row decide in which split it is, so that there is none here)
all=(-s train.steps=20 -s data.valid=0 -s checkpoint.best.metric=)
"$gtrain" run init-y.cfg -q -o points "${all[@]}" >out 2>err || fail points "$(head -n 1 err)"
"$gtrain" run init-y.cfg -q -o commas "${all[@]}" -s "data.train=[\"$PWD/dotted.csv\"]" -s data.decimal=, -s data.thousands=. >out 2>err
if [ "$(weights commas)" = "$(weights points)" ]; then pass commas_weights; else fail commas_weights "$(head -n 1 err)"; fi
sed -n '1,20p' dotted.csv >some.csv
sed -n '1,20p' train.csv >some_points.csv
if [ "$("$gtrain" predict commas some.csv | cut -d, -f2-)" = "$("$gtrain" predict points some_points.csv | cut -d, -f2-)" ]; then
	pass commas_predict
else
	fail commas_predict "$("$gtrain" predict commas some.csv 2>&1 | head -n 3)"
fi
gives commas_eval 0 out "$("$gtrain" eval points --split train | sed 's/(.*//')" eval commas --split train
gives predict_points 65 err 'some_points.csv:2: column "a": expected a number with a decimal comma and the separator data.thousands, got' \
	predict commas some_points.csv
# a table in Windows-1252
sed 's/green/gr\xfcn/' train.csv >windows.csv
gives init_windows 0 out 'encoding = "windows-1252";' init windows.csv --target y
gives init_windows_warns 0 err 'gtrain reads it as Windows-1252' init windows.csv --target y -o windows.cfg
"$gtrain" run windows.cfg -q -o windows -s train.steps=3 >out 2>err || fail windows "$(head -n 1 err)"
has windows_words windows/latest/data.json 'grün'
gives predict_windows 0 out 'windows.csv,479,' predict windows windows.csv
{ printf '\xef\xbb\xbf' && iconv -f WINDOWS-1252 -t UTF-8 windows.csv; } >marked.csv
gives predict_marked_utf8 0 out ',grün,' predict windows marked.csv --append
sed '1s/,a,/,gr\xf6\xdfe,/' windows.csv >named.csv
gives init_named 0 err 'Windows-1252' init named.csv --target y -o named.cfg
gives run_named 0 out 'valid' run named.cfg -q -o named -s train.steps=3
iconv -f WINDOWS-1252 -t UTF-8 named.csv >named.utf8.csv
# shellcheck disable=SC2016
gives predict_other_encoding 65 err 'if it is UTF-8, convert it with `iconv' predict named named.utf8.csv
gives predict_windows_append 0 out ',grün,' predict windows windows.csv --append
gives run_other_encoding 78 err 'remove data.encoding if the file is UTF-8 now' check named.cfg -s 'data.train=["named.utf8.csv"]' \
	-s 'data.columns=({name="größe";type="continuous";})'
gives check_windows 65 err 'column "c": expected UTF-8; write data.encoding = "windows-1252" if' check windows.cfg -s data.encoding=utf-8
for kind in 'photo.JPG put the images of each class' 'book.xlsx export the table as CSV' 'x.cfg this file seems to be a config'; do
	file=${kind%% *}
	cp train.csv "$file"
	gives "init_of_$file" 65 err "$file: expected a folder, an archive (.zip, .tar.gz, .tar) or a table; ${kind#* }" init "$file" --target y
done
gives init_absent 66 err 'there is no such file or folder' init absent.csv --target y
gives init_folder_target 64 err '--target: expected a table' init . --target y
head -n 13 train.csv >twelve.csv
"$gtrain" init twelve.csv --target y -o twelve.cfg -q
gives init_twelve 0 out 'valid loss' run twelve.cfg -q -s train.steps=2
head -n 6 train.csv >six.csv
# a last batch of one row, which batch normalisation could not use: of 201 rows, 161 are for training, 5 batches of 32 and one row
head -n 202 train.csv >odd.csv
"$gtrain" init odd.csv --target y -o odd.cfg -q
gives init_odd 0 out 'valid loss' run odd.cfg -q -o odd -s train.steps=7
gives init_small 65 err 'expected at least 10 rows, got 5' init six.csv --target y

# ---- configs/adult_tabular.cfg, on a table of the columns of UCI Adult in which age, education-num and capital-gain decide ---
awk 'function rand_() { seed = seed * 16807 % 2147483647; return seed / 2147483647 }
function pick(words,   n, w) { n = split(words, w, " "); return rand_() < 0.03 ? "?" : w[int(rand_() * n) + 1] }
BEGIN {
	seed = 9
	for (i = 0; i < 2000; i++) {
		age = 17 + int(rand_() * 60)
		years = 1 + int(rand_() * 16)
		gain = rand_() < 0.9 ? 0 : int(rand_() * 20000)
		married = pick("Married-civ-spouse Never-married Divorced Widowed")
		z = (age - 40) / 12 + (years - 9) / 3 + gain / 4000 + (married ~ /^M/ ? 1.5 : -0.5) - 0.5
		printf "%d, %s, %d, %s, %d, %s, %s, %s, %s, %s, %d, %d, %d, %s, %s\n", age, pick("Private State-gov Self-emp-inc"),
			20000 + int(rand_() * 300000), pick("HS-grad Bachelors Masters 11th"), years, married, pick("Sales Tech-support Adm-clerical"),
			pick("Husband Wife Own-child"), pick("White Black Other"), pick("Male Female"), gain, rand_() < 0.95 ? 0 : 1900,
			20 + int(rand_() * 40), pick("United-States Mexico India"), (z > 0 ? ">50K" : "<=50K")
	}
}' >adult.data
gives adult_absent 66 err 'adult.data' check "$src/configs/adult_tabular.cfg"
adult=("$src/configs/adult_tabular.cfg" -s "data.train=[\"$PWD/adult.data\"]")
divides adult_check 2000 "${adult[@]}" --strict -s checkpoint.dir=unused
"$gtrain" run "${adult[@]}" -q -o adult >out 2>err || fail adult "$(head -n 1 err)"
if awk -v a="$(sed -n 's/.*valid accuracy \([0-9.]*\).*/\1/p' out)" 'BEGIN { exit !(a != "" && a + 0 > 0.93) }'; then
	pass adult_learns
else
	fail adult_learns "$(cat out err)"
fi
echo "# adult_tabular: $(tail -n 1 out)"
# as many rows as UCI Adult leave a last batch of one row
head -n 1921 adult.data >odd.data
gives adult_odd 0 out 'valid accuracy' run "${adult[@]}" -s "data.train=[\"$PWD/odd.data\"]" -s train.epochs=1 -q
gives adult_predict 0 out 'path,index,income,probability_<=50K,probability_>50K' predict adult adult.data

# ---- several targets -------------------------------------------------------------------------------------------------------------------
awk -F, 'BEGIN { OFS = "," } NR == 1 { print $0, "z", "hi", "red"; next } { print $0, -$5, $6 == "high", $4 == "red" }' train.csv >wide.csv
sed -e 's/test = \["test.csv"\]; //; s/train.csv/wide.csv/; s/out = 1;/out = 2;/' \
	-e 's/target = "y"; ignore = \["level"\]/target = ["y", "z"]; ignore = ["level", "hi", "red"]/' numbers.cfg >two.cfg
"$gtrain" run two.cfg -q -o two >out 2>err || fail two "$(head -n 1 err)"
gives two_report 0 out '"values":[{"name":"y","mae":' eval two --split valid --report --json
sed 's/target = .*"red"\]/target = ["hi", "red"]; ignore = ["level", "y", "z", "c"]/; s/"mse"/"bce"/' two.cfg >labels.cfg
"$gtrain" run labels.cfg -q -o labels -s 'checkpoint.best.metric="valid/f1"' >out 2>err || fail labels "$(head -n 1 err)"
gives labels_auc 0 out 'best valid/auc' run labels.cfg -q -o labels-auc -s 'checkpoint.best.metric="valid/auc"'
gives labels_no_accuracy 78 err 'write "valid/loss", "valid/f1" or "valid/auc"' check labels.cfg -s 'checkpoint.best.metric="valid/acc"'
gives numbers_no_auc 78 err 'write "valid/loss"' check two.cfg -s 'checkpoint.best.metric="valid/auc"'
gives labels_predict 0 out 'path,index,probability_hi,probability_red' predict labels wide.csv
# the support of an average is that of all labels together, as in classification_report
"$gtrain" eval labels --split valid --report >out 2>err || fail labels_support "$(head -n 1 err)"
if awk '/^[01] / { sum += $6 } / average / { n++; bad += $6 != sum } END { exit !(sum > 0 && n == 3 && !bad) }' out; then
	pass labels_support
else
	fail labels_support "$(cat out)"
fi
gives labels_report 0 out '"micro":{"precision":' eval labels --split valid --report --json
gives labels_not_0_1 65 err 'wide.csv:2: column "y": expected a number from 0 to 1, which losses such as "bce" need' run labels.cfg \
	-s 'data.target="y"' -s 'data.ignore=["level"]' -s 'model.layers[2].out=1' -q

# ---- what is refused -------------------------------------------------------------------------------------------------------------------
# bad NAME STATUS TEXT ARGS...: `gtrain check` and `gtrain run` of numbers.cfg refuse it with the same sentence
bad() {
	gives "$1" "$2" err "$3" check numbers.cfg "${@:4}"
	gives "$1_run" "$2" err "$3" run numbers.cfg -q "${@:4}"
}
bad no_target 78 'data.target: expected a column of' -s 'data.target=[]'
bad unknown_target 78 'data.target: expected a column of' -s 'data.target="why"'
gives unknown_target_names 78 err 'got "why"; its columns are "id", "a", "b", "c", "y", "level"' check numbers.cfg -s 'data.target="why"'
bad unknown_ignored 78 'data.ignore: expected a column of' -s 'data.ignore=["nothing"]'
bad two_types 78 'data.target: the column "y" has the type "ignore" in data.columns' -s 'data.columns=( { name = "y"; type = "ignore"; } )'
bad unknown_type 78 'data.columns[0].type: expected' -s 'data.columns=( { name = "y"; type = "number"; } )'
bad no_name 78 'data.columns[0].name: expected a string, got nothing' -s 'data.columns=( { type = "ignore"; } )'
bad words_as_numbers 65 'train.csv:2: column "c": expected a number' -s 'data.columns=( { name = "c"; type = "continuous"; } )'
bad word_target 65 'column "level"' -s 'data.target="level"' -s 'data.ignore=["y"]'
bad delimiter 78 'data.delimiter: expected one character' -s 'data.delimiter=", "'
bad decimal 78 'data.decimal: expected "." or ",", got ";"' -s 'data.decimal=";"'
bad thousands 78 'data.thousands: expected "", ",", ".", " " or "' -s 'data.thousands="_"'
bad same_separators 78 'data.thousands: expected a character that differs from data.decimal, got "," for both' \
	-s data.decimal=, -s data.thousands=,
bad stratified_numbers 78 'data.stratify: cannot be combined with train.loss = "mse"' -s data.stratify=true
bad no_input 78 'expected the name of a field that the data has (values, codes), got "image"' -s \
	'model.inputs=( { name = "image"; shape = [1, 2, 2]; } )'
bad input_type 78 'expected type = "values" for "values"' -s 'model.inputs=( { name = "values"; type = "codes"; } )'
bad input_shape 78 'expected shape = [3], as in the data, got [4]' -s 'model.inputs=( { name = "values"; shape = [4]; } )'
gives no_file 66 err 'nothing.csv' run numbers.cfg -q -s 'data.train=["nothing.csv"]'
gives not_for_images 78 err 'data.target: data.format = "synthetic" does not use this key; csv does' check numbers.cfg \
	-s 'data.format="synthetic"' -s 'data.target="y"'
gives several_classes 78 err 'expected one column of classes' check classes.cfg -s 'data.target=["level", "c"]'

# hostile TEXT NAME: a table whose first 100 lines are those of train.csv, then the bytes on standard input
hostile() {
	{
		head -n 100 train.csv
		cat
	} >"$1.csv"
	bad "$1" 65 "$1.csv:$2" -s "data.train=[\"$PWD/$1.csv\"]"
}
printf 'x,1,2\n' | hostile ragged '101: expected 6 fields, as in line 1, got 3'
printf 'x,1,2,red,3,lo\0w\n' | hostile nul '101:'
printf 'x,1,2,"red,3,low\nx,1,2,red,3,low\n' | hostile open_quote '101:'
printf 'x,1,2,"red"x,3,low\n' | hostile after_quote '101:'
printf 'x,1e999,2,red,3,low\n' | hostile range '101: column "a": expected a number of a magnitude of at most 3.4e38'
printf 'x,1,2,red\xff\xfe,3,low\n' | hostile not_utf8 '101: column "c": expected UTF-8'
printf 'x,1,2,red,,low\n' | hostile no_value '101: column "y": the target is missing'
head -c 10000000 /dev/zero | tr '\0' x | sed '1s/^/x,1,2,/; $s/$/,3,low/' | hostile long '101:'
awk -F, 'BEGIN { OFS = "," } NR > 1 { $5 = 7 } 1' train.csv >constant.csv
bad constant 65 'constant.csv: column "y": the target is the same in every row of the training split' \
	-s "data.train=[\"$PWD/constant.csv\"]"
head -n 1 train.csv >header.csv
bad only_header 65 'header.csv: expected rows after the header, got none' -s "data.train=[\"$PWD/header.csv\"]" -s data.header=yes
: >empty.csv
bad empty 65 'empty.csv' -s "data.train=[\"$PWD/empty.csv\"]"
# a byte order mark, and lines that end with CRLF, are as without them
sed 's/$/\r/; 1s/^/\xef\xbb\xbf/' train.csv >crlf.csv
"$gtrain" run numbers.cfg -q -o crlf -s "data.train=[\"$PWD/crlf.csv\"]" >/dev/null 2>err || fail crlf "$(head -n 1 err)"
if [ "$(weights crlf)" = "$(weights numbers)" ]; then pass bom_and_crlf; else fail bom_and_crlf 'other weights'; fi
# a column of more different words than a checkpoint could keep
awk 'BEGIN { print "a,y"; for (i = 0; i < 1048578; i++) printf "u%d,%d\n", i, i % 7 }' >words.csv
gives words 65 err 'words.csv:1048578: column "a": expected at most 1048576 different values in a column of words; give it the type' \
	check numbers.cfg -s "data.train=[\"$PWD/words.csv\"]" -s 'data.ignore=[]' -s 'data.columns=({name="a";type="categorical";})'
# the test split lacks a column, or has a class that was not learned
cut -d, -f1,3- test.csv >lacks.csv
bad test_lacks 65 'lacks.csv:1: expected the columns of the training data; "a" is missing' -s "data.test=[\"$PWD/lacks.csv\"]"
sed '5s/,[a-z]*$/,middle/' test.csv >class.csv
gives test_class 65 err 'class.csv:5: column "level": expected a class of the training data, got "middle"' check classes.cfg \
	-s "data.test=[\"$PWD/class.csv\"]"
# what a checkpoint has learned may be damaged
cp -r numbers damaged
for f in damaged/step-*/data.json; do sed -i 's/"words"/"wards"/' "$f"; done
gives damaged 65 err '' eval damaged
