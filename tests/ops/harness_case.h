/* A case of the op table on a backend: made-up inputs, NaN wherever a kernel must write, forward and backward. */
#ifndef GT_TESTS_HARNESS_CASE_H
#define GT_TESTS_HARNESS_CASE_H

#include "harness.h"
#include "harness_net.h"

double *harness_plain(const struct harness *h, gt_vid v); /* zeros, one a value's element; free() */

/* Runs n's graph, which stays in h: inputs and parameters as golden/make_ops.py makes them, gradients of parameters begin at `grads` where
 * they are added to. want_y: the reference's y, which decides where a fused relu stops the gradient; NULL: our own. */
enum gt_code case_run(struct harness *h, struct net *n, double grads, const double *want_y, struct gt_err *err);
enum gt_code case_forward(struct harness *h, const struct net *n, struct gt_err *err); /* once more */

/* gt_tolerance_rounding (kernels/tolerance.h) of the case's operation. */
double case_rounding(const struct opcase *c, double top);

#endif
