#include "table/table_survey.h"
#include "base/arena.h"
#include "table/parse_cell.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A distinct value of a column, and how often it occurs. */
struct tally {
	int64_t count;
	double number;    /* numeric value; unspecified for a word */
	const char *text; /* NULL: only `number` is known */
};

/* Counts the rows of each word of a column of words. */
static enum gt_code count_words(const struct gt_table_column *c, const int64_t *row, int64_t n, int64_t **out, struct gt_err *err)
{
	int64_t *count;
	GT_CALLOC(count, c->words.n, err);
	for (int64_t i = 0; i < n; i++) {
		int32_t code = c->code[row ? row[i] : i];
		if (code >= 0)
			count[code]++;
	}
	*out = count;
	return GT_OK;
}

/* Returns the count of parts of a text between spaces and line breaks. */
static int64_t count_parts(const char *text, size_t len)
{
	int64_t n = 0;
	bool inside = false;
	for (size_t i = 0; i < len; i++) {
		bool blank = text[i] == ' ' || text[i] == '\n' || text[i] == '\t';
		n += !blank && !inside;
		inside = !blank;
	}
	return n;
}

static enum gt_code survey_words(const struct gt_data_table *t, const struct gt_table_column *c, const int64_t *row, int64_t n,
                                 struct gt_table_survey *out, struct gt_err *err)
{
	int64_t *count;
	struct gt_few few = {0};
	double v;
	GT_TRY(count_words(c, row, n, &count, err));
	for (int32_t i = 0; i < c->words.n; i++) {
		if (!count[i])
			continue;
		enum gt_number_kind cell = gt_cell_parse(&t->notation, gt_words_text(&c->words, i), gt_words_len(&c->words, i), &v);
		out->present += count[i];
		out->different++;
		out->parts += count_parts(gt_words_text(&c->words, i), gt_words_len(&c->words, i));
		out->numbers &= cell == GT_CELL_NUMBER || cell == GT_CELL_RANGE;
		out->whole &= cell == GT_CELL_NUMBER && gt_cell_is_whole(v);
		if (cell == GT_CELL_NUMBER)
			gt_few_add(&few, v);
	}
	if (out->numbers && out->whole)
		out->different = few.n;
	free(count);
	return GT_OK;
}

enum gt_code gt_table_look(const struct gt_data_table *t, int k, const int64_t *row, int64_t n, struct gt_table_survey *out,
                           struct gt_err *err)
{
	const struct gt_table_column *c = &t->column[k];
	struct gt_few few = {0};
	bool by_one = true;
	*out = (struct gt_table_survey){.numbers = true, .whole = true, .first_missing = -1};
	if (c->store == GT_STORE_SKIP)
		return GT_OK;
	if (c->store == GT_STORE_WORDS)
		GT_TRY(survey_words(t, c, row, n, out, err));
	for (int64_t i = 0; i < n && c->store == GT_STORE_TEXT; i++) {
		size_t len;
		const char *text = gt_table_text(t, k, row ? row[i] : i, &len);
		out->missing += !len;
		out->present += len > 0;
		out->parts += count_parts(text, len);
	}
	if (c->store == GT_STORE_TEXT) {
		out->numbers = out->whole = false;
		out->different = out->present;
		out->many = true;
		return GT_OK;
	}
	for (int64_t i = 0; i < n; i++) {
		int64_t r = row ? row[i] : i;
		bool missing = c->store == GT_STORE_WORDS ? c->code[r] < 0 : isnan(c->number[r]);
		if (missing && out->first_missing < 0)
			out->first_missing = r;
		out->missing += missing;
		if (missing || c->store == GT_STORE_WORDS)
			continue;
		out->present++;
		out->whole &= gt_cell_is_whole(c->number[r]);
		by_one &= c->number[r] - (double)r == c->number[row ? row[0] : 0] - (double)(row ? row[0] : 0);
		gt_few_add(&few, c->number[r]);
	}
	if (c->store == GT_STORE_NUMBERS)
		out->different = few.n;
	out->row_numbers = c->store == GT_STORE_NUMBERS && by_one && out->whole && !out->missing;
	return GT_OK;
}

static int by_value(const void *a, const void *b)
{
	const struct tally *x = a, *y = b;
	return x->text ? strcmp(x->text, y->text) : (x->number > y->number) - (x->number < y->number);
}

static int by_count(const void *a, const void *b)
{
	const struct tally *x = a, *y = b;
	return x->count != y->count ? (x->count < y->count ? 1 : -1) : by_value(a, b);
}

static enum gt_code tally_words(const struct gt_data_table *t, const struct gt_table_column *c, const int64_t *row, int64_t n,
                                struct tally **out, int64_t *nout, bool *whole, struct gt_err *err)
{
	int64_t *count, m = 0;
	GT_TRY(count_words(c, row, n, &count, err));
	struct tally *v = malloc(((size_t)c->words.n + 1) * sizeof *v);
	for (int32_t i = 0; v && i < c->words.n; i++) {
		double x = 0;
		if (!count[i])
			continue;
		enum gt_number_kind cell = gt_cell_parse(&t->notation, gt_words_text(&c->words, i), gt_words_len(&c->words, i), &x);
		*whole &= cell == GT_CELL_NUMBER && gt_cell_is_whole(x);
		v[m++] = (struct tally){count[i], x, gt_words_text(&c->words, i)};
	}
	free(count);
	*out = v;
	*nout = m;
	return v ? GT_OK : gt_fail_memory(err, ((size_t)c->words.n + 1) * sizeof *v);
}

/* Merges entries with the same number and adds their counts. */
static int64_t merge_numbers(struct tally *v, int64_t n)
{
	int64_t kept = 0;
	for (int64_t i = 0; i < n; i++)
		v[i].text = NULL;
	qsort(v, (size_t)n, sizeof *v, by_value);
	for (int64_t i = 0; i < n; i++)
		if (kept && v[kept - 1].number == v[i].number)
			v[kept - 1].count += v[i].count;
		else
			v[kept++] = v[i];
	return kept;
}

/* Lists the distinct values of a column of numbers, ascending. Whenever the list is full, equal values are merged; if it is still more than
 * half full, it grows. So its size depends on the distinct values, not on the rows. */
static enum gt_code tally_numbers(const struct gt_table_column *c, const int64_t *row, int64_t n, struct tally **out, int64_t *nout,
                                  struct gt_err *err)
{
	int64_t m = 0, cap = n < 4096 ? n : 4096;
	struct tally *v;
	GT_CALLOC(v, cap, err);
	*out = v;
	for (int64_t i = 0; i < n; i++) {
		double x = c->number[row ? row[i] : i];
		if (isnan(x))
			continue;
		if (m && v[m - 1].number == x) {
			v[m - 1].count++;
			continue;
		}
		if (m == cap && 2 * (m = merge_numbers(v, m)) > cap) {
			struct tally *more = realloc(v, 2 * (size_t)cap * sizeof *v);
			if (!more)
				return gt_fail_memory(err, 2 * (size_t)cap * sizeof *v);
			*out = v = more;
			cap *= 2;
		}
		v[m++] = (struct tally){1, x, NULL};
	}
	*nout = m;
	return GT_OK;
}

enum gt_code gt_table_collect(const struct gt_data_table *t, int k, const int64_t *row, int64_t n, bool frequent_first,
                              struct gt_words *words, bool *whole, struct gt_err *err)
{
	const struct gt_table_column *c = &t->column[k];
	bool numbers = c->store == GT_STORE_NUMBERS;
	struct tally *v = NULL;
	int64_t m = 0;
	char buf[40];
	int32_t ignored;
	*whole = true;
	enum gt_code code = numbers ? tally_numbers(c, row, n, &v, &m, err) : tally_words(t, c, row, n, &v, &m, whole, err);
	*whole &= m > 0;
	for (int64_t i = 0; numbers && i < m; i++)
		*whole &= gt_cell_is_whole(v[i].number);
	if (numbers || *whole)
		m = merge_numbers(v, m);
	bool text = !numbers && !*whole;
	if (m)
		qsort(v, (size_t)m, sizeof *v, frequent_first ? by_count : by_value);
	for (int64_t i = 0; i < m && code == GT_OK; i++) {
		if (*whole)
			snprintf(buf, sizeof buf, "%lld", (long long)v[i].number);
		else if (!text)
			snprintf(buf, sizeof buf, "%.17g", v[i].number);
		const char *word = text ? v[i].text : buf;
		code = gt_words_add(words, word, strlen(word), &ignored, err);
	}
	free(v);
	return code;
}
