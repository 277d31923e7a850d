/* Reference in f64: group normalisation over NHWC, with the biased variance, as in PyTorch. */
#include "ref.h"
#include <math.h>
#include <stdlib.h>

struct groupnorm {
	struct gt_kernel head;
	int64_t samples, channels, pixels, groups;
	int64_t width; /* number of channels of a group */
	double eps;
	bool affine, stats, dgamma, dbeta;
	uint32_t accumulate;
};

/* Returns the index of pixel p of channel j of group g of a sample. */
static int64_t index_of(const struct groupnorm *k, int64_t sample, int64_t g, int64_t p, int64_t j)
{
	return (sample * k->pixels + p) * k->channels + g * k->width + j;
}

static enum gt_code launch_forward(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, struct gt_err *err)
{
	const struct groupnorm *k = (const struct groupnorm *)kernel;
	const double *x = a->in[0], *gamma = k->affine ? a->in[1] : NULL, *beta = k->affine ? a->in[2] : NULL;
	double *y = a->out[0], *save_mean = k->stats ? a->out[1] : NULL, *save_rstd = k->stats ? a->out[2] : NULL;
	(void)dev, (void)err;
	for (int64_t u = 0; u < k->samples * k->groups; u++) {
		int64_t n = u / k->groups, g = u % k->groups;
		double sum = 0, sq = 0, count = (double)(k->width * k->pixels);
		for (int64_t p = 0; p < k->pixels; p++)
			for (int64_t j = 0; j < k->width; j++)
				sum += x[index_of(k, n, g, p, j)];
		double mean = sum / count;
		for (int64_t p = 0; p < k->pixels; p++)
			for (int64_t j = 0; j < k->width; j++)
				sq += (x[index_of(k, n, g, p, j)] - mean) * (x[index_of(k, n, g, p, j)] - mean);
		double rstd = 1 / sqrt(sq / count + k->eps);
		for (int64_t p = 0; p < k->pixels; p++)
			for (int64_t j = 0; j < k->width; j++) {
				int64_t i = index_of(k, n, g, p, j), c = g * k->width + j;
				y[i] = (x[i] - mean) * rstd * (gamma ? gamma[c] : 1) + (beta ? beta[c] : 0);
			}
		if (save_mean) {
			save_mean[u] = mean;
			save_rstd[u] = rstd;
		}
	}
	return GT_OK;
}

/* The gradient of gamma or beta: the sum of `part` [samples, channels] over the samples. */
static void add_samples(const struct groupnorm *k, const double *part, double *grad, bool add)
{
	for (int64_t c = 0; c < k->channels; c++) {
		double sum = 0;
		for (int64_t n = 0; n < k->samples; n++)
			sum += part[n * k->channels + c];
		grad[c] = (add ? grad[c] : 0) + sum;
	}
}

static enum gt_code launch_backward(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, struct gt_err *err)
{
	const struct groupnorm *k = (const struct groupnorm *)kernel;
	const double *dy = a->in[0], *x = a->in[1], *gamma = k->affine ? a->in[2] : NULL, *means = a->in[3], *rstds = a->in[4];
	double *dx = a->out[0], *part_beta = a->scratch, *part_gamma = part_beta + k->samples * k->channels;
	(void)dev, (void)err;
	for (int64_t u = 0; u < k->samples * k->groups; u++) {
		int64_t n = u / k->groups, g = u % k->groups;
		double sum = 0, dot = 0, count = (double)(k->width * k->pixels), mean = means[u], rstd = rstds[u];
		for (int64_t j = 0; j < k->width; j++) {
			int64_t c = g * k->width + j;
			double by = 0, bx = 0;
			for (int64_t p = 0; p < k->pixels; p++) {
				int64_t i = index_of(k, n, g, p, j);
				by += dy[i];
				bx += dy[i] * (x[i] - mean) * rstd;
			}
			part_beta[n * k->channels + c] = by;
			part_gamma[n * k->channels + c] = bx;
			sum += by * (gamma ? gamma[c] : 1);
			dot += bx * (gamma ? gamma[c] : 1);
		}
		for (int64_t p = 0; dx && p < k->pixels; p++)
			for (int64_t j = 0; j < k->width; j++) {
				int64_t i = index_of(k, n, g, p, j);
				double h = dy[i] * (gamma ? gamma[g * k->width + j] : 1);
				dx[i] = rstd * (h - sum / count - (x[i] - mean) * rstd * dot / count);
			}
	}
	if (k->dbeta)
		add_samples(k, part_beta, a->out[2], k->accumulate & 4);
	if (k->dgamma)
		add_samples(k, part_gamma, a->out[1], k->accumulate & 2);
	return GT_OK;
}

enum gt_code gt_ref_groupnorm(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	bool back = call->code == GT_OP_GROUPNORM_DX;
	const struct gt_attr_norm *attr = call->attr;
	const struct gt_tdesc *x = call->in[back];
	struct groupnorm *k;
	(void)dev;
	if (!(k = calloc(1, sizeof *k)))
		return gt_fail(err, GT_EFAIL, "out of memory");
	k->head.launch = back ? launch_backward : launch_forward;
	k->head.describe = "ref:f64";
	k->samples = x->dim[0];
	k->channels = x->dim[1];
	k->pixels = gt_tdesc_count(x) / (k->samples * k->channels);
	k->groups = attr->groups;
	k->width = k->channels / k->groups;
	k->eps = attr->eps;
	k->affine = back ? call->in[2] != NULL : call->nin > 2 && call->in[1] && call->in[2];
	k->stats = !back && call->nout > 2 && call->out[1] && call->out[2];
	k->dgamma = back && call->nout > 1 && call->out[1];
	k->dbeta = back && call->nout > 2 && call->out[2];
	k->accumulate = call->accumulate;
	if (back)
		k->head.scratch = (size_t)(2 * k->samples * k->channels) * sizeof(double);
	*out = &k->head;
	return GT_OK;
}
