/* The CPU backend's losses and layernorm against formulas in double. */
/* tests/run: beside others */
#include "cpu_raw.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NEW(t, n) raw_alloc(t, n)

/* ---- losses ------------------------------------------------------------------------------------------------------------------- */
struct loss_case {
	enum gt_opcode code;
	int64_t n, c;
	double smoothing, range;
	bool ignore; /* every third sample */
};

static enum gt_code loss_run(int threads, enum gt_dtype t, const struct loss_case *k, const void *x, const int32_t *target, void *dx,
                             struct gt_metrics *m, struct gt_err *e)
{
	struct gt_attr_loss attr = {.number = {k->smoothing}, .ignore_index = -100};
	struct gt_tdesc d = gt_tdesc_make(t, 2, (int64_t[]){k->n, k->c}, true), g = d, ti = gt_tdesc_make(GT_I32, 1, &k->n, false);
	struct gt_tdesc metrics = gt_tdesc_make(GT_U8, 1, (int64_t[]){sizeof *m}, false);
	struct gt_opcall call = {.code = k->code, .attr = &attr, .nin = 2, .nout = dx ? 2 : 1, .in = {&d, &ti}, .out = {&metrics, &g}};
	struct gt_step_args step_args = {.inv_weight = 1.0 / 96};
	return raw_try(threads, &call, (void *[]){(void *)x, (void *)target}, (void *[]){m, dx}, &step_args, e);
}

/* An evaluation has the bits of a training step, and the same bits if its rows are divided into two calls. */
static void evaluation_check(enum gt_dtype t, const struct loss_case *k, const void *x, const int32_t *target, void *dx)
{
	struct gt_metrics train = {0}, whole = {0}, parts = {0};
	struct loss_case first = *k, rest = *k;
	struct gt_err e = {0};
	first.n = (k->n + 1) / 3;
	rest.n = k->n - first.n;
	CHECK_OK(loss_run(1, t, k, x, target, dx, &train, &e), e);
	CHECK_OK(loss_run(3, t, k, x, target, NULL, &whole, &e), e);
	CHECK(!memcmp(&train, &whole, sizeof train));
	if (first.n)
		CHECK_OK(loss_run(3, t, &first, x, target, NULL, &parts, &e), e);
	x = (const char *)x + (size_t)(first.n * k->c) * gt_dtype_size(t);
	CHECK_OK(loss_run(1, t, &rest, x, target + first.n, NULL, &parts, &e), e);
	CHECK_MSG(!memcmp(&whole, &parts, sizeof whole), "%s: loss %.17g, in parts %.17g", gt_opcode_name(k->code), whole.loss, parts.loss);
}

static void loss_check(const struct loss_case *k, enum gt_dtype t)
{
	int64_t n = k->n, c = k->c;
	void *x = NEW(t, n * c), *dx = NEW(t, n * c), *dz = NEW(t, n * c);
	int32_t *target = NEW(GT_I32, n);
	double *want = calloc((size_t)(n * c), 8), *tol = calloc((size_t)(n * c), 8), loss = 0, mag = 0;
	struct gt_metrics m = {.loss = 100, .weight = 7, .correct = 1, .top5 = 2, .count = 7}, m3 = m, me = m;
	int64_t count = 0, correct = 0, top5 = 0;
	struct gt_err e = {0};
	double eps = raw_eps(t), inv = 1.0 / 96;
	raw_random(t, x, n * c, 3, -k->range, k->range);
	for (int64_t r = 0; r < n; r++) {
		int64_t y = target[r] = (int32_t)(raw_uniform(5, (uint32_t)r) * (double)c);
		double max = -INFINITY, sum = 0, row = 0, smooth = 0;
		if (k->ignore && r % 3 == 1) {
			target[r] = -100;
			continue;
		}
		for (int64_t j = 0; j < c; j++)
			max = fmax(max, gt_load_number(t, x, r * c + j));
		for (int64_t j = 0; j < c; j++)
			sum += exp(gt_load_number(t, x, r * c + j) - max);
		int before = 0;
		for (int64_t j = 0; j < c; j++) {
			double v = gt_load_number(t, x, r * c + j), lp = v - max - log(sum), p = exp(lp), hot = j == y;
			before += v > gt_load_number(t, x, r * c + y) || (v == gt_load_number(t, x, r * c + y) && j < y);
			if (k->code == GT_OP_CROSS_ENTROPY) {
				row += -(1 - k->smoothing) * hot * lp;
				smooth += -k->smoothing / (double)c * lp;
				want[r * c + j] = (p - (1 - k->smoothing) * hot - k->smoothing / (double)c) * inv;
				tol[r * c + j] = ((2 * k->range + 10 + (double)c / 16) * p + 4 * hot + 4 * k->smoothing / (double)c) * inv * eps;
			} else if (k->code == GT_OP_NLL) {
				row += -hot * v;
				want[r * c + j] = -hot * inv;
				tol[r * c + j] = inv * eps;
			} else {
				row += (v - hot) * (v - hot) / (double)c;
				want[r * c + j] = 2 * (v - hot) * inv / (double)c;
				tol[r * c + j] = 4 * fabs(want[r * c + j]) * eps;
			}
		}
		loss += row + smooth;
		/* f32 arithmetic within a row: z, log(sum) and their difference, and the sum of c terms of the smoothing */
		mag += 2 * k->range + 10 + (double)c / 16 * (k->smoothing > 0 ? k->smoothing * 2 * k->range : 1);
		count++;
		correct += before == 0;
		top5 += before < 5;
	}
	CHECK_OK(loss_run(1, t, k, x, target, dx, &m, &e), e);
	RAW_CHECK(gt_opcode_name(k->code), t, dx, want, tol, n * c);
	CHECK_MSG(fabs(m.loss - 100 - loss) <= eps * mag + 1e-13 * (100 + fabs(loss)),
	          "%s %s [%lld,%lld] smoothing %g: loss %.12g, should be %.12g", gt_opcode_name(k->code), gt_dtype_name(t), (long long)n,
	          (long long)c, k->smoothing, m.loss - 100, loss);
	CHECK_MSG(m.weight == 7 + (double)count && m.count == 7 + count && m.correct == 1 + correct && m.top5 == 2 + top5,
	          "%s %s [%lld,%lld]: weight %g count %lld correct %lld top5 %lld, should be %lld %lld %lld more", gt_opcode_name(k->code),
	          gt_dtype_name(t), (long long)n, (long long)c, m.weight, (long long)m.count, (long long)m.correct, (long long)m.top5,
	          (long long)count, (long long)correct, (long long)top5);
	CHECK_OK(loss_run(3, t, k, x, target, dz, &m3, &e), e);
	CHECK(!memcmp(&m, &m3, sizeof m) && !memcmp(dx, dz, (size_t)(n * c) * gt_dtype_size(t)));
	CHECK_OK(loss_run(3, t, k, x, target, NULL, &me, &e), e);
	CHECK(me.weight == m.weight && me.count == m.count && me.correct == m.correct && me.top5 == m.top5);
	evaluation_check(t, k, x, target, dz);
	/* The gradient may take the place of the logits. */
	CHECK_OK(loss_run(1, t, k, x, target, x, &me, &e), e);
	CHECK(!memcmp(dx, x, (size_t)(n * c) * gt_dtype_size(t)));
	free(x), free(dx), free(dz), free(target), free(want), free(tol);
}

TEST(losses_and_their_gradients)
{
	static const int64_t classes[] = {1, 2, 5, 10, 16, 17, 100, 1000};
	for (size_t t = 0; t < 3; t++)
		for (size_t c = 0; c < sizeof classes / sizeof classes[0]; c++)
			for (int64_t n = 1; n <= 1024; n *= 32) {
				loss_check(&(struct loss_case){GT_OP_CROSS_ENTROPY, n, classes[c], 0, 5, false}, raw_types[t]);
				loss_check(&(struct loss_case){GT_OP_CROSS_ENTROPY, n, classes[c], 0.1, 5, true}, raw_types[t]);
				loss_check(&(struct loss_case){GT_OP_CROSS_ENTROPY, n, classes[c], 0, 80, true}, raw_types[t]);
				loss_check(&(struct loss_case){GT_OP_NLL, n, classes[c], 0, 5, true}, raw_types[t]);
				loss_check(&(struct loss_case){GT_OP_MSE, n, classes[c], 0, 3, false}, raw_types[t]);
			}
}

TEST(losses_refuse_labels_outside_the_classes)
{
	static const struct loss_case k = {GT_OP_CROSS_ENTROPY, 4, 10, 0, 1, false}, sq = {GT_OP_MSE, 4, 10, 0, 1, false};
	static const int32_t bad[] = {10, -1, -99, INT32_MAX, INT32_MIN};
	float x[40] = {0}, dx[40];
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct gt_metrics m = {0};
		struct gt_err e = {0};
		int32_t target[4] = {0, 9, bad[i], 3};
		CHECK(loss_run(1, GT_F32, &k, x, target, dx, &m, &e) == GT_EDATA);
		CHECK_MSG(strstr(e.msg, "sample 2") && strstr(e.msg, "0..9"), "%s", e.msg);
		CHECK(m.count == 0 && m.loss == 0);
	}
	struct gt_metrics m = {0};
	struct gt_err e = {0};
	CHECK(loss_run(1, GT_F32, &sq, x, (int32_t[]){0, -100, 1, 2}, dx, &m, &e) == GT_EDATA); /* mse ignores nobody */
}

TEST(a_nan_among_the_logits_shows)
{
	static const struct loss_case k = {GT_OP_CROSS_ENTROPY, 2, 10, 0, 1, false};
	for (int at = 0; at < 10; at++) {
		float x[20] = {0}, dx[20];
		struct gt_metrics m = {0};
		struct gt_err e = {0};
		x[0] = 9; /* the target's, in both rows */
		x[10] = 9;
		x[10 + at] = NAN;
		CHECK_OK(loss_run(1, GT_F32, &k, x, (int32_t[]){0, 0}, dx, &m, &e), e);
		CHECK_MSG(isnan(m.loss) && isnan(dx[10]) && !isnan(dx[0]) && m.correct == 1, "NaN at %d: loss %g, correct %lld", at, m.loss,
		          (long long)m.correct);
	}
}

/* ---- layernorm ---------------------------------------------------------------------------------------------------------------- */
static void layernorm_case(enum gt_dtype t, int rank, const int64_t *dim, bool affine, bool hwc, bool add)
{
	static const uint8_t order[3] = {1, 2, 0};
	enum gt_dtype st = t == GT_F64 ? GT_F64 : GT_F32;
	int64_t n = dim[0], m = 1, count;
	for (int i = 1; i < rank; i++)
		m *= dim[i];
	count = n * m;
	struct gt_attr_norm attr = {.eps = 1e-5, .affine = affine};
	struct gt_tdesc d = gt_tdesc_make(t, rank, dim, true), dd = d, y = d, g = gt_tdesc_make(st, rank - 1, dim + 1, false),
	                s = gt_tdesc_make(st, 1, &n, false);
	if (hwc && rank == 4)
		memcpy(g.layout.order, order, sizeof order);
	struct gt_tdesc beta = g, dg = g, db = g, rs = s;
	void *px = NEW(t, count), *pdy = NEW(t, count), *py = NEW(t, count), *py3 = NEW(t, count), *pdx = NEW(t, count), *pg = NEW(st, m),
	     *pb = NEW(st, m), *pmean = NEW(st, n), *prstd = NEW(st, n), *pdg = NEW(st, m), *pdb = NEW(st, m), *pdg3 = NEW(st, m);
	double *want = calloc((size_t)count, 8), *tol = calloc((size_t)count, 8), *wdx = calloc((size_t)count, 8),
	       *tdx = calloc((size_t)count, 8);
	double *wdg = calloc((size_t)m, 8), *wdb = calloc((size_t)m, 8), *tdg = calloc((size_t)m, 8), *tdb = calloc((size_t)m, 8);
	double eps = raw_eps(t);
	raw_random(t, px, count, 21, 1, 3);
	raw_random(t, pdy, count, 22, -1, 1);
	raw_random(st, pg, m, 23, 0.5, 1.5);
	raw_random(st, pb, m, 24, -1, 1);
	raw_random(st, pdg, m, 25, -1, 1);
	raw_random(st, pdb, m, 26, -1, 1);
	int64_t *at = calloc((size_t)m, sizeof *at); /* where the parameter of physical element j of a sample stands */
	for (int64_t j = 0; j < m; j++) {
		int64_t pix = rank == 4 ? j / dim[1] : 0, c = rank == 4 ? j % dim[1] : j;
		at[j] = rank == 4 ? gt_tdesc_offset(&g, (int64_t[]){c, pix / dim[3], pix % dim[3]}) : j;
		wdg[at[j]] = add ? gt_load_number(st, pdg, at[j]) : 0;
		wdb[at[j]] = add ? gt_load_number(st, pdb, at[j]) : 0;
	}
	for (int64_t r = 0; r < n; r++) {
		long double mean = 0, var = 0, sum = 0, dot = 0; /* so that the reference is better than what it judges in f64 too */
		double smag = 0, dmag = 0;
		for (int64_t j = 0; j < m; j++)
			mean += (long double)gt_load_number(t, px, r * m + j) / m;
		for (int64_t j = 0; j < m; j++)
			var += (gt_load_number(t, px, r * m + j) - mean) * (gt_load_number(t, px, r * m + j) - mean) / m;
		double rstd = (double)(1 / sqrtl(var + 1e-5L));
		for (int64_t j = 0; j < m; j++) {
			double gamma = affine ? gt_load_number(st, pg, at[j]) : 1, xh = (double)(gt_load_number(t, px, r * m + j) - mean) * rstd,
			       h = gt_load_number(t, pdy, r * m + j) * gamma;
			want[r * m + j] = xh * gamma + (affine ? gt_load_number(st, pb, at[j]) : 0);
			/* the mean is rounded to the arithmetic: 3 eps * rstd, then four more operations */
			tol[r * m + j] = eps * gamma * (3 * rstd + 5 * fabs(xh)) + eps * 2;
			sum += h, smag += fabs(h);
			dot += h * xh, dmag += fabs(h * xh);
		}
		for (int64_t j = 0; j < m; j++) {
			double gamma = affine ? gt_load_number(st, pg, at[j]) : 1, xh = (double)(gt_load_number(t, px, r * m + j) - mean) * rstd,
			       dy = gt_load_number(t, pdy, r * m + j);
			wdx[r * m + j] = (double)(rstd * (dy * gamma - sum / m - xh * dot / m));
			tdx[r * m + j] =
			    rstd * eps * (4 + fabs(xh) + rstd) * (6 * fabs(dy * gamma) + 6 * smag / (double)m + 6 * dmag / (double)m * (1 + fabs(xh)));
			wdg[at[j]] += dy * xh;
			wdb[at[j]] += dy;
			tdg[at[j]] += (eps * (3 * rstd + 5 * fabs(xh)) + (double)n * 0x1p-53 * fabs(xh)) * fabs(dy);
			tdb[at[j]] += (eps + (double)n * 0x1p-53) * fabs(dy); /* the sum over rows is in double */
		}
	}
	struct gt_opcall call = {.code = GT_OP_LAYERNORM,
	                         .attr = &attr,
	                         .nin = 3,
	                         .nout = 3,
	                         .in = {&d, affine ? &g : NULL, affine ? &beta : NULL},
	                         .out = {&y, &s, &rs}};
	raw_run(1, &call, (void *[]){px, pg, pb}, (void *[]){py, pmean, prstd}, NULL);
	RAW_CHECK("layernorm", t, py, want, tol, count);
	raw_run(3, &call, (void *[]){px, pg, pb}, (void *[]){py3, pmean, prstd}, NULL);
	CHECK(!memcmp(py, py3, gt_tdesc_bytes(&d)));
	memcpy(pdg3, pdg, (size_t)m * gt_dtype_size(st));
	struct gt_opcall dcall = {.code = GT_OP_LAYERNORM_DX,
	                          .attr = &attr,
	                          .nin = 5,
	                          .nout = affine ? 3 : 1,
	                          .accumulate = add ? 6 : 0,
	                          .in = {&dd, &d, affine ? &g : NULL, &s, &rs},
	                          .out = {&y, &dg, &db}};
	raw_run(1, &dcall, (void *[]){pdy, px, pg, pmean, prstd}, (void *[]){pdx, pdg, pdb}, NULL);
	RAW_CHECK("layernorm.dx", t, pdx, wdx, tdx, count);
	if (affine) {
		RAW_CHECK("layernorm.dx gamma", st, pdg, wdg, tdg, m);
		RAW_CHECK("layernorm.dx beta", st, pdb, wdb, tdb, m);
		dcall.out[2] = NULL; /* beta's gradient not wanted, dx over dy, three threads */
		raw_run(3, &dcall, (void *[]){pdy, px, pg, pmean, prstd}, (void *[]){pdy, pdg3, NULL}, NULL);
		CHECK(!memcmp(pdy, pdx, gt_tdesc_bytes(&d)) && !memcmp(pdg, pdg3, gt_tdesc_bytes(&g)));
	}
	free(px), free(pdy), free(py), free(py3), free(pdx), free(pg), free(pb), free(pmean), free(prstd), free(pdg), free(pdb), free(pdg3);
	free(want), free(tol), free(wdx), free(tdx), free(wdg), free(wdb), free(tdg), free(tdb), free(at);
}

TEST(layernorm_and_its_gradient)
{
	static const int64_t shapes[][4] = {{1, 3, 1, 1}, {7, 16, 1, 1}, {5, 17, 1, 1}, {64, 512, 1, 1}, {3, 1000, 1, 1}, {300, 33, 1, 1}};
	static const int64_t images[][4] = {{2, 3, 4, 5}, {4, 16, 7, 7}, {3, 1, 9, 9}, {5, 20, 1, 1}, {40, 64, 8, 8}};
	for (size_t t = 0; t < 3; t++)
		for (int v = 0; v < 4; v++) {
			for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
				layernorm_case(raw_types[t], 2, shapes[s], v & 1, false, v & 2);
			for (size_t s = 0; s < sizeof images / sizeof images[0]; s++) {
				layernorm_case(raw_types[t], 4, images[s], v & 1, false, v & 2);
				layernorm_case(raw_types[t], 4, images[s], v & 1, true, v & 2);
			}
		}
}
RUN_TESTS()
