/* The benchmark: bench.c measures one rank, bench_ranks.c combines the measurements of all ranks. */
#ifndef GT_REPORT_BENCH_H
#define GT_REPORT_BENCH_H

#include "gtrain_report.h"
#include "session/session.h"

#define GT_MEASURE_STAGES 64 /* maximum number of stages of a rank, the maximum of parallel.virtual_stages */

/* The measurements of one rank, which the ranks exchange. All times are in seconds. */
struct gt_measured {
	double step, wait; /* time of an optimizer step; time that the rank spends in communication in a step */
	double rest; /* time in a step of kernels that belong to no cell of the pipeline: the check and the update */
	double cell[GT_MEASURE_STAGES][GT_PHASE_COUNT]; /* time of one micro-batch in each phase of each stage of the rank */
};

/* Runs the benchmark on the session of this rank. Fills *out, and the members of b that describe one rank (rows, step_ms, …). */
enum gt_code gt_bench_session(struct gt_session *s, int steps, struct gt_bench *b, struct gt_measured *out, struct gt_err *err);
/* Exchanges the measurements, and fills the members of b that describe all ranks (ranks, stages, wait, bubble, even). All ranks call it. */
enum gt_code gt_bench_ranks(struct gt_session *s, const struct gt_measured *own, struct gt_bench *b, struct gt_err *err);

#endif
