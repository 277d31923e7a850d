/* The op table (tests/ops/cases.txt) on a backend in every precision against the backend `ref` (tests/ops/ref/) in f64 on the same numbers,
 * rounded to the precision beforehand: results, gradients of inputs and parameters, running statistics. test_ops compares f32 and bf16 with
 * PyTorch; PyTorch's CPU has no tf32, and rounds f16 in places of its own. tool_table [-b BACKEND] [WORD]: BACKEND is cuda unless given,
 * WORD picks cases by name. At the end, for each layer type and precision: `worst TYPE PRECISION CASES SHARE ERROR CASE`, the number of
 * cases, the largest difference in units of its tolerance, the largest error relative to the largest value of its tensor, and the case of
 * the former.
 * Run by check.sh on a GPU, and from build/cudasim on the host's CUDA runtime. */
#include "ops/harness_case.h"
#include "test.h"
#include "tolerance.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct precision {
	enum gt_tolerance_id id;
	enum gt_dtype type;
	bool tf32;
	double error, share;
	char error_at[160], share_at[160];
	int cases;
};

static struct precision precisions[] = {{.id = GT_TOLERANCE_F32, .type = GT_F32},
                                        {.id = GT_TOLERANCE_TF32, .type = GT_F32, .tf32 = true},
                                        {.id = GT_TOLERANCE_BF16, .type = GT_BF16},
                                        {.id = GT_TOLERANCE_F16, .type = GT_F16}};
#define NPREC (int)(sizeof precisions / sizeof *precisions)

/* The worst figures of a layer type in a precision. */
struct worst {
	int cases;
	double error, share;
	const char *case_name; /* of share */
};
static struct {
	const char *type;
	struct worst of[NPREC];
} types[128];

struct pair {
	struct worst *worst;
	struct harness *h, *ref;
	struct net n, r;
	struct precision *p;
};

static bool products(const struct opcase *c)
{
	return strstr(c->type, "linear") || strstr(c->type, "conv") || !strcmp(c->type, "shortcut") || !strcmp(c->type, "attention") ||
	       !strcmp(c->type, "lstm") || !strcmp(c->type, "gru");
}

/* Returns the row of a layer type, or that of the last one if there are too many types. */
static struct worst *find_worst(const char *type, int precision)
{
	size_t i = 0;
	while (i + 1 < sizeof types / sizeof *types && types[i].type && strcmp(types[i].type, type) != 0)
		i++;
	types[i].type = type;
	return &types[i].of[precision];
}

static void note_worst(struct worst *w, const char *case_name, double share, double error)
{
	share = isnan(share) ? INFINITY : share;
	if (!w->case_name || share > w->share)
		w->share = share, w->case_name = case_name;
	w->error = fmax(w->error, error);
}

static void print_worst(void)
{
	for (size_t i = 0; i < sizeof types / sizeof *types && types[i].type; i++)
		for (int k = 0; k < NPREC; k++) {
			const struct worst *w = &types[i].of[k];
			if (w->cases)
				printf("worst %s %s %d %.3g %.2g %s\n", types[i].type, gt_tolerance_of(precisions[k].id)->name, w->cases, w->share,
				       w->error, w->case_name ? w->case_name : "-");
		}
}

static enum gt_code compare(struct pair *q, const char *what, const double *got, const double *want, int64_t count, struct gt_err *err)
{
	struct precision *p = q->p;
	double top = 0, k = (double)count;
	for (int64_t i = 0; i < count; i++)
		top = fmax(top, fabs(want[i]));
	for (int i = 0; i < q->n.g->nvalues; i++)
		k = fmax(k, (double)gt_tdesc_count(&q->n.g->values[i].desc));
	bool halves = p->type == GT_BF16 || p->type == GT_F16;
	double atol = gt_tolerance_atol(p->id, k, halves ? case_rounding(q->n.c, top) : top), rtol = gt_tolerance_of(p->id)->rtol;
	for (int64_t i = 0; i < count; i++) {
		double d = fabs(got[i] - want[i]), share = d / (atol + rtol * fabs(want[i]));
		note_worst(q->worst, q->n.c->name, share, top > 0 ? d / top : 0);
		if (!(share <= 1))
			return gt_fail(err, GT_EFAIL, "%s[%lld] = %.9g, ref in f64 has %.9g (tolerance %.2g)", what, (long long)i, got[i], want[i],
			               atol + rtol * fabs(want[i]));
		if (share > p->share) {
			p->share = share;
			snprintf(p->share_at, sizeof p->share_at, "%s %s", q->n.c->name, what);
		}
		if (top > 0 && d / top > p->error) {
			p->error = d / top;
			snprintf(p->error_at, sizeof p->error_at, "%s %s", q->n.c->name, what);
		}
	}
	return GT_OK;
}

static enum gt_code compare_value(struct pair *q, gt_vid a, gt_vid b, const char *what, struct gt_err *err)
{
	double *got = harness_plain(q->h, a), *want = harness_plain(q->ref, b);
	enum gt_code code = harness_get(q->h, a, got, err);
	if (code == GT_OK)
		code = harness_get(q->ref, b, want, err);
	if (code == GT_OK)
		code = compare(q, what, got, want, gt_tdesc_count(&q->n.g->values[a].desc), err);
	free(got);
	free(want);
	return code;
}

static enum gt_code compare_loss(struct pair *q, struct gt_err *err)
{
	struct gt_metrics a, b;
	GT_TRY(harness_metrics(q->h, q->n.g->metrics, &a, err));
	GT_TRY(harness_metrics(q->ref, q->r.g->metrics, &b, err));
	double got = a.loss * q->h->step_args.inv_weight, want = b.loss * q->ref->step_args.inv_weight;
	if (a.count != b.count || fabs(a.weight - b.weight) > 1e-12 * b.weight)
		return gt_fail(err, GT_EFAIL, "%lld samples of weight %g, not %lld of %g", (long long)a.count, a.weight, (long long)b.count,
		               b.weight);
	return compare(q, "loss", &got, &want, 1, err);
}

static enum gt_code compare_all(struct pair *q, struct gt_err *err)
{
	char what[160];
	GT_TRY(q->n.y < 0 ? compare_loss(q, err) : compare_value(q, q->n.y, q->r.y, "y", err));
	for (int i = 0; i < q->n.ninputs && (q->n.y < 0 || q->n.dy >= 0); i++) {
		if (q->n.c->in[i].codes)
			continue;
		snprintf(what, sizeof what, "dx%d", i);
		if (q->n.dx[i] < 0)
			return gt_fail(err, GT_EFAIL, "%s: the gradient is missing", what);
		GT_TRY(compare_value(q, q->n.dx[i], q->r.dx[i], what, err));
	}
	for (int i = 0; i < q->n.g->nparams && q->n.dy >= 0; i++) {
		const struct gt_param *a = &q->n.g->params[i], *b = &q->r.g->params[i];
		bool buffer = a->cls == GT_PARAM_BUFFER;
		snprintf(what, sizeof what, "%s%s", buffer ? "" : "d.", a->name + 2);
		if (!buffer && a->grad < 0)
			return gt_fail(err, GT_EFAIL, "%s: the gradient is missing", what);
		GT_TRY(compare_value(q, buffer ? a->value : a->grad, buffer ? b->value : b->grad, what, err));
	}
	return GT_OK;
}

static enum gt_code check(struct pair *q, const struct opcase *c, struct gt_err *err)
{
	GT_TRY(net_build(&q->r, c, GT_F64, err));
	GT_TRY(net_build(&q->n, c, q->p->type, err));
	q->ref->numbers = q->p->type;
	GT_TRY(case_run(q->ref, &q->r, 0, NULL, err));
	double *y = NULL;
	enum gt_code code = GT_OK;
	if (opcase_key(c, "act")) {
		y = harness_plain(q->ref, q->r.y);
		code = harness_get(q->ref, q->r.y, y, err);
	}
	if (code == GT_OK)
		code = case_run(q->h, &q->n, 0, y, err);
	free(y);
	return code == GT_OK ? compare_all(q, err) : code;
}

static int run(struct harness *h, struct harness *ref, const struct opcase *c, struct precision *p)
{
	struct pair q = {.worst = find_worst(c->type, (int)(p - precisions)), .h = h, .ref = ref, .p = p};
	struct gt_err err = {0};
	enum gt_code code = check(&q, c, &err);
	if (code == GT_OK)
		printf("ok table %s (%s)\n", c->name, gt_tolerance_of(p->id)->name), p->cases++;
	else
		printf("%s table %s (%s): %s\n", code == GT_EUNAVAILABLE ? "skip" : "not ok", c->name, gt_tolerance_of(p->id)->name, err.msg);
	q.worst->cases += code != GT_EUNAVAILABLE;
	harness_drop(h);
	harness_drop(ref);
	gt_arena_close(q.n.arena);
	gt_arena_close(q.r.arena);
	return code != GT_OK && code != GT_EUNAVAILABLE;
}

int main(int argc, char **argv)
{
	struct optable t;
	struct harness h[2], ref; /* h[1]: with tf32 */
	struct gt_err err = {0};
	char cases[512], goldens[512];
	const char *backend = "cuda";
	int bad = 0;
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 2 && !strcmp(argv[1], "-b"))
		backend = argv[2], argc -= 2, argv += 2;
	snprintf(cases, sizeof cases, "%s/tests/ops/cases.txt", test_source());
	snprintf(goldens, sizeof goldens, "%s/tests/golden/ops.bin", test_source());
	if (optable_read(cases, goldens, &t, &err) != GT_OK || harness_open(&ref, "ref", &err) != GT_OK ||
	    harness_open(&h[0], backend, &err) != GT_OK ||
	    harness_open_with(&h[1], backend, &(struct gt_dev_opts){.threads = 2, .deterministic = true, .tf32 = true}, &err) != GT_OK) {
		printf("not ok table: %s\n", err.msg);
		return 1;
	}
	for (int i = 0; i < t.ncases; i++) {
		const struct opcase *c = &t.cases[i];
		if (!strncmp(c->type, "update:", 7) || !strcmp(c->type, "dropout") || (argc > 1 && !strstr(c->name, argv[1])))
			continue;
		for (int k = 0; k < NPREC; k++)
			if (!precisions[k].tf32 || products(c)) /* nothing else knows tf32 */
				bad += run(&h[precisions[k].tf32], &ref, c, &precisions[k]);
	}
	for (int k = 0; k < NPREC; k++)
		printf("# table on %s, %s: %d cases, worst error %.2g of a tensor's largest value (%s), %.3f of the tolerance (%s)\n", backend,
		       gt_tolerance_of(precisions[k].id)->name, precisions[k].cases, precisions[k].error, precisions[k].error_at,
		       precisions[k].share, precisions[k].share_at);
	print_worst();
	harness_close(&h[1]);
	harness_close(&h[0]);
	harness_close(&ref);
	gt_arena_close(t.arena);
	return bad != 0;
}
