/* Defines how the samples of a session are transformed and read. */
#include "base/arena.h"
#include "samples.h"
#include "session/session_data.h"
#include "skipped.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- lists of transforms ---------------------------------------------------------------------------------------------------------- */
/* Returns whether the transforms give images of every size the same output size. */
static bool sets_size(struct gt_transform_list l)
{
	for (int i = 0; i < l.n; i++)
		if (l.t[i].type == GT_TF_RANDOM_RESIZED_CROP || l.t[i].type == GT_TF_RESIZE || l.t[i].type == GT_TF_CENTER_CROP)
			return true;
	return false;
}

/* Sets the transforms of image files for evaluation if the config has none: as in torchvision's presets, a resize of the shorter side to
 * 256 / 224 of the input size, then a center crop. */
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

/* Checks a list for the images of d. key: the config key of the list; the first `before` entries come from eval.transforms. */
static enum gt_code check_list(const struct gt_session *s, const struct gt_dataset *d, struct gt_transform_list list, const char *key,
                               int before, struct gt_err *err)
{
	const int64_t *in = s->conf->model.input;
	char why[400], path[64];
	int at;
	if (!d->encoded && gt_transform_in_kernel(list))
		return GT_OK;
	if (gt_transform_check(list, d->encoded ? 0 : d->h, d->encoded ? 0 : d->w, (int)in[0], in[1], in[2], &at, why, sizeof why) == GT_OK)
		return GT_OK;
	if (at < list.n)
		snprintf(path, sizeof path, "%s[%d]", at < before ? "eval.transforms" : key, at < before ? at : at - before);
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

/* If the transforms in data.augment do not set the image size, training samples first get the transforms for evaluation. */
enum gt_code gt_session_set_lists(struct gt_session *s, const struct gt_dataset *d, struct gt_err *err)
{
	const struct gt_conf_data *c = &s->conf->data;
	struct gt_transform_list all = {c->augment, c->naugment}, own = gt_transform_single(all);
	struct gt_transform_list *eval = &s->data.eval_list, *train = &s->data.train_list;
	struct gt_transform *t;
	GT_TRY(gt_session_set_eval_list(s, d->encoded, err));
	int before = sets_size(own) ? 0 : eval->n;
	GT_NEW(t, s->arena, before + all.n + 1, err);
	for (int i = 0; i < before + all.n; i++)
		t[i] = i < before ? eval->t[i] : all.t[i - before];
	GT_TRY(check_list(s, d, (struct gt_transform_list){t, before + all.n}, "data.augment", before, err));
	*train = (struct gt_transform_list){t, before + own.n};
	s->data.mixing = (struct gt_mixing){0};
	for (int i = own.n; i < all.n; i++) {
		struct gt_mixing *m = &s->data.mixing;
		bool cut = all.t[i].type == GT_TF_CUTMIX;
		*(cut ? &m->cutmix_p : &m->mixup_p) = all.t[i].p;
		*(cut ? &m->cutmix_alpha : &m->mixup_alpha) = all.t[i].alpha;
		m->classes = d->target.width ? d->target.width : d->classes;
	}
	return check_list(s, d, *eval, "eval.transforms", 0, err);
}

bool gt_session_mixes(const struct gt_session *s)
{
	return s->data.mixing.classes > 0;
}

struct gt_loss_spec gt_session_loss(const struct gt_session *s, bool train)
{
	struct gt_loss_spec loss = s->loss;
	loss.dense |= train && gt_session_mixes(s);
	return loss;
}

/* Returns whether the samples of a split are fetched: their files are decoded on demand, or the gather kernel does not support their
 * transforms. */
static bool is_fetched(const struct gt_session *s, enum gt_split split, bool train)
{
	const struct gt_dataset *d = s->data.view[split].data;
	bool host = train ? gt_session_mixes(s) || !gt_transform_in_kernel(s->data.train_list) : s->data.eval_list.n > 0;
	return d && (d->encoded || host);
}

/* Returns how the transforms of fetched samples are divided between the threads that read them and the device. Threads make all transforms
 * if the device is the host or if samples are mixed afterwards. */
static struct gt_recipe_split divide_transforms(const struct gt_session *s, bool train)
{
	const int64_t *in = s->conf->model.input;
	struct gt_transform_list list = train ? s->data.train_list : s->data.eval_list;
	bool device = s->queues && s->conf->data.gpu_transforms && !(train && gt_session_mixes(s));
	return device ? gt_recipe_split_of(list, (int)in[0], in[1], in[2]) : (struct gt_recipe_split){.first = list.n};
}

/* Writes the names of transforms first ... last - 1 of a list: "hflip, color_jitter". */
static enum gt_code name_transforms(struct gt_transform_list list, int first, int last, struct gt_arena *a, const char **out,
                                    struct gt_err *err)
{
	char *text, word[32];
	size_t size = (size_t)(last - first) * sizeof word + 1, n = 0;
	GT_NEW(text, a, size, err);
	for (int i = first; i < last; i++)
		n += (size_t)snprintf(text + n, size - n, "%s%s", i > first ? ", " : "", gt_transform_word(list.t[i].type, word));
	*out = text;
	return GT_OK;
}

enum gt_code gt_session_divided(const struct gt_session *s, struct gt_arena *a, struct gt_session_division *out, struct gt_err *err)
{
	struct gt_transform_list list = s->data.train_list;
	*out = (struct gt_session_division){0};
	if (!is_fetched(s, GT_TRAIN, true))
		return GT_OK;
	out->split = divide_transforms(s, true);
	if (!out->split.on)
		return GT_OK;
	int first = out->split.resize ? 0 : out->split.first;
	GT_TRY(name_transforms(list, 0, first, a, &out->threads, err));
	return name_transforms(list, first, list.n, a, &out->device, err);
}

/* The argument `user` of the functions in gt_loader_spec.fetch: it reads the samples of one split. */
struct fetch {
	struct gt_samples *samples;
	struct gt_skipped *skipped; /* NULL: a sample that cannot be read ends the run */
	bool may_skip;              /* data.on_error = "skip" is allowed and would let the run continue; errors then mention it */
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
		return gt_skipped_add(f->skipped, f->set, sample, "sample", NULL, why.msg, err);
	}
	if (code != GT_OK)
		gt_fail_copy(err, &why);
	if (code == GT_EDATA && f->may_skip)
		gt_fail_suffix(err, "to skip such files, write data.on_error = \"skip\"; `gtrain check CFG --data --verify` lists them");
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

int gt_session_fetch_window(const struct gt_session *s)
{
	const int64_t *in = s->conf->model.input;
	int64_t eval = s->conf->data.eval_batch, batch = eval > s->batch.size ? eval : s->batch.size, row = 0;
	int window = 8;
	for (int i = 0; i < GT_SPLITS; i++) {
		struct gt_recipe_split split = divide_transforms(s, i == GT_TRAIN);
		int64_t bytes = split.on ? split.row : in[0] * in[1] * in[2];
		row = is_fetched(s, (enum gt_split)i, i == GT_TRAIN) && bytes > row ? bytes : row;
	}
	while (window > 2 && 2 * window * ((batch + s->at.ndata - 1) / s->at.ndata) * row > (int64_t)1 << 30)
		window /= 2; /* steps with such large batches take so long that a window of few steps suffices */
	return window;
}

/* Returns the number of threads that read samples: data.workers or, if that is 0, the number of the device's threads, or 4 for a GPU. */
static int count_workers(const struct gt_session *s)
{
	int n = (int)s->conf->data.workers;
	/* the cores of a GPU's host wait for the device and can read; on a CPU, reading threads share the cores with computing threads */
	if (!n)
		n = s->device.info.threads > 0 ? s->device.info.threads : 4;
	return n < 1 ? 1 : n;
}

enum gt_code gt_session_fetch_spec(const struct gt_session *s, enum gt_split split, bool train, struct gt_loader_spec *spec,
                                   struct gt_err *err)
{
	int64_t part = gt_part_size(spec->micro, spec->slice.parts > 0 ? spec->slice.parts : 1, 0, NULL);
	bool in_kernel = train && !is_fetched(s, split, train);
	GT_TRY(gt_session_gather_attr(s->conf, in_kernel ? s->data.train_list : (struct gt_transform_list){0}, &spec->attr, err));
	spec->attr.views = train ? 0 : gt_session_tta_views(s->conf);
	if (!is_fetched(s, split, train))
		return GT_OK;
	spec->fetch.sample = fetch_sample;
	spec->split = divide_transforms(s, train);
	spec->workers = count_workers(s);
	/* Threads read two batches ahead or, if batches are small, enough samples to keep all threads busy. */
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
	                               .h = in[1], .w = in[2], .split = spec->split, .seed = (uint64_t)s->conf->seed,
	                               .threads = spec->workers};
	if (!(f = calloc(1, sizeof *f)))
		return gt_fail_memory(err, sizeof *f);
	f->skipped = s->data.skipped;
	f->may_skip = read.data->source && s->conf->data.on_error == GT_ON_ERROR_STOP &&
	              gt_loss_has_classes(gt_loss_row(s->loss.op->code));
	f->set = (int)(read.data - s->data.set);
	f->bytes = gt_samples_row(&read);
	enum gt_code code = gt_samples_open(&read, &f->samples, err);
	if (code != GT_OK) {
		free(f);
		return code;
	}
	spec->fetch.user = f;
	spec->fetch.close = close_fetch;
	return GT_OK;
}

/* ---- the gather kernel --------------------------------------------------------------------------------------------------------------- */
int gt_session_tta_views(const struct gt_conf *c)
{
	static const int views[] = {[GT_TTA_NONE] = 1, [GT_TTA_MIRROR] = 2, [GT_TTA_MIRROR_TRANSLATE] = 6};
	return views[c->eval.tta];
}

static double channel_value(const struct gt_floats *f, int64_t c, double otherwise)
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
		return gt_conf_refuse(c, "data.mean", err, "expected 1 or %lld values (model.input channels) here and in data.std, got %d and %d",
		                      (long long)channels, d->mean.n, d->std.n);
	/* the values that torchvision computes: ToTensor divides by 255, then Normalize subtracts the mean and divides by std */
	for (int64_t i = 0; i < channels; i++) {
		double std = channel_value(&d->std, i, 1);
		out->scale[i] = (float)(1 / (255 * std));
		out->shift[i] = (float)(-channel_value(&d->mean, i, 0) / std);
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

enum gt_code gt_session_each_sample(const struct gt_session *s, enum gt_split split, int64_t first, int64_t n,
                                    void (*fn)(void *user, const uint8_t *pixels), void *user, struct gt_err *err)
{
	const struct gt_view *v = &s->data.view[split];
	const struct gt_dataset *d = v->data;
	struct gt_loader_spec spec = {.workers = 1, .fetch.sample = is_fetched(s, split, false) ? fetch_sample : NULL};
	GT_TRY(gt_session_fetch_open(s, split, false, &spec, err));
	size_t bytes = (size_t)(s->conf->model.input[0] * s->conf->model.input[1] * s->conf->model.input[2]);
	uint8_t *row = spec.fetch.sample ? malloc(bytes) : NULL;
	enum gt_code code = !spec.fetch.sample || row ? GT_OK : gt_fail_memory(err, bytes);
	for (int64_t i = first; i < first + n && code == GT_OK; i++) {
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

/* ---- samples that could not be read -------------------------------------------------------------------------------------------------- */
/* The new entries of a rank's list of skipped samples: NUL-terminated texts "DATASET SAMPLE REASON", with the indices of dataset and
 * sample. */
struct texts {
	char *text;
	int64_t size, cap;
	enum gt_code code;
	struct gt_err *err;
};

static enum gt_code append_entry(struct texts *t, int set, int64_t i, const char *why)
{
	int64_t need = t->size + (int64_t)strlen(why) + 48;
	GT_GROW(t->text, t->cap, need, t->err);
	t->size += snprintf(t->text + t->size, (size_t)(need - t->size), "%d %lld %s", set, (long long)i, why) + 1;
	return GT_OK;
}

static void append_skipped(void *user, int set, int64_t i, const char *why)
{
	struct texts *t = user;
	if (t->code == GT_OK)
		t->code = append_entry(t, set, i, why);
}

/* Adds the entries of another rank to the list of skipped samples on rank 0. */
static enum gt_code add_texts(struct gt_skipped *list, const char *text, size_t size, struct gt_err *err)
{
	for (size_t len; size && *text; text += len, size -= len) {
		int set, at = 0;
		long long i;
		len = strnlen(text, size - 1) + 1;
		if (sscanf(text, "%d %lld %n", &set, &i, &at) == 2 && at)
			GT_TRY(gt_skipped_add(list, set, i, "sample", NULL, text + at, err));
	}
	return GT_OK;
}

/* Sends the new entries of all ranks to rank 0, which adds them to its list of skipped samples. */
static enum gt_code gather_skipped(struct gt_session *s, struct gt_err *err)
{
	struct texts own = {.err = err};
	char *all = NULL;
	size_t block;
	if (s->at.rank)
		gt_skipped_new(s->data.skipped, append_skipped, &own);
	enum gt_code code = own.code == GT_OK ? gt_team_gather(s->team, own.text, (size_t)own.size, "skipped samples", &all, &block, err)
	                                      : own.code;
	for (int r = 1; r < s->at.world && code == GT_OK && all; r++)
		code = add_texts(s->data.skipped, all + (size_t)r * block, block, err);
	free(all);
	free(own.text);
	return code;
}

struct reasons {
	void (*fn)(void *user, const char *why);
	void *user;
};

static void pass_reason(void *user, int set, int64_t i, const char *why)
{
	const struct reasons *r = user;
	(void)set;
	(void)i;
	r->fn(r->user, why);
}

enum gt_code gt_session_skipped(struct gt_session *s, void (*fn)(void *user, const char *why), void (*each)(void *user, const char *why),
                                void *user, struct gt_err *err)
{
	struct reasons to = {fn, user};
	if (s->data.files->skipped && !s->at.rank) /* every rank reads all texts and rows, so rank 0 knows all that were skipped */
		gt_skipped_report(s->data.files->skipped, fn, each, user);
	if (!s->data.skipped)
		return GT_OK;
	if (s->at.world > 1)
		GT_TRY(gather_skipped(s, err));
	if (!s->at.rank)
		gt_skipped_new(s->data.skipped, pass_reason, &to);
	return GT_OK;
}
