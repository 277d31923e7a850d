/* Philox4x32-10: counter-based random numbers (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC'11; Random123).
 * Every value is a pure function of seed, purpose and counters. There is no state, so a value does not depend on the number of ranks or
 * threads, on the division into micro-batches, or on where a run was interrupted. Compiled by gcc and by nvcc. */
#ifndef GT_BASE_PHILOX_H
#define GT_BASE_PHILOX_H

#include <stdint.h>

#ifdef __CUDACC__
#define GT_HD __host__ __device__ static inline
#else
#define GT_HD static inline
#endif

/* Purposes of random numbers, with the values that callers pass to gt_rng_key as the stream (0 if none is given) and to gt_rng_draw as the
 * counters. All these values are part of reproducible results: append new purposes, and never renumber. */
enum gt_rng_purpose {
	GT_RNG_INIT = 1,    /* initial values of parameters; stream: parameter index; counter: element / 4 */
	GT_RNG_SHUFFLE = 2, /* order of an epoch; stream: 0 for samples, 1 for batches; counters: epoch, position */
	GT_RNG_AUGMENT = 3, /* augmentation in the gather kernel; counters: epoch, sample index in the dataset */
	GT_RNG_DROPOUT = 4, /* dropout; stream: layer; counters: epoch, position in the epoch, element / 4 */
	GT_RNG_SYNTH = 5,   /* synthetic datasets (datasets/synthetic.c); counters: split, sample, element / 4 */
	GT_RNG_SPLIT = 6,   /* split into training and validation samples; stream 0, counter: position; stream 1, counter: sample id */
	GT_RNG_TRANSFORM = 7, /* transforms of images; stream: index of the transform; counters: epoch, sample index in the dataset, draw / 4 */
	GT_RNG_MIX = 8,       /* mixup and cutmix; counters: epoch, number of the batch in the epoch, draw */
	GT_RNG_SWEEP = 9      /* values of a sweep's trials; stream: index of the axis; counters: trial, attempt */
};

struct gt_philox {
	uint32_t v[4];
};

GT_HD struct gt_philox gt_philox4x32(uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3, uint32_t k0, uint32_t k1)
{
	struct gt_philox r = {{c0, c1, c2, c3}};
	for (int i = 0; i < 10; i++) {
		uint64_t p0 = (uint64_t)0xD2511F53u * r.v[0], p1 = (uint64_t)0xCD9E8D57u * r.v[2];
		uint32_t n0 = (uint32_t)(p1 >> 32) ^ r.v[1] ^ k0, n2 = (uint32_t)(p0 >> 32) ^ r.v[3] ^ k1;
		r.v[1] = (uint32_t)p1;
		r.v[3] = (uint32_t)p0;
		r.v[0] = n0;
		r.v[2] = n2;
		k0 += 0x9E3779B9u;
		k1 += 0xBB67AE85u;
	}
	return r;
}

/* Returns the key of a seed, a purpose and a stream (the index of a layer or parameter). Similar seeds give unrelated keys. */
GT_HD uint64_t gt_rng_key(uint64_t seed, uint32_t purpose, uint32_t stream)
{
	struct gt_philox r = gt_philox4x32((uint32_t)seed, (uint32_t)(seed >> 32), purpose, stream, 0x67747261u, 0x696e2031u);
	return (uint64_t)r.v[1] << 32 | r.v[0];
}

GT_HD struct gt_philox gt_rng_draw(uint64_t key, uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3)
{
	return gt_philox4x32(c0, c1, c2, c3, (uint32_t)key, (uint32_t)(key >> 32));
}

/* Converts 32 random bits to a float in [0, 1) with a resolution of 24 bits. */
GT_HD float gt_rng_uniform(uint32_t u)
{
	return (float)(u >> 8) * 0x1p-24f;
}

#endif
