/* Merges means and variances of a channel from parts: the batch statistics of several ranks (sync_bn). Compiled by gcc and by nvcc.
 *
 *     part of rank 0: f64 [3, C] --.
 *     part of rank 1: f64 [3, C] ---+--> gt_moments_tree(parts, 3, C, i) --> mean, m2, n of channel i
 *     part of rank 2: f64 [3, C] --'
 *
 * A part is f64 [3, C]: the means, the sums of squared deviations from the means, and the counts of values. A part without values is all
 * zeros; merging it with another part leaves the other part unchanged. Parts are f64 for any dtype of the activations: so a single part
 * gives batchnorm's own statistics bit for bit, nearly equal means do not cancel, and counts are exact. */
#ifndef GT_KERNELS_MOMENTS_H
#define GT_KERNELS_MOMENTS_H

#include "ew.h"

#define GT_MOMENTS_LEVELS 10 /* levels of the merge tree */
#define GT_MOMENTS_PARTS (1 << GT_MOMENTS_LEVELS) /* one merge takes fewer than this number of parts */

struct gt_moments {
	double mean, m2, n; /* mean, sum of squared deviations from it, number of values */
};

/* Merges two sets of moments. Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979. */
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

/* Reads the moments of channel i from a part (f64 [3, c]) with c channels. */
GT_EW struct gt_moments gt_moments_get(const double *part, int64_t c, int64_t i)
{
	struct gt_moments m;
	m.mean = part[i];
	m.m2 = part[c + i];
	m.n = part[2 * c + i];
	return m;
}

/* Writes the moments of channel i to a part (f64 [3, c]) with c channels. */
GT_EW void gt_moments_put(double *part, int64_t c, int64_t i, struct gt_moments m)
{
	part[i] = m.mean;
	part[c + i] = m.m2;
	part[2 * c + i] = m.n;
}

/* Merges channel i of k parts in the fixed tree of comm.h. The implementation is a binary counter: digit l holds the moments of 2^l parts.
 * Every array index is a constant after the loops are unrolled, so that a GPU keeps all digits in registers. */
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
