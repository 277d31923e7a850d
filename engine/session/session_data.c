#include "session/session_data.h"
#include "exec/permute.h"
#include "samples.h"
#include "skipped.h"
#include <pthread.h>
#include <stdio.h>
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
	return (struct gt_dataset_spec){.name = d->name,
	                                .root = d->root,
	                                .format = d->format,
	                                .path_column = d->path_column,
	                                .label_column = d->label_column,
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
}

static struct gt_view view_of(struct gt_session *s, int which, int64_t *index, int64_t n)
{
	return (struct gt_view){&s->data.set[which], s->data.resident[which][0], s->data.resident[which][1], index, n};
}

/* ---- transforms --------------------------------------------------------------------------------------------------------------- */
/* Returns whether a list determines the size of the image whatever size it had. */
static bool sets_size(struct gt_transform_list l)
{
	for (int i = 0; i < l.n; i++)
		if (l.t[i].type == GT_TF_RANDOM_RESIZED_CROP || l.t[i].type == GT_TF_RESIZE || l.t[i].type == GT_TF_CENTER_CROP)
			return true;
	return false;
}

/* The transforms of image files for evaluation, if the config has none: those that torchvision's presets use with the ratio 256 / 224. */
static enum gt_code default_eval_list(struct gt_session *s, struct gt_transform_list *out, struct gt_err *err)
{
	const int64_t *in = s->conf->model.input;
	struct gt_transform *t;
	bool square = in[1] == in[2];
	GT_NEW(t, s->arena, 2, err);
	t[0] = (struct gt_transform){.type = GT_TF_RESIZE, .interpolation = GT_INTERP_BILINEAR, .size = {in[1], square ? 0 : in[2]}};
	if (square)
		t[0].size[0] = (in[1] * 8 + 3) / 7;
	t[1] = (struct gt_transform){.type = GT_TF_CENTER_CROP, .size = {in[1], in[2]}};
	*out = (struct gt_transform_list){t, square ? 2 : 1};
	return GT_OK;
}

/* Checks a list for the images of d. key: where the config has it. */
static enum gt_code check_list(const struct gt_session *s, const struct gt_dataset *d, struct gt_transform_list list, const char *key,
                               struct gt_err *err)
{
	const int64_t *in = s->conf->model.input;
	char why[400], path[64];
	int at;
	if (!d->encoded && gt_transform_in_kernel(list))
		return GT_OK;
	if (gt_transform_check(list, d->encoded ? 0 : d->h, d->encoded ? 0 : d->w, (int)in[0], in[1], in[2], &at, why, sizeof why) == GT_OK)
		return GT_OK;
	if (at < list.n)
		snprintf(path, sizeof path, "%s[%d]", key, at);
	else
		snprintf(path, sizeof path, "%s", key);
	return gt_conf_refuse(s->conf, path, err, "%s", why);
}

enum gt_code gt_session_set_eval_list(struct gt_session *s, bool files, struct gt_err *err)
{
	struct gt_transform_list *eval = &s->data.eval_list;
	*eval = (struct gt_transform_list){s->conf->eval.transforms, s->conf->eval.ntransforms};
	return files && !eval->n ? default_eval_list(s, eval, err) : GT_OK;
}

/* Sets the transforms of training samples and of those for evaluation. Training samples get those for evaluation first if data.augment does
 * not determine their size. */
static enum gt_code set_lists(struct gt_session *s, const struct gt_dataset *d, struct gt_err *err)
{
	const struct gt_conf_data *c = &s->conf->data;
	struct gt_transform_list own = {c->augment, c->naugment}, *eval = &s->data.eval_list, *train = &s->data.train_list;
	struct gt_transform *t;
	GT_TRY(gt_session_set_eval_list(s, d->encoded, err));
	*train = own;
	if (eval->n && !sets_size(own)) {
		GT_NEW(t, s->arena, own.n + eval->n, err);
		for (int i = 0; i < own.n + eval->n; i++)
			t[i] = i < eval->n ? eval->t[i] : own.t[i - eval->n];
		*train = (struct gt_transform_list){t, own.n + eval->n};
	}
	GT_TRY(check_list(s, d, *train, "data.augment", err));
	return check_list(s, d, *eval, "eval.transforms", err);
}

/* Returns whether the samples of a split are fetched: their files are decoded on demand, or the gather kernel cannot do their
 * transforms. */
static bool is_fetched(const struct gt_session *s, enum gt_split split, bool train)
{
	const struct gt_dataset *d = s->data.view[split].data;
	return d && (d->encoded || (train ? !gt_transform_in_kernel(s->data.train_list) : s->data.eval_list.n > 0));
}

/* gt_loader_spec.fetch.user: reads the samples of a split. */
struct fetch {
	struct gt_samples *samples;
	struct gt_skipped *skipped; /* NULL: a sample that cannot be read ends the run */
	int set;                    /* index of the dataset in gt_session_data.set */
	size_t bytes;               /* bytes of a sample */
};

static enum gt_code fetch_sample(void *user, int thread, int64_t sample, uint64_t epoch, uint8_t *row, bool *absent, struct gt_err *err)
{
	struct fetch *f = user;
	struct gt_err why = {0};
	enum gt_code code = gt_samples_read(f->samples, thread, sample, epoch, row, &why);
	if (code == GT_EDATA && f->skipped) {
		memset(row, 0, f->bytes);
		*absent = true;
		return gt_skipped_add(f->skipped, f->set, sample, why.msg, err);
	}
	if (code != GT_OK && err)
		*err = why;
	return code;
}

static void close_fetch(void *user)
{
	struct fetch *f = user;
	gt_samples_close(f->samples);
	free(f);
}

bool gt_session_fetches(const struct gt_session *s)
{
	for (int i = 0; i < GT_SPLITS; i++)
		if (is_fetched(s, (enum gt_split)i, i == GT_TRAIN))
			return true;
	return false;
}

int gt_session_workers(const struct gt_session *s)
{
	int n = (int)s->conf->data.workers;
	if (!n) /* threads that wait for the device can read; on a CPU, reading and computing share the cores */
		n = s->device.info.threads > 0 ? s->device.info.threads : 4;
	return n < 1 ? 1 : n;
}

enum gt_code gt_session_fetch_spec(const struct gt_session *s, enum gt_split split, bool train, struct gt_loader_spec *spec,
                                   struct gt_err *err)
{
	int64_t part = gt_part_size(spec->micro, spec->slice.parts > 0 ? spec->slice.parts : 1, 0, NULL);
	GT_TRY(gt_session_gather_attr(s->conf, is_fetched(s, split, train) || !train ? (struct gt_transform_list){0} : s->data.train_list,
	               &spec->attr,
	                              err));
	spec->attr.views = train ? 0 : gt_session_tta_views(s->conf);
	if (!is_fetched(s, split, train))
		return GT_OK;
	spec->fetch.sample = fetch_sample;
	spec->workers = gt_session_workers(s);
	/* Ahead of the training by two batches, or with small batches by enough samples to keep all threads reading. */
	int64_t few = part > 0 ? (4 * spec->workers + part - 1) / part : 2;
	spec->ahead = s->conf->data.prefetch >= 0 ? (int)s->conf->data.prefetch : (int)(few > 2 ? few : 2);
	return GT_OK;
}

enum gt_code gt_session_fetch_open(const struct gt_session *s, enum gt_split split, bool train, struct gt_loader_spec *spec,
                                   struct gt_err *err)
{
	const int64_t *in = s->conf->model.input;
	struct fetch *f;
	if (!spec->fetch.sample)
		return GT_OK;
	struct gt_samples_spec read = {.data = s->data.view[split].data, .list = train ? s->data.train_list : s->data.eval_list, .c = in[0],
	                               .h = in[1], .w = in[2], .seed = (uint64_t)s->conf->seed, .threads = spec->workers};
	if (!(f = calloc(1, sizeof *f)))
		return gt_fail_memory(err, sizeof *f);
	f->skipped = s->data.skipped;
	f->set = (int)(read.data - s->data.set);
	f->bytes = (size_t)(in[0] * in[1] * in[2]);
	enum gt_code code = gt_samples_open(&read, &f->samples, err);
	if (code != GT_OK) {
		free(f);
		return code;
	}
	spec->fetch.user = f;
	spec->fetch.close = close_fetch;
	return GT_OK;
}

struct gt_data_facts gt_session_facts_of(const struct gt_dataset *d)
{
	return (struct gt_data_facts){d->encoded, d->nclass_names, (const char *const *)d->class_name};
}

const char *gt_session_class_name(const struct gt_session *s, int64_t label)
{
	const struct gt_data_facts *f = &s->data.facts;
	if (f->nclasses)
		return label >= 0 && label < f->nclasses ? f->class[label] : NULL;
	return gt_dataset_class(s->conf->data.name, label);
}

enum gt_code gt_session_each_sample(const struct gt_session *s, enum gt_split split, int64_t n,
                                    void (*fn)(void *user, const uint8_t *pixels), void *user, struct gt_err *err)
{
	const struct gt_view *v = &s->data.view[split];
	const struct gt_dataset *d = v->data;
	struct gt_loader_spec spec = {.workers = 1, .fetch.sample = is_fetched(s, split, false) ? fetch_sample : NULL};
	GT_TRY(gt_session_fetch_open(s, split, false, &spec, err));
	size_t bytes = (size_t)(s->conf->model.input[0] * s->conf->model.input[1] * s->conf->model.input[2]);
	uint8_t *row = spec.fetch.sample ? malloc(bytes) : NULL;
	enum gt_code code = !spec.fetch.sample || row ? GT_OK : gt_fail_memory(err, bytes);
	for (int64_t i = 0; i < n && code == GT_OK; i++) {
		int64_t at = v->index ? v->index[i] : i;
		bool absent = false;
		if (row)
			code = spec.fetch.sample(spec.fetch.user, 0, at, 0, row, &absent, err);
		if (code == GT_OK && !absent)
			fn(user, row ? row : d->images + (size_t)(at * d->h * d->w * d->c));
	}
	free(row);
	if (spec.fetch.close)
		spec.fetch.close(spec.fetch.user);
	return code;
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
		               "\"valid\" of "
		                      "its own, with %lld samples; remove this key", (long long)n);
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
	bool lists = false; /* the lists of transforms are set */
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
			GT_TRY(gt_resident_make(&s->device, &s->data.set[i], s->data.resident[i], err));
		GT_TRY(set_view(s, (enum gt_split)i, err));
		if (s->data.set[i].n && !lists) {
			lists = true;
			s->data.facts = gt_session_facts_of(&s->data.set[i]);
			GT_TRY(set_lists(s, &s->data.set[i], err));
		}
	}
	return gt_data_facts_print(&s->data.facts, s->arena, &s->data.facts_text, err);
}

void gt_session_data_close(struct gt_session *s)
{
	for (int i = 0; i < GT_SPLITS; i++)
		if (s->device.be)
			gt_resident_drop(&s->device, s->data.resident[i]);
	if (!s->data.borrowed)
		gt_session_free_data(s->data.set);
	gt_skipped_close(s->data.skipped);
}

int gt_session_tta_views(const struct gt_conf *c)
{
	static const int views[] = {[GT_TTA_NONE] = 1, [GT_TTA_MIRROR] = 2, [GT_TTA_MIRROR_TRANSLATE] = 6};
	return views[c->eval.tta];
}

static double channel(const struct gt_floats *f, int64_t c, double otherwise)
{
	return !f->n ? otherwise : f->v[f->n == 1 ? 0 : c];
}

enum gt_code gt_session_gather_attr(const struct gt_conf *c, struct gt_transform_list list, struct gt_attr_gather *out, struct gt_err *err)
{
	const struct gt_conf_data *d = &c->data;
	int64_t channels = c->model.input[0];
	*out = (struct gt_attr_gather){0};
	if (channels > GT_MAX_CHANNELS)
		return gt_conf_refuse(c, "model.input", err, "expected at most %d channels for image data, got %lld", GT_MAX_CHANNELS,
		                      (long long)channels);
	if ((d->mean.n > 1 && d->mean.n != channels) || (d->std.n > 1 && d->std.n != channels))
		return gt_conf_refuse(c, "data.mean", err, "expected 1 or %lld values (model.input's channels) here and in data.std, got %d and %d",
		                      (long long)channels, d->mean.n, d->std.n);
	for (int64_t i = 0; i < channels; i++) { /* as torchvision: ToTensor divides by 255, Normalize subtracts and divides */
		double std = channel(&d->std, i, 1);
		out->scale[i] = (float)(1 / (255 * std));
		out->shift[i] = (float)(-channel(&d->mean, i, 0) / std);
	}
	for (int i = 0; i < list.n; i++) {
		const struct gt_transform *a = &list.t[i];
		out->augment = true;
		if (a->type == GT_TF_PAD_CROP) {
			out->pad = (int)a->pad;
			out->pad_reflect = a->mode == 1;
		} else {
			out->hflip = a->p;
			out->hflip_alternate = a->alternate;
		}
	}
	return GT_OK;
}

/* Returns whether the run measures this metric: "SPLIT/SCORE". */
static bool measures(const struct gt_session *s, const char *metric)
{
	const char *slash = strchr(metric, '/'), *score = slash ? slash + 1 : "";
	int i = 0;
	while (slash && i < GT_SPLITS && (strlen(gt_split_names[i]) != (size_t)(slash - metric) ||
	                                  strncmp(metric, gt_split_names[i], (size_t)(slash - metric))))
		i++;
	if (!slash || i == GT_SPLITS || (i == GT_TRAIN ? !s->prog.full.n && !s->prog.tail.n : !s->prog.eval[i].nfull))
		return false;
	return !strcmp(score, "acc") || !strcmp(score, "loss") || !strcmp(score, "top5") || (!strcmp(score, "f1") && i != GT_TRAIN);
}

enum gt_code gt_session_check_best(const struct gt_session *s, struct gt_err *err)
{
	const char *m = s->conf->checkpoint.best_metric, *stop = s->conf->train.early_stop.metric;
	const struct gt_conf_schedule *sched = &s->conf->train.schedule;
	if (*stop && !measures(s, stop))
		return gt_conf_refuse(s->conf, "train.early_stop.metric", err, "expected a metric of an evaluated split, got \"%s\", of which "
		                      "there are no samples", stop);
	if (sched->type == GT_SCHED_PLATEAU && !measures(s, sched->metric))
		return gt_conf_refuse(s->conf, "train.schedule.metric", err, "expected a metric of an evaluated split, got \"%s\", of which "
		                      "there are no samples", sched->metric);
	if (!*m)
		return GT_OK;
	if (!measures(s, m))
		return gt_conf_refuse(s->conf, "checkpoint.best.metric", err,
		                      "expected SPLIT/acc, SPLIT/loss, SPLIT/top5 or SPLIT/f1 of an evaluated split (valid, test), or train/acc, "
		                      "train/loss or train/top5, got \"%s\"", m);
	if (strstr(m, "/f1") && !gt_session_has_classes(s))
		return gt_conf_refuse(s->conf, "checkpoint.best.metric", err,
		                      "\"%s\" and the loss %s do not go together: an F1 score needs one class for each sample", m,
		                      s->conf->train.loss);
	return GT_OK;
}
