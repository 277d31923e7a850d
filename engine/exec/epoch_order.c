#include "exec/epoch_order.h"
#include "base/mt19937.h"
#include "base/philox.h"
#include "exec/class_shares.h"
#include <stdlib.h>

/* Fisher-Yates shuffle from the end. Position i draws word i % 4 of Philox counter i / 4. A draw is mapped to its range by multiplication,
 * whose bias is below n / 2^32. */
static void shuffle_indices(uint64_t key, uint32_t c1, uint32_t c2, int64_t n, int64_t *perm)
{
	struct gt_philox r = {{0}};
	int64_t have = -1;
	for (int64_t i = 0; i < n; i++)
		perm[i] = i;
	for (int64_t i = n - 1; i > 0; i--) {
		if (i / 4 != have) {
			have = i / 4;
			r = gt_rng_draw(key, (uint32_t)have, c1, c2, (uint32_t)(have >> 32));
		}
		int64_t j = (int64_t)((uint64_t)r.v[i % 4] * (uint64_t)(i + 1) >> 32), t = perm[i];
		perm[i] = perm[j];
		perm[j] = t;
	}
}

/* Writes the order of PyTorch's RandomSampler (torch/utils/data) in epoch number `epoch`. Each iterator of a DataLoader draws an int64 to
 * seed its workers. RandomSampler then draws randperm(n), and a second randperm, whose elements it does not use (num_samples % n = 0). */
static void random_sampler(uint64_t seed, uint64_t epoch, int64_t n, int64_t *perm)
{
	struct gt_mt19937 mt;
	gt_mt19937_seed(&mt, seed);
	for (uint64_t e = 0; e < epoch; e++) {
		gt_mt19937_u64(&mt);
		for (int64_t i = 0; i < 2 * (n - 1); i++)
			gt_mt19937_u32(&mt);
	}
	gt_mt19937_u64(&mt);
	gt_mt19937_randperm(&mt, n, perm);
}

enum gt_code gt_permute(enum gt_sampler sampler, uint64_t seed, uint64_t epoch, int64_t n, int64_t *perm, struct gt_err *err)
{
	if (n >= INT64_C(1) << 32)
		return gt_fail(err, GT_EDATA, "expected fewer than 2^32 samples in a shuffled epoch, got %lld", (long long)n);
	if (sampler == GT_SAMPLER_TORCH) {
		struct gt_mt19937 mt;
		gt_mt19937_seed(&mt, seed + epoch);
		gt_mt19937_randperm(&mt, n, perm);
		return GT_OK;
	}
	if (sampler == GT_SAMPLER_TORCH_RANDOM) {
		random_sampler(seed, epoch, n, perm);
		return GT_OK;
	}
	shuffle_indices(gt_rng_key(seed, GT_RNG_SHUFFLE, 0), (uint32_t)epoch, (uint32_t)(epoch >> 32), n, perm);
	return GT_OK;
}

void gt_permute_batches(uint64_t seed, uint64_t epoch, int64_t n, int64_t *perm)
{
	shuffle_indices(gt_rng_key(seed, GT_RNG_SHUFFLE, 1), (uint32_t)epoch, (uint32_t)(epoch >> 32), n, perm);
}

/* Writes the indices of validation samples to valid, and all other indices to train. */
static void write_parts(const char *is_valid, int64_t n, int64_t *train, int64_t *valid)
{
	for (int64_t i = 0; i < n; i++)
		if (is_valid[i])
			*valid++ = i;
		else
			*train++ = i;
}

enum gt_code gt_permute_split(uint64_t seed, int64_t n, int64_t nvalid, int64_t *train, int64_t *valid, struct gt_err *err)
{
	int64_t *perm = malloc((size_t)n * sizeof *perm);
	char *is_valid = calloc((size_t)n, 1);
	enum gt_code code = perm && is_valid ? GT_OK : gt_fail_memory(err, (size_t)n * sizeof *perm);
	if (code == GT_OK) {
		shuffle_indices(gt_rng_key(seed, GT_RNG_SPLIT, 0), 0, 0, n, perm);
		for (int64_t i = n - nvalid; i < n; i++)
			is_valid[perm[i]] = 1;
		write_parts(is_valid, n, train, valid);
	}
	free(perm);
	free(is_valid);
	return code;
}

enum gt_code gt_permute_split_classes(uint64_t seed, const int32_t *labels, int64_t n, int64_t classes, int64_t nvalid, int64_t *train,
                                      int64_t *valid, struct gt_err *err)
{
	int64_t *perm = malloc((size_t)n * sizeof *perm);
	char *is_valid = calloc((size_t)n, 1);
	struct gt_class_share *s = calloc((size_t)classes, sizeof *s);
	enum gt_code code = perm && is_valid && s ? GT_OK : gt_fail_memory(err, (size_t)n * sizeof *perm);
	if (code == GT_OK) {
		for (int64_t i = 0; i < n; i++)
			s[labels[i]].n++;
		gt_class_shares(s, classes, n, nvalid, false);
		shuffle_indices(gt_rng_key(seed, GT_RNG_SPLIT, 0), 0, 0, n, perm);
		for (int64_t i = n; i-- > 0;) { /* validation samples are the last ones of the permutation, as in gt_permute_split */
			struct gt_class_share *c = &s[labels[perm[i]]];
			if (c->take > 0) {
				is_valid[perm[i]] = 1;
				c->take--;
			}
		}
		write_parts(is_valid, n, train, valid);
	}
	free(perm);
	free(is_valid);
	free(s);
	return code;
}
