/* Running statistics that wait for all micro-batches of a batch (plan/syncbn.h), as plans of one space; what the passes refuse. */
#include "../unit/ir_net.h"
#include "harness.h"
#include "plan/fuse.h"
#include "plan/syncbn.h"
#include "test.h"

/* Two micro-batches of a network whose first layer is a batchnorm, as plans of one space: its running statistics after
 * gt_defer_bn_prepare's calls are those of all images, with the biased variance. synced: as one of the ranks of sync_bn, of which there is
 * one. */
static void two_plans(bool synced)
{
	enum { C = 3, P = 4, N = 6 };
	struct net t;
	struct harness h;
	struct gt_err e = {0};
	struct gt_space *s = NULL;
	struct gt_plan *plan[2] = {NULL, NULL};
	struct gt_loss_spec loss = {.op = gt_op_find_loss("cross_entropy"), .attr = {.ignore_index = -100}};
	float x[N * P * C];
	int32_t target[N] = {0, 1, 0, 1, 1, 0};
	struct gt_call *end;
	int n;
	net_open(&t, C, 2, 2);
	net_add(&t, "bn", "batchnorm2d", "momentum=0.25", NULL);
	net_add(&t, "r", "relu", NULL, NULL);
	net_add(&t, "bn2", "batchnorm2d", "track_running_stats=0", NULL);
	net_add(&t, "flat", "flatten", NULL, NULL);
	net_add(&t, "fc", "linear", "out=2", NULL);
	CHECK_OK(harness_open(&h, "cpu", &e), e);
	CHECK_OK(gt_space_open(h.be, h.dev, 0, &s, &e), e);
	for (int i = 0; i < 2 && !e.code; i++) {
		struct gt_graph *g;
		CHECK_OK(gt_graph_build(t.a, &t.m, i ? 2 : 4, GT_F32, true, &g, &e), e);
		CHECK_OK(gt_graph_loss(g, &loss, &e), e);
		CHECK_OK(gt_graph_differentiate(g, &e), e);
		CHECK_OK(gt_graph_fuse(g, &e), e);
		if (synced)
			CHECK_OK(gt_graph_sync_bn(g, GT_GROUP_DATA, 1, g->batch, &e), e);
		CHECK_OK(gt_graph_defer_bn(g, &e), e);
		CHECK_OK(gt_graph_verify(g, &e), e);
		CHECK_OK(gt_plan_make(s, g, i, true, &plan[i], &e), e);
	}
	CHECK_OK(gt_defer_bn_prepare(s, plan[0]->graph, &end, &n, &e), e);
	CHECK_MSG(n == 1, "%d normalisations wait, not 1", n);
	CHECK_OK(gt_space_alloc(s, &e), e);
	if (!e.code) {
		int mean = 2, var = 3; /* behind bn.weight and bn.bias */
		gt_defer_bn_bind(s, plan[0]->graph, end, n);
		for (int i = 0; i < N * P * C; i++)
			x[i] = (float)harness_uniform("deferred/x", i) + (float)(i % C);
		float want_mean[C], want_var[C], m0[C], v0[C], *rm = gt_space_param(s, mean, GT_A_BUFFER, 0),
		                                               *rv = gt_space_param(s, var, GT_A_BUFFER, 0);
		CHECK(!strcmp(s->layout.first->params[mean].name, "bn.running_mean") &&
		      !strcmp(s->layout.first->params[var].name, "bn.running_var"));
		for (int c = 0; c < C; c++) {
			double m = 0, q = 0;
			for (int i = c; i < N * P * C; i += C)
				m += x[i];
			m /= N * P;
			for (int i = c; i < N * P * C; i += C)
				q += (x[i] - m) * (x[i] - m);
			rm[c] = m0[c] = (float)c;
			rv[c] = v0[c] = 2;
			want_mean[c] = (float)(0.75 * c + 0.25 * m);
			want_var[c] = (float)(0.75 * 2 + 0.25 * q / (N * P));
		}
		for (int batch = 0; batch < 2; batch++) { /* the second one starts with parts that the first one has left */
			memcpy(rm, m0, sizeof m0);
			memcpy(rv, v0, sizeof v0);
			for (int i = 0; i < 2; i++) {
				gt_plan_bind(plan[i]);
				gt_plan_bind_batch(plan[i], (void *[]){x + (i ? 4 * P * C : 0)}, target + (i ? 4 : 0));
				for (int k = 0; k < plan[i]->ncalls; k++) {
					struct gt_call *c = &plan[i]->call[k];
					struct gt_launch a = {.in = c->in, .out = c->out, .scratch = c->work, .step_args = &h.step_args};
					if (c->comm)
						memcpy(c->out[0], c->in[0], c->count * sizeof(double));
					else
						CHECK_OK(h.be->launch(h.dev, c->kernel, &a, &e), e);
				}
				CHECK_MSG(!memcmp(rm, m0, sizeof m0) && !memcmp(rv, v0, sizeof v0), "a micro-batch changes the running statistics");
			}
			struct gt_launch a = {.in = end->in, .out = end->out, .scratch = end->work, .step_args = &h.step_args};
			CHECK_OK(h.be->launch(h.dev, end->kernel, &a, &e), e);
			for (int c = 0; c < C; c++) /* f32 sums of 16 numbers below 3 and 2 roundings: 4 units of 2^-24 of numbers below 4 */
				CHECK_MSG(fabsf(rm[c] - want_mean[c]) <= 0x1p-20f && fabsf(rv[c] - want_var[c]) <= 0x1p-20f,
				          "channel %d: %.9g and %.9g, not %.9g and %.9g", c, (double)rm[c], (double)rv[c], (double)want_mean[c],
				          (double)want_var[c]);
			CHECK(*(int64_t *)gt_space_param(s, mean + 2, GT_A_BUFFER, 0) == batch + 1);
		}
		gt_defer_bn_close(s, end, n);
	}
	for (int i = 0; i < 2; i++)
		gt_plan_close(plan[i]);
	gt_space_close(s);
	harness_close(&h);
	net_close(&t);
}

TEST(deferred_in_plans)
{
	two_plans(false);
}

TEST(deferred_and_synced_in_plans)
{
	two_plans(true);
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
