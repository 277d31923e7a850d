/* For tests of the CPU backend's own loops: one call on a device of a given number of threads, buffers in physical order. */
#ifndef GT_TESTS_CPU_RAW_H
#define GT_TESTS_CPU_RAW_H

#include "backend.h"
#include "number.h"
#include "test.h"

/* prepare, launch with exactly the scratch that was asked for (filled with NaN, a canary behind it), release. */
enum gt_code raw_try(int threads, const struct gt_opcall *call, void *const *in, void *const *out, const struct gt_step_args *step_args,
                     struct gt_err *err);
/* The same; a failure is the test's. */
bool raw_run(int threads, const struct gt_opcall *call, void *const *in, void *const *out, const struct gt_step_args *step_args);

void *raw_alloc(enum gt_dtype t, int64_t n); /* aligned to 64, filled with 0xff: NaN */
void raw_random(enum gt_dtype t, void *p, int64_t n, uint32_t seed, double lo, double hi);
double raw_uniform(uint32_t seed, uint32_t i); /* [0, 1) */

/* |got[i] - want[i]| <= tol[i] + half a unit in the last place of the dtype; reports the worst. Equal NaN and infinity pass. */
void raw_check(const char *file, int line, const char *what, enum gt_dtype t, const void *got, const double *want, const double *tol,
               int64_t n);
#define RAW_CHECK(...) raw_check(__FILE__, __LINE__, __VA_ARGS__)

static const enum gt_dtype raw_types[] = {GT_F32, GT_BF16, GT_F64};
/* Relative error of one operation in the arithmetic of the type. */
static inline double raw_eps(enum gt_dtype t)
{
	return t == GT_F64 ? 0x1p-53 : 0x1p-24;
}

#endif
