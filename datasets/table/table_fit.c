/* Computes the facts of each column (type, mean, median, categories) from the rows of the training split. */
#include "base/arena.h"
#include "table/parse_cell.h"
#include "table/table_survey.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The rows from which the facts are computed. */
struct fit {
	const struct gt_data_table *t;
	const struct gt_table_spec *spec;
	const int64_t *row; /* [n] row indices; NULL: the first n rows */
	int64_t n;
	double *v;          /* [n] the numbers of a column */
};

static uint64_t sort_key(double v)
{
	uint64_t bits;
	memcpy(&bits, &v, sizeof bits);
	return bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
}

static double key_to_number(uint64_t key)
{
	double v;
	key = key >> 63 ? key & ~((uint64_t)1 << 63) : ~key;
	memcpy(&v, &key, sizeof v);
	return v;
}

/* Returns the k-th smallest (from 0) of n keys. Finds 8 bits of the result per pass, and keeps only the keys with these bits. */
static uint64_t kth_smallest(uint64_t *key, int64_t n, int64_t k)
{
	for (int shift = 56; shift >= 0; shift -= 8) {
		int64_t count[256] = {0}, kept = 0;
		uint64_t digit = 0;
		for (int64_t i = 0; i < n; i++)
			count[key[i] >> shift & 0xff]++;
		while (k >= count[digit])
			k -= count[digit++];
		for (int64_t i = 0; i < n; i++) {
			key[kept] = key[i];
			kept += (key[i] >> shift & 0xff) == digit;
		}
		n = kept;
	}
	return key[0];
}

/* Computes mean, standard deviation and median of the numbers l->v[n]; NaN: a missing value. */
static enum gt_code fit_numbers(struct fit *l, struct gt_table_fact *f, struct gt_err *err)
{
	int64_t present = 0, below = 0;
	uint64_t next = UINT64_MAX;
	double sum = 0, squares = 0;
	uint64_t *key;
	GT_SPILL_NEW(l->t->spill, key, l->n, err);
	for (int64_t i = 0; i < l->n; i++)
		if (!isnan(l->v[i]))
			key[present++] = sort_key(l->v[i]);
	uint64_t low = kth_smallest(key, present, (present - 1) / 2);
	gt_spill_free(l->t->spill, key);
	/* for an even count, the median is the mean of `low` and the next larger value, unless that value equals low */
	for (int64_t i = 0; i < l->n; i++) {
		uint64_t other = isnan(l->v[i]) ? UINT64_MAX : sort_key(l->v[i]);
		below += other <= low;
		next = other > low && other < next ? other : next;
	}
	f->median = (key_to_number(low) + key_to_number(below > present / 2 ? low : next)) / 2;
	for (int64_t i = 0; i < l->n; i++)
		sum += isnan(l->v[i]) ? f->median : l->v[i];
	f->mean = sum / (double)l->n;
	for (int64_t i = 0; i < l->n; i++) {
		double d = (isnan(l->v[i]) ? f->median : l->v[i]) - f->mean;
		squares += d * d;
	}
	f->std = sqrt(squares / (double)l->n);
	return GT_OK;
}

/* Returns whether a column name suggests keys: a word of the list, or a name that ends with id. */
static bool is_key_name(const char *name)
{
	static const char *const words[] = {"id", "index", "idx", "no", "no.", "nr", "nr.", "num", "number", "key", "row", "rowid", "pk", "#",
	                                    "unnamed: 0"};
	size_t n = strlen(name);
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (!strcasecmp(name, words[i]))
			return true;
	if (n < 3 || strcasecmp(name + n - 2, "id"))
		return !strncasecmp(name, "id_", 3);
	char before = name[n - 3];
	return before == '_' || before == ' ' || before == '-' || before == '.' || (name[n - 2] == 'I' && before >= 'a' && before <= 'z');
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Returns whether n numbers are all different. Sorts the numbers. */
static bool all_different(double *v, int64_t n)
{
	qsort(v, (size_t)n, sizeof *v, by_value);
	for (int64_t i = 1; i < n; i++)
		if (v[i] == v[i - 1])
			return false;
	return true;
}

static const char row_numbers[] = "consecutive row numbers", keys[] = "a key, by its name and different values";

/* Ignores a column of row numbers or keys: a model could learn only the order of the rows from it. */
static enum gt_code infer_keys(struct fit *l, int k, const struct gt_table_survey *s, struct gt_table_fact *f, struct gt_err *err)
{
	if (!s->numbers || !s->whole || s->missing || s->different <= GT_TABLE_FEW)
		return GT_OK;
	if (s->row_numbers)
		f->why = row_numbers;
	if (!f->why && is_key_name(f->name)) {
		GT_TRY(gt_table_numbers(l->t, k, l->row, l->n, l->v, err));
		f->why = all_different(l->v, l->n) ? keys : NULL;
	}
	f->type = f->why ? GT_COLUMN_IGNORE : GT_COLUMN_AUTO;
	return GT_OK;
}

/* Returns the only order in the bit mask; GT_DATE_AUTO: there are several or none. */
static enum gt_date_order single_order(unsigned orders)
{
	for (int o = 1; o < GT_DATE_ORDERS; o++)
		if (orders == 1u << o)
			return (enum gt_date_order)o;
	return GT_DATE_AUTO;
}

/* Infers the type of a column from its values. orders: date orders of the values; 0: the values are not dates. */
static void infer_type(struct gt_table_fact *f, const struct gt_table_survey *s, unsigned orders)
{
	bool all_different = !s->numbers && s->different == s->present && s->present > GT_TABLE_FEW;
	bool prose = !s->numbers && s->different > GT_TABLE_FEW && 2 * s->different > s->present && s->parts >= GT_TABLE_PROSE * s->different;
	if (!s->present || (s->different == 1 && !s->missing)) {
		f->type = GT_COLUMN_IGNORE;
		f->why = s->present ? "a single value" : "no value";
	} else if (orders) {
		bool clear = single_order(orders) != GT_DATE_AUTO;
		f->type = clear ? GT_COLUMN_DATE : GT_COLUMN_IGNORE;
		f->why = clear ? "dates" : GT_AMBIGUOUS_DATES;
	} else if (s->numbers && (!s->whole || s->different > GT_TABLE_FEW)) {
		f->type = GT_COLUMN_CONTINUOUS;
		f->why = s->whole ? "whole numbers, more than 20 different values" : "numbers";
	} else if (prose) {
		f->type = GT_COLUMN_TEXT;
		f->why = "texts of 8 or more words on average";
	} else if (all_different) {
		f->type = GT_COLUMN_IGNORE;
		f->why = s->many ? "more than 1048576 different words" : "words that are all different";
	} else {
		f->type = GT_COLUMN_CATEGORICAL;
		f->why = s->numbers ? "whole numbers, at most 20 different values" : "words";
	}
}

static enum gt_code fit_target(struct fit *l, int k, enum gt_table_task task, const struct gt_table_survey *s, struct gt_table_fact *f,
                                 struct gt_err *err)
{
	if (s->missing)
		return gt_table_fail(l->t, k, s->first_missing, GT_TARGET_MISSING, err);
	if (task == GT_TASK_CLASSES) {
		GT_TRY(gt_table_collect(l->t, k, l->row, l->n, false, &f->words, &f->whole, err));
		return f->words.n > 1 ? GT_OK : gt_table_fail(l->t, k, -1, "the target is the same in every row of the training split", err);
	}
	GT_TRY(gt_table_numbers(l->t, k, l->row, l->n, l->v, err));
	GT_TRY(fit_numbers(l, f, err));
	for (int64_t i = 1; i < l->n; i++)
		if (l->v[i] != l->v[0])
			return GT_OK;
	return gt_table_fail(l->t, k, -1, "the target is the same in every row of the training split", err);
}

/* Decides whether the targets are classes or numbers. */
static enum gt_table_task find_task(const struct gt_table_spec *spec, int ntargets, const struct gt_table_survey *s)
{
	if (spec->task != GT_TASK_AUTO)
		return spec->task;
	return ntargets == 1 && (!s->numbers || (s->whole && s->different <= GT_TABLE_FEW)) ? GT_TASK_CLASSES : GT_TASK_NUMBERS;
}

static enum gt_code fit_dates(struct fit *l, int k, const struct gt_table_survey *s, struct gt_table_fact *f, struct gt_err *err)
{
	struct gt_table_fact one = {0};
	f->order = single_order(l->t->column[k].orders);
	f->na = s->missing > 0;
	if (!s->present)
		return gt_table_fail(l->t, k, -1, "expected dates, got no value in the training split; give it the type \"ignore\"", err);
	if (f->order == GT_DATE_AUTO)
		return gt_table_fail(l->t, k, -1, "the dates do not show whether the day or the month is first; write order = \"dmy\" or \"mdy\" "
		                     "with the type in data.columns", err);
	for (int p = 0; p < GT_DATE_PARTS; p++) {
		for (int64_t i = 0; i < l->n; i++) {
			int64_t row = l->row ? l->row[i] : i;
			double seconds, part[GT_DATE_PARTS];
			size_t len;
			const char *text = gt_table_text(l->t, k, row, &len);
			if (len && !gt_date_parse(text, len, f->order, &seconds))
				return gt_table_fail(l->t, k, row, "expected a date whose day, month and year have the same order as in the other dates",
				                     err);
			if (len)
				gt_date_parts(seconds, part);
			l->v[i] = len ? part[p] : NAN;
		}
		GT_TRY(fit_numbers(l, &one, err));
		f->part[p] = (struct gt_date_fact){one.mean, one.std, one.median};
	}
	return GT_OK;
}

static enum gt_code fit_column(struct fit *l, int k, const struct gt_table_survey *s, struct gt_table_fact *f, struct gt_err *err)
{
	enum gt_column_type given = gt_table_given_type(l->spec, f->name);
	f->missing = s->missing;
	f->given = given != GT_COLUMN_AUTO;
	if (!f->given || given == GT_COLUMN_CONTINUOUS || given == GT_COLUMN_CATEGORICAL || given == GT_COLUMN_DATE) {
		GT_TRY(infer_keys(l, k, s, f, err));
		if (f->type == GT_COLUMN_AUTO)
			infer_type(f, s, l->t->column[k].orders);
	}
	f->inferred = f->type;
	if (f->given)
		f->type = given;
	if (f->type == GT_COLUMN_CATEGORICAL)
		return gt_table_collect(l->t, k, l->row, l->n, true, &f->words, &f->whole, err);
	if (f->type == GT_COLUMN_DATE)
		return fit_dates(l, k, s, f, err);
	if (f->type != GT_COLUMN_CONTINUOUS && f->type != GT_COLUMN_TEXT)
		return GT_OK;
	if (!s->present)
		return gt_table_fail(l->t, k, -1, f->type == GT_COLUMN_TEXT
		                     ? "expected texts, got no value in the training split; give it the type \"ignore\""
		                     : "expected numbers, got no value in the training split; give it the type \"ignore\"", err);
	if (f->type == GT_COLUMN_TEXT)
		return GT_OK;
	f->na = s->missing > 0;
	GT_TRY(gt_table_numbers(l->t, k, l->row, l->n, l->v, err));
	return fit_numbers(l, f, err);
}

/* If row numbers or keys are the only possible inputs, uses them as inputs: the table may be a time series. */
static enum gt_code use_keys_as_inputs(struct fit *l, struct gt_table_facts *out, struct gt_err *err)
{
	for (int k = 0; k < out->ncolumns; k++)
		if (out->column[k].type != GT_COLUMN_IGNORE && out->column[k].type != GT_COLUMN_TARGET)
			return GT_OK;
	for (int k = 0; k < out->ncolumns; k++) {
		struct gt_table_fact *f = &out->column[k];
		if (f->given || f->type != GT_COLUMN_IGNORE || (f->why != row_numbers && f->why != keys))
			continue;
		f->type = GT_COLUMN_CONTINUOUS;
		f->why = "row numbers or a key, but the table has no other input";
		GT_TRY(gt_table_numbers(l->t, k, l->row, l->n, l->v, err));
		GT_TRY(fit_numbers(l, f, err));
	}
	return GT_OK;
}

static enum gt_code fit_columns(struct fit *l, struct gt_table_facts *out, struct gt_err *err)
{
	int ntargets = 0;
	for (int k = 0; k < l->t->ncolumns; k++)
		ntargets += gt_table_given_type(l->spec, l->t->column[k].name) == GT_COLUMN_TARGET;
	for (int k = 0; k < out->ncolumns; k++) {
		struct gt_table_survey s;
		struct gt_table_fact *f = &out->column[k];
		if (!(f->name = strdup(l->t->column[k].name)))
			return gt_fail_memory(err, 0);
		GT_TRY(gt_table_look(l->t, k, l->row, l->n, &s, err));
		GT_TRY(fit_column(l, k, &s, f, err));
		if (f->type == GT_COLUMN_TARGET) {
			out->task = find_task(l->spec, ntargets, &s);
			GT_TRY(fit_target(l, k, out->task, &s, f, err));
		}
	}
	GT_TRY(use_keys_as_inputs(l, out, err));
	return gt_table_facts_finish(out, l->t->path[0], err);
}

enum gt_code gt_table_fit(const struct gt_data_table *t, const struct gt_table_spec *spec, const int64_t *row, int64_t nrows,
                            struct gt_table_facts *out, struct gt_err *err)
{
	struct fit l = {t, spec, row, nrows, gt_spill_resize(t->spill, NULL, ((size_t)nrows + 1) * sizeof *l.v)};
	*out = (struct gt_table_facts){.header = t->header, .nrows = nrows, .column = calloc((size_t)t->ncolumns, sizeof *out->column)};
	enum gt_code code = l.v && out->column ? GT_OK : gt_fail_memory(err, (size_t)nrows * sizeof *l.v);
	if (code == GT_OK) {
		out->ncolumns = t->ncolumns;
		if (nrows < 1)
			code = gt_fail(err, GT_EDATA, "%.400s: expected rows in the training split, got none", t->path[0]);
		else
			code = fit_columns(&l, out, err);
	}
	gt_spill_free(t->spill, l.v);
	if (code != GT_OK)
		gt_table_facts_free(out);
	return code;
}

enum gt_code gt_table_strata(const struct gt_data_table *t, const struct gt_table_spec *spec, int32_t *out, int64_t *groups,
                             struct gt_err *err)
{
	struct gt_table_survey s;
	enum gt_table_task task;
	double seen[GT_TABLE_FEW];
	int k = -1, ntargets = 0, n = 0;
	*groups = 0;
	for (int i = 0; i < t->ncolumns; i++)
		if (gt_table_given_type(spec, t->column[i].name) == GT_COLUMN_TARGET) {
			k = i;
			ntargets++;
		}
	if (ntargets != 1)
		return GT_OK;
	GT_TRY(gt_table_look(t, k, NULL, t->n, &s, err));
	task = find_task(spec, 1, &s);
	const struct gt_table_column *c = &t->column[k];
	if (task != GT_TASK_CLASSES || (c->store == GT_STORE_NUMBERS && s.different > GT_TABLE_FEW))
		return GT_OK;
	for (int64_t i = 0; i < t->n; i++) {
		if (c->store == GT_STORE_WORDS) {
			out[i] = c->code[i] < 0 ? c->words.n : c->code[i];
			continue;
		}
		int at = 0;
		while (at < n && seen[at] != c->number[i])
			at++;
		if (at == n && !isnan(c->number[i]))
			seen[n++] = c->number[i];
		out[i] = isnan(c->number[i]) ? GT_TABLE_FEW : at;
	}
	*groups = c->store == GT_STORE_WORDS ? c->words.n + (s.missing > 0) : s.missing ? GT_TABLE_FEW + 1 : n;
	return GT_OK;
}
