#!/bin/bash
# Tables as CSV, TSV and JSON Lines, plain and gzip: the same rows give the same network, evaluation and predictions. Lists of images and
# tables of texts in the same formats. Damaged files.
# tests/run: beside others
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
cd "$tmp" || exit 1
awk 'BEGIN {
	print "size,colour,note,kind"
	split("red green blue", word, " ")
	for (i = 1; i <= 300; i++)
		printf "%s,%s,%d,%s\n", i % 17 ? i % 23 - 7.5 : "", word[i % 3 + 1], i % 5 - 2, (i % 23 > 11 ? "big" : "small")
}' >plain.csv
tr , '\t' <plain.csv >tabs.tsv
# each row as an object; an empty cell is null or missing, and the order of keys varies after the first line
awk -F, 'NR > 1 {
	size = $1 == "" ? (NR % 2 ? "" : "\"size\": null, ") : "\"size\": " $1 ", "
	rest = "\"colour\": \"" $2 "\", \"note\": " $3
	print NR % 3 || NR == 2 ? "{" size rest ", \"kind\": \"" $4 "\"}" : "{\"kind\":\"" $4 "\", " size rest "}"
}' plain.csv >lines.jsonl
for f in plain.csv tabs.tsv lines.jsonl; do gzip -c $f >packed.$f.gz; done

weights() { "$gtrain" export "$1" -o "$1.safetensors" -q && sha256sum <"$1.safetensors" | cut -c1-16; }
# The part of a prediction after the name of the file, and a line of numbers of an evaluation without its time.
predicted() { sed 's/^[^,]*,//'; }
scores() { sed 's/step.*//'; }

# trains NAME FILE: init, run and eval with the data in FILE; leaves weights, scores and predictions in NAME.*
trains() {
	"$gtrain" init "$2" --target kind -o "$1.cfg" -q 2>err || fail "init_$1" "$(head -n 1 err)"
	"$gtrain" run "$1.cfg" -o "$1" -q -s train.epochs=3 >"$1.out" 2>err || fail "run_$1" "$(head -n 1 err)"
	weights "$1" >"$1.weights"
	"$gtrain" eval "$1" "$2" -q 2>err | scores >"$1.scores"
	"$gtrain" predict "$1" "$2" 2>err | predicted >"$1.predicted"
}
trains csv plain.csv
[ -s csv.predicted ] || fail csv "$(head -n 1 err)"
for f in tabs.tsv lines.jsonl packed.plain.csv.gz packed.tabs.tsv.gz packed.lines.jsonl.gz; do
	trains run "$f"
	for what in weights scores predicted; do
		if cmp -s "csv.$what" "run.$what"; then pass "${what}_$f"; else
			fail "${what}_$f" "$(diff "csv.$what" "run.$what" | head -n 3)"; fi
	done
	rm -rf run run.*
done
# A run that was trained with one format evaluates and predicts the others.
for f in tabs.tsv lines.jsonl packed.lines.jsonl.gz; do
	if "$gtrain" predict csv "$f" 2>err | predicted | cmp -s - csv.predicted; then pass "other_$f"; else
		fail "other_$f" "$(head -n 1 err)"; fi
	if "$gtrain" predict csv - <"$f" 2>err | predicted | cmp -s - csv.predicted; then pass "stdin_$f"; else
		fail "stdin_$f" "$(head -n 1 err)"; fi
done
if "$gtrain" predict csv lines.jsonl --keep note 2>err | head -n 2 | cmp -s - <("$gtrain" predict csv plain.csv --keep note | head -n 2)
then pass keep; else fail keep "$(head -n 1 err)"; fi
mkdir tables
cp lines.jsonl tables/a.ndjson
cp packed.lines.jsonl.gz tables/b.jsonl.gz
gives directory 0 out 'tables/b.jsonl.gz,0,' predict csv tables
# The columns of JSON Lines have names, where those of a CSV file without a header have none.
tail -n +2 plain.csv >bare.csv
gives bare_init 0 err 'wrote' init bare.csv --target c4 -o bare.cfg
"$gtrain" run bare.cfg -q -o bare -s train.epochs=1 >out 2>err || fail bare "$(head -n 1 err)"
gives bare_names 65 err 'c1' predict bare lines.jsonl
sed 's/"size"/"c1"/; s/"colour"/"c2"/; s/"note"/"c3"/; s/"kind"/"c4"/' lines.jsonl >bare.jsonl
if "$gtrain" predict bare bare.jsonl 2>err | predicted | cmp -s - <("$gtrain" predict bare bare.csv | predicted); then pass bare; else
	fail bare "$(head -n 1 err)"; fi

# ---- texts, with escapes --------------------------------------------------------------------------------------------------------------
awk 'BEGIN {
	for (i = 1; i <= 120; i++)
		printf "{\"label\": \"%s\", \"text\": \"a %s \\u0066ilm,\\nsaid \\\"w%d\\\" %s\", \"meta\": {\"id\": %d, \"tags\": [1]}}\n",
			i % 2 ? "pos" : "neg", i % 2 ? "good" : "terrible", i * i, "about the story, in which nobody knows the end of it", i
}' >texts.jsonl
gives texts_init 0 err 'wrote' init texts.jsonl --target label -o texts.cfg
gives texts_columns 0 out 'meta.tags' check texts.cfg
run run texts.cfg -o texts -q -s train.epochs=20
if grep -q "valid accuracy 1.0000" out; then pass texts; else fail texts "$(cat out err)"; fi

# ---- lists of images ------------------------------------------------------------------------------------------------------------------
image=iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAAAAADhZOFXAAAADklEQVR42mOQgwIGyhgADlcHgX3rLBkAAAAASUVORK5CYII=
mkdir images
for i in 1 2 3 4; do
	{ base64 -d <<<$image; echo $i; } >images/$i.png
	echo "images/$i.png,$((i % 2))" >>list.part
done
{ echo file,label; cat list.part; } >list.csv
tr , '\t' <list.csv >list.tsv
sed 's/\(.*\),\(.*\)/{"file": "\1", "label": \2}/' list.part >list.jsonl
cat >list.cfg <<'CFG'
schema = 1;
name = "list";
data = { format = "list"; train = ["list.csv"]; batch = 4; };
model = { input = [1, 8, 8]; layers = ( { type = "flatten"; }, { name = "fc"; type = "linear"; out = 2; } ); };
train = { epochs = 2; optimizer = { type = "adam"; lr = 0.05; }; };
CFG
for f in csv tsv jsonl; do
	run run list.cfg -q -o "list-$f" -s "data.train=[\"list.$f\"]"
	[ "$rc" = 0 ] || fail "list_$f" "$(head -n 1 err)"
	weights "list-$f" >"list-$f.weights"
	if cmp -s list-csv.weights "list-$f.weights"; then pass "list_$f"; else fail "list_$f" 'other weights'; fi
	gives "list_eval_$f" 0 out '(4 samples' eval list-csv "list.$f"
done

# ---- damaged files ---------------------------------------------------------------------------------------------------------------------
head -c 700 packed.lines.jsonl.gz >cut.jsonl.gz
gives cut_gz 65 err 'cut.jsonl.gz: gzip: the file is truncated' init cut.jsonl.gz --target kind
head -c 700 lines.jsonl >cut.jsonl
gives cut_line 65 err 'cut.jsonl:12: expected a key in quotes' init cut.jsonl --target kind
{ head -n 20 lines.jsonl; echo '[1, 2]'; } >array.jsonl
gives array 65 err 'array.jsonl:21: expected an object' init array.jsonl --target kind
{ head -n 20 lines.jsonl; printf '{"size": "\033[31m", "kind": "big"}\n'; } >escape.jsonl
gives escape 65 err 'escape.jsonl:21: expected a string without control characters' init escape.jsonl --target kind
if grep -q "$(printf '\033')" err; then fail escape_shown 'an escape sequence reaches the terminal'; else pass escape_shown; fi
{ head -n 20 lines.jsonl; printf '{"colour": "caf\351", "kind": "big"}\n'; } >latin.jsonl
gives latin 65 err 'latin.jsonl:21: column "colour": expected UTF-8' check csv.cfg -s 'data.train=["latin.jsonl"]'
# Nor are they an unknown word in a prediction or an evaluation: the row would get the result of another word without a warning.
printf 'size,colour,note,kind\n1,caf\351,1,big\n' >latin.csv
gives latin_predict 65 err 'latin.csv:2: column "colour": expected UTF-8; convert the file with `iconv' predict csv latin.csv
gives latin_eval 65 err 'latin.csv:2: column "colour": expected UTF-8; convert the file with `iconv' eval csv latin.csv
{ sed 's/"size"/"si\\u001bze"/' lines.jsonl; } >key.jsonl
gives key 65 err 'expected column names without control characters, got "si?ze"' init key.jsonl --target kind
gives json 65 err 'write one JSON object on each line (.jsonl)' init "$(echo '[]' >all.json; echo all.json)"
gives missing 66 err 'none.jsonl' predict csv none.jsonl
