/* Fits facts (types, statistics, codes) of table columns to the rows of the training split, and converts rows into model inputs.
 *
 *     struct gt_table_facts f;
 *     GT_TRY(gt_table_fit(&table, &spec, rows, nrows, &f, err));
 *     float *values = malloc(n * f.nvalues * sizeof *values); ...
 *     GT_TRY(gt_table_transform(&table, &f, &(struct gt_table_fields){values, codes, labels, NULL}, err));
 *     gt_table_facts_free(&f);
 *
 * Inferred types (from the rows of the training split; a column has numbers if every value in it is a number, see parse_cell.h):
 *     no value, or a single value and none missing           ignore
 *     whole numbers, more than GT_TABLE_FEW, each that of
 *       the row before plus 1, or all different in a column
 *       with a name such as id, user_id, index or no         ignore: row numbers or keys
 *     whole numbers, at most GT_TABLE_FEW different ones     categorical
 *     other numbers                                          continuous
 *     dates of one order (date.h)                            date
 *     dates whose day and month cannot be told apart         ignore
 *     words, more than GT_TABLE_FEW and more than half of
 *       the values different, of GT_TABLE_PROSE or more
 *       parts between spaces on average                      text
 *     words, more than GT_TABLE_FEW, all of them different   ignore: an identifier
 *     other words                                            categorical
 * (The limit of whole numbers is that of cont_cat_split in fastai.)
 *
 * continuous    A missing value becomes the median of the present values. After that, mean and std are computed over all rows; std
 *               divides by the number of rows (as in scikit-learn's StandardScaler after SimpleImputer). The input is (x - mean) / std;
 *               if std is 0, x - mean. If a value is missing in the training split, a further column NAME_na is 1 where it is missing,
 *               else 0.
 * date          GT_DATE_PARTS inputs in place of one, each treated like a continuous column; a missing date has the median of each part.
 * categorical   Code 0 is a missing value, code 1 a word that the training split does not have; its words follow by descending frequency,
 *               then by name. If all words are whole numbers without leading zeros, they are compared as numbers, so that 1 and 1.0 are the
 *               same, and sorted as numbers.
 * text          A text, which datasets/text/ converts to tokens. The texts of several columns are joined: one line for
 *               each that is not missing, in the order of the columns.
 * target        Classes are sorted by name, or by value if all are whole numbers, as in scikit-learn and fastai. Numbers are unchanged.
 *               A row without a target is an error, or is left out if bad rows are skipped. */
#ifndef GT_DATASETS_TABLE_FACTS_H
#define GT_DATASETS_TABLE_FACTS_H

#include "table/table.h"

#define GT_TABLE_FEW 20 /* maximum number of different whole numbers of an inferred categorical column */
#define GT_TABLE_PROSE 8 /* minimum average number of space-separated parts in an inferred column of texts */
#define GT_TABLE_MAX_TEXT ((uint64_t)48 << 20) /* maximum bytes of all names and words as JSON, so that checkpoints stay readable */
#define GT_NO_TARGET "the target is missing"             /* end of the reason why a row is left out */
#define GT_AMBIGUOUS_DATES "dates whose day and month cannot be told apart: write type = \"date\"; order = \"dmy\" or \"mdy\""
#define GT_CELL_MISSING "the cell counts as missing"     /* end of the reason why a cell is left out */
#define GT_TARGET_MISSING GT_NO_TARGET "; remove the row, or write data.on_error = \"skip\"" /* end of a message */
enum { GT_CODE_OF_MISSING, GT_CODE_OF_UNKNOWN, GT_CODE_OF_WORDS };

struct gt_table_fact {
	char *name;
	enum gt_column_type type;  /* not GT_COLUMN_AUTO */
	double mean, std, median;  /* continuous, and a target of numbers: finite, std >= 0 */
	enum gt_date_order order;  /* date */
	struct gt_date_fact {
		double mean, std, median;
	} part[GT_DATE_PARTS];     /* date: statistics of each part */
	bool na;                   /* continuous, date: there is a column NAME_na */
	bool whole;                /* the words are whole numbers, as "%lld" writes them */
	struct gt_words words;     /* categorical: word i has code i + GT_CODE_OF_WORDS; target of classes: word i is class i */
	/* for output only; 0 or NULL in facts from a checkpoint */
	int64_t missing;           /* rows of the training split without a value */
	bool given;                /* the type was given */
	enum gt_column_type inferred; /* given: the type that would be inferred; GT_COLUMN_AUTO: not known */
	const char *why;           /* reason for the inferred type; NULL: no reason */
	char *own_why;             /* memory of `why` (gt_table_report_get); NULL: `why` is a literal */
};

struct gt_table_facts {
	bool header;                  /* the training data has a header */
	enum gt_table_task task;      /* GT_TASK_CLASSES or GT_TASK_NUMBERS */
	int ncolumns;
	struct gt_table_fact *column; /* [ncolumns] in the order of the files */
	int nvalues;                  /* number of values of a row: continuous columns and parts of dates in the order of the columns,
		then the columns NAME_na in their order */
	int ncodes;                   /* number of codes of a row: categorical columns in their order */
	int ntexts;                   /* number of columns of texts */
	int64_t *cardinality;         /* [ncodes] gt_table_cardinality of these columns */
	int ntargets;                 /* number of target columns, at least 1 */
	int64_t nrows;                /* rows of the training split; 0 in facts from a checkpoint */
};

/* Fits facts to the rows row[nrows] (ascending) of t; NULL: to all nrows rows. Needs 16 bytes of temporary memory per row. GT_ECONFIG: the
 * spec has no target, or classes as the targets of several columns. GT_EDATA: the message names file and line. On failure *out is empty. */
enum gt_code gt_table_fit(const struct gt_data_table *t, const struct gt_table_spec *spec, const int64_t *row, int64_t nrows,
                            struct gt_table_facts *out, struct gt_err *err);
void gt_table_facts_free(struct gt_table_facts *f);

/* Sets nvalues, ncodes, cardinality and ntargets of facts whose columns are complete, and checks that they can be used. `where` begins the
 * message. */
enum gt_code gt_table_facts_finish(struct gt_table_facts *f, const char *where, struct gt_err *err);

/* Returns the index of a text (without spaces around it) in the words of a column; -1: the column lacks the text. notation: of numbers. */
int32_t gt_table_lookup(const struct gt_table_fact *f, const struct gt_notation *notation, const char *text, size_t len);

/* Returns the number of values of a column, without NAME_na: 1, GT_DATE_PARTS, or 0. */
int gt_table_values(const struct gt_table_fact *f);
/* Return the index of the column that has code i of a row, and of the column that has target i (from 0). */
int gt_table_code_column(const struct gt_table_facts *f, int i);
int gt_table_target_column(const struct gt_table_facts *f, int i);
/* Returns the number of codes of a categorical column, which are 0 ... the result - 1; of a target, the number of classes. */
int64_t gt_table_cardinality(const struct gt_table_facts *f, int column);

/* Row-major arrays that gt_table_transform fills; NULL: do not compute this array. The caller owns the arrays. */
struct gt_table_fields {
	float *values;   /* [n, nvalues] */
	int32_t *codes;  /* [n, ncodes] */
	int32_t *labels; /* [n] for GT_TASK_CLASSES */
	float *targets;  /* [n, ntargets] for GT_TASK_NUMBERS */
	bool normalize;  /* targets become (target - mean) / std */
};

/* Converts all rows of a table whose columns match the facts. The result of a row does not depend on other rows. Needs 8 bytes of temporary
 * memory per row. GT_EDATA names file and line: a cell is not a number, a target is missing, or the facts lack a class. */
enum gt_code gt_table_transform(const struct gt_data_table *t, const struct gt_table_facts *f, const struct gt_table_fields *out,
                            struct gt_err *err);

/* Sets *out to the texts of all rows: to the only text column of the table or, with several text columns, to joined texts in *own, which
 * the caller frees. */
enum gt_code gt_table_texts(const struct gt_data_table *t, const struct gt_table_facts *f, struct gt_texts *own,
                            const struct gt_texts **out, struct gt_err *err);
/* Returns the maximum memory in bytes that gt_table_texts allocates for *own. */
uint64_t gt_table_texts_bytes(const struct gt_data_table *t, const struct gt_table_facts *f);

struct gt_sample_mark;
/* Sets mark[t->n].content (sample_mark.h) to a 48-bit hash, not 0, of each row's values in the columns that the facts use, targets
 * included. The hash does not depend on the order of the columns, the delimiter or the words for missing values: a number is hashed by
 * value, another text by its bytes. */
enum gt_code gt_table_marks(const struct gt_data_table *t, const struct gt_table_facts *facts, struct gt_sample_mark *mark,
                            struct gt_err *err);

/* For a stratified split, called before fitting: writes a group index, 0 ... *groups - 1, for each row to out[t->n]; rows with equal
 * targets have equal indices. If the target has no classes or there are several targets, *groups becomes 0 and out is not written. */
enum gt_code gt_table_strata(const struct gt_data_table *t, const struct gt_table_spec *spec, int32_t *out, int64_t *groups,
                             struct gt_err *err);

/* Appends the setting "columns = ( … );" of a config to *text, one line per column, each with `indent` before it and a comment. The caller
 * frees *text. */
enum gt_code gt_table_columns_text(const struct gt_table_facts *f, const char *indent, char **text, struct gt_err *err);

/* ---- JSON ----------------------------------------------------------------------------------------------------------------------- */
/* The fitted facts of a table, as a member of data.json in a checkpoint:
 *   {"header":true,"task":"classes","columns":[
 *     {"name":"age","type":"continuous","mean":38.6,"std":13.7,"median":37,"missing":true},
 *     {"name":"job","type":"categorical","words":["clerk","cook"]},
 *     {"name":"day","type":"date","order":"dmy","parts":[2023,0.5,2023, …]},
 *     {"name":"id","type":"ignore"},
 *     {"name":"income","type":"target","words":["high","low"]}]}
 * task     "classes", or "numbers": a target then has mean, std and median instead of words.
 * words    by code; with "whole":true, they are compared as whole numbers.
 * parts    mean, std and median of each part of a date (date.h).
 * missing  whether the model has an input NAME_na. */
struct gt_json;
struct gt_json_value;
/* Appends the facts as the member `key` of an open object. */
void gt_table_json_put(struct gt_json *j, const char *key, const struct gt_table_facts *f);

/* Reads the facts from parsed JSON, which may be hostile; parse the JSON with a depth of at least 5. `path` begins the message. The caller
 * frees *out with gt_table_facts_free; on failure it is empty. GT_EDATA: v does not have this form. */
enum gt_code gt_table_json_get(const struct gt_json_value *v, const char *path, struct gt_table_facts *out, struct gt_err *err);

/* For an index of data (data_index.h): the members of the facts that are "for output only", as the member `key`:
 *   {"rows":800,"columns":[{"missing":3,"given":true,"inferred":"continuous","why":"numbers"}, …]}
 * inferred and why are absent if they are not known.
 * gt_table_report_get sets them in facts that gt_table_json_get has read. GT_EDATA: v does not have this form. */
void gt_table_report_put(struct gt_json *j, const char *key, const struct gt_table_facts *f);
enum gt_code gt_table_report_get(const struct gt_json_value *v, struct gt_table_facts *f, struct gt_err *err);

/* Compares those members of two facts that affect a model's inputs and targets. GT_EDATA names the first difference. For a resumed run,
 * whose training data must be unchanged. where: the data's name for messages. */
enum gt_code gt_table_json_compare(const struct gt_table_facts *ckpt, const struct gt_table_facts *now, const char *where, const char *path,
                                   struct gt_err *err);

#endif
