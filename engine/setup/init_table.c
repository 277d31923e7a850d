/* `gtrain init TABLE.csv --target COLUMN`: examines a table, and writes a config that trains on it.
 *
 *     read: all columns  -->  split as the config will  -->  learn: types  -->  choose: batch, epochs, network  -->  write the text */
#include "setup/init_table.h"
#include "base/arena.h"
#include "base/spill.h"
#include "data_index.h"
#include "exec/split_samples.h"
#include "setup/init_missing.h"
#include "setup/init_template.h"
#include "setup/init_text.h"
#include "skipped.h"
#include "table/parse_cell.h"
#include "table/table_facts.h"
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define SEED 42     /* seed in the config */
#define VALID 0.2   /* share of the rows that is reserved for evaluation */
#define ROWS_EACH 100  /* a column of integers with fewer training rows for each value is treated as continuous, not as categorical */
#define FEW_CLASSES 10 /* maximum number of different integers in a target column that is treated as classes */

/* Properties of the table. */
struct look {
	const struct gt_init_names *names;
	const char *path, *name;  /* path: absolute path of the table; name: name of the run */
	const char *const *target;
	int ntarget;
	struct gt_spill *spill; /* where the rows of a large table are */
	struct gt_data_table table;
	struct gt_table_facts facts; /* facts fitted to the rows that the config uses for training */
	int64_t rows, ntrain;
	const struct gt_init_spec *init;
	enum gt_encoding encoding;
	struct gt_notation notation;
	bool ambiguous;           /* numbers in the table can be read in two notations */
	int64_t untargeted;       /* number of rows without a target, which are skipped */
	int64_t odd;              /* number of non-numeric cells in numeric columns, which count as missing */
	int64_t bad;              /* number of rows that cannot be read */
	struct gt_init_missing missing; /* words in columns of numbers, which count as missing */
	const char **na;          /* [nna] words for missing values, if they are not the usual ones; malloc'ed */
	int nna;
	int64_t classes;          /* number of classes; 0: numeric targets */
	struct gt_text_sizes sizes; /* sizes of the texts */
	bool words;               /* the table has only columns of texts and a column of classes */
	struct gt_column_spec *given; /* [table.ncolumns]: types in the config that differ from the inferred types; malloc'ed */
};

/* The values that `gtrain init` has chosen for the config. */
struct choice {
	int64_t batch, epochs, width[2];
	double dropout, lr;
};

static enum gt_code fail_no_target(const struct look *l, struct gt_err *err)
{
	char list[600] = "", shown[GT_CELL_SHOWN];
	for (int k = 0; k < l->table.ncolumns && strlen(list) < sizeof list - 64; k++)
		snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", k ? ", " : "", gt_cell_shown(l->table.column[k].name, shown));
	return gt_fail(err, GT_EUSAGE, "--target: expected the column of %.300s to predict, one of: %s", l->path, list);
}

/* Chooses between classification and regression. A target with many different integers, such as prices, is treated as numeric, although the
 * inferred type of the column is class. */
static enum gt_table_task choose_task(const struct look *l, int64_t groups)
{
	int k = gt_table_find(&l->table, l->target[0]);
	bool number = k >= 0 && l->table.column[k].store == GT_STORE_NUMBERS;
	return groups && (!number || groups <= FEW_CLASSES) ? GT_TASK_CLASSES : GT_TASK_NUMBERS;
}

/* Makes integer columns with few rows for each value continuous: an embedding of each value would be learned from too few rows, and the
 * order of the values would be lost. Returns whether a column was changed. */
static bool make_sparse_numbers_continuous(struct look *l, struct gt_table_spec *spec)
{
	for (int k = 0; k < l->facts.ncolumns; k++) {
		const struct gt_table_fact *f = &l->facts.column[k];
		if (f->type == GT_COLUMN_CATEGORICAL && f->whole && l->table.column[k].store == GT_STORE_NUMBERS &&
		    l->ntrain < (int64_t)f->words.n * ROWS_EACH)
			l->given[spec->ncolumns++] = (struct gt_column_spec){l->table.column[k].name, GT_COLUMN_CONTINUOUS};
	}
	spec->column = l->given;
	return spec->ncolumns > 0;
}

/* Rejects a target column whose text is different in every row: such a column is an identifier and has no classes. */
static enum gt_code check_classes(const struct look *l, int64_t groups, struct gt_err *err)
{
	char shown[GT_CELL_SHOWN];
	if (groups < l->rows)
		return GT_OK;
	return gt_fail(err, GT_EUSAGE, "--target %s: expected a column of classes or numbers, got a different word in each of %lld rows, such "
	               "as an identifier; choose another column", gt_cell_shown(l->target[0], shown), (long long)groups);
}

/* Writes the indices of the rows that the config will use for training to train[], and their number to l->ntrain. group: the class of each
 * row. */
static enum gt_code divide_rows(struct look *l, const int32_t *group, int64_t groups, int64_t *train, struct gt_err *err)
{
	size_t n = (size_t)l->rows;
	struct gt_sample_mark *mark = gt_spill_zeros(l->spill, n, sizeof *mark);
	char *is_valid = malloc(n);
	enum gt_code code = mark && is_valid ? GT_OK : gt_fail_memory(err, n * sizeof *mark);
	for (size_t i = 0; i < n && code == GT_OK; i++)
		mark[i].id = l->table.row_id[i];
	if (code == GT_OK)
		code = gt_split_samples(SEED, VALID, mark, l->rows, group, groups, NULL, is_valid, err);
	l->ntrain = 0;
	for (int64_t i = 0; i < l->rows && code == GT_OK; i++)
		if (!is_valid[i])
			train[l->ntrain++] = i;
	gt_spill_free(l->spill, mark);
	free(is_valid);
	return code;
}

/* Computes the facts of the table (types, means, categories) from the rows that the config uses for training. */
static enum gt_code learn_facts(struct look *l, struct gt_table_spec *spec, struct gt_err *err)
{
	int64_t groups = 0, *train = gt_spill_resize(l->spill, NULL, (size_t)l->rows * sizeof *train);
	int32_t *group = gt_spill_resize(l->spill, NULL, (size_t)l->rows * sizeof *group);
	enum gt_code code = train && group ? GT_OK : gt_fail_memory(err, (size_t)l->rows * sizeof *train);
	if (code == GT_OK)
		code = gt_table_strata(&l->table, spec, group, &groups, err);
	spec->task = choose_task(l, groups);
	if (code == GT_OK && spec->task == GT_TASK_CLASSES)
		code = check_classes(l, groups, err);
	if (code == GT_OK)
		code = divide_rows(l, group, spec->task == GT_TASK_CLASSES ? groups : 0, train, err);
	if (code == GT_OK)
		code = gt_table_fit(&l->table, spec, train, l->ntrain, &l->facts, err);
	if (code == GT_OK && make_sparse_numbers_continuous(l, spec)) {
		gt_table_facts_free(&l->facts);
		code = gt_table_fit(&l->table, spec, train, l->ntrain, &l->facts, err);
	}
	gt_spill_free(l->spill, train);
	gt_spill_free(l->spill, group);
	return code;
}

static enum gt_code measure_texts(struct look *l, struct gt_err *err)
{
	struct gt_texts own;
	const struct gt_texts *texts;
	int64_t *bytes = malloc((size_t)l->rows * sizeof *bytes);
	enum gt_code code = bytes ? gt_table_texts(&l->table, &l->facts, &own, &texts, err)
	                          : gt_fail_memory(err, (size_t)l->rows * sizeof *bytes);
	for (int64_t i = 0; i < l->rows && code == GT_OK; i++) {
		size_t n;
		gt_texts_get(texts, i, &n);
		bytes[i] = (int64_t)n;
	}
	if (code == GT_OK)
		l->sizes = gt_text_sizes_of(bytes, l->rows);
	if (bytes)
		gt_texts_free(&own);
	free(bytes);
	return code;
}

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);
	return n >= m && !strcmp(text + n - m, end);
}

/* Counts skipped rows and replaced cells. */
static void count_left_out(void *user, const char *why)
{
	struct look *l = user;
	++*(ends_with(why, GT_NO_TARGET) ? &l->untargeted : ends_with(why, GT_CELL_MISSING) ? &l->odd : &l->bad);
}

/* Prints warnings about cells that count as missing. For rows without a target, a comment in the config has the count. */
static void warn_of_missing_cell(void *user, const char *text)
{
	const struct look *l = user;
	if (!l->bad && ends_with(text, GT_CELL_MISSING))
		gt_init_warn(l->init, text);
}

/* Adds the words that stand for missing numbers to the spec. *again: there are such words, so that the table must be read again. */
static enum gt_code find_missing(struct look *l, struct gt_table_spec *spec, bool *again, struct gt_err *err)
{
	int usual;
	const char *const *na = gt_table_na_words(spec, &usual);
	GT_TRY(gt_init_find_missing(&l->table, spec, l->init, &l->missing, err));
	*again = l->missing.n > 0;
	if (!*again)
		return GT_OK;
	GT_CALLOC(l->na, usual + l->missing.n, err);
	for (int i = 0; i < usual; i++)
		l->na[l->nna++] = na[i];
	for (int i = 0; i < l->missing.n; i++)
		l->na[l->nna++] = l->missing.word[i];
	spec->na = l->na;
	spec->nna = l->nna;
	return GT_OK;
}

/* Reads the rows, again if words stand for missing numbers. Unreadable rows and cells are collected in spec->skipped. */
static enum gt_code read_tolerantly(struct look *l, struct gt_table_spec *spec, struct gt_err *err)
{
	bool again = false;
	GT_TRY(gt_skipped_open(&spec->skipped, err));
	GT_TRY(gt_table_read(&l->path, 1, spec, &l->table, err));
	GT_TRY(find_missing(l, spec, &again, err));
	if (!again)
		return GT_OK;
	gt_skipped_close(spec->skipped);
	spec->skipped = NULL;
	gt_table_free(&l->table);
	GT_TRY(gt_skipped_open(&spec->skipped, err));
	return gt_table_read(&l->path, 1, spec, &l->table, err);
}

/* Reads the table, except the rows without a target. A few non-numeric cells in a numeric column count as missing. A row that cannot be
 * read is an error. */
static enum gt_code read_rows(struct look *l, struct gt_table_spec *spec, struct gt_err *err)
{
	GT_TRY(gt_table_guess_encoding(l->path, &spec->encoding, err));
	l->encoding = spec->encoding;
	if (l->encoding != GT_UTF_8)
		gt_init_warn(l->init, "the table is not UTF-8; gtrain reads it as Windows-1252 (encoding)");
	GT_TRY(gt_table_guess_notation(l->path, spec, &spec->notation, &l->ambiguous, err));
	l->notation = spec->notation;
	enum gt_code code = read_tolerantly(l, spec, err);
	if (code == GT_OK)
		gt_skipped_report(spec->skipped, warn_of_missing_cell, count_left_out, l);
	gt_skipped_close(spec->skipped);
	spec->skipped = NULL;
	if (!l->bad)
		return code;
	gt_table_free(&l->table);
	return gt_table_read(&l->path, 1, spec, &l->table, err);
}

static void warn_of_notation(const struct look *l)
{
	if (l->ambiguous)
		gt_init_warn(l->init, l->notation.thousands
		              ? "all commas in numbers are before three digits: gtrain reads them as thousands separators; if they are decimal "
		                "commas, write decimal = \",\" instead of thousands = \",\""
		              : "all commas in numbers are before three digits: gtrain reads them as decimal commas; if they are thousands "
		                "separators, write thousands = \",\" instead of decimal = \",\"");
}

static void warn_of_dates(const struct look *l)
{
	char text[200], shown[GT_CELL_SHOWN];
	for (int k = 0; k < l->facts.ncolumns; k++) {
		const struct gt_table_fact *f = &l->facts.column[k];
		if (f->type != GT_COLUMN_IGNORE || !f->why || strcmp(f->why, GT_AMBIGUOUS_DATES))
			continue;
		snprintf(text, sizeof text, "the column \"%s\" is ignored: %s", gt_cell_shown(f->name, shown), f->why);
		gt_init_warn(l->init, text);
	}
}

/* The rows of a table that is large enough for an index (data.index) are in temporary files beside the indices, as in later commands. */
static void open_spill(struct look *l)
{
	char dir[GT_PATH_SIZE];
	struct stat st;
	if (!stat(l->path, &st) && (uint64_t)st.st_size >= GT_INDEX_LARGE && gt_dataset_cache("index", dir, sizeof dir, NULL) == GT_OK &&
	    gt_index_make_spill_dir(dir))
		gt_spill_open(dir, &l->spill);
}

static enum gt_code inspect_table(struct look *l, struct gt_err *err)
{
	open_spill(l);
	struct gt_table_spec spec = {.target = l->target, .ntarget = l->ntarget, .spill = l->spill};
	GT_TRY(read_rows(l, &spec, err));
	if (!l->ntarget)
		return fail_no_target(l, err);
	l->rows = l->table.n;
	if (l->rows < 10)
		return gt_fail(err, GT_EDATA, "%.400s: expected at least 10 rows, got %lld", l->path, (long long)l->rows);
	if (!(l->given = calloc((size_t)l->table.ncolumns, sizeof *l->given)))
		return gt_fail_memory(err, (size_t)l->table.ncolumns * sizeof *l->given);
	warn_of_notation(l);
	GT_TRY(learn_facts(l, &spec, err));
	warn_of_dates(l);
	if (l->facts.ntexts)
		GT_TRY(measure_texts(l, err));
	l->words = l->facts.ntexts && !l->facts.ncodes && !l->facts.nvalues && l->facts.task == GT_TASK_CLASSES;
	if (l->facts.task == GT_TASK_CLASSES)
		l->classes = gt_table_cardinality(&l->facts, gt_table_target_column(&l->facts, 0));
	return GT_OK;
}

static void choose_settings(const struct look *l, struct choice *c)
{
	int64_t n = l->ntrain;
	c->batch = n < 32 ? n : n < 4000 ? 32 : n < 20000 ? 64 : n < 200000 ? 256 : 1024;
	/* Trains on about 300,000 rows over all epochs. If the network overfits a small table earlier, the best checkpoint is kept. */
	c->epochs = (int64_t)fmin(fmax(round(300000 / (double)n), 4), 40);
	c->width[0] = n < 2000 ? 64 : 200;
	c->width[1] = n < 2000 ? 32 : 100;
	c->dropout = n < 2000 ? 0.3 : n < 20000 ? 0.1 : 0;
	c->lr = 5e-3;
	if (l->words)
		c->batch = 16;
}

static enum gt_code write_config(const struct look *l, const struct choice *c, const char *columns, char **text,
                                 struct gt_err *err)
{
	const struct gt_table_facts *t = &l->facts;
	const char *path = l->names->shown;
	char lr[16], dropout[16], share[16];
	int numbers = 0, dates = 0;
	for (int k = 0; k < t->ncolumns; k++)
		numbers += t->column[k].type == GT_COLUMN_CONTINUOUS, dates += t->column[k].type == GT_COLUMN_DATE;
	snprintf(lr, sizeof lr, "%.1e", c->lr);
	snprintf(dropout, sizeof dropout, "%g", c->dropout);
	snprintf(share, sizeof share, "%g", VALID);
	const struct gt_init_value values[] = {
	    GT_TEXT("CONFIG", l->names->config),
	    GT_TEXT("RUN", l->name),
	    GT_STRINGS("PATH", &path, 1),
	    GT_NUMBER("ROWS", l->rows),
	    GT_NUMBER("NCOLUMNS", t->ncolumns),
	    GT_NUMBER("NUMBERS", numbers),
	    GT_NUMBER("CODES", t->ncodes),
	    GT_NUMBER("DATES", dates),
	    GT_NUMBER("TEXTS", t->ntexts),
	    GT_NUMBER("VALUES", t->nvalues),
	    GT_NUMBER("SEVERAL", (t->ncodes > 0) + (t->nvalues > 0) + (t->ntexts > 0) > 1),
	    GT_NUMBER("CLASSES", l->classes),
	    GT_STRINGS("TARGET", l->target, l->ntarget),
	    GT_NUMBER("NTARGETS", t->ntargets),
	    GT_NUMBER("SEED", SEED),
	    GT_NUMBER("ROWS_EACH", ROWS_EACH),
	    GT_TEXT("COLUMNS", columns),
	    GT_NUMBER("HEADER", l->table.header),
	    GT_NUMBER("WINDOWS_1252", l->encoding != GT_UTF_8),
	    GT_NUMBER("DECIMAL_COMMA", l->notation.decimal == ','),
	    GT_TEXT("THOUSANDS", ((char[]){l->notation.thousands, 0})),
	    GT_NUMBER("AMBIGUOUS", l->ambiguous),
	    GT_STRINGS("NA", l->na, l->nna),
	    GT_NUMBER("MAX_TOKENS", gt_init_max_tokens(&l->sizes)),
	    GT_NUMBER("PAIRS", l->words),
	    GT_NUMBER("HASH_BUCKETS", gt_init_hash_buckets(l->ntrain)),
	    GT_NUMBER("SKIPPED", l->untargeted || l->odd),
	    GT_NUMBER("UNTARGETED", l->untargeted),
	    GT_NUMBER("ODD", l->odd),
	    GT_NUMBER("BATCH", c->batch),
	    GT_NUMBER("WORDS", l->words),
	    GT_TEXT("SHARE", share),
	    GT_NUMBER("WIDTH1", c->width[0]),
	    GT_NUMBER("WIDTH2", c->width[1]),
	    GT_TEXT("DROPOUT", c->dropout > 0 ? dropout : ""),
	    GT_NUMBER("EPOCHS", c->epochs),
	    GT_NUMBER("TEXT_EPOCHS", gt_init_text_epochs(l->ntrain)),
	    GT_TEXT("LR", lr),
	    GT_TEXT("SPLIT", "valid"),
	    GT_NUMBER("LOSS", 1),
	    {NULL}};
	return gt_init_template("table", values, text, err);
}

/* Replaces the key at the beginning of a message by the option that sets it. */
static enum gt_code name_option(enum gt_code code, struct gt_err *err)
{
	static const char key[] = "data.target: ";
	if (!err || strncmp(err->msg, key, strlen(key)))
		return code;
	struct gt_err why = *err;
	return gt_fail(err, code, "--target: %s", why.msg + strlen(key));
}

enum gt_code gt_init_table(const char *path, const struct gt_init_names *names, const struct gt_init_spec *spec, char **text,
                           struct gt_err *err)
{
	struct look l = {.path = path, .name = names->run, .names = names, .init = spec, .target = spec->targets, .ntarget = spec->ntargets};
	struct choice c;
	char *columns = NULL;
	enum gt_code code = inspect_table(&l, err);
	if (code != GT_OK)
		code = name_option(code, err);
	else
		code = gt_table_columns_text(&l.facts, "\t", &columns, err);
	if (code == GT_OK) {
		choose_settings(&l, &c);
		columns[strlen(columns) - 1] = 0; /* removes the last newline, because the template adds one */
		code = write_config(&l, &c, columns, text, err);
	}
	free(columns);
	free(l.given);
	free(l.na);
	gt_init_missing_free(&l.missing);
	gt_table_facts_free(&l.facts);
	gt_table_free(&l.table);
	gt_spill_close(l.spill);
	return code;
}
