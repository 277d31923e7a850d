/* The inner loop of the stand-ins for cuBLASLt and cuDNN: sums in double, of products of floats. A caller lets the loop run over outputs,
 * and not over the terms of one sum, so that it vectorises and the order of the terms stays. */
#ifndef CUDASIM_ADD_SCALED_H
#define CUDASIM_ADD_SCALED_H

#include "clones.h"
#include <cstdint>

/* sum[i] += x * v[i] for i in 0 ... n - 1. Callers have the attribute GT_CLONES; this loop is compiled for the same instruction sets. */
__attribute__((always_inline)) static inline void add_scaled(double *__restrict sum, float x, const float *__restrict v, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		sum[i] += (double)x * v[i];
}

#endif
