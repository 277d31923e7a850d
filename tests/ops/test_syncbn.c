/* Batch normalisation of several ranks, all in one process: each has a graph and buffers of its own, and the test exchanges their values.
 * Compared with make_syncbn.py's goldens (PyTorch's SyncBatchNorm on gloo), and gradients with central differences through the exchange.
 * One rank's bits: test_fuse.c. */
#include "harness_net.h"
#include "plan/syncbn.h"
#include "test.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RANKS 5
#define MAX 4096

static const struct bn_case {
	const char *name, *type, *eps, *momentum;
	int rank;
	int64_t dim[4];
	int64_t share[RANKS];
	int n; /* number of ranks */
	bool affine;
} cases[] = {
    {"two", "batchnorm2d", "1e-5", "0.1", 4, {7, 5, 3, 2}, {3, 4}, 2, true},
    {"idle", "batchnorm2d", "1e-5", "0.1", 4, {2, 4, 2, 2}, {0, 1, 1}, 3, true},
    {"four", "batchnorm2d", "1e-3", "0.3", 4, {8, 3, 3, 3}, {2, 0, 5, 1}, 4, true},
    {"flat", "batchnorm1d", "1e-2", "0.1", 2, {3, 6, 1, 1}, {1, 2}, 2, true},
    {"plain", "batchnorm2d", "1e-5", "0.01", 4, {6, 17, 2, 1}, {4, 2}, 2, false},
    {"five", "batchnorm2d", "1e-1", "0.1", 4, {5, 2, 1, 1}, {1, 1, 1, 1, 1}, 5, true},
};
#define NCASES (int)(sizeof cases / sizeof *cases)

static int64_t sample(const struct bn_case *c)
{
	return c->dim[1] * c->dim[2] * c->dim[3];
}

/* ---- goldens ------------------------------------------------------------------------------------------------------------------- */
static int golden(const struct bn_case *c, const char *what, double *out, int64_t n)
{
	char path[512], line[64], want[64];
	int found = 0;
	snprintf(path, sizeof path, "%s/tests/golden/syncbn.txt", test_source());
	snprintf(want, sizeof want, "%s %s", c->name, what);
	FILE *f = fopen(path, "r");
	for (int ch; f && !found && fscanf(f, " %63[^ ]", line) == 1;) {
		char name[32] = "";
		if (line[0] != '#' && fscanf(f, " %31s", name) == 1) {
			size_t at = strlen(line);
			snprintf(line + at, sizeof line - at, " %s", name);
		}
		if (!strcmp(line, want)) {
			for (found = 1; n > 0 && found; n--)
				found = fscanf(f, "%lf", out++) == 1;
			break;
		}
		while ((ch = fgetc(f)) != '\n' && ch != EOF)
			;
	}
	if (f)
		fclose(f);
	CHECK_MSG(found, "golden/syncbn.txt has no whole \"%s\"", want);
	return found;
}

/* ---- ranks --------------------------------------------------------------------------------------------------------------------- */
struct rank {
	struct harness h;
	struct net n;
	struct opcase c;
	int64_t first, count; /* samples */
	int at;               /* next node */
};

static bool open_rank(struct rank *r, const struct bn_case *c, enum gt_dtype t, int64_t first, int64_t count, struct gt_err *e)
{
	static const char *const worlds[] = {"0", "1", "2", "3", "4", "5"};
	memset(r, 0, sizeof *r);
	r->c = (struct opcase){.name = c->name, .type = c->type, .nin = 1, .in = {{.rank = c->rank, .scale = 1}}};
	memcpy(r->c.in[0].dim, c->dim, sizeof c->dim);
	r->c.in[0].dim[0] = count ? count : 1;
	r->c.kv[r->c.nkeys].key = "eps", r->c.kv[r->c.nkeys++].value = c->eps;
	r->c.kv[r->c.nkeys].key = "momentum", r->c.kv[r->c.nkeys++].value = c->momentum;
	r->c.kv[r->c.nkeys].key = "affine", r->c.kv[r->c.nkeys++].value = c->affine ? "true" : "false";
	r->c.kv[r->c.nkeys].key = "sync", r->c.kv[r->c.nkeys++].value = worlds[c->n];
	r->first = first;
	r->count = count;
	CHECK_OK(net_build(&r->n, &r->c, t, e), *e);
	if (e->code == GT_OK)
		CHECK_OK(gt_graph_verify(r->n.g, e), *e);
	if (!count)
		CHECK_OK(gt_graph_sync_bn_idle(r->n.g, e), *e);
	CHECK_OK(harness_open(&r->h, t == GT_F64 ? "ref" : "cpu", e), *e);
	if (e->code == GT_OK)
		CHECK_OK(harness_graph(&r->h, r->n.g, e), *e);
	return e->code == GT_OK;
}

static void close_rank(struct rank *r)
{
	harness_close(&r->h);
	gt_arena_close(r->n.arena);
}

static const char *suffix(const struct gt_param *p)
{
	return strrchr(p->name, '.') + 1;
}

/* NaN wherever something must be written, then the operands; x: all samples. */
static void fill_rank(struct rank *r, const struct bn_case *c, const double *x)
{
	static double v[MAX];
	struct gt_graph *g = r->n.g;
	struct gt_err e = {0};
	char name[64];
	for (gt_vid u = 0; u < g->nvalues; u++)
		if (g->values[u].kind == GT_V_ACT && !r->h.shared[u]) {
			for (int64_t i = 0; i < gt_tdesc_count(&g->values[u].desc); i++)
				v[i] = NAN;
			CHECK_OK(harness_put(&r->h, u, v, &e), e);
		}
	for (int i = 0; i < g->nparams; i++) {
		const struct gt_param *p = &g->params[i];
		bool one = !strcmp(suffix(p), "weight") || !strcmp(suffix(p), "running_var");
		snprintf(name, sizeof name, "%s/%s", c->name, suffix(p));
		for (int64_t k = 0; k < gt_tdesc_count(&p->desc); k++)
			v[k] = p->desc.rank ? (double)(float)(harness_uniform(name, k) * (one ? 0.5 : 1) + one) : 41;
		CHECK_OK(harness_put(&r->h, p->value, v, &e), e);
		if (p->grad >= 0)
			CHECK_OK(harness_zero(&r->h, p->grad, &e), e);
	}
	if (!r->count)
		return;
	CHECK_OK(harness_put(&r->h, r->n.x[0], x + r->first * sample(c), &e), e);
	snprintf(name, sizeof name, "%s/dy", c->name);
	for (int64_t i = 0; i < r->count * sample(c); i++)
		v[i] = harness_uniform(name, r->first * sample(c) + i);
	CHECK_OK(harness_put(&r->h, r->n.dy, v, &e), e);
}

static void inputs(const struct bn_case *c, double *x)
{
	char name[64];
	snprintf(name, sizeof name, "%s/x", c->name);
	for (int64_t i = 0; i < c->dim[0] * sample(c); i++)
		x[i] = harness_uniform(name, i);
}

static double tree(const double *v, int64_t stride, int n)
{
	int h = 1;
	while (2 * h < n)
		h *= 2;
	return n == 1 ? *v : tree(v, stride, h) + tree(v + h * stride, stride, n - h);
}

/* All ranks stand before the same exchange. */
static void exchange(struct rank *r, int n)
{
	static double in[MAX], all[MAX];
	struct gt_err e = {0};
	int kind = -1;
	int64_t count = 0;
	for (int i = 0; i < n; i++) {
		const struct gt_node *node = &r[i].n.g->nodes[r[i].at];
		const struct gt_attr_comm *attr = node->attr;
		CHECK_MSG(kind < 0 || kind == attr->kind, "rank %d is at another exchange", i);
		kind = attr->kind;
		count = gt_tdesc_count(&r[i].n.g->values[node->in[0]].desc);
		CHECK_OK(harness_get(&r[i].h, node->in[0], in + i * count, &e), e);
	}
	for (int64_t k = 0; k < count && kind == GT_COLL_ALL_REDUCE; k++)
		all[k] = tree(in + k, count, n);
	for (int i = 0; i < n; i++) {
		CHECK_OK(harness_put(&r[i].h, r[i].n.g->nodes[r[i].at].out[0], kind == GT_COLL_ALL_REDUCE ? all : in, &e), e);
		r[i].at++;
	}
}

/* Every rank's nodes up to the next exchange, then that, and so on. backward: to the end; else through the forward pass. */
static int run_ranks(struct rank *r, int n, bool backward)
{
	struct gt_err e = {0};
	int exchanges = 0;
	for (int i = 0; i < n; i++)
		r[i].at = 0;
	for (;;) {
		int waiting = 0;
		for (int i = 0; i < n; i++) {
			const struct gt_graph *g = r[i].n.g;
			for (; r[i].at < g->nnodes && (backward || !g->nodes[r[i].at].backward) && g->nodes[r[i].at].op->code != GT_OP_COMM; r[i].at++)
				CHECK_OK(harness_run(&r[i].h, r[i].at, r[i].at + 1, &e), e);
			waiting += r[i].at < g->nnodes && (backward || !g->nodes[r[i].at].backward);
		}
		CHECK_MSG(!waiting || waiting == n, "%d of %d ranks wait", waiting, n);
		if (waiting != n)
			return exchanges;
		exchange(r, n);
		exchanges++;
	}
}

/* ---- against PyTorch ----------------------------------------------------------------------------------------------------------- */
static double worst[GT_DTYPE_COUNT];
static char worst_at[GT_DTYPE_COUNT][64];

static void compare(const struct bn_case *c, enum gt_dtype t, const char *what, const double *got, int64_t n)
{
	static double want[MAX];
	/* f64: sums of up to 56 values below 1 and variances that go through 1 / invstd^2 in the goldens: 1e-16 * 56, times rstd of up to 10;
	 * f32: PyTorch's assert_close has 1.3e-6 of the value; numbers of order 1 in between have a few roundings of 2^-24, times rstd. */
	double rtol = t == GT_F64 ? 1e-12 : 1.3e-6, atol = t == GT_F64 ? 1e-13 : 3e-6;
	if (!golden(c, what, want, n))
		return;
	for (int64_t i = 0; i < n; i++) {
		double d = fabs(got[i] - want[i]);
		if (!(d <= atol + rtol * fabs(want[i]))) {
			test_fail(__FILE__, __LINE__, "%s %s %s[%lld] is %.17g, PyTorch has %.17g", c->name, gt_dtype_name(t), what, (long long)i,
			          got[i], want[i]);
			return;
		}
		if (d > worst[t]) {
			worst[t] = d;
			snprintf(worst_at[t], sizeof *worst_at, "%s %s", c->name, what);
		}
	}
}

static void check_case(const struct bn_case *c, enum gt_dtype t)
{
	static struct rank r[RANKS];
	static double x[MAX], all[MAX], one[MAX];
	struct gt_err e = {0};
	int64_t first = 0;
	bool open = true;
	inputs(c, x);
	for (int i = 0; i < c->n && open; first += c->share[i++]) {
		open = open_rank(&r[i], c, t, first, c->share[i], &e);
		if (open)
			fill_rank(&r[i], c, x);
	}
	if (!open)
		return;
	CHECK_MSG(run_ranks(r, c->n, true) == 2, "%s: not two exchanges", c->name);
	for (int dx = 0; dx < 2; dx++) {
		for (int i = 0; i < c->n; i++)
			if (r[i].count)
				CHECK_OK(harness_get(&r[i].h, dx ? r[i].n.dx[0] : r[i].n.y, all + r[i].first * sample(c), &e), e);
		compare(c, t, dx ? "dx" : "y", all, c->dim[0] * sample(c));
	}
	for (int k = 0; k < r[0].n.g->nparams; k++) {
		const struct gt_param *p = &r[0].n.g->params[k];
		int64_t n = gt_tdesc_count(&p->desc);
		char what[64];
		memset(all, 0, sizeof all);
		snprintf(what, sizeof what, "%s%s", p->cls == GT_PARAM_BUFFER ? "" : "d.", suffix(p));
		for (int i = 0; i < c->n; i++) {
			const struct gt_param *q = &r[i].n.g->params[k];
			CHECK_OK(harness_get(&r[i].h, p->cls == GT_PARAM_BUFFER ? q->value : q->grad, one, &e), e);
			for (int64_t j = 0; j < n && p->cls != GT_PARAM_BUFFER; j++)
				all[j] += one[j];
			CHECK_MSG(p->cls != GT_PARAM_BUFFER || !i || !memcmp(one, all, (size_t)n * sizeof *one), "%s: rank %d has another %s", c->name,
			          i, what);
			if (p->cls == GT_PARAM_BUFFER)
				memcpy(all, one, (size_t)n * sizeof *one);
		}
		if (!p->desc.rank)
			CHECK_MSG(all[0] == 42, "%s: num_batches_tracked is %g", c->name, all[0]);
		else
			compare(c, t, what, all, n);
	}
	for (int i = 0; i < c->n; i++)
		close_rank(&r[i]);
}

TEST(ranks_against_pytorch)
{
	for (int i = 0; i < NCASES; i++) {
		check_case(&cases[i], GT_F64);
		check_case(&cases[i], GT_F32);
	}
	for (int t = 0; t < GT_DTYPE_COUNT; t++)
		if (worst[t] > 0)
			printf("# syncbn: %d cases, largest difference to PyTorch in %s: %.2g (%s)\n", NCASES, gt_dtype_name((enum gt_dtype)t),
			       worst[t], worst_at[t]);
}

/* ---- against central differences ----------------------------------------------------------------------------------------------- */
/* sum of y * dy over all ranks */
static double scalar(struct rank *r, const struct bn_case *c, const double *x)
{
	static double y[MAX], dy[MAX];
	struct gt_err e = {0};
	double sum = 0;
	for (int i = 0; i < c->n; i++)
		fill_rank(&r[i], c, x);
	run_ranks(r, c->n, false);
	for (int i = 0; i < c->n; i++)
		if (r[i].count) {
			CHECK_OK(harness_get(&r[i].h, r[i].n.y, y, &e), e);
			CHECK_OK(harness_get(&r[i].h, r[i].n.dy, dy, &e), e);
			for (int64_t k = 0; k < r[i].count * sample(c); k++)
				sum += y[k] * dy[k];
		}
	return sum;
}

/* A sample's gradient must have what the other ranks' outputs contribute: eps, atol and rtol of PyTorch's gradcheck. */
TEST(gradient_through_the_exchange)
{
	static struct rank r[RANKS];
	static double x[MAX], dx[MAX];
	for (int i = 0; i < NCASES; i++) {
		const struct bn_case *c = &cases[i];
		struct gt_err e = {0};
		int64_t first = 0;
		double most = 0;
		inputs(c, x);
		for (int k = 0; k < c->n; first += c->share[k++]) {
			if (!open_rank(&r[k], c, GT_F64, first, c->share[k], &e))
				return;
			fill_rank(&r[k], c, x);
		}
		run_ranks(r, c->n, true);
		for (int k = 0; k < c->n; k++)
			if (r[k].count)
				CHECK_OK(harness_get(&r[k].h, r[k].n.dx[0], dx + r[k].first * sample(c), &e), e);
		for (int64_t k = 0; k < c->dim[0] * sample(c); k += 1 + k % 5) {
			double was = x[k], up, down, eps = 1e-6;
			x[k] = was + eps;
			up = scalar(r, c, x);
			x[k] = was - eps;
			down = scalar(r, c, x);
			x[k] = was;
			double want = (up - down) / (2 * eps), d = fabs(dx[k] - want);
			most = fmax(most, d);
			CHECK_MSG(d <= 1e-5 + 1e-3 * fabs(want), "%s: dx[%lld] is %.9g, by differences %.9g", c->name, (long long)k, dx[k], want);
		}
		printf("# syncbn: %s: gradients within %.2g of central differences\n", c->name, most);
		for (int k = 0; k < c->n; k++)
			close_rank(&r[k]);
	}
}

RUN_TESTS()
