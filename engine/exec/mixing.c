#include "exec/mixing.h"
#include "base/philox.h"
#include <float.h>
#include <math.h>
#include <string.h>

/* ---- random numbers --------------------------------------------------------------------------------------------------------------- */
/* The random numbers for one batch: Philox key and counters, of which the last is the number of draws so far. */
struct draws {
	uint64_t key;
	uint32_t epoch, batch, n;
};

/* Returns a random draw from (0, 1). */
static double draw_uniform(struct draws *d)
{
	struct gt_philox r = gt_rng_draw(d->key, d->epoch, d->batch, d->n++, 0);
	return ((double)(r.v[0] >> 6) * 0x1p26 + (double)(r.v[1] >> 6) + 0.5) * 0x1p-52;
}

static double draw_normal(struct draws *d)
{
	double radius = sqrt(-2 * log(draw_uniform(d)));
	return radius * cos(2 * M_PI * draw_uniform(d));
}

/* A draw from the gamma distribution with scale 1, as a product of two factors. The first factor may be too small for a double. */
struct gamma_draw {
	double factor;     /* 0 if the factor is too small for a double */
	double log_factor; /* alpha times the logarithm of the first factor, which has the range of a double even if the factor has not */
	double rest;       /* the other factor, about alpha + 1 if alpha is below 1, else alpha */
};

/* Draws by the method of Marsaglia and Tsang (2000): with alpha < 1, a draw for alpha + 1 times u^(1 / alpha). */
static struct gamma_draw draw_gamma(struct draws *d, double alpha)
{
	struct gamma_draw g = {.factor = 1};
	if (alpha < 1) {
		double u = draw_uniform(d);
		g.factor = pow(u, 1 / alpha);
		g.log_factor = log(u);
	}
	double a = (alpha < 1 ? alpha + 1 : alpha) - 1.0 / 3, c = 1 / sqrt(9 * a);
	for (;;) {
		double x = draw_normal(d), v = 1 + c * x, u;
		if (v <= 0)
			continue;
		v = v * v * v;
		u = draw_uniform(d);
		if (log(u) < x * x / 2 + a - a * v + a * log(v)) {
			g.rest = a * v;
			return g;
		}
	}
}

/* Returns a draw from Beta(alpha, alpha): x / (x + y) of two draws x, y from the gamma distribution. With a tiny alpha, x and y are often
 * below the smallest double; their ratio is then computed from logarithms. */
static double draw_beta(struct draws *d, double alpha)
{
	struct gamma_draw g = draw_gamma(d, alpha), h = draw_gamma(d, alpha);
	double x = g.factor * g.rest, y = h.factor * h.rest;
	if (x + y >= DBL_MIN)
		return x / (x + y);
	return 1 / (1 + h.rest / g.rest * exp((h.log_factor - g.log_factor) / alpha));
}

void gt_mix_draw(const struct gt_mixing *m, uint64_t seed, uint64_t epoch, uint64_t batch, int64_t h, int64_t w, struct gt_mix *out)
{
	struct draws d = {gt_rng_key(seed, GT_RNG_MIX, 0), (uint32_t)epoch, (uint32_t)batch, 0};
	double which = draw_uniform(&d);
	*out = (struct gt_mix){.lambda = 1, .cut = which >= m->mixup_p};
	if (which >= m->mixup_p + m->cutmix_p)
		return;
	out->lambda = draw_beta(&d, out->cut ? m->cutmix_alpha : m->mixup_alpha);
	if (!out->cut)
		return;
	/* torchvision.transforms.v2.CutMix: the box around a random pixel, cut off at the image's edges; lambda is computed from its area */
	int64_t x = (int64_t)(draw_uniform(&d) * (double)w), y = (int64_t)(draw_uniform(&d) * (double)h);
	double r = 0.5 * sqrt(1 - out->lambda);
	int64_t half_w = (int64_t)(r * (double)w), half_h = (int64_t)(r * (double)h);
	out->left = x > half_w ? x - half_w : 0;
	out->top = y > half_h ? y - half_h : 0;
	out->right = x + half_w < w ? x + half_w : w;
	out->bottom = y + half_h < h ? y + half_h : h;
	out->lambda = 1 - (double)((out->right - out->left) * (out->bottom - out->top)) / (double)(w * h);
}

/* ---- pixels ------------------------------------------------------------------------------------------------------------------------ */
/* Replaces bytes by lambda * x + (1 - lambda) * y, with lambda in steps of 2^-16, rounded to the nearest. */
static void blend_pixels(uint8_t *restrict x, const uint8_t *restrict y, size_t n, double lambda)
{
	uint32_t a = (uint32_t)(lambda * 65536 + 0.5), b = 65536 - a;
	for (size_t i = 0; i < n; i++)
		x[i] = (uint8_t)((a * x[i] + b * y[i] + 32768) >> 16);
}

static void paste_box(const struct gt_mix *m, const struct gt_mix_rows *r, uint8_t *x, const uint8_t *y)
{
	for (int64_t row = m->top; row < m->bottom; row++) {
		int64_t at = (row * r->w + m->left) * r->c;
		memcpy(x + at, y + at, (size_t)((m->right - m->left) * r->c));
	}
}

/* Adds the shares of two classes to the target of a row: lambda for class `own` and 1 - lambda for class `other`; < 0: no class. */
static void set_shares(float *target, int32_t own, int32_t other, double lambda)
{
	if (own >= 0)
		target[own] += (float)lambda;
	if (other >= 0)
		target[other] += (float)(1 - lambda);
}

void gt_mix_rows(const struct gt_mix *m, const struct gt_mix_rows *r)
{
	size_t bytes = (size_t)(r->h * r->w * r->c);
	if (r->label)
		memset(r->target, 0, (size_t)(r->n * r->classes) * sizeof *r->target);
	for (int64_t i = r->n - 1; i >= 0; i--) { /* backwards, because row i reads its partner, row i - 1, before that row is mixed */
		int64_t p = r->apart ? r->n + i : i ? i - 1 : r->n;
		uint8_t *x = r->pixels + (size_t)i * bytes;
		const uint8_t *y = r->pixels + (size_t)p * bytes;
		float *target = r->target + i * r->classes;
		bool counts = !r->label || r->label[i] >= 0, other = !r->label || r->label[p] >= 0;
		double lambda = !counts ? 0 : !other ? 1 : m->lambda;
		if (!counts && !other)
			memset(x, 0, bytes);
		else if (lambda == 0)
			memcpy(x, y, bytes);
		else if (lambda < 1 && m->cut)
			paste_box(m, r, x, y);
		else if (lambda < 1)
			blend_pixels(x, y, bytes, lambda);
		if (r->label)
			set_shares(target, r->label[i], r->label[p], lambda);
		for (int64_t k = 0; k < r->classes && !r->label; k++)
			target[k] = (float)(lambda * (double)target[k] + (1 - lambda) * (double)r->target[p * r->classes + k]);
	}
}
