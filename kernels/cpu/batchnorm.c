/* Batch normalisation, f32 and bf16. An activation is `rows` times c channels: [N, C], or NHWC with N*H*W rows.
 *
 * Statistics: rows are cut into pieces that fit the cache; a piece is walked twice (mean, then squared distances from it), and the
 * pieces are put together in double (Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm for computing sample
 * variances", 1979). So the tensor is read from memory once, the accuracy is that of two passes, and nothing depends on the number
 * of threads. Few channels would make short loops: then `fold` rows are looked at as one row of fold * c channels, which are put
 * together at the end. PyTorch's formulas: y = x * (gamma * rstd) + (beta - mean * gamma * rstd). */
#include "cpu/loops.h"
#include "ew.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PIECE 16384 /* elements */

struct bn {
	struct gt_kernel head;
	struct gt_attr_norm attr;
	int64_t count;          /* values a channel */
	int64_t fold, rows, c;  /* rows of c channels, as the loops see them: c is fold times the tensor's */
	int64_t piece, npieces; /* rows a piece */
	int mask;         /* of dy in the gradient: 0 none, 1 where bn(x) > 0, 2 where y > 0 */
	bool relu, res, keep;
	bool bf16, batch; /* batch: statistics of the batch, not the running ones */
	uint32_t accumulate;
};

#define P float
#define A float
#define S float
#define LD(x) (x)
#define ST(x) (x)
#define N(name) name##_f32
#include "cpu/batchnorm.inc"
#undef S
#undef LD
#undef ST
#undef N
#define S uint16_t
#define LD(x) gt_bf16_to_f32(x)
#define ST(x) gt_bf16_from_f32(x)
#define N(name) name##_bf16
#include "cpu/batchnorm.inc"
#undef P
#undef A
#undef S
#undef LD
#undef ST
#undef N

/* The scratch buffer: two sums a channel, six numbers a channel, two sums a piece and channel. */
struct parts {
	const struct bn *k;
	const void *x, *dy, *res; /* res: the second summand, or the relu's output */
	void *y, *g;
	float *s0, *s1;      /* [npieces][c] */
	const float *mean;   /* [c]; what the loops subtract */
	float *a, *b, *d; /* [c] */
	float *mu;        /* [c]; the mean */
	float *m, *shift; /* [c]; bn(x) = x * m + shift, as the forward pass has it */
	int mask;
	double *sum0, *sum1; /* [c] */
};

static struct parts parts_of(const struct bn *k, void *scratch)
{
	struct parts p = {.k = k};
	p.sum0 = scratch;
	p.sum1 = p.sum0 + k->c;
	p.a = (float *)(p.sum1 + k->c);
	p.b = p.a + k->c;
	p.d = p.b + k->c;
	p.m = p.d + k->c;
	p.shift = p.m + k->c;
	p.mu = p.shift + k->c;
	p.s0 = p.mu + k->c;
	p.s1 = p.s0 + k->npieces * k->c;
	return p;
}

static int64_t piece_rows(const struct bn *k, int64_t i)
{
	return i + 1 < k->npieces ? k->piece : k->rows - i * k->piece;
}

#define AT(ptr, i) ((const char *)(ptr) + (i) * k->piece * k->c * (k->bf16 ? 2 : 4))

static void stats(const void *ctx, int64_t begin, int64_t end)
{
	const struct parts *p = ctx;
	const struct bn *k = p->k;
	for (int64_t i = begin; i < end; i++) {
		const void *x = AT(p->x, i);
		float *s0 = p->s0 + i * k->c, *s1 = p->s1 + i * k->c;
		if (k->bf16)
			chunk_stats_bf16(x, piece_rows(k, i), k->c, s0, s1);
		else
			chunk_stats_f32(x, piece_rows(k, i), k->c, s0, s1);
	}
}

static void apply(const void *ctx, int64_t begin, int64_t end)
{
	const struct parts *p = ctx;
	const struct bn *k = p->k;
	for (int64_t i = begin; i < end; i++) {
		const void *x = AT(p->x, i), *res = p->res ? AT(p->res, i) : NULL;
		void *y = (void *)AT(p->y, i);
		if (k->bf16)
			rows_apply_bf16(x, res, y, piece_rows(k, i), k->c, p->a, p->d, k->relu);
		else
			rows_apply_f32(x, res, y, piece_rows(k, i), k->c, p->a, p->d, k->relu);
	}
}

static void sums(const void *ctx, int64_t begin, int64_t end)
{
	const struct parts *p = ctx;
	const struct bn *k = p->k;
	for (int64_t i = begin; i < end; i++) {
		const void *dy = AT(p->dy, i), *x = AT(p->x, i), *y = p->res ? AT(p->res, i) : NULL;
		void *g = p->g ? (void *)AT(p->g, i) : NULL;
		float *s0 = p->s0 + i * k->c, *s1 = p->s1 + i * k->c;
		if (k->bf16)
			chunk_sums_bf16(dy, x, y, g, piece_rows(k, i), k->c, p->mean, p->m, p->shift, s0, s1, p->mask);
		else
			chunk_sums_f32(dy, x, y, g, piece_rows(k, i), k->c, p->mean, p->m, p->shift, s0, s1, p->mask);
	}
}

static void apply_dx(const void *ctx, int64_t begin, int64_t end)
{
	const struct parts *p = ctx;
	const struct bn *k = p->k;
	for (int64_t i = begin; i < end; i++) {
		const void *dy = AT(p->dy, i), *x = AT(p->x, i), *y = p->res ? AT(p->res, i) : NULL;
		void *dx = (void *)AT(p->y, i);
		if (k->bf16)
			rows_dx_bf16(dy, x, y, dx, piece_rows(k, i), k->c, p->mean, p->a, p->b, p->d, p->m, p->shift, p->mask);
		else
			rows_dx_f32(dy, x, y, dx, piece_rows(k, i), k->c, p->mean, p->a, p->b, p->d, p->m, p->shift, p->mask);
	}
}

/* Mean into sum0 and sum of squared distances from it into sum1, from the pieces, for channels [begin, end). */
GT_CLONES static void merge_stats(const void *ctx, int64_t begin, int64_t end)
{
	const struct parts *p = ctx;
	const struct bn *k = p->k;
	int64_t c = k->c;
	double *restrict mean = p->sum0, *restrict var = p->sum1, inv = 1.0 / (double)k->rows;
	for (int64_t i = begin; i < end; i++)
		mean[i] = var[i] = 0;
	for (int64_t j = 0; j < k->npieces; j++) {
		const float *restrict m = p->s0 + j * c;
		double n = (double)piece_rows(k, j);
		for (int64_t i = begin; i < end; i++)
			mean[i] += n * m[i];
	}
	for (int64_t i = begin; i < end; i++)
		mean[i] *= inv;
	for (int64_t j = 0; j < k->npieces; j++) {
		const float *restrict m = p->s0 + j * c, *restrict m2 = p->s1 + j * c;
		double n = (double)piece_rows(k, j);
		for (int64_t i = begin; i < end; i++) {
			double d = m[i] - mean[i];
			var[i] += m2[i] + n * d * d;
		}
	}
}

/* The folded channels into the first ones: sum1 becomes the biased variance. */
static void unfold_stats(const struct parts *p)
{
	const struct bn *k = p->k;
	int64_t c = k->c / k->fold;
	for (int64_t i = 0; i < c; i++) {
		double mean = 0, m2 = 0;
		for (int64_t j = i; j < k->c; j += c)
			mean += p->sum0[j];
		mean /= (double)k->fold;
		for (int64_t j = i; j < k->c; j += c) {
			double d = p->sum0[j] - mean;
			m2 += p->sum1[j] + (double)k->rows * d * d;
		}
		p->sum0[i] = mean;
		p->sum1[i] = m2 / (double)k->count;
	}
}

static void unfold_sums(const struct parts *p)
{
	const struct bn *k = p->k;
	int64_t c = k->c / k->fold;
	for (int64_t j = c; j < k->c; j++) {
		p->sum0[j % c] += p->sum0[j];
		p->sum1[j % c] += p->sum1[j];
	}
}

/* The first c / fold entries, again and again. */
static void repeat(const struct bn *k, float *a)
{
	int64_t c = k->c / k->fold;
	for (int64_t j = c; j < k->c; j++)
		a[j] = a[j - c];
}

GT_CLONES static void merge_sums(const void *ctx, int64_t begin, int64_t end)
{
	const struct parts *p = ctx;
	const struct bn *k = p->k;
	double *restrict sum = p->sum0, *restrict dot = p->sum1;
	for (int64_t i = begin; i < end; i++)
		sum[i] = dot[i] = 0;
	for (int64_t j = 0; j < k->npieces; j++) {
		const float *restrict a = p->s0 + j * k->c, *restrict b = p->s1 + j * k->c;
		for (int64_t i = begin; i < end; i++) {
			sum[i] += a[i];
			dot[i] += b[i];
		}
	}
}

static enum gt_code bn_forward(struct gt_dev *dev, struct gt_kernel *head, const struct gt_launch *a, struct gt_err *err)
{
	const struct bn *k = (const struct bn *)head;
	struct parts p = parts_of(k, a->scratch);
	const float *gamma = a->in[1], *beta = a->in[2];
	float *rmean = a->in[3], *rvar = a->in[4], *mean = a->out[1], *rstd = a->out[2];
	(void)err;
	p.x = a->in[0];
	p.res = k->res ? a->in[6] : NULL;
	p.y = a->out[0];
	if (k->batch) {
		gt_cpu_for(dev, k->npieces, 2, 1, stats, &p);
		gt_cpu_for(dev, k->c, 1 + PIECE / k->npieces, 16, merge_stats, &p);
		unfold_stats(&p);
	}
	bool update = k->attr.train && k->attr.track && rmean;
	double m = k->attr.momentum, unbias = (double)k->count / (double)(k->count - 1);
	for (int64_t i = 0; i < k->c / k->fold; i++) {
		double mu = k->batch ? p.sum0[i] : rmean[i], var = k->batch ? p.sum1[i] : rvar[i], rs = 1 / sqrt(var + k->attr.eps);
		float scale = (float)rs * (gamma ? gamma[i] : 1);
		p.a[i] = scale;
		p.d[i] = (beta ? beta[i] : 0) - (float)mu * scale;
		if (mean)
			mean[i] = (float)mu;
		if (rstd)
			rstd[i] = (float)rs;
		if (update) {
			rmean[i] = (float)((1 - m) * rmean[i] + m * mu);
			rvar[i] = (float)((1 - m) * rvar[i] + m * var * unbias);
		}
	}
	if (update && a->in[5])
		++*(int64_t *)a->in[5];
	repeat(k, p.a);
	repeat(k, p.d);
	gt_cpu_for(dev, k->npieces, 2, 1, apply, &p);
	return GT_OK;
}

/* bn_forward's y once more, from what it saved. */
static enum gt_code bn_again(struct gt_dev *dev, struct gt_kernel *head, const struct gt_launch *a, struct gt_err *err)
{
	const struct bn *k = (const struct bn *)head;
	struct parts p = parts_of(k, a->scratch);
	const float *gamma = a->in[1], *beta = a->in[2], *mean = a->in[3], *rstd = a->in[4];
	(void)err;
	p.x = a->in[0];
	p.res = k->res ? a->in[5] : NULL;
	p.y = a->out[0];
	for (int64_t i = 0; i < k->c / k->fold; i++) {
		p.a[i] = rstd[i] * (gamma ? gamma[i] : 1);
		p.d[i] = (beta ? beta[i] : 0) - mean[i] * p.a[i];
	}
	repeat(k, p.a);
	repeat(k, p.d);
	gt_cpu_for(dev, k->npieces, 2, 1, apply, &p);
	return GT_OK;
}

/* With batch statistics: dx = gamma * rstd * (dy - mean(dy) - (x - mean) * rstd^2 * mean(dy * (x - mean))); without: gamma * rstd * dy. */
static enum gt_code bn_backward(struct gt_dev *dev, struct gt_kernel *head, const struct gt_launch *a, struct gt_err *err)
{
	const struct bn *k = (const struct bn *)head;
	struct parts p = parts_of(k, a->scratch);
	const float *gamma = a->in[2], *mean = a->in[3], *rstd = a->in[4], *beta = k->mask ? a->in[5] : NULL;
	float *dgamma = a->out[1], *dbeta = a->out[2];
	double inv = 1.0 / (double)k->count;
	(void)err;
	p.dy = a->in[0];
	p.x = a->in[1];
	p.y = a->out[0];
	memcpy(p.mu, mean, sizeof *p.mu * (size_t)(k->c / k->fold));
	repeat(k, p.mu);
	p.mean = p.mu;
	p.mask = k->mask;
	p.res = k->mask == 2 ? a->in[6] : NULL;
	p.g = k->keep ? a->out[3] : NULL;
	for (int64_t i = 0; k->mask == 1 && i < k->c / k->fold; i++) {
		p.m[i] = rstd[i] * (gamma ? gamma[i] : 1);
		p.shift[i] = (beta ? beta[i] : 0) - mean[i] * p.m[i];
	}
	if (k->mask == 1) {
		repeat(k, p.m);
		repeat(k, p.shift);
	}
	gt_cpu_for(dev, k->npieces, 2, 1, sums, &p);
	gt_cpu_for(dev, k->c, 1 + PIECE / k->npieces, 16, merge_sums, &p);
	unfold_sums(&p);
	for (int64_t i = 0; i < k->c / k->fold; i++) {
		double sum = p.sum0[i], dot = p.sum1[i], rs = rstd[i];
		p.a[i] = (float)(rs * (gamma ? gamma[i] : 1));
		p.b[i] = k->batch ? (float)(rs * rs * dot * inv) : 0;
		p.d[i] = k->batch ? (float)(sum * inv) : 0;
		if (dgamma)
			dgamma[i] = (float)(dot * rs) + (k->accumulate & 2 ? dgamma[i] : 0);
		if (dbeta)
			dbeta[i] = (float)sum + (k->accumulate & 4 ? dbeta[i] : 0);
	}
	repeat(k, p.a);
	repeat(k, p.b);
	repeat(k, p.d);
	if (p.g) { /* dy masked is there now */
		p.dy = p.g;
		p.mask = 0;
	}
	if (p.y)
		gt_cpu_for(dev, k->npieces, 2, 1, apply_dx, &p);
	return GT_OK;
}

/* The largest divisor of the number of rows that keeps a folded row under 512 channels. */
static int64_t fold_of(int64_t c, int64_t rows)
{
	for (int64_t f = c < 64 ? 512 / c : 1; f > 1; f--)
		if (rows % f == 0)
			return f;
	return 1;
}

enum gt_code gt_cpu_batchnorm(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	bool forward = call->code == GT_OP_BATCHNORM, again = call->code == GT_OP_BATCHNORM_Y, backward = call->code == GT_OP_BATCHNORM_DX;
	const struct gt_tdesc *x = call->in[backward ? 1 : 0];
	struct bn *k;
	(void)dev;
	if (x->dtype != GT_F32 && x->dtype != GT_BF16)
		return gt_cpu_refuse(call, err, "the cpu backend computes in f32, bf16 and f64");
	GT_KERNEL_NEW(k, forward ? bn_forward : again ? bn_again : bn_backward,
	              forward ? "loops:batchnorm" : again ? "loops:batchnorm.y" : "loops:batchnorm.dx", err);
	k->attr = *(const struct gt_attr_norm *)call->attr;
	k->count = gt_tdesc_count(x) / x->dim[1];
	k->fold = fold_of(x->dim[1], k->count);
	k->c = x->dim[1] * k->fold;
	k->rows = k->count / k->fold;
	k->piece = PIECE / k->c < 16 ? 16 : PIECE / k->c;
	k->npieces = (k->rows + k->piece - 1) / k->piece;
	k->bf16 = x->dtype == GT_BF16;
	k->batch = k->attr.train || !k->attr.track;
	k->accumulate = call->accumulate;
	k->relu = k->attr.act == GT_ACT_RELU;
	k->res = (forward && call->nin > 6 && call->in[6]) || (again && call->nin > 5 && call->in[5]);
	if (backward && call->nin > 5)
		k->mask = call->nin > 6 && call->in[6] ? 2 : 1;
	k->keep = k->mask && call->nout > 3 && call->out[3];
	k->head.scratch = (size_t)k->c * 2 * sizeof(double) + (size_t)k->c * 6 * sizeof(float) + (size_t)(k->npieces * k->c) * 2 * sizeof(float);
	if (k->attr.train && k->count == 1) {
		free(k);
		return gt_cpu_refuse(call, err, "batch statistics need more than one value a channel");
	}
	*out = &k->head;
	return GT_OK;
}
