/* The benchmark: bench.c measures one rank, bench_ranks.c combines the measurements of all ranks. */
#ifndef GT_RUN_BENCH_H
#define GT_RUN_BENCH_H

#include "gtrain.h"
#include "session/session.h"

#define GT_MEASURE_STAGES 64 /* maximum number of stages of a rank, the maximum of parallel.virtual_stages */

/* The measurements that ranks exchange, in seconds: for an optimizer step; for a cell of the pipeline, one micro-batch. */
struct gt_measured {
	double step, wait;
	double rest; /* kernels that belong to no cell: the check and the update */
	double cell[GT_MEASURE_STAGES][GT_PHASE_COUNT];
};

/* Runs the benchmark on the session of this rank. Fills *out, and the members of b about one rank (rows, step_ms, …). */
enum gt_code gt_bench_session(struct gt_session *s, int steps, struct gt_bench *b, struct gt_measured *out, struct gt_err *err);
/* Exchanges the measurements, and fills the members of b about all ranks (ranks, stages, wait, bubble, even). All ranks call it. */
enum gt_code gt_bench_ranks(struct gt_session *s, const struct gt_measured *own, struct gt_bench *b, struct gt_err *err);

#endif
