#!/bin/bash
# Texts (data.format = "text"): folders and archives, tokenizers, what a checkpoint keeps, every mode, and bad input.
# shellcheck source=tests/cli/cli.sh
. "$(dirname "$0")/cli.sh"
command -v python3 >/dev/null || { skip text 'python3 is not installed'; exit 0; }
cd "$tmp" || exit 1
cat >make.py <<'PY'
import os, random
random.seed(5)
good, bad = "great lovely fine superb moving".split(), "awful dull poor boring weak".split()
rest = "the film was a story about people in town with some music and it ended".split()
for split, n in (("train", 120), ("test", 40)):
    for label, words in (("neg", bad), ("pos", good)):
        os.makedirs(f"data/{split}/{label}", exist_ok=True)
        for i in range(n):
            text = [random.choice(rest) for _ in range(random.randint(3, 60))]
            for _ in range(3):
                text.insert(random.randrange(len(text)), random.choice(words))
            if split == "test":
                text.append("unheard")  # a word that the training split lacks
            if split == "train":
                text.append(f"only{label}{i}")  # words that occur once
            with open(f"data/{split}/{label}/{i}.txt", "w") as f:
                f.write(" ".join(text) + ".<br />\n")
PY
python3 make.py
cat >bag.cfg <<'CFG'
schema = 1;
name = "text";
seed = 3;
reproducible = "world";
data = { root = "data"; format = "text"; batch = 32; valid = 0.2; stratify = true; max_tokens = 48; min_freq = 2; };
model = {
	inputs = ( { name = "tokens"; }, { name = "lengths"; } );
	layers = (
		{ type = "embedding_bag"; in = ["tokens", "lengths"]; embedding_dim = 8; padding_idx = 0; },
		{ name = "fc"; type = "linear"; out = 2; }
	);
};
train = { epochs = 12; optimizer = { type = "adam"; lr = 0.05; }; };
checkpoint = { every_epochs = 0; };
CFG
weights() { "$gtrain" export "$1" -o "$1.safetensors" -q && sha256sum <"$1.safetensors" | cut -c1-16; }
# learns NAME ARGS...: trains, and is right about most of the test split; $least: at least about this share
least=0.9
learns() {
	local name=$1 acc
	shift
	"$gtrain" run "$@" -q -o "$name" >out 2>err || { fail "$name" "$(head -n 1 err)"; return; }
	acc=$(sed -n 's/.*test accuracy \([0-9.]*\).*/\1/p' out)
	if awk -v a="${acc:-0}" -v least="$least" 'BEGIN { exit !(a > least) }'; then
		pass "$name"
	else
		fail "$name" "accuracy ${acc:-none}: $(cat out)"
	fi
}

learns folder bag.cfg
want=$(weights folder)
(cd data && tar cf ../data.tar train test)
learns archive bag.cfg -s data.root=data.tar
if [ "$(weights archive)" = "$want" ]; then pass archive_is_folder; else fail archive_is_folder 'other weights'; fi
sed 's/ min_freq = 2;//' bag.cfg >piece.cfg
learns ngrams bag.cfg -s data.ngrams=2 -s data.hash_buckets=1000
least=0.7 learns bytes piece.cfg -s data.tokenizer=bytes -s data.max_tokens=400 -s train.epochs=40 -s 'model.layers=(
	{ name = "e"; type = "embedding"; in = "tokens"; embedding_dim = 16; padding_idx = 0; },
	{ name = "h"; type = "linear"; out = 64; }, { name = "r"; type = "relu"; },
	{ type = "pool_tokens"; in = ["r", "lengths"]; mode = "mean"; }, { type = "linear"; out = 64; }, { type = "relu"; },
	{ name = "fc"; type = "linear"; out = 2; } )'

# the vocabulary: of training rows only, in the checkpoint, and used by eval and resume
python3 - folder <<'PY' || fail vocabulary 'see above'
import glob, json, sys
facts = json.load(open(glob.glob(sys.argv[1] + "/latest/data.json")[0]))
words = facts["text"]["vocabulary"].split("\n")
ok = words[:2] == ["<pad>", "<unk>"] and "film" in words and "unheard" not in words and "onlyneg1" not in words
ok = ok and facts["classes"] == ["neg", "pos"] and facts["text"]["ids"] == len(words) - 1
print("ok vocabulary" if ok else f"not ok vocabulary: {facts}")
PY
# Words of the rows that data.valid holds out are not learned: with min_freq 1, the words that occur once in the training rows only.
"$gtrain" check bag.cfg | tr -d , | grep -o '[0-9]* train' | head -n 1 >count
"$gtrain" check bag.cfg -s data.min_freq=1 --json >out 2>err || fail check_json "$(head -n 1 err)"
python3 - out <<'PY' || fail valid_is_not_learned 'see above'
import json, sys
r = json.load(open(sys.argv[1]))
ok = r["texts"]["vocabulary"] == 2 + 15 + 10 + 1 + int(open("count").read().split()[0])
print("ok valid_is_not_learned" if ok else f"not ok valid_is_not_learned: {r['texts']}")
PY
gives check 0 out 'are cut off at 48' check bag.cfg
gives check_lengths 0 out 'batches are padded to' check bag.cfg
gives eval 0 out 'accuracy' eval folder
# predictions are those of eval, and do not depend on the other files
"$gtrain" eval folder --split test --json >out 2>err || fail eval_json "$(head -n 1 err)"
want_acc=$(sed -n 's/.*"acc":\([0-9.]*\).*/\1/p' out | head -n 1)
"$gtrain" predict folder data/test --csv >all.csv 2>err || fail predict "$(head -n 1 err)"
got_acc=$(awk -F, 'NR > 1 { n++; right += ($1 ~ "/" $4 "/") } END { print right / n }' all.csv)
if [ "$(wc -l <all.csv)" = 81 ] && awk -v a="$got_acc" -v b="$want_acc" 'BEGIN { d = a - b; exit !(d < 1e-6 && d > -1e-6) }'; then
	pass predict_is_eval
else
	fail predict_is_eval "accuracy $got_acc, expected $want_acc: $(head -n 2 all.csv)"
fi
"$gtrain" predict folder data/test/neg/7.txt --csv >one.csv 2>err || fail predict_one "$(head -n 1 err)"
if [ "$(tail -n 1 one.csv)" = "$(grep neg/7.txt all.csv)" ]; then pass predict_one; else fail predict_one "$(tail -n 1 one.csv)"; fi
gives predict_text 0 out 'data/test/neg/7.txt	neg ' predict folder data/test/neg/7.txt
printf 'a \xff' >no_utf8.txt
gives predict_no_utf8 65 err 'no_utf8.txt:1: ' predict folder no_utf8.txt
: >empty.txt
gives predict_empty 65 err 'empty.txt: expected a text with at least one token, got none' predict folder empty.txt
mkdir images_none
printf 'text\na fine film\n' >rows.csv
gives predict_table 65 err 'rows.csv: expected a text file, because the model was trained on one file per text' predict folder rows.csv
gives predict_archive 0 out 'data.tar: test/neg/7.txt	neg ' predict folder data.tar
gives predict_table_beside 65 out 'data/test/neg/7.txt	neg ' predict folder rows.csv data/test/neg/7.txt
# texts themselves, and a text on each line of standard input
text=$(cat data/test/neg/7.txt)
gives predict_itself 0 out 'neg ' predict folder --text "$text"
"$gtrain" predict folder --text "$text" --text x --csv >text.csv 2>err
if [ "$(sed -n 2p text.csv | cut -d, -f3-)" = "$(tail -n 1 one.csv | cut -d, -f3-)" ] && [ "$(wc -l <text.csv)" = 3 ]; then
	pass predict_itself_same
else
	fail predict_itself_same "$(sed -n 2p text.csv) $(head -n 1 err)"
fi
for f in data/test/*/*.txt; do tr '\n' ' ' <"$f"; echo; done | "$gtrain" predict folder - --csv >lines.csv 2>err
if cmp -s <(cut -d, -f3- all.csv) <(cut -d, -f3- lines.csv) && [ "$(sed -n 3p lines.csv | cut -d, -f1,2)" = '-,1' ]; then
	pass predict_lines
else
	fail predict_lines "$(head -n 2 lines.csv) $(head -n 1 err)"
fi
printf '%s\r\n\n\377\n%s' "$text" "$text" | "$gtrain" predict folder - >out 2>err
rc=$?
if [ $rc = 65 ] && [ "$(wc -l <out)" = 2 ] && grep -q '^gtrain: standard input:2: expected a text with at least one token' err &&
	grep -q '^gtrain: standard input:3:.* expected UTF-8' err && grep -q '2 of 4 texts could not be predicted' err; then
	pass predict_bad_lines
else
	fail predict_bad_lines "status $rc: $(cat err)"
fi
echo data/test/neg/7.txt | "$gtrain" predict folder - >out 2>err
rc=$?
if [ $rc = 64 ] && grep -q 'got the name of a file, "data/test/neg/7.txt"; write @- for a list of files' err; then
	pass predict_paths_as_texts
else
	fail predict_paths_as_texts "status $rc: $(cat err)"
fi
gives predict_no_lines 66 err 'standard input: expected a text on each line, got nothing' predict folder -
gives predict_nothing 66 err 'expected texts (.txt) in the folder' predict folder images_none
# the checkpoint's vocabulary evaluates, and not one of other texts
mv data/train data/elsewhere
mkdir -p data/train/neg data/train/pos
gives eval_alone 0 out 'accuracy' eval folder --split test
rm -r data/train
mv data/elsewhere data/train
"$gtrain" run bag.cfg -q -o part -s train.steps=7 >/dev/null 2>&1
"$gtrain" resume part -q -s train.steps=0 >/dev/null 2>err || fail resume "$(head -n 1 err)"
if [ "$(weights part)" = "$want" ]; then pass resumed; else fail resumed 'other weights'; fi
for mode in 'ddp 2' 'dp 2' 'zero 4' 'pipe 2'; do
	read -r m n <<<"$mode"
	"$gtrain" run bag.cfg -q -o "$m" -s "parallel.mode=$m" -s "parallel.nproc=$n" >/dev/null 2>err
	rc=$?
	if [ $rc = 0 ] && [ "$(weights "$m")" = "$want" ]; then
		pass "$m$n"
	else
		fail "$m$n" "status $rc, or other weights: $(head -n 1 err)"
	fi
done
"$gtrain" run bag.cfg -q -o changed -s train.steps=7 >/dev/null 2>&1
echo 'film film filmic filmic filmic filmic' >data/train/pos/more.txt
gives changed_texts 0 err "of the run's 320 samples, 0 are missing and 0 have changed; 1 is new" \
	resume changed -q -s train.steps=0
rm data/train/pos/more.txt

# gtrain init
gives init 0 out 'in = ["tokens", "lengths"]' init data
"$gtrain" init data >init.cfg 2>err || fail init_run "$(head -n 1 err)"
learns init_run init.cfg
# a folder that has a split "valid" of its own, and no split "test"
cp -r data own && mv own/test own/valid
gives init_valid 0 out 'best = { metric = "valid/acc"; }' init own
run init own -o own.cfg
gives init_valid_run 0 out 'valid accuracy' run own.cfg -q -o own_run -s train.epochs=2
gives init_valid_eval 0 out 'valid accuracy' eval own_run
gives init_valid_given 0 out '(80 samples' eval own_run --split valid
gives best_without_valid 78 err 'expected a metric of an evaluated split, got "valid/acc"' run own.cfg -q -o x -s data.root=data
gives init_no_classes 66 err 'neg: expected a folder of images or of texts (.txt) for each of several classes' init data/train/neg
tar czf data.tar.gz data
XDG_CACHE_HOME=$tmp/cache gives init_compressed 0 out 'root = "'"$tmp"'/data.tar.gz"' init data.tar.gz
gives init_archive 0 out 'root = "'"$tmp"'/data.tar"' init data.tar
gives init_pretrained 64 err '--pretrained: expected a folder of images' init data --pretrained x.safetensors

# bad input
bad() {
	printf %b "$2" >data/train/neg/x.txt
	gives "$1" 65 err "$3" run bag.cfg -q -o x
	rm data/train/neg/x.txt
}
bad empty '' 'data/train/neg/x.txt: expected 1 byte'
bad no_tokens ' \n \t' 'data/train/neg/x.txt: expected a text with at least one token, got none'
bad no_utf8 'a fine film\nwith a \xff byte\n' 'data/train/neg/x.txt:2: '
bad cut_utf8 'a fine film\n\xc3' 'data/train/neg/x.txt:2: '
bad utf16 '\xff\xfea\x00b\x00' 'data/train/neg/x.txt:1: expected UTF-8, got UTF-16; convert'
bad gzip '\x1f\x8b\x08\x00\xff' 'data/train/neg/x.txt:1: expected UTF-8, got a gzip file'
# data.on_error = "skip": the same run as without these files, and a warning for each
cp -r data holed
printf 'a fine \xff film\n' >holed/train/neg/00.txt
printf '<br /> \n' >holed/train/pos/zz.txt
: >holed/train/pos/1000.txt
printf '\xff' >holed/test/pos/zz.txt
gives skip_stop 65 err 'holed/train/' run bag.cfg -q -o x -s data.root=holed
gives skip_check 0 err 'holed/train/neg/00.txt:1: ' check bag.cfg -s data.root=holed -s data.on_error=skip
divides skip_count 240 bag.cfg -s data.root=holed -s data.on_error=skip
held=$(grep -o '[0-9]* valid' "$tmp/out" | head -n 1 | cut -d' ' -f1)
learns skips bag.cfg -s data.root=holed -s data.on_error=skip
if [ "$(grep -c 'warning: skipped holed\|warning: skipped .*/holed' err)" = 4 ]; then pass skip_warns; else fail skip_warns "$(cat err)"; fi
if [ "$(weights skips)" = "$want" ]; then pass skip_same; else fail skip_same 'other weights'; fi
if grep -q 'skipped .*zz.txt: expected a text with at least one token' skips/metrics.jsonl; then
	pass skip_logged
else
	fail skip_logged "$(tail -n 2 skips/metrics.jsonl)"
fi
"$gtrain" run bag.cfg -q -o skips2 -s data.root=holed -s data.on_error=skip -s parallel.mode=ddp -s parallel.nproc=2 >/dev/null 2>err
if [ "$(weights skips2)" = "$want" ]; then pass skip_ranks; else fail skip_ranks 'other weights'; fi
if [ "$(grep -c 'skipped' err)" = 4 ]; then pass skip_ranks_warn; else fail skip_ranks_warn "$(cat err)"; fi
gives skip_eval 0 out "(${held:-no} samples" eval skips --split valid
gives skip_eval_warns 0 err 'holed/train/neg/00.txt:1: ' eval skips --split valid
gives skip_find 0 err 'holed/train/neg/00.txt:1: ' lr-find bag.cfg -s data.root=holed -s data.on_error=skip --steps 60
gives skip_predict 65 err 'zz.txt:1: ' predict skips holed/test/pos/zz.txt
rm -r holed/train/neg holed/train/pos
mkdir holed/train/neg holed/train/pos
printf '\xff' | tee holed/train/neg/1.txt >holed/train/pos/1.txt
gives skip_all 65 err 'expected texts that can be read, got none' check bag.cfg -s data.root=holed -s data.on_error=skip
printf 'a fine\0film\n' >data/train/neg/x.txt
gives nul 0 out 'accuracy' run bag.cfg -q -o nul -s train.epochs=1
python3 -c 'print("a fine film and a lovely story " * 400000)' >data/train/neg/x.txt
gives ten_megabytes 0 out 'accuracy' run bag.cfg -q -o large -s train.epochs=1
python3 -c 'print("x" * 12000000)' >data/train/neg/x.txt
gives long_word 0 out 'accuracy' run bag.cfg -q -o long -s train.epochs=1
rm data/train/neg/x.txt
gives no_vocabulary 65 err 'expected a word that occurs at least 10000 times' run bag.cfg -q -o x -s data.min_freq=10000
mkdir data/test/neutral
echo 'a film' >data/test/neutral/1.txt
gives unknown_class 65 err 'the training split has no folder with files for the class "neutral"' run bag.cfg -q -o x
rm -r data/test/neutral
gives no_folder 66 err 'does not exist' run bag.cfg -q -o x -s data.root=nowhere
mkdir -p images/train/a images/train/b
touch images/train/a/1.jpg
gives no_texts 65 err 'expected folders of texts (.txt), one for each class, got none' run bag.cfg -q -o x -s data.root=images
gives vocab_missing 78 err 'data.vocab: expected the vocab.txt of a model' check bag.cfg -s data.tokenizer=wordpiece -s data.min_freq=2
printf '[PAD]\n[UNK]\nfilm\n' >vocab.txt
vocab() { gives "$1" 65 err "vocab.txt$2" check piece.cfg -s data.tokenizer=wordpiece -s data.vocab=vocab.txt; }
vocab vocab_special ': expected the special token [CLS] in the vocabulary'
printf '[UNK]\n[CLS]\n[SEP]\nfilm\n' >vocab.txt
vocab vocab_pad ': expected the special token [PAD] in the vocabulary'
printf '\xef\xbb\xbf[PAD]\n[UNK]\n[CLS]\n[SEP]\nfilm\n' >vocab.txt
vocab vocab_mark ':1: expected a token, got a byte order mark'
printf '{\n  "version": "1.0",\n  "model": { "vocab": { "[PAD]": 0, "[UNK]": 1 } }\n}\n' >vocab.txt
vocab vocab_json ': expected a vocab.txt with one token per line, got JSON'
printf '[PAD]\n[UNK]\n[CLS]\n[SEP]\nfilm\ngreat\nfilm\n' >vocab.txt
vocab vocab_twice ':7: expected a new token, got "film", the token of line 5, again'
printf '[PAD]\n[UNK]\n[CLS]\n[SEP]\nfilm\ngreat\nlovely\nfine\nsuperb\nmoving\nawful\ndull\npoor\nboring\nweak\n##s\n' >vocab.txt
learns wordpiece piece.cfg -s data.tokenizer=wordpiece -s data.vocab=vocab.txt
# the checkpoint keeps the vocabulary: without the file, an evaluation of training data only warns
mv vocab.txt away.txt
gives vocab_kept 0 out 'valid accuracy' eval wordpiece --split valid
gives vocab_kept_warns 0 err 'warning: '"$PWD"'/vocab.txt: cannot open' eval wordpiece --split valid
gives vocab_kept_test 0 out 'test accuracy' eval wordpiece
gives vocab_moved 66 err 'vocab.txt: cannot open: No such file or directory; if the data has moved, add -s data.vocab=FILE' \
	resume wordpiece -s train.epochs=99
mv away.txt vocab.txt
mv data moved
gives data_moved 66 err 'data does not exist; if the data has moved, add -s data.root=DIR' eval wordpiece
mv moved data
gives buckets_alone 78 err 'data.hash_buckets: only n-grams use this key' check bag.cfg -s data.hash_buckets=1000
gives of_words 78 err 'data.tokenizer = "bytes" does not use this key; words does' check bag.cfg -s data.tokenizer=bytes -s data.min_freq=2
gives few_tokens 78 err 'data.max_tokens: expected a maximum length of at least 3 tokens' \
	check piece.cfg -s data.tokenizer=wordpiece -s data.vocab=vocab.txt -s data.max_tokens=2
gives other_format 78 err 'data.tokenizer' check bag.cfg -s data.format=folder -s data.tokenizer=bytes
gives small_table 78 err 'num_embeddings: expected at least' check bag.cfg -s 'model.layers[0].num_embeddings=5'
