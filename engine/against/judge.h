/* Decides whether rounding explains the difference between the device's and the CPU's results of a call. kernels/tolerance.h has the
 * tolerances for values of magnitude 1. For a tensor whose largest magnitude is below 1, they are multiplied by this magnitude. */
#ifndef GT_AGAINST_JUDGE_H
#define GT_AGAINST_JUDGE_H

#include "tolerance.h"

/* How the results of a call are judged. */
struct gt_judge {
	enum gt_opcode code;
	enum gt_tolerance_id id; /* tolerances of the operand with the lowest precision */
	double terms;            /* number of elements of the largest operand; 1 for element-wise updates */
	bool sums;               /* the f32 results are sums, computed in f32, of inputs that are equal on both devices */
};
struct gt_judge gt_judge_of(const struct gt_opcall *call, enum gt_dtype type, bool tf32);

struct gt_verdict {
	double share;          /* worst difference in units of its tolerance: > 1 means that the results differ */
	double worst, allowed; /* the difference with this share, and its tolerance, both absolute */
	int64_t at;            /* index in memory of the element with this difference; -1: all elements are equal */
};

/* Compares the device's tensor `got` with the CPU's tensor `want`, both in host memory and described by d. metrics: both are a struct
 * gt_metrics. */
struct gt_verdict gt_judge_tensor(const struct gt_judge *j, const struct gt_tdesc *d, bool metrics, const void *got, const void *want);

/* Returns the factor between two changes of a result: the largest change that rounding in the sums of the call may cause, divided by the
 * change that one rounding of each input causes. */
double gt_judge_roundings(const struct gt_judge *j, const struct gt_tdesc *d);

/* Returns the largest absolute difference between elements of tensors a and b, both described by d; 0 for integers. */
double gt_judge_distance(const struct gt_tdesc *d, const void *a, const void *b);

/* Replaces each f32, bf16 or f16 element of tensor p by one of the two adjacent floating-point numbers, chosen at random from the seed. */
void gt_judge_disturb(const struct gt_tdesc *d, void *p, uint32_t seed);

#endif
