/* The format "csv": files that form one table, whose columns are the inputs and targets of a model.
 *
 *     values   f32 [k]  the continuous columns, normalised
 *     codes    i32 [k]  the categorical columns
 *     tokens   i32 [length], and lengths: the text columns
 *     target   i32 a class, or f32 [columns]
 *
 * datasets/table/ reads tables, fits facts and transforms; this file converts tables into datasets. */
#include "base/arena.h"
#include "folder.h"
#include "format.h"
#include "sample_mark.h"
#include "table/parse_cell.h"
#include "text_data.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void free_raw(void *raw)
{
	gt_table_free(raw);
	free(raw);
}

static uint64_t count_raw_bytes(const void *raw, const struct gt_fitted *l)
{
	return gt_table_bytes(raw) + (l ? gt_table_texts_bytes(raw, &l->table) : 0);
}

/* Moves the hashes of the rows from the table to the marks. */
static enum gt_code set_row_ids(struct gt_data_table *t, struct gt_dataset *d, struct gt_err *err)
{
	if (!(d->mark = gt_spill_zeros(d->spill, (size_t)t->n, sizeof *d->mark)))
		return gt_fail_memory(err, (size_t)t->n * sizeof *d->mark);
	for (int64_t i = 0; i < t->n; i++)
		d->mark[i].id = t->row_id[i];
	gt_spill_free(t->spill, t->row_id);
	t->row_id = NULL;
	return GT_OK;
}

static enum gt_code set_content_marks(const struct gt_fitted *l, struct gt_dataset *d, struct gt_err *err)
{
	return gt_table_marks(d->raw, &l->table, d->mark, err);
}

/* Reads files into out->raw, with the columns of facts, or of the spec if facts is NULL. set: identifies the table in the list of skipped
 * rows and cells; the split, or GT_SPLITS. */
static enum gt_code read_raw(const struct gt_dataset_spec *spec, char *const *path, int n, const struct gt_table_facts *facts, bool targets,
                             int set, struct gt_dataset *out, struct gt_err *err)
{
	struct gt_table_spec ts = spec->table;
	ts.max_bytes = spec->max_bytes;
	ts.skipped = spec->skipped;
	ts.set = set;
	struct gt_data_table *t;
	if (spec->spill_dir && !out->spill)
		gt_spill_open(spec->spill_dir, &out->spill);
	ts.spill = out->spill;
	GT_CALLOC(t, 1, err);
	enum gt_code code = facts ? gt_table_read_as((const char *const *)path, n, &ts, facts, targets, t, err)
	                          : gt_table_read((const char *const *)path, n, &ts, t, err);
	if (code != GT_OK) {
		free(t);
		return code;
	}
	code = gt_table_thin_out(t, spec->limit, err);
	out->raw = t;
	out->fitting = gt_format_csv.fitting;
	out->n = t->n;
	return code != GT_OK || !targets ? code : set_row_ids(t, out, err);
}

static enum gt_code find_strata(const struct gt_dataset_spec *spec, const struct gt_dataset *d, int32_t *out, int64_t *groups,
                                struct gt_err *err)
{
	return gt_table_strata(d->raw, &spec->table, out, groups, err);
}

static enum gt_code fit_facts(const struct gt_dataset_spec *spec, const struct gt_dataset *d, const int64_t *row, int64_t n,
                                struct gt_fitted *out, struct gt_err *err)
{
	struct gt_texts own;
	const struct gt_texts *texts;
	GT_TRY(gt_table_fit(d->raw, &spec->table, row, n, &out->table, err));
	if (!out->table.ntexts)
		return GT_OK;
	enum gt_code code = gt_table_texts(d->raw, &out->table, &own, &texts, err);
	if (code == GT_OK)
		code = gt_texts_fit(texts, &spec->text, row, n, &out->text, err);
	gt_texts_free(&own);
	return code;
}

/* ---- datasets ------------------------------------------------------------------------------------------------------------------- */
static enum gt_code set_class_names(const struct gt_dataset_spec *spec, const struct gt_table_facts *f, struct gt_dataset *out,
                                    struct gt_err *err)
{
	const struct gt_table_fact *target = &f->column[gt_table_target_column(f, 0)];
	int64_t n = f->task == GT_TASK_CLASSES ? target->words.n : spec->target_labels ? f->ntargets : 0;
	if (!n)
		return GT_OK;
	if (spec->classes > 0 && n > spec->classes)
		return gt_fail(err, GT_ECONFIG, "data.classes: expected at least %lld, one for each class of the target, got %lld", (long long)n,
		               (long long)spec->classes);
	GT_CALLOC(out->class_name, n, err);
	for (int64_t i = 0; i < n; i++, out->nclass_names++)
		GT_NEW_STR(out->class_name[i], strdup(f->task == GT_TASK_CLASSES ? gt_words_text(&target->words, (int32_t)i)
		                                      : f->column[gt_table_target_column(f, (int)i)].name), err);
	out->classes = spec->classes > 0 ? spec->classes : n;
	return GT_OK;
}

static enum gt_code describe_fields(const struct gt_dataset_spec *spec, const struct gt_fitted *l, struct gt_dataset *out,
                                    struct gt_err *err)
{
	const struct gt_table_facts *f = &l->table;
	if (f->nvalues)
		out->field[out->nfields++] = (struct gt_field){.name = "values", .dtype = GT_F32, .width = f->nvalues};
	if (f->ncodes)
		out->field[out->nfields++] = (struct gt_field){
		    .name = "codes", .dtype = GT_I32, .width = f->ncodes, .codes = f->cardinality, .ncodes = f->ncodes};
	if (f->ntexts) {
		struct gt_field *tokens = &out->field[out->nfields++], *lengths = &out->field[out->nfields++];
		GT_TRY(gt_texts_describe(&spec->text, &l->text, tokens, lengths, err));
	}
	if (f->task == GT_TASK_NUMBERS)
		out->target = (struct gt_field){.name = "target", .dtype = GT_F32, .width = f->ntargets};
	return set_class_names(spec, f, out, err);
}

/* Fails if the columns of a training table differ from the facts: the data has changed since the checkpoint. */
static enum gt_code check_columns(const struct gt_data_table *t, const struct gt_table_facts *f, struct gt_err *err)
{
	char shown[2][GT_CELL_SHOWN];
	if (t->ncolumns != f->ncolumns)
		return gt_fail(err, GT_EDATA, "%.400s: expected %d columns, as in the training data, got %d", t->path[0], f->ncolumns, t->ncolumns);
	for (int k = 0; k < t->ncolumns; k++)
		if (strcmp(t->column[k].name, f->column[k].name))
			return gt_fail(err, GT_EDATA, "%.400s: expected column %d to be \"%s\", as in the training data, got \"%s\"", t->path[0],
			               k + 1, gt_cell_shown(f->column[k].name, shown[0]), gt_cell_shown(t->column[k].name, shown[1]));
	return GT_OK;
}

/* Checks that label targets are in [0, 1]. */
static enum gt_code check_labels(const struct gt_data_table *t, const struct gt_table_facts *f, const float *v, struct gt_err *err)
{
	char why[120];
	for (int64_t i = 0; i < t->n * f->ntargets; i++) {
		if (v[i] >= 0 && v[i] <= 1)
			continue;
		snprintf(why, sizeof why, "expected a number from 0 to 1, which losses such as \"bce\" need, got %g", (double)v[i]);
		return gt_table_fail(t, gt_table_target_column(f, (int)(i % f->ntargets)), i / f->ntargets, why, err);
	}
	return GT_OK;
}

static enum gt_code alloc_rows(const struct gt_dataset *d, int64_t width, size_t each, void **out, struct gt_err *err)
{
	size_t n = (size_t)d->n, count = n * (size_t)width;
	if ((width && n > SIZE_MAX / each / (size_t)width) || !(*out = gt_spill_resize(d->spill, NULL, count * each)))
		return gt_fail_memory(err, count * each);
	return GT_OK;
}

/* Converts the texts to the last two fields, tokens and lengths. */
static enum gt_code convert_texts(const struct gt_dataset_spec *spec, const struct gt_fitted *l, struct gt_dataset *d, struct gt_err *err)
{
	struct gt_texts own;
	const struct gt_texts *texts;
	struct gt_field *tokens = &d->field[d->nfields - 2], *lengths = &d->field[d->nfields - 1];
	enum gt_code code = gt_table_texts(d->raw, &l->table, &own, &texts, err);
	if (code == GT_OK)
		code = gt_texts_fields(texts, &spec->text, l->text.vocab, NULL, NULL, tokens, lengths, &d->texts, err);
	gt_texts_free(&own);
	return code;
}

static enum gt_code convert_rows(const struct gt_dataset_spec *spec, const struct gt_fitted *l, bool targets, struct gt_dataset *d,
                                 struct gt_err *err)
{
	const struct gt_data_table *t = d->raw;
	const struct gt_table_facts *f = &l->table;
	struct gt_table_fields to = {.normalize = spec->normalize_target};
	GT_TRY(check_columns(t, f, err));
	GT_TRY(describe_fields(spec, l, d, err));
	for (int i = 0; i < d->nfields - (f->ntexts ? 2 : 0); i++) {
		GT_TRY(alloc_rows(d, d->field[i].width, gt_dtype_size(d->field[i].dtype), &d->field[i].data, err));
		if (d->field[i].dtype == GT_F32)
			to.values = d->field[i].data;
		else
			to.codes = d->field[i].data;
	}
	if (targets && f->task == GT_TASK_CLASSES) {
		GT_TRY(alloc_rows(d, 1, sizeof *d->labels, (void **)&d->labels, err));
		to.labels = d->labels;
	} else if (targets) {
		GT_TRY(alloc_rows(d, f->ntargets, sizeof(float), &d->target.data, err));
		to.targets = d->target.data;
	}
	GT_TRY(gt_table_transform(t, f, &to, err));
	if (to.targets && spec->target_labels)
		GT_TRY(check_labels(t, f, to.targets, err));
	if (f->ntexts)
		GT_TRY(convert_texts(spec, l, d, err));
	gt_table_drop_columns(d->raw);
	d->row_lines = d->raw;
	d->raw = NULL;
	return GT_OK;
}

static enum gt_code transform_facts(const struct gt_dataset_spec *spec, const struct gt_fitted *l, struct gt_dataset *d, struct gt_err *err)
{
	return convert_rows(spec, l, true, d, err);
}

static enum gt_code read_inputs(const struct gt_dataset_spec *spec, const char *path, struct gt_dataset *out, struct gt_err *err)
{
	enum gt_code code = read_raw(spec, (char *const[]){(char *)(uintptr_t)path}, 1, &spec->fitted->table, false, GT_SPLITS, out, err);
	return code == GT_OK ? convert_rows(spec, spec->fitted, false, out, err) : code;
}

static void free_facts(struct gt_fitted *l)
{
	gt_table_facts_free(&l->table);
	gt_vocab_close(l->text.vocab);
}

/* If spec->fitted is NULL, out->raw gets the unconverted table. */
static enum gt_code load_split(const struct gt_dataset_spec *spec, enum gt_split split, const struct gt_paths *paths, bool headers_only,
                               struct gt_dataset *out, struct gt_err *err)
{
	(void)headers_only; /* the row count and the column types depend on the whole file */
	GT_TRY(read_raw(spec, paths->path, paths->n, spec->fitted ? &spec->fitted->table : NULL, true, (int)split, out, err));
	if (!spec->fitted)
		return GT_OK;
	GT_TRY(set_content_marks(spec->fitted, out, err));
	return convert_rows(spec, spec->fitted, true, out, err);
}

/* Writes the facts as members of data.json. */
static enum gt_code put_json(const struct gt_fitted *l, struct gt_json *j, struct gt_err *err)
{
	gt_table_json_put(j, "table", &l->table);
	return l->text.ids ? gt_text_json_put(j, "text", &l->text, err) : GT_OK;
}

static enum gt_code get_json(const struct gt_json_value *v, const char *path, struct gt_fitted *out, struct gt_err *err)
{
	const struct gt_json_value *text = gt_json_member(v, "text");
	GT_TRY(gt_table_json_get(gt_json_member(v, "table"), path, &out->table, err));
	if (!out->table.ntexts)
		return GT_OK;
	if (!text)
		return gt_fail(err, GT_EDATA, "%s: expected the key \"text\", because the table has columns of texts, got no such key", path);
	return gt_text_json_get(text, path, &out->text, err);
}

static enum gt_code compare_facts(const struct gt_fitted *ckpt, const struct gt_fitted *now, const char *where, const char *path,
                                  struct gt_err *err)
{
	GT_TRY(gt_table_json_compare(&ckpt->table, &now->table, where, path, err));
	return gt_text_json_compare(&ckpt->text, &now->text, where, path, err);
}

static const struct gt_fitting fitting = {.format = "csv",
                                            .strata = find_strata,
                                            .mark = set_content_marks,
                                            .fit = fit_facts,
                                            .describe = describe_fields,
                                            .transform = transform_facts,
                                            .inputs = read_inputs,
                                            .json_member = "table",
                                            .indexed = true,
                                            .put_json = put_json,
                                            .get_json = get_json,
                                            .compare = compare_facts,
                                            .raw_bytes = count_raw_bytes,
                                            .drop = free_raw,
                                            .forget = free_facts};
const struct gt_format gt_format_csv = {.name = "csv",
                                        .content = GT_CONTENT_TABLE,
                                        .by_name = true,
                                        .load = load_split,
                                        .input = &gt_folder_tables,
                                        .fitting = &fitting};
