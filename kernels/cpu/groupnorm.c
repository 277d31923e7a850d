/* Group normalisation (torch.nn.GroupNorm): a sample's channels are divided into groups of neighbouring channels, and each group is
 * normalised over its channels and pixels, with biased variance and eps inside the root. Activations are channels last: a pixel is a row of
 * C elements, so loops run along the channels, in blocks of up to BLOCK. A unit of work is one sample's channels of one block: whole
 * groups, or one group that is wider than a block. Sums are made in double, pixel after pixel, whatever the number of threads. */
#include "cpu/loops.h"
#include "ew.h"
#include <math.h>
#include <stdlib.h>

#define BLOCK 64
#define GT_LANE static inline __attribute__((always_inline))

struct args {
	int64_t samples, channels, pixels, groups;
	int64_t width;  /* channels of a group */
	int64_t span;   /* channels of a unit; the last unit of a sample may have fewer */
	int64_t units;  /* of a sample */
	double eps;
	const void *x, *dy;
	const void *gamma, *beta; /* NULL: not affine */
	void *mean, *rstd;        /* statistics of each group, [samples, groups]; in the forward pass, NULL if they are not stored */
	void *y;                  /* output y, or gradient dx; NULL: dx is not computed */
	void *dgamma, *dbeta;     /* NULL: not wanted */
	bool add_gamma, add_beta;
	double *part; /* backward: [2, samples, channels], for each channel the sums over its pixels of dy and of dy * xhat */
};

/* ---- loops ----------------------------------------------------------------------------------------------------------------- */
GT_LANE float load_element(const void *p, int64_t i, const bool half)
{
	return half ? gt_bf16_to_f32(((const uint16_t *)p)[i]) : ((const float *)p)[i];
}

GT_LANE void store_element(void *p, int64_t i, float v, const bool half)
{
	if (half)
		((uint16_t *)p)[i] = gt_bf16_from_f32(v);
	else
		((float *)p)[i] = v;
}

/* A block of at most BLOCK channels: [first, first + n) of sample `sample`. */
struct block {
	int64_t sample, first, base; /* base: index of the first pixel's first channel */
	int n;
};

/* Computes sum[j] for each channel j of a block: the sum over the pixels of x or, if squared is true, of (x - mean[j])^2. */
GT_LANE void sum_block(const struct args *c, const struct block *b, const float *mean, const bool squared, double *sum, const bool half)
{
	for (int j = 0; j < BLOCK; j++)
		sum[j] = 0;
	for (int64_t p = 0; p < c->pixels; p++) {
		int64_t at = b->base + p * c->channels;
		_Pragma("GCC ivdep") for (int j = 0; j < b->n; j++)
		{
			double d = (double)load_element(c->x, at + j, half) - (squared ? mean[j] : 0);
			sum[j] += squared ? d * d : d;
		}
	}
}

static struct block block_of(const struct args *c, int64_t sample, int64_t first, int64_t end)
{
	int64_t n = end - first < BLOCK ? end - first : BLOCK;
	return (struct block){sample, first, sample * c->pixels * c->channels + first, (int)n};
}

/* Adds the numbers of a block's channels to the sums of their groups. `group` is the first group of the unit. */
GT_LANE void add_groups(const struct args *c, const struct block *b, int64_t group, const double *channel, double *sum)
{
	for (int j = 0; j < b->n; j++)
		sum[(b->first + j) / c->width - group] += channel[j];
}

GT_LANE void normalize_unit(const struct args *c, int64_t unit, const bool half)
{
	int64_t sample = unit / c->units, first = unit % c->units * c->span, group = first / c->width;
	int64_t end = first + c->span < c->channels ? first + c->span : c->channels;
	int ngroups = (int)((end - first) / c->width);
	double sum[BLOCK] = {0}, sq[BLOCK] = {0}, channel[BLOCK], count = (double)(c->width * c->pixels);
	float mean[BLOCK], rstd[BLOCK], m[BLOCK], s[BLOCK], scale[BLOCK], shift[BLOCK];
	const float *gamma = c->gamma, *beta = c->beta;
	for (int64_t at = first; at < end; at += BLOCK) {
		struct block b = block_of(c, sample, at, end);
		sum_block(c, &b, NULL, false, channel, half);
		add_groups(c, &b, group, channel, sum);
	}
	for (int k = 0; k < ngroups; k++)
		mean[k] = (float)(sum[k] / count);
	for (int64_t at = first; at < end; at += BLOCK) {
		struct block b = block_of(c, sample, at, end);
		for (int j = 0; j < b.n; j++)
			m[j] = mean[(at + j) / c->width - group];
		sum_block(c, &b, m, true, channel, half);
		add_groups(c, &b, group, channel, sq);
	}
	for (int k = 0; k < ngroups; k++) {
		double off = sum[k] / count - mean[k]; /* sq has squares of distances from the rounded mean; off corrects that */
		rstd[k] = (float)(1 / sqrt(fmax(sq[k] / count - off * off, 0) + c->eps));
		if (c->mean) {
			((float *)c->mean)[sample * c->groups + group + k] = mean[k];
			((float *)c->rstd)[sample * c->groups + group + k] = rstd[k];
		}
	}
	for (int64_t at = first; at < end; at += BLOCK) {
		struct block b = block_of(c, sample, at, end);
		for (int j = 0; j < b.n; j++) {
			int64_t k = (at + j) / c->width - group;
			m[j] = mean[k];
			s[j] = rstd[k];
			scale[j] = gamma ? gamma[at + j] : 1;
			shift[j] = beta ? beta[at + j] : 0;
		}
		for (int64_t p = 0; p < c->pixels; p++) {
			int64_t i = b.base + p * c->channels;
			_Pragma("GCC ivdep") for (int j = 0; j < b.n; j++)
				store_element(c->y, i + j, (load_element(c->x, i + j, half) - m[j]) * s[j] * scale[j] + shift[j], half);
		}
	}
}

/* Computes dx = rstd (h - mean(h) - xhat mean(h xhat)) with h = dy gamma. */
GT_LANE void compute_unit_dx(const struct args *c, int64_t unit, const bool half)
{
	int64_t sample = unit / c->units, first = unit % c->units * c->span, group = first / c->width;
	int64_t end = first + c->span < c->channels ? first + c->span : c->channels;
	double sum[BLOCK] = {0}, dot[BLOCK] = {0}, count = (double)(c->width * c->pixels);
	float m[BLOCK], s[BLOCK], g[BLOCK], a[BLOCK], d[BLOCK];
	const float *gamma = c->gamma, *mean = (const float *)c->mean + sample * c->groups, *rstd = (const float *)c->rstd + sample * c->groups;
	double *part[2] = {c->part + sample * c->channels, c->part + (c->samples + sample) * c->channels};
	for (int64_t at = first; at < end; at += BLOCK) {
		struct block b = block_of(c, sample, at, end);
		double by[BLOCK] = {0}, bx[BLOCK] = {0};
		for (int j = 0; j < b.n; j++) {
			m[j] = mean[(at + j) / c->width];
			s[j] = rstd[(at + j) / c->width];
		}
		for (int64_t p = 0; p < c->pixels; p++) {
			int64_t i = b.base + p * c->channels;
			_Pragma("GCC ivdep") for (int j = 0; j < b.n; j++)
			{
				float dy = load_element(c->dy, i + j, half);
				by[j] += dy;
				bx[j] += dy * ((load_element(c->x, i + j, half) - m[j]) * s[j]);
			}
		}
		for (int j = 0; j < b.n; j++) {
			part[0][at + j] = by[j];
			part[1][at + j] = bx[j];
			by[j] *= gamma ? gamma[at + j] : 1;
			bx[j] *= gamma ? gamma[at + j] : 1;
		}
		add_groups(c, &b, group, by, sum);
		add_groups(c, &b, group, bx, dot);
	}
	for (int64_t at = first; c->y && at < end; at += BLOCK) {
		struct block b = block_of(c, sample, at, end);
		for (int j = 0; j < b.n; j++) {
			int64_t k = (at + j) / c->width;
			m[j] = mean[k];
			s[j] = rstd[k];
			g[j] = gamma ? gamma[at + j] : 1;
			a[j] = (float)(sum[k - group] / count);
			d[j] = (float)(dot[k - group] / count);
		}
		for (int64_t p = 0; p < c->pixels; p++) {
			int64_t i = b.base + p * c->channels;
			_Pragma("GCC ivdep") for (int j = 0; j < b.n; j++)
			{
				float xhat = (load_element(c->x, i + j, half) - m[j]) * s[j];
				store_element(c->y, i + j, s[j] * (load_element(c->dy, i + j, half) * g[j] - a[j] - xhat * d[j]), half);
			}
		}
	}
}

#define UNITS(name, pass, half)                                                                                                            \
	GT_CLONES static void name(const void *ctx, int64_t begin, int64_t end)                                                                \
	{                                                                                                                                      \
		for (int64_t u = begin; u < end; u++)                                                                                              \
			pass(ctx, u, half);                                                                                                            \
	}
UNITS(normalize_unit_f32, normalize_unit, false)
UNITS(normalize_unit_bf16, normalize_unit, true)
UNITS(compute_unit_dx_f32, compute_unit_dx, false)
UNITS(compute_unit_dx_bf16, compute_unit_dx, true)

/* ---- calls ----------------------------------------------------------------------------------------------------------------- */
struct groupnorm {
	struct gt_kernel head;
	struct args shape;
	gt_range_fn *run;
	int64_t units; /* of all samples */
	bool affine, stats, dgamma, dbeta;
};

static enum gt_code launch_forward(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, struct gt_err *err)
{
	const struct groupnorm *k = (const struct groupnorm *)kernel;
	struct args c = k->shape;
	(void)err;
	c.x = a->in[0];
	c.gamma = k->affine ? a->in[1] : NULL;
	c.beta = k->affine ? a->in[2] : NULL;
	c.y = a->out[0];
	c.mean = k->stats ? a->out[1] : NULL;
	c.rstd = k->stats ? a->out[2] : NULL;
	gt_cpu_for(dev, k->units, 16384 / (c.span * c.pixels) + 1, 1, k->run, &c);
	return GT_OK;
}

/* Computes the gradient of gamma or beta as the sum of `part` over the samples, in order. */
static void add_samples(const struct groupnorm *k, const double *part, float *grad, bool add)
{
	for (int64_t i = 0; i < k->shape.channels; i++) {
		double sum = 0;
		for (int64_t n = 0; n < k->shape.samples; n++)
			sum += part[n * k->shape.channels + i];
		grad[i] = (float)((add ? (double)grad[i] : 0) + sum);
	}
}

static enum gt_code launch_backward(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, struct gt_err *err)
{
	const struct groupnorm *k = (const struct groupnorm *)kernel;
	struct args c = k->shape;
	(void)err;
	c.dy = a->in[0];
	c.x = a->in[1];
	c.gamma = k->affine ? a->in[2] : NULL;
	c.mean = a->in[3];
	c.rstd = a->in[4];
	c.y = a->out[0];
	c.part = a->scratch;
	gt_cpu_for(dev, k->units, 16384 / (c.span * c.pixels) + 1, 1, k->run, &c);
	if (k->dbeta)
		add_samples(k, c.part, a->out[2], c.add_beta);
	if (k->dgamma)
		add_samples(k, c.part + c.samples * c.channels, a->out[1], c.add_gamma);
	return GT_OK;
}

enum gt_code gt_cpu_groupnorm(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	static gt_range_fn *const run[2][2] = {{normalize_unit_f32, normalize_unit_bf16}, {compute_unit_dx_f32, compute_unit_dx_bf16}};
	bool back = call->code == GT_OP_GROUPNORM_DX;
	const struct gt_attr_norm *attr = call->attr;
	const struct gt_tdesc *x = call->in[back];
	struct groupnorm *k;
	struct args *c;
	(void)dev;
	GT_KERNEL_NEW(k, back ? launch_backward : launch_forward, "loops:groupnorm", err);
	c = &k->shape;
	c->samples = x->dim[0];
	c->channels = x->dim[1];
	c->pixels = gt_tdesc_count(x) / (c->samples * c->channels);
	c->groups = attr->groups;
	c->width = c->channels / c->groups;
	c->eps = attr->eps;
	c->add_gamma = call->accumulate & 2;
	c->add_beta = call->accumulate & 4;
	c->span = c->width < BLOCK ? BLOCK / c->width * c->width : c->width;
	c->units = (c->channels + c->span - 1) / c->span;
	k->units = c->samples * c->units;
	k->run = run[back][x->dtype == GT_BF16];
	k->affine = back ? call->in[2] != NULL : call->nin > 2 && call->in[1] && call->in[2];
	k->stats = !back && call->nout > 2 && call->out[1] && call->out[2];
	k->dgamma = back && call->nout > 1 && call->out[1];
	k->dbeta = back && call->nout > 2 && call->out[2];
	if (back)
		k->head.scratch = (size_t)(2 * c->samples * c->channels) * sizeof(double);
	*out = &k->head;
	return GT_OK;
}
