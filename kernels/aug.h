/* Data augmentation: draws the transformation of a sample and maps its pixels to source pixels. Compiled by gcc and by nvcc, so that every
 * backend trains on the same pixels. Each decision is a pure function of (seed, epoch, index of the sample in the dataset).
 *
 *     struct gt_aug g = gt_aug_of(attr, seed, epoch, sample, 0);
 *     int32_t row = gt_aug_source(y + g.dy, height, attr->pad_reflect);     source row of row y; -1: padding
 */
#ifndef GT_KERNELS_AUG_H
#define GT_KERNELS_AUG_H

#include "base/philox.h"
#include "opcall.h"

struct gt_aug {
	int32_t dy, dx; /* upper left corner of the crop in the unpadded image, in pixels: -pad ... pad */
	int32_t flip;   /* not 0: mirror left to right, after the crop */
};

/* Draws a random crop and flip. hflip is the probability of a flip, 0 ... 1. */
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

/* Returns view v of a sample in an evaluation (gt_attr_gather.views): 3 positions, each unmirrored (even v) and mirrored (odd v). */
GT_HD struct gt_aug gt_aug_view(int v)
{
	struct gt_aug a;
	a.dy = a.dx = v / 2 == 0 ? 0 : v / 2 == 1 ? -1 : 1;
	a.flip = v & 1;
	return a;
}

/* Returns the weight of view v in the mean over `views` views. With 6 views, the two views without a shift together have half of the
 * weight. */
GT_HD float gt_aug_view_weight(int views, int v)
{
	return views <= 2 ? 1.0f / (float)views : v < 2 ? 0.25f : 0.125f;
}

/* Returns true if a gather with these attributes transforms no image. */
GT_HD bool gt_aug_none(const struct gt_attr_gather *a)
{
	return a->views <= 1 && !(a->augment && (a->pad > 0 || a->hflip > 0));
}

/* Returns the transformation of one sample or, in an evaluation, of its view `view` (0 ... views - 1). */
GT_HD struct gt_aug gt_aug_of(const struct gt_attr_gather *a, uint64_t seed, uint64_t epoch, uint64_t sample, int view)
{
	if (a->views > 1)
		return gt_aug_view(view);
	struct gt_aug g = gt_aug_draw(seed, epoch, sample, a->pad, a->hflip);
	if (a->hflip_alternate && a->hflip > 0)
		g.flip = gt_aug_draw(seed, 0, sample, 0, a->hflip).flip ^ (int32_t)(epoch & 1);
	return g;
}

/* Returns the source row or column for position `at` relative to the unpadded image, or -1 for padding. If reflect is not 0, it mirrors
 * without repeating the border pixel, which requires pad < size. */
GT_HD int32_t gt_aug_source(int32_t at, int32_t size, int reflect)
{
	if (at >= 0 && at < size)
		return at;
	if (!reflect)
		return -1;
	return at < 0 ? -at : 2 * size - 2 - at;
}

#endif
