#include "report/smoke_plan.h"
#include "base/fileio.h"
#include "base/memstream.h"
#include "conf/conf_string.h"
#include "exec/device.h"
#include "formats.h"
#include "gtrain_report.h"
#include "known.h"
#include "launch/launcher_parts.h"
#include "plan/strategy.h"
#include "session/session.h"
#include "session/session_data.h"
#include "stand_in.h"
#include "team/team.h"
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Maximum floating-point operations of a smoke test on a CPU, including evaluations: 10 s on two cores of 20 GFLOP/s each. */
#define CPU_FLOPS 4e11

static bool is_on_cpu(const struct gt_conf *c, const struct gt_run_opts *o)
{
	/* with --against, the steps are also executed on the CPU */
	return o->against || gt_device_choice(o->device ? o->device : c->device) < 1;
}

/* Returns the number of ranks that parallel.cuts requires. This key lists the layers at which the stages of a pipeline begin. */
static int count_cut_ranks(const struct gt_conf_parallel *p)
{
	int64_t each = p->schedule == GT_PIPE_INTERLEAVED ? p->virtual_stages : 1;
	return (int)((p->cuts.n + 1) / each * p->replicas);
}

/* Returns the number of ranks: the number in the config if the machine has enough processors or GPUs, else the largest divisor of this
 * number that the machine can run; at least 2 on a CPU, so that ranks communicate. */
static int choose_ranks(const struct gt_conf *c, const struct gt_run_opts *o)
{
	const struct gt_conf_parallel *p = &c->parallel;
	struct gt_cpu_info place[CPU_SETSIZE];
	int gpus = gt_device_choice(o->device ? o->device : c->device), cpus = gt_cpu_list(place),
	    fits = gpus > 0   ? gpus
	           : cpus > 2 ? cpus
	                      : 2;
	/* parallel.replicas and parallel.cuts are settings of mode pipe; in other modes they have their defaults */
	int replicas = (int)p->replicas, n = (int)p->nproc;
	if (gt_strategy_of(p->mode)->ranks == GT_RANKS_ONE)
		return 1;
	if (o->nproc > 0)
		return o->nproc;
	if (p->cuts.n)
		return n ? n : count_cut_ranks(p);
	if (!n)
		n = gpus > 0 ? gpus : 2;
	if (n < replicas)
		n = 2 * replicas;
	n -= n % replicas;
	for (int k = n; k > 1; k--)
		if (n % k == 0 && k <= fits && k % replicas == 0)
			return k;
	return fits < 2 ? 1 : n;
}

/* Returns the number by which each batch size must be divisible, so that all ranks, micro-batches and virtual shards have equal sizes. */
static int64_t batch_unit(const struct gt_conf *c, int ranks)
{
	return c->train.accumulate * gt_strategy_of(c->parallel.mode)->least_micro(c, ranks);
}

/* Returns the number of samples in a batch over all ranks. */
static int64_t choose_batch(const struct gt_conf *c, const struct gt_run_opts *o, const struct gt_report *r, int ranks)
{
	double sample = (2 * GT_SMOKE_STEPS - GT_SMOKE_SAVE) * r->flops_train + 2 * GT_SMOKE_EPOCH * gt_session_tta_views(c) * r->flops_forward;
	/* the smallest batch has two samples in each part, because batch normalisation needs two */
	int64_t unit = batch_unit(c, ranks), n = 2 * unit;
	if (!is_on_cpu(c, o) || (double)r->batch * sample <= CPU_FLOPS)
		return r->batch;
	while ((double)(2 * n) * sample <= CPU_FLOPS)
		n *= 2;
	return n < r->batch ? n : r->batch;
}

/* Returns the number of training samples to read: enough for GT_SMOKE_EPOCH batches after the validation split is taken out. The size of
 * that split is random (exec/split_samples.h), so half a batch is added. */
static int64_t choose_samples(const struct gt_conf *c, int64_t batch)
{
	double valid = c->data.valid, n = (double)(GT_SMOKE_EPOCH * batch);
	if (valid > 0)
		n = fmax(ceil((GT_SMOKE_EPOCH + 0.5) * (double)batch / (1 - valid)), ceil(2 / valid));
	if (n > INT32_MAX) /* n is this large only if data.valid is close to 0 or to 1 */
		return c->data.limit;
	return c->data.limit > 0 && c->data.limit < (int64_t)n ? c->data.limit : (int64_t)n;
}

/* Returns whether n samples leave a full batch after the validation split is taken out, with a margin of more than five standard
 * deviations. */
static bool leaves_full_batch(const struct gt_conf *c, int64_t n, int64_t batch)
{
	double mean = (1 - c->data.valid) * (double)n;
	return mean - 5 * sqrt(mean * c->data.valid) > (double)batch;
}

/* ---- the plan as overrides of the config ---------------------------------------------------------------------------------------- */
static enum gt_code set_text(struct gt_smoke_plan *p, struct gt_arena *a, struct gt_err *err, const char *key, const char *value)
{
	GT_NEW_STR(p->sets[p->nsets++], gt_arena_printf(a, "%s=%s", key, value), err);
	return GT_OK;
}

static enum gt_code set_int(struct gt_smoke_plan *p, struct gt_arena *a, struct gt_err *err, const char *key, int64_t value)
{
	GT_NEW_STR(p->sets[p->nsets++], gt_arena_printf(a, "%s=%lld", key, (long long)value), err);
	return GT_OK;
}

/* ---- missing data ---------------------------------------------------------------------------------------------------------------- */
/* Adds KEY="PATH", or KEY=["PATH"]. */
static enum gt_code set_path(struct gt_smoke_plan *p, struct gt_arena *a, struct gt_err *err, const char *key, const char *path, bool list)
{
	struct gt_memstream m;
	FILE *f = gt_memstream_open(&m);
	char *text;
	if (!f)
		return gt_fail_memory(err, 0);
	fprintf(f, "%s=%s", key, list ? "[" : "");
	gt_string_write(f, path);
	fputs(list ? "]" : "", f);
	GT_TRY(gt_memstream_close(f, &m, &text, NULL, err));
	p->sets[p->nsets] = gt_arena_strdup(a, text);
	free(text);
	return p->sets[p->nsets++] ? GT_OK : gt_fail_memory(err, 0);
}

/* Returns the maximum number of samples that a smoke test reads. */
static int64_t max_samples(const struct gt_conf *c, int ranks)
{
	int64_t batch = c->data.batch > 0 ? c->data.batch : c->data.batch_per_rank * ranks;
	return choose_samples(c, batch < 2 * batch_unit(c, ranks) ? 2 * batch_unit(c, ranks) : batch);
}

static enum gt_code make_table(const struct gt_conf *c, const char *dir, int64_t n, struct gt_arena *a, struct gt_smoke_plan *p,
                               struct gt_smoke *shown, struct gt_err *err)
{
	const struct gt_conf_data *d = &c->data;
	const struct gt_table_spec spec = {.delimiter = *d->delimiter, .header = (enum gt_table_header)d->header, .column = d->columns,
	                                   .ncolumns = d->ncolumns, .target = d->target.v, .ntarget = d->target.n, .ignore = d->ignore.v,
	                                   .nignore = d->ignore.n};
	bool classes = d->targets == GT_TARGETS_CLASS && gt_loss_find(c->train.loss)->output != GT_OUTPUT_VALUES;
	char path[GT_PATH_SIZE];
	GT_TRY(gt_path_join(path, dir, "rows.csv", err));
	GT_TRY(gt_stand_in_table(path, &spec, classes ? GT_STAND_IN_WORDS : d->targets == GT_TARGETS_LABELS ? GT_STAND_IN_BITS
	                                                                                                    : GT_STAND_IN_NUMBERS,
	                         d->classes > 0 ? d->classes : 2, n, err));
	GT_NEW_STR(shown->data, gt_arena_printf(a, "generated rows of the %d columns", d->ncolumns), err);
	GT_TRY(set_path(p, a, err, "data.train", path, true));
	GT_TRY(set_text(p, a, err, "data.encoding", "utf-8"));
	return d->test.n ? set_path(p, a, err, "data.test", path, true) : GT_OK;
}

static enum gt_code make_texts(const struct gt_conf *c, const char *dir, int64_t n, struct gt_arena *a, struct gt_smoke_plan *p,
                               struct gt_smoke *shown, struct gt_err *err)
{
	int64_t classes = c->data.classes > 0 ? c->data.classes : 2;
	char path[GT_PATH_SIZE];
	GT_TRY(gt_path_join(path, dir, "train", err));
	GT_TRY(gt_stand_in_texts(path, classes, n, err));
	GT_TRY(gt_path_join(path, dir, "test", err));
	GT_TRY(gt_stand_in_texts(path, classes, n, err));
	GT_NEW_STR(shown->data, gt_arena_printf(a, "generated texts of %lld classes", (long long)classes), err);
	return set_path(p, a, err, "data.root", dir, false);
}

/* Generates a table or texts of the kind that the config describes, and sets *out to a config that reads them. why: the error about the
 * missing data. */
static enum gt_code make_data(const struct gt_conf *c, const char *dir, int ranks, const struct gt_err *why, struct gt_arena *a,
                              struct gt_smoke_plan *p, struct gt_smoke *shown, struct gt_conf **out, struct gt_err *err)
{
	bool table = gt_format_content(c->data.format) == GT_CONTENT_TABLE;
	char vocab[GT_PATH_SIZE];
	GT_TRY(gt_dir_make(dir, NULL, err));
	GT_TRY((table ? make_table : make_texts)(c, dir, max_samples(c, ranks), a, p, shown, err));
	if (*c->data.text.vocab && access(c->data.text.vocab, F_OK)) {
		GT_TRY(gt_path_join(vocab, dir, "vocab.txt", err));
		GT_TRY(gt_stand_in_vocab(vocab, err));
		GT_TRY(set_path(p, a, err, "data.vocab", vocab, false));
	}
	shown->synthetic = true;
	GT_NEW_STR(shown->why, gt_arena_strdup(a, why->msg), err);
	return gt_conf_load_text(c->path, c->text, strlen(c->text), p->sets, p->nsets, out, err);
}

/* Sets *r to the report of the config c. If the data of c is missing, generates data, and sets *made to a config that reads it and *r to
 * the report of that config. */
static enum gt_code report_or_make_data(struct gt_conf *c, const char *dir, struct gt_arena *a, struct gt_smoke_plan *p,
                                        struct gt_smoke *shown, struct gt_json *json, struct gt_report **r, struct gt_conf **made,
                                        struct gt_err *err)
{
	struct gt_err why = {0};
	enum gt_content content = gt_format_content(c->data.format);
	bool table = content == GT_CONTENT_TABLE, text = content == GT_CONTENT_TEXTS;
	enum gt_code code = gt_check(c, &(struct gt_check_opts){.world = p->ranks}, json, r, &why);
	if (code == GT_OK)
		return code;
	if (code == GT_ENOINPUT && table && !c->data.ncolumns)
		gt_fail_suffix(&why, "a smoke test generates rows if data.columns lists the columns, as in configs that `gtrain init` writes");
	if (code != GT_ENOINPUT || (!text && (!table || !c->data.ncolumns)))
		return gt_fail_copy(err, &why);
	GT_TRY(make_data(c, dir, p->ranks, &why, a, p, shown, made, err));
	return gt_check(*made, &(struct gt_check_opts){.world = p->ranks}, json, r, err);
}

/* If the file of model.pretrained is missing, changes the config to begin with initial weights. */
static enum gt_code replace_missing_weights(const struct gt_conf *c, const struct gt_run_opts *o, struct gt_arena *a,
                                            struct gt_smoke_plan *p, struct gt_smoke *shown, struct gt_err *err)
{
	if (o->init || !*c->pretrained.file || !access(c->pretrained.file, F_OK) || errno != ENOENT)
		return GT_OK;
	GT_NEW_STR(shown->weights, gt_arena_printf(a, "initial values, because %s does not exist", c->pretrained.file), err);
	GT_TRY(set_text(p, a, err, "model.pretrained.file", "\"\""));
	return set_text(p, a, err, "model.pretrained.map", "()");
}

/* Replaces missing images by synthetic data of the same shape. */
static enum gt_code replace_images(const struct gt_conf *c, struct gt_arena *a, const struct gt_report *r, struct gt_smoke_plan *p,
                                   struct gt_smoke *shown, struct gt_err *err)
{
	const struct gt_known_dataset *known = gt_known_find(c->data.name);
	const int64_t *in = c->model.input;
	int64_t classes = c->data.classes > 0 ? c->data.classes : known ? known->classes : r->outputs > 1 ? r->outputs : 2;
	shown->synthetic = true;
	if (in[1] > 0)
		GT_NEW_STR(shown->data,
		           gt_arena_printf(a, "synthetic data of the shape [%lld, %lld, %lld] with %lld classes", (long long)in[0],
		                           (long long)in[1], (long long)in[2], (long long)classes),
		           err);
	else
		GT_NEW_STR(shown->data,
		           gt_arena_printf(a, "synthetic data of the shape [%lld] with %lld classes", (long long)in[0], (long long)classes),
		           err);
	GT_NEW_STR(shown->why, gt_arena_strdup(a, r->data), err);
	GT_TRY(set_text(p, a, err, "data.format", "synthetic"));
	GT_TRY(set_int(p, a, err, "data.classes", classes));
	GT_TRY(set_int(p, a, err, "data.samples", shown->samples));
	return set_int(p, a, err, "data.samples_test", shown->samples);
}

static enum gt_code fill_plan(const struct gt_conf *c, const struct gt_run_opts *o, struct gt_arena *a, const struct gt_report *r,
                              struct gt_smoke_plan *p, struct gt_smoke *shown, struct gt_err *err)
{
	shown->ranks = p->ranks;
	shown->config_ranks = (int)c->parallel.nproc;
	shown->config_batch = r->batch;
	shown->batch = choose_batch(c, o, r, p->ranks);
	shown->samples = choose_samples(c, shown->batch);
	shown->steps = GT_SMOKE_STEPS;
	shown->saved = GT_SMOKE_SAVE;
	shown->mode = r->mode;
	shown->precision = r->precision;
	GT_NEW_STR(shown->name, gt_arena_strdup(a, r->name), err);
	bool absent = r->train_samples < 0 || r->test_samples < 0;
	if (absent)
		GT_TRY(replace_images(c, a, r, p, shown, err));
	else if (!shown->synthetic)
		GT_NEW_STR(shown->data, gt_arena_strdup(a, r->data), err);
	GT_TRY(replace_missing_weights(c, o, a, p, shown, err));
	if (c->data.batch_per_rank > 0)
		GT_TRY(set_int(p, a, err, "data.batch_per_rank", shown->batch / p->ranks));
	else
		GT_TRY(set_int(p, a, err, "data.batch", shown->batch));
	if (shown->samples > 0)
		GT_TRY(set_int(p, a, err, "data.limit", shown->samples));
	if (c->data.valid > 0) {
		int64_t n = r->train_samples + (r->valid_samples > 0 ? r->valid_samples : 0);
		/* A stratified split with many classes has one sample of each class, and none of it for "valid". Only tables need a stratified
		 * split: their classes come from the training split, which must have a sample of each class. */
		if (gt_format_content(c->data.format) != GT_CONTENT_TABLE)
			GT_TRY(set_text(p, a, err, "data.stratify", "false"));
		if (leaves_full_batch(c, !absent && n < shown->samples ? n : shown->samples, shown->batch))
			GT_TRY(set_text(p, a, err, "data.drop_last", "true")); /* batch normalisation cannot normalise a last batch of one sample */
	}
	if (c->data.eval_batch > shown->samples)
		GT_TRY(set_int(p, a, err, "data.eval_batch", shown->batch));
	GT_TRY(set_int(p, a, err, "train.steps", GT_SMOKE_STEPS));
	GT_TRY(set_text(p, a, err, "train.eval_every_epochs", "0"));
	GT_TRY(set_text(p, a, err, "train.eval_every_steps", "0"));
	GT_TRY(set_int(p, a, err, "checkpoint.every_steps", GT_SMOKE_SAVE));
	GT_TRY(set_text(p, a, err, "checkpoint.every_epochs", "0"));
	GT_TRY(set_text(p, a, err, "checkpoint.every_minutes", "0.0"));
	GT_TRY(set_text(p, a, err, "checkpoint.keep", "2"));
	GT_TRY(set_text(p, a, err, "log.every_steps", "1"));
	GT_TRY(set_text(p, a, err, "log.command", "\"\""));
	GT_TRY(set_text(p, a, err, "log.report", "false"));
	GT_TRY(set_text(p, a, err, "log.mlflow.uri", "\"\""));
	if (c->reproducible == GT_REPRO_NONE) /* without this, a GPU may add numbers in a different order in the second run */
		GT_TRY(set_text(p, a, err, "reproducible", "run"));
	return GT_OK;
}

/* ---- refused options ------------------------------------------------------------------------------------------------------------ */
enum gt_code gt_smoke_check(const struct gt_run_opts *o, struct gt_err *err)
{
	struct gt_world w;
	int precision;
	if (o->against)
		GT_TRY(gt_against_precision(o->against, &precision, err));
	if (o->nnodes > 1)
		return gt_fail(err, GT_EUSAGE, "--smoke and --nnodes %d cannot be combined, because a smoke test runs on one host", o->nnodes);
	if (o->max_restarts)
		return gt_fail(err, GT_EUSAGE, "--smoke and --max-restarts cannot be combined, because a smoke test ends with the first failure");
	if (o->time_limit_s > 0)
		return gt_fail(err, GT_EUSAGE, "--smoke and --time-limit cannot be combined, because the uninterrupted run must reach its end");
	if (o->link)
		return gt_fail(err, GT_EUSAGE, "--smoke: a launcher started this process as a rank, but a smoke test starts its ranks itself");
	GT_TRY(gt_team_world(NULL, &w, err));
	if (w.world > 1)
		return gt_fail(err, GT_EUSAGE, "--smoke: %s started %d ranks, but a smoke test starts its ranks itself; use --nproc", w.how,
		               w.world);
	return GT_OK;
}

enum gt_code gt_smoke_plan(struct gt_conf *c, const struct gt_run_opts *o, const char *dir, struct gt_arena *a, struct gt_smoke_plan *out,
                           struct gt_smoke *shown, struct gt_err *err)
{
	struct gt_json json = {0}; /* gt_check also writes the report as JSON, which is not needed here */
	struct gt_report *r = NULL;
	struct gt_conf *made = NULL;
	*out = (struct gt_smoke_plan){0};
	GT_TRY(gt_strategy_check_nproc(c, o->nproc, err));
	out->ranks = choose_ranks(c, o);
	enum gt_code code = report_or_make_data(c, dir, a, out, shown, &json, &r, &made, err);
	if (code == GT_OK) {
		code = fill_plan(made ? made : c, o, a, r, out, shown, err);
		gt_report_free(r);
	}
	gt_json_free(&json);
	gt_conf_free(made);
	return code;
}
