/* Reads a CSV file record by record (RFC 4180): fields are separated by a delimiter; a field in double quotes may contain delimiters, line
 * breaks and doubled quotes. Lines end with LF or CRLF. A byte order mark at the beginning, and empty lines, are skipped. The file may be
 * compressed with gzip. A plain file is read in pieces: the buffer has 1 MiB, or more if a record is longer (up to twice the longest
 * record). A gzip file, and text that is not UTF-8, are read into memory completely before they are converted.
 *
 * A file of JSON Lines is recognised by its first bytes, and read as records, too (json_rows.h); its first record has the column names.
 * Arrays of NumPy are read as records, too (numpy_rows.h); .npz files are recognised by their name.
 *
 *     struct gt_csv *csv;
 *     GT_TRY(gt_csv_open("train.csv", ',', GT_UTF_8, 0, &csv, err));
 *     while ((code = gt_csv_next(csv, &rec, err)) == GT_OK && rec.n)
 *         ... rec.field[0 ... rec.n - 1], rec.line ...
 *     gt_csv_close(csv);
 */
#ifndef GT_DATASETS_CSV_H
#define GT_DATASETS_CSV_H

#include "base/err.h"
#include "csv_record.h"
#include "table/encoding.h"
#include <stddef.h>
#include <stdint.h>

struct gt_csv;

/* Opens a file and converts its text to UTF-8. window: number of bytes of a plain file to read at a time; 0: 1 MiB; tests use small values.
 * GT_ENOINPUT: the file does not exist or cannot be read. GT_EDATA: the file is empty, not a regular file, or damaged UTF-16. */
enum gt_code gt_csv_open(const char *path, char delimiter, enum gt_encoding encoding, size_t window, struct gt_csv **out,
                         struct gt_err *err);
void gt_csv_close(struct gt_csv *c); /* does nothing if c is NULL */

/* Returns the path for messages; a long path is shortened. Valid until gt_csv_close. */
const char *gt_csv_path(const struct gt_csv *c);

/* Detects the delimiter of a file: which of , ; tab | occurs most often outside of quotes in the first non-empty line; a comma if none
 * occurs. If every comma is between two digits and another of these characters occurs, commas are decimal commas. JSON Lines do
 * not use it. */
enum gt_code gt_csv_delimiter(const char *path, char *out, struct gt_err *err);

/* Reads the next record. GT_EDATA names file and line: a quoted field does not end, text follows a closing quote, an unquoted field
 * contains a quote, a carriage return is not followed by a line feed, the file contains a NUL byte, or a field or record is too long. */
enum gt_code gt_csv_next(struct gt_csv *c, struct gt_csv_record *out, struct gt_err *err);

#endif
