/* Arrays of NumPy as records of a table (csv.h). An .npz file gives a column for each one-dimensional array, and for each column of a
 * two-dimensional array: x0, x1, … for array x. An .npy file gives columns without names. Numbers are written as Python writes them, so
 * that the same data as CSV gives the same table; NaN is an empty field.
 *
 *     GT_TRY(gt_numpy_rows_open(path, shown, &r, err));
 *     while ((code = gt_numpy_rows_next(r, &rec, err)) == GT_OK && rec.n)
 *         ...                                                       the first record of an .npz file has the names
 *     gt_numpy_rows_close(r);
 */
#ifndef GT_DATASETS_NUMPY_ROWS_H
#define GT_DATASETS_NUMPY_ROWS_H

#include "base/err.h"
#include "csv_record.h"
#include <stdbool.h>

struct gt_numpy_rows;

/* Reads all arrays of a file. GT_EDATA: arrays differ in length, have no rows or more than two dimensions, or the file is damaged. */
enum gt_code gt_numpy_rows_open(const char *path, struct gt_numpy_rows **out, struct gt_err *err);
void gt_numpy_rows_close(struct gt_numpy_rows *r); /* does nothing if r is NULL */
/* Writes the next record, which is valid until the next call; out->n is 0 at the end. The line is the number of the row, from 1. */
enum gt_code gt_numpy_rows_next(struct gt_numpy_rows *r, struct gt_csv_record *out, struct gt_err *err);

/* Writes a finite number as Python does, with the fewest digits that identify it, and returns their length; buf has 32 bytes.
 * single: the number is a float32. */
int gt_numpy_number_text(double v, bool single, char *buf);

#endif
