#include "use/table_rows.h"
#include "base/arena.h"
#include "csv.h"
#include "table/parse_cell.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gt_table_rows {
	struct gt_table_rows_spec spec;
	struct gt_arena *arena; /* owned; memory of the names */
	struct gt_csv *csv;     /* the current file */
	struct gt_csv_record rec;
	const char *first;      /* name of the first file; NULL: none opened yet */
	const char **column_name; /* [n]: columns of the first file */
	const char **column;    /* [n]: the cells of a row */
	bool used;              /* rec contains the previous row */
	int *at;                /* [n]: index of each column's field in the current file */
	int n;
};

enum gt_code gt_table_rows_open(const struct gt_table_rows_spec *spec, struct gt_table_rows **out, struct gt_err *err)
{
	struct gt_table_rows *r = *out = calloc(1, sizeof *r);
	if (!r)
		return gt_fail_memory(err, sizeof *r);
	r->spec = *spec;
	return gt_arena_open(&r->arena, err);
}

void gt_table_rows_close(struct gt_table_rows *r)
{
	if (!r)
		return;
	gt_csv_close(r->csv);
	gt_arena_close(r->arena);
	free(r);
}

/* Copies the names of the columns of the current file to name[rec.n]: from its header or, if it has none, from the training data by
 * position. A file without a header may lack the targets. */
static enum gt_code copy_column_names(struct gt_table_rows *r, const char ***out, struct gt_err *err)
{
	const struct gt_table_facts *f = r->spec.facts;
	bool header = f->header || r->rec.names, without = !header && r->rec.n == f->ncolumns - f->ntargets;
	const char **name;
	GT_NEW(name, r->arena, r->rec.n + 1, err);
	for (int i = 0, k = 0; i < r->rec.n; i++) {
		char buf[16];
		size_t len = r->rec.len[i];
		snprintf(buf, sizeof buf, "c%d", i + 1);
		while (without && k < f->ncolumns && f->column[k].type == GT_COLUMN_TARGET)
			k++;
		const char *text = header ? gt_cell_trim(r->rec.field[i], &len) : k < f->ncolumns ? f->column[k++].name : buf;
		GT_NEW_STR(name[i], gt_arena_strdup(r->arena, *text ? text : buf), err);
	}
	*out = name;
	return GT_OK;
}

static int find_name(const char *const *name, int n, const char *wanted)
{
	for (int i = 0; i < n; i++)
		if (!strcmp(name[i], wanted))
			return i;
	return -1;
}

/* Adds the field of a requested column. */
static enum gt_code add_column(struct gt_table_rows *r, const char *const *name, const char *wanted, int *n, const char *file,
                               struct gt_err *err)
{
	int at = find_name(name, r->rec.n, wanted);
	char list[500] = "", shown[GT_CELL_SHOWN];
	if (at >= 0) {
		r->at[*n] = at;
		r->column_name[(*n)++] = name[at];
		return GT_OK;
	}
	for (int i = 0; i < r->rec.n && i < 9; i++) {
		size_t len = strlen(list);
		snprintf(list + len, sizeof list - len, i == 8 ? " and more" : "%s\"%s\"", i ? ", " : "", gt_cell_shown(name[i], shown));
	}
	return gt_fail(err, GT_EUSAGE, "--keep: expected a column of %.300s, got \"%s\"; the columns are %s", file,
	               gt_cell_shown(wanted, shown), list);
}

/* Selects the columns of the current file. */
static enum gt_code select_columns(struct gt_table_rows *r, const char *const *name, const char *file, struct gt_err *err)
{
	int n = 0, most = r->rec.n;
	for (int i = 0; i < r->spec.nkeep; i++)
		for (const char *p = r->spec.keep[i]; *p; p++)
			most += *p == ',' || p == r->spec.keep[i];
	GT_NEW(r->at, r->arena, most + 1, err);
	GT_NEW(r->column_name, r->arena, most + 1, err);
	GT_NEW(r->column, r->arena, most + 1, err);
	for (int i = 0; !r->spec.keep && i < r->rec.n; i++) {
		r->at[n] = i;
		r->column_name[n++] = name[i];
	}
	for (int i = 0; i < r->spec.nkeep; i++) {
		const char *all = r->spec.keep[i];
		if (find_name(name, r->rec.n, all) >= 0 || !strchr(all, ',')) { /* the name of a column may have commas */
			GT_TRY(add_column(r, name, all, &n, file, err));
			continue;
		}
		char *list = gt_arena_strdup(r->arena, all), *save = NULL;
		if (!list)
			return gt_fail_memory(err, strlen(all));
		for (char *word = strtok_r(list, ",", &save); word; word = strtok_r(NULL, ",", &save))
			GT_TRY(add_column(r, name, word, &n, file, err));
	}
	r->n = n;
	return GT_OK;
}

enum gt_code gt_table_rows_file(struct gt_table_rows *r, const char *path, struct gt_err *err)
{
	const char **before = r->column_name, **names = NULL;
	char delimiter = r->spec.delimiter, shown[GT_CELL_SHOWN];
	int nbefore = r->n;
	gt_csv_close(r->csv);
	r->csv = NULL;
	if (!delimiter)
		GT_TRY(gt_csv_delimiter(path, &delimiter, err));
	GT_TRY(gt_csv_open(path, delimiter, r->spec.encoding, 0, &r->csv, err));
	GT_TRY(gt_csv_next(r->csv, &r->rec, err));
	GT_TRY(copy_column_names(r, &names, err));
	GT_TRY(select_columns(r, names, gt_csv_path(r->csv), err));
	r->used = r->spec.facts->header || r->rec.names;
	for (int i = 0; r->first && (i < r->n || i < nbefore); i++)
		if (i >= r->n || i >= nbefore || strcmp(before[i], r->column_name[i]))
			return gt_fail(err, GT_EUSAGE, "--append: expected the columns of %.300s in %.300s, because the output is one table, got "
			               "%s\"%s\" as column %d; select columns with --keep", r->first, gt_csv_path(r->csv), i < r->n ? "" : "no ",
			               gt_cell_shown(i < r->n ? r->column_name[i] : before[i], shown), i + 1);
	if (!r->first)
		GT_NEW_STR(r->first, gt_arena_strdup(r->arena, gt_csv_path(r->csv)), err);
	return GT_OK;
}

enum gt_code gt_table_rows_next(struct gt_table_rows *r, struct gt_prediction *p, struct gt_err *err)
{
	if (r->used)
		GT_TRY(gt_csv_next(r->csv, &r->rec, err));
	r->used = true;
	for (int i = 0; i < r->n; i++) {
		if (r->at[i] >= r->rec.n) /* the table reader has already checked every row, so the file has changed since */
			return gt_fail(err, GT_EDATA, "%s: the file changed while it was read", gt_csv_path(r->csv));
		r->column[i] = r->rec.field[r->at[i]];
	}
	p->column = r->column;
	p->column_name = r->column_name;
	p->ncolumns = r->n;
	return GT_OK;
}
