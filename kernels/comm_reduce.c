/* The reductions of comm_reduce.h, in cpu.so (for the shared-memory communicator) and in gloo.so. */
#include "comm_reduce.h"
#include "clones.h"
#include "ew.h"
#include <string.h>

#define BLOCK 512 /* elements of a block; a block of every level stays in the L1 cache, and the result does not depend on this number */
#define LEVELS 7  /* number of levels of the tree over GT_COMM_RANKS leaves: log2(64) + 1 */

#define SUM(a, b) ((a) + (b))
#define MAX(a, b) ((a) > (b) || (a) != (a) ? (a) : (b)) /* a NaN wins, because no comparison with it is true */
#define SAME(x) (x)

#define S float
#define A float
#define LD SAME
#define ST SAME
#define N sum_f32
#define OP SUM
#include "comm_reduce.inc"
#undef N
#undef OP
#define N max_f32
#define OP MAX
#include "comm_reduce.inc"
#undef N
#undef OP
#undef S
#undef LD
#undef ST

#define S uint16_t
#define LD gt_bf16_to_f32
#define ST gt_bf16_from_f32
#define N sum_bf16
#define OP SUM
#include "comm_reduce.inc"
#undef N
#undef OP
#define N max_bf16
#define OP MAX
#include "comm_reduce.inc"
#undef N
#undef OP
#undef LD
#undef ST
#define LD gt_f16_to_f32
#define ST gt_f16_from_f32
#define N sum_f16
#define OP SUM
#include "comm_reduce.inc"
#undef N
#undef OP
#define N max_f16
#define OP MAX
#include "comm_reduce.inc"
#undef N
#undef OP
#undef S
#undef A
#undef LD
#undef ST

#define S double
#define A double
#define LD SAME
#define ST SAME
#define N sum_f64
#define OP SUM
#include "comm_reduce.inc"
#undef N
#undef OP
#define N max_f64
#define OP MAX
#include "comm_reduce.inc"
#undef N
#undef OP
#undef S
#undef A

/* Sums of integers use unsigned types, which wrap around by definition. In two's complement these are the signed sums. */
#define S uint32_t
#define A uint32_t
#define N sum_i32
#define OP SUM
#include "comm_reduce.inc"
#undef N
#undef OP
#undef S
#undef A
#define S uint64_t
#define A uint64_t
#define N sum_i64
#define OP SUM
#include "comm_reduce.inc"
#undef N
#undef OP
#undef S
#undef A
#define S uint8_t
#define A uint8_t
#define N sum_u8
#define OP(a, b) ((uint8_t)((a) + (b)))
#include "comm_reduce.inc"
#undef N
#undef OP
#define N max_u8
#define OP(a, b) ((a) > (b) ? (a) : (b))
#include "comm_reduce.inc"
#undef N
#undef S
#undef A
#define S int32_t
#define A int32_t
#define N max_i32
#include "comm_reduce.inc"
#undef N
#undef S
#undef A
#define S int64_t
#define A int64_t
#define N max_i64
#include "comm_reduce.inc"
#undef N
#undef OP

gt_reduce_fn *gt_comm_reduce(enum gt_reduction op, enum gt_dtype t)
{
	static gt_reduce_fn *const fn[GT_REDUCE_COUNT][GT_DTYPE_COUNT] = {
		[GT_REDUCE_SUM] = {[GT_F32] = sum_f32, [GT_F64] = sum_f64, [GT_BF16] = sum_bf16, [GT_F16] = sum_f16, [GT_I32] = sum_i32,
		                   [GT_I64] = sum_i64, [GT_U8] = sum_u8},
		[GT_REDUCE_MAX] = {[GT_F32] = max_f32, [GT_F64] = max_f64, [GT_BF16] = max_bf16, [GT_F16] = max_f16, [GT_I32] = max_i32,
		                   [GT_I64] = max_i64, [GT_U8] = max_u8},
	};
	return fn[op][t];
}
