/* Products of matrices of bf16 with sums in f32, for processors with the instructions of avx512_bf16. The matrices are in the memory of
 * f32, with values that are rounded to bf16: the operands before, the results by the product.
 *
 *     struct gt_gemm_bf16 g = {.ta = 'N', .tb = 'T', .m = m, .n = m, .k = k, .alpha = 1, .a = x, .b = x, .c = gram, .symmetric = true};
 *     gt_gemm_bf16_run(dev, &g, workspace);
 *
 * A sum goes over k in order, in f32, so that results do not depend on the number of threads. */
#ifndef GT_CPU_GEMM_BF16_H
#define GT_CPU_GEMM_BF16_H

#include "cpu/loops.h"

/* c[m, n] = alpha op(a)[m, k] op(b)[k, n] + beta c, all contiguous. op transposes if ta or tb is 'T'. */
struct gt_gemm_bf16 {
	char ta, tb;
	int64_t m, n, k;
	float alpha, beta;
	const float *a, *b;
	float *c;
	bool symmetric; /* the result is symmetric: half of it is computed, and mirrored */
};

bool gt_gemm_bf16_supported(void); /* whether this processor has the instructions */
size_t gt_gemm_bf16_scratch(int64_t m, int64_t n, int64_t k); /* bytes of the workspace, which is aligned to 64 bytes */
void gt_gemm_bf16_run(const struct gt_dev *dev, const struct gt_gemm_bf16 *g, void *scratch);

#endif
