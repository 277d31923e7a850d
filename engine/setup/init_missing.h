/* Inside `gtrain init`: finds the words of a table that stand for missing numbers, such as "unknown" or "n/a" in a column of years. */
#ifndef GT_SETUP_INIT_MISSING_H
#define GT_SETUP_INIT_MISSING_H

#include "setup/init_spec.h"
#include "table/table.h"

enum { GT_INIT_MISSING_WORDS = 3, GT_INIT_MISSING_MAX = 32 }; /* maximum number of these words in a column, and in a table */

struct gt_init_missing {
	char *word[GT_INIT_MISSING_MAX]; /* [n] malloc'ed */
	int n;
};

/* Collects the words that columns other than the targets have in place of numbers, and warns of each. A column has such words if at least
 * half of its values are numbers, of which more than GT_TABLE_FEW differ, and its other values are at most GT_INIT_MISSING_WORDS words.
 * A word that a target or any other column has as a value is left out, because data.na is for all columns. t: the table, read as `spec`
 * says. */
enum gt_code gt_init_find_missing(const struct gt_data_table *t, const struct gt_table_spec *spec, const struct gt_init_spec *init,
                                  struct gt_init_missing *out, struct gt_err *err);
void gt_init_missing_free(struct gt_init_missing *m);

#endif
