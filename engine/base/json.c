#include "base/json.h"
#include "base/arena.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put_bytes(struct gt_json *j, const char *s, size_t n)
{
	if (j->no_memory)
		return;
	int64_t need = (int64_t)(j->len + n) + 1;
	char *text = need > j->cap ? gt_grown(j->text, &j->cap, need, 1) : j->text;
	if (!text) {
		j->no_memory = true;
		return;
	}
	j->text = text;
	memcpy(j->text + j->len, s, n);
	j->len += n;
	j->text[j->len] = 0;
}

int gt_utf8_length(const unsigned char *s, size_t left)
{
	unsigned c = left ? s[0] : 0x80, low = 0x80, high = 0xBF;
	int n = c < 0x80 ? 1 : c >= 0xC2 && c <= 0xDF ? 2 : c >= 0xE0 && c <= 0xEF ? 3 : c >= 0xF0 && c <= 0xF4 ? 4 : 0;
	if (n < 2)
		return n;
	low = c == 0xE0 ? 0xA0 : c == 0xF0 ? 0x90 : low;
	high = c == 0xED ? 0x9F : c == 0xF4 ? 0x8F : high;
	if (left < (size_t)n || s[1] < low || s[1] > high)
		return 0;
	for (int i = 2; i < n; i++)
		if ((s[i] & 0xC0) != 0x80)
			return 0;
	return n;
}

bool gt_utf8_valid(const char *s)
{
	size_t left = strlen(s);
	for (int n; left; s += n, left -= (size_t)n)
		if (!(n = gt_utf8_length((const unsigned char *)s, left)))
			return false;
	return true;
}

/* Returns whether s begins with a character from U+0080 to U+009F, which terminals can interpret as control characters. */
static bool is_c1_control(const unsigned char *s)
{
	return s[0] == 0xC2 && s[1] >= 0x80 && s[1] <= 0x9F;
}

static void put_string(struct gt_json *j, const char *value)
{
	const unsigned char *s = (const unsigned char *)value, *end = s + strlen(value);
	put_bytes(j, "\"", 1);
	while (*s) {
		const unsigned char *plain = s;
		int n;
		while (*s >= 0x20 && *s != '"' && *s != '\\' && *s != 0x7F && !is_c1_control(s) && (n = gt_utf8_length(s, (size_t)(end - s))) > 0)
			s += n;
		put_bytes(j, (const char *)plain, (size_t)(s - plain));
		if (!*s)
			break;
		char esc[8];
		switch (*s) {
		case '"':
		case '\\':
			snprintf(esc, sizeof esc, "\\%c", *s);
			break;
		case '\n':
			strcpy(esc, "\\n");
			break;
		case '\t':
			strcpy(esc, "\\t");
			break;
		case '\r':
			strcpy(esc, "\\r");
			break;
		default:
			snprintf(esc, sizeof esc, "\\u%04x", *s < 0x80 ? *s : is_c1_control(s) ? s[1] : 0xFFFDu);
			s += is_c1_control(s);
		}
		put_bytes(j, esc, strlen(esc));
		s++;
	}
	put_bytes(j, "\"", 1);
}

/* Writes the text before a value: comma and key. */
static void begin_value(struct gt_json *j, const char *key)
{
	bool in_object = j->depth > 0 && j->close[j->depth - 1] == '}';
	if (in_object != !!key || (!j->depth && j->len))
		j->misused = true;
	if (j->comma)
		put_bytes(j, ",", 1);
	j->comma = true;
	if (key) {
		put_string(j, key);
		put_bytes(j, ":", 1);
	}
}

static void begin_container(struct gt_json *j, const char *key, char open, char close)
{
	begin_value(j, key);
	put_bytes(j, &open, 1);
	if (j->depth == GT_JSON_DEPTH) {
		j->misused = true;
		return;
	}
	j->close[j->depth++] = close;
	j->comma = false;
}

void gt_json_object(struct gt_json *j, const char *key)
{
	begin_container(j, key, '{', '}');
}

void gt_json_array(struct gt_json *j, const char *key)
{
	begin_container(j, key, '[', ']');
}

void gt_json_end(struct gt_json *j)
{
	if (!j->depth) {
		j->misused = true;
		return;
	}
	put_bytes(j, &j->close[--j->depth], 1);
	j->comma = true;
}

void gt_json_string(struct gt_json *j, const char *key, const char *value)
{
	begin_value(j, key);
	if (value)
		put_string(j, value);
	else
		put_bytes(j, "null", 4);
}

void gt_json_int(struct gt_json *j, const char *key, int64_t value)
{
	char buf[24];
	begin_value(j, key);
	put_bytes(j, buf, (size_t)snprintf(buf, sizeof buf, "%" PRId64, value));
}

void gt_json_uint(struct gt_json *j, const char *key, uint64_t value)
{
	char buf[24];
	begin_value(j, key);
	put_bytes(j, buf, (size_t)snprintf(buf, sizeof buf, "%" PRIu64, value));
}

void gt_json_bool(struct gt_json *j, const char *key, bool value)
{
	begin_value(j, key);
	put_bytes(j, value ? "true" : "false", value ? 4 : 5);
}

void gt_json_null(struct gt_json *j, const char *key)
{
	gt_json_string(j, key, NULL);
}

void gt_json_double(struct gt_json *j, const char *key, double value, int digits)
{
	char buf[32];
	if (!isfinite(value)) {
		gt_json_null(j, key);
		return;
	}
	int n = snprintf(buf, sizeof buf, "%.*g", j->exact || digits > 17 ? 17 : digits < 1 ? 1 : digits, value);
	for (int i = 0; i < n; i++)
		if (buf[i] == ',') /* snprintf writes a comma instead of the point in some locales */
			buf[i] = '.';
	begin_value(j, key);
	put_bytes(j, buf, (size_t)n);
}

void gt_json_write(struct gt_json *j, const struct gt_json_item *item)
{
	for (const struct gt_json_item *i = item; i->kind; i++) {
		if (i->kind == 's')
			gt_json_string(j, i->key, i->text);
		else if (i->kind == 'i')
			gt_json_int(j, i->key, i->whole);
		else if (i->kind == 'u')
			gt_json_uint(j, i->key, i->bytes);
		else if (i->kind == 'b')
			gt_json_bool(j, i->key, i->is);
		else
			gt_json_double(j, i->key, i->number, i->digits);
	}
}

void gt_json_numbers(struct gt_json *j, const char *key, const double *v, int n, int digits)
{
	gt_json_array(j, key);
	for (int i = 0; i < n; i++)
		gt_json_double(j, NULL, v[i], digits);
	gt_json_end(j);
}

enum gt_code gt_json_finish(struct gt_json *j, const char **text, struct gt_err *err)
{
	if (j->no_memory)
		return gt_fail_memory(err, 0);
	if (j->misused || j->depth || !j->len)
		return gt_fail(err, GT_EINTERNAL, "JSON writer: objects and arrays are not closed in the order in which they were opened");
	*text = j->text;
	return GT_OK;
}

void gt_json_line(struct gt_json *j)
{
	put_bytes(j, "\n", 1);
}

void gt_json_reset(struct gt_json *j)
{
	j->len = 0;
	j->depth = 0;
	j->comma = j->no_memory = j->misused = false;
	if (j->text)
		j->text[0] = 0;
}

void gt_json_free(struct gt_json *j)
{
	free(j->text);
	*j = (struct gt_json){0};
}
