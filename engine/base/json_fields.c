#include "base/json_fields.h"
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Pointer to the value of type `type` at byte `offset` of the struct `base`. */
#define AT(type, base, offset) ((type *)(void *)((char *)(base) + (offset)))

static bool has_object(const struct gt_json_field *f, void *from)
{
	return f->flag ? *AT(bool, from, f->flag) : !f->count || *AT(int64_t, from, f->count);
}

/* Returns whether a field of the struct has the value that means an absent member of the JSON object. */
static bool is_none(const struct gt_json_field *f, void *from)
{
	return f->type == GT_FIELD_WHOLE    ? *AT(int64_t, from, f->offset) == f->none
	       : f->type == GT_FIELD_BOOL   ? !*AT(bool, from, f->offset)
	       : f->type == GT_FIELD_TEXT   ? !*AT(const char *, from, f->offset)
	       : f->type == GT_FIELD_OBJECT ? !has_object(f, from)
	                                    : false;
}

static void put_digits(struct gt_json *j, const char *key, uint64_t v)
{
	char text[24];
	snprintf(text, sizeof text, "%" PRIu64, v);
	gt_json_string(j, key, text);
}

static void put_real(struct gt_json *j, const char *key, double v)
{
	if (isfinite(v))
		gt_json_double(j, key, v, 17);
	else
		gt_json_string(j, key, isnan(v) ? "nan" : v > 0 ? "inf" : "-inf");
}

static void put_object(struct gt_json *j, const struct gt_json_field *f, void *from)
{
	gt_json_object(j, f->name);
	gt_json_put_fields(j, f->fields, AT(char, from, f->offset));
	gt_json_end(j);
}

void gt_json_put_fields(struct gt_json *j, const struct gt_json_field *fields, const void *from)
{
	for (const struct gt_json_field *f = fields; f->name; f++) {
		if (f->rule == GT_FIELD_OPTIONAL && is_none(f, (void *)from))
			continue;
		if (f->type == GT_FIELD_WHOLE)
			gt_json_int(j, f->name, *AT(int64_t, from, f->offset));
		else if (f->type == GT_FIELD_DIGITS)
			put_digits(j, f->name, *AT(uint64_t, from, f->offset));
		else if (f->type == GT_FIELD_FINITE)
			gt_json_double(j, f->name, *AT(double, from, f->offset), 17);
		else if (f->type == GT_FIELD_REAL)
			put_real(j, f->name, *AT(double, from, f->offset));
		else if (f->type == GT_FIELD_BOOL)
			gt_json_bool(j, f->name, *AT(bool, from, f->offset));
		else if (f->type == GT_FIELD_TEXT)
			gt_json_string(j, f->name, *AT(const char *, from, f->offset));
		else if (f->type == GT_FIELD_WORD)
			gt_json_string(j, f->name, f->words[*AT(int, from, f->offset)]);
		else if (has_object(f, (void *)from))
			put_object(j, f, (void *)from);
		else
			gt_json_null(j, f->name);
	}
}

static bool get_digits(const char *s, uint64_t *out)
{
	char *end, again[24];
	if (!s)
		return false;
	errno = 0;
	*out = strtoull(s, &end, 10);
	snprintf(again, sizeof again, "%" PRIu64, *out);
	return !errno && !strcmp(s, again); /* prints the number again: an equal text has no sign, no spaces and no leading zeros */
}

static bool get_real(const struct gt_json_value *v, bool finite, double *out)
{
	const char *s = gt_json_text(v);
	*out = !s ? v->number : !strcmp(s, "inf") ? INFINITY : !strcmp(s, "-inf") ? -INFINITY : NAN;
	if (gt_json_is(v, GT_JSON_NUMBER))
		return isfinite(*out);
	return s && !finite && (!isnan(*out) || !strcmp(s, "nan"));
}

static bool get_word(const char *s, const struct gt_json_field *f, int *out)
{
	for (*out = 1; s && *out < f->nwords; ++*out)
		if (!strcmp(s, f->words[*out]))
			return true;
	*out = 0;
	return false;
}

static bool get_object(const struct gt_json_value *v, const struct gt_json_field *f, void *to)
{
	bool none = f->flag && f->rule == GT_FIELD_REQUIRED && gt_json_is(v, GT_JSON_NULL);
	if (f->flag)
		*AT(bool, to, f->flag) = !none;
	return none || (gt_json_is(v, GT_JSON_OBJECT) && !gt_json_get_fields(v, f->fields, AT(char, to, f->offset)));
}

static bool get_field(const struct gt_json_value *v, const struct gt_json_field *f, void *to)
{
	switch (f->type) {
	case GT_FIELD_WHOLE:
		return gt_json_whole(v, AT(int64_t, to, f->offset));
	case GT_FIELD_DIGITS:
		return get_digits(gt_json_text(v), AT(uint64_t, to, f->offset));
	case GT_FIELD_FINITE:
	case GT_FIELD_REAL:
		return get_real(v, f->type == GT_FIELD_FINITE, AT(double, to, f->offset));
	case GT_FIELD_BOOL:
		return (*AT(bool, to, f->offset) = gt_json_is(v, GT_JSON_TRUE)) || gt_json_is(v, GT_JSON_FALSE);
	case GT_FIELD_TEXT:
		return (*AT(const char *, to, f->offset) = gt_json_text(v)) != NULL;
	case GT_FIELD_WORD:
		return get_word(gt_json_text(v), f, AT(int, to, f->offset));
	default:
		return get_object(v, f, to);
	}
}

const char *gt_json_get_fields(const struct gt_json_value *o, const struct gt_json_field *fields, void *to)
{
	for (const struct gt_json_field *f = fields; f->name; f++) {
		const struct gt_json_value *v = gt_json_member(o, f->name);
		if (v ? !get_field(v, f, to) : f->rule == GT_FIELD_REQUIRED)
			return f->name;
		if (!v && f->type == GT_FIELD_WHOLE)
			*AT(int64_t, to, f->offset) = f->none;
	}
	return NULL;
}
