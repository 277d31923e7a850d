/* Mixes the samples of a batch in pairs: mixup (Zhang et al. 2018) and cutmix (Yun et al. 2019), as torchvision's MixUp and CutMix do.
 *
 *     gt_mix_draw(&m, seed, epoch, batch, h, w, &mix);
 *     gt_mix_rows(&mix, &rows);
 *
 * Sample i of a batch is mixed with sample i - 1, and the first sample with the last sample. The batch is the batch of an optimizer step
 * over all ranks, so the result does not depend on the number of ranks or of micro-batches. All pairs of a batch have the same share
 * lambda, which is drawn from Beta(alpha, alpha) as a pure function of (seed, epoch, index of the batch). */
#ifndef GT_EXEC_MIXING_H
#define GT_EXEC_MIXING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Which batches are mixed, and how. All zero: no batches are mixed. */
struct gt_mixing {
	double mixup_p, mixup_alpha;   /* probability that a batch is mixed by mixup; parameter of the distribution of lambda */
	double cutmix_p, cutmix_alpha; /* the same for cutmix; mixup_p + cutmix_p is at most 1 */
	int64_t classes;               /* number of classes, which is the length of a mixed target; 0: nothing is mixed */
};

/* The drawn parameters by which the samples of one batch are mixed. */
struct gt_mix {
	bool cut;                  /* cutmix: the box of each image is copied from its partner */
	int64_t top, left, bottom, right; /* cutmix: the box, in pixels; bottom and right are exclusive */
	double lambda;             /* share of the sample itself in the pixels and in the target; 1: the batch is not mixed */
};

/* Draws how batch `batch` (its index) of an epoch is mixed, whose images are h x w pixels. */
void gt_mix_draw(const struct gt_mixing *m, uint64_t seed, uint64_t epoch, uint64_t batch, int64_t h, int64_t w, struct gt_mix *out);

/* The rows of a batch, or of a part of one. */
struct gt_mix_rows {
	uint8_t *pixels;      /* rows of h * w * c bytes: the n samples, then partners of samples */
	const int32_t *label; /* the class of each row; < 0: no sample, or an ignored one. NULL: samples have no class, see target */
	float *target;        /* [n, classes]: receives the shares of the classes. If label is NULL, target has the targets of all rows, and the
	                         first n are mixed in place */
	int64_t n;
	bool apart;           /* true: the partner of row i is row n + i; false: row i - 1, and the partner of row 0 is row n */
	int64_t h, w, c, classes;
};
/* Mixes the images in place, and fills or mixes the targets. If only one row of a pair has a sample with a class, the result is that
 * sample; if neither row has such a sample, image and target are 0. */
void gt_mix_rows(const struct gt_mix *m, const struct gt_mix_rows *r);

#endif
