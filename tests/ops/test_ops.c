/* Every case of cases.txt on one backend. test_ops [-b BACKEND] [WORD]: WORD picks cases by name, BACKEND is cpu unless given.
 * Checks of a case, one line each:
 *   grad   f64: gradients against central differences (PyTorch's gradcheck: eps 1e-6, atol 1e-5, rtol 1e-3)
 *   f64, f32, bf16   results and gradients against PyTorch's
 *   acc    f32: parameter gradients are added to what is there */
/* tests/run: beside others */
#include "harness_case.h"
#include "test.h"
#include "tolerance.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct worst {
	double ratio;
	char what[160];
};

static struct worst worst[4]; /* grad, f64, f32, bf16 */
enum { W_GRAD, W_F64, W_F32, W_BF16 };
static const char *const worst_name[4] = {"gradients by differences", "f64", "f32", "bf16"};

/* ---- against PyTorch ---- */

static enum gt_code compare(const struct optable *t, const struct net *n, enum gt_dtype dt, const char *what, const double *got,
                            int64_t count, double shift, struct gt_err *err)
{
	char name[256];
	snprintf(name, sizeof name, "%s %s %s", n->c->name, dt == GT_BF16 ? "bf16" : "f32", what);
	const struct golden *g = optable_golden(t, name);
	if (!g)
		return gt_fail(err, GT_EFAIL, "golden/ops.bin has no \"%s\"", name);
	if (g->n != count)
		return gt_fail(err, GT_EFAIL, "%s has %lld elements, PyTorch's %lld", what, (long long)count, (long long)g->n);
	double top = fabs(shift), k = (double)count;
	for (int64_t i = 0; i < count; i++)
		top = fmax(top, fabs(g->v[i]));
	for (int i = 0; i < n->g->nvalues; i++)
		k = fmax(k, (double)gt_tdesc_count(&n->g->values[i].desc));
	/* kernels/tolerance.h. In f64 what remains is that goldens are stored in f32 (2^-24). */
	enum gt_tolerance_id id = dt == GT_BF16 ? GT_TOLERANCE_BF16 : GT_TOLERANCE_F32;
	double rtol = dt == GT_F64 ? 0x1p-23 : gt_tolerance_of(id)->rtol;
	double atol = dt == GT_F64 ? 1e-7 : gt_tolerance_atol(id, k, dt == GT_BF16 ? case_rounding(n->c, top) : top);
	struct worst *w = &worst[dt == GT_BF16 ? W_BF16 : dt == GT_F32 ? W_F32 : W_F64];
	for (int64_t i = 0; i < count; i++) {
		double want = (double)g->v[i] + shift, ratio = fabs(got[i] - want) / (atol + rtol * fabs(want));
		if (!(ratio <= 1))
			return gt_fail(err, GT_EFAIL, "%s[%lld] = %.9g, PyTorch has %.9g (tolerance %.2g)", what, (long long)i, got[i], want,
			               atol + rtol * fabs(want));
		if (ratio > w->ratio) {
			w->ratio = ratio;
			snprintf(w->what, sizeof w->what, "%s %s", n->c->name, what);
		}
	}
	return GT_OK;
}

static enum gt_code compare_value(struct harness *h, const struct optable *t, const struct net *n, gt_vid v, const char *what, double shift,
                                  struct gt_err *err)
{
	double *p = harness_plain(h, v);
	enum gt_code code = harness_get(h, v, p, err);
	if (code == GT_OK)
		code = compare(t, n, n->g->compute, what, p, gt_tdesc_count(&n->g->values[v].desc), shift, err);
	free(p);
	return code;
}

static enum gt_code compare_loss(struct harness *h, const struct optable *t, const struct net *n, struct gt_err *err)
{
	struct gt_metrics m;
	GT_TRY(harness_metrics(h, n->g->metrics, &m, err));
	double loss = m.loss * h->step_args.inv_weight, counts[3] = {(double)m.correct, (double)m.top5, (double)m.count};
	GT_TRY(compare(t, n, n->g->compute, "loss", &loss, 1, 0, err));
	if (fabs(m.weight * h->step_args.inv_weight - 1) > 1e-12)
		return gt_fail(err, GT_EFAIL, "the weight of the batch is %g, not %g", m.weight, 1 / h->step_args.inv_weight);
	/* bf16 inputs can tie, and which of two equal logits is "the" largest is nobody's promise. */
	return n->g->compute == GT_BF16 ? GT_OK : compare(t, n, n->g->compute, "counts", counts, 3, 0, err);
}

static enum gt_code check_golden(struct harness *h, const struct optable *t, const struct opcase *c, enum gt_dtype dt, double grads,
                                 struct net *n, struct gt_err *err)
{
	char what[280];
	GT_TRY(net_build(n, c, dt, err));
	snprintf(what, sizeof what, "%s %s y", c->name, dt == GT_BF16 ? "bf16" : "f32");
	const struct golden *y = opcase_key(c, "act") ? optable_golden(t, what) : NULL;
	if (y && y->n != gt_tdesc_count(&n->g->values[n->y].desc))
		return gt_fail(err, GT_EFAIL, "golden/ops.bin has %lld elements of %s", (long long)y->n, what);
	double *want = y ? calloc((size_t)y->n + 1, sizeof *want) : NULL;
	for (int64_t i = 0; want && i < y->n; i++)
		want[i] = (double)y->v[i];
	enum gt_code code = case_run(h, n, grads, want, err);
	free(want);
	GT_TRY(code);
	if (n->y < 0)
		GT_TRY(compare_loss(h, t, n, err));
	else
		GT_TRY(compare_value(h, t, n, n->y, "y", 0, err));
	for (int i = 0; i < n->ninputs && (n->y < 0 || n->dy >= 0); i++) {
		if (n->c->in[i].codes)
			continue;
		snprintf(what, sizeof what, "dx%d", i);
		if (n->dx[i] < 0)
			return gt_fail(err, GT_EFAIL, "%s: the gradient is missing", what);
		GT_TRY(compare_value(h, t, n, n->dx[i], what, 0, err));
	}
	for (int i = 0; i < n->g->nparams && n->dy >= 0; i++) {
		const struct gt_param *p = &n->g->params[i];
		snprintf(what, sizeof what, "%s%s", p->cls == GT_PARAM_BUFFER ? "" : "d.", p->name + 2);
		if (p->cls != GT_PARAM_BUFFER && p->grad < 0)
			return gt_fail(err, GT_EFAIL, "%s: the gradient is missing", what);
		GT_TRY(compare_value(h, t, n, p->cls == GT_PARAM_BUFFER ? p->value : p->grad, what,
		                     h->accumulate && p->cls != GT_PARAM_BUFFER ? grads : 0, err));
	}
	return GT_OK;
}

/* ---- against central differences ---- */

static enum gt_code scalar(struct harness *h, const struct net *n, const double *r, double *out, struct gt_err *err)
{
	GT_TRY(case_forward(h, n, err));
	*out = 0;
	if (n->y < 0) {
		struct gt_metrics m;
		GT_TRY(harness_metrics(h, n->g->metrics, &m, err));
		*out = m.loss * h->step_args.inv_weight;
		return GT_OK;
	}
	double *y = harness_plain(h, n->y);
	enum gt_code code = harness_get(h, n->y, y, err);
	for (int64_t i = 0; i < gt_tdesc_count(&h->g->values[n->y].desc); i++)
		*out += y[i] * r[i];
	free(y);
	return code;
}

/* zero_row: row of a table that has no gradient although y depends on it; -1: none */
static enum gt_code differ(struct harness *h, const struct net *n, gt_vid v, gt_vid grad, const char *what, const double *r,
                           int64_t zero_row, struct gt_err *err)
{
	const double eps = 1e-6, atol = 1e-5, rtol = 1e-3; /* torch.autograd.gradcheck's */
	int64_t count = gt_tdesc_count(&n->g->values[v].desc);
	int64_t stride = count > 256 ? count / 128 | 1 : 1; /* of a large tensor a sample, at an odd stride */
	double *x = harness_plain(h, v), *g = harness_plain(h, grad);
	enum gt_code code = harness_get(h, v, x, err);
	if (code == GT_OK)
		code = harness_get(h, grad, g, err);
	for (int64_t i = 0; code == GT_OK && i < count; i += stride) {
		if (zero_row >= 0 && i / n->g->values[v].desc.dim[1] == zero_row)
			continue;
		double old = x[i], hi = 0, lo = 0;
		x[i] = old + eps;
		if ((code = harness_put(h, v, x, err)) == GT_OK)
			code = scalar(h, n, r, &hi, err);
		x[i] = old - eps;
		if (code == GT_OK && (code = harness_put(h, v, x, err)) == GT_OK)
			code = scalar(h, n, r, &lo, err);
		x[i] = old;
		double want = (hi - lo) / (2 * eps), ratio = fabs(g[i] - want) / (atol + rtol * fabs(want));
		if (code == GT_OK && !(ratio <= 1))
			code = gt_fail(err, GT_EFAIL, "%s[%lld] = %.9g, differences give %.9g", what, (long long)i, g[i], want);
		if (ratio > worst[W_GRAD].ratio) {
			worst[W_GRAD].ratio = ratio;
			snprintf(worst[W_GRAD].what, sizeof worst[W_GRAD].what, "%s %s", n->c->name, what);
		}
	}
	if (code == GT_OK)
		code = harness_put(h, v, x, err);
	free(x);
	free(g);
	return code;
}

static enum gt_code check_gradients(struct harness *h, const struct opcase *c, struct net *n, struct gt_err *err)
{
	char what[160];
	GT_TRY(net_build(n, c, GT_F64, err));
	GT_TRY(case_run(h, n, 0, NULL, err));
	double *r = NULL;
	enum gt_code code = GT_OK;
	if (n->dy >= 0) {
		r = harness_plain(h, n->dy);
		code = harness_get(h, n->dy, r, err);
	}
	for (int i = 0; code == GT_OK && i < n->ninputs; i++) {
		if (n->c->in[i].codes)
			continue;
		snprintf(what, sizeof what, "dx%d", i);
		code = n->dx[i] < 0 ? gt_fail(err, GT_EFAIL, "%s: the gradient is missing", what)
		                    : differ(h, n, n->x[i], n->dx[i], what, r, -1, err);
	}
	for (int i = 0; code == GT_OK && i < n->g->nparams; i++)
		if (n->g->params[i].cls != GT_PARAM_BUFFER) {
			snprintf(what, sizeof what, "d.%s", n->g->params[i].name + 2);
			code = n->g->params[i].grad < 0 ? gt_fail(err, GT_EFAIL, "%s: the gradient is missing", what)
			                                : differ(h, n, n->g->params[i].value, n->g->params[i].grad, what, r,
			                                         n->g->params[i].zero_row, err);
		}
	free(r);
	return code;
}

/* ---- the run ---- */

static int bad;

static void report(const char *name, const char *check, enum gt_code code, const struct gt_err *err, bool optional)
{
	if (code == GT_OK)
		printf("ok ops %s (%s)\n", name, check);
	else if (code == GT_EUNAVAILABLE && optional) /* the backend refuses by a sentence */
		printf("skip ops %s (%s): %s\n", name, check, err->msg);
	else
		printf("not ok ops %s (%s): %s\n", name, check, err->msg), bad++;
}

static void close_net(struct harness *h, struct net *n)
{
	harness_drop(h);
	gt_arena_close(n->arena);
	n->arena = NULL;
}

/* ref: the backend of the checks in f64; NULL: these are not made, and h need not have every operation. */
static void run_case(struct harness *h, struct harness *ref, const struct optable *t, const struct opcase *c)
{
	static const struct { enum gt_dtype t; const char *name; } runs[] = {{GT_F64, "f64"}, {GT_F32, "f32"}, {GT_BF16, "bf16"}};
	struct gt_err err = {0};
	struct net n = {0};
	bool all_optional = !ref;
	const char *mode = opcase_key(c, "mode");
	if ((!mode || strcmp(mode, "eval")) && ref) {
		report(c->name, "grad", check_gradients(ref, c, &n, &err), &err, false);
		close_net(ref, &n);
	}
	if (!strncmp(c->type, "drop", 4))
		return;
	for (int i = 0; i < 3; i++) {
		struct harness *on = runs[i].t == GT_F64 ? ref : h;
		if (!on)
			continue;
		report(c->name, runs[i].name, check_golden(on, t, c, runs[i].t, 0, &n, &err), &err, all_optional);
		close_net(on, &n);
	}
	h->accumulate = true;
	enum gt_code code = check_golden(h, t, c, GT_F32, 0.75, &n, &err);
	if (n.g && n.g->nparams && n.dy >= 0)
		report(c->name, "acc", code, &err, all_optional);
	h->accumulate = false;
	close_net(h, &n);
}

int main(int argc, char **argv)
{
	struct optable t;
	struct harness h, ref = {0};
	struct gt_err err = {0};
	char cases[512], goldens[512];
	const char *backend = "cpu";
	int ran = 0;
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 2 && !strcmp(argv[1], "-b"))
		backend = argv[2], argc -= 2, argv += 2;
	snprintf(cases, sizeof cases, "%s/tests/ops/cases.txt", test_source());
	snprintf(goldens, sizeof goldens, "%s/tests/golden/ops.bin", test_source());
	bool cpu = !strcmp(backend, "cpu"); /* the only backend that has every operation */
	if (optable_read(cases, goldens, &t, &err) != GT_OK || harness_open(&h, backend, &err) != GT_OK ||
	    (cpu && harness_open(&ref, "ref", &err) != GT_OK)) {
		printf("not ok ops: %s\n", err.msg);
		return 1;
	}
	for (int i = 0; i < t.ncases; i++)
		if (strncmp(t.cases[i].type, "update:", 7) && (argc < 2 || strstr(t.cases[i].name, argv[1]))) {
			run_case(&h, cpu ? &ref : NULL, &t, &t.cases[i]);
			ran++;
		}
	printf("# op cases on %s: %d\n", backend, ran);
	for (int i = 0; i < 4; i++)
		printf("# op cases, worst share of the tolerance, %s: %.3f (%s)\n", worst_name[i], worst[i].ratio, worst[i].what);
	harness_close(&ref);
	harness_close(&h);
	gt_arena_close(t.arena);
	return bad != 0;
}
