#include "table/table_reader.h"
#include "base/arena.h"
#include "skipped.h"
#include "table/table_survey.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool gt_table_few_odd(int64_t good, int64_t odd)
{
	return odd * 99 <= good || (odd == 1 && good >= 20);
}

/* Sets how->orders to those in which the most cells are dates. Returns the number of these cells. */
static int64_t choose_orders(struct gt_table_reading *how)
{
	int64_t most = 0;
	for (int o = 1; o < GT_DATE_ORDERS; o++)
		most = how->dates[o] > most ? how->dates[o] : most;
	how->orders = 0;
	for (int o = 1; o < GT_DATE_ORDERS; o++)
		how->orders |= most && how->dates[o] == most ? 1u << o : 0;
	return most;
}

/* Checks whether the words of a column are dates. For most columns, the first cell decides. */
static enum gt_code find_dates(struct gt_table_reader *r, int k, struct gt_err *err)
{
	struct gt_table_column *c = &r->table->column[k];
	struct gt_table_reading *how = &r->reading[k];
	int64_t dates = 0, present = 0;
	uint8_t *orders;
	bool any = false;
	GT_CALLOC(orders, c->words.n, err);
	for (int32_t i = 0; i < c->words.n && (any || i < 100); i++) {
		orders[i] = (uint8_t)gt_date_orders(gt_words_text(&c->words, i), gt_words_len(&c->words, i));
		any |= orders[i] != 0;
	}
	for (int64_t i = 0; any && i < r->table->n; i++) {
		unsigned o = c->code[i] >= 0 ? orders[c->code[i]] : 0;
		present += c->code[i] >= 0;
		dates += o != 0;
		for (int x = 1; x < GT_DATE_ORDERS; x++)
			how->dates[x] += o >> x & 1;
	}
	free(orders);
	int64_t most = choose_orders(how);
	if (!dates || !gt_table_few_odd(most, present - most))
		return GT_OK;
	c->orders = how->orders;
	how->date = true;
	how->store = GT_STORE_TEXT; /* the column is stored as texts when the files are read again */
	if (present == most)
		return GT_OK;
	how->numbers = most;
	how->words = present - most;
	how->odd = how->tolerant = true;
	c->store = GT_STORE_SKIP;
	r->again = true;
	return GT_OK;
}

/* Returns whether a column has few distinct numbers, all whole. Such numbers are categories, so other cells are categories, too. */
static bool has_few_numbers(const struct gt_table_reader *r, int k)
{
	const struct gt_table_column *c = &r->table->column[k];
	bool numbers = c->store == GT_STORE_NUMBERS;
	struct gt_few few = {0};
	double v;
	for (int64_t i = 0; i < (numbers ? r->table->n : c->words.n) && few.n <= GT_TABLE_FEW; i++) {
		const char *word = numbers ? NULL : gt_words_text(&c->words, (int32_t)i);
		if (numbers ? isnan(v = c->number[i]) : gt_cell_parse(&r->spec->notation, word, strlen(word), &v) != GT_CELL_NUMBER)
			continue;
		if (!gt_cell_is_whole(v))
			return false;
		gt_few_add(&few, v);
	}
	return few.n <= GT_TABLE_FEW;
}

/* Counts the cells of each kind in a column that was read as words, unless a cell is a code such as 007. */
static enum gt_code count_words(const struct gt_table_reader *r, int k, struct gt_err *err)
{
	const struct gt_table_column *c = &r->table->column[k];
	struct gt_table_reading *how = &r->reading[k];
	enum { WORD, LIKE, NUMBER };
	char *kind;
	bool any = false, code = false;
	GT_CALLOC(kind, c->words.n, err);
	for (int32_t i = 0; i < c->words.n; i++) {
		double v;
		size_t len = gt_words_len(&c->words, i);
		const char *text = gt_words_text(&c->words, i);
		enum gt_number_kind cell = gt_cell_parse(&r->spec->notation, text, len, &v);
		bool like = cell == GT_CELL_RANGE || gt_cell_almost(&r->spec->notation, text, len);
		kind[i] = cell == GT_CELL_NUMBER ? NUMBER : like ? LIKE : WORD;
		any |= kind[i] != WORD;
		code |= cell == GT_CELL_CODE;
	}
	for (int64_t i = 0; any && !code && i < r->table->n; i++) {
		if (c->code[i] < 0)
			continue;
		how->numbers += kind[c->code[i]] == NUMBER;
		how->like += kind[c->code[i]] == LIKE;
		how->words += kind[c->code[i]] == WORD;
	}
	free(kind);
	return GT_OK;
}

enum gt_code gt_table_settle_column(struct gt_table_reader *r, int k, struct gt_err *err)
{
	struct gt_table_column *c = &r->table->column[k];
	struct gt_table_reading *how = &r->reading[k];
	if (how->date) {
		if (!r->facts)
			choose_orders(how);
		c->orders = how->orders;
		return GT_OK;
	}
	how->open = false;
	if (c->store == GT_STORE_WORDS)
		GT_TRY(count_words(r, k, err));
	if (c->store == GT_STORE_WORDS && !how->numbers && !how->like && how->inferred)
		return find_dates(r, k, err);
	if (!how->words && !how->like)
		return GT_OK;
	bool numbers = !how->words || gt_table_few_odd(how->numbers + how->like, how->words);
	bool tolerant = numbers && gt_table_few_odd(how->numbers, how->words + how->like);
	if (tolerant && has_few_numbers(r, k)) {
		numbers = how->target; /* in a target of few numbers, a word is a wrong cell rather than a further class */
		tolerant = false;
	}
	if (!numbers && c->store == GT_STORE_WORDS)
		return GT_OK;
	how->odd = numbers;
	how->tolerant = tolerant;
	c->store = GT_STORE_SKIP;
	how->store = numbers ? GT_STORE_NUMBERS : GT_STORE_WORDS;
	r->again = true;
	return GT_OK;
}

const char *gt_table_no_number(const struct gt_notation *n, const char *text, size_t len, enum gt_number_kind cell)
{
	return cell == GT_CELL_RANGE           ? "expected a number of a magnitude of at most 3.4e38"
	       : gt_cell_is_infinite(text, len) ? "expected a finite number"
	       : !gt_cell_almost(n, text, len)  ? "expected a number"
	       : n->decimal != ',' && !n->thousands
	           ? "expected a number with a decimal point and without commas"
	           : n->decimal != ',' ? "expected a number with a decimal point and the separator data.thousands"
	                               : n->thousands ? "expected a number with a decimal comma and the separator data.thousands"
	                                              : "expected a number with a decimal comma and without a thousands separator";
}

/* Returns advice for the user about odd cells; the text begins with a comma. */
static const char *suggest_remedy(const struct gt_table_reader *r, int k, const char *text)
{
	const struct gt_table_reading *how = &r->reading[k];
	const struct gt_notation *n = &r->spec->notation;
	size_t len = strlen(text);
	double v;
	bool word = gt_cell_parse(n, text, len, &v) == GT_CELL_WORD && !gt_cell_almost(n, text, len);
	word |= how->date;
	bool other = !word && gt_cell_parse(n, text, len, &v) == GT_CELL_WORD && !gt_cell_is_infinite(text, len); /* other notation */
	if (other && r->facts)
		return "; the training data has numbers in this notation";
	if (other && !n->thousands && n->decimal != ',' && (!how->odd || !how->tolerant))
		return how->target ? "; write data.decimal = \",\" if the table has decimal commas, or data.thousands = \",\""
		                   : "; write data.decimal = \",\" if the table has decimal commas, or data.thousands = \",\", or give the "
		                     "column the type \"categorical\" or \"ignore\" in data.columns";
	if (other && (!how->odd || !how->tolerant))
		return how->target ? "; write data.decimal and data.thousands if the table has another notation"
		                   : "; write data.decimal and data.thousands if the table has another notation, or give the column the type "
		                     "\"categorical\" or \"ignore\" in data.columns";
	if (r->facts && !r->targets) /* prediction: no advice, because the config of a checkpoint cannot be changed */
		return "; correct it, or leave the cell empty if the value is missing";
	if (r->facts)
		return word ? "; add the word to data.na if it stands for a missing value" : "";
	if (how->odd && how->target && !how->tolerant)
		return "; correct it, or add the word to data.na if it stands for a missing value";
	if (!how->odd || how->target)
		return word ? "; correct it, add the word to data.na if it stands for a missing value, or write data.on_error = \"skip\""
		            : "; correct it, or write data.on_error = \"skip\"";
	if (!how->tolerant)
		return "; correct them, or give the column the type \"categorical\" or \"ignore\" in data.columns";
	return word ? "; correct it, add the word to data.na if it stands for a missing value, write data.on_error = \"skip\" to treat such "
	              "cells as missing, or give the column the type \"categorical\" or \"ignore\" in data.columns"
	            : "; correct it, write data.on_error = \"skip\" to treat such cells as missing, or give the column the type "
	              "\"categorical\" or \"ignore\" in data.columns";
}

/* Records an odd cell for an error that names several cells. */
static enum gt_code record_cell(struct gt_table_reader *r, int k, const char *text, const char *why, struct gt_err *err)
{
	struct gt_odd_cells *odd = &r->reading[k].noted;
	char shown[GT_CELL_SHOWN], buf[800];
	size_t used = strlen(odd->also);
	if (odd->n++) {
		if (odd->n <= 3)
			snprintf(odd->also + used, sizeof odd->also - used, "%sline %lld (\"%s\")", used ? ", " : "", (long long)r->line,
			         gt_cell_shown(text, shown));
		return GT_OK;
	}
	snprintf(buf, sizeof buf, "%.400s:%lld: column \"%s\": %s", gt_csv_path(r->csv), (long long)r->line,
	         gt_cell_shown(r->table->column[k].name, shown), why);
	odd->first = strdup(buf);
	odd->text = strdup(text);
	return odd->first && odd->text ? GT_OK : gt_fail_memory(err, strlen(buf));
}

enum gt_code gt_table_odd_cell(struct gt_table_reader *r, int k, const char *text, const char *why, struct gt_err *err)
{
	const struct gt_table_reading *how = &r->reading[k];
	char shown[2][GT_CELL_SHOWN], buf[800];
	bool skip = r->spec->skipped && (!how->odd || how->tolerant);
	if (how->odd && !skip)
		return record_cell(r, k, text, why, err);
	snprintf(buf, sizeof buf, "%.400s:%lld: column \"%s\": %s, got \"%s\"", gt_csv_path(r->csv), (long long)r->line,
	         gt_cell_shown(r->table->column[k].name, shown[0]), why, gt_cell_shown(text, shown[1]));
	if (!skip)
		return gt_fail(err, GT_EDATA, "%s%s", buf, suggest_remedy(r, k, text));
	if (how->target)
		return gt_fail(err, GT_EDATA, "%s; " GT_NO_TARGET, buf);
	strcat(buf, "; " GT_CELL_MISSING);
	return gt_table_skip(r, "cell", r->line, buf, err);
}

enum gt_code gt_table_skip(struct gt_table_reader *r, const char *noun, int64_t line, const char *why, struct gt_err *err)
{
	char kind[1024];
	int where = snprintf(NULL, 0, "%.400s:%lld: ", gt_csv_path(r->csv), (long long)line);
	snprintf(kind, sizeof kind, "%s", where < (int)strlen(why) ? why + where : why);
	char *got = strstr(kind, ", got \"");
	if (got)
		*got = 0;
	return gt_skipped_add(r->spec->skipped, r->spec->set, r->records, noun, kind, why, err);
}

enum gt_code gt_table_odd_error(const struct gt_table_reader *r, struct gt_err *err)
{
	for (int k = 0; k < r->table->ncolumns; k++) {
		const struct gt_table_reading *how = &r->reading[k];
		const struct gt_odd_cells *odd = &how->noted;
		char shown[GT_CELL_SHOWN], more[40] = "";
		if (!odd->n)
			continue;
		if (odd->n > 3)
			snprintf(more, sizeof more, " and %lld more", (long long)(odd->n - 3));
		return gt_fail(err, GT_EDATA, "%s, as in %lld of the %lld values of the column, got \"%s\"%s%s%s%s", odd->first,
		               (long long)how->numbers, (long long)(how->numbers + how->words + how->like), gt_cell_shown(odd->text, shown),
		               odd->n > 1 ? "; also in " : "", odd->also, more, suggest_remedy(r, k, odd->text));
	}
	return GT_OK;
}

void gt_table_odd_free(struct gt_table_reading *how)
{
	free(how->noted.first);
	free(how->noted.text);
	how->noted = (struct gt_odd_cells){0};
}
