/* Divides samples between the splits "train" and "valid" by their ids (datasets/sample_mark.h), so that no other sample changes its split
 * when a sample is added, removed or renamed.
 *
 * A sample is in "valid" if its random draw, uniform in [0, 1) from the seed and its id, is below the share. So the number of validation
 * samples is only close to share * n. Two more rules apply:
 *     Of each class, at least one sample is in "train" and, if share * (samples of the class) is 0.5 or more, at least one in "valid": the
 *     sample with the largest or the smallest draw. The same holds for all samples together.
 *     Samples that a run has used keep their split (gt_used_part); only samples that are new to the run are divided by their draws. */
#ifndef GT_EXEC_SPLIT_SAMPLES_H
#define GT_EXEC_SPLIT_SAMPLES_H

#include "used_samples.h"

/* Sets is_valid[n] to 1 for validation samples, else to 0. stratum: [n] the class of each sample, 0 ... strata - 1; with strata 0, samples
 * have no classes. used: the samples that a checkpoint lists; NULL, or not listed: none. */
enum gt_code gt_split_samples(uint64_t seed, double share, const struct gt_sample_mark *mark, int64_t n, const int32_t *stratum,
                              int64_t strata, const struct gt_used_samples *used, char *is_valid, struct gt_err *err);

#endif
