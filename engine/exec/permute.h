/* The order of an epoch: a pure function of (seed, epoch). */
#ifndef GT_EXEC_PERMUTE_H
#define GT_EXEC_PERMUTE_H

#include "conf/conf.h"

/* Fills perm[0..n-1] with a permutation of 0..n-1: GT_SAMPLER_GTRAIN by Philox, GT_SAMPLER_TORCH as torch.randperm(n) with a generator
 * seeded by seed + epoch (DistributedSampler.set_epoch), GT_SAMPLER_TORCH_RANDOM as
 * DataLoader(shuffle=True, generator=torch.Generator().manual_seed(seed)) in its epoch-th iteration. The last replays the draws of the epochs
 * before, 2 n each. */
enum gt_code gt_permute(enum gt_sampler sampler, uint64_t seed, uint64_t epoch, int64_t n, int64_t *perm, struct gt_err *err);

/* Which samples of n are kept for validation: the last `nvalid` of a permutation that depends on the seed only, each part in
 * ascending order. train and valid hold n - nvalid and nvalid entries. */
enum gt_code gt_permute_split(uint64_t seed, int64_t n, int64_t nvalid, int64_t *train, int64_t *valid, struct gt_err *err);

#endif
