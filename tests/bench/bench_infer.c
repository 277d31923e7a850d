/* Processor time of a checkpoint's model on a batch, by the plan that `gtrain predict` executes:
 *
 *     make build/tests/bench/bench_infer
 *     build/tests/bench/bench_infer CKPT BATCH SECONDS IN OUT [table]
 *
 * IN has the values of each input, one input after the other, in PyTorch's order: f32 for images, i32 for codes. OUT receives the outputs
 * of the last batch as f32. Prints the median and the least processor time of a batch in milliseconds; with `table`, also of each call.
 * tests/bench/bench_infer.py writes IN, compares OUT with ONNX Runtime's outputs and runs both in alternation. */
#include "base/plugin.h"
#include "session/session.h"
#include "store/convert.h"
#include "train/state.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MOST 100000 /* batches */

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void try(enum gt_code code, const struct gt_err *e)
{
	if (code == GT_OK)
		return;
	fprintf(stderr, "bench_infer: %s\n", e->msg);
	exit(1);
}

static void *allocate(size_t bytes)
{
	void *p;
	if (posix_memalign(&p, 64, bytes + 64))
		exit(1);
	memset(p, 0, bytes + 64);
	return p;
}

/* Reads an input. Images are NCHW in the file, and NHWC in memory. */
static void *read_input(FILE *f, const struct gt_tdesc *d, int64_t batch)
{
	size_t n = (size_t)(gt_tdesc_count(d) / d->dim[0] * batch);
	int64_t room = (batch + d->dim[0] - 1) / d->dim[0]; /* the last part may be larger than the rest of the batch */
	float *from = allocate((size_t)room * gt_tdesc_bytes(d)), *to = allocate((size_t)room * gt_tdesc_bytes(d));
	if (gt_dtype_size(d->dtype) != 4 || fread(from, 4, n, f) != n) {
		fprintf(stderr, "bench_infer: IN is too short, or an input is neither f32 nor i32\n");
		exit(1);
	}
	if (d->rank != 4)
		return from;
	int64_t c = d->dim[1], hw = d->dim[2] * d->dim[3];
	for (int64_t i = 0; i < batch; i++)
		for (int64_t k = 0; k < c; k++)
			for (int64_t p = 0; p < hw; p++)
				to[(i * hw + p) * c + k] = from[(i * c + k) * hw + p];
	return to;
}

/* Executes the plan on the samples from `first` on. */
static void run_plan(struct gt_session *s, void *const *input, int64_t first, double *each)
{
	static const struct gt_step_args step_args;
	struct gt_plan *plan = s->prog.predict;
	const struct gt_backend *be = s->device.be;
	struct gt_kernel **k = allocate((size_t)plan->ncalls * sizeof *k);
	struct gt_launch *a = allocate((size_t)plan->ncalls * sizeof *a);
	struct gt_err e;
	void *at[GT_MAX_INPUTS];
	for (int i = 0; i < plan->graph->ninputs; i++) {
		const struct gt_tdesc *d = gt_graph_desc(plan->graph, plan->graph->input[i]);
		at[i] = (char *)input[i] + (size_t)(first / d->dim[0]) * gt_tdesc_bytes(d);
	}
	gt_plan_bind_batch(plan, at, NULL);
	for (int i = 0; i < plan->ncalls; i++) {
		k[i] = plan->call[i].kernel;
		a[i] = (struct gt_launch){.in = plan->call[i].in, .out = plan->call[i].out, .scratch = plan->call[i].work, .step_args = &step_args};
	}
	if (!each)
		try(be->launch_list(s->device.dev, plan->ncalls, k, a, &e), &e);
	for (int i = 0; each && i < plan->ncalls; i++) {
		double start = now();
		try(be->launch(s->device.dev, k[i], &a[i], &e), &e);
		double t = now() - start;
		each[i] = !each[i] || t < each[i] ? t : each[i];
	}
	free(k);
	free(a);
}

/* Runs a batch: the plan on parts of it (session/cache_batch.h). y: the outputs, in the type of the plan; NULL: not needed. */
static void run_batch(struct gt_session *s, void *const *input, int64_t batch, double *each, char *y)
{
	const struct gt_graph *g = s->prog.predict->graph;
	size_t bytes = gt_tdesc_bytes(gt_graph_desc(g, g->output));
	for (int64_t i = 0; i < batch; i += s->prog.predict_batch) {
		run_plan(s, input, i, each);
		if (y)
			memcpy(y + (size_t)(i / s->prog.predict_batch) * bytes, gt_plan_value(s->prog.predict, g->output), bytes);
	}
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

static void print_table(struct gt_session *s, const double *each)
{
	const struct gt_plan *p = s->prog.predict;
	double sum = 0;
	for (int i = 0; i < p->ncalls; i++) {
		const struct gt_call *c = &p->call[i];
		printf("%-24s %-20s %9.1f us %7.1f GFLOP/s  %s\n", c->layer, c->op, 1e6 * each[i], 1e-9 * c->flops / each[i],
		       s->device.be->describe(c->kernel));
		sum += each[i];
	}
	printf("sum %.3f ms\n", 1e3 * sum);
}

int main(int argc, char **argv)
{
	struct gt_err e;
	struct gt_ckpt *ckpt;
	struct gt_conf *conf;
	struct gt_session *s;
	char path[4400];
	int64_t batch = argc > 2 ? atoll(argv[2]) : 0;
	if (argc < 6) {
		fprintf(stderr, "usage: bench_infer CKPT BATCH SECONDS IN OUT [table]\n");
		return 2;
	}
	try(gt_ckpt_open(argv[1], NULL, true, NULL, NULL, &ckpt, &e), &e);
	snprintf(path, sizeof path, "%s/config.cfg", gt_ckpt_path(ckpt));
	const char *text = gt_ckpt_meta(ckpt)->config;
	try(gt_conf_load_resolved(path, text, strlen(text), NULL, 0, &conf, &e), &e);
	struct gt_session_spec spec = {.conf = conf, .ckpt = ckpt, .predict = batch, .device = "cpu", .inference = true};
	try(gt_session_open(&spec, &s, &e), &e);
	try(gt_state_load(s, ckpt, false, &e), &e);
	try(gt_session_fold_norms(s, &e), &e);
	struct gt_plan *plan = s->prog.predict;
	const struct gt_graph *g = plan->graph;
	void *input[GT_MAX_INPUTS];
	FILE *f = fopen(argv[4], "rb"), *to = fopen(argv[5], "wb");
	if (!f || !to) {
		perror("bench_infer");
		return 1;
	}
	for (int i = 0; i < g->ninputs; i++)
		input[i] = read_input(f, gt_graph_desc(g, g->input[i]), batch);
	fclose(f);
	static double t[MOST];
	int n = 0;
	run_batch(s, input, batch, NULL, NULL);
	for (double start = now(); n < MOST && (n < 3 || now() - start < atof(argv[3])); n++) {
		double from = now();
		run_batch(s, input, batch, NULL, NULL);
		t[n] = now() - from;
	}
	qsort(t, (size_t)n, sizeof *t, by_value);
	printf("%.6g %.6g\n", 1e3 * t[n / 2], 1e3 * t[0]);
	if (argc > 6) {
		double *each = calloc((size_t)plan->ncalls, sizeof *each);
		for (double start = now(); now() - start < atof(argv[3]);)
			run_batch(s, input, batch, each, NULL);
		print_table(s, each);
		free(each);
	}
	const struct gt_tdesc *d = gt_graph_desc(g, g->output);
	int64_t each = gt_tdesc_count(d) / s->prog.predict_batch, room = batch + s->prog.predict_batch;
	char *raw = allocate((size_t)(room * each) * gt_dtype_size(d->dtype));
	float *y = allocate((size_t)(batch * each) * sizeof *y);
	run_batch(s, input, batch, NULL, raw);
	gt_convert_f32(y, raw, d->dtype, batch * each);
	fwrite(y, sizeof *y, (size_t)(batch * each), to);
	fclose(to);
	gt_session_close(s);
	gt_ckpt_close(ckpt);
	gt_conf_free(conf);
	return 0;
}
