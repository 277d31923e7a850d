/* The second step of GT_TOK_WORDS: folded text becomes words. */
#include "text/text_utf8.h"
#include "text/token_sink.h"
#include <string.h>
#include <utf8proc.h>

enum kind { SPACE, WORD, ALONE, ATTACHED, SYMBOL }; /* kinds of characters */

/* Class of each ASCII character: ' ': separates words, '!': punctuation, '0': digit, 'a': letter (folded text has no capitals). */
static const char ascii[] = "                "
                            "                "
                            " !!!!!!!!!!!!!!!"
                            "0000000000!!!!!!"
                            "!aaaaaaaaaaaaaaa"
                            "aaaaaaaaaaa!!!!!"
                            "!aaaaaaaaaaaaaaa"
                            "aaaaaaaaaaa!!!! ";

/* Returns the kind of the character at p, and its length. */
static enum kind kind_of(const char *p, int *bytes)
{
	int32_t c = gt_utf8_get(p, bytes);
	if (c < 0x80)
		return ascii[c] == ' ' ? SPACE : ascii[c] == '!' ? SYMBOL : WORD;
	if (gt_is_ideograph(c) || (c >= 0x3041 && c <= 0x309f && c != 0x3099 && c != 0x309a))
		return ALONE;
	if (c == 0x200c || c == 0x200d || (c >= 0x1f3fb && c <= 0x1f3ff) || (c >= 0xe0020 && c <= 0xe007f))
		return ATTACHED;
	switch (utf8proc_category(c)) {
	case UTF8PROC_CATEGORY_LU:
	case UTF8PROC_CATEGORY_LL:
	case UTF8PROC_CATEGORY_LT:
	case UTF8PROC_CATEGORY_LM:
	case UTF8PROC_CATEGORY_LO:
	case UTF8PROC_CATEGORY_ND:
	case UTF8PROC_CATEGORY_NL:
	case UTF8PROC_CATEGORY_NO:
		return WORD;
	case UTF8PROC_CATEGORY_MN:
	case UTF8PROC_CATEGORY_MC:
	case UTF8PROC_CATEGORY_ME:
		return ATTACHED;
	case UTF8PROC_CATEGORY_ZS:
	case UTF8PROC_CATEGORY_ZL:
	case UTF8PROC_CATEGORY_ZP:
	case UTF8PROC_CATEGORY_CC:
		return SPACE;
	default:
		return SYMBOL;
	}
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Returns the end of the word that begins at p, and the number of apostrophes in it. */
static const char *find_word_end(const char *p, const char *end, int *apostrophes)
{
	const char *begin = p;
	int bytes;
	*apostrophes = 0;
	for (;;) {
		while (p < end && (uint8_t)*p < 0x80 && ascii[(uint8_t)*p] >= '0')
			p++;
		if (p == end)
			return p;
		if ((uint8_t)*p >= 0x80) {
			enum kind kind = kind_of(p, &bytes);
			if (kind != WORD && kind != ATTACHED)
				return p;
			p += bytes;
		} else if (*p == '\'' && p + 1 < end && kind_of(p + 1, &bytes) == WORD) {
			++*apostrophes;
			p++;
		} else if ((*p == '.' || *p == ',') && p > begin && is_digit(p[-1]) && p + 1 < end && is_digit(p[1]))
			p++;
		else
			return p;
	}
}

static bool is_regional_indicator(int32_t c)
{
	return c >= 0x1f1e6 && c <= 0x1f1ff;
}

/* Returns the end of the token that begins with the non-ASCII symbol at p: the token includes marks, modifiers and joined symbols. */
static const char *find_symbol_end(const char *p, const char *end)
{
	int bytes;
	bool flag = is_regional_indicator(gt_utf8_get(p, &bytes)), joined = false;
	p += bytes;
	if (flag && p < end && is_regional_indicator(gt_utf8_get(p, &bytes)))
		p += bytes;
	while (p < end && (uint8_t)*p >= 0x80) {
		enum kind kind = kind_of(p, &bytes);
		if (kind != ATTACHED && !(joined && kind == SYMBOL))
			break;
		joined = kind == ATTACHED && gt_utf8_get(p, &bytes) == 0x200d;
		p += bytes;
	}
	return p;
}

/* Returns the length of the contraction at the end of a word; 0: no contraction, or the whole word is one. */
static size_t contraction_length(const char *p, size_t n)
{
	static const char *const known[] = {"n't", "'s", "'m", "'d", "'ll", "'re", "'ve"};
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		size_t len = strlen(known[i]);
		if (n > len && !memcmp(p + n - len, known[i], len))
			return len;
	}
	return 0;
}

/* Splits up to two contractions off the end of a word, and calls fn with each part. */
static bool put_split_contractions(const char *p, size_t n, bool (*fn)(void *user, const char *p, size_t n), void *user)
{
	size_t first = contraction_length(p, n), second = first ? contraction_length(p, n - first) : 0;
	size_t stem = n - first - second;
	return fn(user, p, stem) && (!second || fn(user, p + stem, second)) && (!first || fn(user, p + stem + second, first));
}

enum gt_code gt_words_each(const char *text, size_t n, struct gt_text_scratch *s, bool (*fn)(void *user, const char *p, size_t n),
                           void *user, struct gt_err *err)
{
	const char *p;
	size_t len;
	GT_TRY(gt_words_fold(text, n, s, &p, &len, err));
	bool more = true;
	for (const char *end = p + len, *stop; p < end && more; p = stop) {
		int bytes, apostrophes;
		if (*p == ' ') {
			stop = p + 1;
			continue;
		}
		switch (kind_of(p, &bytes)) {
		case SPACE:
			stop = p + bytes;
			break;
		case WORD:
			stop = find_word_end(p, end, &apostrophes);
			more = apostrophes ? put_split_contractions(p, (size_t)(stop - p), fn, user) : fn(user, p, (size_t)(stop - p));
			break;
		case ALONE:
			stop = p + bytes;
			more = fn(user, p, (size_t)bytes);
			break;
		default:
			if ((uint8_t)*p >= 0x80) {
				stop = find_symbol_end(p, end);
				more = fn(user, p, (size_t)(stop - p));
				break;
			}
			for (stop = p + 1; stop < end && *stop == *p;)
				stop++;
			more = fn(user, p, stop - p < 3 ? (size_t)(stop - p) : 3);
		}
	}
	return GT_OK;
}
