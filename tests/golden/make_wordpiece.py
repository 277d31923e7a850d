#!/usr/bin/env python3
"""Writes wordpiece_vocab.txt and wordpiece.txt: a WordPiece vocabulary, and the ids that Hugging Face's tokenizers give to the sentences
below with it (library `tokenizers`, BertWordPieceTokenizer with its defaults: lower case, accents stripped, ideographs alone).

    make_wordpiece.py OUTPUT_FOLDER

wordpiece.txt has two lines a sentence: the text, and the ids. The sentences are made for this test. Characters are of Unicode 8 or older,
the version that the library knows, and no sentence has the text of a special token, which the library would take for the token.
Made with tokenizers 0.23."""
import os
import sys
from tokenizers import BertWordPieceTokenizer

PLAIN = """The trainer reads a config file and writes checkpoints.
Nobody expected the ending, but everybody remembered the beginning!
A tokenizer should never replace what it does not understand.
The unbelievable, unforgettable and unaffordable soundtrack wasn't mentioned.
It's 10 o'clock; don't you think she'd've called by now?
Prices rose from $3.50 to $10,000.00 (about 285,614%).
Visit the page at example.org/index.html?q=tokens&lang=en#top.
He said: "I'll be there at 7:30 p.m." -- and he wasn't.
Well-known e-mail addresses look like first.last@example.com.
An_identifier_with_underscores and CamelCaseNames and kebab-case-names.
C++ and C# and F# are languages, as is Objective-C.
Wow!!! What?!? Hmm... so be it; [brackets] {braces} <angles> |pipes| `ticks` ~tilde~ ^caret^.
The quick brown fox jumps over the lazy dog while five boxing wizards jump quickly.
Pneumonoultramicroscopicsilicovolcanoconiosis is a word that few people need.
Antidisestablishmentarianism and floccinaucinihilipilification are others.
The first reviewers loved the film, later reviewers hated the film, and nobody reviewed the book.
This film is slow, long and beautiful; its actors are quiet, its music is loud.
Rewriting, rereading, reheating, restarting and replaying are all words with a prefix.
Kindness, darkness, sadness, weakness and happiness are all words with a suffix.
Training trains trainers; testing tests testers; reading readers read.""".split("\n")
HARD = [
    "", " ", "   \t  ", "a", ".", "'", "...", "a.b.c", "don't", "can\u2019t",
    "\u201cquoted\u201d \u2018single\u2019 \u2014 dash \u2013 range \u2026",
    "Caf\u00e9 na\u00efve r\u00e9sum\u00e9 \u00dcber \u00c5ngstr\u00f6m \u0141\u00f3d\u017a \u00f1and\u00fa",
    "Cafe\u0301 re\u0301sume\u0301 e\u0301\u0323 e\u0323\u0301 a\u0300\u0301\u0302\u0303", "stra\u00dfe STRASSE \u1e9e",
    "\u0130stanbul \u0131s\u0131 Istanbul I\u0307", "\u03a3\u03af\u03c3\u03c5\u03c6\u03bf\u03c2 \u039f\u0394\u039f\u03a3",
    "\u041c\u043e\u0441\u043a\u0432\u0430 \u0439\u043e\u0433\u0443\u0440\u0442 \u0401\u043b\u043a\u0430",
    "\u4e2d\u6587film\u7535\u5f71 abc\u4e2d", "\u65e5\u672c\u8a9e\u306e\u6620\u753b\u306f\u30a2\u30cb\u30e1\u3067\u3059\u3002",
    "\ud55c\uad6d\uc5b4 \uc601\ud654 \u1112\u1161\u11ab", "\uf900\uf901 \ufa0e", "\u0e20\u0e32\u0e29\u0e32\u0e44\u0e17\u0e22",
    "\u0939\u093f\u0928\u094d\u0926\u0940 \u092b\u093f\u0932\u094d\u092e", "\u05e9\u05b8\u05c1\u05dc\u05d5\u05b9\u05dd",
    "\u0645\u064e\u0631\u062d\u0628\u064b\u0627\u060c", "good \U0001f600 film \U0001f44d\U0001f3fd!",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467 family", "\u2764\ufe0f heart", "\U0001f1e9\U0001f1ea",
    "zero\u200bwidth joi\u200dner so\u00adft bom\ufeff", "nul\x00inside bell\x07 del\x7f nel\u0085 c1\u0096x",
    "replacement \ufffd here\ufffd", "tab\tcr\rvt\x0bff\x0cspaces\u00a0\u2003\u3000\u1680end \u2028 line \u2029 para",
    "private \ue000 use", "\u037e \u1fef \u0387 \u2126 \u212b \u212a", "\uff26\uff35\uff2c\uff2c \uff37\uff29\uff24\uff34\uff28\uff01",
    "\u00bd \u00b2 \u2122 \u00a9 \u20ac5 \u00a35 \u00b15", "\U0001d400\U0001d41a", "x" * 100, "x" * 101, "film" * 25, "film" * 25 + "s",
    "\u00e9" * 100, "e\u0301" * 100, "\u4e2d" * 101, "!" * 150, "a" * 101 + "." + "film", "\u302e\u302f\u0323a\u302f\u302e",
    "\U0001d15f\U0001d166\U0001d165", "ab\u0301\u0345c", "\u1ea4\u1eb8", "\ufb01lm \ufb03", "\u0149 \u01f0 \u1e96",
    "##film film## # #film", "\\ / \\n", "<br /> &amp; <i>italic</i>", "\u2460\u2167 \u06f1\u06f2",
]

if len(sys.argv) != 2:
    sys.exit(__doc__)
trained = BertWordPieceTokenizer()
alphabet = {c for t in HARD for c in trained._tokenizer.normalizer.normalize_str(t) if not c.isspace()}
# A few characters remain without a piece, so that some words are unknown.
trained.train_from_iterator(PLAIN, vocab_size=500, min_frequency=1, initial_alphabet=sorted(alphabet)[::5] + sorted(alphabet)[1::5])
trained.save_model(sys.argv[1], "wordpiece")
vocab = os.path.join(sys.argv[1], "wordpiece_vocab.txt")
os.replace(os.path.join(sys.argv[1], "wordpiece-vocab.txt"), vocab)
tokenizer = BertWordPieceTokenizer(vocab)
with open(os.path.join(sys.argv[1], "wordpiece.txt"), "w", encoding="utf-8", newline="\n") as f:
    for text in PLAIN + HARD:
        assert "\n" not in text
        f.write(text + "\n" + " ".join(map(str, tokenizer.encode(text).ids)) + "\n")
