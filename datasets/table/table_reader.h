/* Internal header of the table reader: table_columns.c maps the fields of a file to table columns, table_odd.c decides on column types and
 * on cells that do not fit their column. */
#ifndef GT_DATASETS_TABLE_READER_H
#define GT_DATASETS_TABLE_READER_H

#include "csv.h"
#include "table/parse_cell.h"
#include "table/table_facts.h"

/* Cells that do not fit the type of their column. */
struct gt_odd_cells {
	int64_t n;
	char *first;    /* "t.csv:7: column "x": expected a number"; malloc'ed; NULL: n is 0 */
	char *text;     /* text of the first odd cell, for messages; malloc'ed */
	char also[160]; /* lines and texts of the next odd cells: "line 9 ("--")" */
};

/* How the cells of a column are read. */
struct gt_table_reading {
	enum gt_table_store store; /* storage to use from the next pass over the files on */
	bool inferred;             /* the type is not given */
	bool target;               /* the column is a target */
	bool open;                 /* the type is not given and not decided yet (gt_table_settle_column) */
	int64_t numbers;           /* open: count of cells that are numbers */
	int64_t words;             /* open: count of cells that are neither numbers nor almost numbers */
	int64_t like;              /* open: count of cells that are almost numbers: with commas, out of range or infinite */
	bool date;                 /* the column has dates */
	unsigned orders;           /* date: mask of possible orders */
	int64_t dates[GT_DATE_ORDERS]; /* date: count of cells that are dates in each order */
	bool odd;                  /* the type is decided: most cells are numbers, or dates */
	bool tolerant;             /* with odd: the other cells are so few that they may count as missing */
	struct gt_odd_cells noted; /* odd cells to report as an error */
};

struct gt_table_reader {
	const struct gt_table_spec *spec;
	const struct gt_table_facts *facts; /* NULL: the first file decides on the columns */
	bool targets;                       /* with facts: the files must have the target columns */
	struct gt_data_table *table;
	struct gt_table_reading *reading;   /* [table->ncolumns] */
	struct gt_csv *csv;                 /* the current file */
	int *to;                            /* [nfields] column of each field; -1: none */
	int nfields;
	uint64_t *seed;                     /* [nfields] seed of a field's hash, from its column name */
	int64_t records;                    /* records of all files so far, without headers */
	int64_t first_line, line;           /* lines of the file's first record and of the current record */
	bool na_first[256];                 /* a word for a missing value begins with this byte; [0]: the word is empty */
	uint64_t word_bytes;                /* total bytes of the distinct words of all columns */
	bool full;                          /* a limit of memory or of words is reached */
	bool again;                         /* a column must be read again with another storage */
	char skipped[600];                  /* why the first skipped row was left out; "": no row was */
};

/* Examines the first record of a file: sets r->to, nfields and first_line; for the first file of a table, also creates the columns.
 * *is_header: the record has the names of the columns. */
enum gt_code gt_table_map_columns(struct gt_table_reader *r, const struct gt_csv_record *rec, bool *is_header, struct gt_err *err);

/* ---- table_odd.c ---------------------------------------------------------------------------------------------------------------- */
/* Odd cells: cells such as "#REF!" in a column of numbers, or other texts in a column of dates.
 *
 * The first pass over the files counts the cells of a column whose type is not given, and at its end the type is decided:
 *     words among its values                      read as    the other cells
 *     few (gt_table_few_odd)                      numbers    are an error that lists the first ones, or missing if bad rows are skipped
 *     more, or beside few different whole         words
 *       numbers, which are categories
 *     all but few dates                           texts      as for numbers
 *     none, but numbers with commas, numbers      numbers    the same if they are few; an error if they are more
 *       out of range or infinite ones If the first pass has read the column differently, the files are read again. */

/* Returns whether `odd` cells among `good` cells are so few that they are more likely wrong than a sign of another type: at most 1 in 100,
 * or a single odd cell with at least 20 good cells. */
bool gt_table_few_odd(int64_t good, int64_t odd);

/* After a pass: decides the type of an open column, and the order of dates. Sets r->again if the column must be read again. */
enum gt_code gt_table_settle_column(struct gt_table_reader *r, int k, struct gt_err *err);

/* Returns an "expected ..." for a message about a text of len bytes that gt_cell_parse did not accept as a number. */
const char *gt_table_no_number(const struct gt_notation *n, const char *text, size_t len, enum gt_number_kind cell);

/* Handles an odd cell, as a missing value or as an error. GT_OK: the caller stores a missing value. GT_EDATA: an error: bad rows are not
 * skipped, and the type was given; or bad rows are skipped, and the column is a target. */
enum gt_code gt_table_odd_cell(struct gt_table_reader *r, int k, const char *text, const char *why, struct gt_err *err);

/* Adds a row or a cell, `noun`, to the list of skipped samples. why: begins with file and line. */
enum gt_code gt_table_skip(struct gt_table_reader *r, const char *noun, int64_t line, const char *why, struct gt_err *err);

/* After the last pass: GT_EDATA names the first odd cells of a column, if they are an error. */
enum gt_code gt_table_odd_error(const struct gt_table_reader *r, struct gt_err *err);

void gt_table_odd_free(struct gt_table_reading *how);

#endif
