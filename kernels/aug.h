/* Augmentation: what happens to a sample, and which source pixel stands where. Compiled by gcc and by nvcc, so that every backend
 * trains on the same pixels. A decision is a pure function of (seed, epoch, index of the sample in the dataset). */
#ifndef GT_KERNELS_AUG_H
#define GT_KERNELS_AUG_H

#include "base/philox.h"

struct gt_aug {
	int32_t dy, dx; /* upper left corner of the crop in the unpadded image: -pad..pad */
	int32_t flip;   /* left-right, after the crop */
};

GT_HD struct gt_aug gt_aug_draw(uint64_t seed, uint64_t epoch, uint64_t sample, int pad, double hflip)
{
	struct gt_philox r = gt_rng_draw(gt_rng_key(seed, GT_RNG_AUGMENT, 0), (uint32_t)epoch, (uint32_t)sample, (uint32_t)(sample >> 32), 0);
	struct gt_aug a;
	uint64_t span = 2 * (uint64_t)pad + 1;
	a.dy = (int32_t)(r.v[0] * span >> 32) - pad;
	a.dx = (int32_t)(r.v[1] * span >> 32) - pad;
	a.flip = hflip > 0 && (double)gt_rng_uniform(r.v[2]) < hflip;
	return a;
}

/* Row or column `at` of the source; -1: padding. reflect mirrors without repeating the border (needs pad < size). */
GT_HD int32_t gt_aug_source(int32_t at, int32_t size, int reflect)
{
	if (at >= 0 && at < size)
		return at;
	if (!reflect)
		return -1;
	return at < 0 ? -at : 2 * size - 2 - at;
}

#endif
