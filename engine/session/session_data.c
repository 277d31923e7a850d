#include "session/session_data.h"
#include "exec/permute.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

const char *const gt_split_names[GT_SPLITS] = {"train", "valid", "test"};

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
	                                .train = d->train.n ? d->train.v : NULL,
	                                .ntrain = d->train.n,
	                                .test = d->test.n ? d->test.v : NULL,
	                                .ntest = d->test.n,
	                                .shape = {c->model.input[0], c->model.input[1], c->model.input[2]},
	                                .classes = d->classes,
	                                .samples = {d->samples, d->samples_test},
	                                .limit = d->limit,
	                                .seed = (uint64_t)c->seed};
}

static struct gt_view view_of(struct gt_session *s, int which, int64_t *index, int64_t n)
{
	return (struct gt_view){&s->data.set[which], s->data.resident[which][0], s->data.resident[which][1], index, n};
}

static enum gt_code split_train(struct gt_session *s, struct gt_err *err)
{
	int64_t n = s->data.set[0].n, nvalid = (int64_t)(s->conf->data.valid * (double)n + 0.5);
	if (!nvalid) {
		s->data.view[GT_TRAIN] = view_of(s, 0, NULL, n);
		return GT_OK;
	}
	if (nvalid >= n)
		return gt_conf_refuse(s->conf, "data.valid", err, "expected a share that leaves training samples, got %g of %lld samples",
		                      s->conf->data.valid,
		                      (long long)n);
	GT_NEW(s->data.index[GT_TRAIN], s->arena, n - nvalid, err);
	GT_NEW(s->data.index[GT_VALID], s->arena, nvalid, err);
	GT_TRY(gt_permute_split((uint64_t)s->conf->seed, n, nvalid, s->data.index[GT_TRAIN], s->data.index[GT_VALID], err));
	s->data.view[GT_TRAIN] = view_of(s, 0, s->data.index[GT_TRAIN], n - nvalid);
	s->data.view[GT_VALID] = view_of(s, 0, s->data.index[GT_VALID], nvalid);
	return GT_OK;
}

static bool wanted(const struct gt_session_spec *spec, int which)
{
	return which ? spec->eval[GT_TEST] : spec->train || spec->eval[GT_TRAIN] || spec->eval[GT_VALID];
}

static void read_both(const struct gt_session_spec *spec, struct gt_dataset *out, struct job *job)
{
	struct gt_dataset_spec ds = dataset_spec(spec->conf);
	pthread_t thread;
	bool threaded = false;
	for (int i = 0; i < 2; i++)
		job[i] = (struct job){.spec = &ds, .split = i ? GT_SPLIT_TEST : GT_SPLIT_TRAIN, .out = &out[i], .dry = spec->dry};
	if (wanted(spec, 0) && wanted(spec, 1))
		threaded = !pthread_create(&thread, NULL, read_one, &job[1]);
	if (wanted(spec, 0))
		read_one(&job[0]);
	if (threaded)
		pthread_join(thread, NULL);
	else if (wanted(spec, 1))
		read_one(&job[1]);
}

enum gt_code gt_session_read_data(const struct gt_session_spec *spec, struct gt_dataset out[2], struct gt_err *err)
{
	struct job job[2];
	out[0] = out[1] = (struct gt_dataset){0};
	read_both(spec, out, job);
	for (int i = 0; i < 2; i++) {
		if (job[i].code == GT_OK)
			continue;
		gt_dataset_free(&out[!i]);
		gt_conf_at_key(spec->conf, &job[i].err);
		if (err)
			*err = job[i].err;
		return job[i].code;
	}
	return GT_OK;
}

enum gt_code gt_session_data_open(struct gt_session *s, const struct gt_session_spec *spec, struct gt_err *err)
{
	struct job job[2] = {0};
	s->data.borrowed = spec->data != NULL;
	for (int i = 0; i < GT_SPLITS; i++)
		s->data.view[i].n = spec->dry ? -1 : 0;
	if (!s->data.borrowed)
		read_both(spec, s->data.set, job);
	for (int i = 0; i < 2 && s->data.borrowed; i++)
		s->data.set[i] = spec->data[i];
	for (int i = 0; i < 2; i++) {
		if (!wanted(spec, i))
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
		if (i == 0)
			GT_TRY(split_train(s, err));
		else
			s->data.view[GT_TEST] = view_of(s, 1, NULL, s->data.set[1].n);
	}
	return GT_OK;
}

void gt_session_data_close(struct gt_session *s)
{
	for (int i = 0; i < 2; i++) {
		if (s->device.be)
			gt_resident_drop(&s->device, s->data.resident[i]);
		if (!s->data.borrowed)
			gt_dataset_free(&s->data.set[i]);
	}
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

enum gt_code gt_session_gather_attr(const struct gt_conf *c, bool augment, struct gt_attr_gather *out, struct gt_err *err)
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
	if (!augment)
		out->views = gt_session_tta_views(c);
	for (int64_t i = 0; i < channels; i++) { /* as torchvision: ToTensor divides by 255, Normalize subtracts and divides */
		double std = channel(&d->std, i, 1);
		out->scale[i] = (float)(1 / (255 * std));
		out->shift[i] = (float)(-channel(&d->mean, i, 0) / std);
	}
	if (augment && !gt_transform_in_kernel((struct gt_transform_list){d->augment, d->naugment}))
		return gt_conf_refuse(c, "data.augment", err, "expected only pad_crop and hflip for a dataset whose images are all in memory");
	for (int i = 0; augment && i < d->naugment; i++) {
		const struct gt_transform *a = &d->augment[i];
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
	const char *m = s->conf->checkpoint.best_metric;
	if (!*m)
		return GT_OK;
	if (!measures(s, m))
		return gt_conf_refuse(s->conf, "checkpoint.best.metric", err,
		                      "expected SPLIT/acc, SPLIT/loss, SPLIT/top5 or SPLIT/f1 of an evaluated split (valid, test), or train/acc, "
		                      "train/loss or train/top5, got \"%s\"", m);
	if (strstr(m, "/f1") && !gt_session_has_classes(s))
		return gt_conf_refuse(s->conf, "checkpoint.best.metric", err,
		                      "\"%s\" and the loss %s do not go together: an F1 score needs one class for each sample", m,
		                      s->loss.op->name);
	return GT_OK;
}
