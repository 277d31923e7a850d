/* Finds rows of the schema, and describes in words the values that they accept. */
#include "conf/schema.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

int gt_values_index(const char *values, const char *word)
{
	size_t len = strlen(word);
	const char *p = values;
	for (int i = 0;; i++) {
		size_t n = strcspn(p, "|");
		if (n == len && !memcmp(p, word, n))
			return i;
		if (!p[n])
			return -1;
		p += n + 1;
	}
}

const char *gt_values_word(const char *values, int i, char *buf, size_t size)
{
	const char *p = values;
	for (; i > 0; i--) {
		p += strcspn(p, "|");
		if (!*p++)
			return NULL;
	}
	snprintf(buf, size, "%.*s", (int)strcspn(p, "|"), p);
	return buf;
}

static bool is_integral(const struct gt_row *r)
{
	return r->type == GT_T_INT || r->type == GT_T_INT2 || r->type == GT_T_SIZE || r->type == GT_T_DIMS || r->type == GT_T_AUTO ||
	       r->type == GT_T_INTS;
}

const char *gt_row_typename(const struct gt_row *r)
{
	static const char *const names[] = {
	    [GT_T_INT] = "int",           [GT_T_FLOAT] = "float",    [GT_T_BOOL] = "bool",
	    [GT_T_STRING] = "string",     [GT_T_ENUM] = "",          [GT_T_CHOICE] = "",
	    [GT_T_AUTO] = "int|\"auto\"", [GT_T_FLOATS] = "float[]", [GT_T_STRINGS] = "string[]",
	    [GT_T_PAIR] = "float[2]",     [GT_T_DIMS] = "int[]",     [GT_T_INT2] = "int|int[2]",
	    [GT_T_SIZE] = "int|int[2]",   [GT_T_INTS] = "int[]",     [GT_T_WEIGHTS] = "float[]|\"auto\"",
	};
	return r->values ? r->values : names[r->type];
}

static const char *print_limit(double v, bool whole, char *buf, size_t size)
{
	snprintf(buf, size, whole ? "%.0f" : "%g", v);
	return buf;
}

static bool has_bounds(const struct gt_row *r)
{
	return r->min != 0 || r->max != 0;
}

const char *gt_row_range(const struct gt_row *r, char *buf, size_t size)
{
	char a[32], b[32];
	bool whole = is_integral(r);
	buf[0] = 0;
	if (r->values || r->type == GT_T_BOOL || !has_bounds(r))
		return buf;
	print_limit(r->min, whole, a, sizeof a);
	print_limit(r->max, whole, b, sizeof b);
	if (isinf(r->min) && isinf(r->max))
		return buf;
	if (isinf(r->max))
		snprintf(buf, size, r->flags & GT_R_ABOVE ? "> %s" : "%s..", a);
	else if (isinf(r->min))
		snprintf(buf, size, r->flags & GT_R_BELOW ? "< %s" : "..%s", b);
	else if (whole)
		snprintf(buf, size, "%s..%s", a, b);
	else
		snprintf(buf, size, "%c%s, %s%c", r->flags & GT_R_ABOVE ? '(' : '[', a, b, r->flags & GT_R_BELOW ? ')' : ']');
	return buf;
}

static bool has_integer_above(const struct gt_cnode *n, double max)
{
	for (int i = 0; n && i < n->nkids; i++)
		if (has_integer_above(n->kid[i], max))
			return true;
	return n && n->type == GT_C_INT && (double)n->i > max;
}

const char *gt_row_expects(const struct gt_row *r, const struct gt_cnode *got, char *buf, size_t size)
{
	static const char *const words[] = {
	    [GT_T_INT] = "an integer",
	    [GT_T_FLOAT] = "a number",
	    [GT_T_BOOL] = "true or false",
	    [GT_T_STRING] = "a string",
	    [GT_T_ENUM] = "",
	    [GT_T_CHOICE] = "",
	    [GT_T_AUTO] = "\"auto\" or an integer",
	    [GT_T_FLOATS] = "an array of numbers",
	    [GT_T_WEIGHTS] = "\"auto\" or an array of numbers",
	    [GT_T_INTS] = "an array of integers",
	    [GT_T_STRINGS] = "an array of strings",
	    [GT_T_PAIR] = "an array of two numbers",
	    [GT_T_DIMS] = "[channels, height, width] or [features], each",
	    [GT_T_INT2] = "an integer or [height, width],",
	    [GT_T_SIZE] = "an integer or [height, width],",
	    [GT_T_OTHER] = "another value",
	};
	char a[32], b[32];
	bool whole = is_integral(r);
	if (r->values) { /* writes the allowed words: "a", "b" or "c" */
		size_t n = 0;
		char word[48];
		buf[0] = 0;
		for (int i = 0; gt_values_word(r->values, i, word, sizeof word); i++) {
			bool last = !gt_values_word(r->values, i + 1, a, sizeof a);
			if (n < size)
				n += (size_t)snprintf(buf + n, size - n, "%s\"%s\"", !i ? "" : last ? " or " : ", ", word);
		}
		return buf;
	}
	print_limit(r->min, whole, a, sizeof a);
	print_limit(r->max, whole, b, sizeof b);
	const char *ge = r->flags & GT_R_ABOVE ? ">" : "≥", *le = r->flags & GT_R_BELOW ? "<" : "≤";
	if (!has_bounds(r) || r->type == GT_T_BOOL || (isinf(r->min) && isinf(r->max)))
		snprintf(buf, size, "%s", words[r->type]);
	else if (isinf(r->max) || (whole && r->max >= 65536 && !has_integer_above(got, r->max)))
		snprintf(buf, size, "%s %s %s", words[r->type], ge, a);
	else if (isinf(r->min))
		snprintf(buf, size, "%s %s %s", words[r->type], le, b);
	else
		snprintf(buf, size, "%s %s %s and %s %s", words[r->type], ge, a, le, b);
	return buf;
}

/* ---- rows ---------------------------------------------------------------------------------------------------------------- */
const struct gt_row *gt_row_find(const struct gt_row *rows, const char *path)
{
	for (; rows->path; rows++)
		if (!strcmp(rows->path, path))
			return rows;
	return NULL;
}

const struct gt_row *gt_row_when(const struct gt_row *rows, const struct gt_row *r)
{
	for (const struct gt_row *w = r; w > rows;) /* backwards, because the row of r->when is nearly always a few rows before r */
		if (!strcmp((--w)->path, r->when))
			return w;
	return gt_row_find(rows, r->when);
}

/* Returns the name of optimizer, schedule or loss number i if it has the key r, "" if it lacks the key, or NULL if i is too large. *key
 * becomes the entry for r in the keys of the optimizer or schedule, or NULL. */
static const char *find_user(const struct gt_row *r, int i, const struct gt_type_key **key)
{
	const char *name = gt_row_name(r->path);
	*key = NULL;
	if (r->loss_uses)
		return i >= GT_LOSS_COUNT ? NULL : r->loss_uses(&gt_loss_rows[i]) ? gt_loss_rows[i].word : "";
	if (r->types == GT_TYPES_ANY || i >= (r->types == GT_TYPES_SCHEDULE ? (int)GT_SCHED_COUNT : (int)GT_OPT_COUNT))
		return NULL;
	bool schedule = r->types == GT_TYPES_SCHEDULE;
	*key = gt_type_key_find(schedule ? gt_schedule_rows[i].key : gt_optimizer_rows[i].key, name);
	return !*key ? "" : schedule ? gt_schedule_rows[i].word : gt_optimizer_rows[i].word;
}

const char *gt_row_is(const struct gt_row *r, char *buf, size_t size)
{
	const struct gt_type_key *key;
	const char *word;
	size_t n = 0;
	if (r->types == GT_TYPES_ANY && !r->loss_uses)
		return r->is;
	buf[0] = 0;
	for (int i = 0; (word = find_user(r, i, &key)) && n < size; i++)
		if (*word)
			n += (size_t)snprintf(buf + n, size - n, "%s%s", n ? "|" : "", word);
	return buf;
}

const char *gt_row_default_of(const struct gt_row *r, int type)
{
	const struct gt_type_key *key = NULL;
	if (type >= 0)
		find_user(r, type, &key);
	return key && key->def ? key->def : r->def;
}

const char *gt_row_default_words(const struct gt_row *r, char *buf, size_t size)
{
	const struct gt_type_key *key;
	const char *word;
	size_t n = 0;
	for (int i = 0; (word = find_user(r, i, &key)) && n < size; i++)
		if (key && key->def)
			n += (size_t)snprintf(buf + n, size - n, "%s%s; %s: %s", n ? "" : "(", n ? "" : r->def, word, key->def);
	if (!n)
		return r->def ? r->def : "";
	snprintf(buf + n, n < size ? size - n : 0, ")");
	return buf;
}

struct gt_row gt_row_of_attr(const struct gt_attr_def *d, char def[48])
{
	static const enum gt_row_type types[] = {[GT_ATTR_INT] = GT_T_INT,
	                                         [GT_ATTR_INT2] = GT_T_INT2,
	                                         [GT_ATTR_INTS] = GT_T_INTS,
	                                         [GT_ATTR_FLOAT] = GT_T_FLOAT,
	                                         [GT_ATTR_BOOL] = GT_T_BOOL,
	                                         [GT_ATTR_ENUM] = GT_T_ENUM};
	struct gt_row r = {
	    .path = d->key, .type = types[d->type], .offset = d->offset, .min = d->min, .max = d->max, .values = d->values, .help = d->help};
	if (isnan(d->def)) {
		r.flags = GT_R_REQUIRED;
		return r;
	}
	char word[40];
	if (d->type == GT_ATTR_ENUM)
		snprintf(def, 48, "\"%s\"", gt_values_word(d->values, (int)d->def, word, sizeof word));
	else if (d->type == GT_ATTR_BOOL)
		snprintf(def, 48, "%s", d->def ? "true" : "false");
	else if (d->type == GT_ATTR_INTS)
		snprintf(def, 48, "[]");
	else if (d->type == GT_ATTR_FLOAT)
		snprintf(def, 48, d->def == floor(d->def) && fabs(d->def) < 1e15 ? "%.1f" : "%.15g", d->def);
	else
		snprintf(def, 48, "%.0f", d->def);
	r.def = def;
	return r;
}
