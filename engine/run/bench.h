/* Between bench.c (one rank) and bench_ranks.c (all of them together). */
#ifndef GT_RUN_BENCH_H
#define GT_RUN_BENCH_H

#include "gtrain.h"
#include "session/session.h"

#define GT_MEASURE_STAGES 64 /* of a rank: parallel.virtual_stages is not above it */

/* What each rank tells the others. Seconds of an optimizer step; of a cell, of one micro-batch. */
struct gt_measured {
	double step, wait;
	double rest; /* of the kernels that are no cell's: the check, the update */
	double cell[GT_MEASURE_STAGES][GT_PHASE_COUNT];
};

/* Runs the benchmark on this rank's session: fills rows, step_ms and so on of b, and *out. */
enum gt_code gt_bench_session(struct gt_session *s, int steps, struct gt_bench *b, struct gt_measured *out, struct gt_err *err);
/* Of all ranks: ranks, stages, wait, bubble, even. Called by all of them. */
enum gt_code gt_bench_ranks(struct gt_session *s, const struct gt_measured *own, struct gt_bench *b, struct gt_err *err);

#endif
