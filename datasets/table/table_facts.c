#include "table/table_facts.h"
#include "base/arena.h"
#include "base/memstream.h"
#include "table/parse_cell.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void gt_table_facts_free(struct gt_table_facts *f)
{
	if (!f)
		return;
	for (int k = 0; k < f->ncolumns; k++) {
		free(f->column[k].name);
		free(f->column[k].own_why);
		gt_words_free(&f->column[k].words);
	}
	free(f->column);
	free(f->cardinality);
	*f = (struct gt_table_facts){0};
}

int32_t gt_table_lookup(const struct gt_table_fact *f, const struct gt_notation *notation, const char *text, size_t len)
{
	double v;
	char buf[32];
	if (!f->whole)
		return gt_words_find(&f->words, text, len);
	if (gt_cell_parse(notation, text, len, &v) != GT_CELL_NUMBER || !gt_cell_is_whole(v))
		return -1;
	return gt_words_find(&f->words, buf, (size_t)snprintf(buf, sizeof buf, "%lld", (long long)v));
}

/* Returns the index of the i-th column (from 0) of a type; -1: there are fewer columns of the type. */
static int nth_of_type(const struct gt_table_facts *f, enum gt_column_type type, int i)
{
	for (int k = 0; k < f->ncolumns; k++)
		if (f->column[k].type == type && !i--)
			return k;
	return -1;
}

int gt_table_values(const struct gt_table_fact *f)
{
	return f->type == GT_COLUMN_CONTINUOUS ? 1 : f->type == GT_COLUMN_DATE ? GT_DATE_PARTS : 0;
}

int gt_table_code_column(const struct gt_table_facts *f, int i)
{
	return nth_of_type(f, GT_COLUMN_CATEGORICAL, i);
}

int gt_table_target_column(const struct gt_table_facts *f, int i)
{
	return nth_of_type(f, GT_COLUMN_TARGET, i);
}

int64_t gt_table_cardinality(const struct gt_table_facts *f, int column)
{
	const struct gt_table_fact *c = &f->column[column];
	return c->words.n + (c->type == GT_COLUMN_CATEGORICAL ? GT_CODE_OF_WORDS : 0);
}

/* Returns the length of a text in bytes as a JSON string followed by a comma. */
static uint64_t json_string_bytes(const char *s)
{
	uint64_t n = 3;
	for (; *s; s++)
		n += (uint8_t)*s < 0x20 || *s == 0x7f ? 6 : *s == '"' || *s == '\\' ? 2 : 1;
	return n;
}

static enum gt_code check_column(const struct gt_table_facts *f, int k, const char *where, struct gt_err *err)
{
	const struct gt_table_fact *c = &f->column[k];
	char shown[GT_CELL_SHOWN];
	bool numbers = c->type == GT_COLUMN_CONTINUOUS || (c->type == GT_COLUMN_TARGET && f->task == GT_TASK_NUMBERS);
	bool classes = c->type == GT_COLUMN_TARGET && f->task == GT_TASK_CLASSES;
	if (numbers && !(isfinite(c->mean) && isfinite(c->median) && isfinite(c->std) && c->std >= 0))
		return gt_fail(err, GT_EDATA, "%.400s: column \"%s\": expected a mean, a median and a standard deviation", where,
		               gt_cell_shown(c->name, shown));
	for (int i = 0; i < GT_DATE_PARTS && c->type == GT_COLUMN_DATE; i++)
		if (!(isfinite(c->part[i].mean) && isfinite(c->part[i].median) && isfinite(c->part[i].std) && c->part[i].std >= 0))
			return gt_fail(err, GT_EDATA, "%.400s: column \"%s\": expected a mean, a median and a standard deviation of the part \"%s\"",
			               where, gt_cell_shown(c->name, shown), gt_date_part_names[i]);
	if (classes && c->words.n < 2)
		return gt_fail(err, GT_EDATA, "%.400s: expected at least two classes in the target column \"%s\", got %d", where,
		               gt_cell_shown(c->name, shown), (int)c->words.n);
	if (c->words.n > GT_TABLE_MAX_WORDS)
		return gt_fail(err, GT_EDATA, "%.400s: column \"%s\": expected at most %d different values, got %d", where,
		               gt_cell_shown(c->name, shown), GT_TABLE_MAX_WORDS, (int)c->words.n);
	return GT_OK;
}

/* Fails because no column is an input, and names the first ignored column. If all words of the column differ, they may be image paths. */
static enum gt_code fail_no_inputs(const struct gt_table_facts *f, const char *where, struct gt_err *err)
{
	char shown[GT_CELL_SHOWN], ignored[256] = "";
	for (int k = 0; k < f->ncolumns && !*ignored; k++) {
		const struct gt_table_fact *c = &f->column[k];
		if (c->type == GT_COLUMN_IGNORE && c->why && !c->given)
			snprintf(ignored, sizeof ignored, " (\"%s\" is ignored: %s)%s", gt_cell_shown(c->name, shown), c->why,
			         !strncmp(c->why, "words that are all", 18) ? "; if it lists files of images, write data.format = \"list\"" : "");
	}
	return gt_fail(err, GT_EDATA, "%.400s: expected at least one column that the model can learn from, got none%s", where, ignored);
}

enum gt_code gt_table_facts_finish(struct gt_table_facts *f, const char *where, struct gt_err *err)
{
	uint64_t bytes = 0;
	f->nvalues = f->ncodes = f->ntargets = f->ntexts = 0;
	for (int k = 0; k < f->ncolumns; k++) {
		const struct gt_table_fact *c = &f->column[k];
		GT_TRY(check_column(f, k, where, err));
		f->nvalues += gt_table_values(c) + c->na;
		f->ncodes += c->type == GT_COLUMN_CATEGORICAL;
		f->ntargets += c->type == GT_COLUMN_TARGET;
		f->ntexts += c->type == GT_COLUMN_TEXT;
		bytes += json_string_bytes(c->name) + 200;
		for (int32_t i = 0; i < c->words.n; i++)
			bytes += json_string_bytes(gt_words_text(&c->words, i));
	}
	free(f->cardinality);
	GT_CALLOC(f->cardinality, f->ncodes, err);
	for (int i = 0; i < f->ncodes; i++)
		f->cardinality[i] = gt_table_cardinality(f, gt_table_code_column(f, i));
	if (!f->ntargets)
		return gt_fail(err, GT_ECONFIG, "data.target: expected a column of %.400s, got none", where);
	if (f->ntargets > 1 && f->task == GT_TASK_CLASSES)
		return gt_fail(err, GT_ECONFIG, "data.target: expected one column of classes, got %d columns", f->ntargets);
	if (!f->nvalues && !f->ncodes && !f->ntexts)
		return fail_no_inputs(f, where, err);
	if (bytes > GT_TABLE_MAX_TEXT)
		return gt_fail(err, GT_EDATA,
		               "%.400s: the different words of the table's columns need %llu bytes in a checkpoint, more than the %llu allowed; "
		               "give columns of many words the type \"ignore\"", where, (unsigned long long)bytes,
		               (unsigned long long)GT_TABLE_MAX_TEXT);
	return GT_OK;
}

/* ---- text of a config ------------------------------------------------------------------------------------------------------------- */
/* Writes a libconfig string. Column names have no control characters. */
static void put_string(FILE *f, const char *s)
{
	fputc('"', f);
	for (; *s; s++)
		if (*s == '"' || *s == '\\')
			fprintf(f, "\\%c", *s);
		else
			fputc(*s, f);
	fputc('"', f);
}

/* Writes the reason for the type as a comment after a column. */
static void put_comment(FILE *f, const struct gt_table_facts *facts, const struct gt_table_fact *c)
{
	bool numbers = c->type == GT_COLUMN_CONTINUOUS || (c->type == GT_COLUMN_TARGET && facts->task == GT_TASK_NUMBERS);
	const char *comma = "";
	fprintf(f, " //");
	if (c->why && !c->given) {
		fprintf(f, " %s", c->why);
		comma = ";";
	}
	if (numbers) {
		fprintf(f, "%s mean %.6g, standard deviation %.6g", comma, c->mean, c->std);
		comma = ",";
	} else if (c->type == GT_COLUMN_CATEGORICAL || c->type == GT_COLUMN_TARGET) {
		fprintf(f, "%s %d %s", comma, (int)c->words.n, c->type == GT_COLUMN_TARGET ? "classes" : "different values");
		comma = ",";
	}
	if (c->missing)
		fprintf(f, "%s %lld missing", comma, (long long)c->missing);
	fputc('\n', f);
}

enum gt_code gt_table_columns_text(const struct gt_table_facts *f, const char *indent, char **text, struct gt_err *err)
{
	struct gt_memstream m;
	FILE *to = gt_memstream_open(&m);
	*text = NULL;
	if (!to)
		return gt_fail(err, GT_EFAIL, "out of memory");
	fprintf(to, "%scolumns = (\n", indent);
	for (int k = 0; k < f->ncolumns; k++) {
		const struct gt_table_fact *c = &f->column[k];
		fprintf(to, "%s\t{ name = ", indent);
		put_string(to, c->name);
		fprintf(to, "; type = \"%s\";", gt_column_type_names[c->type]);
		if (c->type == GT_COLUMN_DATE && c->order != GT_DATE_YMD)
			fprintf(to, " order = \"%s\";", gt_date_order_names[c->order]);
		fprintf(to, " }%s", k + 1 < f->ncolumns ? "," : "");
		put_comment(to, f, c);
	}
	fprintf(to, "%s);\n", indent);
	return gt_memstream_close(to, &m, text, NULL, err);
}
