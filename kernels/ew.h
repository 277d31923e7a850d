/* Scalar mathematics: activations, losses, optimizer steps, 16-bit conversions and dropout decisions. Each function is written once and
 * compiled by gcc, which vectorises loops over it, and by nvcc.
 *
 *     for (int64_t i = 0; i < n; i++)
 *         y[i] = gt_gelu_f32(x[i]);
 *
 * Each function exists as gt_<name>_f32 and gt_<name>_f64; ew.inc holds the bodies, and optim.inc those of the optimizers. 16-bit tensors
 * are computed in f32 and rounded once, when they are stored.
 *
 * Rounding. The formulas and their order of operations are PyTorch's (ATen/native/cpu, torch/optim). -ffp-contract=off prevents the
 * compiler from fusing multiplications and additions. Where PyTorch's kernels fuse a multiply-add, the body calls F(gt_fma) explicitly. A
 * result therefore does not depend on the instruction set of the function clone that runs.
 *
 * exp, tanh, erf, log and log1p in f32 are polynomials, because a call of the C library would prevent vectorisation. The coefficients of
 * log and log1p come from their series; all other coefficients are minimax fits by Lawson's iteration in 40-digit arithmetic, where each
 * coefficient is rounded to f32 before the next coefficients are fitted. Ranges, the splitting of ln 2 and the handling of subnormals
 * follow Muller, "Elementary Functions", 3rd ed., chapters 3 and 11. The error is at most 2 ulp, also for NaN, infinities and subnormal
 * results; tests/ops/test_ew.c has the measured errors. f64 calls the C library and serves as the reference in tests. */
#ifndef GT_KERNELS_EW_H
#define GT_KERNELS_EW_H

#include "base/philox.h"
#include "opcall.h"
#include <math.h>
#include <string.h>

#ifdef __CUDACC__
#define GT_EW GT_HD
#else
#define GT_EW GT_HD __attribute__((always_inline)) /* inlined, so that each caller compiles the function for its own instruction set */
#endif

#define GT_UNUSED __attribute__((unused))

/* ---- bits ----------------------------------------------------------------------------------------------------------------- */
GT_EW uint32_t gt_f32_bits(float x)
{
	uint32_t u;
	memcpy(&u, &x, sizeof u);
	return u;
}

GT_EW float gt_f32_from_bits(uint32_t u)
{
	float x;
	memcpy(&x, &u, sizeof x);
	return x;
}

GT_EW float gt_bf16_to_f32(uint16_t h)
{
	return gt_f32_from_bits((uint32_t)h << 16);
}

/* Rounds to nearest, ties to even. A NaN stays a NaN: the quiet bit is set, because the discarded low bits may be its only set bits. */
GT_EW uint16_t gt_bf16_from_f32(float x)
{
	uint32_t u = gt_f32_bits(x);
	uint32_t nan = u | 0x400000u, num = u + 0x7fffu + ((u >> 16) & 1u);
	return (uint16_t)((x != x ? nan : num) >> 16);
}

GT_EW float gt_f16_to_f32(uint16_t h)
{
	/* The shift by 13 aligns the significands and leaves the exponent with bias 15; the product changes it to bias 127 and makes subnormals
	 * normal, exactly. Infinity and NaN have the largest exponent in both formats. */
	float num = gt_f32_from_bits((uint32_t)(h & 0x7fffu) << 13) * 0x1p112f;
	uint32_t u = (h & 0x7c00u) == 0x7c00u ? (uint32_t)(h & 0x7fffu) << 13 | 0x7f800000u : gt_f32_bits(num);
	return gt_f32_from_bits(u | (uint32_t)(h & 0x8000u) << 16);
}

/* Rounds to nearest, ties to even; values of 65520 and above become infinity. A NaN becomes the quiet NaN of the same sign. */
GT_EW uint16_t gt_f16_from_f32(float x)
{
	uint32_t u = gt_f32_bits(x), a = u & 0x7fffffffu, sign = u >> 16 & 0x8000u;
	uint32_t num = (a - 0x38000000u + 0xfffu + (a >> 13 & 1u)) >> 13;
	/* Below 2^-14: in the sum with 1/2, the last bit is 2^-24, the smallest subnormal of f16, so the addition rounds to f16's precision. */
	uint32_t tiny = gt_f32_bits(gt_f32_from_bits(a) + 0.5f) - 0x3f000000u;
	uint32_t h = a < 0x38800000u ? tiny : a < 0x477ff000u ? num : a <= 0x7f800000u ? 0x7c00u : 0x7e00u;
	return (uint16_t)(sign | h);
}

/* Returns 0 if `zero` holds, otherwise v. For AVX-512, gcc compiles `zero ? 0 : dy` in a loop of f32 to a load of dy under a mask, and such
 * loads from memory reach only two thirds of its bandwidth (AMD Zen 5). It loads without a mask if bits are cleared by two masks, or by
 * one after gt_scale_if. */
GT_EW float gt_zero_if_f32(float v, bool zero)
{
#ifdef __CUDA_ARCH__
	return zero ? 0.0f : v;
#else
	return gt_f32_from_bits(gt_f32_bits(v) & (zero ? 0u : ~0u));
#endif
}

GT_EW double gt_zero_if_f64(double v, bool zero)
{
	return zero ? 0.0 : v;
}

/* Returns v * factor if `scaled` holds, otherwise v. With a selected factor, gcc does not load v under a mask; a GPU needs a register less
 * without the factor 1. */
GT_EW float gt_scale_if_f32(float v, float factor, bool scaled)
{
#ifdef __CUDA_ARCH__
	return scaled ? v * factor : v;
#else
	return v * (scaled ? factor : 1);
#endif
}

GT_EW double gt_scale_if_f64(double v, double factor, bool scaled)
{
	return scaled ? v * factor : v;
}

/* ---- exp, tanh, erf, log -------------------------------------------------------------------------------------------------------- */
GT_EW float gt_fma_f32(float a, float b, float c)
{
	return fmaf(a, b, c);
}

GT_EW double gt_fma_f64(double a, double b, double c)
{
	return fma(a, b, c);
}

GT_EW float gt_sqrt_f32(float x)
{
	return sqrtf(x);
}

GT_EW double gt_sqrt_f64(double x)
{
	return sqrt(x);
}

/* Sets *n so that x = *n ln 2 + r with |r| <= ln 2 / 2, and returns exp(r) - 1. */
GT_EW float gt_exp_reduced_f32(float x, int32_t *n)
{
	const float shift = 0x1.8p23f; /* the sum with 1.5 * 2^23 leaves n in the low bits */
	float s = fmaf(x, 0x1.715476p+0f, shift), m = s - shift;
	float r = fmaf(m, -0x1.62e400p-1f, x);
	r = fmaf(m, -0x1.7f7d1cp-20f, r);
	float q = 0x1.6a4f72p-10f;
	q = fmaf(q, r, 0x1.123980p-7f);
	q = fmaf(q, r, 0x1.5558aep-5f);
	q = fmaf(q, r, 0x1.555492p-3f);
	q = fmaf(q, r, 0x1.fffffcp-2f);
	*n = (int32_t)(gt_f32_bits(s) - gt_f32_bits(shift));
	return fmaf(q, r * r, r);
}

GT_EW float gt_exp_f32(float x)
{
#ifdef __CUDA_ARCH__
	return expf(x);
#else
	/* x is clamped to a range outside of which exp(x) is 0 or infinity in f32. */
	int32_t k, half;
	float c = x < -104.0f ? -104.0f : x;
	c = c > 89.0f ? 89.0f : c;
	float p = gt_exp_reduced_f32(c, &k) + 1.0f;
	/* 2^n as two factors: a single factor would overflow at n = 128, and only the last product may round a subnormal result. */
	half = k >> 1;
	float s1 = gt_f32_from_bits((uint32_t)(half + 127) << 23), s2 = gt_f32_from_bits((uint32_t)(k - half + 127) << 23);
	return p * s1 * s2;
#endif
}

/* Returns 1 + exp(-x), the reciprocal of the sigmoid function. x is clamped where the sum rounds to 1 and where it is infinity, so that 2^n
 * needs one factor only, twice 2^(n - 1), which is finite for n = 128 too. */
GT_EW float gt_one_plus_exp_minus_f32(float x)
{
#ifdef __CUDA_ARCH__
	return 1.0f + expf(-x);
#else
	int32_t k;
	float c = x > 86.0f ? 86.0f : x;
	c = c < -89.0f ? -89.0f : c;
	float p = gt_exp_reduced_f32(-c, &k) + 1.0f;
	return fmaf(p * gt_f32_from_bits((uint32_t)(k + 126) << 23), 2.0f, 1.0f);
#endif
}

/* exp(x) for -86 <= x <= 0, with the same bits as gt_exp_f32: the result is normal, so that one factor 2^n is enough. */
GT_EW float gt_exp_near_f32(float x)
{
	int32_t k;
	float p = gt_exp_reduced_f32(x, &k) + 1.0f;
	return p * gt_f32_from_bits((uint32_t)(k + 127) << 23);
}

/* Returns exp(x) for x <= 0; results below exp(-86) become 0. */
GT_EW float gt_exp_minus_f32(float x)
{
#ifdef __CUDA_ARCH__
	return expf(x);
#else
	return x < -86.0f ? 0.0f : gt_exp_near_f32(x < -86.0f ? -86.0f : x);
#endif
}

/* exp(x) - 1 for x <= 0; for x > 0 the result has no meaning. */
GT_EW float gt_expm1_f32(float x)
{
#ifdef __CUDA_ARCH__
	return expm1f(x);
#else
	int32_t k;
	float m = gt_exp_reduced_f32(x < -30.0f ? -30.0f : x, &k); /* below -18 the result rounds to -1 */
	float s = gt_f32_from_bits((uint32_t)(k + 127) << 23);
	return fmaf(m, s, s - 1.0f);
#endif
}

GT_EW float gt_tanh_f32(float x)
{
#ifdef __CUDA_ARCH__
	return tanhf(x);
#else
	float a = fabsf(x), z = x * x;
	float q = -0x1.828776p-8f;
	q = fmaf(q, z, 0x1.54c3c2p-6f);
	q = fmaf(q, z, -0x1.b89abap-5f);
	q = fmaf(q, z, 0x1.1109bep-3f);
	q = fmaf(q, z, -0x1.55553ep-2f);
	float small = fmaf(q * z, x, x);
	float large = 1.0f - 2.0f / gt_one_plus_exp_minus_f32(-2.0f * a);
	return copysignf(a < 0.6f ? small : large, x);
#endif
}

GT_EW float gt_erf_f32(float x)
{
#ifdef __CUDA_ARCH__
	return erff(x);
#else
	float a = fabsf(x), z = x * x;
	float q = -0x1.3ac634p-11f;
	q = fmaf(q, z, 0x1.47689cp-8f);
	q = fmaf(q, z, -0x1.b69392p-6f);
	q = fmaf(q, z, 0x1.ce1b0ep-4f);
	q = fmaf(q, z, -0x1.8126eap-2f);
	q = fmaf(q, z, 0x1.06eba6p-3f);
	float small = fmaf(q, x, x);
	/* 1 - exp(-g(a)) with g = -log(erfc(a)) on [0.91, 4]. In f32, erf is 1 from 3.92 on. */
	float b = a > 4.0f ? 4.0f : a;
	float g = -0x1.9d4c94p-13f;
	g = fmaf(g, b, 0x1.9058580p-9f);
	g = fmaf(g, b, -0x1.6ce516p-6f);
	g = fmaf(g, b, 0x1.aa14ccp-4f);
	g = fmaf(g, b, 0x1.462f06p-1f);
	g = fmaf(g, b, 0x1.20b36ap+0f);
	g = fmaf(g, b, 0x1.7afddep-13f);
	float large = 1.0f - gt_exp_near_f32(-g);
	return copysignf(a < 0.92f ? small : large, x);
#endif
}

/* Returns the cumulative normal distribution of x, and sets *e = exp(-x * x / 2). The part beyond |x| is e times a polynomial in
 * t = 1 / (1 + 0.3 |x|), whose error is below 1.3e-7 of it. Unlike (1 + erf(x / sqrt(2))) / 2, it needs one exponential only, and keeps
 * its digits where x is far below 0. */
GT_EW float gt_normal_cdf_f32(float x, float *e)
{
#ifdef __CUDA_ARCH__
	*e = expf(x * x * -0.5f);
	return 0.5f * (1.0f + erff(x * 0.70710678118654752440f));
#else
	float t = 1.0f / fmaf(fabsf(x), 0x1.333334p-2f, 1.0f);
	*e = gt_exp_minus_f32(x * x * -0.5f);
	float q = 0x1.27327cp-5f;
	q = fmaf(q, t, -0x1.450828p-3f);
	q = fmaf(q, t, 0x1.abef3ap-3f);
	q = fmaf(q, t, -0x1.cb70b0p-5f);
	q = fmaf(q, t, 0x1.09e7e2p-3f);
	q = fmaf(q, t, 0x1.97a7b0p-4f);
	q = fmaf(q, t, 0x1.eedd56p-4f);
	q = fmaf(q, t, 0x1.e9fc1cp-4f);
	float beyond = *e * (q * t);
	return x > 0 ? 1.0f - beyond : beyond;
#endif
}

/* With x = m 2^k and m in [sqrt(1/2), sqrt(2)), log x = k ln 2 + 2 artanh(s), s = (m - 1) / (m + 1); the terms after s^9 are below 3e-9 of
 * the sum. */
GT_EW float gt_log_f32(float x)
{
#ifdef __CUDA_ARCH__
	return logf(x);
#else
	const uint32_t root = 0x3f3504f3; /* the bits of sqrt(1/2) */
	bool tiny = x < 0x1p-126f;
	uint32_t u = gt_f32_bits(tiny ? x * 0x1p23f : x) - root;
	float k = (float)(((int32_t)u >> 23) - (tiny ? 23 : 0)), f = gt_f32_from_bits((u & 0x7fffffu) + root) - 1.0f;
	float s = f / (2.0f + f), z = s * s;
	float q = 1.0f / 9;
	q = fmaf(q, z, 1.0f / 7);
	q = fmaf(q, z, 1.0f / 5);
	q = fmaf(q, z, 1.0f / 3);
	float y = fmaf(k, 0x1.62e400p-1f, fmaf(k, 0x1.7f7d1cp-20f, 2.0f * fmaf(q * z, s, s)));
	y = x < INFINITY ? y : x;
	return x > 0 ? y : x == 0 ? -INFINITY : NAN;
#endif
}

/* log(1 + x) for 0 <= x <= 1; for other x the result has no meaning. It is 2 artanh(s) with s = x / (2 + x); the terms after s^15 are below
 * 1e-9 of the sum. */
GT_EW float gt_log1p_f32(float x)
{
#ifdef __CUDA_ARCH__
	return log1pf(x);
#else
	float s = x / (2.0f + x), z = s * s;
	float q = 1.0f / 15;
	q = fmaf(q, z, 1.0f / 13);
	q = fmaf(q, z, 1.0f / 11);
	q = fmaf(q, z, 1.0f / 9);
	q = fmaf(q, z, 1.0f / 7);
	q = fmaf(q, z, 1.0f / 5);
	q = fmaf(q, z, 1.0f / 3);
	return 2.0f * fmaf(q * z, s, s);
#endif
}

/* The sinusoidal encoding of position t, feature j of c (Vaswani et al., "Attention is all you need", 2017): the sine, for odd j the
 * cosine, of t / 10000^((j - j % 2) / c). The angle is reduced to half a turn, on which the series has an error below 1e-14. */
GT_EW double gt_sinusoid(int64_t t, int64_t j, int64_t c)
{
	double turns = (double)t * exp((double)(j - j % 2) * (-9.210340371976184 / (double)c)) * 0.15915494309189535 + (j % 2 ? 0.25 : 0);
	double a = (turns - floor(turns + 0.5)) * 6.283185307179586, sum = 0, term = a;
	for (int k = 1; k < 30; k += 2) {
		sum += term;
		term *= -a * a / (double)((k + 1) * (k + 2));
	}
	return sum;
}

GT_EW double gt_exp_f64(double x)
{
	return exp(x);
}

GT_EW double gt_one_plus_exp_minus_f64(double x)
{
	return 1 + exp(-x);
}

GT_EW double gt_exp_minus_f64(double x)
{
	return exp(x);
}

GT_EW double gt_expm1_f64(double x)
{
	return expm1(x);
}

GT_EW double gt_tanh_f64(double x)
{
	return tanh(x);
}

GT_EW double gt_erf_f64(double x)
{
	return erf(x);
}

GT_EW double gt_normal_cdf_f64(double x, double *e)
{
	*e = exp(x * x * -0.5);
	return 0.5 * (1 + erf(x * 0.70710678118654752440));
}

GT_EW double gt_log_f64(double x)
{
	return log(x);
}

GT_EW double gt_log1p_f64(double x)
{
	return log1p(x);
}

/* ---- dropout --------------------------------------------------------------------------------------------------------------
 * The mask is a pure function of (seed, layer, epoch, position of the sample in the epoch, element), so it does not depend on
 * micro-batches, ranks and restarts. `element` is the offset in the memory of one sample (NHWC for rank 4). One random draw serves four
 * elements. If channels or whole samples are dropped, `element` is the index of the channel, or 0. */
GT_EW uint64_t gt_dropout_key(uint64_t seed, uint32_t layer)
{
	return gt_rng_key(seed, GT_RNG_DROPOUT, layer);
}

/* Returns the random words that decide about the elements 4 * quad ... 4 * quad + 3 of a sample. */
GT_EW struct gt_philox gt_dropout_draw(uint64_t key, uint64_t epoch, uint64_t position, uint32_t quad)
{
	return gt_rng_draw(key, (uint32_t)epoch, (uint32_t)position, (uint32_t)(position >> 32), quad);
}

/* Returns the threshold for the probability p of dropping an element: an element is kept if the upper 24 bits of its word are at least the
 * threshold. */
GT_EW uint32_t gt_dropout_threshold(double p)
{
	return (uint32_t)(p * 0x1p24 + 0.5);
}

GT_EW bool gt_dropout_keep(uint32_t word, uint32_t threshold)
{
	return (word >> 8) >= threshold;
}

/* Returns the factor of an element that dropout with probability p keeps. A dropped element is multiplied by 0, so that a NaN stays NaN, as
 * in PyTorch. */
GT_EW double gt_dropout_scale(double p)
{
	return p < 1.0 ? 1.0 / (1.0 - p) : 0.0;
}

/* Returns the factor that clips gradients to the norm clip_norm: min(1, clip_norm / (norm + 1e-6)); 1 without clipping; NaN if the norm is
 * NaN. */
GT_EW double gt_clip_factor(double clip_norm, double sumsq)
{
	double c = clip_norm / (sqrt(sumsq) + 1e-6);
	return !(clip_norm > 0) || c > 1.0 ? 1.0 : c;
}

/* ---- the check before the update ------------------------------------------------------------------------------------------- */
/* Returns the learning rate with the index k, or the momentum with the index k - GT_MAX_LR. */
GT_HD double *gt_rate_at(struct gt_step_args *a, int k)
{
	return k < GT_MAX_LR ? &a->lr[k] : &a->momentum[k - GT_MAX_LR];
}

/* After a skipped step, shifts the step counts, learning rates and momenta of the queued steps by one step, so that each queued step uses
 * the values of the step before it. numbers[0] belongs to the skipped step. */
GT_HD void gt_check_move(struct gt_step_args *numbers)
{
	int64_t left = numbers[0].left;
	for (int k = 0; k < 2 * GT_MAX_LR; k++) { /* one value at a time: takes fewer registers on a GPU */
		double rate = *gt_rate_at(&numbers[0], k), rate_here = rate;
		int64_t here = numbers[0].step;
		for (int64_t i = 1; i <= left; i++) {
			double *at = gt_rate_at(&numbers[i], k);
			if (numbers[i].step != here) { /* numbers[i] is for the first micro-batch of a step */
				rate = rate_here;
				rate_here = *at;
				here = numbers[i].step;
			}
			*at = rate;
		}
	}
	for (int64_t i = 1; i <= left; i++)
		numbers[i].step--;
}

/* Sums the scalars of n ranks in the fixed tree of comm.h into s; overwrites parts. */
GT_HD void gt_scalars_merge(struct gt_scalars *parts, int64_t n, bool sharded, struct gt_scalars *s)
{
	for (int64_t step = 1; step < n; step *= 2)
		for (int64_t i = 0; i + step < n; i += 2 * step) {
			struct gt_scalars *a = &parts[i], *b = &parts[i + step];
			a->metrics.loss += b->metrics.loss;
			a->metrics.weight += b->metrics.weight;
			a->metrics.correct += b->metrics.correct;
			a->metrics.top5 += b->metrics.top5;
			a->metrics.count += b->metrics.count;
			a->sumsq += b->sumsq;
			a->bound += b->bound;
		}
	s->metrics = parts[0].metrics;
	s->bound = parts[0].bound;
	if (sharded)
		s->sumsq = parts[0].sumsq;
}

/* The operation `check` (opcall.h). In PyTorch the scale and its inverse are f32 (aten/src/ATen/native/cuda/AmpKernels.cu,
 * torch/amp/grad_scaler.py); the scale does not grow beyond the range of f32. */
GT_HD void gt_check(const struct gt_attr_check *a, struct gt_scalars *s, struct gt_scaler *c, struct gt_step_args *numbers,
                    struct gt_scalars *parts)
{
	const double f64_max = 1.7976931348623157e308, f32_max = 3.4028234663852886e38;
	if (a->ranks > 1)
		gt_scalars_merge(parts, a->ranks, a->sharded, s);
	bool finite = fabs(s->metrics.loss) <= f64_max && fabs(s->sumsq) <= f64_max && s->bound < f32_max;
	if (!a->scaling) {
		c->halted |= !finite;
		s->inv_scale = 1;
		s->skip = c->halted != 0;
		return;
	}
	s->inv_scale = (double)(float)(1 / c->scale);
	s->skip = !finite || c->halted;
	if (c->halted)
		return;
	c->bad = finite ? 0 : c->bad + 1;
	c->halted = a->patience > 0 && c->bad >= a->patience;
	if (!finite)
		gt_check_move(numbers);
	if (a->dynamic && !finite) {
		c->scale = (double)(float)(c->scale * a->backoff);
		c->good = 0;
	} else if (a->dynamic && ++c->good == a->interval) {
		double grown = (double)(float)(c->scale * a->growth);
		c->scale = grown <= f32_max ? grown : c->scale;
		c->good = 0;
	}
	s->scale = c->scale;
}

/* x^n for n >= 0 by repeated squaring, with at most 2 n roundings: accurate enough, because callers round 1 - beta^t to f32. pow() on a GPU
 * takes microseconds, and every block of an update kernel needs two powers. */
GT_HD double gt_pow_n(double x, int64_t n)
{
	double y = 1;
	for (; n > 0; n >>= 1, x *= x)
		if (n & 1)
			y *= x;
	return y;
}

/* Returns the factor by which Muon normalises an update direction of this norm, or NaN if the norm is NaN. */
GT_EW double gt_muon_scale(double norm, double eps)
{
	return 1 / (norm < eps ? eps : norm);
}

/* Returns the factor by which Muon adjusts the learning rate for a matrix [rows, cols]. adjust is an enum gt_muon_adjust. */
GT_EW double gt_muon_adjust(int adjust, int64_t rows, int64_t cols)
{
	double r = (double)rows, c = (double)cols;
	if (adjust == GT_MUON_NONE)
		return 1;
	if (adjust == GT_MUON_SPECTRAL)
		return sqrt(r / c);
	return adjust == GT_MUON_RMS ? 0.2 * sqrt(r > c ? r : c) : sqrt(r > c ? r / c : 1);
}

#define T float
#define F(name) name##_f32
#include "ew.inc"
#undef T
#undef F
#define T double
#define F(name) name##_f64
#include "ew.inc"
#undef T
#undef F

#endif
