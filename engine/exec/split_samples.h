/* Divides samples between the splits "train" and "valid" by their ids (datasets/sample_mark.h), so that adding, removing or renaming one
 * sample moves few other samples, or none.
 *
 * Each sample has a random draw, uniform in [0, 1) from the seed and its id.
 *     Without classes, a sample is in "valid" if its draw is below the share. The number of validation samples is close to share * n, but
 *     not exact, and no sample moves another one. At least one sample is in "train" and, if share * n is 0.5 or more, one in "valid".
 *     With classes, the samples of each class with the lowest draws are in "valid", so that share * (samples of the class) is met within
 *     one sample, and share * n as a whole, as by scikit-learn's StratifiedShuffleSplit. Of each class, at least one sample is in "train"
 *     and, if its share is 0.5 or more, one in "valid". Samples with the same id stay together, which may change these numbers.
 *     Samples that a run has used stay where they were (gt_used_part); samples unknown to the run are divided as without classes. */
#ifndef GT_EXEC_SPLIT_SAMPLES_H
#define GT_EXEC_SPLIT_SAMPLES_H

#include "used_samples.h"

/* Sets is_valid[n] to 1 for validation samples, else to 0. stratum: [n] the class of each sample, 0 ... strata - 1; with strata 0, samples
 * have no classes. used: the samples of a checkpoint; NULL: none. With used->by_draw, classes only ensure a sample in both splits. */
enum gt_code gt_split_samples(uint64_t seed, double share, const struct gt_sample_mark *mark, int64_t n, const int32_t *stratum,
                              int64_t strata, const struct gt_used_samples *used, char *is_valid, struct gt_err *err);

#endif
