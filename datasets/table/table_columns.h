/* Inside the reader of tables: from the fields of a file to the columns of the table. */
#ifndef GT_DATASETS_TABLE_COLUMNS_H
#define GT_DATASETS_TABLE_COLUMNS_H

#include "csv.h"
#include "table/table_facts.h"

/* Cells of a column that do not fit it. */
struct gt_odd_cells {
	int64_t n;
	char *first;    /* "t.csv:7: column "x": expected a number"; malloc'ed; NULL: n is 0 */
	char *text;     /* text of the first odd cell, for messages; malloc'ed */
	char also[160]; /* lines and texts of the next ones: "line 9 ("--")" */
};

/* How the cells of a column are read. */
struct gt_table_reading {
	enum gt_table_store store; /* at the begin of the next pass over the files */
	bool inferred;             /* the type is not given */
	bool target;               /* a value that the model predicts */
	bool open;                 /* the type is not given and not decided yet (table_odd.h) */
	int64_t numbers;           /* open: cells that are numbers */
	int64_t words;             /* open: cells that are no numbers at all */
	int64_t like;              /* open: cells that are almost numbers: with commas, out of range or infinite */
	bool date;                 /* the column is one of dates */
	unsigned orders;           /* date: those that it may have */
	int64_t dates[GT_DATE_ORDERS]; /* date: cells that are dates in each order */
	bool odd;                  /* decided: all cells but some are numbers, or dates */
	bool tolerant;             /* odd: these are so few that they may be taken as missing */
	struct gt_odd_cells noted; /* odd cells that are an error */
};

struct gt_table_reader {
	const struct gt_table_spec *spec;
	const struct gt_table_facts *facts; /* NULL: the first file decides on the columns */
	bool targets;                       /* with facts: the target columns must be there */
	struct gt_data_table *table;
	struct gt_table_reading *reading;   /* [table->ncolumns] */
	struct gt_csv *csv;                 /* the current file */
	int *to;                            /* [nfields] column of each field; -1: none */
	int nfields;
	uint64_t *seed;                     /* [nfields] of the hash of a field, by the name of its column */
	int64_t records;                    /* records of all files so far, without headers */
	int64_t first_line, line;           /* of the first record of the file, and of the current one */
	bool na_first[256];                 /* a word for a missing value begins with this byte; 0: it is empty */
	uint64_t word_bytes;                /* bytes of all different words of all columns */
	bool full;                          /* a limit of memory or of words is reached */
	bool again;                         /* a column turned out to be of another kind than it was read as */
	char skipped[600];                  /* why the first row of all was left out; "": none was */
};

/* Looks at the first record of a file: sets r->to, nfields and first_line, and in the first file of a table makes the columns. *is_header:
 * the record has the names of the columns. */
enum gt_code gt_table_map_columns(struct gt_table_reader *r, const struct gt_csv_record *rec, bool *is_header, struct gt_err *err);

#endif
