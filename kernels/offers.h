/* The calls that the CUDA backend refuses by design. The backend asks here, and so does the null backend when it plans for a GPU that is
 * not there (null.c): the planner then makes the same choices in both. What depends on the vendors' libraries is not here: a plan without
 * them assumes that they offer everything. */
#ifndef GT_KERNELS_OFFERS_H
#define GT_KERNELS_OFFERS_H

#include "opcall.h"

#define GT_CU_HEAD_COLS 32 /* maximum number of outputs of linear+loss and linear.dx+dw */
#define GT_CU_SORT_TILE 1024 /* tokens that a block of embedding.dw sorts; more are merged by a kernel of their own */
#define GT_CU_ABSENT "the cuda backend of this version does not have this operation (--device cpu has it)"

/* Returns the reason why the CUDA backend refuses a call that has the operands of its operation (opsig.h); NULL: it does not. */
const char *gt_cuda_refuses(const struct gt_opcall *call);

#endif
