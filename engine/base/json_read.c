#include "base/json_read.h"
#include "base/json.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct scan {
	const unsigned char *p, *end;
	struct gt_arena *arena;
	size_t nodes;    /* number of values that the parser may still create */
	const char *why; /* reason of a failure; NULL: out of memory */
};

static void skip_space(struct scan *s)
{
	while (s->p < s->end && (*s->p == ' ' || *s->p == '\t' || *s->p == '\n' || *s->p == '\r'))
		s->p++;
}

static bool set_error(struct scan *s, const char *why)
{
	s->why = why;
	return false;
}

static bool skip_digits(struct scan *s)
{
	const unsigned char *from = s->p;
	while (s->p < s->end && *s->p >= '0' && *s->p <= '9')
		s->p++;
	return s->p > from;
}

#define NUMBER_MAX 60

static bool parse_number(struct scan *s, double *out)
{
	const unsigned char *from = s->p;
	char text[NUMBER_MAX + 1] = "";
	if (*s->p == '-')
		s->p++;
	if (s->p < s->end && *s->p == '0')
		s->p++;
	else if (!skip_digits(s))
		return set_error(s, "malformed number");
	if (s->p < s->end && *s->p == '.') {
		s->p++;
		if (!skip_digits(s))
			return set_error(s, "malformed number");
	}
	if (s->p < s->end && (*s->p == 'e' || *s->p == 'E')) {
		s->p++;
		if (s->p < s->end && (*s->p == '+' || *s->p == '-'))
			s->p++;
		if (!skip_digits(s))
			return set_error(s, "malformed number");
	}
	if (s->p - from > NUMBER_MAX)
		return set_error(s, "number with too many digits");
	memcpy(text, from, (size_t)(s->p - from)); /* strtod needs a terminated string; the numeric locale is always "C" */
	*out = strtod(text, NULL);
	return true;
}

static int parse_hex4(const struct scan *s, const unsigned char *p)
{
	int v = 0;
	if (s->end - p < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		int c = p[i], d = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
		if (d < 0)
			return -1;
		v = v << 4 | d;
	}
	return v;
}

static char *put_utf8(char *to, int v)
{
	int n = v < 0x80 ? 0 : v < 0x800 ? 1 : v < 0x10000 ? 2 : 3;
	static const unsigned char first[] = {0, 0xC0, 0xE0, 0xF0};
	*to++ = (char)(first[n] | v >> 6 * n);
	while (n--)
		*to++ = (char)(0x80 | (v >> 6 * n & 0x3F));
	return to;
}

/* Decodes an escape sequence to *to; s->p is after the backslash. The function writes at most as many bytes as it reads. */
static bool parse_escape(struct scan *s, char **to)
{
	static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
	if (s->p == s->end)
		return set_error(s, "string without a closing quote");
	if (*s->p != 'u') {
		const char *at = *s->p ? strchr(names, *s->p) : NULL;
		if (!at)
			return set_error(s, "unknown escape sequence in a string");
		*(*to)++ = values[at - names];
		s->p++;
		return true;
	}
	int v = parse_hex4(s, s->p + 1);
	if (v <= 0) /* rejects \u0000, because a NUL would end the C string early */
		return set_error(s, "malformed escape sequence, or an escaped NUL, in a string");
	s->p += 5;
	if (v >= 0xD800 && v <= 0xDFFF) {
		int low = v <= 0xDBFF && s->end - s->p >= 6 && s->p[0] == '\\' && s->p[1] == 'u' ? parse_hex4(s, s->p + 2) : -1;
		if (low < 0xDC00 || low > 0xDFFF)
			return set_error(s, "half of a surrogate pair in a string");
		s->p += 6;
		v = 0x10000 + ((v - 0xD800) << 10) + (low - 0xDC00);
	}
	*to = put_utf8(*to, v);
	return true;
}

static bool parse_string(struct scan *s, const char **out)
{
	const unsigned char *close = ++s->p;
	while (close < s->end && *close != '"')
		close += *close == '\\' && close + 1 < s->end ? 2 : 1;
	char *to = gt_arena_alloc(s->arena, (size_t)(close - s->p) + 1, 1);
	*out = to;
	if (!to)
		return set_error(s, NULL);
	while (s->p < s->end && *s->p != '"') {
		if (*s->p < 0x20)
			return set_error(s, "control character in a string");
		if (*s->p == '\\') {
			s->p++;
			if (!parse_escape(s, &to))
				return false;
			continue;
		}
		int n = gt_utf8_length(s->p, (size_t)(s->end - s->p));
		if (!n)
			return set_error(s, "invalid UTF-8 in a string");
		memcpy(to, s->p, (size_t)n);
		to += n, s->p += n;
	}
	if (s->p == s->end)
		return set_error(s, "string without a closing quote");
	s->p++;
	return true;
}

static bool parse_literal(struct scan *s, const char *w)
{
	size_t n = strlen(w);
	if ((size_t)(s->end - s->p) < n || memcmp(s->p, w, n))
		return set_error(s, "malformed value");
	s->p += n;
	return true;
}

static int compare_keys(const void *a, const void *b)
{
	return strcmp((*(const struct gt_json_value *const *)a)->key, (*(const struct gt_json_value *const *)b)->key);
}

/* Checks for duplicate keys by sorting, because a malicious file may have a million keys. */
static bool check_unique_keys(struct scan *s, const struct gt_json_value *object, size_t n)
{
	if (n < 2)
		return true;
	const struct gt_json_value **v = malloc(n * sizeof *v);
	if (!v)
		return set_error(s, NULL);
	size_t k = 0;
	for (const struct gt_json_value *c = object->child; c; c = c->next)
		v[k++] = c;
	qsort(v, n, sizeof *v, compare_keys);
	bool good = true;
	for (size_t i = 1; i < n && good; i++)
		if (!strcmp(v[i - 1]->key, v[i]->key))
			good = set_error(s, gt_arena_printf(s->arena, "the key \"%.200s\" appears twice", v[i]->key));
	free(v);
	return good;
}

static struct gt_json_value *parse_value(struct scan *s, int depth);

/* Parses the members of an object or array, from the first byte after the opening bracket up to the closing bracket. */
static bool parse_members(struct scan *s, struct gt_json_value *of, int depth)
{
	bool object = of->type == GT_JSON_OBJECT;
	unsigned char close = object ? '}' : ']';
	struct gt_json_value **next = &of->child;
	skip_space(s);
	if (s->p < s->end && *s->p == close) {
		s->p++;
		return true;
	}
	for (size_t n = 1;; n++) {
		const char *key = NULL;
		skip_space(s);
		if (object) {
			if (s->p == s->end || *s->p != '"')
				return set_error(s, "expected a key");
			if (!parse_string(s, &key))
				return false;
			skip_space(s);
			if (s->p == s->end || *s->p != ':')
				return set_error(s, "expected a colon");
			s->p++;
		}
		if (!(*next = parse_value(s, depth)))
			return false;
		(*next)->key = key;
		next = &(*next)->next;
		skip_space(s);
		if (s->p == s->end || (*s->p != ',' && *s->p != close))
			return set_error(s, "expected a comma or a closing bracket");
		if (*s->p++ == close)
			return !object || check_unique_keys(s, of, n);
	}
}

/* Returns the type of a JSON value that begins with the character c. */
static enum gt_json_type detect_type(unsigned char c)
{
	static const char first[] = "nft\"[{";
	static const enum gt_json_type types[] = {GT_JSON_NULL, GT_JSON_FALSE, GT_JSON_TRUE, GT_JSON_STRING, GT_JSON_ARRAY, GT_JSON_OBJECT};
	const char *at = c ? strchr(first, c) : NULL;
	return at ? types[at - first] : GT_JSON_NUMBER;
}

/* Parses a value. Returns NULL after a failure, with the reason in s->why. GT_JSON_READ_DEPTH limits the recursion. */
static struct gt_json_value *parse_value(struct scan *s, int depth)
{
	struct gt_json_value *v;
	bool good = false;
	skip_space(s);
	if (s->p == s->end)
		return set_error(s, "expected a value"), NULL;
	if (!s->nodes--)
		return set_error(s, "too many values"), NULL;
	if (!(v = gt_arena_alloc(s->arena, 1, sizeof *v)))
		return set_error(s, NULL), NULL;
	v->type = detect_type(*s->p);
	switch (v->type) {
	case GT_JSON_OBJECT:
	case GT_JSON_ARRAY:
		s->p += depth > 0;
		good = depth ? parse_members(s, v, depth - 1) : set_error(s, "values are nested too deeply");
		break;
	case GT_JSON_STRING:
		good = parse_string(s, &v->text);
		break;
	case GT_JSON_TRUE:
		good = parse_literal(s, "true");
		break;
	case GT_JSON_FALSE:
		good = parse_literal(s, "false");
		break;
	case GT_JSON_NULL:
		good = parse_literal(s, "null");
		break;
	case GT_JSON_NUMBER:
		good = *s->p == '-' || (*s->p >= '0' && *s->p <= '9') ? parse_number(s, &v->number) : set_error(s, "malformed value");
		break;
	}
	return good ? v : NULL;
}

enum gt_code gt_json_parse(const char *text, size_t n, const char *path, int depth, size_t nodes, struct gt_arena *a,
                           const struct gt_json_value **out, struct gt_err *err)
{
	const unsigned char *from = (const unsigned char *)text;
	struct scan s = {from, from + n, a, nodes, NULL};
	struct gt_json_value *v = parse_value(&s, depth < GT_JSON_READ_DEPTH ? depth : GT_JSON_READ_DEPTH);
	*out = NULL;
	if (v) {
		skip_space(&s);
		if (s.p < s.end) {
			s.why = "expected the end of the text";
			v = NULL;
		}
	}
	if (!v && !s.why)
		return gt_fail_memory(err, 0);
	if (!v)
		return gt_fail(err, GT_EDATA, "%s: invalid JSON at byte %zu: %s", path, (size_t)(s.p - from), s.why);
	*out = v;
	return GT_OK;
}

const struct gt_json_value *gt_json_member(const struct gt_json_value *v, const char *key)
{
	const struct gt_json_value *c = gt_json_is(v, GT_JSON_OBJECT) ? v->child : NULL;
	while (c && strcmp(c->key, key))
		c = c->next;
	return c;
}

bool gt_json_is(const struct gt_json_value *v, enum gt_json_type type)
{
	return v && v->type == type;
}

const char *gt_json_text(const struct gt_json_value *v)
{
	return v ? v->text : NULL;
}

double gt_json_num(const struct gt_json_value *v, const char *key)
{
	const struct gt_json_value *m = gt_json_member(v, key);
	return gt_json_is(m, GT_JSON_NUMBER) ? m->number : NAN;
}

int64_t gt_json_count(const struct gt_json_value *v, const char *key)
{
	int64_t n;
	return gt_json_whole(gt_json_member(v, key), &n) ? n : -1;
}

const char *gt_json_str(const struct gt_json_value *v, const char *key)
{
	const char *text = gt_json_text(gt_json_member(v, key));
	return text ? text : "";
}

bool gt_json_true(const struct gt_json_value *v, const char *key)
{
	return gt_json_is(gt_json_member(v, key), GT_JSON_TRUE);
}

const struct gt_json_value *gt_json_first(const struct gt_json_value *v, const char *key)
{
	const struct gt_json_value *m = gt_json_member(v, key);
	return m ? m->child : NULL;
}

bool gt_json_whole(const struct gt_json_value *v, int64_t *out)
{
	if (!gt_json_is(v, GT_JSON_NUMBER) || !(v->number >= 0 && v->number <= 0x1p53) || v->number != floor(v->number))
		return false;
	*out = (int64_t)v->number;
	return true;
}
