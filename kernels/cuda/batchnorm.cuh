/* The scratch memory of batchnorm.cu and batchnorm_dx.cu. */
#ifndef GT_KERNELS_CUDA_BATCHNORM_CUH
#define GT_KERNELS_CUDA_BATCHNORM_CUH

#include "cuda/columns.cuh"
#include "moments.h"

/* Indices of tables in the scratch memory with one number for each channel. The partial results follow the tables. */
enum { C_SCALE, C_SHIFT, C_DOT, C_SUM, C_COUNT };

static inline float *partials(float *scratch, int64_t c)
{
	return scratch + C_COUNT * ((c + 3) / 4 * 4);
}

#endif
