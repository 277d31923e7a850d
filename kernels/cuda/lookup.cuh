/* Functions by which a kernel finds the samples of a batch in the dataset. */
#ifndef GT_KERNELS_CUDA_LOOKUP_CUH
#define GT_KERNELS_CUDA_LOOKUP_CUH

#include "cuda/device.cuh"

struct sample_lookup {
	const int64_t *index;
	/* number of rows of the result (samples * views); number of samples of the batch; number of samples of the dataset */
	int64_t n, samples, all;
	int64_t rows, length; /* shape of the operand index; rows is 0 if index lists the samples of the batch itself */
	struct gt_cu_fault *fault;
	struct gt_cu_step_args step_args;
};

/* Returns true if the operand index lists the orders of epochs: gt_step_args then selects the entries of the batch. */
static inline bool index_has_epochs(const struct gt_opcall *op)
{
	const struct gt_tdesc *index = gt_opcall_operand(op, "index");
	return index->rank == 2 && index->dim[0];
}

/* index: address of the operand. all: number of samples of the dataset. n: number of rows of the result. */
static inline sample_lookup lookup_of(const struct gt_cu_call *c, const int64_t *index, int64_t all, int64_t n, int views)
{
	const struct gt_tdesc *d = gt_opcall_operand(c->op, "index");
	sample_lookup l = {};
	l.index = index;
	l.n = n, l.samples = n / (views > 1 ? views : 1), l.all = all;
	if (d->rank == 2)
		l.rows = d->dim[0], l.length = d->dim[1];
	l.fault = c->fault;
	l.step_args = c->step_args;
	return l;
}

/* Returns the dataset index of sample `sample` of the batch from the operand index; -1: it is invalid, which the thread with report = true
 * reports. */
__device__ static inline int64_t sample_at(const sample_lookup &l, const struct gt_step_args &step_args, int64_t sample, bool report)
{
	const int64_t *index = l.rows ? l.index + (int64_t)(step_args.epoch % (uint64_t)l.rows) * l.length : l.index;
	int64_t place = l.rows ? (int64_t)(step_args.sample0 + (uint64_t)sample * step_args.stride) : sample;
	if (l.rows && (uint64_t)place >= (uint64_t)l.length) {
		if (report)
			report_fault(l.fault, GT_CU_FAULT_PLACE, place, sample, l.length);
		return -1;
	}
	int64_t at = index[place];
	if (at >= 0 && at < l.all)
		return at;
	if (report)
		report_fault(l.fault, GT_CU_FAULT_INDEX, at, sample, l.all);
	return -1;
}

#endif
