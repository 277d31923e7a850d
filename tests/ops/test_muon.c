/* The muon kernel against trajectories of make_muon.py: in f64 and f32, weights plain and blocked, several matrices in one call, with and
 * without a 16-bit copy; and its iteration in bf16 against loops that round where torch.optim.Muon rounds. */
/* tests/run: beside others */
#include "cpu_raw.h"
#include "harness.h"
#include "test.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STEPS 4
#define MAX 512

static const struct muon_case {
	const char *name;
	int rank;
	int64_t dim[4];
	double lr, momentum, weight_decay;
	bool nesterov, normalize;
	int ns_steps, adjust;
} cases[] = {
    {"tall", 2, {12, 5}, 0.1, 0.95, 0.1, true, false, 5, GT_MUON_ORIGINAL},
    {"wide", 2, {5, 12}, 0.05, 0.9, 0, true, false, 5, GT_MUON_RMS},
    {"square", 2, {6, 6}, 0.02, 0.95, 0.01, false, false, 5, GT_MUON_ORIGINAL},
    {"conv", 4, {8, 3, 3, 3}, 0.24, 0.6, 0, true, true, 3, GT_MUON_NONE},
    {"conv_tall", 4, {20, 2, 3, 1}, 0.1, 0, 0.5, false, true, 7, GT_MUON_ORIGINAL},
};
#define NCASES (int)(sizeof cases / sizeof *cases)

static double golden[NCASES][STEPS][MAX];

static bool read_goldens(void)
{
	char path[512], name[32];
	int step, lines = 0;
	snprintf(path, sizeof path, "%s/tests/golden/muon.txt", test_source());
	FILE *f = fopen(path, "r");
	if (!f)
		return false;
	while (fscanf(f, " #%*[^\n]") == 0 && fscanf(f, "%31s %d", name, &step) == 2)
		for (int c = 0; c < NCASES; c++) {
			int64_t n = 1;
			for (int k = 0; k < cases[c].rank; k++)
				n *= cases[c].dim[k];
			if (strcmp(name, cases[c].name))
				continue;
			for (int64_t i = 0; i < n; i++)
				if (fscanf(f, "%lf", &golden[c][step - 1][i]) != 1)
					return false;
			lines++;
			break;
		}
	fclose(f);
	return lines == NCASES * STEPS;
}

/* As a convolution may choose: rows in blocks of 16, padded; channels last. */
static void block(struct gt_tdesc *d)
{
	static const uint8_t order2[2] = {1, 0}, order4[4] = {0, 2, 3, 1};
	memcpy(d->layout.order, d->rank == 2 ? order2 : order4, d->rank == 2 ? 2 : 4);
	d->layout.nblk = 1;
	d->layout.blk_dim[0] = 0;
	d->layout.blk[0] = 16;
}

/* One case: two copies of the matrix, 5 elements apart in the flat arena, the second with half the rate. Returns the largest difference to
 * the golden, as a multiple of the rate. */
static double run(int c, enum gt_dtype t, bool blocked, bool with_work, int threads)
{
	const struct muon_case *m = &cases[c];
	struct gt_tdesc d = gt_tdesc_make(t, m->rank, m->dim, false);
	const struct gt_tdesc *desc[2] = {&d, &d};
	double worst = 0;
	if (blocked)
		block(&d);
	int64_t n = gt_tdesc_count(&d), size = gt_tdesc_padded(&d), total = 2 * size + 8, words = GT_SCALARS_WORDS;
	/* rates by the second entry of gt_step_args.lr; the second matrix's factor is 0: it keeps its values */
	struct gt_seg seg[2] = {{3, 3 + size, 2, m->weight_decay, 1}, {5 + size, 5 + 2 * size, 0, 0, 1}};
	struct gt_attr_muon attr = {
	    .update = {.momentum = m->momentum, .nesterov = m->nesterov, .eps = 1e-7, .seg = seg, .nseg = 2, .work_dtype = GT_BF16},
	    .desc = desc,
	    .ns_steps = m->ns_steps,
	    .ns = {3.4445, -4.7750, 2.0315},
	    .adjust = m->adjust,
	    .normalize = m->normalize};
	struct gt_tdesc flat = gt_tdesc_make(t, 1, &total, false), work = gt_tdesc_make(GT_BF16, 1, &total, false),
	                sc = gt_tdesc_make(GT_F64, 1, &words, false);
	struct gt_scalars scalars = {.inv_scale = 0.25};
	void *p = raw_alloc(t, total), *g = raw_alloc(t, total), *buf = raw_alloc(t, total), *w = raw_alloc(GT_BF16, total),
	     *plain = malloc(8 * MAX);
	struct gt_opcall call = {
	    .code = GT_OP_MUON, .name = "update", .attr = &attr, .nin = 5, .in = {&flat, &flat, &flat, &sc, with_work ? &work : NULL}};
	size_t bytes = gt_dtype_size(t);
	memset(p, 0, (size_t)total * bytes);
	memset(g, 0, (size_t)total * bytes);
	memset(buf, 0, (size_t)total * bytes);
	char name[64];
	snprintf(name, sizeof name, "%s/p", m->name);
	for (int64_t i = 0; i < n; i++)
		number_put(t, plain, i, (double)(float)harness_uniform(name, i));
	for (int k = 0; k < 2; k++)
		gt_tdesc_pack(&d, plain, (char *)p + (size_t)seg[k].begin * bytes);
	void *second = malloc((size_t)size * bytes);
	memcpy(second, (char *)p + (size_t)seg[1].begin * bytes, (size_t)size * bytes);
	for (int s = 0; s < STEPS; s++) {
		snprintf(name, sizeof name, "%s/g%d", m->name, s);
		for (int64_t i = 0; i < n; i++) /* as a loss scale of 4 leaves it */
			number_put(t, plain, i, 4 * (double)(float)harness_uniform(name, i));
		for (int k = 0; k < 2; k++)
			gt_tdesc_pack(&d, plain, (char *)g + (size_t)seg[k].begin * bytes);
		struct gt_step_args step_args = {.step = s + 1, .lr = {99, m->lr / 2}};
		if (!raw_run(threads, &call, (void *[]){p, g, buf, &scalars, with_work ? w : NULL}, NULL, &step_args))
			return NAN;
		scalars.skip = 1; /* a skipped step changes nothing */
		if (!raw_run(threads, &call, (void *[]){p, g, buf, &scalars, with_work ? w : NULL}, NULL, &step_args))
			return NAN;
		scalars.skip = 0;
		gt_tdesc_unpack(&d, (char *)p + (size_t)seg[0].begin * bytes, plain);
		for (int64_t i = 0; i < n; i++) {
			double apart = fabs(gt_load_number(t, plain, i) - golden[c][s][i]) / m->lr;
			worst = apart > worst || isnan(apart) ? apart : worst;
		}
	}
	for (int64_t i = 0; with_work && i < size; i++) {
		int64_t at = seg[0].begin + i;
		double have = gt_load_number(GT_BF16, w, at), want = harness_bf16(gt_load_number(t, p, at));
		CHECK_MSG(have == want || (blocked && gt_load_number(t, p, at) == 0), "%s: work copy %lld is %g, not %g", m->name,
		          (long long)at, have, want);
	}
	for (int64_t i = 0; i < total; i++) /* what belongs to no matrix, and the padding inside one, stays 0 */
		if ((i < seg[0].begin || (i >= seg[0].end && i < seg[1].begin) || i >= seg[1].end) && gt_load_number(t, p, i) != 0)
			CHECK_MSG(false, "%s: element %lld outside was written", m->name, (long long)i);
	gt_tdesc_unpack(&d, (char *)p + (size_t)seg[0].begin * bytes, plain);
	void *again = calloc((size_t)size, bytes);
	gt_tdesc_pack(&d, plain, again);
	CHECK_MSG(!memcmp(again, (char *)p + (size_t)seg[0].begin * bytes, (size_t)size * bytes), "%s: padding was written", m->name);
	CHECK_MSG(!memcmp(second, (char *)p + (size_t)seg[1].begin * bytes, (size_t)size * bytes), "%s: a rate of 0 moved a weight", m->name);
	free(again), free(second), free(p), free(g), free(buf), free(w), free(plain);
	return worst;
}

TEST(muon_has_the_trajectories)
{
	double worst[3] = {0};
	CHECK_MSG(read_goldens(), "tests/golden/muon.txt is not what make_muon.py writes");
	for (int c = 0; c < NCASES; c++)
		for (int v = 0; v < 8; v++) {
			enum gt_dtype t = v & 1 ? GT_F64 : GT_F32;
			double apart = run(c, t, v & 2, v & 4, 1 + (v & 2) / 2);
			/* Elements of the update are at most 1 and come out of up to 7 iterations of products of up to 20 terms, whose slope at a small
			 * singular value is 3.4445: errors of the first ones grow by that much each. In f32 2^-24 * 3.4445^7 = 3e-4 at worst; measured
			 * 1e-5. In f64 that is 6e-13. */
			double tol = 3e-4;
			/* With a 16-bit copy the iteration is in bf16: some of its 2^-8 an element and step, the bound of make_muon.py. */
			int kind = t == GT_F64 ? 1 : v & 4 ? 2 : 0;
			tol = kind == 1 ? 1e-11 : kind == 2 ? STEPS * 8.0 / 256 : tol;
			CHECK_MSG(apart < tol, "%s, variant %d: %.2e of a step apart", cases[c].name, v, apart);
			worst[kind] = apart > worst[kind] ? apart : worst[kind];
		}
	printf("# muon: %d trajectories of %d steps, f32 within %.1e, f64 within %.1e and bf16 within %.1e of a step\n", 8 * NCASES, STEPS,
	       worst[0], worst[1], worst[2]);
}

/* ---- bf16 ------------------------------------------------------------------------------------------------------------------------ */
/* c[m, n] = alpha a[m, k] b[k, n] + beta d, rounded to bf16; strides of rows and columns. */
static void multiply(int64_t m, int64_t n, int64_t k, double alpha, const double *a, int64_t ar, int64_t ac, const double *b, int64_t br,
                     int64_t bc, double beta, const double *d, double *c)
{
	for (int64_t i = 0; i < m; i++)
		for (int64_t j = 0; j < n; j++) {
			double sum = 0;
			for (int64_t l = 0; l < k; l++)
				sum += a[i * ar + l * ac] * b[l * br + j * bc];
			c[i * n + j] = harness_bf16(alpha * sum + (beta != 0 ? beta * d[i * n + j] : 0));
		}
}

/* Iterates x[r, c] five times, with memory for products in y, a and p. */
static void iterate(int64_t r, int64_t c, double *x, double *y, double *a, double *p)
{
	const double ns[] = {3.4445, -4.7750, 2.0315};
	int64_t s = r < c ? r : c;
	bool wide = r <= c;
	for (int k = 0; k < 5; k++) {
		multiply(s, s, wide ? c : r, 1, x, wide ? c : 1, wide ? 1 : c, x, wide ? 1 : c, wide ? c : 1, 0, NULL, a);
		multiply(s, s, s, ns[2], a, s, 1, a, s, 1, ns[1], a, p);
		multiply(r, c, s, 1, wide ? p : x, wide ? s : c, 1, wide ? x : p, wide ? c : s, 1, ns[0], x, y);
		memcpy(x, y, (size_t)(r * c) * sizeof *x);
	}
}

TEST(muon_iterates_in_bf16_with_a_work_copy)
{
	static const int64_t shapes[][2] = {{40, 150}, {150, 40}, {70, 70}};
	double worst = 0, mean = 0, count = 0;
	for (int c = 0; c < 3; c++) {
		int64_t rows = shapes[c][0], cols = shapes[c][1], n = rows * cols, words = GT_SCALARS_WORDS;
		struct gt_tdesc d = gt_tdesc_make(GT_F32, 2, shapes[c], false), flat = gt_tdesc_make(GT_F32, 1, &n, false),
		                w = gt_tdesc_make(GT_BF16, 1, &n, false), sc = gt_tdesc_make(GT_F64, 1, &words, false);
		const struct gt_tdesc *desc = &d;
		struct gt_seg seg = {.end = n, .lr_mul = 1};
		struct gt_attr_muon attr = {.update = {.eps = 1e-7, .seg = &seg, .nseg = 1, .work_dtype = GT_BF16}, .desc = &desc, .ns_steps = 5,
		                            .ns = {3.4445, -4.7750, 2.0315}, .adjust = GT_MUON_NONE};
		struct gt_scalars scalars = {.inv_scale = 1};
		struct gt_step_args step_args = {.step = 1, .lr = {1}};
		float *p = raw_alloc(GT_F32, n), *g = raw_alloc(GT_F32, n), *buf = raw_alloc(GT_F32, n);
		void *work = raw_alloc(GT_BF16, n);
		double *x = malloc((size_t)n * 8), *y = malloc((size_t)n * 8), *a = malloc((size_t)n * 8 * 2), *q = malloc((size_t)n * 8 * 2);
		double norm = 0;
		memset(p, 0, (size_t)n * 4);
		memset(buf, 0, (size_t)n * 4);
		for (int64_t i = 0; i < n; i++) {
			g[i] = (float)harness_uniform("muon/bf16", i);
			norm += (double)g[i] * g[i];
		}
		for (int64_t i = 0; i < n; i++)
			x[i] = harness_bf16(g[i] * (float)(1 / (sqrt(norm) + 1e-7)));
		struct gt_opcall call = {.code = GT_OP_MUON, .name = "update", .attr = &attr, .nin = 5, .in = {&flat, &flat, &flat, &sc, &w}};
		CHECK(raw_run(1 + c % 2, &call, (void *[]){p, g, buf, &scalars, work}, NULL, &step_args));
		iterate(rows, cols, x, y, a, q);
		for (int64_t i = 0; i < n; i++, count++) {
			double apart = fabs((double)p[i] + x[i]);
			worst = apart > worst || isnan(apart) ? apart : worst;
			mean += apart;
		}
		free(p), free(g), free(buf), free(work), free(x), free(y), free(a), free(q);
	}
	/* Sums in f32 are off by 2^-24 sqrt(150), so that one rounding to bf16 in some thousands falls on the other side, and is multiplied by
	 * 3.4445 at most in each iteration. An iteration in f32 would be 7e-4 away on average (tests/cudasim/tool_muon.c). */
	CHECK_MSG(worst <= 0.1 && mean / count <= 2e-4, "the worst element is %.2e of a step apart, the mean %.2e", worst, mean / count);
	printf("# muon in bf16: worst element %.1e of a step apart, mean %.1e\n", worst, mean / count);
}

TEST(muon_refuses_what_is_no_matrix)
{
	int64_t n = 16;
	struct gt_tdesc flat = gt_tdesc_make(GT_F32, 1, &n, false);
	const struct gt_tdesc *desc[1] = {&flat};
	struct gt_seg seg = {0, 16, 1, 0, 0};
	struct gt_attr_muon attr = {.update = {.seg = &seg, .nseg = 1}, .desc = desc, .ns_steps = 5};
	struct gt_opcall call = {.code = GT_OP_MUON, .name = "update", .attr = &attr, .nin = 3, .in = {&flat, &flat, &flat}};
	struct gt_err e = {0};
	float x[16];
	struct gt_step_args step_args = {0};
	CHECK(raw_try(1, &call, (void *[]){x, x, x}, NULL, &step_args, &e) == GT_EUNAVAILABLE);
	CHECK_MSG(strstr(e.msg, "muon") && strstr(e.msg, "matrices"), "%s", e.msg);
}

RUN_TESTS()
