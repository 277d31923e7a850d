/* The order of the samples in an epoch, a pure function of (seed, epoch), and the split into training and validation samples.
 *
 *     gt_permute(GT_SAMPLER_GTRAIN, seed, epoch, n, perm, err);     sample i of the epoch is perm[i] of the dataset
 */
#ifndef GT_EXEC_EPOCH_ORDER_H
#define GT_EXEC_EPOCH_ORDER_H

#include "conf/conf.h"

/* Fills perm[0 ... n - 1] with a permutation of 0 ... n - 1.
 *   GT_SAMPLER_GTRAIN        drawn from Philox
 *   GT_SAMPLER_TORCH         torch.randperm(n) with a generator seeded by seed + epoch (DistributedSampler.set_epoch)
 *   GT_SAMPLER_TORCH_RANDOM  DataLoader(shuffle=True, generator=torch.Generator().manual_seed(seed)) in iteration `epoch`; replays the
 *                            random draws of all earlier epochs, 2 n per epoch */
enum gt_code gt_permute(enum gt_sampler sampler, uint64_t seed, uint64_t epoch, int64_t n, int64_t *perm, struct gt_err *err);

/* Fills perm[0 ... n - 1] with a permutation of the n full batches of an epoch, for gt_order_buckets. */
void gt_permute_batches(uint64_t seed, uint64_t epoch, int64_t n, int64_t *perm);

/* Splits n samples: the last `nvalid` samples of a permutation that depends only on the seed become validation samples. Writes the sample
 * indices of both parts in ascending order to train (n - nvalid entries) and valid (nvalid entries). */
enum gt_code gt_permute_split(uint64_t seed, int64_t n, int64_t nvalid, int64_t *train, int64_t *valid, struct gt_err *err);

/* Splits n samples as gt_permute_split does, but takes the same share of every class. Shares are rounded down; the samples that are then
 * missing are taken from the classes with the largest fractional parts, if equal from the lowest class index. labels: n values in 0 ...
 * classes - 1. */
enum gt_code gt_permute_split_classes(uint64_t seed, const int32_t *labels, int64_t n, int64_t classes, int64_t nvalid, int64_t *train,
                                      int64_t *valid, struct gt_err *err);

#endif
