/* Internal header of the NCCL communicator: the functions of the library, and the id of a group. */
#ifndef GT_KERNELS_CUDA_NCCL_LIB_H
#define GT_KERNELS_CUDA_NCCL_LIB_H

#include "comm.h"
#include "cuda/cuda_internal.h"
#include <nccl.h>

#define GT_NCCL_FUNCTIONS(X)                                                                                                          \
	X(ncclGetUniqueId) X(ncclCommInitRankConfig) X(ncclCommFinalize) X(ncclCommDestroy) X(ncclCommAbort) X(ncclCommSplit)     \
	X(ncclCommGetAsyncError) X(ncclGetErrorString) X(ncclGetLastError) X(ncclGroupStart) X(ncclGroupEnd) X(ncclAllReduce)     \
	X(ncclReduceScatter) X(ncclAllGather) X(ncclBroadcast) X(ncclSend) X(ncclRecv) X(ncclMemAlloc) X(ncclMemFree)             \
	X(ncclCommRegister) X(ncclCommDeregister)

struct gt_nccl {
	void *so;
#define GT_X(name) __typeof__(name) *name;
	GT_NCCL_FUNCTIONS(GT_X)
#undef GT_X
};

/* Loads the NCCL library (nccl_lib.c). */
enum gt_code gt_nccl_load(struct gt_nccl *l, struct gt_err *err);
/* gt_nccl_create writes the id of a new group to a boot record as text. gt_nccl_parse reads the id from a boot record. */
enum gt_code gt_nccl_create(int world, struct gt_comm_boot *out, struct gt_err *err);
enum gt_code gt_nccl_parse(const struct gt_comm_boot *boot, ncclUniqueId *id, struct gt_err *err);

#endif
