/* Reads the data of a session, split by split. */
#include "fitted.h"
#include "folder.h"
#include "formats.h"
#include "numpy_file.h"
#include "session/session_index.h"
#include "session/session_learn.h"
#include "session/session_samples.h"
#include "session/session_split.h"
#include "skipped.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct job {
	const struct gt_session_spec *session;
	const struct gt_dataset_spec *spec;
	enum gt_split split;
	struct gt_dataset *out;
	enum gt_code code;
	char note[sizeof((struct gt_session_files *)0)->index_note];
	struct gt_err err;
};

static void *read_split(void *arg)
{
	struct job *j = arg;
	j->code = gt_session_index_read(j->session, j->spec, j->split, j->out, j->note, sizeof j->note, &j->err);
	return NULL;
}

struct gt_dataset_spec gt_session_dataset_spec(const struct gt_conf *c)
{
	const struct gt_conf_data *d = &c->data;
	struct gt_dataset_spec spec = {.name = d->name,
	                               .root = d->root,
	                               .format = d->format,
	                               .path_column = d->path_column,
	                               .label_column = d->label_column,
	                               .label_separator = d->label_separator,
	                               .targets = d->target_columns.v,
	                               .ntargets = d->target_columns.n,
	                               .pattern = d->pattern,
	                               .train = d->train.n ? d->train.v : NULL,
	                               .ntrain = d->train.n,
	                               .test = d->test.n ? d->test.v : NULL,
	                               .ntest = d->test.n,
	                               .shape = {c->model.input[0], c->model.input[1], c->model.input[2]},
	                               .classes = d->classes,
	                               .samples = {[GT_TRAIN] = d->samples, [GT_TEST] = d->samples_test},
	                               .limit = d->limit,
	                               .seed = (uint64_t)c->seed,
	                               .target_labels = d->targets == GT_TARGETS_LABELS,
	                               .normalize_target = d->normalize_target};
	spec.text = d->text;
	spec.table = (struct gt_table_spec){.delimiter = *d->delimiter,
	                                    .encoding = (enum gt_encoding)d->encoding,
	                                    .notation = {*d->decimal, *d->thousands},
	                                    .header = (enum gt_table_header)d->header,
	                                    .na = d->na.v,
	                                    .nna = d->na.n,
	                                    .column = d->columns,
	                                    .ncolumns = d->ncolumns,
	                                    .target = d->target.v,
	                                    .ntarget = d->target.n,
	                                    .ignore = d->ignore.v,
	                                    .nignore = d->ignore.n,
	                                    .task = d->targets == GT_TARGETS_CLASS ? GT_TASK_CLASSES : GT_TASK_NUMBERS};
	for (int i = 0; i < c->model.ninputs; i++) {
		const struct gt_model_input *in = &c->model.inputs[i];
		if (in->type != GT_INPUT_IMAGE)
			spec.wanted[spec.nwanted++] = (struct gt_field){
			    .name = in->name, .dtype = in->type == GT_INPUT_VALUES ? GT_F32 : GT_I32, .width = in->shape[0],
			    .ragged = in->type == GT_INPUT_TOKENS,
			    .codes = in->type == GT_INPUT_CODES || in->type == GT_INPUT_TOKENS ? &in->vocabulary : NULL,
			    .ncodes = in->type == GT_INPUT_CODES || in->type == GT_INPUT_TOKENS};
	}
	return spec;
}

/* Changes ds so that its split "test" has all samples of the file or folder spec->measure. files: the run's images were encoded files. */
static enum gt_code measure_all_samples(const struct gt_session_spec *spec, bool files, struct gt_arena *a, struct gt_dataset_spec *ds,
                                        struct gt_err *err)
{
	const char *path = spec->measure, **test;
	bool learns = gt_dataset_fitting(ds), rows = gt_format_content(ds->format) == GT_CONTENT_TABLE;
	bool list = gt_folder_wants(&gt_folder_tables, path);
	ds->limit = 0;
	ds->all = true;
	ds->train = NULL;
	ds->ntrain = 0;
	ds->test = NULL;
	ds->root = path;
	if (!rows && (learns || (files && !list))) {
		if (!learns && strcmp(ds->format, "pattern"))
			ds->format = "folder";
		return GT_OK;
	}
	GT_NEW(test, a, 2, err);
	test[0] = path;
	ds->test = test;
	ds->ntest = 1;
	ds->root = "";
	if (files)
		ds->format = "list";
	if (files || learns)
		return GT_OK;
	if (gt_numpy_is_file(path)) {
		ds->format = "numpy";
		return GT_OK;
	}
	const char *at = strstr(path, "images-idx3");
	if (!at)
		return gt_fail(err, GT_EUSAGE, "%.600s: expected an IDX file of images, with \"images-idx3\" in its name, and its label file in "
		               "the same directory, because the run was trained on arrays; for other files, write -s data.test=[…]", path);
	GT_NEW_STR(test[1], gt_arena_printf(a, "%.*slabels-idx1%s", (int)(at - path), path, at + strlen("images-idx3")), err);
	ds->ntest = 2;
	ds->format = "idx";
	return GT_OK;
}

/* Reads the samples that the checkpoint lists and, if folders or a list name the classes, the names of the classes in the checkpoint. */
static enum gt_code read_known(const struct gt_session_spec *spec, struct gt_dataset_spec *ds, struct gt_session_files *out,
                               struct gt_err *err)
{
	struct gt_data_facts facts;
	if (!spec->ckpt)
		return GT_OK;
	GT_TRY(gt_arena_open(&out->memory, err));
	GT_TRY(gt_data_facts_samples(spec->ckpt, &out->was, err));
	GT_TRY(gt_data_facts_read(spec->ckpt, out->memory, &facts, err));
	if (facts.nclasses && (facts.files || gt_format_content(ds->format) == GT_CONTENT_TEXTS)) {
		ds->known = facts.class;
		ds->nknown = facts.nclasses;
	}
	return spec->measure ? measure_all_samples(spec, facts.files, out->memory, ds, err) : GT_OK;
}

static bool is_split_wanted(const struct gt_session_spec *spec, enum gt_split split)
{
	return split == GT_TRAIN ? spec->train || spec->eval[GT_TRAIN] || spec->eval[GT_VALID] : spec->eval[split];
}

/* ---- reading ------------------------------------------------------------------------------------------------------------------- */
/* Reads all splits that are wanted and not yet read, each split in its own thread. */
static void read_all(const struct gt_session_spec *spec, const struct gt_dataset_spec *ds, struct gt_session_files *out, struct job *job)
{
	pthread_t thread[GT_SPLITS];
	bool threaded[GT_SPLITS] = {false};
	for (int i = 0; i < GT_SPLITS; i++) {
		if (!out->wanted[i] || (i == GT_TRAIN && out->learned))
			continue;
		job[i] = (struct job){.session = spec, .spec = ds, .split = (enum gt_split)i, .out = &out->set[i]};
		threaded[i] = i != GT_TRAIN && !pthread_create(&thread[i], NULL, read_split, &job[i]);
	}
	for (int i = 0; i < GT_SPLITS; i++) {
		if (threaded[i])
			pthread_join(thread[i], NULL);
		else if (job[i].spec)
			read_split(&job[i]);
	}
}

/* Records a missing split of a dry session: `gtrain check` works without the data. */
static bool note_missing_split(const struct gt_session_spec *spec, enum gt_split split, struct gt_err *why, struct gt_session_files *out)
{
	if (!spec->dry || why->code != GT_ENOINPUT)
		return false;
	out->missing[split] = true;
	if (!*out->note) /* keeps the first reason: splits are read in the order of their importance */
		snprintf(out->note, sizeof out->note, "%s", why->msg);
	return true;
}

static enum gt_code read_splits(const struct gt_session_spec *spec, struct gt_session_files *out, struct gt_err *err)
{
	struct gt_dataset_spec ds = gt_session_dataset_spec(spec->conf);
	ds.skipped = out->skipped;
	GT_TRY(read_known(spec, &ds, out, err));
	struct job job[GT_SPLITS] = {0};
	struct gt_err why = {0};
	if (gt_dataset_fitting(&ds)) {
		enum gt_code code = gt_session_learn_data(spec, &ds, out, &why);
		if (code != GT_OK)
			gt_conf_at_key(spec->conf, &why);
		if (code != GT_OK && note_missing_split(spec, GT_TRAIN, &why, out)) {
			out->missing[GT_TEST] = out->missing[GT_VALID] = true;
			return GT_OK;
		}
		if (code != GT_OK && err)
			*err = why;
		GT_TRY(code);
	}
	read_all(spec, &ds, out, job);
	for (int i = 0; i < GT_SPLITS; i++) {
		if (!*out->index_note)
			snprintf(out->index_note, sizeof out->index_note, "%s", job[i].note);
		if (job[i].code == GT_OK)
			continue;
		gt_conf_at_key(spec->conf, &job[i].err);
		if (note_missing_split(spec, (enum gt_split)i, &job[i].err, out))
			continue;
		return gt_fail_copy(err, &job[i].err);
	}
	gt_session_hash_contents(spec, out);
	if (!out->learned && !out->missing[GT_TRAIN] && out->wanted[GT_TRAIN])
		GT_TRY(gt_session_split_train(spec->conf, &ds, out, err));
	for (int i = out->learned ? GT_VALID : GT_TRAIN; i < GT_SPLITS; i++)
		GT_TRY(gt_session_compare_split(spec, out, (enum gt_split)i, err));
	gt_session_describe_changes(out);
	return gt_session_list_used(spec, out, err);
}

void gt_session_explain_moved(const struct gt_conf *c, struct gt_err *err)
{
	const char *vocab = c->data.text.vocab;
	bool absolute = c->data.train.n && c->data.train.v[0][0] == '/'; /* a root does not move such a file */
	const char *change = !c->data.train.n || (*c->data.root && !absolute)
	                         ? "data.root=DIR"
	                         : "'data.train=[\"FILE\"]', and data.test likewise if the config has it";
	gt_fail_suffix(err, "if the data has moved, add -s %s", vocab && *vocab && access(vocab, F_OK) ? "data.vocab=FILE" : change);
}

enum gt_code gt_session_read_data(const struct gt_session_spec *spec, struct gt_session_files *out, struct gt_err *err)
{
	*out = (struct gt_session_files){0};
	for (int i = 0; i < GT_SPLITS; i++)
		out->wanted[i] = is_split_wanted(spec, (enum gt_split)i);
	if (spec->conf->data.on_error == GT_ON_ERROR_SKIP)
		GT_TRY(gt_skipped_open(&out->skipped, err));
	enum gt_code code = read_splits(spec, out, err);
	if (code == GT_ENOINPUT && spec->ckpt)
		gt_session_explain_moved(spec->conf, err);
	bool again = code == GT_OK && spec->or_valid && !out->wanted[GT_VALID] && !out->set[GT_TEST].n;
	if (code != GT_OK || again)
		gt_session_free_data(out);
	if (!again)
		return code;
	struct gt_session_spec valid = *spec;
	valid.eval[GT_VALID] = true;
	return gt_session_read_data(&valid, out, err);
}

void gt_session_free_data(struct gt_session_files *f)
{
	for (int i = 0; i < GT_SPLITS; i++)
		gt_dataset_free_array(&f->set[GT_TRAIN], f->index[i]); /* both parts are parts of the training split */
	for (int i = 0; i < GT_SPLITS; i++)
		gt_dataset_free(&f->set[i]);
	gt_dataset_free(&f->like);
	gt_fitted_free(f->learned);
	gt_used_free(&f->was);
	gt_used_free(&f->used);
	gt_arena_close(f->memory);
	gt_skipped_close(f->skipped);
	*f = (struct gt_session_files){0};
}

enum gt_code gt_session_read_inputs(const struct gt_session *s, const char *path, struct gt_dataset *out, struct gt_err *err)
{
	struct gt_dataset_spec ds = gt_session_dataset_spec(s->conf);
	*out = (struct gt_dataset){0};
	ds.fitted = s->data.files->learned;
	ds.limit = 0;
	ds.skipped = s->data.files->skipped;
	enum gt_code code = ds.fitted->by->inputs(&ds, path, out, err);
	if (code != GT_OK)
		gt_dataset_free(out);
	return code;
}

enum gt_code gt_session_read_text(const struct gt_session *s, const char *name, const char *text, size_t n, struct gt_dataset *out,
                                  struct gt_err *err)
{
	struct gt_dataset_spec ds = gt_session_dataset_spec(s->conf);
	*out = (struct gt_dataset){0};
	ds.fitted = s->data.files->learned;
	enum gt_code code = ds.fitted->by->text(&ds, name, text, n, out, err);
	if (code != GT_OK)
		gt_dataset_free(out);
	return code;
}
