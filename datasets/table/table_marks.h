/* Hashes of the rows of a table, by which they are recognised in other files (datasets/sample_mark.h). */
#ifndef GT_DATASETS_TABLE_MARKS_H
#define GT_DATASETS_TABLE_MARKS_H

#include "table/table_facts.h"

/* Sets out[t->n] to a hash of 48 bits, not 0, of what a model sees of each row: its values in the columns that the facts use, targets
 * included. A row has the same hash in every table that has it, whatever the order of the columns, the delimiter and the words for missing
 * values are: a number counts by its value, another text by its bytes. */
enum gt_code gt_table_marks(const struct gt_data_table *t, const struct gt_table_facts *facts, uint64_t *out, struct gt_err *err);

#endif
