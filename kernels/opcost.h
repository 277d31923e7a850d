/* What one call costs on a GPU: the bytes that its kernels move, and the size of its matrix products. `gtrain check --card` predicts the
 * time of a step from these numbers (engine/par/roofline.h).
 *
 *     struct gt_opcost cost;
 *     gt_opcall_cost(&call, &cost);       batchnorm of [128, 64, 32, 32] in bf16: x is read twice, y is written, two kernels
 *
 * The numbers describe the kernels of the CUDA backend (kernels/cuda). Each operand counts once for each kernel that reads or writes it:
 * between two kernels a tensor goes through memory. What a kernel reads again and finds in a cache counts once. Workspace counts only
 * where it is as large as an operand. One function for each family of GT_OPCODES, so an operation without costs does not compile. */
#ifndef GT_KERNELS_OPCOST_H
#define GT_KERNELS_OPCOST_H

#include "opcall.h"

struct gt_opcost {
	double read, written; /* bytes */
	int kernels;          /* number of kernels of the CUDA backend, copies and memory sets included; 0: the call runs none */
	bool matrix;          /* the FLOPs are those of matrix products by cuBLASLt or cuDNN, which use tensor cores */
	bool half;            /* the operands of these products have 16 bits */
	/* FLOPs of a Muon update; instructions of gather.recipes. 0 for all other calls: gt_op.flops (ir/op.h) has those of operations in
	 * graphs, and element-wise updates have too few to count */
	double flops;
	/* number of pieces of the products, of at most 64 x 64 outputs and sums of 256 terms, that multiprocessors can compute independently;
	 * 0: as many as any GPU needs */
	double pieces;
};

/* call: with the operands of its operation (opsig.h), and layouts that are chosen. */
void gt_opcall_cost(const struct gt_opcall *call, struct gt_opcost *out);

#endif
