/* The loops of bf16_rows.h. With the instructions avx512_bf16, one instruction rounds 32 elements. It rounds as gt_bf16_from_f32 does, NaN
 * too, except that it makes subnormal numbers 0; elements beside a subnormal number are therefore rounded by the loop for any processor. */
#include "cpu/bf16_rows.h"
#include "clones.h"
#include "ew.h"

GT_CLONES void gt_bf16_widen_row(float *restrict y, const uint16_t *restrict x, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		y[i] = gt_bf16_to_f32(x[i]);
}

GT_CLONES static void narrow_any(uint16_t *restrict y, const float *restrict x, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		y[i] = gt_bf16_from_f32(x[i]);
}

#if defined(__x86_64__)
#include <immintrin.h>
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,prefer-vector-width=512")
#define SUBNORMAL 0x20 /* a class of numbers for vfpclassps */

static void narrow_bf16(uint16_t *y, const float *x, int64_t n)
{
	int64_t i = 0;
	for (; i + 32 <= n; i += 32) {
		__m512 low = _mm512_loadu_ps(x + i), high = _mm512_loadu_ps(x + i + 16);
		if (__builtin_expect(_mm512_fpclass_ps_mask(low, SUBNORMAL) | _mm512_fpclass_ps_mask(high, SUBNORMAL), 0))
			narrow_any(y + i, x + i, 32);
		else
			_mm512_storeu_si512(y + i, (__m512i)_mm512_cvtne2ps_pbh(high, low));
	}
	narrow_any(y + i, x + i, n - i);
}
#pragma GCC pop_options
#else
#define narrow_bf16 narrow_any
#endif

void gt_bf16_narrow_row(uint16_t *y, const float *x, int64_t n)
{
	if (GT_CPU_BF16)
		narrow_bf16(y, x, n);
	else
		narrow_any(y, x, n);
}
