/* The CPU backend's batch normalisation against loops in double. */
#include "cpu_case.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void batchnorm_case(int rank, const int64_t *dim, enum gt_dtype t, bool affine, bool track, bool train, double offset)
{
	struct gt_attr_norm attr = {.eps = 1e-5, .momentum = 0.1, .affine = affine, .track = track, .train = train};
	int64_t c = dim[1], inner = rank == 4 ? dim[2] * dim[3] : 1, rows = dim[0] * inner, total = rows * c;
	struct tens *x = tens_new(t, rank, dim), *y = tens_new(t, rank, dim), *wy = tens_new(t, rank, dim), *dy = tens_new(t, rank, dim);
	struct tens *dx = tens_new(t, rank, dim), *wdx = tens_new(t, rank, dim);
	struct tens *v[12];
	for (int i = 0; i < 12; i++)
		v[i] = tens_new(GT_F32, DIMS(c));
	struct tens *gamma = v[0], *beta = v[1], *rmean = v[2], *rvar = v[3], *mean = v[4], *rstd = v[5], *dgamma = v[6], *dbeta = v[7];
	struct tens *wrm = v[8], *wrv = v[9], *wdg = v[10], *wdb = v[11], *nbt = tens_new(GT_I64, 0, NULL);
	tens_random(x, 1, offset - 1, offset + 1);
	tens_random(dy, 2, -1, 1);
	tens_random(gamma, 3, 0.5, 1.5);
	tens_random(beta, 4, -1, 1);
	tens_random(rmean, 5, -1, 1);
	tens_random(rvar, 6, 0.5, 2);
	nbt->v[0] = 41;
	tens_need_mag(wy), tens_need_mag(wdx), tens_need_mag(wdg), tens_need_mag(wdb);
	for (int64_t k = 0; k < c; k++) {
		double s = 0, q = 0, sum = 0, dot = 0;
#define EACH(i) for (int64_t n_ = 0, i; n_ < dim[0]; n_++) for (int64_t p_ = 0; p_ < inner && (i = (n_ * c + k) * inner + p_, 1); p_++)
		EACH(i) s += x->v[i];
		s /= (double)rows;
		EACH(i) q += (x->v[i] - s) * (x->v[i] - s);
		q /= (double)rows;
		bool batch = train || !track;
		double m = batch ? s : rmean->v[k], var = batch ? q : rvar->v[k], rs = 1 / sqrt(var + attr.eps), g = affine ? gamma->v[k] : 1;
		wrm->v[k] = train && track ? 0.9 * rmean->v[k] + 0.1 * s : rmean->v[k];
		wrv->v[k] = train && track ? 0.9 * rvar->v[k] + 0.1 * q * (double)rows / (double)(rows - 1) : rvar->v[k];
		EACH(i) {
			wy->v[i] = (x->v[i] - m) * rs * g + (affine ? beta->v[k] : 0);
			wy->mag[i] = (fabs(x->v[i]) + fabs(m)) * rs * g + 1;
			sum += dy->v[i];
			dot += dy->v[i] * (x->v[i] - m) * rs;
			wdb->mag[k] += fabs(dy->v[i]);
			wdg->mag[k] += fabs(dy->v[i]) * (fabs(x->v[i]) + fabs(m)) * rs;
		}
		wdb->v[k] = sum;
		wdg->v[k] = dot;
		EACH(i) {
			wdx->v[i] = g * rs * (batch ? dy->v[i] - sum / (double)rows - (x->v[i] - m) * rs * dot / (double)rows : dy->v[i]);
			wdx->mag[i] = g * rs * (2 + (fabs(x->v[i]) + fabs(m)) * rs);
		}
	}
	struct op_case k = {
	    .code = GT_OP_BATCHNORM,
	    .attr = &attr,
	    .in = {x, affine ? gamma : NULL, affine ? beta : NULL, track ? rmean : NULL, track ? rvar : NULL, track ? nbt : NULL},
	    .nin = 6,
	    .out = {y, mean, rstd},
	    .nout = 3,
	    .keep_out = true};
	if (!op_run(&k))
		goto out;
	/* Pieces of at most 256 rows are summed in f32 and put together in double; scale and shift are rounded, and (x - mean) cancels,
	 * which mag has. */
	TENS_CHECK(y, wy, tens_sum_tol(256));
	if (track) {
		TENS_CHECK(rmean, wrm, tens_sum_tol(256));
		TENS_CHECK(rvar, wrv, tens_sum_tol(256));
		CHECK_MSG(nbt->v[0] == (train ? 42 : 41), "num_batches_tracked is %g", nbt->v[0]);
	}
	k = (struct op_case){.code = GT_OP_BATCHNORM_DX, .attr = &attr, .in = {dy, x, affine ? gamma : NULL, mean, rstd}, .nin = 5,
		.out = {dx, affine ? dgamma : NULL, affine ? dbeta : NULL}, .nout = 3};
	if (op_run(&k)) {
		TENS_CHECK(dx, wdx, tens_sum_tol(256));
		if (affine) {
			TENS_CHECK(dgamma, wdg, tens_sum_tol(256));
			TENS_CHECK(dbeta, wdb, tens_sum_tol(256));
		}
	}
	if (affine) {
		for (int64_t i = 0; i < c; i++)
			dgamma->v[i] = 3, dbeta->v[i] = -5, wdg->v[i] += 3, wdb->v[i] -= 5;
		k.accumulate = 6;
		if (op_run(&k)) {
			TENS_CHECK(dgamma, wdg, 2 * tens_sum_tol(256));
			TENS_CHECK(dbeta, wdb, 2 * tens_sum_tol(256));
		}
	}
out:
	(void)total;
	tens_free(x), tens_free(y), tens_free(wy), tens_free(dy), tens_free(dx), tens_free(wdx), tens_free(nbt);
	for (int i = 0; i < 12; i++)
		tens_free(v[i]);
}

TEST(batchnorm)
{
	for (int b = 0; b < 2; b++) {
		enum gt_dtype t = b ? GT_BF16 : GT_F32;
		batchnorm_case(DIMS(16, 64, 8, 8), t, true, true, true, 0);
		batchnorm_case(DIMS(16, 64, 8, 8), t, true, true, false, 0);
		batchnorm_case(DIMS(5, 3, 7, 9), t, true, true, true, 0);
		batchnorm_case(DIMS(32, 513), t, true, true, true, 0);
		batchnorm_case(DIMS(7, 10), t, false, true, true, 0);
		batchnorm_case(DIMS(2, 20), t, true, false, true, 0);
		batchnorm_case(DIMS(9, 20, 3, 3), t, false, false, false, 0);
		batchnorm_case(DIMS(64, 16, 33, 33), t, true, true, true, 0);
		batchnorm_case(DIMS(1, 8, 2, 2), t, true, true, true, 0);
	}
	/* A mean 100 times the deviation: one pass over x*x would lose four digits here. */
	batchnorm_case(DIMS(16, 64, 16, 16), GT_F32, true, true, true, 100);
}

/* The output `again` of batchnorm.dx is what batchnorm.y computes, bit for bit, and the other outputs are those without it. */
static void compute_again(int rank, const int64_t *dim, enum gt_dtype t, bool affine, int act)
{
	struct gt_attr_norm attr = {.eps = 1e-5, .momentum = 0.1, .affine = affine, .track = true, .train = true, .act = act};
	struct tens *x = tens_new(t, rank, dim), *dy = tens_new(t, rank, dim), *y = tens_new(t, rank, dim), *again = tens_new(t, rank, dim);
	struct tens *dx[2] = {tens_new(t, rank, dim), tens_new(t, rank, dim)}, *v[8];
	for (int i = 0; i < 8; i++) {
		v[i] = tens_new(GT_F32, DIMS(dim[1]));
		tens_random(v[i], (uint32_t)(7 + i), 0.5, 1.5);
	}
	struct tens *gamma = affine ? v[0] : NULL, *beta = affine ? v[1] : NULL;
	tens_random(x, 1, -1, 3);
	tens_random(dy, 2, -1, 1);
	struct op_case k = {.code = GT_OP_BATCHNORM_Y, .attr = &attr, .in = {x, gamma, beta, v[2], v[3]}, .nin = 5, .out = {y}, .nout = 1};
	bool ran = op_run(&k);
	for (int i = 0; i < 2; i++) {
		k = (struct op_case){.code = GT_OP_BATCHNORM_DX, .attr = &attr, .in = {dy, x, gamma, v[2], v[3], beta}, .nin = act || i ? 6 : 5,
		                     .out = {dx[i], v[4 + 2 * i], v[5 + 2 * i], NULL, again}, .nout = i ? 5 : 3};
		ran = ran && op_run(&k);
	}
	int wrong = 0;
	for (int64_t i = 0; ran && i < gt_tdesc_count(&x->d); i++)
		wrong += again->v[i] != y->v[i] || dx[0]->v[i] != dx[1]->v[i];
	for (int64_t i = 0; ran && i < dim[1]; i++)
		wrong += v[4]->v[i] != v[6]->v[i] || v[5]->v[i] != v[7]->v[i];
	CHECK_MSG(ran && !wrong, "%d values differ", wrong);
	tens_free(x), tens_free(dy), tens_free(y), tens_free(again), tens_free(dx[0]), tens_free(dx[1]);
	for (int i = 0; i < 8; i++)
		tens_free(v[i]);
}

TEST(output_again)
{
	for (int i = 0; i < 8; i++) {
		enum gt_dtype t = i & 1 ? GT_BF16 : GT_F32;
		int act = i & 2 ? GT_ACT_RELU : GT_ACT_NONE;
		compute_again(DIMS(16, 64, 8, 8), t, i & 4, act);
		compute_again(DIMS(5, 3, 7, 9), t, i & 4, act);
		compute_again(DIMS(32, 513), t, i & 4, act);
	}
}

TEST(batchnorm_refuses_one_value)
{
	struct gt_attr_norm attr = {.eps = 1e-5, .momentum = 0.1, .train = true, .track = true};
	struct gt_tdesc x = gt_tdesc_make(GT_F32, DIMS(1, 4), true);
	struct gt_opcall call = {.code = GT_OP_BATCHNORM, .name = "bn1", .attr = &attr, .nin = 1, .nout = 1, .in = {&x}, .out = {&x}};
	struct gt_kernel *k = NULL;
	struct gt_err e = {0};
	if (!cpu_device())
		return;
	CHECK(cpu_backend()->prepare(cpu_device(), &call, &k, &e) == GT_EUNAVAILABLE);
	CHECK_MSG(strstr(e.msg, "batchnorm (bn1)") && strstr(e.msg, "[1, 4]"), "%s", e.msg);
}

RUN_TESTS()
