/* A 1x1 convolution and the depthwise convolution after it as one call (plan/conv_pair_fusion.c, cpu/conv_pair.c): the same outputs as two
 * calls, for strides, paddings, sizes, activations and numbers of threads; and which pairs stay two calls. */
/* tests/run: beside others */
#include "base/plugin.h"
#include "clones.h"
#include "ir_net.h"
#include "plan/fuse.h"
#include "plan/plan.h"
#include "test.h"
#include <math.h>

static struct gt_space *space_open(const char *backend, int threads)
{
	char symbol[32];
	void *p;
	struct gt_err e;
	struct gt_dev *dev;
	struct gt_space *s;
	struct gt_dev_opts o = {.threads = threads, .winograd = true};
	snprintf(symbol, sizeof symbol, "gt_backend_%s", backend);
	CHECK_OK(gt_plugin_open(backend, symbol, &p, &e), e);
	CHECK_OK(((const struct gt_backend *)p)->open(&o, &dev, &e), e);
	CHECK_OK(gt_space_open(p, dev, 0, &s, &e), e);
	return s;
}

static void space_close(struct gt_space *s)
{
	const struct gt_backend *be = s->be;
	struct gt_dev *dev = s->dev;
	gt_space_close(s);
	be->close(dev);
}

/* Returns whether this processor has the kernels; otherwise the test is skipped. */
static bool has_kernels(void)
{
#if defined(__x86_64__)
	if (!GT_CPU_AVX2) {
		test_skip("needs AVX2");
		return false;
	}
#endif
	return true;
}

static int count(const struct gt_graph *g, enum gt_opcode code)
{
	int n = 0;
	for (int i = 0; i < g->nnodes; i++)
		n += g->nodes[i].op->code == code;
	return n;
}

static void fill(float *x, int64_t n, uint64_t seed)
{
	for (int64_t i = 0; i < n; i++)
		x[i] = (float)((uint64_t)(i + 1) * (seed * 2 + 2654435761) % 1000) / 500 - 1;
}

/* How a net is planned: with kernels for parameters that may change (oneDNN's), with those for constant ones in two calls, or in one. */
enum kind { CHANGING, TWO_CALLS, JOINED };

static bool poisoned; /* whether a value of the input is NaN */

/* Executes the evaluation of t. Returns its output, which the caller frees, with *n values. Sets *pairs to the number of joined pairs. */
static float *run_net(struct net *t, int64_t batch, int threads, enum kind kind, int *pairs, int64_t *n)
{
	static const struct gt_step_args step_args;
	struct gt_space *s = space_open("cpu", threads);
	struct gt_plan *p = NULL;
	struct gt_err e;
	CHECK_OK(gt_graph_build(t->a, &t->m, batch, GT_F32, false, &t->g, &e), e);
	CHECK_OK(gt_graph_fuse(t->g, &e), e);
	s->constant = kind == JOINED; /* pairs need constant parameters, as the kernels of the two calls do, which are chosen later */
	CHECK_OK(gt_plan_fuse_for_backend(s, t->g, false, false, &e), e);
	s->constant = kind != CHANGING;
	CHECK_OK(gt_plan_make(s, t->g, false, true, &p, &e), e);
	gt_space_size(s);
	CHECK_OK(gt_space_alloc(s, &e), e);
	for (int i = 0; i < t->g->nparams; i++) { /* the kernels of two calls may choose another layout */
		const struct gt_tdesc *w = &s->layout.param[i].desc;
		float *plain = malloc((size_t)gt_tdesc_count(w) * sizeof *plain);
		fill(plain, gt_tdesc_count(w), (uint64_t)i);
		gt_tdesc_pack(w, plain, gt_space_param(s, i, GT_A_PARAM, 0));
		free(plain);
	}
	gt_plan_bind(p);
	const struct gt_tdesc *d = gt_graph_desc(t->g, t->g->input[0]), *out = gt_graph_desc(t->g, t->g->output);
	void *x = malloc(gt_tdesc_bytes(d));
	float *y = malloc(gt_tdesc_bytes(out));
	fill(x, gt_tdesc_count(d), 99);
	if (poisoned)
		((float *)x)[gt_tdesc_count(d) / 2] = NAN;
	gt_plan_bind_batch(p, &x, NULL);
	for (int twice = 0; twice < 2; twice++) /* the first launch packs the weights */
		for (int i = 0; i < p->ncalls; i++) {
			const struct gt_call *c = &p->call[i];
			struct gt_launch a = {.in = c->in, .out = c->out, .scratch = c->work, .step_args = &step_args};
			CHECK_OK(s->be->launch(s->dev, c->kernel, &a, &e), e);
		}
	memcpy(y, gt_plan_value(p, t->g->output), gt_tdesc_bytes(out));
	*n = gt_tdesc_count(out);
	*pairs = count(t->g, GT_OP_CONV2D_PAIR);
	free(x);
	gt_plan_close(p);
	space_close(s);
	return y;
}

static void find_difference(const float *a, const float *b, int64_t n, double *worst, double *size)
{
	*worst = *size = 0;
	for (int64_t i = 0; i < n; i++) {
		*worst = isnan(a[i]) != isnan(b[i]) ? INFINITY : fmax(*worst, fabs((double)a[i] - (double)b[i]));
		*size = fmax(*size, fabs((double)b[i]));
	}
}

static void compare_outputs(struct net *t, int64_t batch, const char *what)
{
	int pairs, none;
	int64_t n, m;
	double worst, size;
	float *want = run_net(t, batch, 1, CHANGING, &none, &n), *two = run_net(t, batch, 1, TWO_CALLS, &none, &m);
	CHECK_MSG(none == 0 && m == n, "%s: %d pairs, %d values", what, none, (int)m);
	find_difference(two, want, n, &worst, &size);
	CHECK_MSG(size > 0.1, "%s: the outputs are at most %g", what, size);
	/* sums in another order, of at most 300 + 49 terms of about 1, and 24 bits */
	CHECK_MSG(worst < 1e-4 * size, "%s, two calls: the largest difference is %g of %g", what, worst, size);
	for (int threads = 1; threads < 8; threads += 3) {
		float *one = run_net(t, batch, threads, JOINED, &pairs, &m);
		CHECK_MSG(pairs == 1 && m == n, "%s: %d pairs, %d values", what, pairs, (int)m);
		find_difference(one, two, n, &worst, &size);
#if defined(__x86_64__)
		CHECK_MSG(worst == 0, "%s, %d threads: the largest difference is %g of %g", what, threads, worst, size);
#else /* the depthwise convolution of two calls is oneDNN's */
		CHECK_MSG(worst < 1e-4 * size, "%s, %d threads: the largest difference is %g of %g", what, threads, worst, size);
#endif
		free(one);
	}
	free(two);
	free(want);
}

struct shape {
	int64_t batch, in, h, w, mid;
	const char *first, *act, *keys; /* keys of the depthwise convolution; first: keys of the 1x1 convolution, after out=mid */
	const char *act2;
};

TEST(same_outputs)
{
	if (!has_kernels())
		return;
	static const struct shape shapes[] = {
	    {1, 16, 12, 12, 96, "", "relu6", "kernel=3 padding=1", "relu6"},
	    {2, 24, 13, 11, 144, "", "relu6", "kernel=3 padding=1 stride=2", "relu6"},
	    {3, 8, 7, 7, 40, " bias=0", "relu", "kernel=3 padding=1 bias=0", NULL},
	    {1, 3, 9, 10, 24, "", NULL, "kernel=3", "relu"},
	    {2, 16, 17, 15, 20, "", "hardswish", "kernel=5 padding=2 stride=2", "hardswish"},
	    {1, 40, 14, 14, 72, "", "silu", "kernel=5 padding=2", "silu"},
	    {1, 24, 16, 9, 64, "", "gelu", "kernel=7 padding=3", NULL},
	    {1, 12, 5, 3, 32, "", "relu", "kernel=7 padding=6 stride=2", "relu6"},
	    {1, 300, 6, 8, 48, "", "relu6", "kernel=3 padding=2", NULL},
	    {1, 40, 66, 64, 32, "", "relu6", "kernel=3 padding=1", "relu6"},
	    {2, 40, 65, 70, 48, "", "relu6", "kernel=3,5 padding=1,2 stride=2,1", NULL},
	    {1, 16, 112, 112, 96, "", "relu6", "kernel=3 padding=1 stride=2", "relu6"},
	    {1, 8, 3, 40, 17, "", "relu", "kernel=2,3 padding=0,1 stride=1,2", "relu"},
	    {1, 8, 2, 1, 16, "", "relu", "kernel=3 padding=1", NULL},
	    {1, 8, 20, 1, 33, "", "relu", "kernel=5,3 padding=4,1 stride=3,1", NULL},
	};
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
		const struct shape *s = &shapes[i];
		char first[64], second[128], what[256];
		struct net t;
		net_open(&t, s->in, s->h, s->w);
		snprintf(first, sizeof first, "out=%d kernel=1%s", (int)s->mid, s->first);
		snprintf(second, sizeof second, "out=%d groups=%d %s", (int)s->mid, (int)s->mid, s->keys);
		snprintf(what, sizeof what, "%dx%dx%dx%d, %s", (int)s->batch, (int)s->in, (int)s->h, (int)s->w, second);
		net_add(&t, "expand", "conv2d", first, NULL);
		if (s->act)
			net_add(&t, "act", s->act, NULL, NULL);
		net_add(&t, "depthwise", "conv2d", second, NULL);
		if (s->act2)
			net_add(&t, "act2", s->act2, NULL, NULL);
		compare_outputs(&t, s->batch, what);
		net_close(&t);
	}
}

/* A NaN of the input reaches all outputs that depend on it, through both activations. */
TEST(nan_stays)
{
	static const char *const acts[] = {"relu", "relu6"};
	if (!has_kernels())
		return;
	for (int i = 0; i < 2; i++) {
		struct net t;
		int pairs, nans = 0;
		int64_t n;
		net_open(&t, 16, 9, 9);
		net_add(&t, "expand", "conv2d", "out=40 kernel=1", NULL);
		net_add(&t, "act", acts[i], NULL, NULL);
		net_add(&t, "depthwise", "conv2d", "out=40 groups=40 kernel=3 padding=1", NULL);
		net_add(&t, "act2", acts[i], NULL, NULL);
		poisoned = true;
		compare_outputs(&t, 1, acts[i]);
		float *y = run_net(&t, 1, 1, JOINED, &pairs, &n);
		poisoned = false;
		for (int64_t k = 0; k < n; k++)
			nans += isnan(y[k]);
		CHECK_MSG(pairs == 1 && nans == 9 * 40, "%s: %d pairs, %d NaN", acts[i], pairs, nans);
		free(y);
		net_close(&t);
	}
}

/* Returns the number of pairs in a net whose second convolution has the given keys; extra: an element-wise layer that also reads the first
 * convolution, NULL: none. */
static int count_pairs_of(const char *backend, const char *first, const char *keys, const char *extra, bool constant,
                          enum gt_dtype compute)
{
	struct gt_space *s = space_open(backend, 1);
	struct gt_plan *p = NULL;
	struct gt_err e;
	struct net t;
	net_open(&t, 16, 12, 12);
	net_add(&t, "expand", "conv2d", first, NULL);
	net_add(&t, "act", "relu6", NULL, NULL);
	net_add(&t, "depthwise", "conv2d", keys, NULL);
	if (extra)
		net_add(&t, "extra", extra, NULL, "depthwise act");
	CHECK_OK(gt_graph_build(t.a, &t.m, 2, compute, false, &t.g, &e), e);
	CHECK_OK(gt_graph_fuse(t.g, &e), e);
	s->constant = constant;
	CHECK_OK(gt_plan_fuse_for_backend(s, t.g, false, false, &e), e);
	CHECK_OK(gt_plan_make(s, t.g, false, true, &p, &e), e);
	int n = count(t.g, GT_OP_CONV2D_PAIR);
	gt_plan_close(p);
	space_close(s);
	net_close(&t);
	return n;
}

static int count_pairs(const char *first, const char *keys, const char *extra, bool constant, enum gt_dtype compute)
{
	return count_pairs_of("cpu", first, keys, extra, constant, compute);
}

/* A plan without a device does not know the processor. */
TEST(null_backend)
{
	CHECK(count_pairs_of("null", "out=32 kernel=1", "out=32 groups=32 kernel=3 padding=1", NULL, true, GT_F32) == 0);
}

TEST(two_calls)
{
	if (!has_kernels())
		return;
	static const char one[] = "out=32 kernel=1", dw[] = "out=32 groups=32 kernel=3 padding=1";
	CHECK(count_pairs(one, dw, NULL, true, GT_F32) == 1);
	CHECK(count_pairs(one, dw, NULL, false, GT_F32) == 0); /* parameters that change */
	CHECK(count_pairs(one, dw, NULL, true, GT_BF16) == 0);
	CHECK(count_pairs(one, dw, "add", true, GT_F32) == 0); /* another layer reads the tensor between them */
	CHECK(count_pairs(one, dw, "mul", true, GT_F32) == 0);
	CHECK(count_pairs("out=32 kernel=3 padding=1", dw, NULL, true, GT_F32) == 0);
	CHECK(count_pairs("out=32 kernel=1 stride=2", dw, NULL, true, GT_F32) == 0);
	CHECK(count_pairs("out=32 kernel=1 groups=2", dw, NULL, true, GT_F32) == 0);
	CHECK(count_pairs(one, "out=32 groups=16 kernel=3 padding=1", NULL, true, GT_F32) == 0);
	CHECK(count_pairs(one, "out=64 groups=32 kernel=3 padding=1", NULL, true, GT_F32) == 0);
	CHECK(count_pairs(one, "out=32 groups=32 kernel=3 padding=2 dilation=2", NULL, true, GT_F32) == 0);
	CHECK(count_pairs(one, "out=32 groups=32 kernel=4", NULL, true, GT_F32) == 0);
	CHECK(count_pairs(one, "out=32 groups=32 kernel=3 padding=3", NULL, true, GT_F32) == 0);
	CHECK(count_pairs(one, "out=32 groups=32 kernel=3 stride=3", NULL, true, GT_F32) == 0);
}

/* Two depthwise convolutions read the same tensor, and a depthwise convolution adds a residual after the first: no pairs. The residual of
 * MobileNet-V2, which the convolution after the pair adds, does not prevent a pair. */
TEST(readers)
{
	static const char dw[] = "out=16 groups=16 kernel=3 padding=1";
	struct net t;
	int pairs;
	int64_t n;
	if (!has_kernels())
		return;
	net_open(&t, 16, 9, 9);
	net_add(&t, "expand", "conv2d", "out=16 kernel=1", NULL);
	net_add(&t, "one", "conv2d", dw, "expand");
	net_add(&t, "two", "conv2d", dw, "expand");
	net_add(&t, "sum", "add", NULL, "one two");
	free(run_net(&t, 1, 1, JOINED, &pairs, &n));
	CHECK_MSG(pairs == 0, "%d pairs", pairs);
	net_close(&t);
	net_open(&t, 16, 9, 9);
	net_add(&t, "expand", "conv2d", "out=16 kernel=1", NULL);
	net_add(&t, "depthwise", "conv2d", dw, NULL);
	net_add(&t, "sum", "add", NULL, "depthwise input");
	free(run_net(&t, 1, 1, JOINED, &pairs, &n));
	CHECK_MSG(pairs == 0, "%d pairs", pairs);
	net_close(&t);
	net_open(&t, 16, 9, 9);
	net_add(&t, "expand", "conv2d", "out=96 kernel=1", NULL);
	net_add(&t, "act", "relu6", NULL, NULL);
	net_add(&t, "depthwise", "conv2d", "out=96 groups=96 kernel=3 padding=1", NULL);
	net_add(&t, "act2", "relu6", NULL, NULL);
	net_add(&t, "project", "conv2d", "out=16 kernel=1", NULL);
	net_add(&t, "sum", "add", NULL, "project input");
	compare_outputs(&t, 2, "an inverted residual");
	CHECK(count(t.g, GT_OP_CONV2D) == 1 && count(t.g, GT_OP_ADD) == 0);
	net_close(&t);
}

RUN_TESTS()
