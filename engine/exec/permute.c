#include "exec/permute.h"
#include "base/mt19937.h"
#include "base/philox.h"
#include <stdlib.h>

/* Fisher-Yates shuffle from the end. Position i draws word i % 4 of Philox counter i / 4. A draw is mapped to its range by multiplication,
 * whose bias is below n / 2^32. */
static void shuffle(uint64_t key, uint32_t c1, uint32_t c2, int64_t n, int64_t *perm)
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

/* The order of PyTorch's RandomSampler in torch/utils/data. Each iterator of a DataLoader draws an int64 to seed its workers. RandomSampler
 * then draws randperm(n), and a second randperm of which it uses num_samples % n = 0 elements. */
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
	shuffle(gt_rng_key(seed, GT_RNG_SHUFFLE, 0), (uint32_t)epoch, (uint32_t)(epoch >> 32), n, perm);
	return GT_OK;
}

enum gt_code gt_permute_split(uint64_t seed, int64_t n, int64_t nvalid, int64_t *train, int64_t *valid, struct gt_err *err)
{
	int64_t *perm = malloc((size_t)n * sizeof *perm);
	char *is_valid = calloc((size_t)n, 1);
	if (!perm || !is_valid) {
		free(perm);
		free(is_valid);
		return gt_fail_memory(err, (size_t)n * sizeof *perm);
	}
	shuffle(gt_rng_key(seed, GT_RNG_SPLIT, 0), 0, 0, n, perm);
	for (int64_t i = n - nvalid; i < n; i++)
		is_valid[perm[i]] = 1;
	for (int64_t i = 0; i < n; i++)
		if (is_valid[i])
			*valid++ = i;
		else
			*train++ = i;
	free(perm);
	free(is_valid);
	return GT_OK;
}
