/* Decides whether rounding explains the difference between two results of a call. kernels/tolerance.h has the tolerances, which are for
 * values of the order of 1; a tensor of smaller values is judged as if it were multiplied to that order. */
#ifndef GT_AGAINST_JUDGE_H
#define GT_AGAINST_JUDGE_H

#include "tolerance.h"

/* How the results of a call are judged. */
struct gt_judge {
	enum gt_opcode code;
	enum gt_tolerance_id id; /* the coarsest precision of the operands */
	double terms;            /* number of elements of the largest operand; 1 for element-wise updates */
	bool sums;               /* results in f32 are sums in f32 of values that are exact on both devices */
};
struct gt_judge gt_judge_of(const struct gt_opcall *call, enum gt_dtype type, bool tf32);

struct gt_verdict {
	double share;          /* worst difference in units of its tolerance: > 1 means that the results differ */
	double worst, allowed; /* that difference, and its tolerance */
	int64_t at;            /* its element, as an index in memory; -1: all elements are equal */
};

/* Compares n elements in memory of the host. metrics: they are a struct gt_metrics. `want` are the CPU's. */
struct gt_verdict gt_judge_tensor(const struct gt_judge *j, const struct gt_tdesc *d, bool metrics, const void *got, const void *want);

/* Returns the error of a result that the sums in a call may cause, in units of the change that one rounding of each input causes. */
double gt_judge_roundings(const struct gt_judge *j, const struct gt_tdesc *d);

/* Returns the largest difference of two arrays of d's elements; of integers, 0. */
double gt_judge_distance(const struct gt_tdesc *d, const void *a, const void *b);

/* Moves each floating-point element of 16 or 32 bits to one of its two neighbours. seed: decides which. */
void gt_judge_disturb(const struct gt_tdesc *d, void *p, uint32_t seed);

#endif
