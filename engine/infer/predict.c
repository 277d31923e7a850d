/* gt_predict: classifies images with a checkpoint. */
#include "infer/inference.h"
#include "session/session_data.h"
#include "state/state.h"
#include "store/convert.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PREDICT_BATCH 64
#define PREDICT_MAX 100000 /* maximum number of images of one file */

/* Runs images through the graph in batches of PREDICT_BATCH, and passes rows of logits (plain f32) to fn. */
struct predictor {
	struct gt_session *s;
	const struct gt_ckpt *ckpt;
	float *logits;
	void *raw;
	int64_t classes;
	int top;
	void (*fn)(void *user, const struct gt_prediction *p);
	void *user;
};

static void report(const struct predictor *p, const float *z, const char *file, int64_t index, bool scaled)
{
	struct gt_prediction out = {.file = file, .index = index, .scaled = scaled};
	double max = -INFINITY, sum = 0;
	for (int64_t c = 0; c < p->classes; c++)
		max = z[c] > max ? z[c] : max;
	for (int64_t c = 0; c < p->classes; c++)
		sum += exp(z[c] - max);
	for (int k = 0; k < p->top && k < p->classes && k < 10; k++) {
		int best = -1;
		for (int c = 0; c < p->classes; c++) {
			bool taken = false;
			for (int j = 0; j < k; j++)
				taken |= out.top[j].label == c;
			if (!taken && (best < 0 || z[c] > z[best]))
				best = c;
		}
		out.top[k].label = best;
		out.top[k].p = exp(z[best] - max) / sum;
		out.top[k].name = gt_inference_class(p->ckpt, p->s->conf, best);
		out.n = k + 1;
	}
	p->fn(p->user, &out);
}

static enum gt_code predict_batch(struct predictor *p, struct gt_loader *l, const char *file, int64_t first, int64_t n, bool scaled,
                                  struct gt_err *err)
{
	struct gt_session *s = p->s;
	struct gt_plan *plan = s->prog.predict;
	const struct gt_tdesc *d = gt_graph_desc(plan->graph, plan->graph->output);
	struct gt_batch b;
	struct gt_step_args step_args = {0};
	GT_TRY(gt_loader_next(l, &b, err));
	gt_plan_bind_batch(plan, b.x, b.target);
	for (int i = 0; i < plan->ncalls; i++) {
		struct gt_launch a = {.in = plan->call[i].in, .out = plan->call[i].out, .scratch = plan->call[i].work, .step_args = &step_args};
		GT_TRY(s->device.be->launch(s->device.dev, plan->call[i].kernel, &a, err));
	}
	GT_TRY(s->device.be->copy(s->device.dev, p->raw, gt_plan_value(plan, plan->graph->output), gt_tdesc_bytes(d), GT_COPY_D2H, 0, err));
	GT_TRY(s->device.be->sync(s->device.dev, 0, err));
	gt_convert_f32(p->logits, p->raw, d->dtype, gt_tdesc_count(d));
	for (int64_t i = 0; i < n; i++)
		report(p, p->logits + i * p->classes, file, first + i, scaled);
	return GT_OK;
}

/* Predicts the images of one file. *bad: this file cannot be used, but others can. */
static enum gt_code predict_file(struct predictor *p, const char *file, bool *bad, struct gt_err *err)
{
	struct gt_session *s = p->s;
	const int64_t *in = s->conf->model.input;
	size_t image = (size_t)(in[0] * in[1] * in[2]);
	struct gt_dataset d = {.c = in[0], .h = in[1], .w = in[2], .classes = p->classes};
	struct gt_loader *l = NULL;
	int64_t n;
	bool scaled;
	enum gt_code read = gt_image_read(file, in[0], in[1], in[2], PREDICT_MAX, &d.images, &n, &scaled, err);
	*bad = read != GT_OK && read != GT_ECONFIG; /* GT_ECONFIG: the model takes no images at all */
	GT_TRY(read);
	d.n = (n + PREDICT_BATCH - 1) / PREDICT_BATCH * PREDICT_BATCH; /* the last batch is padded with black images */
	uint8_t *grown = realloc(d.images, (size_t)d.n * image);
	d.labels = calloc((size_t)d.n, sizeof *d.labels);
	enum gt_code code = grown && d.labels ? GT_OK : gt_fail_memory(err, (size_t)d.n * image);
	d.memory = d.images = grown ? grown : d.images;
	void *dev[2] = {NULL, NULL};
	if (code == GT_OK) {
		memset(d.images + (size_t)n * image, 0, (size_t)(d.n - n) * image);
		code = gt_resident_make(&s->device, &d, dev, err);
	}
	struct gt_view view = {&d, dev[0], dev[1], NULL, d.n};
	struct gt_loader_spec spec = {.device = &s->device,
	                              .view = &view,
	                              .x = s->prog.predict->graph->values[s->prog.predict->graph->input].desc,
	                              .batch = PREDICT_BATCH,
	                              .micro = PREDICT_BATCH,
	                              .ignore_index = -1};
	if (code == GT_OK)
		code = gt_session_gather_attr(s->conf, false, &spec.attr, err);
	if (code == GT_OK)
		code = gt_loader_open(&spec, &l, err);
	if (code == GT_OK)
		code = gt_loader_start(l, 0, 0, err);
	for (int64_t i = 0; i < n && code == GT_OK; i += PREDICT_BATCH)
		code = predict_batch(p, l, file, i, n - i < PREDICT_BATCH ? n - i : PREDICT_BATCH, scaled, err);
	gt_loader_close(l);
	gt_resident_drop(&s->device, dev);
	gt_dataset_free(&d);
	return code;
}

static enum gt_code predict_all(struct predictor *p, const struct gt_ckpt *ckpt, const char *const *files, int nfiles, struct gt_err *err)
{
	const struct gt_graph *g = p->s->prog.predict->graph;
	const struct gt_tdesc *d = gt_graph_desc(g, g->output);
	if (d->rank != 2)
		return gt_fail(err, GT_ECONFIG, "predict: expected a model whose output is [batch, classes], got an output with %d dimensions",
		               d->rank);
	p->classes = d->dim[1];
	p->logits = malloc((size_t)gt_tdesc_count(d) * sizeof *p->logits);
	p->raw = malloc(gt_tdesc_bytes(d));
	if (!p->logits || !p->raw)
		return gt_fail_memory(err, gt_tdesc_bytes(d));
	GT_TRY(gt_state_load(p->s, ckpt, false, err));
	int failed = 0;
	for (int i = 0; i < nfiles; i++) {
		bool bad = false;
		struct gt_err why = {0};
		enum gt_code code = predict_file(p, files[i], &bad, &why);
		if (code != GT_OK && (!bad || nfiles == 1)) {
			if (err)
				*err = why;
			return code;
		}
		if (code != GT_OK) {
			failed++;
			p->fn(p->user, &(struct gt_prediction){.file = files[i], .error = why.msg});
		}
	}
	return failed ? gt_fail(err, GT_EDATA, "%d of %d files could not be classified", failed, nfiles) : GT_OK;
}

enum gt_code gt_predict(const char *path, const char *const *files, int nfiles, int top, const char *device,
                        void (*fn)(void *user, const struct gt_prediction *p), void *user, struct gt_err *err)
{
	struct gt_ckpt *ckpt;
	struct gt_conf *c;
	struct predictor p = {.top = top, .fn = fn, .user = user};
	GT_TRY(gt_inference_open(path, NULL, 0, &ckpt, &c, err));
	p.ckpt = ckpt;
	struct gt_session_spec spec = {.conf = c, .device = device, .predict = PREDICT_BATCH};
	enum gt_code code = gt_session_open(&spec, &p.s, err);
	if (code == GT_OK)
		code = predict_all(&p, ckpt, files, nfiles, err);
	free(p.logits);
	free(p.raw);
	gt_session_close(p.s);
	gt_ckpt_close(ckpt);
	gt_conf_free(c);
	return code;
}
