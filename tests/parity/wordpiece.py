"""Compares tool_tokenize with Hugging Face's library `tokenizers`. Called by test_wordpiece.sh:

    wordpiece.py TOOL REVIEWS.tar.xz FOLDER ''|speed [VOCAB]"""
import os
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"
import random
import re
import statistics
import struct
import subprocess
import sys
import tarfile
import time
import unicodedata
from tokenizers import BertWordPieceTokenizer, Regex, Tokenizer, models, normalizers, pre_tokenizers

tool, archive, folder, what = sys.argv[1:5]
vocab = sys.argv[5] if len(sys.argv) > 5 else ""
SENTENCES, ROUNDS = 10000, 5


def records(texts):
    data = [t.encode() for t in texts]
    return b"".join(struct.pack("<I", len(d)) + d for d in data)


def run(args, texts):
    return subprocess.run([tool, *args], input=records(texts), stdout=subprocess.PIPE, check=True).stdout.decode()


def compare(name, texts):
    got = [[int(i) for i in line.split()] for line in run(["wordpiece", vocab, "1000000"], texts).split("\n")[:-1]]
    want = [e.ids for e in library.encode_batch(texts)]
    assert len(got) == len(want) == len(texts)
    different = sum(a != b for a, b in zip(got, want))
    ids = sum(x != y for a, b in zip(got, want) for x, y in zip(a, b)) + sum(abs(len(a) - len(b)) for a, b in zip(got, want))
    print(f"# {name}: {len(texts)} texts, {sum(map(len, want))} ids, {ids} different ids in {different} texts")
    if different:
        first = next(i for i, (a, b) in enumerate(zip(got, want)) if a != b)
        print(f"not ok {name}: {texts[first]!r}: expected {want[first]}, got {got[first]}"[:500])
    else:
        print(f"ok {name}")


reviews = []
with tarfile.open(archive) as tar:
    for member in tar:
        if member.name.endswith(".txt"):
            reviews.append(tar.extractfile(member).read().decode())
if not vocab:
    trained = BertWordPieceTokenizer()
    trained.train_from_iterator(reviews[:5000], vocab_size=8000, show_progress=False)
    vocab = trained.save_model(folder)[0]
library = BertWordPieceTokenizer(vocab)

random.seed(1)
sentences = [s for r in reviews for s in re.split(r"(?<=[.!?]) +|<br /><br />", r) if s]
compare("wordpiece_sentences", random.sample(sentences, SENTENCES))
compare("wordpiece_reviews", random.sample(reviews, 1000))

# Characters of Unicode 3.2 whose category has not changed since: all versions of the libraries on both sides know them.
old = unicodedata.ucd_3_2_0
known = [chr(c) for c in range(0x110000) if not 0xd800 <= c < 0xe000 and old.category(chr(c)) == unicodedata.category(chr(c)) != "Cn"
         and not 0xac00 < c < 0xd7a0 and not 0x20000 < c < 0x2a6d0]
compare("wordpiece_characters", [f"a{c}b {c}" for c in known])
marks = [c for c in known if unicodedata.combining(c)]
common = [c for c in known if ord(c) < 0x2100 or 0x3000 <= ord(c) < 0x3100]
pools = [known, marks, common, common, list(" aABs!")]
compare("wordpiece_random", ["".join(random.choice(random.choice(pools)) for _ in range(random.randint(1, 30))) for _ in range(20000)])


def speed(name, args, other):
    """Seconds of processor time of one thread, in alternation."""
    def theirs():
        begin = time.process_time()
        for i in range(0, len(reviews), 500):
            other.encode_batch_fast(reviews[i:i + 500])
        return time.process_time() - begin
    pairs = [(float(run([*args, "1000000", "1"], reviews).split()[0]), theirs()) for _ in range(ROUNDS)]
    ours, library = (statistics.median(p[i] for p in pairs) for i in (0, 1))
    print(f"# speed {name}: {megabytes / ours:.1f} MB/s, tokenizers {megabytes / library:.2f} MB/s, ratio {library / ours:.1f}"
          f" ({' '.join(f'{b / a:.1f}' for a, b in pairs)})", flush=True)


if what == "speed":
    reviews = reviews[::10]
    megabytes = sum(len(r.encode()) for r in reviews) / 1e6
    words = run(["count", "3", "60000"], reviews)
    path = os.path.join(folder, "words.txt")
    with open(path, "w", encoding="utf-8", newline="\n") as f:
        f.write(words)
    other = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words.split("\n")[:-1])}, unk_token="<unk>"))
    other.normalizer = normalizers.Sequence([normalizers.Replace(Regex("<br ?/?>"), " "), normalizers.NFC(), normalizers.Lowercase()])
    other.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    byte = Tokenizer(models.BPE({c: i for i, c in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}, []))
    byte.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    speed("wordpiece", ["wordpiece", vocab], library._tokenizer)
    speed("words", ["words", path], other)
    speed("bytes", ["bytes", "-"], byte)
