/* Divides samples between the splits "train" and "valid" by what identifies them (datasets/sample_mark.h), so that adding, removing or
 * renaming one sample moves no other one.
 *
 * A sample is in "valid" if a number that is drawn from the seed and its id, uniform in [0, 1), is below the share. So the number of
 * validation samples is close to share * n, but not exactly that. Two rules follow, which concern few samples:
 *     Of each class, at least one sample is in "train" and, if share * (samples of the class) is 0.5 or more, at least one in "valid": the
 *     one with the largest, or the smallest, number. The same holds for all samples together.
 *     Samples that a run has used stay where they were (gt_used_part); only those that it does not know are divided by their numbers. */
#ifndef GT_EXEC_SPLIT_SAMPLES_H
#define GT_EXEC_SPLIT_SAMPLES_H

#include "used_samples.h"

/* Sets is_valid[n] to 1 for validation samples, else to 0. stratum: [n] the class of each sample, 0 ... strata - 1; with strata 0, samples
 * have no classes. used: what a checkpoint has; NULL, or not listed: nothing. */
enum gt_code gt_split_samples(uint64_t seed, double share, const struct gt_sample_mark *mark, int64_t n, const int32_t *stratum,
                              int64_t strata, const struct gt_used_samples *used, char *is_valid, struct gt_err *err);

#endif
