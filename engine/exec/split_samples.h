/* Divides samples between the splits "train" and "valid" by their ids (datasets/sample_mark.h), so that few samples, or none, change their
 * split if a sample is added, removed or renamed.
 *
 * Each sample has a random draw, uniform in [0, 1) from the seed and its id.
 *     Without classes, a sample is in "valid" if its draw is below the share. The number of validation samples is only close to share * n,
 *     but the split of a sample does not depend on other samples. "train" has at least one sample, and so has "valid" if share * n >= 0.5.
 *     With classes, the samples with the lowest draws of each class are in "valid". Their number differs from share * (samples of the
 *     class) by less than 1, and their total is share * n, as in scikit-learn's StratifiedShuffleSplit. "train" has at least one sample of
 *     each class, and so has "valid" if the share of the class is >= 0.5 samples. Samples with the same id are in the same split, which may
 *     change these numbers.
 *     Samples that a run has used keep their split (gt_used_part); other samples are then divided as without classes. */
#ifndef GT_EXEC_SPLIT_SAMPLES_H
#define GT_EXEC_SPLIT_SAMPLES_H

#include "used_samples.h"

/* Sets is_valid[n] to 1 for validation samples, else to 0. stratum: [n] the class of each sample, 0 ... strata - 1; with strata 0, samples
 * have no classes. used: the samples of a checkpoint; NULL: none. With used->by_draw, classes only ensure a sample in both splits. */
enum gt_code gt_split_samples(uint64_t seed, double share, const struct gt_sample_mark *mark, int64_t n, const int32_t *stratum,
                              int64_t strata, const struct gt_used_samples *used, char *is_valid, struct gt_err *err);

#endif
