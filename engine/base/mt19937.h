/* PyTorch's random numbers on the CPU: the Mersenne twister MT19937 with the seed of torch.manual_seed(). It is used only if values must
 * equal PyTorch's (sampler and init = "torch"); all other code uses base/philox.h.
 * Source: Matsumoto and Nishimura, ACM TOMACS 8(1), 1998; distributions: PyTorch, aten/src/ATen/core/DistributionsHelper.h. */
#ifndef GT_BASE_MT19937_H
#define GT_BASE_MT19937_H

#include <stdbool.h>
#include <stdint.h>

struct gt_mt19937 {
	uint32_t state[624];
	int next; /* index in state of the next word to use; 624: all words are used, so new words are generated first */
	bool has_normal; /* `normal` is the unused second value of a pair: PyTorch draws pairs for small tensors */
	double normal;
};

void gt_mt19937_seed(struct gt_mt19937 *m, uint64_t seed); /* like torch.manual_seed(seed), which uses only the low 32 bits */
uint32_t gt_mt19937_u32(struct gt_mt19937 *m);
uint64_t gt_mt19937_u64(struct gt_mt19937 *m); /* makes two 32-bit draws, the high half first */

/* Return one element of torch.empty(n).uniform_(lo, hi) in f32 (24 random bits) and f64 (53). PyTorch computes x * (hi - lo) + lo. Its
 * kernels for CPUs with AVX2 contract this to a fused multiply-add, as these functions do; with ATEN_CPU_CAPABILITY=default, PyTorch's
 * result can differ in the last bit. */
float gt_mt19937_uniform(struct gt_mt19937 *m, float lo, float hi);
double gt_mt19937_uniform64(struct gt_mt19937 *m, double lo, double hi);

/* Write torch.empty(n).normal_(0, std) in f32 and f64. PyTorch computes logarithms, sines and cosines with CPU-specific instructions, so
 * that its last bits depend on the CPU; results of these functions differ from PyTorch's by about 1e-6 * std in f32. */
void gt_mt19937_normal(struct gt_mt19937 *m, float std, int64_t n, float *out);
void gt_mt19937_normal64(struct gt_mt19937 *m, double std, int64_t n, double *out);

/* Writes torch.randperm(n), for n < 2^32 / 20; PyTorch uses another algorithm for larger n. */
void gt_mt19937_randperm(struct gt_mt19937 *m, int64_t n, int64_t *out);

#endif
