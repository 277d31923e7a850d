/* PyTorch's CPU random stream: the Mersenne twister MT19937 as torch.manual_seed() seeds it. For parity with PyTorch only (sampler and
 * init = "torch"); everything else draws from base/philox.h.
 * Source: Matsumoto and Nishimura, ACM TOMACS 8(1), 1998; what is drawn how: PyTorch, aten/src/ATen/core/DistributionsHelper.h. */
#ifndef GT_BASE_MT19937_H
#define GT_BASE_MT19937_H

#include <stdint.h>

struct gt_mt19937 {
	uint32_t state[624];
	int next; /* 624: twist first */
};

void gt_mt19937_seed(struct gt_mt19937 *m, uint64_t seed); /* torch.manual_seed(seed): only the low 32 bits count */
uint32_t gt_mt19937_u32(struct gt_mt19937 *m);
uint64_t gt_mt19937_u64(struct gt_mt19937 *m); /* two draws, the high half first */

/* One element of torch.empty(n).uniform_(lo, hi), f32 (24 bits) and f64 (53 bits). PyTorch computes x * (hi - lo) + lo; its kernels for
 * CPUs with AVX2 contract that to a fused multiply-add, which is what these give (ATEN_CPU_CAPABILITY=default differs by the last bit). */
float gt_mt19937_uniform(struct gt_mt19937 *m, float lo, float hi);
double gt_mt19937_uniform64(struct gt_mt19937 *m, double lo, double hi);

/* torch.randperm(n), for n < 2^32 / 20 (PyTorch draws larger ones otherwise). */
void gt_mt19937_randperm(struct gt_mt19937 *m, int64_t n, int64_t *out);

#endif
