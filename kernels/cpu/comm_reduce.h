/* The reductions of the transports that run on the host (shm, gloo): n elements of nin ranks into nout places, in the tree of comm.h. An
 * element is stored after it has been read from every rank, so `in` and `out` may alias exactly. 16-bit floats are added in f32 and
 * rounded once. */
#ifndef GT_KERNELS_CPU_COMM_REDUCE_H
#define GT_KERNELS_CPU_COMM_REDUCE_H

#include "comm.h"

typedef void gt_reduce_fn(void *const *out, int nout, const void *const *in, int nin, size_t n); /* nin at most GT_COMM_RANKS */
gt_reduce_fn *gt_comm_reduce(enum gt_reduction op, enum gt_dtype t);

#endif
