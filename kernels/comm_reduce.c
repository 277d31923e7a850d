/* The reductions of comm_reduce.h, in cpu.so (for the shared-memory communicator) and in gloo.so. */
#include "comm_reduce.h"
#include "clones.h"
#include "ew.h"
#include <string.h>

#define BLOCK 512 /* elements of a block; the blocks of all levels fit in the L1 cache. Results do not depend on the block size */
#define LEVELS 7  /* number of levels of the tree over GT_COMM_RANKS leaves: log2(64) + 1 */

#define SUM(a, b) ((a) + (b))
#define MAX(a, b) ((a) > (b) || (a) != (a) ? (a) : (b)) /* NaN if a or b is NaN, because no comparison with NaN is true */
#define LARGER(a, b) ((a) > (b) ? (a) : (b)) /* of integers */
#define SUM_U8(a, b) ((uint8_t)((a) + (b)))
#define SAME(x) (x)

/* Defines the function for one reduction and one dtype. S: the type in memory; A: the type of the arithmetic; LD and ST: the conversions
 * from S to A and back; OP(a, b): the reduction. `in` and `out` may be the same memory: an element is stored after it has been read from
 * every rank. */
#define GT_REDUCTION(name, S, A, LD, ST, OP)                                                                                               \
	GT_CLONES static void name(void *const *out, int nout, const void *const *in, int nin, size_t n)                                       \
	{                                                                                                                                      \
		if (nin == 2 && nout <= 2) { /* two ranks are the most frequent case, which needs no blocks */                              \
			const S *a = in[0], *b = in[1];                                                                                                \
			S *p = out[0], *q = out[nout - 1];                                                                                             \
			_Pragma("GCC ivdep") for (size_t i = 0; i < n; i++) {                                                                          \
				S s = ST(OP(LD(a[i]), LD(b[i])));                                                                                          \
				p[i] = s;                                                                                                                  \
				q[i] = s;                                                                                                                  \
			}                                                                                                                              \
			return;                                                                                                                        \
		}                                                                                                                                  \
		A level[LEVELS][BLOCK]; /* level[k] is the sum of a complete subtree, the largest subtree first */                               \
		for (size_t at = 0; at < n; at += BLOCK) {                                                                                         \
			size_t m = n - at < BLOCK ? n - at : BLOCK;                                                                                    \
			int top = 0;                                                                                                                   \
			for (int r = 0; r < nin; r++) {                                                                                                \
				const S *x = (const S *)in[r] + at;                                                                                        \
				int pairs = r + 1; /* leaf r completes one subtree for each trailing zero bit of r + 1 */                              \
				if (r & 1) {                                                                                                               \
					A *d = level[top - 1];                                                                                                 \
					_Pragma("GCC ivdep") for (size_t i = 0; i < m; i++)                                                                    \
						d[i] = OP(d[i], LD(x[i]));                                                                                         \
					pairs >>= 1;                                                                                                           \
				} else {                                                                                                                   \
					A *d = level[top++];                                                                                                   \
					_Pragma("GCC ivdep") for (size_t i = 0; i < m; i++)                                                                    \
						d[i] = LD(x[i]);                                                                                                   \
				}                                                                                                                          \
				for (; (r & 1) && !(pairs & 1); pairs >>= 1) {                                                                             \
					A *d = level[--top - 1], *y = level[top];                                                                              \
					_Pragma("GCC ivdep") for (size_t i = 0; i < m; i++)                                                                    \
						d[i] = OP(d[i], y[i]);                                                                                             \
				}                                                                                                                          \
			}                                                                                                                              \
			while (top > 1) {                                                                                                              \
				A *d = level[--top - 1], *y = level[top];                                                                                  \
				_Pragma("GCC ivdep") for (size_t i = 0; i < m; i++)                                                                        \
					d[i] = OP(d[i], y[i]);                                                                                                 \
			}                                                                                                                              \
			S *first = (S *)out[0] + at;                                                                                                   \
			_Pragma("GCC ivdep") for (size_t i = 0; i < m; i++)                                                                            \
				first[i] = ST(level[0][i]);                                                                                                \
			for (int r = 1; r < nout; r++)                                                                                                 \
				memcpy((S *)out[r] + at, first, m * sizeof(S));                                                                            \
		}                                                                                                                                  \
	}

GT_REDUCTION(sum_f32, float, float, SAME, SAME, SUM)
GT_REDUCTION(max_f32, float, float, SAME, SAME, MAX)
GT_REDUCTION(sum_bf16, uint16_t, float, gt_bf16_to_f32, gt_bf16_from_f32, SUM)
GT_REDUCTION(max_bf16, uint16_t, float, gt_bf16_to_f32, gt_bf16_from_f32, MAX)
GT_REDUCTION(sum_f16, uint16_t, float, gt_f16_to_f32, gt_f16_from_f32, SUM)
GT_REDUCTION(max_f16, uint16_t, float, gt_f16_to_f32, gt_f16_from_f32, MAX)
GT_REDUCTION(sum_f64, double, double, SAME, SAME, SUM)
GT_REDUCTION(max_f64, double, double, SAME, SAME, MAX)
/* Sums of integers use unsigned types, which wrap around by definition. In two's complement these are the signed sums. */
GT_REDUCTION(sum_i32, uint32_t, uint32_t, SAME, SAME, SUM)
GT_REDUCTION(sum_i64, uint64_t, uint64_t, SAME, SAME, SUM)
GT_REDUCTION(sum_u8, uint8_t, uint8_t, SAME, SAME, SUM_U8)
GT_REDUCTION(max_u8, uint8_t, uint8_t, SAME, SAME, LARGER)
GT_REDUCTION(max_i32, int32_t, int32_t, SAME, SAME, LARGER)
GT_REDUCTION(max_i64, int64_t, int64_t, SAME, SAME, LARGER)

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
