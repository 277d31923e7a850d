/* Inside the fit of facts: what the values of a column are, over the rows of the training split. */
#ifndef GT_DATASETS_TABLE_SURVEY_H
#define GT_DATASETS_TABLE_SURVEY_H

#include "table/table_facts.h"

/* Numbers that differ, as long as there are few. */
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
	int64_t different;        /* number of different values; of numbers, not above GT_TABLE_FEW + 1 */
	bool numbers;             /* every value is a number without leading zeros */
	bool whole;               /* every value is such a number, and whole (gt_cell_is_whole) */
	bool row_numbers;         /* of numbers: each is that of the row before in the table plus 1, and none is missing */
	int64_t parts;            /* of words and texts: number of their parts between spaces, of words each different one once */
	bool many;                /* more than GT_TABLE_MAX_WORDS different words: `different` is then `present` */
	int64_t first_missing;    /* the first row without a value; -1: there is none */
};

/* Looks at the rows `row` of column k, or at the first n rows if row is NULL. */
enum gt_code gt_table_look(const struct gt_data_table *t, int k, const int64_t *row, int64_t n, struct gt_table_survey *out,
                           struct gt_err *err);

/* Collects the different values of a column into *words: by descending frequency and then by name, or by name only. *whole: all are whole
 * numbers without leading zeros; then they are written as "%lld", and "by name" means by number. */
enum gt_code gt_table_collect(const struct gt_data_table *t, int k, const int64_t *row, int64_t n, bool frequent_first,
                              struct gt_words *words, bool *whole, struct gt_err *err);

#endif
