/* `gtrain init TABLE.csv --target COLUMN`: looks at a table, and writes a config that trains on it.
 *
 *     read: all columns  -->  split as the config will  -->  learn: types  -->  choose: batch, epochs, network  -->  write the text */
#include "setup/init_table.h"
#include "base/arena.h"
#include "base/memstream.h"
#include "conf/conf_string.h"
#include "exec/split_samples.h"
#include "skipped.h"
#include "table/cell.h"
#include "table/table_facts.h"
#include "table/table_guess.h"
#include "setup/init_checkpoint.h"
#include "setup/init_text.h"
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEED 42     /* the config's */
#define VALID 0.2   /* share of the rows that is evaluated */
#define ROWS_EACH 100  /* fewest training rows for each value of a column of whole numbers that is one of categories */
#define FEW_CLASSES 10 /* maximum number of different whole numbers of a target that is taken for one of classes */

/* What the table looks like. */
struct look {
	const struct gt_init_names *names;
	const char *path, *name;  /* absolute path; name of the run */
	const char *const *target;
	int ntarget;
	struct gt_data_table table;
	struct gt_table_facts facts; /* of the rows that the config trains with */
	int64_t rows, ntrain;
	const struct gt_init_spec *init;
	enum gt_encoding encoding;
	struct gt_notation notation;
	bool ambiguous;           /* the notation could be another one */
	int64_t untargeted;       /* rows without a target, which are left out */
	int64_t odd;              /* cells that are no numbers in columns of numbers, which count as missing */
	int64_t bad;              /* rows that cannot be read */
	int64_t classes;          /* 0: the targets are numbers */
	struct gt_text_sizes sizes; /* of the texts */
	bool words;               /* the table is texts and their classes */
	struct gt_column_spec *given; /* [table.ncolumns]: types that the config gives other than the inferred ones; malloc'ed */
};

/* What the config says. */
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

/* A target of many different whole numbers, such as marks, is more likely a number than a class, though inference calls it a class. */
static enum gt_table_task choose_task(const struct look *l, int64_t groups)
{
	int k = gt_table_find(&l->table, l->target[0]);
	bool number = k >= 0 && l->table.column[k].store == GT_STORE_NUMBERS;
	return groups && (!number || groups <= FEW_CLASSES) ? GT_TASK_CLASSES : GT_TASK_NUMBERS;
}

/* Makes whole numbers with few rows for each value continuous: a vector for each value would be learned from too few rows, and its order
 * would be lost. Returns whether there are any. */
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

/* Rejects a target of identifiers. */
static enum gt_code check_classes(const struct look *l, int64_t groups, struct gt_err *err)
{
	char shown[GT_CELL_SHOWN];
	if (groups < l->rows)
		return GT_OK;
	return gt_fail(err, GT_EUSAGE, "--target %s: expected a column of classes or of numbers, got words that are different in each of "
	               "the %lld rows, such as identifiers; choose another column", gt_cell_shown(l->target[0], shown), (long long)groups);
}

/* Writes the rows that a run of the config trains with to train, and their number to l->ntrain. group: the class of each row. */
static enum gt_code divide_rows(struct look *l, const int32_t *group, int64_t groups, int64_t *train, struct gt_err *err)
{
	size_t n = (size_t)l->rows;
	struct gt_sample_mark *mark = calloc(n, sizeof *mark);
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
	free(mark);
	free(is_valid);
	return code;
}

/* Learns from the rows that a run of the config trains with. */
static enum gt_code learn_facts(struct look *l, struct gt_table_spec *spec, struct gt_err *err)
{
	int64_t groups = 0, *train = malloc((size_t)l->rows * sizeof *train);
	int32_t *group = malloc((size_t)l->rows * sizeof *group);
	enum gt_code code = train && group ? GT_OK : gt_fail_memory(err, (size_t)l->rows * sizeof *train);
	if (code == GT_OK)
		code = gt_table_strata(&l->table, spec, group, &groups, err);
	spec->task = choose_task(l, groups);
	if (code == GT_OK && spec->task == GT_TASK_CLASSES)
		code = check_classes(l, groups, err);
	if (code == GT_OK)
		code = divide_rows(l, group, spec->task == GT_TASK_CLASSES ? groups : 0, train, err);
	if (code == GT_OK)
		code = gt_table_learn(&l->table, spec, train, l->ntrain, &l->facts, err);
	if (code == GT_OK && make_sparse_numbers_continuous(l, spec)) {
		gt_table_facts_free(&l->facts);
		code = gt_table_learn(&l->table, spec, train, l->ntrain, &l->facts, err);
	}
	free(train);
	free(group);
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

/* Counts what was left out. */
static void count_left_out(void *user, const char *why)
{
	struct look *l = user;
	++*(ends_with(why, GT_NO_TARGET) ? &l->untargeted : ends_with(why, GT_CELL_MISSING) ? &l->odd : &l->bad);
}

/* Warns of cells that count as missing. A row without a target is only counted in the config. */
static void warn_of_missing_cell(void *user, const char *text)
{
	const struct look *l = user;
	if (l->init->warn && !l->bad && ends_with(text, GT_CELL_MISSING))
		l->init->warn(l->init->user, text);
}

/* Reads the table without the rows that have no target. Few cells that are no numbers in a column of numbers are missing. A row that cannot
 * be read is an error. */
static enum gt_code read_rows(struct look *l, struct gt_table_spec *spec, struct gt_err *err)
{
	GT_TRY(gt_table_guess_encoding(l->path, &spec->encoding, err));
	l->encoding = spec->encoding;
	if (l->encoding != GT_UTF_8 && l->init->warn)
		l->init->warn(l->init->user, "the table is not UTF-8; it is read as Windows-1252 (encoding)");
	GT_TRY(gt_table_guess_notation(l->path, spec, &spec->notation, &l->ambiguous, err));
	l->notation = spec->notation;
	GT_TRY(gt_skipped_open(&spec->skipped, err));
	enum gt_code code = gt_table_read(&l->path, 1, spec, &l->table, err);
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
	if (l->ambiguous && l->init->warn)
		l->init->warn(l->init->user, l->notation.thousands
		              ? "all commas in numbers are before three digits: they are taken for separators of thousands; write "
		                "decimal = \",\" in place of thousands = \",\" if they are decimal commas"
		              : "all commas in numbers are before three digits: they are taken for decimal commas; write thousands = \",\" in "
		                "place of decimal = \",\" if they are separators of thousands");
}

static void warn_of_dates(const struct look *l)
{
	char text[200], shown[GT_CELL_SHOWN];
	for (int k = 0; k < l->facts.ncolumns && l->init->warn; k++) {
		const struct gt_table_fact *f = &l->facts.column[k];
		if (f->type != GT_COLUMN_IGNORE || !f->why || strcmp(f->why, GT_AMBIGUOUS_DATES))
			continue;
		snprintf(text, sizeof text, "column \"%s\" is ignored: %s", gt_cell_shown(f->name, shown), f->why);
		l->init->warn(l->init->user, text);
	}
}

static enum gt_code inspect_table(struct look *l, struct gt_err *err)
{
	struct gt_table_spec spec = {.target = l->target, .ntarget = l->ntarget};
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
	/* Rows shown in a run. Small tables are learned by heart soon; the best checkpoint is kept. */
	c->epochs = (int64_t)fmin(fmax(round(300000 / (double)n), 4), 40);
	c->width[0] = n < 2000 ? 64 : 200;
	c->width[1] = n < 2000 ? 32 : 100;
	c->dropout = n < 2000 ? 0.3 : n < 20000 ? 0.1 : 0;
	c->lr = 5e-3;
	if (l->words)
		c->batch = 16;
}

/* Says what a run will leave out. */
static void put_left_out(FILE *f, const struct look *l)
{
	if (!l->untargeted && !l->odd)
		return;
	fprintf(f, "\ton_error = \"skip\"; #");
	if (l->untargeted)
		fprintf(f, " %lld row%s no target and %s left out%s", (long long)l->untargeted, l->untargeted == 1 ? " has" : "s have",
		        l->untargeted == 1 ? "is" : "are", l->odd ? ";" : "");
	if (l->odd)
		fprintf(f, " %lld cell%s as missing", (long long)l->odd,
		        l->odd == 1 ? " does not fit its column and counts" : "s do not fit their columns and count");
	fputc('\n', f);
}

static void put_data(FILE *f, const struct look *l, const struct choice *c, const char *columns)
{
	fprintf(f, "data = {\n\tformat = \"csv\";\n\ttrain = [");
	gt_string_write(f, l->names->shown);
	fprintf(f, "];\n\ttarget = [");
	for (int i = 0; i < l->ntarget; i++) {
		fputs(i ? ", " : "", f);
		gt_string_write(f, l->target[i]);
	}
	fprintf(f, "];\n\t# The types of the columns, as they follow from the training rows; whole numbers are continuous if there are\n"
	           "\t# fewer than %d rows for each value. Change a type here if it is wrong: continuous, categorical, date, text\n"
	           "\t# or ignore.\n%s",
	        ROWS_EACH, columns);
	if (!l->table.header)
		fprintf(f, "\theader = \"no\";\n");
	if (l->encoding != GT_UTF_8)
		fprintf(f, "\tencoding = \"windows-1252\"; # the table is not UTF-8\n");
	if (l->notation.decimal == ',')
		fprintf(f, "\tdecimal = \",\";%s\n", l->ambiguous ? " # or thousands = \",\": the numbers fit both" : "");
	if (l->notation.thousands)
		fprintf(f, "\tthousands = \"%c\";%s\n", l->notation.thousands, l->ambiguous ? " # or decimal = \",\": the numbers fit both" : "");
	if (l->facts.ntexts)
		gt_init_text_keys(f, &l->sizes, l->ntrain, l->words);
	put_left_out(f, l);
	fprintf(f, "\tbatch = %lld;\n", (long long)c->batch);
	if (!l->words)
		fprintf(f, "\tdrop_last = true; # batch normalisation needs more than one row in a batch\n");
	fprintf(f, "\tvalid = %g; # a fifth of the rows is kept from training and evaluated\n", VALID);
	if (l->classes)
		fprintf(f, "\tstratify = true;\n");
	else
		fprintf(f, "\tnormalize_target = true; # the network learns numbers around 0; predictions are in the unit of the table\n");
	fprintf(f, "};\n");
}

static void put_model(FILE *f, const struct look *l, const struct choice *c)
{
	const struct gt_table_facts *t = &l->facts;
	const struct {
		bool there;
		const char *inputs, *layer, *out; /* out: what the network reads of it */
	} part[] = {{t->ncodes > 0, "{ name = \"codes\"; }", "{ name = \"embed\"; type = \"embeddings\"; in = \"codes\"; }", "embed"},
	            {t->nvalues > 0, "{ name = \"values\"; }", NULL, "values"},
	            {t->ntexts > 0, "{ name = \"tokens\"; }, { name = \"lengths\"; }",
	             "{ name = \"bag\"; type = \"embedding_bag\"; in = [\"tokens\", \"lengths\"]; embedding_dim = 16; padding_idx = 0; "
	             "init_std = 0.05; }", "bag"}};
	int nparts = 0, n = 0;
	fprintf(f, "# The network:%s%s %lld and %lld units with batch normalisation%s.\n",
	        t->ncodes ? " a table of vectors for each categorical column," : "", t->ntexts ? " the mean of the vectors of words," : "",
	        (long long)c->width[0], (long long)c->width[1], c->dropout > 0 ? " and dropout" : "");
	fprintf(f, "model = {\n\tinputs = ( ");
	for (int i = 0; i < 3; i++)
		if (part[i].there)
			fprintf(f, "%s%s", nparts++ ? ", " : "", part[i].inputs);
	fprintf(f, " );\n\tlayers = (\n");
	for (int i = 0; i < 3; i++)
		if (part[i].there && part[i].layer)
			fprintf(f, "\t\t%s,\n", part[i].layer);
	if (nparts > 1) {
		fprintf(f, "\t\t{ name = \"all\"; type = \"concat\"; in = [");
		for (int i = 0; i < 3; i++)
			if (part[i].there)
				fprintf(f, "%s\"%s\"", n++ ? ", " : "", part[i].out);
		fprintf(f, "]; },\n");
	}
	for (int i = 0; i < 2; i++) {
		fprintf(f, "\t\t{ name = \"fc%d\"; type = \"linear\"; out = %lld; },\n\t\t{ name = \"relu%d\"; type = \"relu\"; },\n", i + 1,
		        (long long)c->width[i], i + 1);
		fprintf(f, "\t\t{ name = \"bn%d\"; type = \"batchnorm1d\"; },\n", i + 1);
		if (c->dropout > 0)
			fprintf(f, "\t\t{ name = \"drop%d\"; type = \"dropout\"; p = %g; },\n", i + 1, c->dropout);
	}
	fprintf(f, "\t\t{ name = \"out\"; type = \"linear\"; out = %lld; } # one output for each %s\n\t);\n};\n",
	        (long long)(l->classes ? l->classes : t->ntargets), l->classes ? "class" : "target");
}

static void put_train(FILE *f, const struct look *l, const struct choice *c)
{
	fprintf(f, "train = {\n\tepochs = %lld;\n\tloss = \"%s\"; # the target is %s\n", (long long)c->epochs,
	        l->classes ? "cross_entropy" : "mse",
	        l->classes ? "a class; for a number, \"mse\"" : "a number; for a class, \"cross_entropy\"");
	fprintf(f, "\toptimizer = { type = \"adamw\"; lr = %.1e; weight_decay = 0.01; decay_bias = false; decay_norm = false; };\n", c->lr);
	fprintf(f, "\tschedule = { type = \"onecycle\"; pct_start = 0.25; }; # over the whole run, whatever its epochs\n};\n");
}

static void put_config(FILE *f, const struct look *l, const struct choice *c, const char *columns)
{
	const struct gt_table_facts *t = &l->facts;
	int numbers = 0, dates = 0;
	for (int k = 0; k < t->ncolumns; k++)
		numbers += t->column[k].type == GT_COLUMN_CONTINUOUS, dates += t->column[k].type == GT_COLUMN_DATE;
	fprintf(f, "# Written by `gtrain init`. %lld rows, %d columns: %d of numbers, %d of categories", (long long)l->rows, t->ncolumns,
	        numbers, t->ncodes);
	if (dates)
		fprintf(f, ", %d of dates", dates);
	if (t->ntexts)
		fprintf(f, ", %d of texts", t->ntexts);
	fprintf(f, "; ");
	if (l->classes)
		fprintf(f, "the target has %lld classes.\n", (long long)l->classes);
	else
		fprintf(f, "%d target%s of numbers.\n", t->ntargets, t->ntargets > 1 ? "s" : "");
	fprintf(f, "# What a run will do, its memory and its work; train; how good it is; predict the rows of another table:\n"
	           "#     gtrain check %s\n"
	           "#     gtrain run %s\n"
	           "#     gtrain eval runs/%s --report\n"
	           "#     gtrain predict runs/%s NEW.csv\n", l->names->config, l->names->config, l->name, l->name);
	fprintf(f, "\nschema = 1;\nname = ");
	gt_string_write(f, l->name);
	fprintf(f, ";\nseed = %d;\n\n", SEED);
	put_data(f, l, c, columns);
	fputc('\n', f);
	if (l->words)
		gt_init_text_model(f, l->classes);
	else
		put_model(f, l, c);
	fputc('\n', f);
	if (l->words)
		gt_init_text_train(f, l->ntrain);
	else
		put_train(f, l, c);
	gt_init_checkpoint(f, l->name, "valid", "loss");
}

enum gt_code gt_init_table(const char *path, const struct gt_init_names *names, const struct gt_init_spec *spec, char **text,
                           struct gt_err *err)
{
	struct look l = {.path = path, .name = names->run, .names = names, .init = spec, .target = spec->targets, .ntarget = spec->ntargets};
	struct choice c;
	struct gt_memstream m;
	char *columns = NULL;
	FILE *f = NULL;
	enum gt_code code = inspect_table(&l, err);
	if (code == GT_OK)
		code = gt_table_columns_text(&l.facts, "\t", &columns, err);
	if (code == GT_OK && !(f = gt_memstream_open(&m)))
		code = gt_fail_memory(err, 0);
	if (code == GT_OK) {
		choose_settings(&l, &c);
		put_config(f, &l, &c, columns);
		code = gt_memstream_close(f, &m, text, NULL, err);
	}
	free(columns);
	free(l.given);
	gt_table_facts_free(&l.facts);
	gt_table_free(&l.table);
	return code;
}
