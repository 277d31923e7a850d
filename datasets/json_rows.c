/* A line is scanned once. The scan finds the fields and does not change the line; then strings are unescaped in place, which never makes
 * them longer, and each field gets a terminating NUL. */
#include "json_rows.h"
#include "base/arena.h"
#include "text/text_utf8.h"
#include "text/word_set.h"
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 16, MAX_KEY = 1024 };

struct field {
	char *begin;
	uint32_t len;
	bool escaped;  /* the field is a string that contains backslash escapes */
	int64_t stamp; /* number of the scan that last found this field; if it is smaller than the number of the current scan, the line lacks
	                  the field */
};

struct gt_json_rows {
	struct gt_words keys;
	struct field *field; /* [keys.n] */
	int64_t field_cap;
	char **text;         /* [keys.n] */
	int64_t text_cap;
	uint32_t *len;       /* [keys.n] */
	int64_t len_cap;
	int64_t stamp;       /* number of scans */
	char empty[1];
};

/* The scan of one line. */
struct scan {
	struct gt_json_rows *j;
	bool learn;
	char *line, *p, *end; /* p: the next byte. The byte at end does not belong to the line, and its value (NUL or a line end) stops every
	                         scan */
	const char *path;
	int64_t number;
	int32_t expected;     /* index of the column that follows the previous member's column, which is tried first because most lines have the
	                         keys in this order */
	size_t key_len;
	char key[MAX_KEY];    /* the keys from the line's object to the current member, joined by dots */
	struct gt_err *err;
};

bool gt_json_rows_detect(const char *text, size_t n)
{
	size_t i = 1;
	while (i < n && (text[i] == ' ' || text[i] == '\t'))
		i++;
	return i < n && text[0] == '{' && (text[i] == '"' || text[i] == '}');
}

enum gt_code gt_json_rows_open(struct gt_json_rows **out, struct gt_err *err)
{
	GT_CALLOC(*out, 1, err);
	enum gt_code code = gt_words_open(&(*out)->keys, SIZE_MAX, err);
	if (code != GT_OK) {
		free(*out);
		*out = NULL;
	}
	return code;
}

void gt_json_rows_close(struct gt_json_rows *j)
{
	if (!j)
		return;
	gt_words_free(&j->keys);
	free(j->field);
	free(j->text);
	free(j->len);
	free(j);
}

/* ---- values -------------------------------------------------------------------------------------------------------------------- */
static enum gt_code fail_at(const struct scan *s, const char *why)
{
	return gt_fail(s->err, GT_EDATA, "%s:%lld: %s at byte %lld of the line", s->path, (long long)s->number, why,
	               (long long)(s->p - s->line + 1));
}

static void skip_space(struct scan *s)
{
	while (s->p < s->end && (*s->p == ' ' || *s->p == '\t' || *s->p == '\r'))
		s->p++;
}

/* Skips the character c, which must follow. */
static enum gt_code take_character(struct scan *s, char c, const char *why)
{
	skip_space(s);
	if (s->p == s->end || *s->p != c)
		return fail_at(s, why);
	s->p++;
	return GT_OK;
}

/* Reads the four digits of \uXXXX at p; -1: a digit is not hexadecimal. */
static int32_t read_hex(const char *p, const char *end)
{
	int32_t v = 0;
	for (int i = 0; i < 4; i++) {
		char c = p + i < end ? p[i] : 0;
		int digit = c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
		if (digit < 0)
			return -1;
		v = v << 4 | digit;
	}
	return v;
}

/* Reads a character \uXXXX, or a surrogate pair of two, at *p, and moves *p after it. -1: the character is invalid or NUL. */
static int32_t read_unicode(const char **p, const char *end)
{
	int32_t v = read_hex(*p + 2, end), low;
	*p += 6;
	if (v < 0xd800 || v >= 0xe000)
		return v ? v : -1;
	if (v >= 0xdc00 || end - *p < 6 || (*p)[0] != '\\' || (*p)[1] != 'u')
		return -1;
	low = read_hex(*p + 2, end);
	*p += 6;
	return low < 0xdc00 || low >= 0xe000 ? -1 : 0x10000 + ((v - 0xd800) << 10) + (low - 0xdc00);
}

static char plain_escape(char c)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *at = c ? strchr(from, c) : NULL;
	return at ? to[at - from] : 0;
}

/* Checks a string, whose quote is at s->p, and moves s->p after the string. */
static enum gt_code scan_string(struct scan *s, struct field *out)
{
	char *begin = ++s->p;
	*out = (struct field){.begin = begin};
	while (s->p < s->end && *s->p != '"') {
		if ((unsigned char)*s->p < ' ')
			return fail_at(s, *s->p ? "expected a string without control characters" : "expected text, got a NUL byte");
		if (*s->p != '\\') {
			s->p++;
			continue;
		}
		const char *p = s->p;
		char c = s->p + 1 < s->end ? s->p[1] : 0;
		out->escaped = true;
		if (c == 'u' ? read_unicode(&p, s->end) < 0 : !plain_escape(c))
			return fail_at(s, "expected an escape such as \\n or \\u00e9, got another escape");
		s->p += c == 'u' ? p - s->p : 2;
	}
	if (s->p == s->end)
		return fail_at(s, "expected a closing quote, got the end of the line");
	if (s->p - begin > GT_CSV_MAX_FIELD)
		return fail_at(s, "expected strings of at most 1 MiB, got a longer string");
	out->len = (uint32_t)(s->p++ - begin);
	return GT_OK;
}

/* Resolves the escapes of a checked string in place, and returns its new length. */
static uint32_t unescape_string(char *text, uint32_t len)
{
	char *to = text;
	for (const char *p = text, *end = text + len; p < end;) {
		if (*p != '\\') {
			*to++ = *p++;
		} else if (p[1] != 'u') {
			*to++ = plain_escape(p[1]);
			p += 2;
		} else {
			int32_t c = read_unicode(&p, end);
			if (c < 0x80)
				*to++ = (char)c;
			else
				to += gt_utf8_put(c, to);
		}
	}
	return (uint32_t)(to - text);
}

static size_t count_digits(const char *p, const char *end)
{
	size_t n = 0;
	while (p + n < end && p[n] >= '0' && p[n] <= '9')
		n++;
	return n;
}

/* Moves s->p after a number in the grammar of JSON. */
static enum gt_code scan_number(struct scan *s, struct field *out)
{
	char *p = s->p + (*s->p == '-');
	size_t n = count_digits(p, s->end);
	if (!n || (n > 1 && *p == '0'))
		return fail_at(s, "expected a value");
	p += n;
	if (p < s->end && *p == '.') {
		if (!(n = count_digits(++p, s->end)))
			return fail_at(s, "expected a value");
		p += n;
	}
	if (p < s->end && (*p | 32) == 'e') {
		p += p + 1 < s->end && (p[1] == '-' || p[1] == '+') ? 2 : 1;
		if (!(n = count_digits(p, s->end)))
			return fail_at(s, "expected a value");
		p += n;
	}
	if (p - s->p > GT_CSV_MAX_FIELD)
		return fail_at(s, "expected numbers of at most 1 MiB, got a longer number");
	*out = (struct field){.begin = s->p, .len = (uint32_t)(p - s->p)};
	s->p = p;
	return GT_OK;
}

static enum gt_code scan_word(struct scan *s, struct field *out)
{
	static const struct {
		const char *word;
		bool empty;
	} words[] = {{"true", false}, {"false", false}, {"null", true}, {"NaN", true}};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		size_t n = strlen(words[i].word);
		if ((size_t)(s->end - s->p) < n || memcmp(s->p, words[i].word, n))
			continue;
		*out = (struct field){.begin = s->p, .len = words[i].empty ? 0 : (uint32_t)n};
		s->p += n;
		return GT_OK;
	}
	return scan_number(s, out);
}

static enum gt_code scan_value(struct scan *s, int depth, struct field *out);

/* Moves s->p after an array, or after an object in an array. The field is the whole text of the array. */
static enum gt_code scan_nested(struct scan *s, int depth, struct field *out)
{
	char *begin = s->p, close = *s->p++ == '[' ? ']' : '}';
	struct field ignored;
	if (depth == MAX_DEPTH)
		return fail_at(s, "expected at most 16 levels of objects and arrays, got more");
	skip_space(s);
	bool empty = s->p < s->end && *s->p == close;
	s->p += empty;
	for (bool more = !empty; more;) {
		if (close == '}') {
			skip_space(s);
			if (s->p == s->end || *s->p != '"')
				return fail_at(s, "expected a key in quotes");
			GT_TRY(scan_string(s, &ignored));
			GT_TRY(take_character(s, ':', "expected a colon after the key"));
		}
		GT_TRY(scan_value(s, depth + 1, &ignored));
		skip_space(s);
		more = s->p < s->end && *s->p == ',';
		if (!more && (s->p == s->end || *s->p != close))
			return fail_at(s, close == ']' ? "expected a comma or the end of the array" : "expected a comma or the end of the object");
		s->p++;
	}
	if (s->p - begin > GT_CSV_MAX_FIELD)
		return fail_at(s, "expected arrays of at most 1 MiB of text, got a longer array");
	*out = (struct field){.begin = begin, .len = (uint32_t)(s->p - begin)};
	return GT_OK;
}

static enum gt_code scan_value(struct scan *s, int depth, struct field *out)
{
	skip_space(s);
	char c = s->p < s->end ? *s->p : 0;
	return c == '"' ? scan_string(s, out) : c == '[' || c == '{' ? scan_nested(s, depth, out) : scan_word(s, out);
}

/* ---- members -------------------------------------------------------------------------------------------------------------------- */
/* Appends a key in quotes at s->p, and its colon, to s->key. */
static enum gt_code scan_key(struct scan *s)
{
	struct field f;
	if (s->p == s->end || *s->p != '"')
		return fail_at(s, "expected a key in quotes");
	GT_TRY(scan_string(s, &f));
	if (f.len + s->key_len >= MAX_KEY)
		return fail_at(s, "expected keys of at most 1023 bytes, got a longer key");
	memcpy(s->key + s->key_len, f.begin, f.len);
	if (f.escaped)
		f.len = unescape_string(s->key + s->key_len, f.len);
	s->key_len += f.len;
	return take_character(s, ':', "expected a colon after the key");
}

/* Finds the column of s->key. During gt_json_rows_learn, adds a missing column. */
static enum gt_code find_column(struct scan *s, int32_t *column)
{
	struct gt_words *keys = &s->j->keys;
	int32_t k = s->expected;
	bool next = k < keys->n && gt_words_len(keys, k) == s->key_len && !memcmp(gt_words_text(keys, k), s->key, s->key_len);
	if (!next && s->learn) {
		int32_t before = keys->n;
		GT_TRY(gt_words_add(keys, s->key, s->key_len, &k, s->err));
		if (keys->n > GT_CSV_MAX_FIELDS)
			return fail_at(s, "expected at most 65536 different keys in a file, got more");
		GT_GROW(s->j->field, s->j->field_cap, keys->n, s->err);
		if (keys->n > before)
			s->j->field[k] = (struct field){0};
	} else if (!next && (k = gt_words_find(keys, s->key, s->key_len)) < 0) {
		return gt_fail(s->err, GT_EDATA, "%s: the file changed while it was read", s->path);
	}
	s->expected = k + 1;
	*column = k;
	return GT_OK;
}

static enum gt_code scan_object(struct scan *s, int depth);

/* Scans a member, whose key is at s->p. */
static enum gt_code scan_member(struct scan *s, int depth)
{
	struct field value;
	int32_t column = 0;
	GT_TRY(scan_key(s));
	skip_space(s);
	if (s->p < s->end && *s->p == '{') {
		if (s->key_len + 1 >= MAX_KEY)
			return fail_at(s, "expected keys of at most 1023 bytes, got a longer key");
		s->key[s->key_len++] = '.';
		return scan_object(s, depth + 1);
	}
	GT_TRY(scan_value(s, depth + 1, &value));
	GT_TRY(find_column(s, &column));
	struct field *f = &s->j->field[column];
	if (f->stamp == s->j->stamp)
		return fail_at(s, "expected each key once in an object, got a key twice");
	*f = value;
	f->stamp = s->j->stamp;
	return GT_OK;
}

/* Scans an object, whose brace is at s->p. The keys of its members follow s->key. */
static enum gt_code scan_object(struct scan *s, int depth)
{
	size_t key_len = s->key_len;
	if (depth == MAX_DEPTH)
		return fail_at(s, "expected at most 16 levels of objects and arrays, got more");
	s->p++;
	skip_space(s);
	bool more = s->p == s->end || *s->p != '}';
	s->p += !more;
	while (more) {
		skip_space(s);
		GT_TRY(scan_member(s, depth));
		s->key_len = key_len;
		skip_space(s);
		more = s->p < s->end && *s->p == ',';
		if (!more && (s->p == s->end || *s->p != '}'))
			return fail_at(s, "expected a comma or the end of the object");
		s->p++;
	}
	return GT_OK;
}

static enum gt_code scan_line(struct scan *s)
{
	s->j->stamp++;
	skip_space(s);
	if (s->p == s->end || *s->p != '{')
		return fail_at(s, "expected an object, as in {\"a\": 1}, because the file is JSON Lines, got something else");
	GT_TRY(scan_object(s, 0));
	skip_space(s);
	return s->p == s->end ? GT_OK : fail_at(s, "expected the end of the line after the object, got more text");
}

/* ---- records -------------------------------------------------------------------------------------------------------------------- */
enum gt_code gt_json_rows_learn(struct gt_json_rows *j, char *line, size_t n, const char *path, int64_t number, struct gt_err *err)
{
	struct scan s = {.j = j, .learn = true, .line = line, .p = line, .end = line + n, .path = path, .number = number, .err = err};
	return scan_line(&s);
}

enum gt_code gt_json_rows_names(struct gt_json_rows *j, int64_t number, struct gt_csv_record *out, struct gt_err *err)
{
	GT_GROW(j->text, j->text_cap, j->keys.n, err);
	GT_GROW(j->len, j->len_cap, j->keys.n, err);
	for (int32_t k = 0; k < j->keys.n; k++) {
		j->text[k] = j->keys.text + j->keys.offset[k];
		j->len[k] = (uint32_t)gt_words_len(&j->keys, k);
	}
	*out = (struct gt_csv_record){.n = j->keys.n, .field = j->text, .len = j->len, .line = number, .names = true};
	return GT_OK;
}

enum gt_code gt_json_rows_read(struct gt_json_rows *j, char *line, size_t n, const char *path, int64_t number, struct gt_csv_record *out,
                               struct gt_err *err)
{
	struct scan s = {.j = j, .line = line, .p = line, .end = line + n, .path = path, .number = number, .err = err};
	GT_TRY(scan_line(&s));
	for (int32_t k = 0; k < j->keys.n; k++) {
		struct field *f = &j->field[k];
		bool there = f->stamp == j->stamp;
		j->text[k] = there ? f->begin : j->empty;
		j->len[k] = !there ? 0 : f->escaped ? unescape_string(f->begin, f->len) : f->len;
		if (there)
			f->begin[j->len[k]] = 0;
	}
	*out = (struct gt_csv_record){.n = j->keys.n, .field = j->text, .len = j->len, .line = number};
	return GT_OK;
}
