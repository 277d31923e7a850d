/* Fusion (plan/fuse.c) changes no bit and hides no NaN, and neither does batch normalisation in pieces, on one rank, behind it
 * (plan/syncbn.c), nor recomputation of those: networks are run node by node as built, then rewritten, and every gradient, statistic and
 * metric is compared. */
/* tests/run: beside others */
#include "../unit/ir_net.h"
#include "harness.h"
#include "plan/fuse.h"
#include "plan/recompute.h"
#include "plan/syncbn.h"
#include "test.h"

#define MAX_VALUES 100000

/* Same values for the same names, whichever graph. */
static void fill(struct harness *h, const struct gt_graph *g, int64_t classes)
{
	struct gt_err e;
	static double x[MAX_VALUES];
	for (gt_vid v = 0; v < g->nvalues; v++) {
		const struct gt_value *val = &g->values[v];
		int64_t n = gt_tdesc_count(&val->desc);
		if (val->producer >= 0 || n > MAX_VALUES)
			continue;
		/* the 16-bit copy of a parameter has the parameter's values */
		const char *name = val->kind == GT_V_WORK ? g->params[val->param].name : val->name;
		for (int64_t i = 0; i < n; i++) {
			double u = harness_uniform(name, i);
			x[i] = val->kind == GT_V_TARGET      ? (double)(i % classes)
			       : strstr(name, "running_var") ? 1 + u * u
			       : val->desc.dtype == GT_I64   ? 0
			                                     : u;
		}
		CHECK_OK(harness_put(h, v, x, &e), e);
	}
}

/* The same bits; of a NaN, whatever its bits. */
static bool same(const double *x, const double *y, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		if (memcmp(&x[i], &y[i], sizeof *x) != 0 && !(isnan(x[i]) && isnan(y[i])))
			return false;
	return true;
}

static void compare(struct harness *a, const struct gt_graph *ga, struct harness *b, const struct gt_graph *gb, const char *what)
{
	static double x[MAX_VALUES], y[MAX_VALUES];
	struct gt_err e;
	int compared = 0;
	for (int i = 0; i < ga->nparams; i++) {
		gt_vid u = ga->params[i].cls == GT_PARAM_BUFFER ? ga->params[i].value : ga->params[i].grad;
		gt_vid w = gb->params[i].cls == GT_PARAM_BUFFER ? gb->params[i].value : gb->params[i].grad;
		if (u < 0)
			continue;
		int64_t n = gt_tdesc_count(&ga->values[u].desc);
		CHECK_OK(harness_get(a, u, x, &e), e);
		CHECK_OK(harness_get(b, w, y, &e), e);
		CHECK_MSG(same(x, y, n), "%s: %s differs", what, ga->values[u].name);
		compared++;
	}
	struct gt_metrics m = {0}, k = {0};
	CHECK_OK(harness_metrics(a, ga->metrics, &m, &e), e);
	CHECK_OK(harness_metrics(b, gb->metrics, &k, &e), e);
	CHECK_MSG(!memcmp(&m, &k, sizeof m) || (isnan(m.loss) && isnan(k.loss) && m.weight == k.weight), "%s: loss %.17g, fused %.17g", what,
	          m.loss, k.loss);
	CHECK_MSG(compared > 0 || !ga->train, "%s: nothing was compared", what);
}

static struct gt_graph *graph(struct net *t, int64_t batch, enum gt_dtype dtype, bool train)
{
	struct gt_loss_spec loss = {.op = gt_op_find_loss("cross_entropy"), .attr = {.ignore_index = -100}};
	struct gt_graph *g = NULL;
	struct gt_err e = {0};
	if (gt_graph_build(t->a, &t->m, batch, dtype, train, &g, &e) != GT_OK || gt_graph_loss(g, &loss, &e) != GT_OK ||
	    (train && gt_graph_differentiate(g, &e) != GT_OK) || gt_graph_verify(g, &e) != GT_OK)
		test_fail(__FILE__, __LINE__, "%s", e.msg);
	return g;
}

static int lowered(const struct gt_graph *g)
{
	int n = 0;
	for (int i = 0; i < g->nnodes; i++)
		n += !gt_node_alias(g, &g->nodes[i]);
	return n;
}

enum way { FUSED, SYNCED, SYNCED_CHEAP, SYNCED_AGAIN, WAYS };

static int count(const struct gt_graph *g, enum gt_opcode code, bool backward)
{
	int n = 0;
	for (int i = 0; i < g->nnodes; i++)
		n += g->nodes[i].op->code == code && g->nodes[i].backward == backward;
	return n;
}

/* absorbed: nodes that fusion must make disappear in training; a pattern that stops matching is a failure too */
static void rewrite(struct net *t, struct gt_graph *g, enum way way, int absorbed, const char *name)
{
	struct gt_err e = {0};
	int before = lowered(g);
	CHECK_OK(gt_graph_fuse(g, &e), e);
	CHECK_MSG(!g->train || before - lowered(g) == absorbed, "%s: %d nodes absorbed, expected %d", name, before - lowered(g), absorbed);
	if (way == FUSED)
		return;
	int norms = count(g, GT_OP_BATCHNORM, false);
	CHECK_OK(gt_graph_sync_bn(g, GT_GROUP_WORLD, 1, g->batch, &e), e);
	CHECK_OK(gt_graph_verify(g, &e), e);
	CHECK_MSG(norms > 0 && !count(g, GT_OP_BATCHNORM, false) && count(g, GT_OP_COMM, false) == norms && count(g, GT_OP_COMM, true) == norms,
	          "%s: %d normalisations, %d and %d exchanges", name, norms, count(g, GT_OP_COMM, false), count(g, GT_OP_COMM, true));
	if (way == SYNCED)
		return;
	for (int i = 0; i < t->m.nlayers; i++)
		t->layer[i].recompute = way == SYNCED_AGAIN;
	CHECK_OK(gt_graph_recompute(g, t->layer, way == SYNCED_CHEAP, &e), e);
	CHECK_OK(gt_graph_verify(g, &e), e);
	CHECK_MSG(!absorbed || count(g, GT_OP_BATCHNORM_Y, true) > 0, "%s: nothing is made again", name);
	CHECK_MSG(count(g, GT_OP_COMM, true) == norms && !count(g, GT_OP_BATCHNORM_MERGE, true) && !count(g, GT_OP_BATCHNORM_STATS, true),
	          "%s: statistics are made again", name);
}

static void both_ways(struct net *t, int64_t classes, int absorbed, const char *what)
{
	static const enum gt_dtype dtypes[] = {GT_F32, GT_BF16};
	static const char *const ways[WAYS] = {"fused", "in pieces", "in pieces, cheap ones twice", "in pieces, all twice"};
	for (int d = 0; d < 2; d++)
		for (int i = 0; i <= WAYS; i++) { /* evaluation is fused only */
			bool train = i < WAYS;
			enum way way = train ? (enum way)i : FUSED;
			struct harness a, b;
			struct gt_err e = {0};
			struct gt_graph *ga = graph(t, 6, dtypes[d], train), *gb = graph(t, 6, dtypes[d], train);
			char name[96];
			snprintf(name, sizeof name, "%s %s %s, %s", what, gt_dtype_name(dtypes[d]), train ? "training" : "evaluation", ways[way]);
			rewrite(t, gb, way, absorbed, name);
			CHECK_OK(harness_open(&a, "cpu", &e), e);
			CHECK_OK(harness_open(&b, "cpu", &e), e);
			a.step_args = b.step_args = (struct gt_step_args){.step = 1, .stride = 1, .inv_weight = 1.0 / 6};
			CHECK_OK(harness_graph(&a, ga, &e), e);
			CHECK_OK(harness_graph(&b, gb, &e), e);
			fill(&a, ga, classes);
			fill(&b, gb, classes);
			CHECK_OK(harness_run(&a, 0, ga->nnodes, &e), e);
			CHECK_OK(harness_run(&b, 0, gb->nnodes, &e), e);
			compare(&a, ga, &b, gb, name);
			harness_close(&a);
			harness_close(&b);
		}
}

TEST(residual_blocks)
{
	struct net t;
	net_open(&t, 3, 8, 8);
	net_add(&t, "conv1", "conv2d", "out=12 kernel=3 padding=1 bias=0", NULL);
	net_add(&t, "bn1", "batchnorm2d", NULL, NULL);
	net_add(&t, "r1", "relu", NULL, NULL);
	net_add(&t, "conv2", "conv2d", "out=12 kernel=3 padding=1 bias=0", NULL);
	net_add(&t, "bn2", "batchnorm2d", NULL, NULL);
	net_add(&t, "short", "identity", NULL, "r1");
	net_add(&t, "sum", "add", NULL, "bn2 short");
	net_add(&t, "r2", "relu", NULL, NULL);
	net_add(&t, "conv3", "conv2d", "out=20 kernel=3 stride=2 padding=1 bias=0", NULL);
	net_add(&t, "bn3", "batchnorm2d", NULL, NULL);
	net_add(&t, "down", "shortcut", "out=20 stride=2", "r2");
	net_add(&t, "sum2", "add", NULL, "bn3 down");
	net_add(&t, "r3", "relu", NULL, NULL);
	net_add(&t, "gap", "global_avgpool", NULL, NULL);
	net_add(&t, "flat", "flatten", NULL, NULL);
	net_add(&t, "fc", "linear", "out=5", NULL);
	/* forward: 3 relus and 2 sums; backward: 3 masks */
	both_ways(&t, 5, 8, "residual");
	net_close(&t);
}

TEST(biases_and_masks)
{
	struct net t;
	net_open(&t, 2, 7, 7);
	net_add(&t, "conv", "conv2d", "out=9 kernel=3", NULL);
	net_add(&t, "r0", "relu", NULL, NULL);
	net_add(&t, "flat", "flatten", NULL, NULL);
	net_add(&t, "fc1", "linear", "out=33", NULL);
	net_add(&t, "r1", "relu", NULL, NULL);
	net_add(&t, "fc2", "linear", "out=17 bias=0", NULL);
	net_add(&t, "bn", "batchnorm1d", "affine=0", NULL);
	net_add(&t, "r2", "relu", NULL, NULL);
	net_add(&t, "fc3", "linear", "out=4", NULL);
	/* forward: 3 relus; backward: r1's mask in fc2.dx, r2's in fc3.dx; r0's stays behind flatten */
	both_ways(&t, 4, 5, "biases");
	net_close(&t);
}

/* What must not be fused: a relu whose input others read, a sum that is the output's only way, a sum of three. */
TEST(left_alone)
{
	struct net t;
	net_open(&t, 2, 6, 6);
	net_add(&t, "conv", "conv2d", "out=8 kernel=3 padding=1", NULL);
	net_add(&t, "r", "relu", NULL, NULL);
	net_add(&t, "both", "mul", NULL, "conv r");
	net_add(&t, "bn", "batchnorm2d", NULL, NULL);
	net_add(&t, "s", "silu", NULL, "both");
	net_add(&t, "three", "add", NULL, "bn both s");
	net_add(&t, "flat", "flatten", NULL, NULL);
	net_add(&t, "fc", "linear", "out=3", NULL);
	both_ways(&t, 3, 0, "unfused");
	net_close(&t);
}

/* One NaN in a weight or a bias before a relu: the fused network has it where the network as built has it, in the loss too. */
static void poisoned(struct net *t, int64_t batch, int64_t classes, const char *param, const char *what)
{
	static const enum gt_dtype dtypes[] = {GT_F32, GT_BF16};
	static double x[MAX_VALUES];
	for (int d = 0; d < 2; d++) {
		struct harness h[2];
		struct gt_graph *g[2];
		struct gt_metrics m[2] = {0};
		struct gt_err e = {0};
		for (int k = 0; k < 2; k++) {
			g[k] = graph(t, batch, dtypes[d], true);
			if (k)
				CHECK_OK(gt_graph_fuse(g[k], &e), e);
			CHECK_OK(harness_open(&h[k], "cpu", &e), e);
			h[k].step_args = (struct gt_step_args){.step = 1, .stride = 1, .inv_weight = 1.0 / (double)batch};
			CHECK_OK(harness_graph(&h[k], g[k], &e), e);
			fill(&h[k], g[k], classes);
			for (gt_vid v = 0; v < g[k]->nvalues; v++) {
				const struct gt_value *val = &g[k]->values[v];
				if (val->producer >= 0 || (val->kind != GT_V_WORK && val->kind != GT_V_PARAM) ||
				    strcmp(g[k]->params[val->param].name, param) != 0)
					continue;
				CHECK_OK(harness_get(&h[k], v, x, &e), e);
				x[gt_tdesc_count(&val->desc) / 2] = NAN;
				CHECK_OK(harness_put(&h[k], v, x, &e), e);
			}
			CHECK_OK(harness_run(&h[k], 0, g[k]->nnodes, &e), e);
			CHECK_OK(harness_metrics(&h[k], g[k]->metrics, &m[k], &e), e);
			CHECK_MSG(isnan(m[k].loss), "%s %s, a NaN in %s: the loss of the %s network is %g", what, gt_dtype_name(dtypes[d]), param,
			          k ? "fused" : "plain", m[k].loss);
		}
		compare(&h[0], g[0], &h[1], g[1], what);
		harness_close(&h[0]);
		harness_close(&h[1]);
	}
}

TEST(nan_in_linear_layers)
{
	struct net t;
	net_open(&t, 1, 6, 6);
	net_add(&t, "flat", "flatten", NULL, NULL);
	net_add(&t, "fc1", "linear", "out=33", NULL);
	net_add(&t, "r1", "relu", NULL, NULL);
	net_add(&t, "fc2", "linear", "out=40", NULL);
	net_add(&t, "bn", "batchnorm1d", NULL, NULL);
	net_add(&t, "r2", "relu", NULL, NULL);
	net_add(&t, "fc3", "linear", "out=4", NULL);
	for (int64_t batch = 6; batch <= 520; batch += 514) { /* own kernels; oneDNN's from 513 on, and in bf16 */
		poisoned(&t, batch, 4, "fc1.weight", "linear");
		poisoned(&t, batch, 4, "fc1.bias", "linear");
		poisoned(&t, batch, 4, "bn.weight", "linear");
	}
	net_close(&t);
}

TEST(nan_in_convolutions)
{
	struct net t;
	net_open(&t, 1, 64, 64);
	net_add(&t, "conv1", "conv2d", "out=16 kernel=3 padding=1", NULL);
	net_add(&t, "r1", "relu", NULL, NULL);
	net_add(&t, "pool", "maxpool2d", "kernel=4", NULL);
	net_add(&t, "conv2", "conv2d", "out=16 kernel=3 padding=1", NULL);
	net_add(&t, "bn2", "batchnorm2d", NULL, NULL);
	net_add(&t, "sum", "add", NULL, "bn2 pool");
	net_add(&t, "r2", "relu", NULL, NULL);
	net_add(&t, "gap", "global_avgpool", NULL, NULL);
	net_add(&t, "flat", "flatten", NULL, NULL);
	net_add(&t, "fc", "linear", "out=5", NULL);
	for (int64_t batch = 3; batch <= 16; batch += 13) { /* 16: the output of conv1 is made in two parts */
		poisoned(&t, batch, 5, "conv1.weight", "convolution");
		poisoned(&t, batch, 5, "conv1.bias", "convolution");
		poisoned(&t, batch, 5, "bn2.bias", "convolution");
	}
	net_close(&t);
}

/* One value a channel on all ranks together has no variance. */
TEST(refuses_one_value_in_all)
{
	struct net t;
	struct gt_err e = {0};
	struct gt_graph *g;
	struct gt_loss_spec loss = {.op = gt_op_find_loss("cross_entropy"), .attr = {.ignore_index = -100}};
	net_open(&t, 4, 1, 1);
	net_add(&t, "flat", "flatten", NULL, NULL);
	net_add(&t, "bn1", "batchnorm1d", NULL, NULL);
	CHECK(gt_graph_build(t.a, &t.m, 1, GT_F32, true, &g, &e) == GT_ECONFIG);
	t.m.sync_bn = true;
	e = (struct gt_err){0};
	CHECK_OK(gt_graph_build(t.a, &t.m, 1, GT_F32, true, &g, &e), e);
	CHECK_OK(gt_graph_loss(g, &loss, &e), e);
	CHECK_OK(gt_graph_differentiate(g, &e), e);
	CHECK(gt_graph_sync_bn(g, GT_GROUP_DATA, 2, 1, &e) == GT_ECONFIG);
	CHECK_MSG(strstr(e.msg, "bn1: expected more than one value per channel"), "%s", e.msg);
	net_close(&t);
}

RUN_TESTS()
