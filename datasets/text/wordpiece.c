/* BERT's WordPiece tokens. A word is collected in a buffer of fixed size, because words of more than 100 characters are unknown anyway. */
#include "text/text_utf8.h"
#include "text/token_sink.h"
#include <string.h>
#include <utf8proc.h>

enum { MAX_CHARS = 100, MAX_BYTES = 4 * MAX_CHARS, PREFIX = 2 };

/* Class of each ASCII character: 0: removed, ' ': separates words, '!': a punctuation word; else part of a word, and the entry is its lower
 * case. */
static const char ascii[] = "\0\0\0\0\0\0\0\0\0  \0\0 \0\0"
                            "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
                            " !!!!!!!!!!!!!!!"
                            "0123456789!!!!!!"
                            "!abcdefghijklmno"
                            "pqrstuvwxyz!!!!!"
                            "!abcdefghijklmno"
                            "pqrstuvwxyz!!!!\0";

struct word {
	struct gt_token_sink *to;
	bool more;                       /* the sink has room for more tokens */
	int chars;                       /* number of characters; above MAX_CHARS: too many */
	int bytes;                       /* bytes of these characters */
	int run;                         /* offset of the run of combining characters, which are sorted (canonical order) */
	char buf[PREFIX + MAX_BYTES + 4]; /* room for "##", and the word */
};

static void put_token(struct word *w, int32_t id)
{
	size_t n = 0;
	const char *p = w->to->hash ? gt_vocab_token(w->to->t->vocab, id, &n) : NULL;
	w->more = gt_sink_put(w->to, id, p, n) && w->more;
}

/* Writes the ids of all pieces of a word, or [UNK] if a piece is unknown. */
static void put_pieces(struct word *w)
{
	const struct gt_vocab *v = w->to->t->vocab;
	size_t longest = v->longest, n = (size_t)w->bytes;
	int32_t id[MAX_BYTES];
	int pieces = 0;
	for (size_t at = 0; at < n; pieces++) {
		/* "##" overwrites the end of the previous piece, which has already been looked up. */
		size_t prefix = at ? PREFIX : 0, len = n - at + prefix;
		char *p = w->buf + PREFIX + at - prefix;
		memcpy(p, "##", prefix);
		if (len > longest)
			len = longest;
		int32_t found = -1;
		while (len > prefix && (found = gt_words_find(&v->words, p, len)) < 0)
			len--;
		if (found < 0) {
			put_token(w, w->to->t->unk);
			return;
		}
		id[pieces] = found;
		at += len - prefix;
	}
	for (int i = 0; i < pieces; i++)
		put_token(w, id[i]);
}

static void end_word(struct word *w)
{
	if (w->chars > MAX_CHARS)
		put_token(w, w->to->t->unk);
	else if (w->chars)
		put_pieces(w);
	w->chars = w->bytes = w->run = 0;
}

/* Adds a character to the word, before the characters of the run with a higher combining class. */
static void add_char(struct word *w, int32_t c, int combining)
{
	if (w->chars == MAX_CHARS)
		w->chars++;
	if (w->chars > MAX_CHARS)
		return;
	char *text = w->buf + PREFIX, one[4];
	int bytes = (int)utf8proc_encode_char(c, (utf8proc_uint8_t *)one), at = w->bytes;
	if (combining)
		for (int i = w->run, step; i < w->bytes; i += step)
			if (utf8proc_get_property(gt_utf8_get(text + i, &step))->combining_class > combining) {
				at = i;
				break;
			}
	memmove(text + at + bytes, text + at, (size_t)(w->bytes - at));
	memcpy(text + at, one, (size_t)bytes);
	w->bytes += bytes;
	w->chars++;
	if (!combining)
		w->run = w->bytes;
}

static bool is_punctuation(int32_t c, int category)
{
	return c < 128 ? ascii[c] == '!' : category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}

/* Adds a non-ASCII character that is neither removed nor white space. */
static void add_decomposed(struct word *w, int32_t c)
{
	utf8proc_int32_t part[32]; /* the canonical decomposition of a character has at most 4 characters */
	utf8proc_ssize_t n = utf8proc_decompose_char(c, part, 32, UTF8PROC_STABLE | UTF8PROC_DECOMPOSE, NULL);
	for (utf8proc_ssize_t i = 0; i < n; i++) {
		const utf8proc_property_t *is = utf8proc_get_property(part[i]);
		if (!is->combining_class)
			w->run = w->bytes;
		if (is->category == UTF8PROC_CATEGORY_MN)
			continue;
		bool alone = is_punctuation(part[i], is->category);
		if (alone)
			end_word(w);
		add_char(w, utf8proc_tolower(part[i]), is->combining_class);
		if (alone)
			end_word(w);
	}
}

static void add_other(struct word *w, int32_t c)
{
	switch (utf8proc_category(c)) {
	case UTF8PROC_CATEGORY_CC:
	case UTF8PROC_CATEGORY_CF:
	case UTF8PROC_CATEGORY_CO:
		return;
	case UTF8PROC_CATEGORY_ZS:
	case UTF8PROC_CATEGORY_ZL:
	case UTF8PROC_CATEGORY_ZP:
		end_word(w);
		return;
	default:
		break;
	}
	if (c == 0xfffd)
		return;
	bool alone = gt_is_ideograph(c);
	if (alone)
		end_word(w);
	add_decomposed(w, c);
	if (alone)
		end_word(w);
}

void gt_wordpiece(const char *text, size_t n, struct gt_token_sink *to)
{
	struct word w = {.to = to, .more = true};
	for (size_t i = 0; i < n && w.more;) {
		uint8_t c = (uint8_t)text[i];
		if (c >= 0x80) {
			int bytes;
			int32_t code = gt_utf8_get(text + i, &bytes);
			add_other(&w, code);
			i += (size_t)bytes;
			continue;
		}
		char is = ascii[c];
		i++;
		if (is == ' ' || is == '!')
			end_word(&w);
		if (is == '!')
			w.buf[PREFIX] = (char)c;
		else if (is > ' ' && w.chars < MAX_CHARS)
			w.buf[PREFIX + w.bytes] = is;
		else {
			w.chars += is > ' ' && w.chars == MAX_CHARS;
			continue;
		}
		w.run = ++w.bytes;
		w.chars++;
		if (is == '!')
			end_word(&w);
	}
	end_word(&w);
}
