#!/bin/bash
# The tokenizer of WordPiece against Hugging Face's library `tokenizers` (wordpiece.py) on 10,000 sentences of the IMDB reviews and on
# single characters. $TOKENIZERS_PYTHON: a Python with tokenizers (python3). $GTRAIN_IMDB: the archive of reviews. $BERT_VOCAB: a
# vocab.txt of an uncased BERT model; without it, the library trains one from the reviews. WORDPIECE=speed also measures the speed of all
# tokenizers.
set -u
python=${TOKENIZERS_PYTHON:-python3}
if ! "$python" -c 'import tokenizers' 2>/dev/null; then
	echo "skip wordpiece: $python has no tokenizers (set TOKENIZERS_PYTHON)"
	exit 0
fi
imdb=${GTRAIN_IMDB-$GTRAIN_SRC/../shared/data/imdb-train.tar.xz}
if [ ! -e "$imdb" ]; then
	echo "skip wordpiece: no reviews of IMDB (set GTRAIN_IMDB)"
	exit 0
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
nice "$python" "$GTRAIN_SRC/tests/parity/wordpiece.py" "$GTRAIN_BUILD/tests/parity/tool_tokenize" "$imdb" "$tmp" "${WORDPIECE-}" \
	"${BERT_VOCAB-}" >"$tmp/log" 2>&1 || echo "not ok wordpiece: $(tail -n 1 "$tmp/log")"
grep -E '^(ok|not ok|# )' "$tmp/log"
