#include "cpu/conv_depthwise.h"
#include "clones.h"
#include "opcall.h"
#include <string.h>

#define PIXELS 8 /* maximum number of pixels that are computed together */

#if defined(__x86_64__)
#include <immintrin.h>

#pragma GCC push_options
#pragma GCC target("avx512f")
#include "cpu/vector_avx512.inc"
#include "cpu/conv_depthwise.inc"
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx2,fma")
#include "cpu/vector_avx2.inc"
#include "cpu/conv_depthwise.inc"
#pragma GCC pop_options

static gt_depthwise_row *const (*choose_rows(void))[2]
{
	return GT_CPU_AVX512 ? rows_avx512 : GT_CPU_AVX2 ? rows_avx2 : NULL;
}
#elif defined(__aarch64__)
#include <arm_neon.h>

#include "cpu/vector_neon.inc"
#include "cpu/conv_depthwise.inc"

static gt_depthwise_row *const (*choose_rows(void))[2]
{
	return rows_neon;
}
#else
static gt_depthwise_row *const (*choose_rows(void))[2]
{
	return NULL;
}
#endif

gt_depthwise_row *gt_cpu_depthwise(int64_t columns, int64_t stride)
{
	gt_depthwise_row *const (*rows)[2] = choose_rows();
	if (!rows || (columns != 3 && columns != 5 && columns != 7) || (stride != 1 && stride != 2))
		return NULL;
	return rows[(columns - 3) / 2][stride - 1];
}
