#include "store/json_read.h"
#include "base/arena.h"
#include "base/json.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct scan {
	const unsigned char *p, *end;
	size_t nodes;
	const char *why;
};

static void space(struct scan *s)
{
	while (s->p < s->end && (*s->p == ' ' || *s->p == '\t' || *s->p == '\n' || *s->p == '\r'))
		s->p++;
}

static bool wrong(struct scan *s, const char *why)
{
	s->why = why;
	return false;
}

static bool digits(struct scan *s)
{
	const unsigned char *from = s->p;
	while (s->p < s->end && *s->p >= '0' && *s->p <= '9')
		s->p++;
	return s->p > from;
}

/* cJSON copies a number into 64 bytes. */
#define NUMBER_MAX 60

static bool number(struct scan *s)
{
	const unsigned char *from = s->p;
	if (*s->p == '-')
		s->p++;
	if (s->p < s->end && *s->p == '0')
		s->p++;
	else if (!digits(s))
		return wrong(s, "a number is malformed");
	if (s->p < s->end && *s->p == '.') {
		s->p++;
		if (!digits(s))
			return wrong(s, "a number is malformed");
	}
	if (s->p < s->end && (*s->p == 'e' || *s->p == 'E')) {
		s->p++;
		if (s->p < s->end && (*s->p == '+' || *s->p == '-'))
			s->p++;
		if (!digits(s))
			return wrong(s, "a number is malformed");
	}
	return s->p - from <= NUMBER_MAX || wrong(s, "a number is too long");
}

static int hex4(const struct scan *s, const unsigned char *p)
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

/* Behind the backslash. */
static bool escape(struct scan *s)
{
	if (s->p == s->end)
		return wrong(s, "a string is not closed");
	if (*s->p != 'u') {
		if (!strchr("\"\\/bfnrt", *s->p) || !*s->p)
			return wrong(s, "an escape is unknown");
		s->p++;
		return true;
	}
	int v = hex4(s, s->p + 1);
	if (v <= 0) /* a NUL would end the string early */
		return wrong(s, "an escape is malformed or NUL");
	s->p += 5;
	if (v < 0xD800 || v > 0xDFFF)
		return true;
	if (v > 0xDBFF || s->end - s->p < 6 || s->p[0] != '\\' || s->p[1] != 'u')
		return wrong(s, "a surrogate stands alone");
	int low = hex4(s, s->p + 2);
	if (low < 0xDC00 || low > 0xDFFF)
		return wrong(s, "a surrogate stands alone");
	s->p += 6;
	return true;
}

static bool string(struct scan *s)
{
	for (s->p++; s->p < s->end && *s->p != '"';) {
		if (*s->p < 0x20)
			return wrong(s, "a control character in a string");
		if (*s->p == '\\') {
			s->p++;
			if (!escape(s))
				return false;
			continue;
		}
		int n = gt_utf8_length(s->p, (size_t)(s->end - s->p));
		if (!n)
			return wrong(s, "a string is not UTF-8");
		s->p += n;
	}
	if (s->p == s->end)
		return wrong(s, "a string is not closed");
	s->p++;
	return true;
}

static bool word(struct scan *s, const char *w)
{
	size_t n = strlen(w);
	if ((size_t)(s->end - s->p) < n || memcmp(s->p, w, n))
		return wrong(s, "a value is malformed");
	s->p += n;
	return true;
}

static bool value(struct scan *s, int depth);

/* From behind the opening bracket to behind the closing one. */
static bool members(struct scan *s, bool object, int depth)
{
	unsigned char close = object ? '}' : ']';
	space(s);
	if (s->p < s->end && *s->p == close) {
		s->p++;
		return true;
	}
	for (;;) {
		space(s);
		if (object) {
			if (s->p == s->end || *s->p != '"')
				return wrong(s, "a key is missing");
			if (!string(s))
				return false;
			space(s);
			if (s->p == s->end || *s->p != ':')
				return wrong(s, "a colon is missing");
			s->p++;
		}
		if (!value(s, depth))
			return false;
		space(s);
		if (s->p == s->end || (*s->p != ',' && *s->p != close))
			return wrong(s, "a comma or closing bracket is missing");
		if (*s->p++ == close)
			return true;
	}
}

/* Recursion is bounded by GT_JSON_READ_DEPTH. */
static bool value(struct scan *s, int depth)
{
	space(s);
	if (s->p == s->end)
		return wrong(s, "a value is missing");
	if (!s->nodes--)
		return wrong(s, "too many values");
	switch (*s->p) {
	case '{':
	case '[':
		if (!depth)
			return wrong(s, "nested too deeply");
		s->p++;
		return members(s, s->p[-1] == '{', depth - 1);
	case '"':
		return string(s);
	case 't':
		return word(s, "true");
	case 'f':
		return word(s, "false");
	case 'n':
		return word(s, "null");
	default:
		return *s->p == '-' || (*s->p >= '0' && *s->p <= '9') ? number(s) : wrong(s, "a value is malformed");
	}
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Sorted, for a hostile file may hold a million keys. */
static enum gt_code check_keys(const cJSON *v, const char *path, struct gt_err *err)
{
	size_t n = 0;
	const cJSON *c;
	for (c = v->child; c; c = c->next) {
		if (cJSON_IsObject(c) || cJSON_IsArray(c))
			GT_TRY(check_keys(c, path, err));
		n++;
	}
	if (!cJSON_IsObject(v) || n < 2)
		return GT_OK;
	const char **keys = malloc(n * sizeof *keys);
	if (!keys)
		return gt_fail_memory(err, n * sizeof *keys);
	n = 0;
	for (c = v->child; c; c = c->next)
		keys[n++] = c->string;
	qsort(keys, n, sizeof *keys, by_text);
	enum gt_code code = GT_OK;
	for (size_t i = 1; i < n && !code; i++)
		if (!strcmp(keys[i - 1], keys[i]))
			code = gt_fail(err, GT_EDATA, "%s: the key \"%.200s\" stands twice", path, keys[i]);
	free(keys);
	return code;
}

enum gt_code gt_json_parse(const char *text, size_t n, const char *path, int depth, size_t nodes, cJSON **out, struct gt_err *err)
{
	const unsigned char *from = (const unsigned char *)text;
	struct scan s = {from, from + n, nodes, NULL};
	bool good = value(&s, depth < GT_JSON_READ_DEPTH ? depth : GT_JSON_READ_DEPTH);
	if (good) {
		space(&s);
		good = s.p == s.end || wrong(&s, "something stands behind the value");
	}
	if (!good)
		return gt_fail(err, GT_EDATA, "%s: not JSON at byte %zu: %s", path, (size_t)(s.p - from), s.why);
	cJSON *v = cJSON_ParseWithLength(text, n);
	if (!v)
		return gt_fail_memory(err, 0);
	enum gt_code code = check_keys(v, path, err);
	if (code)
		cJSON_Delete(v);
	else
		*out = v;
	return code;
}

bool gt_json_whole(const cJSON *v, int64_t *out)
{
	if (!cJSON_IsNumber(v) || !(v->valuedouble >= 0 && v->valuedouble <= 0x1p53) || v->valuedouble != floor(v->valuedouble))
		return false;
	*out = (int64_t)v->valuedouble;
	return true;
}
