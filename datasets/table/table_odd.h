/* Inside the reader of tables: cells that are no numbers in a column that is otherwise of numbers, such as "#REF!", or no dates among
 * dates.
 *
 * The first pass over the files counts the cells of a column whose type is not given, and at its end the column is decided on:
 *     words among its values                      read as    the other cells
 *     few (gt_table_few_odd)                      numbers    are an error that lists the first ones, or missing if bad rows are skipped
 *     more, or beside few different whole         words
 *       numbers, which are categories
 *     all but few dates                           texts      as for numbers
 *     none, but numbers with commas, numbers      numbers    the same if they are few; an error if they are more
 *       out of range or infinite ones
 * Where this differs from how the first pass has read the column, the files are read again. */
#ifndef GT_DATASETS_TABLE_ODD_H
#define GT_DATASETS_TABLE_ODD_H

#include "table/parse_cell.h"
#include "table/table_columns.h"

/* Returns whether `odd` cells beside `good` ones are so few that they are more likely wrong than a sign of another type: one in a hundred,
 * or a single one beside at least 20. */
bool gt_table_few_odd(int64_t good, int64_t odd);

/* After a pass: decides on a column whose type is open, and on the order of dates. Sets r->again if it must be read again. */
enum gt_code gt_table_settle_column(struct gt_table_reader *r, int k, struct gt_err *err);

/* Returns what is expected in place of a text of len bytes that gt_cell_parse has classified as no number. */
const char *gt_table_no_number(const struct gt_notation *n, const char *text, size_t len, enum gt_number_kind cell);

/* Takes a cell that does not fit its column, as missing or as an error. GT_OK: the caller stores a missing value. GT_EDATA: bad rows are
 * not skipped, and the type was given; or bad rows are skipped, and the column is a target. */
enum gt_code gt_table_odd_cell(struct gt_table_reader *r, int k, const char *text, const char *why, struct gt_err *err);

/* Adds a row or a cell, `noun`, to the list of what was left out. why: begins with file and line. */
enum gt_code gt_table_skip(struct gt_table_reader *r, const char *noun, int64_t line, const char *why, struct gt_err *err);

/* After the last pass: GT_EDATA names the first odd cells of a column, if they are an error. */
enum gt_code gt_table_odd_error(const struct gt_table_reader *r, struct gt_err *err);

void gt_table_odd_free(struct gt_table_reading *how);

#endif
