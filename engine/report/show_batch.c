/* `gtrain show`: takes the samples of a step from the loader of a run. A loader on the CPU delivers the same pixels as on a GPU, and a
 * loader of one rank delivers the samples of all ranks. Therefore one rank on the CPU can show the samples of any run of the config. */
#include "base/arena.h"
#include "report/show_parts.h"
#include "skipped.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Changes a config so that one rank on the CPU reads exactly the samples that all ranks of the run read in a step. */
static enum gt_code make_one_rank(const struct gt_conf *given, struct gt_conf *c, struct gt_err *err)
{
	struct gt_rank_position at;
	int world = given->parallel.nproc > 0 ? (int)given->parallel.nproc : 1;
	*c = *given;
	if (!c->data.batch) {
		GT_TRY(gt_strategy_of(c->parallel.mode)->position(c, 0, world, &at, err));
		c->data.batch = c->data.batch_per_rank * at.ndata;
		c->data.batch_per_rank = 0;
	}
	c->parallel.mode = GT_MODE_SINGLE;
	c->parallel.nproc = 1;
	c->train.accumulate = 1;
	c->reproducible = GT_REPRO_NONE;
	c->precision = GT_PREC_FP32;
	c->data.prefetch = 0;
	c->eval.tta = GT_TTA_NONE;
	return GT_OK;
}

/* ---- one sample ----------------------------------------------------------------------------------------------------------------- */
/* Sums over the pixel values of images. */
struct sums {
	double n, sum, squares;
};

/* Converts the values of an image back to pixels 0 ... 255, by undoing the scale and shift of the gather kernel. */
static void restore_pixels(const struct gt_attr_gather *attr, const float *x, int64_t pixels, int64_t c, uint8_t *out)
{
	for (int64_t i = 0; i < pixels * c; i++) {
		double v = ((double)x[i] - (double)attr->shift[i % c]) / (double)attr->scale[i % c];
		out[i] = (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v + 0.5);
	}
}

static void add_values(struct gt_shown *b, struct sums *s, const float *x, int64_t n)
{
	for (int64_t i = 0; i < n; i++) {
		double v = (double)x[i];
		b->least = b->least < v ? b->least : v;
		b->most = b->most > v ? b->most : v;
		s->sum += v;
		s->squares += v * v;
	}
	s->n += (double)n;
}

static enum gt_code add_image(struct gt_show_job *j, const struct gt_batch *b, int64_t i, struct gt_shown_sample *out, struct sums *sums,
                              struct gt_err *err)
{
	const int64_t *in = j->s->conf->model.input;
	int64_t c = in[0], h = in[1] ? in[1] : 1, w = in[2] ? in[2] : 1;
	const float *x = (const float *)b->x + i * c * h * w;
	struct gt_attr_gather attr;
	uint8_t *pixels;
	GT_TRY(gt_session_gather_attr(j->s->conf, (struct gt_transform_list){0}, &attr, err));
	GT_NEW(pixels, j->a, c * h * w, err);
	restore_pixels(&attr, x, h * w, c, pixels);
	add_values(j->out, sums, x, c * h * w);
	out->image = (struct gt_shown_image){c, h, w, pixels, h, w};
	return GT_OK;
}

static enum gt_code add_sample(struct gt_show_job *j, const struct gt_batch *b, int64_t i, int64_t index, int64_t step, struct sums *sums,
                               struct gt_err *err)
{
	struct gt_shown_sample *s = &j->out->sample[j->out->n];
	char name[4400];
	s->index = index;
	s->step = step;
	GT_NEW_STR(s->name, gt_arena_strdup(j->a, gt_dataset_sample_name(j->data, index, name, sizeof name)), err);
	if (j->spec->plain) {
		GT_TRY(gt_show_plain(j, s, err));
	} else {
		GT_TRY(gt_show_targets(j, b, i, s, err));
		GT_TRY(gt_show_inputs(j, b, i, s, err));
		if (b->x)
			GT_TRY(add_image(j, b, i, s, sums, err));
	}
	j->out->n++;
	return GT_OK;
}

/* ---- the steps ------------------------------------------------------------------------------------------------------------------- */
/* Describes how the samples of a batch are mixed in pairs. The random numbers are a pure function of seed and step, so they are computed
 * again here. */
static void describe_mix(const struct gt_show_job *j, const struct gt_batch *b, int64_t step, struct gt_shown_mix *out)
{
	const struct gt_conf *c = j->s->conf;
	struct gt_mix mix = {.lambda = 1};
	if (gt_session_mixes(j->s) && !strcmp(j->out->split, "train") && !j->spec->plain)
		gt_mix_draw(&j->s->data.mixing, (uint64_t)c->seed, (uint64_t)b->epoch, (uint64_t)(b->micro / j->out->batch), c->model.input[1],
		            c->model.input[2], &mix);
	*out = (struct gt_shown_mix){step, mix.lambda == 1 ? NULL : mix.cut ? "cutmix" : "mixup", mix.lambda};
}

static void finish_sums(struct gt_shown *b, const struct sums *s)
{
	b->mean = s->sum / s->n;
	b->std = sqrt(fmax(s->squares / s->n - b->mean * b->mean, 0));
	if (s->n == 0)
		b->least = b->most = b->mean = b->std = NAN;
}

/* Reads batches, beginning with step spec->step, until there are enough samples. last: the last step. */
static enum gt_code take_batches(struct gt_show_job *j, struct gt_loader *l, int64_t last, struct gt_err *err)
{
	struct gt_shown *out = j->out;
	struct sums sums = {0};
	int64_t step = out->step;
	GT_TRY(gt_loader_start(l, out->epoch - 1, (step - 1) % out->steps * out->batch, err));
	last = j->spec->one_step && !out->drawn_from ? step : last;
	for (; out->n < j->spec->samples && step <= last; step++) {
		struct gt_batch b;
		GT_TRY(gt_loader_next(l, &b, err));
		describe_mix(j, &b, step, &out->mix[out->nmix++]);
		for (int64_t i = 0; i < b.n && out->n < j->spec->samples; i++)
			GT_TRY(add_sample(j, &b, i, gt_loader_sample(l, b.cursor + i * b.stride), step, &sums, err));
	}
	finish_sums(out, &sums);
	return GT_OK;
}

static enum gt_code name_transforms(struct gt_show_job *j, bool train, struct gt_err *err)
{
	const struct gt_session_data *d = &j->s->data;
	struct gt_transform_list list = train ? d->train_list : d->eval_list;
	char text[1024] = "", word[32];
	size_t n = 0;
	for (int i = 0; i < list.n && n < sizeof text; i++)
		n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", n ? ", " : "", gt_transform_word(list.t[i].type, word));
	if (train && d->mixing.mixup_p > 0 && n < sizeof text)
		n += (size_t)snprintf(text + n, sizeof text - n, "%smixup", n ? ", " : "");
	if (train && d->mixing.cutmix_p > 0 && n < sizeof text)
		snprintf(text + n, sizeof text - n, "%scutmix", n ? ", " : "");
	GT_NEW_STR(j->out->transforms, gt_arena_strdup(j->a, text), err);
	return GT_OK;
}

/* Sets the batch size and the steps of the split. *last: the last step that can be shown. */
static enum gt_code find_step(struct gt_show_job *j, enum gt_split split, int64_t *last, struct gt_err *err)
{
	const struct gt_session *s = j->s;
	struct gt_shown *out = j->out;
	bool train = split == GT_TRAIN;
	if (s->data.view[split].n <= 0)
		return gt_fail(err, GT_ENOINPUT, "%s: the split \"%s\" has no samples; choose another split with --split", s->conf->path,
		               out->split);
	if (!train && !j->spec->step)
		GT_TRY(gt_show_draw(j, split, err));
	int64_t n = s->data.view[split].n;
	out->batch = train || !s->conf->data.eval_batch ? s->batch.size : s->conf->data.eval_batch;
	if (!train && out->batch > n)
		out->batch = n;
	out->steps = train ? s->batch.steps_per_epoch : (n + out->batch - 1) / out->batch;
	*last = train ? s->batch.steps : out->steps;
	if (j->spec->step > *last)
		return gt_fail(err, GT_EUSAGE, "--step: expected at most %lld, the number of %s, got %lld", (long long)*last,
		               train ? "steps of the run" : "batches of an evaluation", (long long)j->spec->step);
	out->step = j->spec->step ? j->spec->step : 1;
	out->epoch = 1 + (out->step - 1) / out->steps;
	return GT_OK;
}

static enum gt_code show_split(struct gt_show_job *j, enum gt_split split, struct gt_err *err)
{
	struct gt_shown *out = j->out;
	struct gt_loader *l;
	int64_t last = 0;
	GT_TRY(find_step(j, split, &last, err));
	j->data = j->s->data.view[split].data;
	GT_NEW_STR(out->name, gt_arena_strdup(j->a, j->s->conf->name), err);
	GT_NEW_STR(out->where, gt_arena_strdup(j->a, j->data->where), err);
	GT_NEW(out->sample, j->a, j->spec->samples, err);
	GT_NEW(out->mix, j->a, j->spec->samples, err);
	GT_TRY(name_transforms(j, split == GT_TRAIN, err));
	if (j->spec->plain)
		GT_TRY(gt_show_plain_open(j, err));
	GT_TRY(gt_session_loader_open(j->s, split, out->batch, out->batch, split == GT_TRAIN, &l, err));
	enum gt_code code = take_batches(j, l, last, err);
	gt_loader_close(l);
	return code;
}

static enum gt_code find_split(const char *word, enum gt_split *out, struct gt_err *err)
{
	for (int i = 0; i < GT_SPLITS; i++)
		if (!strcmp(gt_split_names[i], word)) {
			*out = (enum gt_split)i;
			return GT_OK;
		}
	return gt_fail(err, GT_EUSAGE, "expected the split train, valid or test, got '%.60s'", word);
}

/* Marks a shown sample as skipped, because the loader could not read it, and warns about it. */
static void mark_skipped(void *user, int set, int64_t i, const char *why)
{
	const struct gt_show_job *j = user;
	char text[1200];
	snprintf(text, sizeof text, "skipped %s", why);
	for (int k = 0; k < j->out->n && set == (int)(j->data - j->s->data.set); k++)
		j->out->sample[k].skipped |= j->out->sample[k].index == i;
	if (j->spec->warn)
		j->spec->warn(j->spec->user, text);
}

static void warn_of_rows(void *user, const char *why)
{
	const struct gt_show_spec *spec = user;
	char text[1200];
	snprintf(text, sizeof text, "skipped %s", why);
	if (spec->warn)
		spec->warn(spec->user, text);
}

/* Warns about the samples that the loader has skipped, and marks those that are shown. */
static enum gt_code report_skipped(struct gt_show_job *j, struct gt_err *err)
{
	if (j->s->data.skipped)
		gt_skipped_new(j->s->data.skipped, mark_skipped, j);
	return gt_session_skipped(j->s, warn_of_rows, NULL, (void *)(uintptr_t)j->spec, err);
}

enum gt_code gt_show(const struct gt_conf *given, const struct gt_show_spec *spec, struct gt_shown **out, struct gt_err *err)
{
	struct gt_arena *a;
	struct gt_conf c;
	enum gt_split split = GT_TRAIN;
	*out = NULL;
	GT_TRY(find_split(spec->split, &split, err));
	GT_TRY(make_one_rank(given, &c, err));
	GT_TRY(gt_arena_open(&a, err));
	struct gt_show_job j = {.spec = spec, .a = a, .out = gt_arena_alloc(a, 1, sizeof *j.out)};
	struct gt_session_spec open = {.conf = &c, .device = "cpu", .train = true, .samples_only = true};
	open.eval[split] = split != GT_TRAIN;
	enum gt_code code = j.out ? gt_session_open(&open, &j.s, err) : gt_fail_memory(err, sizeof *j.out);
	if (code == GT_ENOINPUT && spec->of_run)
		gt_session_explain_moved(&c, err);
	if (j.out)
		*j.out = (struct gt_shown){.split = gt_split_names[split], .plain = spec->plain, .arena = a, .least = INFINITY, .most = -INFINITY};
	if (code == GT_OK)
		code = show_split(&j, split, err);
	if (code == GT_OK)
		code = report_skipped(&j, err);
	gt_show_plain_close(&j);
	gt_session_close(j.s);
	if (code == GT_OK)
		*out = j.out;
	else
		gt_arena_close(a);
	return code;
}

void gt_shown_free(struct gt_shown *b)
{
	if (b)
		gt_arena_close(b->arena);
}
