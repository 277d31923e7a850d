/* Segments of an inference that compute the batch in parts: the same outputs as the whole batch, with less memory; and which segments are
 * possible. */
#include "base/plugin.h"
#include "exec/exec.h"
#include "ir_net.h"
#include "plan/fuse.h"
#include "plan/plan.h"
#include "test.h"
#include <math.h>
#include <stdlib.h>

#define BATCH 12

static struct gt_space *space_open(void)
{
	void *p;
	struct gt_err e;
	struct gt_dev *dev;
	struct gt_space *s;
	struct gt_dev_opts o = {.threads = 1, .winograd = true};
	CHECK_OK(gt_plugin_open("cpu", "gt_backend_cpu", &p, &e), e);
	CHECK_OK(((const struct gt_backend *)p)->open(&o, &dev, &e), e);
	CHECK_OK(gt_space_open(p, dev, 0, &s, &e), e);
	s->constant = true;
	return s;
}

static void space_close(struct gt_space *s)
{
	const struct gt_backend *be = s->be;
	struct gt_dev *dev = s->dev;
	gt_space_close(s);
	be->close(dev);
}

/* A net with a residual that crosses a boundary between segments, in-place activations, and an alias (flatten). */
static void open_net(struct net *t)
{
	net_open(t, 8, 16, 16);
	net_add(t, "conv1", "conv2d", "out=32 kernel=1", NULL);
	net_add(t, "s1", "silu", NULL, NULL);
	net_add(t, "conv2", "conv2d", "out=32 kernel=1", NULL);
	net_add(t, "s2", "silu", NULL, NULL);
	net_add(t, "conv3", "conv2d", "out=32 kernel=1", NULL);
	net_add(t, "add", "add", NULL, "conv3 s1");
	net_add(t, "s3", "silu", NULL, NULL);
	net_add(t, "gap", "global_avgpool", NULL, NULL);
	net_add(t, "flat", "flatten", NULL, NULL);
	net_add(t, "fc", "linear", "out=10", NULL);
}

static struct gt_graph *build(struct net *t, int64_t batch)
{
	struct gt_graph *g;
	struct gt_err e;
	CHECK_OK(gt_graph_build(t->a, &t->m, batch, GT_F32, false, &g, &e), e);
	CHECK_OK(gt_graph_fuse(g, &e), e);
	return g;
}

/* Returns the index of the node of a layer. */
static int node_of(const struct gt_graph *g, const char *layer)
{
	for (int i = 0; i < g->nnodes; i++)
		if (!strcmp(g->nodes[i].name, layer))
			return i;
	test_fail(__FILE__, __LINE__, "no node %s", layer);
	return 0;
}

static void run(struct gt_plan *p, void *x, float *y)
{
	static const struct gt_step_args step_args;
	const struct gt_tdesc *d = gt_graph_desc(p->graph, p->graph->output);
	struct gt_err e;
	gt_plan_bind_batch(p, &x, NULL);
	for (int i = 0; i < p->ncalls; i++) {
		const struct gt_call *c = &p->call[i];
		struct gt_launch a = {.in = c->in, .out = c->out, .scratch = c->work, .step_args = &step_args};
		CHECK_OK(p->space->be->launch(p->space->dev, c->kernel, &a, &e), e);
	}
	memcpy(y, gt_plan_value(p, p->graph->output), gt_tdesc_bytes(d));
}

static void fill(float *x, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		x[i] = (float)(i * 2654435761 % 1000) / 500 - 1;
}

/* Plans the net as a whole and with segments that end after the layers `first` and `second`, in memory of the same space. memory: an upper
 * bound of the activations' memory, relative to that of the whole batch. */
static void compare_outputs(const char *first, const char *second, int parts, int second_parts, double memory)
{
	struct net t;
	struct gt_space *s = space_open();
	struct gt_plan *whole, *divided;
	struct gt_err e;
	float *x, a[BATCH * 10], b[BATCH * 10];
	open_net(&t);
	struct gt_graph *g = build(&t, BATCH), *h = build(&t, BATCH);
	struct gt_segment seg[2] = {{.first = 0, .last = node_of(g, first), .parts = parts, .like = build(&t, BATCH / parts)}};
	seg[1] = (struct gt_segment){
	    .first = seg[0].last + 1, .last = node_of(g, second), .parts = second_parts, .like = build(&t, BATCH / second_parts)};
	CHECK(gt_segment_fits(g, &seg[0]) && gt_segment_fits(g, &seg[1]));
	CHECK_OK(gt_plan_make(s, h, false, true, &whole, &e), e);
	CHECK_OK(gt_plan_make_parts(s, g, seg, 2, true, &divided, &e), e);
	/* what is alive at a boundary has memory for the batch, everything else for a part */
	CHECK_MSG((double)divided->act.bytes < memory * (double)whole->act.bytes || getenv("GTRAIN_UNSHARED_MEMORY"),
	          "%s, %s: %zu bytes, %zu with the whole batch", first, second, divided->act.bytes, whole->act.bytes);
	gt_space_size(s);
	CHECK_OK(gt_space_alloc(s, &e), e);
	for (int i = 0; i < h->nparams; i++)
		fill(gt_space_param(s, i, GT_A_PARAM, 0), s->layout.param[i].count);
	gt_plan_bind(whole);
	gt_plan_bind(divided);
	x = malloc(gt_tdesc_bytes(gt_graph_desc(g, g->input[0])));
	fill(x, gt_tdesc_count(gt_graph_desc(g, g->input[0])));
	run(whole, x, a);
	run(divided, x, b);
	CHECK(a[0] && memcmp(a, a + 10, 10 * sizeof *a) != 0);
	for (int i = 0; i < BATCH * 10; i++) /* the kernels of another batch may round differently: f32 has 24 bits, sums have 32 terms */
		CHECK_MSG(fabsf(a[i] - b[i]) <= 1e-5f, "%s, %s: output %d is %g, expected %g", first, second, i, (double)b[i], (double)a[i]);
	free(x);
	gt_plan_close(whole);
	gt_plan_close(divided);
	space_close(s);
	net_close(&t);
}

TEST(same_outputs)
{
	compare_outputs("conv1", "conv3", 12, 3, 1.01);
	compare_outputs("s1", "s3", 6, 2, 1.01);
	compare_outputs("s2", "gap", 3, 12, 0.9);
	compare_outputs("conv2", "fc", 4, 2, 1.01);
}

/* The parts of a value follow each other, and calls of a segment are repeated part by part. */
TEST(order_of_calls)
{
	struct net t;
	struct gt_space *s = space_open();
	struct gt_plan *p;
	struct gt_err e;
	open_net(&t);
	struct gt_graph *g = build(&t, BATCH);
	struct gt_segment seg = {.first = 0, .last = node_of(g, "conv3"), .parts = 4, .like = build(&t, 3)};
	CHECK_OK(gt_plan_make_parts(s, g, &seg, 1, true, &p, &e), e);
	int each = 0;
	while (p->call[each].part == 0)
		each++;
	for (int i = 0; i < p->ncalls; i++) {
		const struct gt_call *c = &p->call[i];
		CHECK(i < 4 * each ? c->segment == &seg && c->part == i / each && c->node == p->call[i % each].node : !c->segment && !c->part);
		CHECK(i >= 4 * each || c->kernel == p->call[i % each].kernel);
	}
	CHECK(p->ncalls > 4 * each && p->call[4 * each].node > seg.last);
	gt_plan_close(p);
	space_close(s);
	net_close(&t);
}

/* The search for an output that is not finite reads the memory of one part: it finds the NaN of a sample in the calls of the sample's
 * part. */
TEST(nan_in_one_part)
{
	struct net t;
	struct gt_space *s = space_open();
	struct gt_plan *p;
	struct gt_err e;
	open_net(&t);
	struct gt_graph *g = build(&t, BATCH);
	const struct gt_tdesc *d = gt_graph_desc(g, g->input[0]);
	struct gt_segment seg = {.first = 0, .last = node_of(g, "gap"), .parts = 4, .like = build(&t, 3)};
	CHECK_OK(gt_plan_make_parts(s, g, &seg, 1, true, &p, &e), e);
	gt_space_size(s);
	CHECK_OK(gt_space_alloc(s, &e), e);
	for (int i = 0; i < g->nparams; i++)
		fill(gt_space_param(s, i, GT_A_PARAM, 0), s->layout.param[i].count);
	gt_plan_bind(p);
	float *values = malloc(gt_tdesc_bytes(d));
	void *x = values;
	fill(values, gt_tdesc_count(d));
	values[gt_tdesc_count(d) / BATCH * 7] = NAN; /* sample 7 is in part 2 */
	gt_plan_bind_batch(p, &x, NULL);
	const struct gt_exec exec = {.be = s->be, .dev = s->dev, .space = s};
	for (int i = 0; i < p->ncalls; i++) {
		static const struct gt_step_args step_args;
		const struct gt_call *c = &p->call[i];
		struct gt_launch a = {.in = c->in, .out = c->out, .scratch = c->work, .step_args = &step_args};
		bool bad;
		CHECK_OK(s->be->launch(s->dev, c->kernel, &a, &e), e);
		CHECK_OK(gt_exec_diagnose_call(&exec, p, i, &bad, &e), e);
		CHECK_MSG(bad == (!c->segment || c->part == 2), "%s, part %d", c->layer, c->part);
	}
	free(values);
	gt_plan_close(p);
	space_close(s);
	net_close(&t);
}

TEST(impossible_segments)
{
	struct net t;
	open_net(&t);
	net_add(&t, "norm", "batchnorm1d", "track_running_stats=0", NULL);
	struct gt_graph *g = build(&t, BATCH), *like = build(&t, 4), *other = build(&t, 5);
	int fc = node_of(g, "fc"), norm = node_of(g, "norm");
	CHECK(gt_segment_fits(g, &(struct gt_segment){.first = 0, .last = fc, .parts = 3, .like = like}));
	CHECK(!gt_segment_fits(g, &(struct gt_segment){.first = 0, .last = norm, .parts = 3, .like = like})); /* statistics of the batch */
	CHECK(!gt_segment_fits(g, &(struct gt_segment){.first = 0, .last = fc, .parts = 1, .like = g}));
	CHECK(!gt_segment_fits(g, &(struct gt_segment){.first = 0, .last = fc, .parts = 2, .like = like}));
	CHECK(!gt_segment_fits(g, &(struct gt_segment){.first = 0, .last = fc, .parts = 2, .like = other}));
	net_close(&t);
}

RUN_TESTS()
