/* The scratch memory of batchnorm.cu and batchnorm_dx.cu, and the gradient, which batchnorm_dx.cu computes. */
#ifndef GT_KERNELS_CUDA_BATCHNORM_CUH
#define GT_KERNELS_CUDA_BATCHNORM_CUH

#include "cuda/columns.cuh"
#include "moments.h"

/* Indices of tables in the scratch memory with one value for each channel. The partial sums of the blocks come after these tables. */
enum { C_SCALE, C_SHIFT, C_DOT, C_SUM, C_COUNT };

static inline float *partials_of(float *scratch, int64_t c)
{
	return scratch + C_COUNT * ((c + 3) / 4 * 4);
}

/* The arguments of the gradient. x is [rows, c]. gamma NULL means 1, beta NULL 0. more, if not NULL, is added to dy first. mask is the
 * gradient of an activation that follows. g, if not NULL, receives the resulting dy. dx, dgamma and dbeta may be NULL. sums, if not NULL,
 * receives [3, c]: the sums of dy and of dy * (x - mean), and the number of values. given, if not NULL, holds such sums, from which dx is
 * computed with mask 0. */
enum {
	GT_CU_MASK_NONE,
	GT_CU_MASK_BN, /* dy is 0 except where bn(x) > 0 */
	GT_CU_MASK_Y,  /* dy is 0 except where y > 0 */
	GT_CU_MASK_GELU,
	GT_CU_MASK_GELU_TANH /* dy is multiplied by the derivative of a gelu at bn(x) */
};
struct batchnorm_dx_args {
	const void *dy, *more, *x, *y;
	void *dx, *g;
	const float *gamma, *beta, *mean, *rstd;
	float *dgamma, *dbeta;
	int64_t rows, c;
	int mask;
	bool batch, add_gamma, add_beta;
	double *sums;
	const double *given;
	float *scratch;
	uint32_t *counter; /* counters of finished blocks, one for each tile; calls that run at the same time need separate counters */
};
cudaError_t gt_cu_batchnorm_dx_start(int type, const batchnorm_dx_args &a, cudaStream_t s);

#endif
