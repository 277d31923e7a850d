/* Reference in f64: batch normalisation of [N,C] or NHWC, both of which are `rows` rows of C. As in PyTorch, the biased variance
 * normalises and the unbiased one updates the running variance. */
#include "ref.h"
#include "moments.h"
#include <math.h>
#include <stdlib.h>

struct batchnorm {
	struct gt_kernel head;
	enum gt_opcode code;
	struct gt_attr_norm attr;
	int64_t rows, c;
	bool batch; /* true: normalises by the statistics of the batch; false: by the running ones */
	bool affine, stats, track, nbt, dgamma, dbeta, given;
	uint32_t accumulate;
};

static struct gt_moments compute_moments(const struct batchnorm *k, const double *x, int64_t c)
{
	struct gt_moments m = {.n = (double)k->rows};
	for (int64_t r = 0; r < k->rows; r++)
		m.mean += x[r * k->c + c];
	m.mean /= m.n;
	for (int64_t r = 0; r < k->rows; r++)
		m.m2 += (x[r * k->c + c] - m.mean) * (x[r * k->c + c] - m.mean);
	return m;
}

static enum gt_code launch_forward(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, struct gt_err *err)
{
	const struct batchnorm *k = (const struct batchnorm *)kernel;
	const double *x = a->in[0], *gamma = k->affine ? a->in[1] : NULL, *beta = k->affine ? a->in[2] : NULL;
	double *rmean = k->track ? a->in[3] : NULL, *rvar = k->track ? a->in[4] : NULL;
	double *y = a->out[0], *save_mean = k->stats ? a->out[1] : NULL, *save_rstd = k->stats ? a->out[2] : NULL;
	int64_t rows = k->rows, C = k->c;
	double mom = k->attr.momentum;
	(void)dev, (void)err;
	for (int64_t c = 0; c < C; c++) {
		double mean = 0, var = 0;
		if (k->batch) {
			struct gt_moments m = compute_moments(k, x, c);
			mean = m.mean;
			if (rmean && k->attr.train) {
				rmean[c] = (1 - mom) * rmean[c] + mom * mean;
				rvar[c] = (1 - mom) * rvar[c] + mom * m.m2 / (double)(rows - 1);
			}
			var = m.m2 / (double)rows;
		} else {
			mean = rmean[c];
			var = rvar[c];
		}
		double rstd = 1 / sqrt(var + k->attr.eps);
		for (int64_t r = 0; r < rows; r++)
			y[r * C + c] = (x[r * C + c] - mean) * rstd * (gamma ? gamma[c] : 1) + (beta ? beta[c] : 0);
		if (save_mean) {
			save_mean[c] = mean;
			save_rstd[c] = rstd;
		}
	}
	if (k->nbt)
		++*(int64_t *)a->in[5];
	return GT_OK;
}

static enum gt_code launch_recompute(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, struct gt_err *err)
{
	const struct batchnorm *k = (const struct batchnorm *)kernel;
	const double *x = a->in[0], *gamma = k->affine ? a->in[1] : NULL, *beta = k->affine ? a->in[2] : NULL, *mean = a->in[3],
	             *rstd = a->in[4];
	double *y = a->out[0];
	(void)dev, (void)err;
	for (int64_t i = 0; i < k->rows * k->c; i++) {
		int64_t c = i % k->c;
		y[i] = (x[i] - mean[c]) * rstd[c] * (gamma ? gamma[c] : 1) + (beta ? beta[c] : 0);
	}
	return GT_OK;
}

static enum gt_code launch_stats(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, struct gt_err *err)
{
	const struct batchnorm *k = (const struct batchnorm *)kernel;
	(void)dev, (void)err;
	for (int64_t c = 0; c < k->c; c++)
		gt_moments_put(a->out[0], k->c, c, k->attr.empty ? (struct gt_moments){0} : compute_moments(k, a->in[0], c));
	return GT_OK;
}

/* Computes batchnorm.sums, or batchnorm.dx from its own or from given sums. */
static enum gt_code launch_backward(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, struct gt_err *err)
{
	const struct batchnorm *k = (const struct batchnorm *)kernel;
	const double *dy = a->in[0], *x = a->in[1], *gamma = k->affine ? a->in[2] : NULL, *mean = a->in[3], *rstd = a->in[4];
	const double *given = k->given ? a->in[7] : NULL;
	bool sums = k->code == GT_OP_BATCHNORM_SUMS;
	double *dx = sums ? NULL : a->out[0], *dgamma = k->dgamma ? a->out[1] : NULL, *dbeta = k->dbeta ? a->out[2] : NULL;
	int64_t rows = k->rows, C = k->c;
	(void)dev, (void)err;
	for (int64_t c = 0; c < C; c++) {
		double sum = 0, dot = 0, count = given ? given[2 * C] : (double)rows;
		for (int64_t r = 0; r < rows && !given; r++) {
			sum += dy[r * C + c];
			dot += dy[r * C + c] * (x[r * C + c] - mean[c]);
		}
		if (sums)
			gt_moments_put(a->out[0], C, c, (struct gt_moments){sum, dot, count});
		if (given)
			sum = given[c], dot = given[C + c];
		for (int64_t r = 0; dx && r < rows; r++) {
			double d = dy[r * C + c];
			if (k->batch)
				d -= sum / count + (x[r * C + c] - mean[c]) * rstd[c] * rstd[c] * dot / count;
			dx[r * C + c] = d * rstd[c] * (gamma ? gamma[c] : 1);
		}
		if (dgamma)
			dgamma[c] = dot * rstd[c] + (k->accumulate & 2 ? dgamma[c] : 0);
		if (dbeta)
			dbeta[c] = sum + (k->accumulate & 4 ? dbeta[c] : 0);
	}
	return GT_OK;
}

static bool has_operand(struct gt_tdesc *const *d, int n, int i)
{
	return i < n && d[i];
}

enum gt_code gt_ref_batchnorm(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	bool back = call->code == GT_OP_BATCHNORM_DX || call->code == GT_OP_BATCHNORM_SUMS, again = call->code == GT_OP_BATCHNORM_Y;
	bool forward = call->code == GT_OP_BATCHNORM, stats = call->code == GT_OP_BATCHNORM_STATS;
	const struct gt_attr_norm *attr = call->attr;
	const struct gt_tdesc *x = call->in[0];
	struct batchnorm *k;
	(void)dev;
	bool running = forward && has_operand(call->in, call->nin, 3) && has_operand(call->in, call->nin, 4);
	bool batch = attr->train || !attr->track;
	bool more = back && has_operand(call->in, call->nin, call->code == GT_OP_BATCHNORM_DX ? 8 : 7);
	if ((attr->act != GT_ACT_NONE && !stats) || (again && has_operand(call->in, call->nin, 5)) ||
	    (forward && has_operand(call->in, call->nin, 6)) || more || (back && has_operand(call->out, call->nout, 4)))
		return gt_opcall_refuse(call, err, "f64 graphs are not fused");
	if (forward && !batch && !running)
		return gt_opcall_refuse(call, err, "evaluation needs the running statistics");
	if (forward && attr->train && gt_tdesc_count(x) == x->dim[1])
		return gt_opcall_refuse(call, err, "batch statistics need at least two values per channel");
	if (!(k = calloc(1, sizeof *k)))
		return gt_fail(err, GT_EFAIL, "out of memory");
	k->head.launch = back ? launch_backward : again ? launch_recompute : stats ? launch_stats : launch_forward;
	k->head.describe = "ref:f64";
	k->code = call->code;
	k->attr = *attr;
	k->c = stats ? call->out[0]->dim[1] : x->dim[1];
	k->rows = gt_tdesc_count(x) / x->dim[1];
	k->batch = batch;
	k->affine = back ? call->in[2] != NULL : has_operand(call->in, call->nin, 1) && has_operand(call->in, call->nin, 2);
	k->stats = forward && has_operand(call->out, call->nout, 1) && has_operand(call->out, call->nout, 2);
	k->track = running;
	k->nbt = running && attr->train && has_operand(call->in, call->nin, 5);
	k->given = call->code == GT_OP_BATCHNORM_DX && has_operand(call->in, call->nin, 7);
	k->dgamma = back && has_operand(call->out, call->nout, 1);
	k->dbeta = back && has_operand(call->out, call->nout, 2);
	k->accumulate = call->accumulate;
	*out = &k->head;
	return GT_OK;
}
