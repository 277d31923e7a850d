#!/bin/bash
# Columns of texts in tables (data.format = "csv", type = "text"): the same weights as a folder of the same texts, texts together with other
# columns, missing texts, prediction, gtrain init, and bad input.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
command -v python3 >/dev/null || { skip csv_text 'python3 is not installed'; exit 0; }
cd "$tmp" || exit 1
# all.csv: stars (a number), city (a category) and review (a text, with quotes, commas and line breaks); taste follows from all three.
# data/: the same reviews as files, whose class is pos if the words are good. words.csv: these classes as a table, in the same order.
cat >make.py <<'PY'
import csv, os, random
random.seed(5)
good, bad = "great lovely fine superb moving".split(), "awful dull poor boring weak".split()
rest = "the film was a story about people in town with some music and it ended".split()
rows = []
for i in range(600):
    k = i % 2
    text = [random.choice(rest) for _ in range(random.randint(5, 40))]
    for _ in range(3):
        text.insert(random.randrange(len(text)), random.choice((bad, good)[k]))
    text.append(f"only{i}")
    text = " ".join(text) + (', "said" he.\nThe end' if i % 7 == 0 else ".")
    stars, city = random.random() * 4 - 2, random.choice(["York", "Bath", "Ely"])
    score = (2 * k - 1) * 1.5 + stars + {"York": 1, "Bath": 0, "Ely": -1}[city]
    rows.append((f"{stars:.4f}", city, text, "good" if score > 0 else "bad", ("neg", "pos")[k]))
def write(name, head, rows):
    with open(name, "w", newline="") as f:
        csv.writer(f, lineterminator="\n").writerows([head] + rows)
write("train.csv", ["stars", "city", "review", "taste"], [r[:4] for r in rows[:480]])
write("test.csv", ["stars", "city", "review", "taste"], [r[:4] for r in rows[480:]])
for split, part in (("train", rows[:480]), ("test", rows[480:])):
    table = []
    for c in ("neg", "pos"):
        os.makedirs(f"data/{split}/{c}")
        for i, r in enumerate(r for r in part if r[4] == c):
            with open(f"data/{split}/{c}/{i:03}.txt", "w", newline="") as f:
                f.write(r[2])
            table.append((r[2], c))
    write(f"words_{split}.csv", ["review", "class"], table)
PY
python3 make.py
cat >folder.cfg <<'CFG'
schema = 1;
name = "text";
seed = 3;
reproducible = "world";
data = { root = "data"; format = "text"; batch = 32; valid = 0.2; stratify = true; max_tokens = 48; min_freq = 2; ngrams = 2; 
	hash_buckets = 1000; };
model = {
	inputs = ( { name = "tokens"; }, { name = "lengths"; } );
	layers = (
		{ type = "embedding_bag"; in = ["tokens", "lengths"]; embedding_dim = 8; padding_idx = 0; },
		{ name = "fc"; type = "linear"; out = 2; }
	);
};
train = { epochs = 6; optimizer = { type = "adam"; lr = 0.05; }; };
checkpoint = { every_epochs = 0; };
CFG
table='format = "csv"; train = ["words_train.csv"]; test = ["words_test.csv"]; target = "class"'
sed "s/root = \"data\"; format = \"text\"/$table/" folder.cfg >words.cfg
cat >mixed.cfg <<'CFG'
schema = 1;
name = "mixed";
seed = 3;
reproducible = "world";
data = { format = "csv"; train = ["train.csv"]; test = ["test.csv"]; target = "taste"; batch = 32; valid = 0.2; stratify = true;
	max_tokens = 48; min_freq = 2; };
model = {
	inputs = ( { name = "codes"; }, { name = "values"; }, { name = "tokens"; }, { name = "lengths"; } );
	layers = (
		{ name = "embed"; type = "embeddings"; in = "codes"; },
		{ name = "bag"; type = "embedding_bag"; in = ["tokens", "lengths"]; embedding_dim = 8; padding_idx = 0; },
		{ type = "concat"; in = ["embed", "values", "bag"]; },
		{ type = "linear"; out = 32; }, { type = "relu"; }, { name = "fc"; type = "linear"; out = 2; }
	);
};
train = { epochs = 12; optimizer = { type = "adam"; lr = 0.02; }; };
checkpoint = { every_epochs = 0; };
CFG
weights() { "$gtrain" export "$1" -o "$1.safetensors" -q && sha256sum <"$1.safetensors" | cut -c1-16; }
trains() { # NAME ARGS...
	local name=$1
	shift
	"$gtrain" run "$@" -q -o "$name" >out 2>err || fail "$name" "$(head -n 1 err)"
}
above() { # NAME LEAST: the accuracy in out
	if awk -v a="$(sed -n 's/.*test accuracy \([0-9.]*\).*/\1/p' out)" -v least="$2" 'BEGIN { exit !(a != "" && a + 0 > least) }'; then
		pass "$1"
	else
		fail "$1" "$(cat out err)"
	fi
}

# ---- alone: what a folder of the same texts gives -------------------------------------------------------------------------------------
# without data.valid: files are divided by their names, and rows by what they have
all=(-s data.valid=0 -s data.stratify=false)
trains folder folder.cfg "${all[@]}"
above folder_learns 0.9
trains words words.cfg "${all[@]}"
if [ "$(weights folder)" = "$(weights words)" ]; then pass same_as_folder; else fail same_as_folder 'other weights'; fi
for cfg in folder words; do
	"$gtrain" run $cfg.cfg -q -o $cfg-few "${all[@]}" -s data.limit=101 -s train.epochs=2 >/dev/null 2>err ||
		fail "few_$cfg" "$(head -n 1 err)"
done
if [ "$(weights folder-few)" = "$(weights words-few)" ]; then pass same_limited; else fail same_limited 'other weights'; fi
gives check_type 0 out 'review  text' check words.cfg
gives check_why 0 out 'texts of 8 or more words on average' check words.cfg
gives check_tokens 0 out 'tokens in the vocabulary' check words.cfg
gives check_json 0 out '{"name":"review","type":"text","why":"texts of 8 or more words on average","missing":0}' check words.cfg --json
# words of rows that are held out are not learned: with min_freq 1, the words that occur once in the training rows only
"$gtrain" check words.cfg | tr -d , | grep -o '[0-9]* train' | head -n 1 >count
"$gtrain" check words.cfg -s data.min_freq=1 --json >out 2>err || fail check_valid "$(head -n 1 err)"
python3 - out <<'PY' || fail valid_is_not_learned 'see above'
import json, sys
n = json.load(open(sys.argv[1]))["texts"]["vocabulary"]
# <pad> <unk>, rest, good and bad, punctuation, "said he"; "the end" is in rest
want = 2 + 15 + 10 + len([".", ",", '"']) + 2 + int(open("count").read().split()[0])
print("ok valid_is_not_learned" if n in (want, want + 1) else f"not ok valid_is_not_learned: {n}, not {want}")
PY

# ---- together with other columns ------------------------------------------------------------------------------------------------------
trains mixed mixed.cfg
above mixed_learns 0.85
echo "# mixed: $(tail -n 1 out)"
want=$(weights mixed)
equal() { if [ "$(weights "$2")" = "$want" ]; then pass "$1"; else fail "$1" "other weights: $(head -n 1 err)"; fi; }
for mode in 'ddp 2' 'dp 2' 'zero 4'; do
	read -r m n <<<"$mode"
	"$gtrain" run mixed.cfg -q -o "$m" -s "parallel.mode=$m" -s "parallel.nproc=$n" >/dev/null 2>err
	equal "mixed_$m$n" "$m"
done
"$gtrain" run mixed.cfg -q -o part -s train.steps=17 >/dev/null 2>err
"$gtrain" resume part -q -s train.steps=0 >/dev/null 2>err || fail resume "$(head -n 1 err)"
equal mixed_resumed part
python3 - mixed/latest/data.json <<'PY' || fail facts 'see above'
import json, sys
f = json.load(open(sys.argv[1]))
ok = f["table"]["columns"][2] == {"name": "review", "type": "text"} and "film" in f["text"]["vocabulary"].split("\n")
print("ok facts" if ok else f"not ok facts: {f}")
PY
"$gtrain" run mixed.cfg -q -o changed -s train.steps=7 >/dev/null 2>&1
sed 's/lovely/lively/' train.csv >other.csv
gives resume_other_texts 0 err "the data has changed since the run read it: of the run's 600 samples," \
	resume changed -q -s train.steps=0 -s "data.train=[\"$PWD/other.csv\"]"
sed -e 's/{ name = "tokens"; }, { name = "lengths"; }//; s/"values"; },/"values"; }/; /"bag"; type/d; s/, "bag"\]/]/' \
	-e 's/max_tokens.*min_freq = 2;//' mixed.cfg >without.cfg
gives unread 0 err 'the model does not read the column "review"; add { name = "tokens"; }, { name = "lengths"; }, or' check without.cfg
gives unread_both 0 err 'read the columns "city", "review"; add { name = "codes"; }, { name = "tokens"; }, { name = "lengths"; }, or list' \
	check without.cfg -s 'model.inputs=({ name = "values"; })' -s 'model.layers=({ type = "linear"; out = 2; })'
gives no_texts 78 err 'data.max_tokens: expected a column of texts for this key, but the table has no texts' \
	check mixed.cfg -s 'data.ignore=["review"]'
gives no_field 78 err 'model.inputs[2]: expected the name of a field that the data has (values, codes), got "tokens"' \
	check mixed.cfg -s 'data.ignore=["review"]' -s data.max_tokens=512 -s data.min_freq=3

# ---- prediction -----------------------------------------------------------------------------------------------------------------------
gives predict 0 out 'path,index,taste,probability_bad,probability_good' predict mixed test.csv
cp out all.out
acc=$(python3 -c '
import csv
got = [r["taste"] for r in csv.DictReader(open("all.out"))]
want = [r["taste"] for r in csv.DictReader(open("test.csv"))]
print("%.4f" % (sum(a == b for a, b in zip(got, want)) / len(want)) if len(got) == len(want) else "lengths")')
gives predict_is_evaluation 0 out "test accuracy $acc" eval mixed
# a row alone, its columns in another order and without the target, has the same digits; a missing text is an empty one
python3 - <<'PY'
import csv
rows = list(csv.DictReader(open("test.csv", newline="")))
def write(name, rows, names):
    with open(name, "w", newline="") as f:
        w = csv.DictWriter(f, names, extrasaction="ignore")
        w.writeheader()
        w.writerows(rows)
write("turned.csv", rows[::-1], ["review", "city", "stars"])
write("one.csv", rows[14:15], ["city", "review", "stars"])
for name, text in (("empty.csv", ""), ("na.csv", "NA"), ("spaces.csv", "  "), ("unknown.csv", "zzz")):
    write(name, [dict(rows[14], review=text)], ["stars", "city", "review"])
PY
run predict mixed turned.csv
if cmp -s <(tail -n +2 all.out | cut -d, -f3-) <(tail -n +2 out | tac | cut -d, -f3-); then
	pass predict_any_order
else
	fail predict_any_order "$(head -n 2 err)"
fi
# digits NAME WANT: those of the last row that was predicted
digits() { if [ -n "$2" ] && [ "$(tail -n 1 out | cut -d, -f3-)" = "$2" ]; then pass "$1"; else fail "$1" "$(cat out err)"; fi; }
run predict mixed one.csv
digits predict_one "$(sed -n 16p all.out | cut -d, -f3-)"
run predict mixed empty.csv
empty=$(tail -n 1 out | cut -d, -f3-)
for name in na spaces; do
	run predict mixed $name.csv
	digits predict_$name "$empty"
done
gives predict_unknown 0 out 'unknown.csv,0,' predict mixed unknown.csv
gives predict_json 0 out '"top":[{"class":' predict mixed one.csv --json
printf 'stars,city\n1,Ely\n' >lacking.csv
gives predict_lacking 65 err '"review" is missing' predict mixed lacking.csv
printf 'stars,city,review\n1,Ely,"a\nfine \xff film"\n' >latin.csv
gives predict_no_utf8 65 err 'latin.csv:2: column "review": expected UTF-8; convert the file with' predict mixed latin.csv
gives report 0 out 'ROC AUC' eval mixed --report

# ---- rows without a text, other tokenizers and layers ---------------------------------------------------------------------------------
awk 'BEGIN { print "review,taste"
	for (i = 0; i < 120; i++)
		printf "%s,%s\n", (i % 5 ? (i % 2 ? "this was a fine and lovely film in town" : "a dull film and awful as a story") i : ""), i % 2
}' >holes.csv
sed -e 's/train = \["words_train.csv"\]; test = \["words_test.csv"\]; target = "class"/train = ["holes.csv"]; target = "taste"/' \
	-e 's/ngrams = 2;//; s/hash_buckets = 1000;//; s/epochs = 6/epochs = 3/' words.cfg >holes.cfg
gives holes_missing 0 out 'review  text    ' check holes.cfg
gives holes_bag 0 out 'valid accuracy' run holes.cfg -q -o holes
gives holes_predict 0 out 'holes.csv,1,1,' predict holes holes.csv
layers='{ name = "e"; type = "embedding"; in = "tokens"; embedding_dim = 8; padding_idx = 0; },'
layers+='{ name = "h"; type = "lstm"; hidden_size = 8; in = ["e", "lengths"]; },'
layers+='{ type = "pool_tokens"; in = ["h", "lengths"]; mode = "max"; },'
sed "s/{ type = \"embedding_bag\".*/$layers/" holes.cfg >lstm.cfg
gives holes_lstm 0 out 'valid accuracy' run lstm.cfg -q
gives holes_bytes 0 out 'valid accuracy' run lstm.cfg -q -s data.tokenizer=bytes
printf '[PAD]\n[UNK]\n[CLS]\n[SEP]\nfilm\nfine\ndull\n' >vocab.txt
gives holes_wordpiece 0 out 'valid accuracy' run lstm.cfg -q -s data.tokenizer=wordpiece -s data.vocab=vocab.txt
gives holes_report 0 out 'log loss' eval holes --split valid --report
# two columns of texts are one text of two lines
awk 'NR == 1 { print "title," $0; next } { print "the title of row " NR " is the same as others," $0 }' holes.csv >titles.csv
gives two_columns 0 out 'valid accuracy' run lstm.cfg -q -o titles -s "data.train=[\"$PWD/titles.csv\"]"
gives two_columns_check 0 out 'title   text' check lstm.cfg -s "data.train=[\"$PWD/titles.csv\"]"
if grep -q '\\ntitle\\n.*\\nlovely\\n\|\\nlovely\\n.*\\ntitle\\n' titles/latest/data.json; then
	pass two_words
else
	fail two_words 'no words of one of the columns'
fi
# without a header
tail -n +2 holes.csv >bare.csv
gives no_header 0 out 'c1      text' check holes.cfg -s "data.train=[\"$PWD/bare.csv\"]" -s data.header=no -s 'data.target=["c2"]'
# the first line of such a file is no header if it has a long text
sed '1s/^/this was a film with a long story /; 1s/a long story/& & & & & & & & & & & & & & & & & & & & & & & & & &/' bare.csv >long.csv
gives no_header_long 0 out 'c1      text' check holes.cfg -s "data.train=[\"$PWD/long.csv\"]" -s 'data.target=["c2"]'

# ---- gtrain init ----------------------------------------------------------------------------------------------------------------------
for of in words_train:class train:taste train:stars; do
	table=${of%:*} target=${of#*:} name=init_${of//:/_}
	gives "$name" 0 err 'gtrain check' init "$table.csv" --target "$target" -o "$name.cfg"
	gives "${name}_check" 0 out 'tokens in the vocabulary' check "$name.cfg" --strict -s checkpoint.dir=unused
	gives "${name}_run" 0 out 'valid' run "$name.cfg" -q -o "$name" -s train.epochs=3
	echo "# $name: $(tail -n 1 out)"
done
gives init_type 0 out '{ name = "review"; type = "text"; }' init train.csv --target taste
gives init_words 0 out 'ngrams = 2;' init words_train.csv --target class

# ---- bad input ------------------------------------------------------------------------------------------------------------------------
bad() { # NAME TEXT MESSAGE: a row of words_train.csv
	{
		cat words_train.csv
		printf %b "$2"
	} >bad.csv
	gives "$1" 65 err "$3" run words.cfg -q -o x -s "data.train=[\"$PWD/bad.csv\"]"
}
lines=$(wc -l <words_train.csv)
bad no_utf8 'a fine \xff film,neg\n' "bad.csv:$((lines + 1)): column \"review\": expected UTF-8"
bad nul 'a fine \0 film,neg\n' "bad.csv:$((lines + 1)): "
bad unclosed '"a fine film,neg\n' "bad.csv:$((lines + 1)): "
bad ragged 'a fine film, it was,neg\n' "bad.csv:$((lines + 1)): expected 2 fields"
{
	cat words_train.csv
	python3 -c 'print("a " * 5000000 + ",neg")'
} >bad.csv
gives ten_megabytes 65 err "bad.csv:$((lines + 1)): " run words.cfg -q -o x -s "data.train=[\"$PWD/bad.csv\"]"
awk 'BEGIN { print "review,class"; for (i = 0; i < 50; i++) print "," i % 2 }' >bad.csv
gives all_missing 65 err 'column "review": expected texts, got no value in the training split' \
	check words.cfg -s "data.train=[\"$PWD/bad.csv\"]" -s 'data.columns=({name="review";type="text";})'
gives no_vocabulary 65 err 'expected a word that occurs at least 10000 times' run words.cfg -q -o x -s data.min_freq=10000
gives wordpiece_vocab 78 err 'data.vocab: expected the path of a model'\''s vocab.txt' check lstm.cfg -s data.tokenizer=wordpiece

# ---- data.on_error = "skip": the same run as without the bad rows, and a warning for each kind ------------------------------------------
awk 'NR == 5 { print "1.5,Ely,a fine \377 film,good" } NR == 10 { print "1.5,Ely,good" }
	NR == 20 { print "1.5,El\377y,a fine film,dreadful"; print "1,El\377y,a dull film,bad" }
	NR == 30 { print "1,Ely,a dull film," } 1' \
	train.csv >holed.csv
columns='data.columns=({name="stars";type="continuous";})'
holed=(-s "data.train=[\"$PWD/holed.csv\"]" -s "$columns")
gives skip_stop 65 err 'holed.csv:5: column "review": expected UTF-8' run mixed.cfg -q "${holed[@]}"
divides skip_count 480 mixed.cfg "${holed[@]}" -s data.on_error=skip
"$gtrain" run mixed.cfg -q -o skips "${holed[@]}" -s data.on_error=skip >out 2>err || fail skips "$(head -n 1 err)"
equal skip_same skips
if [ "$(grep -c 'warning: skipped .*/holed.csv:' err)" = 4 ]; then pass skip_warns; else fail skip_warns "$(cat err)"; fi
"$gtrain" eval skips -v >out 2>>err
for what in ':5: column "review": expected UTF-8' ':11: expected 4 fields' ':34: column "'; do
	if grep -qF "warning: skipped $PWD/holed.csv$what" err; then pass "skip$what"; else fail "skip$what" "$(cat err)"; fi
done
# rows of one kind are one line, or with -v one line each besides
gives skip_together 0 err "warning: skipped 2 rows, the first is $PWD/holed.csv:22: column \"city\": expected UTF-8" \
	eval skips --split valid
gives skip_each 0 err "skipped $PWD/holed.csv:23: column \"city\": expected UTF-8" eval skips --split valid -v
# a cell that is no number is missing, and its row stays
sed '9s/^[^,]*/#REF!/; 40s/^[^,]*/1e999/; 60s/^[^,]*/-/' train.csv >cells.csv
cells=(-s "data.train=[\"$PWD/cells.csv\"]")
gives cells_stop 65 err 'cells.csv:9: column "stars": expected a number, got "#REF!"; correct it, add the word to' \
	run mixed.cfg -q "${cells[@]}" -s "$columns"
divides cells_skip 480 mixed.cfg "${cells[@]}" -s "$columns" -s data.on_error=skip
gives cells_skip_warn 0 err "2 cells, the first is $PWD/cells.csv:9: column \"stars\": expected a number, got \"#REF!\"; the cell counts" \
	check mixed.cfg "${cells[@]}" -s "$columns" -s data.on_error=skip
gives cells_data 0 out '600 samples were read; all can be read; 3 cells count as missing' \
	check mixed.cfg "${cells[@]}" -s "$columns" -s data.on_error=skip --data
# the list is printed once
run check mixed.cfg "${cells[@]}" -s "$columns" -s data.on_error=skip --data
if [ "$(grep -c 'cells.csv:40: ' "$tmp/err")" = 1 ]; then pass cells_data_once; else fail cells_data_once "$(cat "$tmp/err")"; fi
# such a cell is missing in a prediction, too; the model of a run that stops there names a remedy that predict has
gives cells_predict 0 err "cells.csv:9: column \"stars\": expected a number, got \"#REF!\"; the cell counts as missing" \
	predict skips cells.csv
if [ "$(wc -l <"$tmp/out")" = 481 ]; then pass cells_predict_rows; else fail cells_predict_rows "$(wc -l <"$tmp/out") lines"; fi
gives stops_run 0 out 'test accuracy' run mixed.cfg -o stops -s train.epochs=1 -s "data.train=[\"$PWD/train.csv\"]" -s "$columns"
gives cells_predict_stop 65 err 'got "#REF!"; correct it, or leave the cell empty if the value is missing' predict stops cells.csv
gives cells_inferred 65 err 'cells.csv:9: column "stars": expected a number, as in 477 of the 480 values of the column, got "#REF!"; also' \
	run mixed.cfg -q "${cells[@]}"
gives cells_init 0 out 'on_error = "skip"; # 3 cells do not fit their columns and count as missing' init cells.csv --target taste
gives cells_init_warns 0 err "cells.csv:9: column \"stars\": expected a number, got \"#REF!\"; the cell counts as missing" \
	init cells.csv --target taste
gives skip_mse 0 out 'valid loss' run init_train_stars.cfg -q -s train.epochs=1 -s "data.train=[\"$PWD/holed.csv\"]" -s data.on_error=skip
gives skip_predict 65 err 'latin.csv:2: column "review": expected UTF-8' predict skips latin.csv
