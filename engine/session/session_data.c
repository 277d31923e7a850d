#include "session/session_data.h"
#include "exec/permute.h"
#include "learned.h"
#include "skipped.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct job {
	const struct gt_dataset_spec *spec;
	enum gt_split split;
	struct gt_dataset *out;
	bool dry;
	enum gt_code code;
	struct gt_err err;
};

static void *read_one(void *arg)
{
	struct job *j = arg;
	j->code = (j->dry ? gt_dataset_probe : gt_dataset_read)(j->spec, j->split, j->out, &j->err);
	return NULL;
}

static struct gt_dataset_spec dataset_spec(const struct gt_conf *c)
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

static struct gt_view view_of(struct gt_session *s, int which, int64_t *index, int64_t n)
{
	return (struct gt_view){&s->data.set[which], &s->data.resident[which], index, n};
}

struct gt_data_facts gt_session_facts_of(const struct gt_dataset *d)
{
	return (struct gt_data_facts){.files = d->encoded, .nclasses = d->nclass_names, .class = (const char *const *)d->class_name};
}

const char *gt_session_class_name(const struct gt_session *s, int64_t label)
{
	const struct gt_data_facts *f = &s->data.facts;
	if (f->nclasses)
		return label >= 0 && label < f->nclasses ? f->class[label] : NULL;
	return gt_dataset_class(s->conf->data.name, label);
}

/* ---- splits ------------------------------------------------------------------------------------------------------------------- */
/* Divides the training samples by data.valid, stratified by group[n], 0 ... groups - 1, or not if groups is 0. */
static enum gt_code divide(const struct gt_conf *c, int64_t nvalid, const int32_t *group, int64_t groups, struct gt_session_files *out,
                           struct gt_err *err)
{
	int64_t n = out->set[GT_TRAIN].n, *train, *valid;
	out->index[GT_TRAIN] = train = malloc((size_t)(n - nvalid) * sizeof *train);
	out->index[GT_VALID] = valid = malloc((size_t)nvalid * sizeof *valid);
	if (!train || !valid)
		return gt_fail_memory(err, (size_t)n * sizeof *train);
	out->count[GT_TRAIN] = n - nvalid;
	out->count[GT_VALID] = nvalid;
	if (groups)
		return gt_permute_split_classes((uint64_t)c->seed, group, n, groups, nvalid, train, valid, err);
	return gt_permute_split((uint64_t)c->seed, n, nvalid, train, valid, err);
}

/* Divides the training samples of a format that learns, whose targets are not known yet. */
static enum gt_code divide_raw(const struct gt_conf *c, const struct gt_dataset_spec *ds, int64_t nvalid, struct gt_session_files *out,
                               struct gt_err *err)
{
	const struct gt_dataset *d = &out->set[GT_TRAIN];
	int64_t groups = 0;
	int32_t *group = c->data.stratify ? malloc((size_t)d->n * sizeof *group) : NULL;
	enum gt_code code = GT_OK;
	if (c->data.stratify)
		code = group ? d->learning->strata(ds, d, group, &groups, err) : gt_fail_memory(err, (size_t)d->n * sizeof *group);
	if (code == GT_OK)
		code = divide(c, nvalid, group, groups, out, err);
	free(group);
	return code;
}

/* Makes the split "valid" of data.valid of the training samples; without data.valid, the data may have a split of its own. */
static enum gt_code split_train(const struct gt_conf *c, const struct gt_dataset_spec *ds, struct gt_session_files *out, struct gt_err *err)
{
	const struct gt_dataset *set = &out->set[GT_TRAIN];
	int64_t nvalid = (int64_t)(c->data.valid * (double)set->n + 0.5);
	if (!nvalid)
		return GT_OK;
	if (nvalid >= set->n)
		return gt_conf_refuse(c, "data.valid", err, "expected a share that leaves training samples, got %g of %lld samples", c->data.valid,
		                      (long long)set->n);
	if (set->raw)
		return divide_raw(c, ds, nvalid, out, err);
	return divide(c, nvalid, set->labels, c->data.stratify && set->labels ? set->classes : 0, out, err);
}

static bool wanted(const struct gt_session_spec *spec, enum gt_split split)
{
	return split == GT_TRAIN ? spec->train || spec->eval[GT_TRAIN] || spec->eval[GT_VALID] : spec->eval[split];
}

/* ---- formats that learn from the training split -------------------------------------------------------------------------------- */
/* Learns from the training samples. */
static enum gt_code learn_rows(const struct gt_dataset_spec *ds, const struct gt_session_files *files, struct gt_learned **now,
                               struct gt_err *err)
{
	const struct gt_learning *by = gt_dataset_learning(ds);
	const struct gt_dataset *d = &files->set[GT_TRAIN];
	const int64_t *row = files->index[GT_TRAIN];
	if (!d->raw)
		return gt_fail(err, GT_EINTERNAL, "the training split was not read, from which the format learns");
	GT_TRY(gt_learned_new(by, now, err));
	return by->learn(ds, d, row, row ? files->count[GT_TRAIN] : d->n, *now, err);
}

/* Checks that the training samples teach what the checkpoint has. A run that resumes ends if they do not; an evaluation goes on with what
 * the checkpoint has, and out->changed says it. */
static enum gt_code compare(const struct gt_session_spec *spec, const struct gt_dataset_spec *ds, struct gt_session_files *out,
                            struct gt_err *err)
{
	struct gt_learned *now = NULL;
	struct gt_err why = {0};
	enum gt_code code = learn_rows(ds, out, &now, &why);
	if (code == GT_OK)
		code = gt_data_learned_compare(out->learned, now, out->set[GT_TRAIN].where, gt_ckpt_path(spec->ckpt), &why);
	gt_learned_free(now);
	if (code == GT_OK)
		return GT_OK;
	if ((code == GT_EDATA || code == GT_ENOINPUT) && !spec->train) { /* GT_ENOINPUT: data.vocab is missing, which the checkpoint has */
		snprintf(out->changed, sizeof out->changed, "%.700s; the training data has changed, or data.valid, data.limit or seed, so the "
		         "splits train and valid may have other samples than in the run", why.msg);
		return GT_OK;
	}
	return code != GT_EDATA ? gt_fail(err, code, "%s", why.msg)
	                        : gt_fail(err, code, "%s; a resumed run needs the same training data, with the same data.valid, data.limit and "
	                                  "seed", why.msg);
}

/* Takes what the checkpoint has learned, or learns from the training samples. */
static enum gt_code learn(const struct gt_session_spec *spec, const struct gt_dataset_spec *ds, struct gt_session_files *out,
                          struct gt_err *err)
{
	if (!spec->ckpt)
		return learn_rows(ds, out, &out->learned, err);
	GT_TRY(gt_data_facts_learned(spec->ckpt, gt_dataset_learning(ds), &out->learned, err));
	return spec->train || out->set[GT_TRAIN].raw ? compare(spec, ds, out, err) : GT_OK;
}

/* Refuses keys of texts for a table without texts. */
static enum gt_code check_texts(const struct gt_conf *c, const struct gt_learned *l, struct gt_err *err)
{
	if (!c->data.text_key || !l->table.ncolumns || l->table.ntexts)
		return GT_OK;
	return gt_conf_refuse(c, c->data.text_key, err, "expected a column of texts, which this key is for, but the table has none; give a "
	                      "column the type \"text\" in data.columns, or remove this key");
}

/* Reads the training split, learns from it, and sets ds->learned, with which the other splits are read. */
static enum gt_code read_and_learn(const struct gt_session_spec *spec, struct gt_dataset_spec *ds, struct gt_session_files *out,
                                   struct gt_err *err)
{
	struct gt_dataset *d = &out->set[GT_TRAIN];
	if (out->wanted[GT_TRAIN]) {
		GT_TRY(gt_dataset_read(ds, GT_TRAIN, d, err));
		GT_TRY(split_train(spec->conf, ds, out, err));
	}
	GT_TRY(learn(spec, ds, out, err));
	GT_TRY(check_texts(spec->conf, out->learned, err));
	ds->learned = out->learned;
	out->reading = d->raw ? d->learning->raw_bytes(d->raw, out->learned) : 0;
	GT_TRY(out->learned->by->describe(ds, out->learned, &out->like, err));
	if (!d->raw)
		return GT_OK;
	GT_TRY(out->learned->by->apply(ds, out->learned, d, err));
	/* the column that is converted, and the numbers of the samples of each split */
	out->reading += gt_dataset_bytes(d) + (uint64_t)d->n * (sizeof(double) + (out->index[GT_TRAIN] ? sizeof(int64_t) : 0));
	return GT_OK;
}

/* ---- reading ------------------------------------------------------------------------------------------------------------------- */
/* Reads all wanted splits that have not been read, each in a thread of its own. */
static void read_all(const struct gt_session_spec *spec, const struct gt_dataset_spec *ds, struct gt_session_files *out, struct job *job)
{
	pthread_t thread[GT_SPLITS];
	bool threaded[GT_SPLITS] = {false};
	for (int i = 0; i < GT_SPLITS; i++) {
		if (!out->wanted[i] || (i == GT_TRAIN && out->learned))
			continue;
		job[i] = (struct job){.spec = ds, .split = (enum gt_split)i, .out = &out->set[i], .dry = spec->dry};
		threaded[i] = i != GT_TRAIN && !pthread_create(&thread[i], NULL, read_one, &job[i]);
	}
	for (int i = 0; i < GT_SPLITS; i++) {
		if (threaded[i])
			pthread_join(thread[i], NULL);
		else if (job[i].spec)
			read_one(&job[i]);
	}
}

/* `gtrain check` works without the data. */
static bool only_note(const struct gt_session_spec *spec, enum gt_split split, struct gt_err *why, struct gt_session_files *out)
{
	if (!spec->dry || why->code != GT_ENOINPUT)
		return false;
	out->missing[split] = true;
	snprintf(out->note, sizeof out->note, "%s", why->msg);
	return true;
}

static enum gt_code read_splits(const struct gt_session_spec *spec, struct gt_session_files *out, struct gt_err *err)
{
	struct gt_dataset_spec ds = dataset_spec(spec->conf);
	ds.skipped = out->skipped;
	struct job job[GT_SPLITS] = {0};
	struct gt_err why = {0};
	if (gt_dataset_learning(&ds)) {
		enum gt_code code = read_and_learn(spec, &ds, out, &why);
		if (code != GT_OK)
			gt_conf_at_key(spec->conf, &why);
		if (code != GT_OK && only_note(spec, GT_TRAIN, &why, out)) {
			out->missing[GT_TEST] = out->missing[GT_VALID] = true;
			return GT_OK;
		}
		if (code != GT_OK && err)
			*err = why;
		GT_TRY(code);
	}
	read_all(spec, &ds, out, job);
	for (int i = 0; i < GT_SPLITS; i++) {
		if (job[i].code == GT_OK)
			continue;
		gt_conf_at_key(spec->conf, &job[i].err);
		if (only_note(spec, (enum gt_split)i, &job[i].err, out))
			continue;
		if (err)
			*err = job[i].err;
		return job[i].code;
	}
	if (out->learned || out->missing[GT_TRAIN] || !out->wanted[GT_TRAIN])
		return GT_OK;
	return split_train(spec->conf, &ds, out, err);
}

/* Says what to do if the data of a checkpoint is no longer where its config has it. */
static void add_moved(const struct gt_conf *c, struct gt_err *err)
{
	const char *vocab = c->data.text.vocab;
	if (!err)
		return;
	struct gt_err why = *err;
	gt_fail(err, why.code, "%s; if the data has moved, add -s %s", why.msg,
	        vocab && *vocab && access(vocab, F_OK) ? "data.vocab=FILE"
	        : *c->data.root || !c->data.train.n    ? "data.root=DIR"
	                                               : "'data.train=[\"FILE\"]', and data.test like it if there is one");
}

enum gt_code gt_session_read_data(const struct gt_session_spec *spec, struct gt_session_files *out, struct gt_err *err)
{
	*out = (struct gt_session_files){0};
	for (int i = 0; i < GT_SPLITS; i++)
		out->wanted[i] = wanted(spec, (enum gt_split)i);
	if (spec->conf->data.on_error == GT_ON_ERROR_SKIP)
		GT_TRY(gt_skipped_open(&out->skipped, err));
	enum gt_code code = read_splits(spec, out, err);
	if (code == GT_ENOINPUT && spec->ckpt)
		add_moved(spec->conf, err);
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
	for (int i = 0; i < GT_SPLITS; i++) {
		gt_dataset_free(&f->set[i]);
		free(f->index[i]);
	}
	gt_dataset_free(&f->like);
	gt_learned_free(f->learned);
	gt_skipped_close(f->skipped);
	*f = (struct gt_session_files){0};
}

enum gt_code gt_session_read_inputs(const struct gt_session *s, const char *path, struct gt_dataset *out, struct gt_err *err)
{
	struct gt_dataset_spec ds = dataset_spec(s->conf);
	*out = (struct gt_dataset){0};
	ds.learned = s->data.files->learned;
	ds.limit = 0;
	enum gt_code code = ds.learned->by->inputs(&ds, path, out, err);
	if (code != GT_OK)
		gt_dataset_free(out);
	return code;
}

/* Sets the view of a split whose data has been read. */
static enum gt_code set_view(struct gt_session *s, enum gt_split split, struct gt_err *err)
{
	const struct gt_session_files *f = s->data.files;
	int64_t n = f->set[split].n;
	if (split == GT_VALID && n && s->conf->data.valid > 0)
		return gt_conf_refuse(s->conf, "data.valid", err, "expected no share of the training split, because the data has a split "
		                      "\"valid\" of its own, with %lld samples; remove this key", (long long)n);
	if (split != GT_VALID || n)
		s->data.view[split] = f->index[split] ? view_of(s, split, f->index[split], f->count[split]) : view_of(s, split, NULL, n);
	if (split == GT_TRAIN && f->index[GT_VALID])
		s->data.view[GT_VALID] = view_of(s, GT_TRAIN, f->index[GT_VALID], f->count[GT_VALID]);
	return GT_OK;
}

/* Names the columns of numbers that the model predicts. */
static enum gt_code name_values(struct gt_session *s, struct gt_err *err)
{
	const struct gt_strings *given = &s->conf->data.target_columns;
	const struct gt_learned *l = s->data.files->learned;
	int n = s->conf->data.targets != GT_TARGETS_NUMBERS ? 0 : l ? l->table.ntargets : given->n;
	GT_NEW(s->data.value_name, s->arena, n + 1, err);
	GT_NEW(s->data.value_scale, s->arena, n + 1, err);
	for (int i = 0; i < n; i++) {
		const struct gt_table_fact *f = l ? &l->table.column[gt_table_target_column(&l->table, i)] : NULL;
		s->data.value_name[i] = f ? f->name : given->v[i];
		s->data.value_scale[i] = (struct gt_value_scale){0, 1};
		if (f && s->conf->data.normalize_target)
			s->data.value_scale[i] = (struct gt_value_scale){f->mean, f->std > 0 ? f->std : 1};
	}
	s->data.nvalues = n;
	return GT_OK;
}

enum gt_code gt_session_data_open(struct gt_session *s, const struct gt_session_spec *spec, struct gt_err *err)
{
	if (s->conf->data.on_error == GT_ON_ERROR_SKIP && spec->train) /* scores are those of all images */
		GT_TRY(gt_skipped_open(&s->data.skipped, err));
	const struct gt_dataset *first = NULL; /* the first split that was found */
	for (int i = 0; i < GT_SPLITS; i++)
		s->data.view[i].n = spec->dry ? -1 : 0;
	if (!spec->data)
		GT_TRY(gt_session_read_data(spec, &s->data.own, err));
	s->data.files = spec->data ? spec->data : &s->data.own;
	memcpy(s->data.set, s->data.files->set, sizeof s->data.set);
	s->data.note = *s->data.files->note ? s->data.files->note : NULL;
	for (int i = 0; i < GT_SPLITS; i++) {
		if (!s->data.files->wanted[i] || s->data.files->missing[i])
			continue;
		if (!spec->dry)
			GT_TRY(gt_resident_make(&s->device, &s->data.set[i], s->data.set[i].encoded, &s->data.resident[i], err));
		GT_TRY(set_view(s, (enum gt_split)i, err));
		if (s->data.set[i].n && !first)
			first = &s->data.set[i];
	}
	if (!first && s->data.files->learned)
		first = &s->data.files->like;
	if (first) {
		s->data.facts = gt_session_facts_of(first);
		s->data.facts.learned = s->data.files->learned;
		GT_TRY(gt_session_set_lists(s, first, err));
	}
	GT_TRY(name_values(s, err));
	GT_TRY(gt_session_match_inputs(s, first, err));
	return gt_data_facts_print(&s->data.facts, s->arena, &s->data.facts_text, err);
}

void gt_session_data_close(struct gt_session *s)
{
	for (int i = 0; i < GT_SPLITS; i++)
		if (s->device.be)
			gt_resident_drop(&s->device, &s->data.resident[i]);
	gt_session_free_data(&s->data.own);
	gt_skipped_close(s->data.skipped);
}
