/* kernels/ew.h: the f32 polynomials against the C library in double over the whole range, bf16 and f16 exhaustively. Optimizer steps:
 * test_cpu_update.c. */
/* tests/run: beside others */
#include "cpu/loops.h"
#include "ew.h"
#include "test.h"
#include <stdlib.h>

typedef void span_fn(float *out, const float *in, int n);
#define SPAN(name, expr)                                                                                                                   \
	GT_CLONES __attribute__((optimize("O3", "no-trapping-math"))) static void name(float *out, const float *in, int n)                     \
	{                                                                                                                                      \
		for (int i = 0; i < n; i++) {                                                                                                      \
			float x = in[i];                                                                                                               \
			out[i] = expr;                                                                                                                 \
		}                                                                                                                                  \
	}
SPAN(span_exp, gt_exp_f32(x))
SPAN(span_expm1, gt_expm1_f32(x > 0 ? -x : x))
SPAN(span_tanh, gt_tanh_f32(x))
SPAN(span_erf, gt_erf_f32(x))
SPAN(span_log, gt_log_f32(x))
SPAN(span_gelu, gt_gelu_f32(x))
SPAN(span_log1p, gt_log1p_f32(fabsf(x) > 1 ? 1 / fabsf(x) : fabsf(x)))

/* |got - want| in units of the last place of want, rounded to f32; subnormals have the least one's. */
static double ulps(float got, double want)
{
	float w = (float)want;
	if (isnan(want))
		return isnan(got) ? 0 : INFINITY;
	if (isinf(w) || isinf(got))
		return got == w ? 0 : INFINITY;
	int e = 0;
	frexp(w, &e);
	if (w == 0 || e < -125)
		e = -125;
	return fabs(got - want) / ldexp(1, e - 24);
}

static void sweep(const char *name, span_fn *fn, double (*ref)(double), double limit)
{
	enum { N = 4096 };
	static float in[N], out[N];
	static const float special[] = {0.0f,        -0.0f,           INFINITY,         -INFINITY, NAN,        0x1p-149f, -0x1p-149f,
	                                0x1p-126f,   0x1.fffffep127f, -0x1.fffffep127f, 88.72283f, 88.722839f, 88.72284f, -87.33655f,
	                                -103.97208f, -103.972084f,    -104.0f,          0.6f,      0.92f,      3.9192f,   4.0f,
	                                9.02f};
	double worst = 0;
	float at = 0;
	/* A stride of 61 meets every exponent and, over the exponents, every pattern of low bits: 70 million of the 2^32 values. */
	for (uint64_t u = 0; u < (1ull << 32); u += 61ull * N) {
		for (int i = 0; i < N; i++) {
			uint64_t v = u + 61ull * (uint64_t)i;
			in[i] = gt_f32_from_bits(v < (1ull << 32) ? (uint32_t)v : 0);
		}
		if (u == 0)
			memcpy(in, special, sizeof special);
		fn(out, in, N);
		for (int i = 0; i < N; i++) {
			double e = ulps(out[i], ref(in[i]));
			if (!(e <= worst)) {
				worst = e;
				at = in[i];
			}
		}
	}
	CHECK_MSG(worst <= limit, "%s: %.3f ulp at %a, limit %.1f", name, worst, at, limit);
	printf("# %s f32: worst %.3f ulp at %a\n", name, worst, at);
}

TEST(exp_f32_within_2_ulp)
{
	sweep("exp", span_exp, exp, 2);
}
static double expm1_of_minus(double x)
{
	return expm1(x > 0 ? -x : x);
}
TEST(expm1_f32_within_2_ulp)
{
	sweep("expm1", span_expm1, expm1_of_minus, 2);
}
TEST(tanh_f32_within_2_ulp)
{
	sweep("tanh", span_tanh, tanh, 2);
}
TEST(erf_f32_within_2_ulp)
{
	sweep("erf", span_erf, erf, 2);
}
TEST(log_f32_within_2_ulp)
{
	sweep("log", span_log, log, 2);
}
static double log1p_of_share(double x)
{
	float f = (float)x;
	return log1p((double)(fabsf(f) > 1 ? 1 / fabsf(f) : fabsf(f)));
}
TEST(log1p_f32_within_2_ulp)
{
	sweep("log1p", span_log1p, log1p_of_share, 2);
}

TEST(odd_functions_keep_the_sign_of_zero)
{
	CHECK(signbit(gt_tanh_f32(-0.0f)) && !signbit(gt_tanh_f32(0.0f)));
	CHECK(signbit(gt_erf_f32(-0.0f)) && !signbit(gt_erf_f32(0.0f)));
	CHECK(gt_tanh_f32(-INFINITY) == -1 && gt_erf_f32(-INFINITY) == -1);
}

/* Whatever the instruction set, the bits are the same: a scalar call against the clone that runs here. */
static float scalar_exp(float x)
{
	return gt_exp_f32(x);
}
static float scalar_tanh(float x)
{
	return gt_tanh_f32(x);
}
static float scalar_erf(float x)
{
	return gt_erf_f32(x);
}
static float scalar_log(float x)
{
	return gt_log_f32(x);
}
static float scalar_gelu(float x)
{
	return gt_gelu_f32(x);
}
TEST(clones_agree_with_the_baseline)
{
	enum { N = 4096 };
	static float in[N], out[N];
	static const struct {
		span_fn *span;
		float (*scalar)(float x);
	} fns[] = {{span_exp, scalar_exp}, {span_tanh, scalar_tanh}, {span_erf, scalar_erf}, {span_log, scalar_log}, {span_gelu, scalar_gelu}};
	for (int i = 0; i < N; i++)
		in[i] = ((float)i - N / 2) * 0.0213f;
	for (size_t f = 0; f < sizeof fns / sizeof *fns; f++) {
		fns[f].span(out, in, N);
		for (int i = 0; i < N; i++) {
			float one = fns[f].scalar(in[i]);
			CHECK_MSG(gt_f32_bits(one) == gt_f32_bits(out[i]) || (isnan(one) && isnan(out[i])), "function %zu at %a: %a, vectorised %a", f,
			          in[i], one, out[i]);
		}
	}
}

/* The error of the normal distribution is a few units of the last place of 1 (cdf) and of the tail itself (below 0). */
TEST(normal_cdf_and_gelu)
{
	double worst = 0, tail = 0;
	for (int i = -1300000; i <= 1300000; i++) {
		float x = (float)i * 1e-5f, e;
		double got = gt_normal_cdf_f32(x, &e), want = 0.5 * erfc((double)x * -0.70710678118654752440);
		worst = fmax(worst, fabs(got - want));
		if (x < 0 && x > -6)
			tail = fmax(tail, fabs(got / want - 1));
	}
	CHECK_MSG(worst < 2.5e-7 && tail < 2e-6, "worst error %.3g, of the tail %.3g", worst, tail);
	printf("# normal_cdf f32: worst error %.3g, of the tail above -6: %.3g of it\n", worst, tail);
	CHECK(gt_gelu_f32(0.0f) == 0 && gt_gelu_f32(100.0f) == 100 && gt_gelu_f32(-100.0f) == 0 && gt_gelu_dx_f32(1, 100.0f) == 1);
	CHECK(isnan(gt_gelu_f32(NAN)) && gt_gelu_f32(INFINITY) == INFINITY);
}

/* The divisor of the sigmoid has the bits of its formula: every 997th f32, among them infinities, NaN and both ends of the exponential. */
TEST(one_plus_exp_minus_has_the_bits_of_the_sum)
{
	int64_t wrong = 0;
	for (uint64_t u = 0; u < 0x100000000; u += 997) {
		float x = gt_f32_from_bits((uint32_t)u), got = gt_one_plus_exp_minus_f32(x), want = 1.0f + gt_exp_f32(-x);
		wrong += isnan(want) ? !isnan(got) : gt_f32_bits(got) != gt_f32_bits(want);
	}
	CHECK_MSG(wrong == 0, "%lld differ", (long long)wrong);
	CHECK(gt_one_plus_exp_minus_f32(INFINITY) == 1 && gt_one_plus_exp_minus_f32(-INFINITY) == INFINITY);
	CHECK(isnan(gt_one_plus_exp_minus_f32(NAN)));
}

/* Every one of the 65,536 intervals between neighbouring bf16 values, with the low halves where the decision can change. */
TEST(bf16_rounds_to_nearest_even)
{
	static const uint32_t low[] = {0, 1, 2, 0x1234, 0x7ffe, 0x7fff, 0x8000, 0x8001, 0x8002, 0xabcd, 0xfffe, 0xffff};
	int64_t wrong = 0;
	for (uint32_t high = 0; high < 0x10000; high++)
		for (size_t i = 0; i < sizeof low / sizeof low[0]; i++) {
			uint32_t u = high << 16 | low[i];
			float x = gt_f32_from_bits(u);
			uint16_t got = gt_bf16_from_f32(x);
			if (isnan(x)) {
				float y = gt_bf16_to_f32(got);
				wrong += !(isnan(y) && signbit(y) == signbit(x) && (got & 0x40) && (got & 0x3f) == (high & 0x3f));
				continue;
			}
			/* The neighbours as real numbers; above the greatest finite one comes 2^128, which is infinity's place. */
			double lo = gt_bf16_to_f32((uint16_t)high),
			       hi = (high & 0x7fff) == 0x7f7f ? copysign(0x1p128, x) : gt_bf16_to_f32((uint16_t)(high + 1));
			double a = fabs((double)x - lo), b = fabs(hi - (double)x);
			uint16_t want = low[i] == 0 || a < b || (a == b && !(high & 1)) ? (uint16_t)high : (uint16_t)(high + 1);
			wrong += got != want;
		}
	CHECK_MSG(wrong == 0, "%lld of %d", (long long)wrong, 65536 * 12);
	for (uint32_t h = 0; h < 0x10000; h++) { /* there and back */
		float x = gt_bf16_to_f32((uint16_t)h);
		CHECK(isnan(x) || gt_bf16_from_f32(x) == h);
	}
}

/* f16 against the compiler's own type: every value to f32; back, the neighbours of every value and of every half-way point. */
TEST(f16_conversions)
{
	int64_t wrong = 0;
	for (uint32_t h = 0; h < 0x10000; h++) {
		_Float16 ours;
		uint16_t bits = (uint16_t)h;
		memcpy(&ours, &bits, 2);
		float x = gt_f16_to_f32(bits), want = (float)ours;
		wrong += isnan(want) ? !isnan(x) : gt_f32_bits(x) != gt_f32_bits(want);
		wrong += isnan(x) ? (gt_f16_from_f32(x) & 0x7fff) <= 0x7c00 : gt_f16_from_f32(x) != h;
		float up = gt_f16_to_f32((uint16_t)(h + 1)), half = x + (up - x) / 2; /* exact: f32 has the room */
		if (!isfinite(x))
			continue;
		if (!isfinite(up))
			half = copysignf(65520, x);
		const uint32_t at[2] = {gt_f32_bits(x), gt_f32_bits(half)};
		for (int i = 0; i < 2; i++)
			for (int32_t d = -1; d <= 1; d++) {
				float y = gt_f32_from_bits((at[i] & 0x7fffffffu ? at[i] + (uint32_t)d : at[i]));
				_Float16 r = (_Float16)y;
				uint16_t expect;
				memcpy(&expect, &r, 2);
				wrong += gt_f16_from_f32(y) != expect;
			}
	}
	CHECK_MSG(wrong == 0, "%lld of %d", (long long)wrong, 65536 * 8);
	CHECK(gt_f16_from_f32(INFINITY) == 0x7c00 && gt_f16_from_f32(-1e30f) == 0xfc00 && gt_f16_from_f32(-0x1p-30f) == 0x8000);
	CHECK((gt_f16_from_f32(-NAN) & 0x7fff) == 0x7e00);
}

TEST(clip_factor)
{
	CHECK(gt_clip_factor(0, 1e9) == 1 && gt_clip_factor(5, 4) == 1);
	CHECK(gt_clip_factor(1, 4) == 1 / (2 + 1e-6));
	CHECK(isnan(gt_clip_factor(1, NAN)) && gt_clip_factor(1, INFINITY) == 0 && gt_clip_factor(0, NAN) == 1);
}

TEST(dropout_threshold)
{
	CHECK(gt_dropout_threshold(0) == 0 && gt_dropout_keep(0, 0));
	CHECK(gt_dropout_threshold(1) == 1u << 24 && !gt_dropout_keep(UINT32_MAX, 1u << 24));
	CHECK(gt_dropout_scale(0.5) == 2 && gt_dropout_scale(1) == 0);
	/* the same decision as uniform >= p */
	for (uint32_t w = 0; w < 0xff000000; w += 0x10001)
		CHECK(gt_dropout_keep(w, gt_dropout_threshold(0.25)) == (gt_rng_uniform(w) >= 0.25f));
}
RUN_TESTS()
