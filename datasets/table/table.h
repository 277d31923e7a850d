/* Reads CSV files that together form one table into memory, by columns. A column is an array of numbers (f64), of words (i32 codes and a
 * set of the distinct words), or of texts.
 *
 *     struct gt_data_table t;
 *     GT_TRY(gt_table_read(paths, n, &spec, &t, err));                 training: the columns are those of the first file
 *     GT_TRY(gt_table_read_as(paths, n, &spec, facts, true, &t, err)); evaluation, prediction: the columns of the facts
 *     ... t.column[k].number[row] ...
 *     gt_table_free(&t);
 *
 *     table.csv --> csv.h: records --> parse_cell.h: missing, number or word --> columns: f64, i32 + words, or texts
 *
 * A column without a given type is first read as numbers, or as words if its first value is not a number. After all rows, table_odd.c
 * decides: a column of numbers may have a few other cells; a number with leading zeros (parse_cell.h) turns the column into words. If the
 * decided type differs from the type read, the files are read again, because numbers do not keep their text. A column with more than
 * GT_TABLE_MAX_WORDS distinct words is read once more, as texts. */
#ifndef GT_DATASETS_TABLE_H
#define GT_DATASETS_TABLE_H

#include "table/table_spec.h"
#include "text/word_set.h"
#include "text/texts.h"

#define GT_TABLE_MAX_WORDS (1 << 20) /* maximum number of different words of a column */

enum gt_table_store {
	GT_STORE_SKIP,    /* the column is not in memory */
	GT_STORE_NUMBERS,
	GT_STORE_WORDS,
	GT_STORE_TEXT,
};
#define GT_CODE_MISSING (-1) /* a missing value */
#define GT_CODE_OTHER (-2)   /* code of a word that the facts of the training split lack (gt_table_read_as) */

struct gt_table_column {
	char *name;
	enum gt_table_store store;
	double *number;        /* [n] for GT_STORE_NUMBERS: finite, or NaN for a missing value */
	int32_t *code;         /* [n] for GT_STORE_WORDS: index in words, or GT_CODE_MISSING or GT_CODE_OTHER */
	struct gt_words words; /* UTF-8 */
	struct gt_texts text;  /* [n] for GT_STORE_TEXT: UTF-8; a missing value is empty */
	unsigned orders;       /* columns of dates: orders in which all dates are valid, as bits 1 << enum gt_date_order; else 0 */
};

/* The line at which a row begins in its file. Until the next entry, each row begins one line after the previous row. */
struct gt_table_line {
	int64_t row, line;
	int file; /* index in gt_data_table.path */
};

struct gt_data_table {
	int64_t n;                      /* number of rows */
	int ncolumns;
	struct gt_table_column *column; /* [ncolumns] */
	uint64_t *row_id;               /* [n] 48-bit hash of each row: of the texts of all columns, ignored columns included */
	bool header;                    /* the first file has a header */
	struct gt_notation notation;    /* notation of numbers in columns of words */
	int nfiles;
	char **path;                    /* [nfiles] */
	struct gt_table_line *line;     /* [nlines], ascending rows */
	int64_t nlines, lines_cap, cap; /* cap: rows for which the columns have memory */
	struct gt_spill *spill;         /* where the arrays of rows are; not owned; NULL: in memory */
};

struct gt_table_facts;

/* Reads files whose columns have the same names; in files without a header, the same number of fields. GT_ECONFIG: the spec contradicts
 * itself or names a column that the files lack. GT_EDATA: the message names file and line. On failure *out is empty. */
enum gt_code gt_table_read(const char *const *path, int nfiles, const struct gt_table_spec *spec, struct gt_data_table *out,
                           struct gt_err *err);

/* Reads files with the columns of fitted facts: column k of *out is facts->column[k]. The files may lack ignored columns and, unless
 * `targets` is set, target columns; further columns are skipped. Only delimiter, notation, na and max_bytes of the spec are used. Files
 * without a header have all columns of the training data, or all except the targets. GT_EDATA: the message names missing columns, or a
 * target's class that the facts lack. */
enum gt_code gt_table_read_as(const char *const *path, int nfiles, const struct gt_table_spec *spec, const struct gt_table_facts *facts,
                              bool targets, struct gt_data_table *out, struct gt_err *err);
void gt_table_free(struct gt_data_table *t);
/* Frees the columns and row_id; gt_table_where may still be called. */
void gt_table_drop_columns(struct gt_data_table *t);

uint64_t gt_table_bytes(const struct gt_data_table *t); /* bytes of memory of t */

/* Returns the index of a column; -1: no column has this name. */
int gt_table_find(const struct gt_data_table *t, const char *name);

/* data.limit: keeps at most `limit` rows, at equal distances, so that a table sorted by class keeps all classes; 0: keeps all rows. */
enum gt_code gt_table_thin_out(struct gt_data_table *t, int64_t limit, struct gt_err *err);

/* Returns the text of a row in column k (words or texts): *len bytes, not always NUL-terminated; empty for a missing value. */
const char *gt_table_text(const struct gt_data_table *t, int k, int64_t row, size_t *len);

/* Returns the file of a row, and in *line the line at which it begins. */
const char *gt_table_where(const struct gt_data_table *t, int64_t row, int64_t *line);

/* Fails with GT_EDATA and a message about the cell of a row in column k or, if row is -1, about the column. */
enum gt_code gt_table_fail(const struct gt_data_table *t, int k, int64_t row, const char *why, struct gt_err *err);

/* Writes the numbers of rows `row` of column k to out[n]; NaN: missing. row NULL: the rows 0 ... n - 1. GT_EDATA: a cell is a word, or a
 * number out of range. GT_EINTERNAL: the column was skipped. */
enum gt_code gt_table_numbers(const struct gt_data_table *t, int k, const int64_t *row, int64_t n, double *out, struct gt_err *err);

#endif
