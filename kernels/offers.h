/* The calls that the CUDA backend refuses by design. The CUDA backend and the null backend (null.c), which plans for an absent GPU, use
 * these functions, so that the planner makes the same choices. Limits of the vendors' libraries are not here: a plan without the libraries
 * assumes no such limits. */
#ifndef GT_KERNELS_OFFERS_H
#define GT_KERNELS_OFFERS_H

#include "opcall.h"

#define GT_CU_HEAD_COLS 32 /* maximum number of outputs of linear+loss and linear.dx+dw */
#define GT_CU_SORT_TILE 1024 /* tokens that a block of embedding.dw sorts; a separate kernel merges the sorted blocks */
#define GT_CU_ABSENT "the cuda backend of this version does not have this operation (--device cpu supports it)"

/* Returns the reason why the CUDA backend refuses a call that has the operands of its operation (opsig.h); NULL: the call is accepted. */
const char *gt_cuda_refuses(const struct gt_opcall *call);

#endif
