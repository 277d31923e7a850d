/* Tables. The first byte of the input selects how it is read: bit 0 facts of data.json instead of a CSV file; else bits 1-2 header (3: as
 * 0, and rows that cannot be read are skipped), bit 3 task, bit 4 two files of the same text, bit 5 the delimiter is ';', bit 6 types are
 * given (with bit 3 also that of texts), bit 7 no words for missing values.
 *
 * What is accepted must be usable: a third of the rows is held out, the facts of the others are finite, each code is below the number of
 * codes, facts that are written and read again are equal, and the rows read again with these facts give the same inputs, also one at a
 * time. */
#include "base/arena.h"
#include "base/json.h"
#include "base/json_read.h"
#include "fuzz_file.h"
#include "skipped.h"
#include "table/parse_cell.h"
#include "table/table_facts.h"
#include <math.h>
#include <string.h>

static struct gt_err table_err;

/* Writes facts and reads them again. Returns false if they were refused. */
static void facts_round_trip(const struct gt_table_facts *f, struct gt_table_facts *out)
{
	struct gt_json j = {0};
	struct gt_arena *a;
	const struct gt_json_value *v;
	const char *text;
	FUZZ_ASSERT(gt_arena_open(&a, &table_err) == GT_OK);
	gt_json_object(&j, NULL);
	gt_table_json_put(&j, "table", f);
	gt_json_end(&j);
	FUZZ_ASSERT(gt_json_finish(&j, &text, &table_err) == GT_OK && strlen(text) < GT_TABLE_MAX_TEXT);
	FUZZ_ASSERT(gt_json_parse(text, strlen(text), "data.json", 5, strlen(text), a, &v, &table_err) == GT_OK);
	FUZZ_ASSERT(gt_table_json_get(gt_json_member(v, "table"), "data.json", out, &table_err) == GT_OK);
	FUZZ_ASSERT(gt_table_json_compare(f, out, "a", "b", &table_err) == GT_OK);
	FUZZ_ASSERT(f->nvalues == out->nvalues && f->ncodes == out->ncodes && f->ntargets == out->ntargets && f->ntexts == out->ntexts &&
	            f->header == out->header);
	gt_arena_close(a);
	gt_json_free(&j);
}

static void fuzz_facts(const char *text, size_t n)
{
	struct gt_arena *a;
	const struct gt_json_value *v;
	struct gt_table_facts f, again;
	char *config;
	FUZZ_ASSERT(gt_arena_open(&a, &table_err) == GT_OK);
	if (gt_json_parse(text, n, "data.json", 5, n, a, &v, &table_err) == GT_OK) {
		enum gt_code code = gt_table_json_get(v, "data.json", &f, &table_err);
		FUZZ_ASSERT(code == GT_OK || (code == GT_EDATA && table_err.msg[0] && !f.column));
		if (code == GT_OK) {
			facts_round_trip(&f, &again);
			FUZZ_ASSERT(gt_table_columns_text(&f, "", &config, &table_err) == GT_OK);
			free(config);
			gt_table_facts_free(&again);
			gt_table_facts_free(&f);
		}
	}
	gt_arena_close(a);
}

struct inputs {
	float *values, *targets;
	int32_t *codes, *labels;
};

static enum gt_code apply(const struct gt_data_table *t, const struct gt_table_facts *f, bool targets, struct inputs *in)
{
	size_t n = (size_t)t->n;
	in->values = calloc(n * (size_t)f->nvalues + 1, sizeof *in->values);
	in->codes = calloc(n * (size_t)f->ncodes + 1, sizeof *in->codes);
	in->labels = calloc(n + 1, sizeof *in->labels);
	in->targets = calloc(n * (size_t)f->ntargets + 1, sizeof *in->targets);
	return gt_table_transform(t, f, &(struct gt_table_fields){in->values, in->codes, targets ? in->labels : NULL,
	                          targets ? in->targets : NULL},
	                      &table_err);
}

static void inputs_free(struct inputs *in)
{
	free(in->values);
	free(in->codes);
	free(in->labels);
	free(in->targets);
}

static void check_inputs(const struct gt_data_table *t, const struct gt_table_facts *f, const struct inputs *in)
{
	int64_t n = t->n;
	for (int64_t i = 0; i < n * f->nvalues; i++)
		FUZZ_ASSERT(isfinite(in->values[i]));
	for (int64_t i = 0; i < n * f->ncodes; i++)
		FUZZ_ASSERT(in->codes[i] >= 0 && in->codes[i] < gt_table_cardinality(f, gt_table_code_column(f, (int)(i % f->ncodes))));
	for (int64_t i = 0; f->task == GT_TASK_CLASSES && i < n; i++)
		FUZZ_ASSERT(in->labels[i] >= 0 && in->labels[i] < gt_table_cardinality(f, gt_table_target_column(f, 0)));
	for (int64_t i = 0; f->task == GT_TASK_NUMBERS && i < n * f->ntargets; i++)
		FUZZ_ASSERT(isfinite(in->targets[i]));
}

static bool same_rows(const struct gt_data_table *a, const struct gt_data_table *b)
{
	int64_t line[2] = {0};
	for (int64_t i = 0; i < b->n && line[0] == line[1]; i++) {
		if (i == a->n)
			return false;
		gt_table_where(a, i, &line[0]);
		gt_table_where(b, i, &line[1]);
	}
	return line[0] == line[1];
}

/* Reads the same file with the facts: the inputs must be those of the training data. */
static void read_again(const char *path, const struct gt_table_spec *spec, const struct gt_data_table *t, const struct gt_table_facts *f,
                       const struct inputs *in)
{
	struct gt_data_table u;
	struct inputs now = {0};
	struct gt_texts own[2];
	const struct gt_texts *texts[2];
	enum gt_code code = gt_table_read_as(&path, 1, spec, f, false, &u, &table_err);
	if (code != GT_OK) { /* a word in a row that was held out, in a column of numbers */
		FUZZ_ASSERT(code == GT_EDATA && table_err.msg[0]);
		return;
	}
	FUZZ_ASSERT(u.n <= t->n || spec->skipped);
	if (spec->skipped && !same_rows(t, &u)) { /* with these facts, other rows can be read */
		gt_table_free(&u);
		return;
	}
	FUZZ_ASSERT(gt_table_texts(t, f, &own[0], &texts[0], &table_err) == GT_OK);
	FUZZ_ASSERT(gt_table_texts(&u, f, &own[1], &texts[1], &table_err) == GT_OK);
	for (int64_t i = 0; i < u.n && f->ntexts; i++) {
		size_t n[2];
		const char *a = gt_texts_get(texts[0], i, &n[0]), *b = gt_texts_get(texts[1], i, &n[1]);
		FUZZ_ASSERT(n[0] == n[1] && !memcmp(a, b, n[0]) && gt_text_check(a, n[0], "", NULL) == GT_OK);
	}
	gt_texts_free(&own[0]);
	gt_texts_free(&own[1]);
	if (apply(&u, f, false, &now) == GT_OK) {
		FUZZ_ASSERT(!memcmp(now.values, in->values, (size_t)(u.n * f->nvalues) * sizeof *now.values));
		FUZZ_ASSERT(!memcmp(now.codes, in->codes, (size_t)(u.n * f->ncodes) * sizeof *now.codes));
	}
	inputs_free(&now);
	gt_table_free(&u);
}

static void fuzz_learn(const char *path, const struct gt_table_spec *spec, struct gt_data_table *t)
{
	struct gt_table_facts f, again;
	struct inputs in = {0};
	int64_t *row = malloc(((size_t)t->n + 1) * sizeof *row), n = 0, groups;
	int32_t *group = malloc(((size_t)t->n + 1) * sizeof *group);
	char *config;
	for (int64_t i = 0; i < t->n; i++)
		if (t->n < 3 || i % 3 != 2)
			row[n++] = i;
	FUZZ_ASSERT(gt_table_strata(t, spec, group, &groups, &table_err) == GT_OK);
	for (int64_t i = 0; groups && i < t->n; i++)
		FUZZ_ASSERT(group[i] >= 0 && group[i] < groups);
	enum gt_code code = gt_table_fit(t, spec, row, n, &f, &table_err);
	FUZZ_ASSERT(code == GT_OK || ((code == GT_EDATA || code == GT_ECONFIG) && table_err.msg[0] && !f.column));
	if (code == GT_OK) {
		facts_round_trip(&f, &again);
		FUZZ_ASSERT(gt_table_columns_text(&f, "\t", &config, &table_err) == GT_OK);
		free(config);
		code = apply(t, &f, true, &in);
		FUZZ_ASSERT(code == GT_OK || (code == GT_EDATA && table_err.msg[0]));
		if (code == GT_OK) {
			check_inputs(t, &f, &in);
			read_again(path, spec, t, &again, &in);
		}
		inputs_free(&in);
		gt_table_facts_free(&again);
		gt_table_facts_free(&f);
	}
	free(row);
	free(group);
}

static void check_skipped(void *table, int set, int64_t i, const char *why)
{
	(void)table;
	FUZZ_ASSERT(set == 7 && i >= 0 && why[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fuzz_file file;
	if (size < 2)
		return 0;
	uint8_t how = data[0];
	data++;
	size--;
	if (how & 1) {
		fuzz_facts((const char *)data, size);
		return 0;
	}
	if (size > 1 && data[0] == 0x1f && data[1] == 0x8b) /* gzip has a target of its own */
		return 0;
	static const char *const target[] = {"y", "c2", "c1"}, *const na[] = {"-"};
	static const struct gt_column_spec columns[] = {{"x", GT_COLUMN_CONTINUOUS}, {"k", GT_COLUMN_CATEGORICAL}, {"z", GT_COLUMN_IGNORE},
	                                              {"t", GT_COLUMN_TEXT}};
	bool named = (how >> 1 & 3) == GT_HEADER_YES;
	struct gt_table_spec spec = {.delimiter = how & 32 ? ';' : how & 128 ? 0 : ',',
	                             .header = (how >> 1 & 3) % 3,
	                             .target = target + !named,
	                             .ntarget = named || !(how & 128) ? 1 : 2,
	                             .task = how & 8 ? GT_TASK_NUMBERS : GT_TASK_AUTO,
	                             .na = how & 128 ? na : NULL,
	                             .nna = how & 128 ? 1 : 0};
	if (how & 64) {
		spec.column = columns;
		spec.ncolumns = how & 8 ? 4 : 3;
	}
	if ((how >> 1 & 3) == 3) {
		FUZZ_ASSERT(gt_skipped_open(&spec.skipped, &table_err) == GT_OK);
		spec.set = 7;
	}
	struct gt_data_table t;
	const char *path = fuzz_put(&file, data, size), *const paths[] = {path, path};
	enum gt_code code = gt_table_read(paths, how & 16 ? 2 : 1, &spec, &t, &table_err);
	FUZZ_ASSERT(code == GT_OK || ((code == GT_EDATA || code == GT_ECONFIG) && table_err.msg[0] && !t.column));
	if (code == GT_OK) {
		for (int64_t i = 0; i < t.n; i++) {
			int64_t line;
			FUZZ_ASSERT(gt_table_where(&t, i, &line)[0] && line > 0);
		}
		if (spec.skipped)
			gt_skipped_new(spec.skipped, check_skipped, &t);
		fuzz_learn(path, &spec, &t);
		gt_table_free(&t);
	}
	gt_skipped_close(spec.skipped);
	return 0;
}
