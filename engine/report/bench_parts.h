/* Internal to the measurements of gtrain bench: bench.c and bench_world.c. */
#ifndef GT_REPORT_BENCH_PARTS_H
#define GT_REPORT_BENCH_PARTS_H

#include "gtrain_report.h"
#include "session/session.h"

/* Measures the steps and kernels of a session's rank, without the measurements of other ranks. The caller frees *out (gt_bench_free). */
enum gt_code gt_bench_session(struct gt_session *s, int steps, struct gt_bench **out, struct gt_err *err);

#endif
