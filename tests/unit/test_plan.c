/* Plans on the null backend: memory that no two live tensors share, layouts, parameters. */
#include "base/plugin.h"
#include "ir_net.h"
#include "plan/program.h"
#include "test.h"

static struct gt_space *space_on(const char *backend, int nstates)
{
	void *p;
	struct gt_err e;
	struct gt_dev *dev;
	struct gt_space *s;
	struct gt_dev_opts o = {0};
	char symbol[32];
	snprintf(symbol, sizeof symbol, "gt_backend_%s", backend);
	if (gt_plugin_open(backend, symbol, &p, &e) != GT_OK || ((const struct gt_backend *)p)->open(&o, &dev, &e) != GT_OK ||
	    gt_space_open(p, dev, nstates, &s, &e) != GT_OK) {
		test_fail(__FILE__, __LINE__, "%s", e.msg);
		return NULL;
	}
	return s;
}

static struct gt_space *space_open(int nstates)
{
	return space_on("null", nstates);
}

static void space_close(struct gt_space *s)
{
	const struct gt_backend *be = s->be;
	struct gt_dev *dev = s->dev;
	gt_space_close(s);
	be->close(dev);
}

static void residual_net(struct net *t)
{
	net_open(t, 3, 16, 16);
	net_add(t, "conv1", "conv2d", "out=8 kernel=3 padding=1 bias=0", NULL);
	net_add(t, "bn1", "batchnorm2d", NULL, NULL);
	net_add(t, "r1", "relu", NULL, NULL);
	net_add(t, "conv2", "conv2d", "out=8 kernel=3 padding=1", NULL);
	net_add(t, "bn2", "batchnorm2d", NULL, NULL);
	net_add(t, "add", "add", NULL, "bn2 r1");
	net_add(t, "r2", "relu", NULL, NULL);
	net_add(t, "drop", "dropout", "p=0.5", NULL);
	net_add(t, "pool", "maxpool2d", "kernel=2", NULL);
	net_add(t, "silu", "silu", NULL, NULL);
	net_add(t, "cat", "concat", NULL, "silu pool");
	net_add(t, "gap", "global_avgpool", NULL, NULL);
	net_add(t, "flat", "flatten", NULL, NULL);
	net_add(t, "fc", "linear", "out=10", NULL);
}

static bool lower(struct net *t, struct gt_space *s, int64_t batch, bool train, bool acc, struct gt_plan **p)
{
	struct gt_loss_spec loss = {.op = gt_op_find_loss("cross_entropy"), .attr = {.ignore_index = -100}};
	struct gt_err e;
	if (gt_graph_build(t->a, &t->m, batch, GT_F32, train, &t->g, &e) != GT_OK || gt_graph_loss(t->g, &loss, &e) != GT_OK ||
	    (train && gt_graph_differentiate(t->g, &e) != GT_OK) || gt_plan_make(s, t->g, acc, false, p, &e) != GT_OK) {
		test_fail(__FILE__, __LINE__, "%s", e.msg);
		return false;
	}
	return true;
}

/* The value whose description v merely repeats: what a reader of v really reads. */
static gt_vid source(const struct gt_graph *g, gt_vid v)
{
	for (;;) {
		int i = g->values[v].producer;
		if (i < 0 || !gt_node_alias(g, &g->nodes[i]))
			return v;
		v = g->nodes[i].in[0];
	}
}

/* Runs the plan on names instead of numbers: every 256 bytes remember which value was written there last. */
static void check_memory(const struct gt_plan *p)
{
	const struct gt_graph *g = p->graph;
	size_t cells = p->act.bytes / 256 + 1;
	int *owner = malloc(cells * sizeof *owner);
	for (size_t i = 0; i < cells; i++)
		owner[i] = -1;
	for (int c = 0; c < p->ncalls; c++) {
		const struct gt_node *n = &g->nodes[p->call[c].node];
		for (int pass = 0; pass < 2; pass++)
			for (int k = 0; k < (pass ? n->nout : n->nin); k++) {
				gt_vid v = pass ? n->out[k] : n->in[k];
				if (v < 0 || g->values[source(g, v)].kind != GT_V_ACT)
					continue;
				v = source(g, v);
				size_t at = p->slot[p->slot[v].root].offset / 256, end = at + (gt_tdesc_bytes(&g->values[v].desc) + 255) / 256;
				CHECK_MSG(end * 256 <= p->act.bytes + 255, "%s lies outside", g->values[v].name);
				for (size_t i = at; i < end; i++) {
					if (pass)
						owner[i] = v;
					else if (owner[i] != v) {
						test_fail(__FILE__, __LINE__, "%s reads %s, but there lies %s", n->name, g->values[v].name,
						          owner[i] < 0 ? "nothing" : g->values[owner[i]].name);
						i = end;
					}
				}
			}
		for (int k = 0; k < n->nout; k++) /* two outputs of one node must not overlap */
			for (int j = 0; j < k; j++)
				if (n->out[k] >= 0 && n->out[j] >= 0 && g->values[n->out[k]].kind == GT_V_ACT && g->values[n->out[j]].kind == GT_V_ACT)
					CHECK(owner[p->slot[p->slot[n->out[j]].root].offset / 256] == n->out[j]);
	}
	free(owner);
}

/* The lower bound of the memory of activations, from the operands of the calls: a block is in use from the first call that names one of its
 * values to the last one, and the model's output until the end. */
static size_t live_bytes(const struct gt_plan *p)
{
	const struct gt_graph *g = p->graph;
	size_t most = 0;
	for (int at = 0; at < p->ncalls; at++) {
		size_t sum = p->call[at].scratch;
		for (gt_vid r = 0; r < g->nvalues; r++) {
			bool before = false, after = g->output >= 0 && p->slot[g->output].root == r;
			for (int c = 0; c < p->ncalls; c++) {
				const struct gt_node *n = &g->nodes[p->call[c].node];
				for (int k = 0; k < n->nin + n->nout; k++) {
					gt_vid v = k < n->nin ? n->in[k] : n->out[k - n->nin];
					if (v >= 0 && p->slot[v].root == r && g->values[r].kind == GT_V_ACT) {
						before |= c <= at;
						after |= c >= at;
					}
				}
			}
			sum += before && after ? gt_tdesc_bytes(&g->values[r].desc) : 0;
		}
		most = sum > most ? sum : most;
	}
	return most;
}

TEST(live_tensors_share_no_memory)
{
	for (int train = 0; train < 2; train++)
		for (int64_t batch = 1; batch <= 33; batch += 16) {
			struct net t;
			struct gt_plan *p;
			struct gt_space *s = space_open(2);
			residual_net(&t);
			if (s && lower(&t, s, batch, train, false, &p)) {
				check_memory(p);
				CHECK_MSG(p->act.live == live_bytes(p), "%zu live bytes, expected %zu", p->act.live, live_bytes(p));
				/* at most 255 bytes of alignment for each of the 30 values that are live at once */
				CHECK_MSG((double)p->act.bytes <= 1.03 * (double)p->act.live + 30 * 255, "%zu bytes of %zu", p->act.bytes, p->act.live);
				gt_plan_close(p);
			}
			if (s)
				space_close(s);
			net_close(&t);
		}
}

/* In evaluation nothing is kept: the activations of a deep chain fit into two neighbours' memory, however deep it is. */
TEST(evaluation_reuses_memory)
{
	struct net t;
	struct gt_plan *p;
	struct gt_space *s = space_open(0);
	net_open(&t, 64, 1, 1);
	for (int i = 0; i < 20; i++)
		net_add(&t, gt_arena_printf(t.a, "fc%d", i), "linear", "out=64", NULL);
	if (s && lower(&t, s, 32, false, false, &p)) {
		CHECK_MSG(p->act.bytes <= 2 * 32 * 64 * 4, "%zu bytes", p->act.bytes);
		gt_plan_close(p);
	}
	if (s)
		space_close(s);
	net_close(&t);
}

TEST(elementwise_chain_runs_in_place)
{
	struct net t;
	struct gt_plan *p;
	struct gt_space *s = space_open(0);
	net_open(&t, 64, 1, 1);
	net_add(&t, "fc", "linear", "out=64", NULL);
	for (int i = 0; i < 5; i++)
		net_add(&t, gt_arena_printf(t.a, "act%d", i), i % 2 ? "tanh" : "relu", NULL, NULL);
	if (s && lower(&t, s, 32, false, false, &p)) {
		CHECK_MSG(p->act.bytes == 32 * 64 * 4, "%zu bytes", p->act.bytes);
		gt_plan_close(p);
	}
	if (s)
		space_close(s);
	net_close(&t);
}

TEST(parameters_lie_apart_in_backward_order)
{
	struct net t;
	struct gt_plan *p, *q;
	struct gt_err e;
	struct gt_space *s = space_open(2);
	residual_net(&t);
	if (s && lower(&t, s, 8, true, false, &p) && lower(&t, s, 3, true, true, &q)) {
		const struct gt_graph *g = s->layout.first;
		int64_t end = 0;
		for (int i = 0; i < g->nparams; i++)
			for (int j = 0; j < g->nparams; j++)
				if (i != j && g->params[i].cls != GT_PARAM_BUFFER && g->params[j].cls != GT_PARAM_BUFFER)
					CHECK(s->layout.param[i].offset + s->layout.param[i].count <= s->layout.param[j].offset ||
					      s->layout.param[j].offset + s->layout.param[j].count <= s->layout.param[i].offset);
		for (int i = 0; i < g->nparams; i++)
			if (g->params[i].cls != GT_PARAM_BUFFER && s->layout.param[i].offset + s->layout.param[i].count > end)
				end = s->layout.param[i].offset + s->layout.param[i].count;
		CHECK(end <= s->layout.elements);
		CHECK(!strcmp(g->params[0].name, "conv1.weight") &&
		      s->layout.param[0].offset > s->layout.param[g->nparams - 1].offset); /* the last layer comes first */
		CHECK(s->memory.bytes[GT_A_STATE] == 2 * s->memory.bytes[GT_A_GRAD] && s->memory.bytes[GT_A_GRAD] == s->memory.bytes[GT_A_PARAM]);
		CHECK_OK(gt_space_alloc(s, &e), e);
		gt_plan_bind(p);
		gt_plan_bind(q);
		CHECK(gt_plan_value(p, g->params[0].value) == gt_plan_value(q, t.g->params[0].value));
		CHECK((char *)gt_space_param(s, 0, GT_A_STATE, 1) - (char *)gt_space_param(s, 0, GT_A_STATE, 0) == s->layout.elements * 4);
		gt_plan_close(p);
		gt_plan_close(q);
	}
	if (s)
		space_close(s);
	net_close(&t);
}

/* GTRAIN_NAN_MEMORY: activations and workspaces begin as NaN, all else as zeros. */
TEST(memory_that_a_step_computes_begins_as_nan)
{
	for (int nan = 0; nan < 2; nan++) {
		struct gt_err e = {0};
		struct gt_space *s = space_on("cpu", 1);
		if (!s)
			return;
		for (int i = 0; i < GT_A_COUNT; i++)
			s->memory.bytes[i] = 10000;
		if (nan)
			setenv("GTRAIN_NAN_MEMORY", "1", 1);
		else
			unsetenv("GTRAIN_NAN_MEMORY");
		CHECK_OK(gt_space_alloc(s, &e), e);
		unsetenv("GTRAIN_NAN_MEMORY");
		for (int i = 0; i < GT_A_COUNT; i++) {
			bool computed = i == GT_A_ACT || i == GT_A_SHARED_ACT || i == GT_A_SCRATCH;
			const unsigned char *p = s->memory.base[i];
			int want = nan && computed ? 0xff : 0, wrong = 0;
			for (size_t k = 0; k < s->memory.bytes[i]; k++)
				wrong += p[k] != want;
			CHECK_MSG(!wrong, "%s: %d bytes are not %02x", gt_arena_name((enum gt_arena_id)i), wrong, want);
		}
		space_close(s);
	}
}

RUN_TESTS()
