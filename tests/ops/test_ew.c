/* kernels/ew.h: the f32 polynomials against the C library in double over the whole range, bf16 exhaustively, optimizer steps against
 * PyTorch's bits. */
#include "cpu/loops.h"
#include "ew.h"
#include "test.h"
#include <stdlib.h>

typedef void span_fn(float *out, const float *in, int n);
#define SPAN(name, expr)                                                                                        \
	GT_CLONES __attribute__((optimize("O3", "no-trapping-math"))) static void name(float *out, const float *in, int n) \
	{                                                                                                           \
		for (int i = 0; i < n; i++) {                                                                           \
			float x = in[i];                                                                                    \
			out[i] = expr;                                                                                      \
		}                                                                                                       \
	}
SPAN(span_exp, gt_exp_f32(x))
SPAN(span_tanh, gt_tanh_f32(x))
SPAN(span_erf, gt_erf_f32(x))

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
	static const float special[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 0x1p-149f, -0x1p-149f, 0x1p-126f, 0x1.fffffep127f,
		-0x1.fffffep127f, 88.72283f, 88.722839f, 88.72284f, -87.33655f, -103.97208f, -103.972084f, -104.0f, 0.6f, 0.92f, 3.9192f, 4.0f, 9.02f};
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

TEST(exp_f32_within_2_ulp) { sweep("exp", span_exp, exp, 2); }
TEST(tanh_f32_within_2_ulp) { sweep("tanh", span_tanh, tanh, 2); }
TEST(erf_f32_within_2_ulp) { sweep("erf", span_erf, erf, 2); }

TEST(odd_functions_keep_the_sign_of_zero)
{
	CHECK(signbit(gt_tanh_f32(-0.0f)) && !signbit(gt_tanh_f32(0.0f)));
	CHECK(signbit(gt_erf_f32(-0.0f)) && !signbit(gt_erf_f32(0.0f)));
	CHECK(gt_tanh_f32(-INFINITY) == -1 && gt_erf_f32(-INFINITY) == -1);
}

/* Whatever the instruction set, the bits are the same: a scalar call against the clone that runs here. */
TEST(clones_agree_with_the_baseline)
{
	enum { N = 4096 };
	static float in[N], out[N];
	span_fn *fns[] = {span_exp, span_tanh, span_erf};
	for (int i = 0; i < N; i++)
		in[i] = ((float)i - N / 2) * 0.0213f;
	for (int f = 0; f < 3; f++) {
		fns[f](out, in, N);
		for (int i = 0; i < N; i++) {
			float one = f == 0 ? gt_exp_f32(in[i]) : f == 1 ? gt_tanh_f32(in[i]) : gt_erf_f32(in[i]);
			CHECK_MSG(gt_f32_bits(one) == gt_f32_bits(out[i]), "function %d at %a: %a, vectorised %a", f, in[i], one, out[i]);
		}
	}
}
RUN_TESTS()
