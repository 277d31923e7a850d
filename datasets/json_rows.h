/* JSON Lines (jsonlines.org) as records of a table: each line is an object, and each of its members is a field. csv.h uses this parser, so
 * that JSON Lines are accepted wherever CSV is.
 *
 *     {"age": 39, "job": {"title": "clerk"}, "tags": ["a", "b"]}        age   job.title   tags
 *     {"age": null, "pay": 7.50}                                        39    clerk       ["a", "b"]
 *                                                                                                      (missing: "")   pay = 7.50
 * The columns are the keys of all lines, in the order in which they first occur. A member of an object in a member is a column named by
 * both keys, joined by a dot. An array is one field, with its JSON text. The field of a string has its characters, true and false are
 * words, and a number is copied from the file, so that the same data as CSV gives the same table. null, NaN (as written by Python) and a
 * missing member are empty fields.
 *
 *     GT_TRY(gt_json_rows_open(&j, err));
 *     gt_json_rows_learn(j, line, n, path, number, err);               for every line: collects the keys
 *     gt_json_rows_names(j, number, &rec, err);                        the names of the columns
 *     gt_json_rows_read(j, line, n, path, number, &rec, err);          for every line: the fields
 *     gt_json_rows_close(j);
 */
#ifndef GT_DATASETS_JSON_ROWS_H
#define GT_DATASETS_JSON_ROWS_H

#include "base/err.h"
#include "csv_record.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gt_json_rows;

/* Returns whether a file that begins with these n bytes is JSON Lines: a brace, then a quote or a closing brace. No CSV file begins with a
 * brace and a quote, because a quote is an error inside a field. */
bool gt_json_rows_detect(const char *text, size_t n);

enum gt_code gt_json_rows_open(struct gt_json_rows **out, struct gt_err *err);
void gt_json_rows_close(struct gt_json_rows *j); /* does nothing if j is NULL */

/* Adds the keys of a line of n bytes. line[n] must be NUL or the end of the line. path and number: the file and its line, for messages.
 * GT_EDATA: the line is not an object, is not valid JSON, or has a key twice; or a key is too long, or there are too many keys. */
enum gt_code gt_json_rows_learn(struct gt_json_rows *j, char *line, size_t n, const char *path, int64_t number, struct gt_err *err);
/* Writes the names of the columns as a record. Called after the last gt_json_rows_learn. */
enum gt_code gt_json_rows_names(struct gt_json_rows *j, int64_t number, struct gt_csv_record *out, struct gt_err *err);
/* Parses a line, whose keys were added, in place: overwrites line[0 ... n]. *out is valid until the next call, and as long as the line. */
enum gt_code gt_json_rows_read(struct gt_json_rows *j, char *line, size_t n, const char *path, int64_t number, struct gt_csv_record *out,
                               struct gt_err *err);

#endif
