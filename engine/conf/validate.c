/* Rejects keys whose values are valid alone but contradict each other. */
#include "conf/metric_name.h"
#include "conf/schema.h"
#include "conf/synonyms.h"
#include "formats.h"
#include "text/tokenizer.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define FAIL GT_REFUSE_KEY

static enum gt_code check_batch(struct gt_reading *rd, struct gt_err *err)
{
	struct gt_conf_data *d = &rd->conf->data;
	const struct gt_cnode *batch = gt_conf_given(rd->root, "data.batch"), *per_rank = gt_conf_given(rd->root, "data.batch_per_rank");
	if (batch && per_rank && batch->set != per_rank->set) { /* only one of them is from --set: it overrides the key in the file */
		if (batch->set)
			d->batch_per_rank = 0;
		else
			d->batch = 0;
	}
	if (d->batch && d->batch_per_rank)
		FAIL(rd, "data.batch_per_rank", "expected either data.batch_per_rank or data.batch, got both; remove one key");
	if (!d->batch && !d->batch_per_rank)
		FAIL(rd, "data.batch", "expected data.batch or data.batch_per_rank > 0, got neither");
	int64_t n = d->batch ? d->batch : d->batch_per_rank, parts = rd->conf->train.accumulate;
	if (n % parts)
		FAIL(rd, "train.accumulate", "expected a divisor of %s = %" PRId64 ", got %" PRId64,
		            d->batch ? "data.batch" : "data.batch_per_rank", n, parts);
	return GT_OK;
}

/* Returns whether the images may be encoded files: these have any size, and their data can contain a split "valid". */
static bool may_be_files(const struct gt_conf_data *d)
{
	if (!strcmp(d->format, "auto"))
		return d->root[0];
	return gt_format_content(d->format) == GT_CONTENT_FILES;
}

/* Checks the list of transforms for images that have the size of model.input. */
static enum gt_code check_augment(struct gt_reading *rd, struct gt_err *err)
{
	const struct gt_conf_data *d = &rd->conf->data;
	const int64_t *in = rd->conf->model.input;
	char why[256], path[64] = "data.augment";
	int at;
	if (gt_transform_check((struct gt_transform_list){d->augment, d->naugment}, in[1], in[2], (int)in[0], in[1], in[2], &at, why,
	                       sizeof why) == GT_OK)
		return GT_OK;
	if (at < d->naugment)
		snprintf(path, sizeof path, "data.augment[%d]", at);
	FAIL(rd, path, "%s", why);
	return GT_OK;
}

/* Returns whether the format reads texts or rows. The reader drops unreadable texts or rows before it numbers the samples. */
static bool reads_texts(const struct gt_conf_data *d)
{
	enum gt_content content = gt_format_content(d->format);
	return content == GT_CONTENT_TEXTS || content == GT_CONTENT_TABLE;
}

/* Rejects keys of images if model.inputs has no image. */
static enum gt_code check_no_images(struct gt_reading *rd, struct gt_err *err)
{
	const struct gt_conf *c = rd->conf;
	const struct gt_conf_data *d = &c->data;
	const struct {
		const char *key;
		bool set;
	} keys[] = {{"data.augment", d->naugment},
	            {"data.mean", d->mean.n},
	            {"data.std", d->std.n},
	            {"data.on_error", d->on_error == GT_ON_ERROR_SKIP && !reads_texts(d)},
	            {"eval.transforms", c->eval.ntransforms},
	            {"eval.tta", c->eval.tta != GT_TTA_NONE}};
	for (size_t i = 0; i < sizeof keys / sizeof *keys && c->model.ninputs && !c->model.input[0]; i++)
		if (keys[i].set)
			FAIL(rd, keys[i].key, "only images use this key, and model.inputs has no image; remove the key");
	return GT_OK;
}

/* Checks the keys of sequences of tokens. */
static enum gt_code check_sequences(struct gt_reading *rd, struct gt_err *err)
{
	const struct gt_conf *c = rd->conf;
	const struct gt_floats *l = &c->data.lengths;
	bool tokens = false;
	for (int i = 0; i < c->model.ninputs; i++)
		tokens |= c->model.inputs[i].type == GT_INPUT_TOKENS;
	if (!tokens && l->n)
		FAIL(rd, "data.lengths", "only sequences of tokens use this key, and model.inputs has no tokens; remove the key");
	if (!tokens && c->data.buckets >= 0)
		FAIL(rd, "data.buckets", "only sequences of tokens use this key, and model.inputs has no tokens; remove the key");
	if (l->n > GT_MAX_LENGTHS)
		FAIL(rd, "data.lengths", "expected at most %d lengths, because each length needs a plan, got %d", GT_MAX_LENGTHS, l->n);
	for (int i = 0; i < l->n; i++)
		if (l->v[i] != (double)(int64_t)l->v[i] || (i && l->v[i] <= l->v[i - 1]))
			FAIL(rd, "data.lengths", "expected integers in ascending order, got %g%s", l->v[i], i ? " after an equal or larger "
			     "length" : "");
	if (c->data.buckets > 0 && c->data.sampler != GT_SAMPLER_GTRAIN)
		FAIL(rd, "data.buckets", "cannot be combined with data.sampler = \"%s\", which uses the order of PyTorch; write buckets = 0",
		     c->data.sampler == GT_SAMPLER_TORCH ? "torch" : "torch-random");
	if (c->data.buckets > 0 && !c->data.shuffle)
		FAIL(rd, "data.buckets", "cannot be combined with data.shuffle = false, which keeps the order of the data; write buckets = 0");
	return GT_OK;
}

/* Sets *out to the first key of texts whose value is not the default; leaves NULL if there is none. */
static enum gt_code find_text_key(struct gt_reading *rd, const char **out, struct gt_err *err)
{
	static const char *const all[] = {"data.tokenizer", "data.max_tokens", "data.min_freq", "data.max_vocab", "data.vocab", "data.ngrams",
	                                  "data.hash_buckets"};
	struct gt_conf *plain;
	const struct gt_text_spec *t = &rd->conf->data.text, *d;
	GT_NEW(plain, rd->arena, 1, err);
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		GT_TRY(gt_row_default(rd->arena, gt_row_find(gt_rows, all[i]), plain, err));
	d = &plain->data.text;
	const bool set[] = {t->tokenizer != d->tokenizer, t->max_tokens != d->max_tokens, t->min_freq != d->min_freq,
	                    t->max_vocab != d->max_vocab, strcmp(t->vocab, d->vocab) != 0, t->ngrams != d->ngrams,
	                    t->hash_buckets != d->hash_buckets};
	for (size_t i = 0; i < sizeof all / sizeof *all && !*out; i++)
		if (set[i])
			*out = all[i];
	return GT_OK;
}

/* Checks the keys of texts. */
static enum gt_code check_texts(struct gt_reading *rd, struct gt_err *err)
{
	struct gt_text_spec *t = &rd->conf->data.text;
	if (!reads_texts(&rd->conf->data))
		return GT_OK;
	GT_TRY(find_text_key(rd, &rd->conf->data.text_key, err));
	if (t->tokenizer == GT_TOK_WORDPIECE && !*t->vocab)
		FAIL(rd, "data.vocab", "expected the path of a model's vocab.txt, which data.tokenizer = \"wordpiece\" needs, got nothing");
	if (t->tokenizer != GT_TOK_WORDS)
		t->ngrams = 1;
	if (t->hash_buckets && t->ngrams < 2)
		FAIL(rd, "data.hash_buckets", "only n-grams use this key; write data.ngrams = 2 too, or remove the key");
	if (!t->hash_buckets && t->ngrams > 1)
		t->hash_buckets = 1 << 20;
	return GT_OK;
}

/* Checks the keys of targets: several labels of a sample, or numeric columns. */
static enum gt_code check_targets(struct gt_reading *rd, struct gt_err *err)
{
	const struct gt_conf *c = rd->conf;
	const struct gt_conf_data *d = &c->data;
	const char *key = d->target_columns.n ? "data.target_columns" : "data.label_separator";
	if (!d->target_columns.n && !*d->label_separator)
		return GT_OK;
	if (d->target_columns.n && *d->label_separator)
		FAIL(rd, "data.target_columns", "cannot be combined with data.label_separator: targets are either values or labels");
	if (d->target_columns.n && *d->label_column)
		FAIL(rd, "data.target_columns", "cannot be combined with data.label_column: targets are either values or a label");
	if (strlen(d->label_separator) > 1)
		FAIL(rd, "data.label_separator", "expected one character, got \"%s\"", d->label_separator);
	const struct gt_loss_row *loss = gt_loss_find(c->train.loss);
	if (loss && (loss->labels_only || (*d->label_separator && gt_loss_has_classes(loss))))
		FAIL(rd, key, "cannot be combined with train.loss = \"%s\", which needs one label for each sample; write \"%s\"", c->train.loss,
		     *d->label_separator ? "bce" : "mse");
	if (d->stratify)
		FAIL(rd, "data.stratify", "cannot be combined with %s, because samples then have no single class; remove the key", key);
	if (d->on_error == GT_ON_ERROR_SKIP)
		FAIL(rd, "data.on_error", "\"skip\" cannot be combined with %s, because the loss cannot leave out a sample without a label; write "
		     "\"stop\"", key);
	return GT_OK;
}

static enum gt_code check_data(struct gt_reading *rd, struct gt_err *err)
{
	const struct gt_conf *c = rd->conf;
	const struct gt_conf_data *d = &c->data;
	const int64_t *in = c->model.input;
	bool synthetic = !strcmp(d->name, "synthetic") || gt_format_content(d->format) == GT_CONTENT_MADE;
	bool known = in[0] > 0, image = in[1] * in[2] > 1;
	if (!d->name[0] && !d->root[0] && !d->train.n && !synthetic)
		FAIL(rd, "data.name", "expected the name of a dataset, a directory in data.root, or files in data.train, got nothing");
	if (known && in[0] * in[1] > ((int64_t)1 << 31) / in[2])
		FAIL(rd, "model.input", "expected at most 2^31 elements, got %" PRId64 " x %" PRId64 " x %" PRId64, in[0], in[1], in[2]);
	if (synthetic && d->samples < 1)
		FAIL(rd, "data.samples", "expected an integer ≥ 1, which synthetic data needs");
	if (synthetic && d->classes < 2)
		FAIL(rd, "data.classes", "expected an integer ≥ 2, which synthetic data needs");
	if (!synthetic && (d->samples || d->samples_test))
		FAIL(rd, d->samples ? "data.samples" : "data.samples_test", "only data.name = \"synthetic\" uses this key; remove the key");
	const struct gt_loss_row *loss = gt_loss_find(c->train.loss);
	if (d->on_error == GT_ON_ERROR_SKIP && !reads_texts(d) && loss && !gt_loss_has_classes(loss))
		FAIL(rd, "data.on_error", "\"skip\" and train.loss = \"%s\" cannot be combined, because only losses over classes, such as "
		     "cross_entropy, can leave out a sample; write \"stop\"", c->train.loss);
	GT_TRY(check_targets(rd, err));
	GT_TRY(check_no_images(rd, err));
	GT_TRY(check_sequences(rd, err));
	GT_TRY(check_texts(rd, err));
	if (d->naugment && d->augment[d->naugment - 1].type >= GT_TF_MIXUP && loss && loss->labels_only) {
		char word[32];
		FAIL(rd, "data.augment", "\"%s\" and train.loss = \"%s\" cannot be combined, because mixed targets are not labels; write "
		     "\"cross_entropy\"", gt_transform_word(d->augment[d->naugment - 1].type, word), loss->word);
	}
	for (int i = 0; i < 2; i++) {
		int n = i ? d->std.n : d->mean.n;
		if (n > GT_MAX_CH || (n > 1 && image && known && n != in[0]))
			FAIL(rd, i ? "data.std" : "data.mean", "expected one value, or one value for each of %" PRId64 " channels, got %d", in[0], n);
	}
	if (known && c->eval.tta != GT_TTA_NONE && (in[1] < 2 || in[2] < 2))
		FAIL(rd, "eval.tta", "expected images of at least 2 x 2 pixels, but model.input is %" PRId64 " x %" PRId64 " x %" PRId64, in[0],
		     in[1], in[2]);
	if (known && d->naugment && !image)
		FAIL(rd, "data.augment", "expected images, but model.input is [%" PRId64 "]", in[0]);
	else if (known && d->naugment && !may_be_files(d)) /* gt_session_data_open checks image files, when sizes are known */
		GT_TRY(check_augment(rd, err));
	return GT_OK;
}

/* Adds an error about a key of the optimizer or the schedule, with its line, to the list of errors. */
#define FAIL_AT(section, key, ...)                                                                              \
	do {                                                                                                        \
		char at_[64], path_[160];                                                                               \
		snprintf(at_, sizeof at_, "%s.%s", section, key);                                                       \
		snprintf(path_, sizeof path_, "%s%s", shown, at_);                                                      \
		if (!gt_conf_refused(root, at_))                                                                        \
			GT_COLLECT(rd, err, gt_conf_fail(err, gt_conf_location(root, at_), path_, __VA_ARGS__));                   \
	} while (0)

enum gt_code gt_conf_check_optimizer(struct gt_reading *rd, const char *shown, const struct gt_cnode *root, const char *opt,
                                     const char *sched, const struct gt_conf_optimizer *o, const struct gt_conf_schedule *s,
                                     struct gt_err *err)
{
	char gamma[64], cycle[64];
	snprintf(gamma, sizeof gamma, "%s.gamma", sched);
	if (o->nesterov && (o->momentum <= 0 || o->dampening != 0))
		FAIL_AT(opt, "nesterov", "expected momentum > 0 and dampening = 0 with nesterov = true, got momentum %g and dampening %g",
		        o->momentum, o->dampening);
	if (o->ns.n != 3)
		FAIL_AT(opt, "ns_coefficients", "expected 3 coefficients, got %d", o->ns.n);
	snprintf(cycle, sizeof cycle, "%s.cycle_momentum", sched);
	if (s->cycle_momentum && gt_conf_given(root, cycle) && !gt_conf_has_momentum(o))
		FAIL_AT(sched, "cycle_momentum", "expected an optimizer with betas or with momentum > 0 for cycle_momentum = true, got %s; write "
		        "momentum = 0.9 in the optimizer, or remove cycle_momentum", gt_optimizer_rows[o->type].word);
	if (s->cycle_momentum && o->type == GT_OPT_NADAM)
		FAIL_AT(sched, "cycle_momentum", "cycle_momentum = true and the optimizer \"nadam\" cannot be combined, because nadam's bias "
		        "correction would depend on the momenta of all earlier steps; write cycle_momentum = false");
	if (s->type == GT_SCHED_EXPONENTIAL && !gt_conf_given(root, gamma) && gt_conf_given(root, sched))
		FAIL_AT(sched, "gamma", "expected a number ≥ 0, which an exponential schedule needs, got nothing");
	if (s->type == GT_SCHED_CYCLIC && s->mode == GT_CYCLIC_EXP_RANGE && !gt_conf_given(root, gamma) && gt_conf_given(root, sched))
		FAIL_AT(sched, "gamma", "expected a number ≥ 0, which mode = \"exp_range\" needs, got nothing");
	for (int i = 1; i < s->milestones.n; i++)
		if (s->milestones.v[i] <= s->milestones.v[i - 1])
			FAIL_AT(sched, "milestones", "expected times in ascending order, got %g after %g", s->milestones.v[i], s->milestones.v[i - 1]);
	if (s->type == GT_SCHED_MULTISTEP && !s->milestones.n)
		FAIL_AT(sched, "milestones", "expected at least one number, got none");
	return GT_OK;
}

static enum gt_code check_train(struct gt_reading *rd, struct gt_err *err)
{
	const struct gt_conf_train *t = &rd->conf->train;
	const struct gt_conf_optimizer *o = &t->optimizer;
	const struct gt_conf_schedule *s = &t->schedule;
	if (!t->epochs && !t->steps)
		FAIL(rd, "train.epochs", "expected train.epochs or train.steps > 0, got neither");
	double sum = 0;
	for (int i = 0; i < t->class_weights.n; i++)
		sum += t->class_weights.v[i];
	if (t->class_weights.n > 0 && !(sum > 0))
		FAIL(rd, "train.class_weights", "expected at least one number > 0, got none");
	if (t->clip_norm > 0 && t->clip_value > 0)
		FAIL(rd, "train.clip_value", "expected either train.clip_value or train.clip_norm, got %g and %g; remove one key",
		     t->clip_value, t->clip_norm);
	return gt_conf_check_optimizer(rd, "", rd->root, "train.optimizer", "train.schedule", o, s, err);
}

static bool device_fits(const char *d)
{
	if (!strcmp(d, "auto") || !strcmp(d, "cpu") || !strcmp(d, "cuda"))
		return true;
	if (strncmp(d, "cuda:", 5))
		return false;
	for (d += 5;; d++) { /* a list of indices, such as cuda:0,1 */
		size_t n = strspn(d, "0123456789");
		if (n < 1 || n > 3)
			return false;
		d += n;
		if (*d != ',')
			return !*d;
	}
}

/* Checks parallel.cuts, and finds the indices of its layers. Returns GT_ECONFIG with the first error. */
#define CUT_FAIL(...) gt_conf_fail(err, gt_conf_location(rd->root, "parallel.cuts"), "parallel.cuts", __VA_ARGS__)
static enum gt_code check_cuts(struct gt_reading *rd, struct gt_err *err)
{
	const struct gt_model_spec *m = &rd->conf->model;
	struct gt_conf_parallel *p = &rd->conf->parallel;
	if (rd->errors->n) /* after errors, the list of layers may be incomplete */
		return GT_OK;
	int64_t each = p->schedule == GT_PIPE_INTERLEAVED ? p->virtual_stages : 1;
	for (int k = 0; k < p->cuts.n; k++) {
		struct gt_guess g = gt_guess_open(p->cuts.v[k]);
		int i = 0;
		for (; i < m->nlayers && strcmp(m->layers[i].name, p->cuts.v[k]) != 0; i++)
			gt_guess_try(&g, m->layers[i].name);
		if (i == m->nlayers)
			return CUT_FAIL("expected names of layers, got \"%.60s\"%s%s%s", p->cuts.v[k], g.best ? "; did you mean \"" : "",
			                g.best ? g.best : "", g.best ? "\"?" : "");
		if (i == 0)
			return CUT_FAIL("expected the first layers of the second and later stages, got \"%.60s\", which is the first layer of the "
			                "model", p->cuts.v[k]);
		if (k && i <= p->cut[k - 1])
			return CUT_FAIL("expected layers in the order of the model, got \"%.60s\" after \"%.60s\"", p->cuts.v[k], p->cuts.v[k - 1]);
		p->cut[k] = i;
	}
	if (p->cuts.n && p->nproc && p->cuts.n != p->nproc / p->replicas * each - 1)
		return CUT_FAIL("expected %" PRId64 " names, one less than stages, got %d", p->nproc / p->replicas * each - 1, p->cuts.n);
	return GT_OK;
}

static enum gt_code check_pipe(struct gt_reading *rd, struct gt_err *err)
{
	const struct gt_conf *c = rd->conf;
	const struct gt_conf_parallel *p = &c->parallel;
	if (c->reproducible == GT_REPRO_WORLD && c->train.clip_norm > 0)
		FAIL(rd, "train.clip_norm",
		     "expected 0 with reproducible = \"world\" and parallel.mode = \"pipe\", because the last bits of a norm depend on the "
		     "division into stages");
	if (p->nproc % p->replicas)
		FAIL(rd, "parallel.replicas", "expected a divisor of parallel.nproc = %" PRId64 ", got %" PRId64, p->nproc, p->replicas);
	GT_COLLECT(rd, err, check_cuts(rd, err));
	return GT_OK;
}

static enum gt_code check_compress(struct gt_reading *rd, struct gt_err *err)
{
	const struct gt_conf *c = rd->conf;
	if (c->precision == GT_PREC_FP16)
		FAIL(rd, "parallel.compress",
		     "expected \"none\" with precision = \"fp16\", whose loss scale changes the unit of the rounding errors from step to step; use "
		     "precision = \"bf16\"");
	if (c->reproducible == GT_REPRO_WORLD)
		FAIL(rd, "parallel.compress",
		     "expected \"none\" with reproducible = \"world\", because each rank rounds its own part of the gradients");
	if (c->parallel.mode == GT_MODE_ZERO && c->parallel.stage > 1)
		FAIL(rd, "parallel.compress",
		     "expected \"none\" with parallel.stage = %" PRId64 ", because the rounding errors need as much memory on every rank as all "
		     "gradients, which this stage divides among the ranks; use parallel.stage = 1", c->parallel.stage);
	return GT_OK;
}

static enum gt_code check_log(struct gt_reading *rd, struct gt_err *err)
{
	const char *uri = rd->conf->log.mlflow.uri;
	if (rd->conf->log.histograms && !rd->conf->log.tensorboard)
		FAIL(rd, "log.histograms", "expected 0, because histograms need log.tensorboard = true, got %" PRId64,
		     rd->conf->log.histograms);
	if (rd->conf->log.images && !rd->conf->log.tensorboard)
		FAIL(rd, "log.images", "expected 0 without log.tensorboard = true, whose files get the images, got %" PRId64, rd->conf->log.images);
	size_t scheme = !strncmp(uri, "http://", 7) ? 7 : !strncmp(uri, "https://", 8) ? 8 : 0;
	if (!*uri)
		return GT_OK;
	if (!scheme || !uri[scheme] || uri[strcspn(uri, " \t\r\n?#")] || strlen(uri) > 400)
		FAIL(rd, "log.mlflow.uri", "expected an address such as \"http://127.0.0.1:5000\", got \"%.80s\"", uri);
	else if (memchr(uri + scheme, '@', strcspn(uri + scheme, "/")))
		FAIL(rd, "log.mlflow.uri", "expected an address without user and password, because every checkpoint contains the address; set "
		                           "MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD in the environment");
	if (!*rd->conf->log.mlflow.experiment || strlen(rd->conf->log.mlflow.experiment) > 400)
		FAIL(rd, "log.mlflow.experiment", "expected a name of 1 to 400 bytes, got \"%.80s\"", rd->conf->log.mlflow.experiment);
	return GT_OK;
}

static enum gt_code check_run(struct gt_reading *rd, struct gt_err *err)
{
	const struct gt_conf *c = rd->conf;
	const char *metric = c->checkpoint.best_metric;
	const struct gt_conf_parallel *p = &c->parallel;
	if (!device_fits(c->device)) {
		const struct gt_synonym *syn = gt_synonym_find("device", c->device);
		FAIL(rd, "device", "expected \"auto\", \"cpu\", \"cuda\" or \"cuda:0\", got \"%.60s\"%s%s%s", c->device,
		     syn ? "; did you mean \"" : "", syn ? syn->meant : "", syn ? "\"?" : "");
	}
	/* Checks that the split of each metric exists. A folder of images or texts may contain the split "valid", which only
	 * gt_session_check_metrics can check, after it has read the folder. */
	const struct { const char *key, *metric; } watched[] = {
	    {"checkpoint.best.metric", metric},
	    {"train.early_stop.metric", c->train.early_stop.metric},
	    {"train.schedule.metric", c->train.schedule.type == GT_SCHED_PLATEAU ? c->train.schedule.metric : ""}};
	for (size_t i = 0; i < sizeof watched / sizeof *watched; i++) {
		struct gt_metric m;
		if (gt_metric_parse(watched[i].metric, &m) && m.split == GT_VALID && c->data.valid <= 0 && !may_be_files(&c->data) &&
		    !gt_format_has_valid(c->data.format))
			FAIL(rd, watched[i].key, "expected data.valid > 0, which the metric \"%s\" needs, got 0", watched[i].metric);
	}
	if (metric[0] && gt_metric_falls(metric) != c->checkpoint.best_mode)
		FAIL(rd, "checkpoint.best.mode", "expected \"%s\" for %s, got \"%s\"", gt_metric_falls(metric) ? "min" : "max", metric,
		            c->checkpoint.best_mode ? "min" : "max");
	if (c->reproducible == GT_REPRO_WORLD && (p->shards & (p->shards - 1)))
		FAIL(rd, "parallel.shards", "expected a power of two, got %" PRId64, p->shards);
	if (c->reproducible == GT_REPRO_WORLD && c->data.sampler == GT_SAMPLER_TORCH)
		FAIL(rd, "data.sampler",
		     "expected \"gtrain\" with reproducible = \"world\", because the samples that torch's sampler selects depend on the number of "
		     "ranks");
	if (c->reproducible == GT_REPRO_WORLD && p->sync_bn)
		FAIL(rd, "parallel.sync_bn",
		     "expected false with reproducible = \"world\", where each virtual shard of a batch has its own statistics");
	if (c->reproducible == GT_REPRO_WORLD && p->mode == GT_MODE_ZERO && c->train.clip_norm > 0)
		FAIL(rd, "train.clip_norm",
		     "expected 0 with reproducible = \"world\" and parallel.mode = \"zero\", because the norm of sharded gradients depends on the "
		     "number of ranks");
	if (p->compress != GT_COMPRESS_NONE)
		GT_TRY(check_compress(rd, err));
	return p->mode == GT_MODE_PIPE ? check_pipe(rd, err) : GT_OK;
}

enum gt_code gt_conf_validate(struct gt_reading *rd, struct gt_err *err)
{
	GT_TRY(check_batch(rd, err));
	GT_TRY(check_data(rd, err));
	GT_TRY(check_train(rd, err));
	GT_TRY(check_log(rd, err));
	return check_run(rd, err);
}
