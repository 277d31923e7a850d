/* Draws the initial values of parameters. */
#include "ir/init.h"
#include "base/philox.h"
#include <math.h>

void gt_init_begin(struct gt_init_stream *s, uint64_t seed)
{
	s->seed = seed;
	gt_mt19937_seed(&s->torch, seed);
}

static void put_value(const struct gt_param *p, void *out, int64_t i, double v)
{
	if (p->desc.dtype == GT_F64)
		((double *)out)[i] = v;
	else if (p->desc.dtype == GT_I64)
		((int64_t *)out)[i] = (int64_t)v;
	else
		((float *)out)[i] = (float)v;
}

/* Returns the distribution from which the initial values of p are drawn. */
static struct gt_init resolve_init(const struct gt_param *p)
{
	double in = (double)p->fan_in, sum = in + (double)p->fan_out;
	if (p->init.kind == GT_INIT_CONST || p->cls == GT_PARAM_TABLE || p->method == GT_INIT_TORCH_DEFAULT || p->method == GT_INIT_TORCH)
		return p->init;
	if (p->cls != GT_PARAM_WEIGHT)
		return (struct gt_init){GT_INIT_CONST, 0};
	switch (p->method) {
	case GT_INIT_KAIMING_NORMAL:
		return (struct gt_init){GT_INIT_NORMAL, sqrt(2.0 / in)};
	case GT_INIT_KAIMING_UNIFORM:
		return (struct gt_init){GT_INIT_UNIFORM, sqrt(6.0 / in)};
	case GT_INIT_XAVIER_NORMAL:
		return (struct gt_init){GT_INIT_NORMAL, sqrt(2.0 / sum)};
	case GT_INIT_XAVIER_UNIFORM:
		return (struct gt_init){GT_INIT_UNIFORM, sqrt(6.0 / sum)};
	default:
		return p->init;
	}
}

int64_t gt_init_torch_draws(struct gt_init d, enum gt_dtype t, int64_t n)
{
	if (d.kind == GT_INIT_CONST)
		return 0;
	if (d.kind == GT_INIT_UNIFORM)
		return n;
	if (n < 16) /* PyTorch draws so few normal values in pairs, and each pair takes two 64-bit draws */
		return (n + 1) / 2 * (t == GT_F64 ? 2 : 4);
	return n + (n % 16 ? 16 : 0);
}

static void skip_torch_draws(struct gt_mt19937 *m, enum gt_dtype t, int64_t n)
{
	while (n-- > 0)
		t == GT_F64 ? gt_mt19937_u64(m) : gt_mt19937_u32(m);
}

/* Draws the values of p as PyTorch does. torch.nn.MultiheadAttention draws the parameters of its output projection before the input
 * projection: in_proj_weight skips these draws, and out_proj.weight uses them. */
static void draw_as_torch(struct gt_init_stream *s, const struct gt_param *p, struct gt_init d, void *out, int64_t n)
{
	struct gt_mt19937 *m = &s->torch;
	double bound = d.value;
	if (p->torch_skip > 0)
		s->skipped = *m;
	if (p->torch_skip < 0)
		m = &s->skipped;
	skip_torch_draws(m, p->desc.dtype, p->torch_skip);
	if (d.kind == GT_INIT_NORMAL && p->desc.dtype == GT_F64)
		gt_mt19937_normal64(m, d.value, n, out);
	else if (d.kind == GT_INIT_NORMAL)
		gt_mt19937_normal(m, (float)d.value, n, out);
	for (int64_t i = 0; d.kind == GT_INIT_UNIFORM && i < n; i++) {
		if (p->desc.dtype == GT_F64)
			((double *)out)[i] = gt_mt19937_uniform64(m, -bound, bound);
		else
			((float *)out)[i] = gt_mt19937_uniform(m, (float)-bound, (float)bound);
	}
}

/* Draws four values from [0, 1) or, by the Box-Muller method, from N(0, 1). */
static void draw_four(uint64_t key, int64_t block, bool normal, double *v)
{
	struct gt_philox r = gt_rng_draw(key, (uint32_t)block, (uint32_t)(block >> 32), 0, 0);
	for (int k = 0; k < 4; k++)
		v[k] = (double)gt_rng_uniform(r.v[k]);
	for (int k = 0; normal && k < 4; k += 2) {
		double radius = sqrt(-2 * log(((double)r.v[k] + 1) * 0x1p-32)), angle = 2 * M_PI * v[k + 1];
		v[k] = radius * cos(angle);
		v[k + 1] = radius * sin(angle);
	}
}

static double value_at(const struct gt_param *p, const void *v, int64_t i)
{
	return p->desc.dtype == GT_F64 ? ((const double *)v)[i] : ((const float *)v)[i];
}

/* Makes each of the first min(in, out) filters an identity: filter i has a 1 in the middle of channel i and 0 elsewhere. */
static void fill_dirac(const struct gt_param *p, void *out)
{
	const int64_t *d = p->desc.dim;
	int64_t n = d[0] < d[1] ? d[0] : d[1], area = d[2] * d[3];
	for (int64_t i = 0; i < n * d[1] * area; i++)
		put_value(p, out, i, 0);
	for (int64_t i = 0; i < n; i++)
		put_value(p, out, (i * d[1] + i) * area + d[2] / 2 * d[3] + d[3] / 2, 1);
}

/* Multiplies the values by a factor, so that their standard deviation (unbiased, as of torch.std) is p->init_std. */
static void scale_to_std(const struct gt_param *p, void *out, int64_t n)
{
	double mean = 0, sum = 0;
	for (int64_t i = 0; i < n; i++)
		mean += value_at(p, out, i) / (double)n;
	for (int64_t i = 0; i < n; i++)
		sum += (value_at(p, out, i) - mean) * (value_at(p, out, i) - mean);
	if (n < 2 || sum <= 0)
		return;
	double factor = p->init_std / sqrt(sum / (double)(n - 1));
	for (int64_t i = 0; i < n; i++)
		put_value(p, out, i, value_at(p, out, i) * factor);
}

static void draw_param(struct gt_init_stream *s, const struct gt_param *p, int index, void *out)
{
	int64_t n = gt_tdesc_count(&p->desc);
	struct gt_init d = resolve_init(p);
	if (p->method == GT_INIT_TORCH)
		skip_torch_draws(&s->torch, p->desc.dtype, p->torch_lost);
	if (d.kind == GT_INIT_CONST) {
		for (int64_t i = 0; i < n; i++)
			put_value(p, out, i, d.value);
		return;
	}
	if (p->method == GT_INIT_TORCH) {
		draw_as_torch(s, p, d, out, n);
		return;
	}
	bool normal = d.kind == GT_INIT_NORMAL;
	uint64_t key = gt_rng_key(s->seed, GT_RNG_INIT, (uint32_t)index);
	double v[4];
	for (int64_t i = 0; i < n; i++) {
		if (i % 4 == 0)
			draw_four(key, i / 4, normal, v);
		put_value(p, out, i, normal ? v[i % 4] * d.value : (2 * v[i % 4] - 1) * d.value);
	}
}

void gt_param_init(struct gt_init_stream *s, const struct gt_param *p, int index, void *out)
{
	draw_param(s, p, index, out);
	for (int64_t i = 0; p->zero_row >= 0 && i < p->desc.dim[1]; i++)
		put_value(p, out, p->zero_row * p->desc.dim[1] + i, 0);
	if (p->then == GT_INIT_DIRAC)
		fill_dirac(p, out);
	for (int64_t i = 0; p->then == GT_INIT_ZEROS && i < gt_tdesc_count(&p->desc); i++)
		put_value(p, out, i, 0);
	if (p->init_std > 0)
		scale_to_std(p, out, gt_tdesc_count(&p->desc));
}
