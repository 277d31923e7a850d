/* Reads a CSV file record by record (RFC 4180): fields are separated by a delimiter; a field in double quotes may contain delimiters, line
 * breaks and doubled quotes. Lines end with LF or CRLF. A byte order mark at the beginning, and empty lines, are skipped. The file may be
 * compressed with gzip.
 *
 *     struct gt_csv *csv;
 *     GT_TRY(gt_csv_open("train.csv", ',', &csv, err));
 *     while ((code = gt_csv_next(csv, &rec, err)) == GT_OK && rec.n)
 *         ... rec.field[0 ... rec.n - 1], rec.line ...
 *     gt_csv_close(csv);
 */
#ifndef GT_DATASETS_CSV_H
#define GT_DATASETS_CSV_H

#include "base/err.h"
#include <stdint.h>

#define GT_CSV_MAX_FIELD (1 << 20) /* maximum bytes of a field */
#define GT_CSV_MAX_FIELDS 65536    /* maximum number of fields of a record */

struct gt_csv_record {
	int n;              /* number of fields; 0: the file has no more records */
	char *const *field; /* UTF-8 as in the file, each ended by a NUL; valid until the next call */
	int64_t line;       /* line of the file at which the record begins, from 1 */
};

struct gt_csv;

/* GT_ENOINPUT: the file does not exist or cannot be read. */
enum gt_code gt_csv_open(const char *path, char delimiter, struct gt_csv **out, struct gt_err *err);
void gt_csv_close(struct gt_csv *c); /* does nothing if c is NULL */

/* Reads the next record. GT_EDATA names file and line: a quoted field does not end, text follows a closing quote, a NUL byte, or a field or
 * record that is too long. */
enum gt_code gt_csv_next(struct gt_csv *c, struct gt_csv_record *out, struct gt_err *err);

#endif
