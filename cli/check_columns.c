/* Prints the columns of a table, and what texts have, in the report of `gtrain check`. */
#include "cli.h"
#include "gtrain_report.h"
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

/* ---- texts ------------------------------------------------------------------------------------------------------------------------ */
void gt_cli_texts_json(struct gt_json *j, const struct gt_report *r)
{
	const struct gt_check_texts *t = &r->texts;
	if (r->nlengths)
		gt_json_array(j, "lengths");
	for (int i = 0; i < r->nlengths; i++)
		gt_json_int(j, NULL, r->lengths[i]);
	if (r->nlengths)
		gt_json_end(j);
	if (!t->tokenizer)
		return;
	gt_json_object(j, "texts");
	gt_json_string(j, "tokenizer", t->tokenizer);
	gt_json_int(j, "vocabulary", t->vocabulary);
	gt_json_int(j, "tokens", t->ids);
	gt_json_int(j, "max_tokens", t->max_tokens);
	gt_json_double(j, "mean_tokens", t->mean, 6);
	gt_json_double(j, "unknown", t->unknown, 6);
	gt_json_double(j, "truncated", t->truncated, 6);
	gt_json_uint(j, "reading_bytes", r->reading);
	gt_json_end(j);
}

void gt_cli_texts_facts(struct gt_table *table, const struct gt_report *r)
{
	const struct gt_check_texts *t = &r->texts;
	char text[256], a[GT_UNITS], b[GT_UNITS], c[GT_UNITS];
	bool grams = t->vocabulary && t->ids > t->vocabulary;
	int n;
	if (t->tokenizer) {
		snprintf(text, sizeof text, "%s; %s tokens in the vocabulary%s%s", t->tokenizer,
		         gt_units_count(a, t->vocabulary ? t->vocabulary : t->ids), grams ? ", and those of n-grams: " : "",
		         grams ? gt_units_count(b, t->ids - t->vocabulary) : "");
		gt_table_add(table, (const char *[]){"tokens", text});
		snprintf(text, sizeof text, "%s tokens on average; %s%% of the tokens are unknown, %s%% of the texts are cut off at %" PRId64,
		         gt_units_number(a, t->mean), gt_units_number(b, 100 * t->unknown), gt_units_number(c, 100 * t->truncated), t->max_tokens);
		gt_table_add(table, (const char *[]){"texts", text});
	}
	n = r->nlengths ? snprintf(text, sizeof text, "batches are padded to ") : 0;
	for (int i = 0; i < r->nlengths && n < (int)sizeof text; i++)
		n += snprintf(text + n, sizeof text - (size_t)n, "%s%" PRId64, !i ? "" : i == r->nlengths - 1 ? " or " : ", ", r->lengths[i]);
	if (r->nlengths && n < (int)sizeof text)
		snprintf(text + n, sizeof text - (size_t)n, " tokens");
	if (r->nlengths)
		gt_table_add(table, (const char *[]){"lengths", text});
}
