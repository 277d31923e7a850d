/* What the backend's own loops share: clones for several instruction sets, the split over threads, the types.
 *
 * A range function does elements [begin, end) and carries GT_CLONES; gt_cpu_for() cuts the work. An OpenMP region inside a cloned
 * function would be compiled for the baseline only, hence the two levels. Results never depend on the cut: a function either
 * treats elements separately, or reduces over chunks whose boundaries are fixed. */
#ifndef GT_KERNELS_CPU_LOOPS_H
#define GT_KERNELS_CPU_LOOPS_H

#include "cpu/cpu.h"

/* GT_NO_CLONES: for the compiler's -march alone, to compare instruction sets. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(GT_NO_CLONES)
#define GT_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define GT_CLONES
#endif

typedef void gt_range_fn(const void *ctx, int64_t begin, int64_t end);

/* fn over [0, n): cut at multiples of `align`, no piece shorter than `grain` (a fork and join cost ~2 µs). */
void gt_cpu_for(const struct gt_dev *dev, int64_t n, int64_t grain, int64_t align, gt_range_fn *fn, const void *ctx);

/* y = relu(y) over n elements of f32, bf16 or f64 (eltwise.c). */
void gt_cpu_relu(const struct gt_dev *dev, enum gt_dtype type, void *y, int64_t n);

/* Does gt_cpu_for keep this to one thread? Then a kernel is small (launch_list.c). */
static inline bool gt_cpu_alone(int64_t n, int64_t grain)
{
	return n / (grain > 0 ? grain : 1) < 2;
}

/* Column of a table with one entry a dtype; -1: not one of these. */
enum { GT_T_F32, GT_T_BF16, GT_T_F64, GT_T_COUNT };
static inline int gt_cpu_type(enum gt_dtype t)
{
	return t == GT_F32 ? GT_T_F32 : t == GT_BF16 ? GT_T_BF16 : t == GT_F64 ? GT_T_F64 : -1;
}

/* calloc of a kernel that starts with struct gt_kernel. */
#define GT_KERNEL_NEW(k, fn, text, err)                                                                                                    \
	do {                                                                                                                                   \
		if (!((k) = calloc(1, sizeof *(k))))                                                                                               \
			return gt_fail(err, GT_EFAIL, "out of memory");                                                                                \
		(k)->head.launch = (fn);                                                                                                           \
		(k)->head.describe = (text);                                                                                                       \
	} while (0)

#endif
