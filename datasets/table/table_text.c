/* Writes the types of columns as text of a config. */
#include "base/memstream.h"
#include "table/cell.h"
#include "table/table_facts.h"
#include <stdio.h>

/* Writes a string of libconfig. The names of columns have no control characters. */
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

/* Says what the type comes from, for a comment after a column. */
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
