/* Which batch normalisations an evaluation folds into the layer before it, and which residuals and activations a convolution takes over, on
 * the CPU backend. tests/cli/test_norm_folding.sh compares the numbers. */
#include "base/plugin.h"
#include "ir_net.h"
#include "plan/fuse.h"
#include "plan/plan.h"
#include "test.h"

static const struct gt_backend *be;

static struct gt_space *space_open(bool constant)
{
	void *p;
	struct gt_err e;
	struct gt_dev *dev;
	struct gt_space *s;
	struct gt_dev_opts o = {.threads = 1, .winograd = true};
	if (gt_plugin_open("cpu", "gt_backend_cpu", &p, &e) != GT_OK || ((const struct gt_backend *)p)->open(&o, &dev, &e) != GT_OK ||
	    gt_space_open(p, dev, 0, &s, &e) != GT_OK) {
		test_fail(__FILE__, __LINE__, "%s", e.msg);
		return NULL;
	}
	be = p;
	s->constant = constant;
	return s;
}

static void space_close(struct gt_space *s)
{
	struct gt_dev *dev = s->dev;
	gt_space_close(s);
	be->close(dev);
}

static int count(const struct gt_graph *g, enum gt_opcode code)
{
	int n = 0;
	for (int i = 0; i < g->nnodes; i++)
		n += g->nodes[i].op->code == code;
	return n;
}

/* Rewrites the evaluation of t, or its training graph, as a session does, and plans it. Returns the number of batch normalisations left. */
static int norms_left(struct net *t, bool constant, bool train, enum gt_dtype compute)
{
	struct gt_loss_spec loss = {.op = gt_op_find_loss("cross_entropy"), .attr = {.ignore_index = -100}};
	struct gt_space *s = space_open(constant);
	struct gt_plan *p = NULL;
	struct gt_err e;
	CHECK_OK(gt_graph_build(t->a, &t->m, 4, compute, train, &t->g, &e), e);
	CHECK_OK(gt_graph_loss(t->g, &loss, &e), e);
	if (train)
		CHECK_OK(gt_graph_differentiate(t->g, &e), e);
	CHECK_OK(gt_graph_fuse(t->g, &e), e);
	CHECK_OK(gt_plan_fold_norms(s, t->g, NULL, false, &e), e);
	CHECK_OK(gt_plan_fuse_for_backend(s, t->g, false, false, &e), e);
	CHECK_OK(gt_plan_make(s, t->g, false, false, &p, &e), e);
	gt_plan_close(p);
	space_close(s);
	return count(t->g, GT_OP_BATCHNORM);
}

static void end_net(struct net *t)
{
	net_add(t, "flat", "flatten", NULL, NULL);
	net_add(t, "fc", "linear", "out=5", NULL);
}

static void residual_net(struct net *t)
{
	net_open(t, 16, 12, 12);
	net_add(t, "conv1", "conv2d", "out=16 kernel=3 padding=1 bias=0", NULL);
	net_add(t, "bn1", "batchnorm2d", NULL, NULL);
	net_add(t, "r1", "relu", NULL, NULL);
	net_add(t, "conv2", "conv2d", "out=16 kernel=3 padding=1 groups=16", NULL);
	net_add(t, "bn2", "batchnorm2d", "affine=0", NULL);
	net_add(t, "act", "relu6", NULL, NULL);
	net_add(t, "conv3", "conv2d", "out=16 kernel=1", NULL);
	net_add(t, "bn3", "batchnorm2d", NULL, NULL);
	net_add(t, "sum", "add", NULL, "bn3 r1");
	net_add(t, "r2", "relu", NULL, NULL);
	net_add(t, "flat", "flatten", NULL, NULL);
	net_add(t, "fc1", "linear", "out=8", NULL);
	net_add(t, "bn4", "batchnorm1d", NULL, NULL);
	net_add(t, "r3", "relu", NULL, NULL);
	net_add(t, "fc", "linear", "out=5", NULL);
}

TEST(evaluations_fold)
{
	struct net t;
	residual_net(&t);
	CHECK_MSG(norms_left(&t, true, false, GT_F32) == 0, "%d normalisations left", count(t.g, GT_OP_BATCHNORM));
	CHECK(t.g->nfolds == 4);
	CHECK(count(t.g, GT_OP_RELU6) == 0 && count(t.g, GT_OP_CONV2D) == 3);
	int lowered = 0;
	for (int i = 0; i < t.g->nnodes; i++) {
		const struct gt_node *n = &t.g->nodes[i];
		lowered += !gt_node_alias(t.g, n);
		if (n->op->code != GT_OP_CONV2D || strcmp(n->name, "conv3") != 0)
			continue;
		CHECK(((const struct gt_attr_conv2d *)n->attr)->act == GT_ACT_RELU);
		CHECK(gt_node_operand(n, "res") >= 0);
		CHECK(!strcmp(t.g->values[gt_node_operand(n, "b")].name, "bn3.running_mean"));
	}
	CHECK_MSG(lowered == 7, "%d calls", lowered); /* three convolutions, flatten, two linear layers, the loss */
	for (int i = 0; i < t.g->nfolds; i++) {
		const struct gt_norm_fold *f = &t.g->fold[i];
		const char *w = t.g->params[f->w].name;
		CHECK((f->gamma < 0) == !strcmp(w, "conv2.weight"));
		CHECK((f->b < 0) == !strcmp(w, "conv1.weight"));
	}
	net_close(&t);
}

/* Builds the evaluation of t for a batch, with the folds of `like`, and plans it in s. */
static struct gt_plan *plan_batch(struct net *t, struct gt_space *s, int64_t batch, const struct gt_graph *like)
{
	struct gt_plan *p = NULL;
	struct gt_err e;
	CHECK_OK(gt_graph_build(t->a, &t->m, batch, GT_F32, false, &t->g, &e), e);
	CHECK_OK(gt_graph_fuse(t->g, &e), e);
	CHECK_OK(gt_plan_fold_norms(s, t->g, like, false, &e), e);
	CHECK_OK(gt_plan_fuse_for_backend(s, t->g, false, false, &e), e);
	CHECK_OK(gt_plan_make(s, t->g, false, false, &p, &e), e);
	return p;
}

/* All plans of a session have the folds of its first graph, whatever the backend prefers for their batches. */
TEST(same_folds)
{
	static const int64_t batch[] = {64, 1, 2, 3, 5, 8, 13, 100};
	struct gt_plan *p[8];
	struct net t;
	residual_net(&t);
	struct gt_space *s = space_open(true);
	p[0] = plan_batch(&t, s, batch[0], NULL);
	struct gt_graph *first = t.g, none = {0};
	for (int i = 1; i < 8; i++) {
		p[i] = plan_batch(&t, s, batch[i], first);
		CHECK_MSG(t.g->nfolds == first->nfolds, "batch %d: %d folds", (int)batch[i], t.g->nfolds);
		for (int k = 0; k < t.g->nfolds; k++)
			CHECK(t.g->fold[k].w == first->fold[k].w && t.g->fold[k].mean == first->fold[k].mean);
	}
	struct gt_plan *q = plan_batch(&t, s, 4, &none);
	CHECK_MSG(!t.g->nfolds && count(t.g, GT_OP_BATCHNORM) == 4, "%d folds although the first graph has none", t.g->nfolds);
	gt_plan_close(q);
	for (int i = 0; i < 8; i++)
		gt_plan_close(p[i]);
	space_close(s);
	net_close(&t);
}

/* Weights that change, training, and 16-bit types: every normalisation is left. */
TEST(left_alone)
{
	struct net t;
	residual_net(&t);
	CHECK(norms_left(&t, false, false, GT_F32) == 4 && t.g->nfolds == 0);
	CHECK(norms_left(&t, true, true, GT_F32) == 4 && t.g->nfolds == 0);
	CHECK(norms_left(&t, true, false, GT_BF16) == 4 && t.g->nfolds == 0);
	net_close(&t);
}

/* Another node reads the convolution's output; a relu or a pooling is between both; the statistics are those of each batch. */
TEST(illegal_folds)
{
	static const char *const keys[] = {NULL, "track_running_stats=0"};
	struct net t;
	for (int i = 0; i < 2; i++) {
		net_open(&t, 3, 8, 8);
		net_add(&t, "conv1", "conv2d", "out=8 kernel=3 padding=1", NULL);
		net_add(&t, "bn1", "batchnorm2d", keys[i], NULL);
		if (!i)
			net_add(&t, "both", "mul", NULL, "conv1 bn1");
		net_add(&t, "conv2", "conv2d", "out=8 kernel=3 padding=1", NULL);
		net_add(&t, "relu", "relu", NULL, NULL);
		net_add(&t, "bn2", "batchnorm2d", NULL, NULL);
		net_add(&t, "conv3", "conv2d", "out=8 kernel=3 padding=1", NULL);
		net_add(&t, "pool", "maxpool2d", "kernel=2", NULL);
		net_add(&t, "bn3", "batchnorm2d", NULL, NULL);
		end_net(&t);
		CHECK_MSG(norms_left(&t, true, false, GT_F32) == 3 && t.g->nfolds == 0, "%d left", count(t.g, GT_OP_BATCHNORM));
		net_close(&t);
	}
}

/* A convolution without a normalisation adds a residual and applies each of these activations, unless another node reads its output. */
TEST(epilogues)
{
	static const char *const acts[] = {"relu6", "silu", "hardswish", "gelu"};
	struct net t;
	for (size_t i = 0; i < sizeof acts / sizeof *acts; i++) {
		net_open(&t, 16, 8, 8);
		net_add(&t, "conv1", "conv2d", "out=16 kernel=3 padding=1", NULL);
		net_add(&t, "sum", "add", NULL, "conv1 input");
		net_add(&t, "act", acts[i], NULL, NULL);
		net_add(&t, "conv2", "conv2d", "out=16 kernel=3 padding=1", NULL);
		net_add(&t, "act2", acts[i], NULL, NULL);
		net_add(&t, "both", "mul", NULL, "conv2 act2");
		end_net(&t);
		norms_left(&t, false, false, GT_F32);
		CHECK_MSG(count(t.g, GT_OP_ADD) == 0 && count(t.g, GT_OP_CONV2D) == 2, "%s", acts[i]);
		CHECK_MSG(count(t.g, gt_op_find_layer(acts[i])->code) == 1, "%s", acts[i]);
		net_close(&t);
	}
}

RUN_TESTS()
