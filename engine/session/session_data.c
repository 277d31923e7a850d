#include "session/session_data.h"
#include "exec/permute.h"
#include "skipped.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

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
	                               .seed = (uint64_t)c->seed};
	for (int i = 0; i < c->model.ninputs; i++) {
		const struct gt_model_input *in = &c->model.inputs[i];
		if (in->type != GT_INPUT_IMAGE)
			spec.wanted[spec.nwanted++] = (struct gt_field){
			    .name = in->name, .dtype = in->type == GT_INPUT_VALUES ? GT_F32 : GT_I32, .width = in->shape[0]};
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
/* Makes the split "valid" of data.valid of the training samples; without data.valid, the data may have a split of its own. */
static enum gt_code split_train(struct gt_session *s, struct gt_err *err)
{
	const struct gt_conf_data *d = &s->conf->data;
	const struct gt_dataset *set = &s->data.set[GT_TRAIN];
	int64_t n = set->n, nvalid = (int64_t)(d->valid * (double)n + 0.5);
	if (!nvalid) {
		s->data.view[GT_TRAIN] = view_of(s, GT_TRAIN, NULL, n);
		return GT_OK;
	}
	if (nvalid >= n)
		return gt_conf_refuse(s->conf, "data.valid", err, "expected a share that leaves training samples, got %g of %lld samples", d->valid,
		                      (long long)n);
	GT_NEW(s->data.index[GT_TRAIN], s->arena, n - nvalid, err);
	GT_NEW(s->data.index[GT_VALID], s->arena, nvalid, err);
	int64_t *train = s->data.index[GT_TRAIN], *valid = s->data.index[GT_VALID];
	if (d->stratify && set->labels)
		GT_TRY(gt_permute_split_classes((uint64_t)s->conf->seed, set->labels, n, set->classes, nvalid, train, valid, err));
	else
		GT_TRY(gt_permute_split((uint64_t)s->conf->seed, n, nvalid, train, valid, err));
	s->data.view[GT_TRAIN] = view_of(s, GT_TRAIN, train, n - nvalid);
	s->data.view[GT_VALID] = view_of(s, GT_TRAIN, valid, nvalid);
	return GT_OK;
}

/* Sets the view of a split whose data has been read. */
static enum gt_code set_view(struct gt_session *s, enum gt_split split, struct gt_err *err)
{
	if (split == GT_TRAIN)
		return split_train(s, err);
	int64_t n = s->data.set[split].n;
	if (split == GT_VALID && n && s->conf->data.valid > 0)
		return gt_conf_refuse(s->conf, "data.valid", err, "expected no share of the training split, because the data has a split "
		                      "\"valid\" of its own, with %lld samples; remove this key", (long long)n);
	if (split != GT_VALID || n)
		s->data.view[split] = view_of(s, split, NULL, n);
	return GT_OK;
}

static bool wanted(const struct gt_session_spec *spec, enum gt_split split)
{
	return split == GT_TRAIN ? spec->train || spec->eval[GT_TRAIN] || spec->eval[GT_VALID] : spec->eval[split];
}

/* Reads all wanted splits, each in a thread of its own. */
static void read_all(const struct gt_session_spec *spec, struct gt_dataset *out, struct job *job)
{
	struct gt_dataset_spec ds = dataset_spec(spec->conf);
	pthread_t thread[GT_SPLITS];
	bool threaded[GT_SPLITS] = {false};
	for (int i = 0; i < GT_SPLITS; i++) {
		job[i] = (struct job){.spec = &ds, .split = (enum gt_split)i, .out = &out[i], .dry = spec->dry};
		threaded[i] = i != GT_TRAIN && wanted(spec, (enum gt_split)i) && !pthread_create(&thread[i], NULL, read_one, &job[i]);
	}
	for (int i = 0; i < GT_SPLITS; i++) {
		if (threaded[i])
			pthread_join(thread[i], NULL);
		else if (wanted(spec, (enum gt_split)i))
			read_one(&job[i]);
	}
}

enum gt_code gt_session_read_data(const struct gt_session_spec *spec, struct gt_dataset out[GT_SPLITS], struct gt_err *err)
{
	struct job job[GT_SPLITS];
	for (int i = 0; i < GT_SPLITS; i++)
		out[i] = (struct gt_dataset){0};
	read_all(spec, out, job);
	for (int i = 0; i < GT_SPLITS; i++) {
		if (job[i].code == GT_OK)
			continue;
		gt_session_free_data(out);
		gt_conf_at_key(spec->conf, &job[i].err);
		if (err)
			*err = job[i].err;
		return job[i].code;
	}
	return GT_OK;
}

void gt_session_free_data(struct gt_dataset data[GT_SPLITS])
{
	for (int i = 0; i < GT_SPLITS; i++)
		gt_dataset_free(&data[i]);
}

enum gt_code gt_session_data_open(struct gt_session *s, const struct gt_session_spec *spec, struct gt_err *err)
{
	struct job job[GT_SPLITS] = {0};
	if (s->conf->data.on_error == GT_ON_ERROR_SKIP)
		GT_TRY(gt_skipped_open(&s->data.skipped, err));
	const struct gt_dataset *first = NULL; /* the first split that was found */
	s->data.borrowed = spec->data != NULL;
	for (int i = 0; i < GT_SPLITS; i++)
		s->data.view[i].n = spec->dry ? -1 : 0;
	if (!s->data.borrowed)
		read_all(spec, s->data.set, job);
	for (int i = 0; i < GT_SPLITS && s->data.borrowed; i++)
		s->data.set[i] = spec->data[i];
	for (int i = 0; i < GT_SPLITS; i++) {
		if (!wanted(spec, (enum gt_split)i))
			continue;
		if (job[i].code != GT_OK)
			gt_conf_at_key(s->conf, &job[i].err);
		if (job[i].code == GT_ENOINPUT && spec->dry) { /* `gtrain check` works without the data */
			GT_NEW_STR(s->data.note, gt_arena_strdup(s->arena, job[i].err.msg), err);
			continue;
		}
		if (job[i].code != GT_OK) {
			if (err)
				*err = job[i].err;
			return job[i].code;
		}
		if (!spec->dry)
			GT_TRY(gt_resident_make(&s->device, &s->data.set[i], s->data.set[i].encoded, &s->data.resident[i], err));
		GT_TRY(set_view(s, (enum gt_split)i, err));
		if (s->data.set[i].n && !first) {
			first = &s->data.set[i];
			s->data.facts = gt_session_facts_of(first);
			GT_TRY(gt_session_set_lists(s, first, err));
		}
	}
	GT_TRY(gt_session_match_inputs(s, first, err));
	return gt_data_facts_print(&s->data.facts, s->arena, &s->data.facts_text, err);
}

void gt_session_data_close(struct gt_session *s)
{
	for (int i = 0; i < GT_SPLITS; i++)
		if (s->device.be)
			gt_resident_drop(&s->device, &s->data.resident[i]);
	if (!s->data.borrowed)
		gt_session_free_data(s->data.set);
	gt_skipped_close(s->data.skipped);
}
