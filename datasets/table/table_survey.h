/* Internal header of table_fit.c: examines the values of a column in the rows of the training split. */
#ifndef GT_DATASETS_TABLE_SURVEY_H
#define GT_DATASETS_TABLE_SURVEY_H

#include "table/table_facts.h"

/* A set of at most GT_TABLE_FEW distinct numbers. */
struct gt_few {
	int n; /* GT_TABLE_FEW + 1: more than few */
	double v[GT_TABLE_FEW + 1];
};
static inline void gt_few_add(struct gt_few *f, double v)
{
	if (f->n > GT_TABLE_FEW || (f->n && f->v[f->n - 1] == v))
		return;
	for (int i = 0; i < f->n; i++)
		if (f->v[i] == v)
			return;
	f->v[f->n++] = v;
}

struct gt_table_survey {
	int64_t missing, present; /* rows without and with a value */
	int64_t different;        /* count of distinct values; for numbers at most GT_TABLE_FEW + 1 */
	bool numbers;             /* every value is a number without leading zeros */
	bool whole;               /* `numbers` is set, and all numbers are whole (gt_cell_is_whole) */
	bool row_numbers;         /* each number is the number of the previous table row plus 1, and no value is missing */
	int64_t parts;            /* words and texts: count of parts between spaces; each distinct word is counted once */
	bool many;                /* more than GT_TABLE_MAX_WORDS distinct words; `different` is then set to `present` */
	int64_t first_missing;    /* the first row without a value; -1: no value is missing */
};

/* Examines the rows `row` of column k, or the first n rows if row is NULL. */
enum gt_code gt_table_look(const struct gt_data_table *t, int k, const int64_t *row, int64_t n, struct gt_table_survey *out,
                           struct gt_err *err);

/* Collects the distinct values of a column in *words, sorted by descending frequency and then by name, or only by name. *whole: all values
 * are whole numbers without leading zeros; then words are written as "%lld", and sorted by value instead of by name. */
enum gt_code gt_table_collect(const struct gt_data_table *t, int k, const int64_t *row, int64_t n, bool frequent_first,
                              struct gt_words *words, bool *whole, struct gt_err *err);

#endif
