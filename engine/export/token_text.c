#include "export/token_text.h"
#include "base/memstream.h"
#include "fitted.h"
#include "session/session_data.h"
#include "text/tokenizer.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- the parts of tokens.py, by enum gt_tokenizer_kind ------------------------------------------------------------------------------ */
static const char words[] =
    "import html\n"
    "import os\n"
    "import re\n"
    "import unicodedata\n"
    "from html.entities import name2codepoint\n"
    "\n"
    "with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), \"vocab.txt\"), encoding=\"utf-8\", newline=\"\\n\") as f:\n"
    "    LINES = f.read().split(\"\\n\")[:-1]\n"
    "IDEOGRAPH = re.compile(\"[\\u3400-\\u4dbf\\u4e00-\\u9fff\\uf900-\\ufaff\\U00020000-\\U0002a6df\"\n"
    "                       \"\\U0002a700-\\U0002ceaf\\U0002f800-\\U0002fa1f]\")\n"
    "ESCAPES = {\"\\\\\": \"\\\\\", \"n\": \"\\n\", \"r\": \"\\r\"}\n"
    "VOCAB = {re.sub(r\"\\\\(.)\", lambda m: ESCAPES[m[1]], line): i for i, line in enumerate(LINES)}\n"
    "HIRAGANA, MODIFIERS = \"[\\u3041-\\u3098\\u309b-\\u309f]\", \"[\\u200c\\U0001f3fb-\\U0001f3ff\\U000e0020-\\U000e007f]\"\n"
    "WORD = r\"[w0](?:[w0mz]|'(?=[w0])|(?<=0)[.,](?=0))*\"\n"
    "TOKEN = re.compile(WORD + r\"|i|(?:rr|[orzm])(?:[mz]|(?<=[morz]z)[or])*|([!-/:-@[-`{-~])\\1*\")\n"
    "PARTS = re.compile(\"(.+?)(n't|'s|'m|'d|'ll|'re|'ve)?(n't|'s|'m|'d|'ll|'re|'ve)?\", re.S)\n"
    "\n"
    "\n"
    "def kind(c):\n"
    "    \"\"\"w: letter or number, 0: ASCII digit, m: mark, z: joiner, i: a token alone, r: half a flag, o: other; ASCII: itself.\"\"\"\n"
    "    group = unicodedata.category(c)\n"
    "    if c < \"\\x80\":\n"
    "        return \" \" if group == \"Cc\" else \"0\" if c.isdigit() else \"w\" if c.isalpha() else c\n"
    "    if IDEOGRAPH.match(c) or re.match(HIRAGANA, c):\n"
    "        return \"i\"\n"
    "    if c == \"\\u200d\" or re.match(MODIFIERS, c):\n"
    "        return \"z\" if c == \"\\u200d\" else \"m\"\n"
    "    other = \"r\" if \"\\U0001f1e6\" <= c <= \"\\U0001f1ff\" else \"o\"\n"
    "    return {\"L\": \"w\", \"N\": \"w\", \"M\": \"m\", \"Z\": \" \"}.get(group[0], other)\n"
    "\n"
    "\n"
    "def entity(m):\n"
    "    name, found = m[1], html.unescape(m[0])\n"
    "    if name[0] == \"#\":\n"
    "        return m[0] if found in (\"\", \"\\ufffd\") else found\n"
    "    return chr(name2codepoint[name]) if name in name2codepoint else \"'\" if name == \"apos\" else m[0]\n"
    "\n"
    "\n"
    "def clean(c):\n"
    "    group = unicodedata.category(c)\n"
    "    if group == \"Cf\":\n"
    "        return c if c in \"\\u200c\\u200d\" or \"\\U000e0020\" <= c <= \"\\U000e007f\" else \"\"\n"
    "    return \" \" if group in (\"Cc\", \"Zl\", \"Zp\", \"Zs\") else c\n"
    "\n"
    "\n"
    "def split(text):\n"
    "    \"\"\"The words of a text.\"\"\"\n"
    "    text = re.sub(r\"<br\\s*/?>\", \" \", text, flags=re.I | re.A)\n"
    "    text = re.sub(r\"&(#[0-9]+|#[xX][0-9a-fA-F]+|\\w+);\", entity, text, flags=re.A).replace(\"\\u2019\", \"'\")\n"
    "    text = unicodedata.normalize(\"NFC\", \"\".join(map(clean, text)).casefold())\n"
    "    for m in TOKEN.finditer(\"\".join(map(kind, text))):\n"
    "        token = text[m.start():m.end()]\n"
    "        if m[1]:\n"
    "            yield token[:3]\n"
    "        elif \"'\" in token:\n"
    "            yield from filter(None, PARTS.fullmatch(token).groups())\n"
    "        else:\n"
    "            yield token\n"
    "\n"
    "\n"
    "def signed_hash(word):\n"
    "    h = 2166136261\n"
    "    for b in word.encode():\n"
    "        h = (h ^ (b | 0xffffff00 if b > 127 else b)) * 16777619 & 0xffffffff\n"
    "    return h - (h >> 31 << 32)\n"
    "\n"
    "\n"
    "def encode(text):\n"
    "    \"\"\"The ids of a text: those of its words, then those of 2 to NGRAMS words in a row, hashed as by fastText.\"\"\"\n"
    "    words = [word for _, word in zip(range(MAX_TOKENS), split(text))]\n"
    "    ids, hashes = [VOCAB.get(word, VOCAB[\"<unk>\"]) for word in words], list(map(signed_hash, words))\n"
    "    for i, h in enumerate(hashes):\n"
    "        for j in range(i + 1, min(i + NGRAMS, len(words))):\n"
    "            h = h * 116049371 + hashes[j]\n"
    "            ids.append(len(VOCAB) + h % 2**64 % BUCKETS)\n"
    "    return ids\n";

static const char bytes[] =
    "\n"
    "\n"
    "def encode(text):\n"
    "    \"\"\"The ids of a text: byte b has the id 1 + b.\"\"\"\n"
    "    return [1 + b for b in text.encode()[:MAX_TOKENS]]\n";

static const char wordpiece[] =
    "import os\n"
    "import re\n"
    "import unicodedata\n"
    "\n"
    "with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), \"vocab.txt\"), encoding=\"utf-8\", newline=\"\\n\") as f:\n"
    "    LINES = f.read().split(\"\\n\")[:-1]\n"
    "IDEOGRAPH = re.compile(\"[\\u3400-\\u4dbf\\u4e00-\\u9fff\\uf900-\\ufaff\\U00020000-\\U0002a6df\"\n"
    "                       \"\\U0002a700-\\U0002ceaf\\U0002f800-\\U0002fa1f]\")\n"
    "VOCAB = {line.removesuffix(\"\\r\"): i for i, line in enumerate(LINES)}\n"
    "\n"
    "\n"
    "def clean(c):\n"
    "    group = unicodedata.category(c)\n"
    "    if c in \"\\t\\n\\r\" or group[0] == \"Z\":\n"
    "        return \" \"\n"
    "    return \"\" if group in (\"Cc\", \"Cf\", \"Co\") or c == \"\\ufffd\" else f\" {c} \" if IDEOGRAPH.match(c) else c\n"
    "\n"
    "\n"
    "def split(text):\n"
    "    \"\"\"The words of a text, as BertTokenizer (uncased) divides it.\"\"\"\n"
    "    text = unicodedata.normalize(\"NFD\", \"\".join(map(clean, text)))\n"
    "    text = \"\".join(c.lower() for c in text if unicodedata.category(c) != \"Mn\")\n"
    "    return re.sub(r\"[!-/:-@[-`{-~]|[^\\x00-\\x7f]\", lambda m: f\" {m[0]} \" if m[0] < \"\\x80\" or\n"
    "                  unicodedata.category(m[0])[0] == \"P\" else m[0], text).split()\n"
    "\n"
    "\n"
    "def pieces(word):\n"
    "    \"\"\"The longest pieces of the vocabulary from left to right.\"\"\"\n"
    "    ids, at = [], 0\n"
    "    while at < len(word) <= 100:\n"
    "        end = next((e for e in range(len(word), at, -1) if (\"##\" if at else \"\") + word[at:e] in VOCAB), None)\n"
    "        if end is None:\n"
    "            break\n"
    "        ids.append(VOCAB[(\"##\" if at else \"\") + word[at:end]])\n"
    "        at = end\n"
    "    return ids if at == len(word) else [VOCAB[\"[UNK]\"]]\n"
    "\n"
    "\n"
    "def encode(text):\n"
    "    \"\"\"The ids of a text, which begin with [CLS] and end with [SEP].\"\"\"\n"
    "    ids = [i for word in split(text) for i in pieces(word)]\n"
    "    return [VOCAB[\"[CLS]\"]] + ids[:MAX_TOKENS - 2] + [VOCAB[\"[SEP]\"]]\n";

static const char batch[] =
    "\n"
    "\n"
    "def batch(texts):\n"
    "    \"\"\"The inputs of the model for a list of texts: ids, each list filled up with PAD, and the number of ids of each.\"\"\"\n"
    "    ids = [encode(text) for text in texts]\n"
    "    return [i + [PAD] * (WIDTH - len(i)) for i in ids], [len(i) for i in ids]\n";

static const char *const tokenizer[] = {[GT_TOK_WORDS] = words, [GT_TOK_BYTES] = bytes, [GT_TOK_WORDPIECE] = wordpiece};

/* ---- the constants of a run --------------------------------------------------------------------------------------------------------- */
static const struct gt_text_facts *facts_of(const struct gt_export_source *s)
{
	const struct gt_fitted *learned = s->session->data.files->learned;
	return learned && learned->text.ids ? &learned->text : NULL;
}

bool gt_token_texts(const struct gt_export_source *s)
{
	return facts_of(s) != NULL;
}

static void write_module(FILE *f, const struct gt_text_spec *t, const struct gt_tokenizer *by)
{
	int64_t width = t->max_tokens + gt_ngrams_count((int32_t)t->max_tokens, (int32_t)t->ngrams);
	fprintf(f, "\"\"\"The tokenizer of the model, \"%s\" of gtrain.cfg(5). tokens, lengths = batch([\"a text\", \"another one\"])\"\"\"\n",
	        gt_tokenizer_names[t->tokenizer]);
	fprintf(f, "%s\n\nMAX_TOKENS, PAD, WIDTH = %" PRId64 ", %d, %" PRId64 "\n", tokenizer[t->tokenizer], t->max_tokens, by->pad, width);
	if (t->tokenizer == GT_TOK_WORDS)
		fprintf(f, "NGRAMS, BUCKETS = %" PRId64 ", %" PRId64 "\n", t->ngrams, t->hash_buckets);
	fputs(batch, f);
}

/* Writes the vocabulary as a string to *out, which the caller frees. */
static enum gt_code copy_vocabulary(const struct gt_vocab *v, char **out, struct gt_err *err)
{
	char *text;
	size_t n;
	GT_TRY(gt_vocab_text(v, &text, &n, err));
	*out = strndup(text, n);
	free(text);
	return *out ? GT_OK : gt_fail_memory(err, n);
}

enum gt_code gt_token_module(const struct gt_export_source *s, char **module, char **vocab, struct gt_err *err)
{
	const struct gt_text_facts *facts = facts_of(s);
	const struct gt_text_spec *t = &s->conf->data.text;
	struct gt_tokenizer by;
	struct gt_memstream m;
	*module = *vocab = NULL;
	if (!facts)
		return GT_OK;
	GT_TRY(gt_tokenizer_init(&by, (enum gt_tokenizer_kind)t->tokenizer, facts->vocab, err));
	if (facts->vocab)
		GT_TRY(copy_vocabulary(facts->vocab, vocab, err));
	FILE *f = gt_memstream_open(&m);
	if (f)
		write_module(f, t, &by);
	enum gt_code code = f ? gt_memstream_close(f, &m, module, NULL, err) : gt_fail_memory(err, 0);
	if (code == GT_OK)
		return GT_OK;
	free(*vocab);
	*vocab = NULL;
	return code;
}
