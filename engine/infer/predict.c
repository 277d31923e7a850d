/* gt_predict: classifies images with a checkpoint. */
#include "infer/inference.h"
#include "infer/input_files.h"
#include "run/run_ranks.h"
#include "session/session_data.h"
#include "state/state.h"
#include "store/convert.h"
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 64
#define PENDING 1024          /* maximum number of results that wait for their batch, including errors of files */
#define THREADS 16            /* maximum number of threads that read files */
#define FILE_IMAGES 10000000  /* maximum number of images of one file */

/* A result that waits until its batch is complete, so that results have the order of the files. */
struct pending {
	const char *file;
	int64_t index; /* number of the image in the file */
	bool scaled;
	int row;       /* row of the batch */
	char *error;   /* why the file cannot be classified; malloc'ed; NULL: it has a row */
};

/* Fills batches of BATCH images across files, runs them through the graph, and passes the results to fn. */
struct predictor {
	struct gt_session *s;
	const struct gt_ckpt *ckpt;
	int64_t classes;
	int top;
	bool (*fn)(void *user, const struct gt_prediction *p);
	void *user;
	bool ended;               /* fn wants no more results */
	struct gt_dataset batch;  /* the images of one batch */
	struct gt_resident at;     /* the same on the device */
	struct gt_view view;      /* all of them; the loader keeps a pointer to it */
	struct gt_loader *loader; /* reads the batch */
	struct pending pending[PENDING];
	int npending, rows;       /* rows: images in the batch */
	float *logits;
	void *raw;                /* the outputs in the compute dtype */
};

/* Fills in the outputs, if they predict columns of numbers, or else the most probable classes. The probabilities are a softmax of the
 * outputs z; with the loss bce, whose outputs are independent, each is the sigmoid of its output. */
static void report(const struct predictor *p, const float *z, struct gt_prediction *out)
{
	bool independent = p->s->loss.op->code == GT_OP_BCE;
	double max = -INFINITY, sum = 0;
	if (p->s->data.nvalues) {
		out->value = z;
		out->value_name = p->s->data.value_name;
		out->nvalues = p->s->data.nvalues;
		return;
	}
	for (int64_t c = 0; c < p->classes; c++)
		max = z[c] > max ? z[c] : max;
	for (int64_t c = 0; c < p->classes; c++)
		sum += exp(z[c] - max);
	for (int k = 0; k < p->top && k < p->classes && k < GT_TOP; k++) {
		int best = -1;
		for (int c = 0; c < p->classes; c++) {
			bool taken = false;
			for (int j = 0; j < k; j++)
				taken |= out->top[j].label == c;
			if (!taken && (best < 0 || z[c] > z[best]))
				best = c;
		}
		out->top[k].label = best;
		out->top[k].p = independent ? 1 / (1 + exp(-(double)z[best])) : exp(z[best] - max) / sum;
		out->top[k].name = gt_session_class_name(p->s, best);
		out->n = k + 1;
	}
}

/* Reads the images of one file as *n images of the model's input size: a picture, or all images of an IDX file. The caller frees *out.
 * Several threads call it at the same time. */
static enum gt_code read_file(const struct predictor *p, const char *file, uint8_t **out, int64_t *n, bool *scaled, struct gt_err *err)
{
	const int64_t *in = p->s->conf->model.input;
	GT_TRY(gt_image_read(file, p->s->data.eval_list, in[0], in[1], in[2], FILE_IMAGES + 1, out, n, scaled, err));
	if (*n <= FILE_IMAGES)
		return GT_OK;
	free(*out);
	*out = NULL;
	return gt_fail(err, GT_EDATA, "%s: expected at most %d images in a file; divide it", file, FILE_IMAGES);
}

/* ---- batches -------------------------------------------------------------------------------------------------------------------- */

static enum gt_code open_batch(struct predictor *p, struct gt_err *err)
{
	struct gt_session *s = p->s;
	const int64_t *in = s->conf->model.input;
	const struct gt_graph *g = s->prog.predict->graph;
	const struct gt_tdesc *d = gt_graph_desc(g, g->output);
	if (d->rank != 2)
		return gt_fail(err, GT_ECONFIG, "predict: expected a model whose output is [batch, classes], got an output with %d dimensions",
		               d->rank);
	for (int i = 0; i < s->conf->model.ninputs; i++)
		if (s->conf->model.inputs[i].type != GT_INPUT_IMAGE)
			return gt_conf_refuse(s->conf, "model.inputs", err, "expected a model that reads images only, which files can have, got one "
			                      "that reads \"%s\"", s->conf->model.inputs[i].name);
	p->classes = d->dim[1];
	p->logits = malloc((size_t)gt_tdesc_count(d) * sizeof *p->logits);
	p->raw = malloc(gt_tdesc_bytes(d));
	p->batch = (struct gt_dataset){.n = BATCH, .c = in[0], .h = in[1], .w = in[2], .classes = p->classes};
	p->batch.memory = p->batch.images = calloc(BATCH, (size_t)(in[0] * in[1] * in[2]));
	p->batch.labels = calloc(BATCH, sizeof *p->batch.labels);
	if (!p->logits || !p->raw || !p->batch.images || !p->batch.labels)
		return gt_fail_memory(err, BATCH * (size_t)(in[0] * in[1] * in[2]));
	GT_TRY(gt_resident_make(&s->device, &p->batch, false, &p->at, err));
	p->view = (struct gt_view){&p->batch, &p->at, NULL, BATCH};
	struct gt_loader_spec spec = {
	    .device = &s->device, .view = &p->view, .x = *gt_graph_desc(g, g->input[0]), .batch = BATCH, .micro = BATCH, .ignore_index = -1};
	GT_TRY(gt_session_gather_attr(s->conf, (struct gt_transform_list){0}, &spec.attr, err));
	spec.attr.views = gt_session_tta_views(s->conf);
	return gt_loader_open(&spec, &p->loader, err);
}

static void close_batch(struct predictor *p)
{
	for (int i = 0; i < p->npending; i++)
		free(p->pending[i].error);
	gt_loader_close(p->loader);
	if (p->s)
		gt_resident_drop(&p->s->device, &p->at);
	gt_dataset_free(&p->batch);
	free(p->logits);
	free(p->raw);
}

/* Computes the logits of the batch. Rows without an image have old or black pixels, and their outputs are not used. */
static enum gt_code run_batch(struct predictor *p, struct gt_err *err)
{
	struct gt_session *s = p->s;
	const struct gt_device *d = &s->device;
	struct gt_plan *plan = s->prog.predict;
	const struct gt_tdesc *desc = gt_graph_desc(plan->graph, plan->graph->output);
	size_t bytes = (size_t)(p->batch.n * p->batch.c * p->batch.h * p->batch.w);
	struct gt_batch b;
	struct gt_step_args step_args = {0};
	if (p->at.images != p->batch.images)
		GT_TRY(d->be->copy(d->dev, p->at.images, p->batch.images, bytes, GT_COPY_H2D, 0, err));
	GT_TRY(gt_loader_start(p->loader, 0, 0, err));
	GT_TRY(gt_loader_next(p->loader, &b, err));
	gt_plan_bind_batch(plan, b.input, b.target);
	for (int i = 0; i < plan->ncalls; i++) {
		struct gt_launch a = {.in = plan->call[i].in, .out = plan->call[i].out, .scratch = plan->call[i].work, .step_args = &step_args};
		GT_TRY(d->be->launch(d->dev, plan->call[i].kernel, &a, err));
	}
	GT_TRY(d->be->copy(d->dev, p->raw, gt_plan_value(plan, plan->graph->output), gt_tdesc_bytes(desc), GT_COPY_D2H, 0, err));
	GT_TRY(d->be->sync(d->dev, 0, err));
	gt_convert_f32(p->logits, p->raw, desc->dtype, gt_tdesc_count(desc));
	return GT_OK;
}

/* Runs the batch and passes the results that waited for it to fn. */
static enum gt_code flush(struct predictor *p, struct gt_err *err)
{
	if (p->rows)
		GT_TRY(run_batch(p, err));
	for (int i = 0; i < p->npending; i++) {
		struct pending *e = &p->pending[i];
		struct gt_prediction out = {.file = e->file, .error = e->error, .index = e->index, .scaled = e->scaled};
		if (!e->error)
			report(p, p->logits + e->row * p->classes, &out);
		if (!p->ended)
			p->ended = !p->fn(p->user, &out);
		free(e->error);
		e->error = NULL;
	}
	p->npending = p->rows = 0;
	return GT_OK;
}

static enum gt_code add_image(struct predictor *p, const char *file, int64_t index, bool scaled, const uint8_t *pixels, struct gt_err *err)
{
	size_t bytes = (size_t)(p->batch.c * p->batch.h * p->batch.w);
	memcpy(p->batch.images + (size_t)p->rows * bytes, pixels, bytes);
	p->pending[p->npending++] = (struct pending){.file = file, .index = index, .scaled = scaled, .row = p->rows++};
	return p->rows == BATCH || p->npending == PENDING ? flush(p, err) : GT_OK;
}

static enum gt_code add_error(struct predictor *p, const char *file, const char *why, struct gt_err *err)
{
	struct pending *e = &p->pending[p->npending];
	*e = (struct pending){.file = file, .error = strdup(why)};
	if (!e->error)
		return gt_fail_memory(err, strlen(why) + 1);
	p->npending++;
	return p->npending == PENDING ? flush(p, err) : GT_OK;
}

/* ---- files ---------------------------------------------------------------------------------------------------------------------- */

/* Returns the number of threads that read files: the config's, or one for each processor that this process may use. */
static int num_threads(const struct gt_conf *c)
{
	cpu_set_t set;
	int n = c->threads > 0 ? (int)c->threads : sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
	return n < 1 ? 1 : n > THREADS ? THREADS : n;
}

/* Files that are read at once. Each thread takes the next one. */
struct reading {
	const struct predictor *p;
	const struct gt_input *in;
	int n;
	atomic_int next;
	struct {
		uint8_t *images; /* malloc'ed; NULL: the file cannot be used */
		int64_t n;
		bool scaled;
		enum gt_code code;
		struct gt_err err;
	} file[2 * THREADS];
};

static void *read_files(void *arg)
{
	struct reading *r = arg;
	for (int i; (i = atomic_fetch_add(&r->next, 1)) < r->n;) {
		const struct gt_input *in = &r->in[i];
		r->file[i].code = in->error ? gt_fail(&r->file[i].err, in->code, "%s", in->error)
		                            : read_file(r->p, in->path, &r->file[i].images, &r->file[i].n, &r->file[i].scaled, &r->file[i].err);
	}
	return NULL;
}

/* Reads r->n files. Without more threads, this one reads them all. */
static void read_together(struct reading *r, int threads)
{
	pthread_t thread[THREADS];
	int n = 0;
	atomic_store(&r->next, 0);
	while (n < threads - 1 && n < r->n - 1 && !pthread_create(&thread[n], NULL, read_files, r))
		n++;
	read_files(r);
	while (n > 0)
		pthread_join(thread[--n], NULL);
}

/* Adds the images of file i. *bad: this file cannot be used, but others can. */
static enum gt_code add_file(struct predictor *p, const struct reading *r, int i, bool *bad, struct gt_err *err)
{
	size_t bytes = (size_t)(p->batch.c * p->batch.h * p->batch.w);
	enum gt_code code = r->file[i].code;
	*bad = code != GT_OK && (r->in[i].error || code != GT_ECONFIG); /* GT_ECONFIG: the model takes no images at all */
	if (code != GT_OK && err)
		*err = r->file[i].err;
	for (int64_t k = 0; k < r->file[i].n && code == GT_OK && !p->ended; k++)
		code = add_image(p, r->in[i].path, k, r->file[i].scaled, r->file[i].images + (size_t)k * bytes, err);
	return code;
}

/* Adds the images of the files that were read, and frees them. only: there is no other file. */
static enum gt_code add_files(struct predictor *p, const struct reading *r, bool only, int64_t *failed, struct gt_err *err)
{
	enum gt_code code = GT_OK;
	for (int i = 0; i < r->n; i++) {
		bool bad = false;
		struct gt_err why = {0};
		if (code == GT_OK && !p->ended) {
			code = add_file(p, r, i, &bad, &why);
			if (code != GT_OK && bad && !only) {
				(*failed)++;
				code = add_error(p, r->in[i].path, why.msg, &why);
			}
			if (code != GT_OK && err)
				*err = why;
		}
		free(r->file[i].images);
	}
	return code;
}

static enum gt_code predict_all(struct predictor *p, const struct gt_inputs *in, struct gt_err *err)
{
	int64_t failed = 0;
	int threads = num_threads(p->s->conf);
	GT_TRY(gt_state_load(p->s, p->ckpt, false, err));
	GT_TRY(open_batch(p, err));
	for (int64_t i = 0; i < in->n && !p->ended;) {
		struct reading r = {.p = p, .in = in->v + i, .n = in->n - i < 2 * threads ? (int)(in->n - i) : 2 * threads};
		read_together(&r, threads);
		GT_TRY(add_files(p, &r, in->n == 1, &failed, err));
		i += r.n;
	}
	GT_TRY(flush(p, err));
	return failed && !p->ended ? gt_fail(err, GT_EDATA, "%lld of %lld files could not be classified", (long long)failed, (long long)in->n)
	                           : GT_OK;
}

static enum gt_code find_inputs(const struct gt_predict_spec *spec, struct gt_inputs *in, struct gt_err *err)
{
	for (int i = 0; i < spec->ninputs; i++)
		GT_TRY(gt_inputs_add(in, spec->inputs[i], err));
	for (int i = 0; i < spec->nlists; i++)
		GT_TRY(gt_inputs_add_list(in, spec->lists[i], err));
	return GT_OK;
}

static enum gt_code with_checkpoint(struct predictor *p, const struct gt_predict_spec *spec, const struct gt_inputs *in, struct gt_err *err)
{
	struct gt_ckpt *ckpt;
	struct gt_conf *c;
	GT_TRY(gt_inference_open(spec->ckpt, NULL, 0, &ckpt, &c, err));
	p->ckpt = ckpt;
	gt_ranks_use_one(c);
	struct gt_session_spec session = {.conf = c, .device = spec->device, .predict = BATCH};
	enum gt_code code = gt_session_open(&session, &p->s, err);
	if (code == GT_OK)
		code = predict_all(p, in, err);
	close_batch(p);
	gt_session_close(p->s);
	gt_ckpt_close(ckpt);
	gt_conf_free(c);
	return code;
}

enum gt_code gt_predict(const struct gt_predict_spec *spec, bool (*fn)(void *user, const struct gt_prediction *p), void *user,
                        struct gt_err *err)
{
	struct gt_inputs in = {0};
	struct predictor *p = calloc(1, sizeof *p);
	if (!p)
		return gt_fail_memory(err, sizeof *p);
	p->top = spec->top;
	p->fn = fn;
	p->user = user;
	enum gt_code code = gt_arena_open(&in.arena, err);
	if (code == GT_OK)
		code = find_inputs(spec, &in, err);
	if (code == GT_OK)
		code = with_checkpoint(p, spec, &in, err);
	gt_inputs_free(&in);
	gt_arena_close(in.arena);
	free(p);
	return code;
}
