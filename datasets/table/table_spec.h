/* The user's settings for a table: the notation of its files, and the types of its columns. Types that are not given are inferred from the
 * rows of the training split (table_facts.h). */
#ifndef GT_DATASETS_TABLE_SPEC_H
#define GT_DATASETS_TABLE_SPEC_H

#include "base/err.h"
#include "table/date.h"
#include "table/encoding.h"
#include "table/parse_cell.h"
#include <stdbool.h>
#include <stdint.h>

/* X(name, word in a config and in a checkpoint) */
#define GT_COLUMN_TYPES(X)                                                              \
	X(GT_COLUMN_AUTO, "auto")               /* inferred */                               \
	X(GT_COLUMN_CONTINUOUS, "continuous")   /* a number: f32, normalised */              \
	X(GT_COLUMN_CATEGORICAL, "categorical") /* one of several words or whole numbers: i32 */ \
	X(GT_COLUMN_DATE, "date")               /* a date: GT_DATE_PARTS numbers */          \
	X(GT_COLUMN_TEXT, "text")               /* a text: tokens */                         \
	X(GT_COLUMN_IGNORE, "ignore")           /* not used */                               \
	X(GT_COLUMN_TARGET, "target")           /* what the model predicts */
enum gt_column_type {
#define GT_X(name, word) name,
	GT_COLUMN_TYPES(GT_X)
#undef GT_X
	GT_COLUMN_TYPE_COUNT
};
#define GT_COLUMN_TYPE_WORDS "auto|continuous|categorical|date|text|ignore|target" /* the same words for a config */
extern const char *const gt_column_type_names[GT_COLUMN_TYPE_COUNT];

enum gt_table_header {
	GT_HEADER_AUTO, /* the first record is a header if no field is a number, a date or longer than 255 bytes, and all non-empty fields
	                   differ */
	GT_HEADER_YES,
	GT_HEADER_NO,   /* the names are the entries of `column`, in order, if there is one for each field; else c1, c2, … */
};

/* The kind of targets. */
enum gt_table_task {
	GT_TASK_AUTO,    /* inferred: classes for one target of words, or of at most GT_TABLE_FEW distinct whole numbers; else numbers */
	GT_TASK_CLASSES, /* one column: the name of a class */
	GT_TASK_NUMBERS, /* regression: the target is one or several columns of numbers */
};

struct gt_column_spec {
	const char *name;
	enum gt_column_type type;
	enum gt_date_order order; /* order of dates; GT_DATE_AUTO: detected from all dates of the column */
};

struct gt_skipped;

/* All strings are owned by the caller and must outlive the calls with the spec. All zero: a CSV file with inferred column types. */
struct gt_table_spec {
	char delimiter;                      /* 0: detected for each file (gt_csv_delimiter) */
	enum gt_encoding encoding;           /* of the files */
	struct gt_notation notation;         /* of numbers */
	enum gt_table_header header;
	const char *const *na;               /* [nna] words for a missing value; spaces around a word are ignored */
	int nna;                             /* 0 with na NULL: "", ?, NA, nan, NaN and null */
	const struct gt_column_spec *column; /* [ncolumns] types of columns by their names */
	int ncolumns;
	const char *const *target;           /* [ntarget] names of columns: the same as the type target */
	int ntarget;
	const char *const *ignore;           /* [nignore] names of columns: the same as the type ignore */
	int nignore;
	enum gt_table_task task;
	/* list to which odd cells, which count as missing, and unreadable rows, which are left out, are added; NULL: odd cells and unreadable
	 * rows are errors. Rows to predict (gt_table_read_as without targets) are never left out. */
	struct gt_skipped *skipped;
	int set;                             /* with skipped: identifies the table in the list */
	uint64_t max_bytes;                  /* maximum memory of a table; 0: 16 GiB. Arrays in files of `spill` do not count */
	struct gt_spill *spill;              /* where the arrays of rows are; not owned; NULL: in memory */
};

/* Returns the *n words for a missing value: those of the spec, or the usual ones. */
const char *const *gt_table_na_words(const struct gt_table_spec *s, int *n);
/* Returns whether a text denotes a missing value. */
bool gt_table_is_na(const struct gt_table_spec *s, const char *text);
/* Returns whether a text that begins with byte c may denote a missing value; c 0: whether the empty text does. */
bool gt_table_na_begins(const struct gt_table_spec *s, char c);
/* Returns the type of a column in the spec; GT_COLUMN_AUTO: not given. */
enum gt_column_type gt_table_given_type(const struct gt_table_spec *s, const char *name);
/* Returns the order of a column's dates; GT_DATE_AUTO: not given. */
enum gt_date_order gt_table_given_order(const struct gt_table_spec *s, const char *name);
/* Checks that the spec is consistent; for example, a column must not have two types. GT_ECONFIG names the keys (data.columns, data.target,
 * data.ignore, data.delimiter). */
enum gt_code gt_table_spec_check(const struct gt_table_spec *s, struct gt_err *err);

/* ---- how the characters and the numbers of a table are written: for `gtrain init`; a run reads what its config says ---------------- */
/* Examines the first rows of a file and sets *out to the notation in which the most columns have numbers; in a tie, the notation of C (all
 * zero) is preferred. Of the spec, delimiter, na and encoding are used. *ambiguous: every number is also valid in another notation, such as
 * 1,234 (decimal comma or thousands separator); files with semicolons or tabs then get decimal commas. */
enum gt_code gt_table_guess_notation(const char *path, const struct gt_table_spec *spec, struct gt_notation *out, bool *ambiguous,
                                     struct gt_err *err);

/* Sets *out to GT_WINDOWS_1252 if a file is not UTF-8, has no multi-byte UTF-8 characters, and is valid Windows-1252; else to GT_UTF_8. */
enum gt_code gt_table_guess_encoding(const char *path, enum gt_encoding *out, struct gt_err *err);

#endif
