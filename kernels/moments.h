/* Mean and squared deviations of the values of a channel, put together from parts: batch statistics of several ranks (sync_bn) or of
 * several micro-batches (deferred running statistics). Compiled by gcc and by nvcc.
 *
 * A part is f64 [3, C]: means, sums of squared deviations from them, counts of values. A part of no values is all zeros, and joins
 * anything without changing a bit. In f64 whatever the activations are: a single part then gives batchnorm's own statistics bit for bit,
 * means that lie close together do not cancel, and counts are exact. */
#ifndef GT_KERNELS_MOMENTS_H
#define GT_KERNELS_MOMENTS_H

#include "ew.h"

#define GT_MOMENTS_LEVELS 10
#define GT_MOMENTS_PARTS (1 << GT_MOMENTS_LEVELS) /* fewer than this are put together at once */

struct gt_moments {
	double mean, m2, n;
};

/* Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979. */
GT_EW struct gt_moments gt_moments_join(struct gt_moments a, struct gt_moments b)
{
	if (!(b.n > 0))
		return a;
	if (!(a.n > 0))
		return b;
	double n = a.n + b.n, share = b.n / n, d = b.mean - a.mean;
	a.mean += d * share;
	a.m2 += b.m2 + d * d * (a.n * share);
	a.n = n;
	return a;
}

/* Channel i of a part of c channels. */
GT_EW struct gt_moments gt_moments_get(const double *part, int64_t c, int64_t i)
{
	struct gt_moments m;
	m.mean = part[i];
	m.m2 = part[c + i];
	m.n = part[2 * c + i];
	return m;
}

GT_EW void gt_moments_put(double *part, int64_t c, int64_t i, struct gt_moments m)
{
	part[i] = m.mean;
	part[c + i] = m.m2;
	part[2 * c + i] = m.n;
}

/* Channel i of k parts, in the tree of comm.h: a binary counter whose digit l holds the moments of 2^l parts. Every index is a constant
 * once the loops are unrolled, so that on a GPU nothing goes to local memory. */
GT_EW struct gt_moments gt_moments_tree(const double *parts, int k, int64_t c, int64_t i)
{
	struct gt_moments digit[GT_MOMENTS_LEVELS] = {{0, 0, 0}}, all = {0, 0, 0};
	for (int j = 0; j < k; j++) {
		struct gt_moments m = gt_moments_get(parts + (int64_t)j * 3 * c, c, i);
		int carry = 1;
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
		for (int l = 0; l < GT_MOMENTS_LEVELS; l++) {
			if (carry && j >> l & 1)
				m = gt_moments_join(digit[l], m);
			else if (carry) {
				digit[l] = m;
				carry = 0;
			}
		}
	}
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
	for (int l = 0; l < GT_MOMENTS_LEVELS; l++)
		if (k >> l & 1)
			all = gt_moments_join(digit[l], all);
	return all;
}

#endif
