/* Batch normalisation, f32 and bf16. An activation has `rows` rows of c channels: [N, C], or NHWC with N*H*W rows.
 *
 * Statistics: rows are divided into pieces that fit the cache. A piece is read twice (mean, then squared distances from it), and the pieces
 * are combined in double (Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979). The
 * tensor is therefore read from memory once, with the accuracy of two passes, and the result does not depend on the number of threads. With
 * few channels, loops would be short: then `fold` rows are treated as one row of fold * c channels, whose results are combined at the end.
 * Formula, as in PyTorch: y = x * (gamma * rstd) + (beta - mean * gamma * rstd).
 *
 * Over several ranks (sync_bn) each pass has two halves with an exchange between them: batchnorm.stats … batchnorm.y, and batchnorm.sums …
 * batchnorm.dx. The complete kernels consist of the same halves, so that with one rank both give the same bits. */
#include "cpu/loops.h"
#include "moments.h"
#include <math.h>
#include <string.h>

#define PIECE 16384 /* maximum number of elements in a piece of the rows */

struct bn {
	struct gt_cpu_loop loop;
	const void *x, *dy, *res;
	const float *gamma, *beta;
	float *rmean, *rvar;
	int64_t *nbt;
	void *y; /* output of the forward operations; in a gradient, the output of relu */
	float *mean, *rstd, *dgamma, *dbeta;
	double *part, *sums; /* sums: output of batchnorm.sums, or the operand `sums` of batchnorm.dx, if present */
	void *dx, *g, *again;
	struct gt_attr_norm attr;
	int64_t count;          /* number of values per channel */
	int64_t fold, rows, c;  /* shape in the loops: c is `fold` times the tensor's number of channels */
	int64_t piece, npieces; /* rows of a piece; number of pieces */
	int mask;         /* elements of dy that the gradient uses: 0: all; 1: elements with bn(x) > 0; 2: elements with y > 0 */
	bool relu;
	bool bf16, batch; /* batch: uses the batch statistics instead of the running statistics */
	bool add_gamma, add_beta;
};

static const struct gt_operand_slot slots[] = {
    GT_SLOTS(bn, x, dy, res, gamma, beta, rmean, rvar, nbt),
    GT_SLOTS(bn, y, mean, rstd, dgamma, dbeta, part, sums, dx, g, again)};

#define GT_WITHOUT_F64
#define GT_TYPED "cpu/batchnorm.inc"
#include "cpu/typed.inc"

/* The arrays in the scratch memory: two sums and six values per channel, and two sums per piece and channel. */
struct parts {
	const struct bn *k;
	const void *x, *dy, *res; /* res: second summand of the output; in a gradient, the output of relu */
	void *y, *g, *again;
	float *s0, *s1;      /* two sums of each piece and channel, [npieces][c] */
	const float *mean;   /* value of each channel that the loops subtract from x, [c] */
	float *a, *b, *d; /* coefficients of each channel in the loops, [c] */
	float *mu;        /* mean of each channel, [c] */
	float *m, *shift; /* coefficients of each channel, with which bn(x) = x * m + shift as in the forward pass, [c] */
	int mask;
	double *sum0, *sum1; /* two sums of each channel over all pieces, [c] */
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

static void compute_piece_stats(const void *ctx, int64_t begin, int64_t end)
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

static void normalize_pieces(const void *ctx, int64_t begin, int64_t end)
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

static void compute_piece_sums(const void *ctx, int64_t begin, int64_t end)
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

static void compute_piece_dx(const void *ctx, int64_t begin, int64_t end)
{
	const struct parts *p = ctx;
	const struct bn *k = p->k;
	for (int64_t i = begin; i < end; i++) {
		const void *dy = AT(p->dy, i), *x = AT(p->x, i), *y = p->res ? AT(p->res, i) : NULL;
		void *dx = (void *)AT(p->y, i), *again = p->again ? (void *)AT(p->again, i) : NULL;
		if (again && k->bf16)
			rows_dx_again_bf16(dy, x, dx, again, piece_rows(k, i), k->c, p->mean, p->a, p->b, p->d, p->m, p->shift, k->relu);
		else if (again)
			rows_dx_again_f32(dy, x, dx, again, piece_rows(k, i), k->c, p->mean, p->a, p->b, p->d, p->m, p->shift, k->relu);
		else if (k->bf16)
			rows_dx_bf16(dy, x, y, dx, piece_rows(k, i), k->c, p->mean, p->a, p->b, p->d, p->m, p->shift, p->mask);
		else
			rows_dx_f32(dy, x, y, dx, piece_rows(k, i), k->c, p->mean, p->a, p->b, p->d, p->m, p->shift, p->mask);
	}
}

/* Combines the pieces for channels [begin, end): the mean into sum0, the sum of squared distances from the mean into sum1. */
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

/* Combines the statistics of the c folded channels into statistics of the c / fold channels of the tensor. */
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
		p->sum1[i] = m2;
	}
}

/* Computes means of p->x into sum0 and squared deviations into sum1. */
static void compute_moments(struct gt_dev *dev, const struct parts *p)
{
	gt_cpu_for(dev, p->k->npieces, 2, 1, compute_piece_stats, p);
	gt_cpu_for(dev, p->k->c, 1 + PIECE / p->k->npieces, 16, merge_stats, p);
	unfold_stats(p);
}

static void put_part(const struct parts *p, double *part)
{
	int64_t c = p->k->c / p->k->fold;
	for (int64_t i = 0; i < c; i++) {
		struct gt_moments m = {p->sum0[i], p->sum1[i], (double)p->k->count};
		gt_moments_put(part, c, i, m);
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

/* Copies the first c / fold entries of a to the entries after them, so that each folded channel has an entry. */
static void copy_to_folds(const struct bn *k, float *a)
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
	const struct bn *k = gt_cpu_loop_bind(head, a);
	struct parts p = parts_of(k, a->scratch);
	const float *gamma = k->gamma, *beta = k->beta;
	float *rmean = k->rmean, *rvar = k->rvar, *mean = k->mean, *rstd = k->rstd;
	(void)err;
	p.x = k->x;
	p.res = k->res;
	p.y = k->y;
	if (k->batch)
		compute_moments(dev, &p);
	bool update = k->attr.train && k->attr.track && rmean;
	double m = k->attr.momentum, unbias = (double)k->count / (double)(k->count - 1);
	for (int64_t i = 0; i < k->c / k->fold; i++) {
		double mu = k->batch ? p.sum0[i] : rmean[i], var = k->batch ? p.sum1[i] / (double)k->count : rvar[i],
		       rs = 1 / sqrt(var + k->attr.eps);
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
	if (update && k->nbt)
		++*k->nbt;
	copy_to_folds(k, p.a);
	copy_to_folds(k, p.d);
	gt_cpu_for(dev, k->npieces, 2, 1, normalize_pieces, &p);
	return GT_OK;
}

/* Computes the output of bn_forward again from the statistics that it saved. */
static enum gt_code bn_recompute(struct gt_dev *dev, struct gt_kernel *head, const struct gt_launch *a, struct gt_err *err)
{
	const struct bn *k = gt_cpu_loop_bind(head, a);
	struct parts p = parts_of(k, a->scratch);
	const float *gamma = k->gamma, *beta = k->beta, *mean = k->mean, *rstd = k->rstd;
	(void)err;
	p.x = k->x;
	p.res = k->res;
	p.y = k->y;
	for (int64_t i = 0; i < k->c / k->fold; i++) {
		p.a[i] = rstd[i] * (gamma ? gamma[i] : 1);
		p.d[i] = (beta ? beta[i] : 0) - mean[i] * p.a[i];
	}
	copy_to_folds(k, p.a);
	copy_to_folds(k, p.d);
	gt_cpu_for(dev, k->npieces, 2, 1, normalize_pieces, &p);
	return GT_OK;
}

static enum gt_code bn_stats(struct gt_dev *dev, struct gt_kernel *head, const struct gt_launch *a, struct gt_err *err)
{
	const struct bn *k = gt_cpu_loop_bind(head, a);
	struct parts p = parts_of(k, a->scratch);
	(void)err;
	p.x = k->x;
	compute_moments(dev, &p);
	put_part(&p, k->part);
	return GT_OK;
}

static enum gt_code bn_stats_empty(struct gt_dev *dev, struct gt_kernel *head, const struct gt_launch *a, struct gt_err *err)
{
	const struct bn *k = gt_cpu_loop_bind(head, a);
	(void)dev, (void)err;
	memset(k->part, 0, (size_t)k->c * 3 * sizeof(double));
	return GT_OK;
}

/* Returns the arguments of the gradient's loops. */
static struct parts parts_dx(const struct bn *k, const struct gt_launch *a)
{
	struct parts p = parts_of(k, a->scratch);
	const float *gamma = k->gamma, *mean = k->mean, *rstd = k->rstd, *beta = k->beta;
	p.dy = k->dy;
	p.x = k->x;
	memcpy(p.mu, mean, sizeof *p.mu * (size_t)(k->c / k->fold));
	copy_to_folds(k, p.mu);
	p.mean = p.mu;
	p.mask = k->mask;
	p.res = k->mask == 2 ? k->y : NULL;
	p.g = k->mask ? k->g : NULL;
	bool forward = k->mask == 1 || k->again; /* the loops compute bn(x) */
	for (int64_t i = 0; forward && i < k->c / k->fold; i++) {
		p.m[i] = rstd[i] * (gamma ? gamma[i] : 1);
		p.shift[i] = (beta ? beta[i] : 0) - mean[i] * p.m[i];
	}
	if (forward) {
		copy_to_folds(k, p.m);
		copy_to_folds(k, p.shift);
	}
	return p;
}

/* Computes sums of dy into sum0 and of dy * (x - mean) into sum1, and the gradients of the parameters. */
static void local_sums(struct gt_dev *dev, const struct parts *p)
{
	const struct bn *k = p->k;
	const float *rstd = k->rstd;
	float *dgamma = k->dgamma, *dbeta = k->dbeta;
	gt_cpu_for(dev, k->npieces, 2, 1, compute_piece_sums, p);
	gt_cpu_for(dev, k->c, 1 + PIECE / k->npieces, 16, merge_sums, p);
	unfold_sums(p);
	for (int64_t i = 0; i < k->c / k->fold; i++) {
		double rs = rstd[i];
		if (dgamma)
			dgamma[i] = (float)(p->sum1[i] * rs) + (k->add_gamma ? dgamma[i] : 0);
		if (dbeta)
			dbeta[i] = (float)p->sum0[i] + (k->add_beta ? dbeta[i] : 0);
	}
}

static enum gt_code bn_sums(struct gt_dev *dev, struct gt_kernel *head, const struct gt_launch *a, struct gt_err *err)
{
	const struct bn *k = gt_cpu_loop_bind(head, a);
	struct parts p = parts_dx(k, a);
	double *out = k->sums;
	int64_t c = k->c / k->fold;
	(void)err;
	local_sums(dev, &p);
	memcpy(out, p.sum0, (size_t)c * sizeof *out);
	memcpy(out + c, p.sum1, (size_t)c * sizeof *out);
	for (int64_t i = 0; i < c; i++)
		out[2 * c + i] = (double)k->count;
	return GT_OK;
}

/* With batch statistics, dx = gamma * rstd * (dy - mean(dy) - (x - mean) * rstd^2 * mean(dy * (x - mean))); otherwise dx = gamma * rstd *
 * dy. */
static enum gt_code bn_backward(struct gt_dev *dev, struct gt_kernel *head, const struct gt_launch *a, struct gt_err *err)
{
	const struct bn *k = gt_cpu_loop_bind(head, a);
	struct parts p = parts_dx(k, a);
	const float *gamma = k->gamma, *rstd = k->rstd;
	const double *given = k->sums;
	int64_t c = k->c / k->fold;
	(void)err;
	p.y = k->dx;
	p.again = k->again;
	if (!given)
		local_sums(dev, &p);
	double inv = 1.0 / (given ? given[2 * c] : (double)k->count);
	for (int64_t i = 0; i < c; i++) {
		double sum = given ? given[i] : p.sum0[i], dot = given ? given[c + i] : p.sum1[i], rs = rstd[i];
		p.a[i] = (float)(rs * (gamma ? gamma[i] : 1));
		p.b[i] = k->batch ? (float)(rs * rs * dot * inv) : 0;
		p.d[i] = k->batch ? (float)(sum * inv) : 0;
	}
	copy_to_folds(k, p.a);
	copy_to_folds(k, p.b);
	copy_to_folds(k, p.d);
	if (p.g) { /* g now holds dy after the mask, so dx is computed from g */
		p.dy = p.g;
		p.mask = 0;
	}
	if (p.y)
		gt_cpu_for(dev, k->npieces, 2, 1, compute_piece_dx, &p);
	return GT_OK;
}

/* Returns the number of rows to fold into one: the largest divisor of `rows` for which a folded row has at most 512 channels; 1 if c >=
 * 64. */
static int64_t fold_of(int64_t c, int64_t rows)
{
	for (int64_t f = c < 64 ? 512 / c : 1; f > 1; f--)
		if (rows % f == 0)
			return f;
	return 1;
}

/* Prepares an operation: checks its type, divides the rows into pieces, and records which optional operands exist and how much scratch
 * memory the loops need. */
enum gt_code gt_cpu_batchnorm(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	static const struct {
		enum gt_opcode code;
		enum gt_code (*launch)(struct gt_dev *dev, struct gt_kernel *k, const struct gt_launch *a, struct gt_err *err);
		const char *describe;
	} ops[] = {{GT_OP_BATCHNORM, bn_forward, "loops:batchnorm"},
	           {GT_OP_BATCHNORM_Y, bn_recompute, "loops:batchnorm.y"},
	           {GT_OP_BATCHNORM_STATS, bn_stats, "loops:batchnorm.stats"},
	           {GT_OP_BATCHNORM_SUMS, bn_sums, "loops:batchnorm.sums"},
	           {GT_OP_BATCHNORM_DX, bn_backward, "loops:batchnorm.dx"}};
	bool backward = call->code == GT_OP_BATCHNORM_DX || call->code == GT_OP_BATCHNORM_SUMS;
	bool forward = call->code == GT_OP_BATCHNORM, again = call->code == GT_OP_BATCHNORM_DX && gt_opcall_operand(call, "again");
	const struct gt_tdesc *x = gt_opcall_operand(call, "x");
	const struct gt_attr_norm *attr = call->attr;
	struct bn *k;
	int i = 0;
	(void)dev;
	if (attr->act > GT_ACT_RELU || (backward && gt_opcall_operand(call, "more")))
		return gt_opcall_refuse(call, err, "a gelu and the sum of two gradients must be separate calls");
	bool plain = !again || (gt_opcall_operand(call, "dx") && !gt_opcall_operand(call, "y") && !gt_opcall_operand(call, "sums"));
	if (!plain || (again && gt_opcall_operand(call, "g")))
		return gt_opcall_refuse(call, err, "the output must be computed again by batchnorm.y");
	while (ops[i].code != call->code)
		i++;
	if (call->code == GT_OP_BATCHNORM_STATS && attr->empty) {
		GT_LOOP_NEW(k, slots, call, ops[i].describe, err);
		k->loop.head.launch = bn_stats_empty;
		k->c = gt_opcall_operand(call, "part")->dim[1];
		*out = &k->loop.head;
		return GT_OK;
	}
	GT_LOOP_NEW(k, slots, call, ops[i].describe, err);
	k->loop.head.launch = ops[i].launch;
	k->attr = *attr;
	k->count = gt_tdesc_count(x) / x->dim[1];
	k->fold = fold_of(x->dim[1], k->count);
	k->c = x->dim[1] * k->fold;
	k->rows = k->count / k->fold;
	k->piece = PIECE / k->c < 16 ? 16 : PIECE / k->c;
	k->npieces = (k->rows + k->piece - 1) / k->piece;
	k->bf16 = x->dtype == GT_BF16;
	k->batch = k->attr.train || !k->attr.track;
	k->add_gamma = gt_opcall_adds(call, "dgamma");
	k->add_beta = gt_opcall_adds(call, "dbeta");
	k->relu = k->attr.act == GT_ACT_RELU;
	if (backward && call->nin > 5 && !(call->code == GT_OP_BATCHNORM_DX && gt_opcall_operand(call, "sums")))
		k->mask = gt_opcall_operand(call, "y") ? 2 : again && !k->relu ? 0 : 1;
	k->loop.head.scratch =
	    (size_t)k->c * 2 * sizeof(double) + (size_t)k->c * 6 * sizeof(float) + (size_t)(k->npieces * k->c) * 2 * sizeof(float);
	if (forward && k->attr.train && k->count == 1) {
		free(k);
		return gt_opcall_refuse(call, err, "batch statistics need at least two values per channel");
	}
	*out = &k->loop.head;
	return GT_OK;
}
