#include "base/arena.h"
#include "base/json_fields.h"
#include "table/parse_cell.h"
#include "table/table_facts.h"
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_COLUMNS = 65536, PART_NUMBERS = 3 * GT_DATE_PARTS }; /* mean, std and median of each part of a date */

#define COLUMN(member) offsetof(struct gt_table_fact, member)

static const char *const tasks[] = {NULL, "classes", "numbers"}; /* by enum gt_table_task */

static const struct gt_json_field table_fields[] = {
    {"header", GT_FIELD_BOOL, offsetof(struct gt_table_facts, header), GT_FIELD_ADDED},
    {"task", GT_FIELD_WORD, offsetof(struct gt_table_facts, task), .words = tasks, .nwords = 3},
    {NULL}};

/* A column has the members `head`, `numbers` (has_numbers), date members, `flags`, and words (has_words), in this order. */
static const struct gt_json_field head[] = {
    {"name", GT_FIELD_TEXT, COLUMN(name)},
    {"type", GT_FIELD_WORD, COLUMN(type), .words = gt_column_type_names, .nwords = GT_COLUMN_TYPE_COUNT},
    {NULL}};
static const struct gt_json_field numbers[] = {
    {"mean", GT_FIELD_FINITE, COLUMN(mean)},
    {"std", GT_FIELD_FINITE, COLUMN(std)},
    {"median", GT_FIELD_FINITE, COLUMN(median)},
    {NULL}};
static const struct gt_json_field date[] = {
    {"order", GT_FIELD_WORD, COLUMN(order), .words = gt_date_order_names, .nwords = GT_DATE_ORDERS},
    {NULL}};
static const struct gt_json_field flags[] = {
    {"missing", GT_FIELD_BOOL, COLUMN(na), GT_FIELD_OPTIONAL},
    {"whole", GT_FIELD_BOOL, COLUMN(whole), GT_FIELD_OPTIONAL},
    {NULL}};

static bool has_numbers(const struct gt_table_facts *f, const struct gt_table_fact *c)
{
	return c->type == GT_COLUMN_CONTINUOUS || (c->type == GT_COLUMN_TARGET && f->task == GT_TASK_NUMBERS);
}

static bool has_words(const struct gt_table_facts *f, const struct gt_table_fact *c)
{
	return c->type == GT_COLUMN_CATEGORICAL || (c->type == GT_COLUMN_TARGET && f->task == GT_TASK_CLASSES);
}

void gt_table_json_put(struct gt_json *j, const char *key, const struct gt_table_facts *f)
{
	gt_json_object(j, key);
	gt_json_put_fields(j, table_fields, f);
	gt_json_array(j, "columns");
	for (int k = 0; k < f->ncolumns; k++) {
		const struct gt_table_fact *c = &f->column[k];
		gt_json_object(j, NULL);
		gt_json_put_fields(j, head, c);
		if (has_numbers(f, c))
			gt_json_put_fields(j, numbers, c);
		if (c->type == GT_COLUMN_DATE) {
			gt_json_put_fields(j, date, c);
			gt_json_array(j, "parts");
			for (int i = 0; i < PART_NUMBERS; i++)
				gt_json_double(j, NULL, (&c->part[0].mean)[i], 17);
			gt_json_end(j);
		}
		gt_json_put_fields(j, flags, c);
		if (has_words(f, c)) {
			gt_json_array(j, "words");
			for (int32_t i = 0; i < c->words.n; i++)
				gt_json_string(j, NULL, gt_words_text(&c->words, i));
			gt_json_end(j);
		}
		gt_json_end(j);
	}
	gt_json_end(j);
	gt_json_end(j);
}

static enum gt_code fail_damaged_column(const char *path, int k, const char *why, struct gt_err *err)
{
	return gt_fail(err, GT_EDATA, "%.400s: column %d of the table: expected %s", path, k + 1, why);
}

/* Returns whether a text is a whole number as "%lld" writes it. */
static bool is_canonical(const char *s)
{
	double v;
	char buf[32];
	if (gt_cell_number(s, strlen(s), &v) != GT_CELL_NUMBER || !gt_cell_is_whole(v))
		return false;
	snprintf(buf, sizeof buf, "%lld", (long long)v);
	return !strcmp(buf, s);
}

static enum gt_code get_words(const struct gt_json_value *list, const char *path, int k, struct gt_table_fact *c, struct gt_err *err)
{
	int32_t code, n = 0;
	if (!gt_json_is(list, GT_JSON_ARRAY))
		return fail_damaged_column(path, k, "a list \"words\"", err);
	for (const struct gt_json_value *e = list->child; e; e = e->next, n++) {
		const char *word = gt_json_text(e);
		if (!word)
			return fail_damaged_column(path, k, "strings in the list \"words\"", err);
		if (n == GT_TABLE_MAX_WORDS)
			return fail_damaged_column(path, k, "at most 1048576 words", err);
		GT_TRY(gt_words_add(&c->words, word, strlen(word), &code, err));
		if (code != n)
			return fail_damaged_column(path, k, "words that are all different", err);
		if (c->whole && !is_canonical(word))
			return fail_damaged_column(path, k, "words that are whole numbers", err);
	}
	return GT_OK;
}

static bool get_date(const struct gt_json_value *v, struct gt_table_fact *c)
{
	const struct gt_json_value *list = gt_json_member(v, "parts"), *e = gt_json_is(list, GT_JSON_ARRAY) ? list->child : NULL;
	if (gt_json_get_fields(v, date, c))
		return false;
	for (int i = 0; i < PART_NUMBERS; i++, e = e->next) {
		if (!gt_json_is(e, GT_JSON_NUMBER))
			return false;
		(&c->part[0].mean)[i] = e->number;
	}
	return !e;
}

static enum gt_code get_column(const struct gt_json_value *v, const char *path, int k, struct gt_table_facts *f, struct gt_err *err)
{
	struct gt_table_fact *c = &f->column[k];
	struct gt_table_fact read = {0}; /* the name belongs to the parsed JSON */
	const char *bad = gt_json_get_fields(v, head, &read);
	if ((bad && !strcmp(bad, "name")) || !*read.name)
		return fail_damaged_column(path, k, "a member \"name\"", err);
	if (bad)
		return fail_damaged_column(path, k, "a member \"type\": continuous, categorical, date, text, ignore or target", err);
	*c = read;
	if (!(c->name = strdup(read.name)))
		return gt_fail_memory(err, strlen(read.name));
	bad = gt_json_get_fields(v, flags, c);
	if ((bad && !strcmp(bad, "missing")) || (c->na && !gt_table_values(c)))
		return fail_damaged_column(path, k, "\"missing\" to be true or false, only in a continuous column or a column of dates", err);
	if (c->type == GT_COLUMN_DATE && !get_date(v, c))
		return fail_damaged_column(path, k, "\"order\" to be ymd, dmy or mdy, and \"parts\" to be 27 numbers", err);
	if (bad || (c->whole && !has_words(f, c)))
		return fail_damaged_column(path, k, "\"whole\" to be true or false, only in a column of words", err);
	if (has_numbers(f, c) && gt_json_get_fields(v, numbers, c))
		return fail_damaged_column(path, k, "the numbers \"mean\", \"std\" and \"median\"", err);
	return has_words(f, c) ? get_words(gt_json_member(v, "words"), path, k, c, err) : GT_OK;
}

static enum gt_code parse_table(const struct gt_json_value *v, const char *path, struct gt_table_facts *out, struct gt_err *err)
{
	const struct gt_json_value *columns = gt_json_member(v, "columns");
	struct gt_words names = {0};
	int64_t n = 0;
	int32_t code;
	const char *bad = gt_json_get_fields(v, table_fields, out);
	if (bad && !strcmp(bad, "task"))
		return gt_fail(err, GT_EDATA, "%.400s: expected the table to have a member \"task\": classes or numbers", path);
	if (bad)
		return gt_fail(err, GT_EDATA, "%.400s: expected \"header\" of the table to be true or false", path);
	if (!gt_json_is(columns, GT_JSON_ARRAY))
		return gt_fail(err, GT_EDATA, "%.400s: expected the table to have a list \"columns\"", path);
	for (const struct gt_json_value *e = columns->child; e; e = e->next)
		n++;
	if (n < 1 || n > MAX_COLUMNS)
		return gt_fail(err, GT_EDATA, "%.400s: expected a table of 1 to %d columns, got %lld", path, MAX_COLUMNS, (long long)n);
	GT_CALLOC(out->column, n, err);
	out->ncolumns = (int)n;
	enum gt_code rc = GT_OK;
	int k = 0;
	for (const struct gt_json_value *e = columns->child; e && rc == GT_OK; e = e->next, k++) {
		rc = get_column(e, path, k, out, err);
		if (rc == GT_OK)
			rc = gt_words_add(&names, out->column[k].name, strlen(out->column[k].name), &code, err);
		if (rc == GT_OK && code != k)
			rc = fail_damaged_column(path, k, "a name that no other column has", err);
	}
	gt_words_free(&names);
	return rc == GT_OK ? gt_table_facts_finish(out, path, err) : rc;
}

enum gt_code gt_table_json_get(const struct gt_json_value *v, const char *path, struct gt_table_facts *out, struct gt_err *err)
{
	*out = (struct gt_table_facts){0};
	enum gt_code code = parse_table(v, path, out, err);
	if (code == GT_ECONFIG) /* the facts have no target, which is an error of the checkpoint, not of a config */
		code = gt_fail(err, GT_EDATA, "%.400s: expected one target column with classes, or target columns with numbers", path);
	if (code != GT_OK)
		gt_table_facts_free(out);
	return code;
}

static enum gt_code fail_difference(const char *where, const char *path, const char *column, const char *what, struct gt_err *err)
{
	char shown[GT_CELL_SHOWN];
	return gt_fail(err, GT_EDATA, "%.300s: column \"%s\": expected %s of the checkpoint %.300s, got a different value",
	               where, gt_cell_shown(column, shown), what, path);
}

enum gt_code gt_table_json_compare(const struct gt_table_facts *ckpt, const struct gt_table_facts *now, const char *where, const char *path,
                                   struct gt_err *err)
{
	if (ckpt->ncolumns != now->ncolumns || ckpt->task != now->task)
		return gt_fail(err, GT_EDATA, "%.300s: expected %d columns and %s as targets, as in the checkpoint %.300s, got %d columns and %s",
		               where,
		               ckpt->ncolumns, tasks[ckpt->task], path, now->ncolumns, tasks[now->task]);
	for (int k = 0; k < now->ncolumns; k++) {
		const struct gt_table_fact *a = &ckpt->column[k], *b = &now->column[k];
		if (strcmp(a->name, b->name))
			return fail_difference(where, path, b->name, "the name", err);
		if (a->type != b->type)
			return fail_difference(where, path, b->name, "the type", err);
		if (has_numbers(now, b) && (a->mean != b->mean || a->std != b->std || a->median != b->median || a->na != b->na))
			return fail_difference(where, path, b->name, "the statistics", err);
		if (a->order != b->order || memcmp(a->part, b->part, sizeof a->part))
			return fail_difference(where, path, b->name, "the dates", err);
		bool same = a->words.n == b->words.n && a->whole == b->whole;
		for (int32_t i = 0; i < b->words.n && same; i++)
			same = !strcmp(gt_words_text(&a->words, i), gt_words_text(&b->words, i));
		if (!same)
			return fail_difference(where, path, b->name, "the words", err);
	}
	return GT_OK;
}
