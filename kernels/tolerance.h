/* How far two implementations of an operation may differ by rounding: the tolerances of the operation table (tests/ops/cases.txt) and of
 * `gtrain run --smoke --against`.
 *
 *     double atol = gt_tolerance_atol(GT_TOLERANCE_F32, terms, largest), rtol = gt_tolerance_of(GT_TOLERANCE_F32)->rtol;
 *     ok = fabs(got - want) <= atol + rtol * fabs(want);
 */
#ifndef GT_KERNELS_TOLERANCE_H
#define GT_KERNELS_TOLERANCE_H

#include "opcall.h"

/* The precisions, the finest one first: X(id, name, rtol, unit).
 *   rtol   relative tolerance of torch.testing.assert_close; that of fp16 or bf16 for types of 16 bits
 *   unit   half a step of the type, relative to a value; of tf32, which rounds both operands of a product to 10 bits, 2^-10
 * GT_TOLERANCE_F32_SUM is for sums in f32 of 16-bit values and of their products, which are exact in f32. Its unit is four times that of
 * f32, because matrix units may cut off bits where f32 rounds. */
#define GT_TOLERANCES(X)                              \
	X(GT_TOLERANCE_F32, "f32", 1.3e-6, 0x1p-24)       \
	X(GT_TOLERANCE_F32_SUM, "f32 sum", 1e-5, 0x1p-22) \
	X(GT_TOLERANCE_TF32, "tf32", 1e-3, 0x1p-10)       \
	X(GT_TOLERANCE_F16, "f16", 2e-3, 0x1p-11)         \
	X(GT_TOLERANCE_BF16, "bf16", 1.6e-2, 0x1p-8)

enum gt_tolerance_id {
#define GT_X(id, ...) id,
	GT_TOLERANCES(GT_X)
#undef GT_X
	GT_TOLERANCE_COUNT
};

struct gt_tolerance {
	const char *name;
	double rtol, unit;
};
const struct gt_tolerance *gt_tolerance_of(enum gt_tolerance_id id);

/* Returns the absolute tolerance of a tensor whose values are of the order of 1.
 *   terms     number of elements of the largest tensor of the call: the upper bound of the terms of a sum
 *   largest   largest magnitude of the tensor; for types of 16 bits, gt_tolerance_rounding() of it */
double gt_tolerance_atol(enum gt_tolerance_id id, double terms, double largest);

/* Returns the absolute error, in units of one rounding to 16 bits, that a result with the largest magnitude `largest` may have. Sums are
 * in f32, but an operation may round what it saves for the backward pass, and intermediate results. */
double gt_tolerance_rounding(enum gt_opcode code, double largest);

#endif
