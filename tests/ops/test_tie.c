/* Tied weights in a whole graph: the gradients of all parameters are those of central differences in f64, also when the graph is rewritten
 * for pipeline stages (gt_graph_send_tied), which changes no bit of them. */
/* tests/run: beside others */
#include "../unit/ir_net.h"
#include "harness.h"
#include "plan/pipeline_partition.h"
#include "test.h"

enum { BATCH = 5, TOKENS = 4, WORDS = 7, WIDTH = 6, LAYERS = 9, MOST = 64 };

/* A table that is a second table and the output layer, and two linear layers with one weight. */
static enum gt_code build(struct net *t, struct gt_err *e)
{
	static const struct gt_model_input tokens = {.name = "tokens", .type = GT_INPUT_TOKENS, .shape = {TOKENS}, .vocabulary = WORDS};
	struct gt_loss_spec loss = {.op = gt_op_find_loss("cross_entropy"), .attr = {.ignore_index = -100}};
	net_open(t, 0, 0, 0);
	t->m.inputs = &tokens;
	t->m.ninputs = 1;
	net_add(t, "word", "embedding", "embedding_dim=6", "tokens");
	net_add(t, "again", "embedding", "embedding_dim=6", "tokens")->tie = "word";
	net_add(t, "fc1", "linear", "out=6", "word");
	net_add(t, "act", "tanh", NULL, NULL);
	net_add(t, "sum", "add", NULL, "act again");
	net_add(t, "fc2", "linear", "out=6", NULL)->tie = "fc1";
	net_add(t, "gelu", "gelu", NULL, NULL);
	net_add(t, "mean", "pool_tokens", NULL, NULL);
	net_add(t, "out", "linear", "out=7", NULL)->tie = "word";
	GT_TRY(gt_graph_build(t->a, &t->m, BATCH, GT_F64, true, &t->g, e));
	GT_TRY(gt_graph_loss(t->g, &loss, e));
	GT_TRY(gt_graph_differentiate(t->g, e));
	return gt_graph_verify(t->g, e);
}

static enum gt_code fill(struct harness *h, struct gt_err *e)
{
	const struct gt_graph *g = h->g;
	double x[MOST];
	for (gt_vid v = 0; v < g->nvalues; v++) {
		const struct gt_value *val = &g->values[v];
		if (val->producer >= 0)
			continue;
		for (int64_t i = 0; i < gt_tdesc_count(&val->desc); i++)
			x[i] = val->desc.dtype == GT_I32 ? (double)(harness_raw(val->name, i) % WORDS) : harness_uniform(val->name, i);
		GT_TRY(harness_put(h, v, x, e));
	}
	return GT_OK;
}

/* Sets *loss to the sum of the losses, whose gradients a run makes. */
static enum gt_code run(struct harness *h, double *loss, struct gt_err *e)
{
	struct gt_metrics m;
	h->step_args = (struct gt_step_args){.step = 1, .stride = 1, .inv_weight = 1};
	GT_TRY(harness_zero(h, h->g->metrics, e));
	GT_TRY(harness_run(h, 0, h->g->nnodes, e));
	GT_TRY(harness_metrics(h, h->g->metrics, &m, e));
	*loss = m.loss;
	return GT_OK;
}

TEST(tie_differences)
{
	const double eps = 1e-6, atol = 1e-5, rtol = 1e-3; /* torch.autograd.gradcheck's */
	struct gt_err e = {0};
	struct harness ref, *h = &ref;
	struct net t;
	double loss, hi, lo, x[MOST], grad[MOST], worst = 0;
	int tied = 0;
	CHECK_OK(harness_open(h, "ref", &e), e);
	CHECK_OK(build(&t, &e), e);
	CHECK_OK(harness_graph(h, t.g, &e), e);
	CHECK_OK(fill(h, &e), e);
	CHECK_OK(run(h, &loss, &e), e);
	CHECK(t.g->nparams == 5); /* word.weight, fc1.weight and the biases of fc1, fc2 and out */
	for (int i = 0; i < t.g->nparams; i++) {
		const struct gt_param *p = &t.g->params[i];
		tied += p->tied;
		CHECK_OK(harness_get(h, p->value, x, &e), e);
		CHECK_OK(run(h, &loss, &e), e);
		CHECK_OK(harness_get(h, p->grad, grad, &e), e);
		for (int64_t k = 0; k < gt_tdesc_count(&p->desc); k++) {
			double old = x[k];
			x[k] = old + eps;
			CHECK_OK(harness_put(h, p->value, x, &e), e);
			CHECK_OK(run(h, &hi, &e), e);
			x[k] = old - eps;
			CHECK_OK(harness_put(h, p->value, x, &e), e);
			CHECK_OK(run(h, &lo, &e), e);
			x[k] = old;
			double want = (hi - lo) / (2 * eps), ratio = fabs(grad[k] - want) / (atol + rtol * fabs(want));
			CHECK_MSG(ratio <= 1, "d.%s[%lld] = %.9g, differences give %.9g", p->name, (long long)k, grad[k], want);
			worst = ratio > worst ? ratio : worst;
		}
		CHECK_OK(harness_put(h, p->value, x, &e), e);
	}
	CHECK(tied == 2);
	printf("# gradients of tied weights against differences: %.1e of the tolerance\n", worst);
	harness_close(h);
	net_close(&t);
}

/* Each cut of the layers into two stages, and a stage for each layer. */
TEST(tie_stages)
{
	struct gt_err e = {0};
	struct harness ref, *h = &ref;
	double want[5][MOST], got[MOST], loss;
	int stage_of[LAYERS], copies = 0;
	CHECK_OK(harness_open(h, "ref", &e), e);
	for (int cut = 0; cut <= LAYERS; cut++) { /* 0: one stage */
		struct net t;
		CHECK_OK(build(&t, &e), e);
		for (int i = 0; i < LAYERS; i++)
			stage_of[i] = cut == LAYERS ? i : cut && i >= cut;
		int before = t.g->nnodes;
		CHECK_OK(gt_graph_send_tied(t.g, stage_of, cut == LAYERS ? LAYERS : 1 + !!cut, &e), e);
		copies += t.g->nnodes - before;
		CHECK(cut || t.g->nnodes == before);
		CHECK_OK(harness_graph(h, t.g, &e), e);
		CHECK_OK(fill(h, &e), e);
		CHECK_OK(run(h, &loss, &e), e);
		for (int i = 0; i < t.g->nparams; i++) {
			CHECK_OK(harness_get(h, t.g->params[i].grad, got, &e), e);
			size_t bytes = gt_tdesc_bytes(&t.g->params[i].desc);
			if (!cut)
				memcpy(want[i], got, bytes);
			CHECK_MSG(!memcmp(want[i], got, bytes), "cut %d: d.%s has other bits", cut, t.g->params[i].name);
		}
		harness_drop(h);
		net_close(&t);
	}
	/* the table is copied if `again` or `out` is behind the cut, the weight of fc1 if fc2 is and fc1 is not: cuts 1-8, cuts 3-5, all cut */
	harness_close(h);
	CHECK_MSG(copies == 8 + 3 + 2, "%d copies", copies);
}

RUN_TESTS()
