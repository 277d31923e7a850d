/* Group normalisation (torch.nn.GroupNorm): a sample's channels are divided into groups of neighbouring channels, and each group is
 * normalised over its channels and pixels, with biased variance and eps inside the root. Activations are channels last: a pixel is a row of
 * C elements, so loops run along the channels, in blocks of up to BLOCK. A unit of work is one sample's channels of one block: whole
 * groups, or one group that is wider than a block. Sums are double, over the pixels in order, for any number of threads. */
#include "cpu/loops.h"
#include "ew.h"
#include <math.h>

#define BLOCK 64
#define GT_LANE static inline __attribute__((always_inline))

struct groupnorm {
	struct gt_cpu_loop loop; /* loop over the units of all samples */
	const void *x, *dy;
	const float *gamma, *beta; /* NULL: not affine */
	float *mean, *rstd;        /* statistics of each group, [samples, groups]; in the forward pass, NULL if they are not stored */
	void *y, *dx;              /* dx NULL: dx is not computed */
	float *dgamma, *dbeta;     /* NULL: not computed */
	bool add_gamma, add_beta;
	double *part; /* backward: [2, samples, channels], for each channel the sums over its pixels of dy and of dy * xhat */
	int64_t samples, channels, pixels, groups;
	int64_t width;  /* channels of a group */
	int64_t span;   /* channels of a unit; the last unit of a sample may have fewer channels */
	int64_t units;  /* of a sample */
	double eps;
};

static const struct gt_operand_slot slots[] = {GT_SLOTS(groupnorm, x, dy, gamma, beta, mean, rstd, y, dx, dgamma, dbeta)};

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
GT_LANE void sum_block(const struct groupnorm *c, const struct block *b, const float *mean, const bool squared, double *sum,
                       const bool half)
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

static struct block block_of(const struct groupnorm *c, int64_t sample, int64_t first, int64_t end)
{
	int64_t n = end - first < BLOCK ? end - first : BLOCK;
	return (struct block){sample, first, sample * c->pixels * c->channels + first, (int)n};
}

/* Adds the values of a block's channels to the sums of their groups. `group` is the first group of the unit. */
GT_LANE void add_groups(const struct groupnorm *c, const struct block *b, int64_t group, const double *channel, double *sum)
{
	for (int j = 0; j < b->n; j++)
		sum[(b->first + j) / c->width - group] += channel[j];
}

GT_LANE void normalize_unit(const struct groupnorm *c, int64_t unit, const bool half)
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
		double off = sum[k] / count - mean[k]; /* sq is the sum of squared distances from the rounded mean; off corrects the rounding */
		rstd[k] = (float)(1 / sqrt(fmax(sq[k] / count - off * off, 0) + c->eps));
		if (c->mean) {
			c->mean[sample * c->groups + group + k] = mean[k];
			c->rstd[sample * c->groups + group + k] = rstd[k];
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
GT_LANE void compute_unit_dx(const struct groupnorm *c, int64_t unit, const bool half)
{
	int64_t sample = unit / c->units, first = unit % c->units * c->span, group = first / c->width;
	int64_t end = first + c->span < c->channels ? first + c->span : c->channels;
	double sum[BLOCK] = {0}, dot[BLOCK] = {0}, count = (double)(c->width * c->pixels);
	float m[BLOCK], s[BLOCK], g[BLOCK], a[BLOCK], d[BLOCK];
	const float *gamma = c->gamma, *mean = c->mean + sample * c->groups, *rstd = c->rstd + sample * c->groups;
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
	for (int64_t at = first; c->dx && at < end; at += BLOCK) {
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
				store_element(c->dx, i + j, s[j] * (load_element(c->dy, i + j, half) * g[j] - a[j] - xhat * d[j]), half);
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
static enum gt_code launch_forward(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, struct gt_err *err)
{
	struct groupnorm *k = gt_cpu_loop_bind(kernel, a);
	(void)err;
	if (!k->gamma || !k->beta)
		k->gamma = k->beta = NULL;
	if (!k->mean || !k->rstd)
		k->mean = NULL;
	gt_cpu_for(dev, k->loop.n, k->loop.grain, 1, k->loop.fn, k);
	return GT_OK;
}

/* Computes the gradient of gamma or beta as the sum of `part` over the samples, in order. */
static void add_samples(const struct groupnorm *k, const double *part, float *grad, bool add)
{
	for (int64_t i = 0; i < k->channels; i++) {
		double sum = 0;
		for (int64_t n = 0; n < k->samples; n++)
			sum += part[n * k->channels + i];
		grad[i] = (float)((add ? (double)grad[i] : 0) + sum);
	}
}

static enum gt_code launch_backward(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, struct gt_err *err)
{
	struct groupnorm *k = gt_cpu_loop_bind(kernel, a);
	(void)err;
	k->part = a->scratch;
	gt_cpu_for(dev, k->loop.n, k->loop.grain, 1, k->loop.fn, k);
	if (k->dbeta)
		add_samples(k, k->part, k->dbeta, k->add_beta);
	if (k->dgamma)
		add_samples(k, k->part + k->samples * k->channels, k->dgamma, k->add_gamma);
	return GT_OK;
}

enum gt_code gt_cpu_groupnorm(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	static gt_range_fn *const run[2][2] = {{normalize_unit_f32, normalize_unit_bf16}, {compute_unit_dx_f32, compute_unit_dx_bf16}};
	bool back = call->code == GT_OP_GROUPNORM_DX;
	const struct gt_attr_norm *attr = call->attr;
	const struct gt_tdesc *x = gt_opcall_operand(call, "x");
	struct groupnorm *k;
	(void)dev;
	GT_LOOP_NEW(k, slots, call, "loops:groupnorm", err);
	k->loop.head.launch = back ? launch_backward : launch_forward;
	k->samples = x->dim[0];
	k->channels = x->dim[1];
	k->pixels = gt_tdesc_count(x) / (k->samples * k->channels);
	k->groups = attr->groups;
	k->width = k->channels / k->groups;
	k->eps = attr->eps;
	k->add_gamma = gt_opcall_adds(call, "dgamma");
	k->add_beta = gt_opcall_adds(call, "dbeta");
	k->span = k->width < BLOCK ? BLOCK / k->width * k->width : k->width;
	k->units = (k->channels + k->span - 1) / k->span;
	gt_cpu_loop_over(&k->loop, run[back][x->dtype == GT_BF16], k->samples * k->units, 16384 / (k->span * k->pixels) + 1);
	if (back)
		k->loop.head.scratch = (size_t)(2 * k->samples * k->channels) * sizeof(double);
	*out = &k->loop.head;
	return GT_OK;
}
