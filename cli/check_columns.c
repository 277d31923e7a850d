/* Prints the columns of a table, and what texts have, in the report of `gtrain check`. */
#include "cli.h"
#include "base/json_read.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#define MOST 60 /* number of columns that the text shows */
#define NAME 32 /* maximum width of a name */

enum gt_code gt_cli_columns_text(struct gt_cli *cli, const struct gt_json_value *f, struct gt_err *err)
{
	struct gt_table t;
	int n = 0;
	if (!gt_json_first(f, "columns"))
		return GT_OK;
	gt_table_init(&t, cli->arena, "llrll");
	gt_table_head(&t, (const char *[]){"column", "type", "missing", "values", "why"});
	for (const struct gt_json_value *c = gt_json_first(f, "columns"); c; c = c->next) {
		char name[256], missing[GT_UNITS] = "", values[2 * GT_UNITS + 16] = "", a[GT_UNITS], b[GT_UNITS];
		const char *why = gt_json_str(c, "why");
		if (n++ >= MOST)
			continue;
		if (gt_json_member(c, "different"))
			snprintf(values, sizeof values, "%s different", gt_units_count(a, gt_json_count(c, "different")));
		else if (gt_json_member(c, "mean"))
			snprintf(values, sizeof values, "mean %s, std %s", gt_units_number(a, gt_json_num(c, "mean")),
			         gt_units_number(b, gt_json_num(c, "std")));
		if (gt_json_count(c, "missing"))
			gt_units_count(missing, gt_json_count(c, "missing"));
		gt_table_add(&t, (const char *[]){gt_text_fit(cli, gt_json_str(c, "name"), NAME, name, sizeof name), gt_json_str(c, "type"),
		                                  missing, values, *why ? why : "given"});
	}
	gt_out(cli, "\n");
	GT_TRY(gt_table_print(cli, &t, err));
	if (n > MOST)
		gt_out(cli, "and %d more\n", n - MOST);
	return GT_OK;
}

void gt_cli_texts_facts(struct gt_table *table, const struct gt_json_value *f)
{
	const struct gt_json_value *t = gt_json_member(f, "texts"), *first = gt_json_first(f, "lengths");
	char text[256], a[GT_UNITS], b[GT_UNITS], c[GT_UNITS];
	int n;
	if (t) {
		int64_t vocabulary = gt_json_count(t, "vocabulary"), tokens = gt_json_count(t, "tokens");
		bool grams = vocabulary && tokens > vocabulary;
		snprintf(text, sizeof text, "%s; %s tokens in the vocabulary%s%s", gt_json_str(t, "tokenizer"),
		         gt_units_count(a, vocabulary ? vocabulary : tokens), grams ? ", and those of n-grams: " : "",
		         grams ? gt_units_count(b, tokens - vocabulary) : "");
		gt_table_add(table, (const char *[]){"tokens", text});
		snprintf(text, sizeof text, "%s tokens on average; %s%% of the tokens are unknown, %s%% of the texts are cut off at %" PRId64,
		         gt_units_number(a, gt_json_num(t, "mean_tokens")), gt_units_number(b, 100 * gt_json_num(t, "unknown")),
		         gt_units_number(c, 100 * gt_json_num(t, "truncated")), gt_json_count(t, "max_tokens"));
		gt_table_add(table, (const char *[]){"texts", text});
	}
	if (!first)
		return;
	n = snprintf(text, sizeof text, "batches are padded to ");
	for (const struct gt_json_value *l = first; l && n < (int)sizeof text; l = l->next)
		n += snprintf(text + n, sizeof text - (size_t)n, "%s%.0f%s", l == first ? "" : l->next ? ", " : " or ", l->number,
		              l->next ? "" : " tokens");
	gt_table_add(table, (const char *[]){"lengths", text});
}
