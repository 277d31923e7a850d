/* How a kernel finds the samples of a batch in the dataset. */
#ifndef GT_KERNELS_CUDA_LOOKUP_CUH
#define GT_KERNELS_CUDA_LOOKUP_CUH

#include "cuda/device.cuh"

/* Returns the number in the dataset of sample `sample` of the batch, which the operand index has; -1: it has none, which the thread with
 * report = true reports. */
__device__ static inline int64_t sample_at(const gt_cu_lookup &l, const struct gt_step_args &step_args, int64_t sample, bool report)
{
	const int64_t *index = l.rows ? l.index + (int64_t)(step_args.epoch % (uint64_t)l.rows) * l.length : l.index;
	int64_t place = l.rows ? (int64_t)(step_args.sample0 + (uint64_t)sample * step_args.stride) : sample;
	if (l.rows && (uint64_t)place >= (uint64_t)l.length) {
		if (report)
			fault(l.fault, GT_CU_FAULT_PLACE, place, sample, l.length);
		return -1;
	}
	int64_t at = index[place];
	if (at >= 0 && at < l.all)
		return at;
	if (report)
		fault(l.fault, GT_CU_FAULT_INDEX, at, sample, l.all);
	return -1;
}

#endif
