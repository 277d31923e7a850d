/* Prints the columns of a table in the report of `gtrain check`. */
#include "cli.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#define MOST 60 /* number of columns that the text shows */
#define NAME 32 /* maximum width of a name */

void gt_cli_columns_json(struct gt_json *j, const struct gt_report *r)
{
	if (!r->ncolumns)
		return;
	gt_json_array(j, "columns");
	for (int i = 0; i < r->ncolumns; i++) {
		const struct gt_check_column *c = &r->columns[i];
		gt_json_object(j, NULL);
		gt_json_string(j, "name", c->name);
		gt_json_string(j, "type", c->type);
		gt_json_string(j, "why", c->why);
		gt_json_int(j, "missing", c->missing);
		if (c->different >= 0)
			gt_json_int(j, "different", c->different);
		if (!isnan(c->mean)) {
			gt_json_double(j, "mean", c->mean, 17);
			gt_json_double(j, "std", c->std, 17);
		}
		gt_json_end(j);
	}
	gt_json_end(j);
	gt_json_uint(j, "reading_bytes", r->reading);
}

enum gt_code gt_cli_columns_text(struct gt_cli *cli, const struct gt_report *r, struct gt_err *err)
{
	struct gt_table t;
	if (!r->ncolumns)
		return GT_OK;
	gt_table_init(&t, cli->arena, "llrll");
	gt_table_head(&t, (const char *[]){"column", "type", "missing", "values", "why"});
	for (int i = 0; i < r->ncolumns && i < MOST; i++) {
		const struct gt_check_column *c = &r->columns[i];
		char name[256], missing[GT_UNITS], values[2 * GT_UNITS + 16] = "", a[GT_UNITS], b[GT_UNITS];
		if (c->different >= 0)
			snprintf(values, sizeof values, "%s different", gt_units_count(a, c->different));
		else if (!isnan(c->mean))
			snprintf(values, sizeof values, "mean %s, std %s", gt_units_number(a, c->mean), gt_units_number(b, c->std));
		gt_table_add(&t, (const char *[]){gt_text_fit(cli, c->name, NAME, name, sizeof name), c->type,
		                                  c->missing ? gt_units_count(missing, c->missing) : "", values, c->why ? c->why : "given"});
	}
	gt_out(cli, "\n");
	GT_TRY(gt_table_print(cli, &t, err));
	if (r->ncolumns > MOST)
		gt_out(cli, "and %d more\n", r->ncolumns - MOST);
	return GT_OK;
}
