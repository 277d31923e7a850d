/* Reads the input columns that are printed beside the predictions: `gtrain predict --append` and `--keep`.
 *
 *     gt_table_rows_open(&spec, &rows, err);               the names of the columns that are wanted
 *     gt_table_rows_file(rows, "new.csv", err);  the next file
 *     gt_table_rows_next(rows, &prediction, err);          for each of its rows in order: sets column[] and column_name[] of the prediction
 *     gt_table_rows_close(rows); */
#ifndef GT_USE_TABLE_ROWS_H
#define GT_USE_TABLE_ROWS_H

#include "gtrain_use.h"
#include "table/table_facts.h"

struct gt_table_rows;

struct gt_table_rows_spec {
	const char *const *keep; /* [nkeep] names of columns, or lists of names with commas between them; NULL: all columns */
	int nkeep;
	char delimiter;            /* delimiter and encoding as in struct gt_table_spec */
	enum gt_encoding encoding;
	const struct gt_table_facts *facts; /* facts of the training data, including whether its files have a header */
};

enum gt_code gt_table_rows_open(const struct gt_table_rows_spec *spec, struct gt_table_rows **out, struct gt_err *err);
void gt_table_rows_close(struct gt_table_rows *r); /* does nothing if r is NULL */
/* Opens a file that the table reader has read without an error. GT_EUSAGE: the file lacks a column of keep, or its columns differ from the
 * columns of the first file. */
enum gt_code gt_table_rows_file(struct gt_table_rows *r, const char *path, struct gt_err *err);
/* Reads the next row. Its cells are valid until the next call. */
enum gt_code gt_table_rows_next(struct gt_table_rows *r, struct gt_prediction *p, struct gt_err *err);

#endif
