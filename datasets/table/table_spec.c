#include "table/table_spec.h"
#include "table/parse_cell.h"
#include <string.h>

const char *const gt_column_type_names[] = {
#define GT_X(name, word) word,
    GT_COLUMN_TYPES(GT_X)
#undef GT_X
};

static const char *const usual_na[] = {"", "?", "NA", "nan", "NaN", "null"};

const char *const *gt_table_na_words(const struct gt_table_spec *s, int *n)
{
	*n = s->na ? s->nna : (int)(sizeof usual_na / sizeof *usual_na);
	return s->na ? s->na : usual_na;
}

bool gt_table_is_na(const struct gt_table_spec *s, const char *text)
{
	int n;
	const char *const *na = gt_table_na_words(s, &n);
	for (int i = 0; i < n; i++)
		if (!strcmp(na[i], text))
			return true;
	return false;
}

bool gt_table_na_begins(const struct gt_table_spec *s, char c)
{
	int n;
	const char *const *na = gt_table_na_words(s, &n);
	for (int i = 0; i < n; i++)
		if (na[i][0] == c)
			return true;
	return false;
}

static bool is_listed(const char *const *list, int n, const char *name)
{
	for (int i = 0; i < n; i++)
		if (!strcmp(list[i], name))
			return true;
	return false;
}

enum gt_column_type gt_table_given_type(const struct gt_table_spec *s, const char *name)
{
	for (int i = 0; i < s->ncolumns; i++)
		if (s->column[i].type != GT_COLUMN_AUTO && !strcmp(s->column[i].name, name))
			return s->column[i].type;
	return is_listed(s->target, s->ntarget, name)   ? GT_COLUMN_TARGET
	       : is_listed(s->ignore, s->nignore, name) ? GT_COLUMN_IGNORE
	                                             : GT_COLUMN_AUTO;
}

enum gt_date_order gt_table_given_order(const struct gt_table_spec *s, const char *name)
{
	for (int i = 0; i < s->ncolumns; i++)
		if (!strcmp(s->column[i].name, name))
			return s->column[i].order;
	return GT_DATE_AUTO;
}

static enum gt_code fail_duplicate(const char *key, const char *name, struct gt_err *err)
{
	char shown[GT_CELL_SHOWN];
	return gt_fail(err, GT_ECONFIG, "%s: the column \"%s\" appears twice; remove one of them", key, gt_cell_shown(name, shown));
}

enum gt_code gt_table_spec_check(const struct gt_table_spec *s, struct gt_err *err)
{
	char shown[GT_CELL_SHOWN];
	if (s->delimiter && strchr("\"\r\n", s->delimiter))
		return gt_fail(err, GT_ECONFIG, "data.delimiter: expected a character other than a quote and a line break");
	if (s->delimiter & 0x80)
		return gt_fail(err, GT_ECONFIG, "data.delimiter: expected an ASCII character");
	for (int i = 1; i < s->ntarget; i++)
		if (is_listed(s->target, i, s->target[i]))
			return fail_duplicate("data.target", s->target[i], err);
	for (int i = 1; i < s->nignore; i++)
		if (is_listed(s->ignore, i, s->ignore[i]))
			return fail_duplicate("data.ignore", s->ignore[i], err);
	for (int i = 0; i < s->nignore; i++)
		if (is_listed(s->target, s->ntarget, s->ignore[i]))
			return gt_fail(err, GT_ECONFIG, "data.ignore: the column \"%s\" is also in data.target; remove it from one of them",
			               gt_cell_shown(s->ignore[i], shown));
	for (int i = 0; i < s->ncolumns; i++) {
		const struct gt_column_spec *c = &s->column[i];
		for (int k = 0; k < i; k++)
			if (!strcmp(s->column[k].name, c->name))
				return fail_duplicate("data.columns", c->name, err);
		if (c->order != GT_DATE_AUTO && c->type != GT_COLUMN_DATE)
			return gt_fail(err, GT_ECONFIG, "data.columns: the column \"%s\" has the key order, which only dates have; remove the key, or "
			               "write the type \"date\"", gt_cell_shown(c->name, shown));
		if (c->type != GT_COLUMN_AUTO && c->type != GT_COLUMN_TARGET && is_listed(s->target, s->ntarget, c->name))
			return gt_fail(err, GT_ECONFIG, "data.target: the column \"%s\" has the type \"%s\" in data.columns; remove one of them",
			               gt_cell_shown(c->name, shown), gt_column_type_names[c->type]);
		if (c->type != GT_COLUMN_AUTO && c->type != GT_COLUMN_IGNORE && is_listed(s->ignore, s->nignore, c->name))
			return gt_fail(err, GT_ECONFIG, "data.ignore: the column \"%s\" has the type \"%s\" in data.columns; remove one of them",
			               gt_cell_shown(c->name, shown), gt_column_type_names[c->type]);
	}
	return GT_OK;
}
