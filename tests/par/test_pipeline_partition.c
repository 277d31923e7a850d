/* Cut graphs (plan/pipeline_partition.h): every node of the whole graph is on exactly one stage; the stages, planned each in a space of its
 * own and run one after the other with transfers carried by hand, make the whole graph's gradients, statistics and metrics bit for bit. */
#include "../ops/harness.h"
#include "../unit/ir_net.h"
#include "base/plugin.h"
#include "plan/fuse.h"
#include "plan/pipeline_partition.h"
#include "plan/plan.h"
#include "plan/recompute.h"
#include "test.h"

#define MAX_STAGES 8
#define MAX_QUEUE 64

/* ---- models -------------------------------------------------------------------------------------------------------------------------- */

static void mlp(struct net *t)
{
	net_open(t, 1, 6, 6);
	net_add(t, "flat", "flatten", NULL, NULL);
	net_add(t, "fc1", "linear", "out=40", NULL);
	net_add(t, "r1", "relu", NULL, NULL);
	net_add(t, "drop", "dropout", "p=0.3", NULL);
	net_add(t, "fc2", "linear", "out=24", NULL);
	net_add(t, "r2", "relu", NULL, NULL);
	net_add(t, "fc3", "linear", "out=7", NULL);
}

static void basic(struct net *t, const char *name, int ch, int stride, const char *in)
{
	char keys[96];
	const char *n[7];
	static const char *const part[7] = {"conv1", "bn1", "relu1", "conv2", "bn2", "downsample", "sum"};
	for (int i = 0; i < 7; i++)
		n[i] = gt_arena_printf(t->a, "%s.%s", name, part[i]);
	snprintf(keys, sizeof keys, "out=%d kernel=3 stride=%d padding=1 bias=0", ch, stride);
	net_add(t, n[0], "conv2d", keys, in);
	net_add(t, n[1], "batchnorm2d", NULL, NULL);
	net_add(t, n[2], "relu", NULL, NULL);
	snprintf(keys, sizeof keys, "out=%d kernel=3 padding=1 bias=0", ch);
	net_add(t, n[3], "conv2d", keys, NULL);
	net_add(t, n[4], "batchnorm2d", NULL, NULL);
	snprintf(keys, sizeof keys, "out=%d stride=%d", ch, stride);
	net_add(t, n[5], "shortcut", keys, in);
	net_add(t, n[6], "add", NULL, gt_arena_printf(t->a, "%s %s", n[4], n[5]));
	net_add(t, name, "relu", NULL, NULL);
}

/* ResNet-20 of configs/resnet20_cifar.cfg, on smaller images and with fewer channels. */
static void resnet20(struct net *t)
{
	const char *last = "relu";
	net_open(t, 3, 12, 12);
	net_add(t, "conv1", "conv2d", "out=8 kernel=3 padding=1 bias=0", NULL);
	net_add(t, "bn1", "batchnorm2d", NULL, NULL);
	net_add(t, "relu", "relu", NULL, NULL);
	for (int i = 0; i < 9; i++) {
		const char *name = gt_arena_printf(t->a, "layer%d.%d", 1 + i / 3, i % 3);
		basic(t, name, 8 << i / 3, i && i % 3 == 0 ? 2 : 1, last);
		last = name;
	}
	net_add(t, "avgpool", "global_avgpool", NULL, NULL);
	net_add(t, "flatten", "flatten", NULL, NULL);
	net_add(t, "fc", "linear", "out=10", NULL);
}

/* Skips over several stages, an input that a late layer reads, a layer whose bias alone learns. */
static void skips(struct net *t)
{
	net_open(t, 4, 1, 1);
	net_add(t, "a", "linear", "out=4", NULL);
	net_add(t, "b", "tanh", NULL, NULL);
	net_add(t, "c", "linear", "out=4", NULL);
	net_add(t, "d", "silu", NULL, NULL);
	net_add(t, "e", "linear", "out=4", NULL);
	net_add(t, "f", "add", NULL, "e b input");
	net_add(t, "g", "mul", NULL, "f d");
	net_add(t, "h", "concat", NULL, "g b a");
	net_add(t, "i", "layernorm", NULL, NULL);
	net_add(t, "j", "linear", "out=5", NULL);
}

/* ---- one graph, planned and filled -----------------------------------------------------------------------------------------------------
 */

struct side {
	struct gt_space *s;
	struct gt_plan *p;
	void *x;
	int32_t *target;
};

static bool side_open(struct side *r, struct gt_dev *dev, const struct gt_backend *be, struct gt_graph *g, const struct gt_graph *full,
                      int classes)
{
	struct gt_err e;
	memset(r, 0, sizeof *r);
	if (gt_space_open(be, dev, 0, &r->s, &e) != GT_OK || gt_plan_make(r->s, g, false, true, &r->p, &e) != GT_OK ||
	    gt_space_alloc(r->s, &e) != GT_OK) {
		test_fail(__FILE__, __LINE__, "%s", e.msg);
		return false;
	}
	gt_plan_bind(r->p);
	for (int i = 0; i < g->nparams; i++) {
		const struct gt_param *p = &g->params[i];
		const struct gt_tdesc *d = &r->s->layout.param[i].desc;
		if (p->value < 0) {
			CHECK_MSG(r->s->layout.param[i].offset < 0 && !r->s->layout.param[i].count, "%s takes memory on a stage without it", p->name);
			continue;
		}
		int64_t n = gt_tdesc_count(d);
		float *plain = malloc((size_t)n * 8);
		for (int64_t k = 0; k < n; k++)
			plain[k] = (float)(strstr(p->name, "running_var") ? 1 : 0.3 * harness_uniform(p->name, k));
		if (d->dtype == GT_I64)
			memset(plain, 0, (size_t)n * 8);
		gt_tdesc_pack(d, plain, gt_space_param(r->s, i, p->cls == GT_PARAM_BUFFER ? GT_A_BUFFER : GT_A_PARAM, 0));
		if (p->work >= 0) {
			struct gt_tdesc w = *d;
			uint16_t *half = malloc((size_t)n * 2);
			w.dtype = g->compute;
			for (int64_t k = 0; k < n; k++) { /* 0.3 u cut to bf16's bits */
				uint32_t u;
				memcpy(&u, &plain[k], 4);
				half[k] = (uint16_t)(u >> 16);
			}
			gt_tdesc_pack(&w, half, gt_space_param(r->s, i, GT_A_WORK, 0));
			free(half);
		}
		free(plain);
	}
	const struct gt_tdesc *d = &full->values[full->input[0]].desc;
	int64_t n = gt_tdesc_count(d);
	r->x = calloc((size_t)n, 4);
	r->target = calloc((size_t)full->batch, 4);
	for (int64_t k = 0; k < n; k++) {
		float f = (float)harness_uniform("input", k);
		uint32_t u;
		memcpy(&u, &f, 4);
		if (d->dtype == GT_F32)
			((float *)r->x)[k] = f;
		else
			((uint16_t *)r->x)[k] = (uint16_t)(u >> 16);
	}
	for (int64_t k = 0; k < full->batch; k++)
		r->target[k] = (int32_t)((k * 7 + 3) % classes);
	gt_plan_bind_batch(r->p, &r->x, r->target);
	return true;
}

static void side_close(struct side *r)
{
	gt_plan_close(r->p);
	gt_space_close(r->s);
	free(r->x);
	free(r->target);
}

/* ---- transfers by hand
 * --------------------------------------------------------------------------------------------------------------------- */

struct message {
	const char *name;
	void *data;
	size_t bytes;
};
struct pipe {
	struct message q[MAX_STAGES][MAX_STAGES][MAX_QUEUE];
	int sent[MAX_STAGES][MAX_STAGES], received[MAX_STAGES][MAX_STAGES];
};

static void carry(struct pipe *w, int stage, const struct gt_call *c)
{
	size_t bytes = c->count * gt_dtype_size(c->dtype);
	int peer = c->comm->peer;
	CHECK(c->comm->group == GT_GROUP_PIPE);
	if (c->comm->kind == GT_COMM_SEND) {
		struct message *m = &w->q[stage][peer][w->sent[stage][peer]++];
		*m = (struct message){c->layer, malloc(bytes), bytes};
		memcpy(m->data, c->in[0], bytes);
		return;
	}
	if (w->received[peer][stage] >= w->sent[peer][stage]) {
		test_fail(__FILE__, __LINE__, "stage %d waits for %s, which stage %d has not sent", stage, c->layer, peer);
		return;
	}
	struct message *m = &w->q[peer][stage][w->received[peer][stage]++];
	CHECK_MSG(!strcmp(m->name, c->layer) && m->bytes == bytes, "stage %d wants %s (%zu bytes), stage %d sent %s (%zu)", stage, c->layer,
	          bytes, peer, m->name, m->bytes);
	memcpy(c->out[0], m->data, bytes < m->bytes ? bytes : m->bytes);
	free(m->data);
}

static void run(struct side *r, struct pipe *w, int stage, int phase)
{
	struct gt_step_args step_args = {.seed = 5, .stride = 1, .step = 1, .inv_weight = 0.25};
	for (int i = 0; i < r->p->ncalls; i++) {
		struct gt_call *c = &r->p->call[i];
		struct gt_err e;
		if (phase >= 0 && c->phase != (enum gt_phase)phase)
			continue;
		if (c->comm) {
			carry(w, stage, c);
			continue;
		}
		struct gt_launch a = {.in = c->in, .out = c->out, .scratch = c->work, .step_args = &step_args};
		CHECK_OK(r->s->be->launch(r->s->dev, c->kernel, &a, &e), e);
	}
}

/* ---- comparing
 * ----------------------------------------------------------------------------------------------------------------------------- */

static void same(const struct side *full, const struct side *part, int i, const char *what)
{
	const struct gt_param *p = &full->p->graph->params[i];
	const struct gt_tdesc *d = &full->s->layout.param[i].desc;
	enum gt_arena_id id = p->cls == GT_PARAM_BUFFER ? GT_A_BUFFER : GT_A_GRAD;
	size_t bytes = (size_t)gt_tdesc_count(d) * gt_dtype_size(d->dtype);
	char *a = malloc(bytes), *b = malloc(bytes);
	gt_tdesc_unpack(d, gt_space_param(full->s, i, id, 0), a);
	gt_tdesc_unpack(&part->s->layout.param[i].desc, gt_space_param(part->s, i, id, 0), b);
	CHECK_MSG(!memcmp(a, b, bytes), "%s: %s differs", what, p->name);
	bool zero = true;
	for (size_t k = 0; k < bytes; k++)
		zero &= !a[k];
	CHECK_MSG(!zero || p->frozen, "%s: %s is zero: nothing is compared", what, p->name);
	free(a);
	free(b);
}

static int count_node(const struct gt_graph *g, const struct gt_node *n)
{
	int k = 0;
	for (int i = 0; i < g->nnodes; i++)
		k += g->nodes[i].op == n->op && g->nodes[i].backward == n->backward && !gt_node_alias(g, &g->nodes[i]) &&
		     !strcmp(g->nodes[i].name, n->name) && (n->op->code != GT_OP_ADD || g->nodes[i].nin == n->nin);
	return k;
}

/* Each node that computes stands on the stages as often as in the whole graph. */
static void check_union(const struct gt_partition *c, struct gt_graph *const *stage, const char *what)
{
	const struct gt_graph *full = c->full;
	int total = 0, live = 0;
	for (int i = 0; i < full->nnodes; i++) {
		const struct gt_node *n = &full->nodes[i];
		int k = 0, dead = 0;
		if (gt_node_alias(full, n))
			continue;
		live += c->live[i];
		for (int s = 0; s < c->stages; s++)
			k += count_node(stage[s], n);
		for (int j = 0; j < full->nnodes; j++)
			dead += !c->live[j] && full->nodes[j].op == n->op && !gt_node_alias(full, &full->nodes[j]) &&
			        !strcmp(full->nodes[j].name, n->name) && full->nodes[j].backward == n->backward;
		CHECK_MSG(k == count_node(full, n) - dead, "%s: %s (%s) stands %d times on the stages", what, gt_op_name(n->op), n->name, k);
	}
	for (int s = 0; s < c->stages; s++)
		for (int i = 0; i < stage[s]->nnodes; i++)
			total += stage[s]->nodes[i].op->code != GT_OP_COMM && !gt_node_alias(stage[s], &stage[s]->nodes[i]);
	CHECK_MSG(total == live, "%s: %d nodes on the stages, %d in the whole graph", what, total, live);
}

struct how {
	enum gt_dtype dtype;
	bool split, cheap;
	const char *recompute; /* layers whose names begin so are made again */
};

static struct gt_graph *whole(struct net *t, int64_t batch, const struct how *how, bool train)
{
	struct gt_loss_spec loss = {.op = gt_op_find_loss("cross_entropy"), .attr = {.ignore_index = -100}};
	struct gt_graph *g = NULL;
	struct gt_err e = {0};
	for (int i = 0; i < t->m.nlayers; i++)
		t->layer[i].recompute = how->recompute && !strncmp(t->layer[i].name, how->recompute, strlen(how->recompute));
	if (gt_graph_build(t->a, &t->m, batch, how->dtype, train, &g, &e) != GT_OK || gt_graph_loss(g, &loss, &e) != GT_OK ||
	    (train && gt_graph_differentiate(g, &e) != GT_OK) || gt_graph_verify(g, &e) != GT_OK || gt_graph_fuse(g, &e) != GT_OK ||
	    (train && gt_graph_recompute(g, t->layer, how->cheap, &e) != GT_OK))
		test_fail(__FILE__, __LINE__, "%s", e.msg);
	return g;
}

static void compare(struct gt_partition *c, struct gt_dev *dev, const struct gt_backend *be, int classes, bool train, const char *what)
{
	struct side full, part[MAX_STAGES];
	struct gt_graph *g[MAX_STAGES];
	struct pipe *w = calloc(1, sizeof *w);
	struct gt_err e = {0};
	int n = c->stages, opened = 0;
	if (!side_open(&full, dev, be, (struct gt_graph *)(uintptr_t)c->full, c->full, classes))
		return;
	for (; opened < n; opened++)
		if (gt_partition_stage(c, opened, &g[opened], &e) != GT_OK || !side_open(&part[opened], dev, be, g[opened], c->full, classes)) {
			test_fail(__FILE__, __LINE__, "%s: stage %d: %s", what, opened, e.msg);
			return;
		}
	check_union(c, g, what);
	run(&full, NULL, 0, -1);
	for (int s = 0; s < n; s++)
		run(&part[s], w, s, GT_PHASE_F);
	for (int s = n - 1; s >= 0 && train; s--)
		run(&part[s], w, s, GT_PHASE_B);
	for (int s = 0; s < n && train; s++)
		run(&part[s], w, s, GT_PHASE_W);
	for (int a = 0; a < n; a++)
		for (int b = 0; b < n; b++)
			CHECK_MSG(w->sent[a][b] == w->received[a][b], "%s: %d sent from %d to %d, %d received", what, w->sent[a][b], a, b,
			          w->received[a][b]);
	for (int i = 0; i < c->full->nparams && train; i++) {
		int homes = 0;
		for (int s = 0; s < n; s++)
			if (g[s]->params[i].value >= 0) {
				homes++;
				same(&full, &part[s], i, what);
			}
		CHECK_MSG(homes == 1, "%s: %s is on %d stages", what, c->full->params[i].name, homes);
	}
	struct gt_scalars *a = gt_space_scalars(full.s, 0), *b = gt_space_scalars(part[n - 1].s, 0);
	CHECK_MSG(!memcmp(&a->metrics, &b->metrics, sizeof a->metrics) && a->metrics.count == 4 && a->metrics.loss > 0,
	          "%s: loss %.17g, in stages %.17g", what, a->metrics.loss, b->metrics.loss);
	size_t elements = 0, whole_elements = (size_t)full.s->layout.elements;
	for (int s = 0; s < n; s++)
		elements += (size_t)part[s].s->layout.elements;
	CHECK_MSG(elements == whole_elements, "%s: %zu elements in the arenas of the stages, %zu in the whole's", what, elements,
	          whole_elements);
	for (int s = 0; s < n; s++)
		side_close(&part[s]);
	side_close(&full);
	free(w);
}

static void cut_everywhere(void (*model)(struct net *), int classes, const struct how *how, const char *what)
{
	static const struct gt_dev_opts opts = {.threads = 2, .deterministic = true};
	const struct gt_backend *be;
	struct gt_dev *dev;
	void *p;
	struct gt_err e;
	if (gt_plugin_open("cpu", "gt_backend_cpu", &p, &e) != GT_OK || ((be = p))->open(&opts, &dev, &e) != GT_OK) {
		test_fail(__FILE__, __LINE__, "%s", e.msg);
		return;
	}
	for (int stages = 1; stages <= 4; stages++)
		for (int train = 0; train < 2; train++) {
			struct net t;
			struct gt_partition *c;
			char name[128];
			int stage_of[NET_MAX];
			double *cost;
			model(&t);
			struct gt_graph *g = whole(&t, 4, how, train);
			snprintf(name, sizeof name, "%s %s, %d stages%s%s%s%s", what, train ? "training" : "evaluation", stages,
			         how->split ? ", split" : "", how->cheap ? ", cheap" : "", how->recompute ? ", recomputing " : "",
			         how->recompute ? how->recompute : "");
			cost = malloc((size_t)g->nnodes * sizeof *cost);
			gt_partition_costs(g, GT_CUT_CPU, cost);
			if (gt_partition_balance(g, cost, stages, stage_of, &e) != GT_OK ||
			    gt_partition_make(g, stage_of, stages, stages, how->split, &c, &e) != GT_OK)
				test_fail(__FILE__, __LINE__, "%s: %s", name, e.msg);
			else
				compare(c, dev, be, classes, train, name);
			free(cost);
			net_close(&t);
		}
	be->close(dev);
}

TEST(mlp)
{
	for (int k = 0; k < 4; k++)
		cut_everywhere(mlp, 7, &(struct how){.dtype = k & 2 ? GT_BF16 : GT_F32, .split = k & 1}, "mlp");
}

TEST(skips)
{
	for (int k = 0; k < 4; k++)
		cut_everywhere(skips, 5, &(struct how){.split = k & 1, .cheap = k & 2}, "skips");
}

TEST(resnet20)
{
	for (int k = 0; k < 4; k++)
		cut_everywhere(resnet20, 10, &(struct how){.dtype = k & 2 ? GT_BF16 : GT_F32, .split = k & 1}, "resnet20");
}

TEST(resnet20_recomputed)
{
	for (int k = 0; k < 4; k++)
		cut_everywhere(resnet20, 10, &(struct how){.split = k & 1, .cheap = !(k & 2), .recompute = k & 2 ? "layer" : NULL}, "resnet20");
}

/* Every place where two neighbours can be parted, whatever it costs: between a normalisation and the sum fused into it too. */
TEST(cut_before_every_layer)
{
	static const struct gt_dev_opts opts = {.threads = 2, .deterministic = true};
	void (*const model[])(struct net *) = {resnet20, skips};
	static const int classes[] = {10, 5};
	const struct gt_backend *be;
	struct gt_dev *dev;
	void *p;
	struct gt_err e;
	if (gt_plugin_open("cpu", "gt_backend_cpu", &p, &e) != GT_OK || ((be = p))->open(&opts, &dev, &e) != GT_OK) {
		test_fail(__FILE__, __LINE__, "%s", e.msg);
		return;
	}
	for (int k = 0; k < 2; k++)
		for (int at = 1, layers = 2; at + 1 < layers; at++) {
			struct net t;
			struct gt_partition *c;
			char name[64];
			int stage_of[NET_MAX];
			model[k](&t);
			layers = t.m.nlayers;
			struct how how = {.split = at & 1, .cheap = at % 3 == 0, .recompute = at % 3 == 1 ? "layer2" : NULL};
			struct gt_graph *g = whole(&t, 4, &how, true);
			snprintf(name, sizeof name, "cut before %s", t.layer[at].name);
			for (int i = 0; i < layers; i++)
				stage_of[i] = (i >= at) + (i > at); /* a stage of this layer alone */
			if (gt_partition_make(g, stage_of, 3, 3, how.split, &c, &e) != GT_OK)
				test_fail(__FILE__, __LINE__, "%s: %s", name, e.msg);
			else
				compare(c, dev, be, classes[k], true, name);
			net_close(&t);
		}
	be->close(dev);
}

/* ---- where to cut
 * ---------------------------------------------------------------------------------------------------------------------------- */

static double largest(const double *layer, const int *stage_of, int layers, int stages)
{
	double sum[MAX_STAGES] = {0}, most = 0;
	for (int i = 0; i < layers; i++)
		sum[stage_of[i]] += layer[i];
	for (int s = 0; s < stages; s++)
		most = sum[s] > most ? sum[s] : most;
	return most;
}

/* Against every possible cut. */
TEST(balance_is_the_best_cut)
{
	struct net t;
	struct gt_err e;
	struct how how = {0};
	resnet20(&t);
	struct gt_graph *g = whole(&t, 4, &how, true);
	int n = gt_graph_layers(g), got[NET_MAX], s[NET_MAX];
	double *cost = calloc((size_t)g->nnodes, sizeof *cost), layer[NET_MAX];
	CHECK(n == t.m.nlayers);
	for (int round = 0; round < 20; round++) {
		gt_partition_costs(g, GT_CUT_CPU, cost);
		for (int i = 0; i < n; i++)
			layer[i] = 0;
		for (int i = 0; i < g->nnodes; i++) {
			if (round)
				cost[i] = (double)(harness_raw("cost", i * 31 + round) % 1000);
			layer[g->nodes[i].layer < 0 ? n - 1 : g->nodes[i].layer] += cost[i];
		}
		for (int stages = 1; stages <= 3; stages++) {
			double best = INFINITY;
			for (int a = 1; a < n; a++)
				for (int b = stages == 3 ? a + 1 : n; b < (stages == 3 ? n : n + 1); b++) {
					for (int i = 0; i < n; i++)
						s[i] = stages == 1 ? 0 : (i >= a) + (i >= b);
					double x = largest(layer, s, n, stages);
					best = x < best ? x : best;
				}
			CHECK_OK(gt_partition_balance(g, cost, stages, got, &e), e);
			for (int i = 0; i < n; i++)
				CHECK(got[i] >= (i ? got[i - 1] : 0) && got[i] <= (i ? got[i - 1] + 1 : 0) && (i < n - 1 || got[i] == stages - 1));
			double x = largest(layer, got, n, stages);
			CHECK_MSG(x <= best * (1 + 1e-9), "%d stages: largest %g, possible %g", stages, x, best); /* sums in another order */
		}
	}
	CHECK(gt_partition_balance(g, cost, n + 1, got, &e) == GT_ECONFIG && strstr(e.msg, "at most as many stages as the model has layers"));
	free(cost);
	net_close(&t);
}

/* Where several cuts cost the same, the one with less to carry. */
TEST(balance_prefers_fewer_bytes)
{
	struct net t;
	struct gt_err e;
	struct how how = {0};
	int got[NET_MAX];
	net_open(&t, 8, 1, 1);
	net_add(&t, "a", "linear", "out=64", NULL);
	net_add(&t, "b", "linear", "out=2", NULL);
	net_add(&t, "c", "linear", "out=32", NULL);
	net_add(&t, "d", "linear", "out=4", NULL);
	struct gt_graph *g = whole(&t, 4, &how, true);
	double *cost = calloc((size_t)g->nnodes, sizeof *cost);
	for (int i = 0; i < g->nnodes; i++) /* 3 1 1 1: before b or before c, the largest stage is 3 or 4; 3 1 1 2: 4 both ways */
		cost[i] = g->nodes[i].backward || g->nodes[i].layer < 0 ? 0 : g->nodes[i].layer == 0 ? 3 : g->nodes[i].layer == 3 ? 2 : 1;
	CHECK_OK(gt_partition_balance(g, cost, 2, got, &e), e);
	CHECK(!got[0] && !got[1] && got[2] == 1 && got[3] == 1); /* 2 features cross, not 64 */
	free(cost);
	net_close(&t);
}

RUN_TESTS()
