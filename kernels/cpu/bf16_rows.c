/* The loops of bf16_rows.h. With AVX2 only, 16 elements are rounded by integer instructions; 16 elements among which is a NaN are rounded
 * by the loop for any processor. With the instructions avx512_bf16, one instruction rounds 32 elements. It rounds as gt_bf16_from_f32 does,
 * NaN too, except that it makes subnormal numbers 0; elements beside a subnormal number are therefore rounded by the loop for any
 * processor. */
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

#pragma GCC push_options
#pragma GCC target("avx2")
/* Rounds 8 numbers to nearest even: the results are the low halves of 8 words. */
static inline __attribute__((always_inline)) __m256i round_words(__m256i x)
{
	__m256i odd = _mm256_and_si256(_mm256_srli_epi32(x, 16), _mm256_set1_epi32(1));
	return _mm256_srli_epi32(_mm256_add_epi32(_mm256_add_epi32(x, _mm256_set1_epi32(0x7fff)), odd), 16);
}

static void narrow_avx2(uint16_t *y, const float *x, int64_t n)
{
	int64_t i = 0;
	for (; i + 16 <= n; i += 16) {
		__m256 low = _mm256_loadu_ps(x + i), high = _mm256_loadu_ps(x + i + 8);
		__m256i words = _mm256_packus_epi32(round_words(_mm256_castps_si256(low)), round_words(_mm256_castps_si256(high)));
		if (__builtin_expect(_mm256_movemask_ps(_mm256_cmp_ps(low, high, _CMP_UNORD_Q)), 0))
			narrow_any(y + i, x + i, 16);
		else
			_mm256_storeu_si256((__m256i *)(y + i), _mm256_permute4x64_epi64(words, 0xd8)); /* packus keeps halves apart */
	}
	narrow_any(y + i, x + i, n - i);
}
#pragma GCC pop_options
#else
#define narrow_bf16 narrow_any
#define narrow_avx2 narrow_any
#endif

void gt_bf16_narrow_row(uint16_t *y, const float *x, int64_t n)
{
	if (GT_CPU_BF16)
		narrow_bf16(y, x, n);
	else if (GT_CPU_AVX2 && !GT_CPU_AVX512)
		narrow_avx2(y, x, n);
	else
		narrow_any(y, x, n);
}
