/* The reductions of the transports that run on the host (shm, gloo): reduce n elements of each of nin ranks in the tree of comm.h and store
 * the result in nout destinations. An element is stored after it has been read from every rank, so an output may be the same memory as an
 * input, but may not overlap it partially. 16-bit floats are added in f32 and rounded once. */
#ifndef GT_KERNELS_COMM_REDUCE_H
#define GT_KERNELS_COMM_REDUCE_H

#include "comm.h"

typedef void gt_reduce_fn(void *const *out, int nout, const void *const *in, int nin, size_t n); /* nin at most GT_COMM_RANKS */
/* Returns the function for a reduction and a dtype. */
gt_reduce_fn *gt_comm_reduce(enum gt_reduction op, enum gt_dtype t);

#endif
