/* Predicts the time of an optimizer step of planned ranks: executes their lists of steps on a clock, with measured times of kernels and the
 * model of the links (report/cost_link.h) for communication.
 *
 *     GT_TRY(gt_times_read(arena, "times.json", &times, err));
 *     GT_TRY(gt_link_parse("100Gbit,5us", &link, err));
 *     GT_TRY(gt_cost_predict(world_plan, &times, &link, arena, &cost, err));
 *
 *     rank 0   launch launch ......... all_reduce launch          a collective begins when the last rank of its group has reached it;
 *     rank 1   launch launch launch    all_reduce launch          a receive ends when the message has arrived
 *
 * The lists are those of a run, so the model knows nothing of modes, buckets or schedules. On a device with streams, and on CPUs
 * of several hosts, communication on a stream of its own overlaps with kernels. */
#ifndef GT_REPORT_COST_MODEL_H
#define GT_REPORT_COST_MODEL_H

#include "report/cost_link.h"
#include "report/cost_times.h"
#include "session/world_plan.h"

/* All times are seconds of an optimizer step: step_s = compute_s + idle_s + exposed_s. */
struct gt_cost {
	double step_s;
	double compute_s;       /* kernels, mean over all ranks; at most the time of a step in which communication takes no time, which is
	                           shorter if kernels of the communication stream are hidden behind other kernels */
	double idle_s;          /* time in which ranks wait for each other although communication takes no time, mean over all ranks: the
	                           schedule of a pipeline, and unequal parts of the batch */
	double exposed_s;       /* how much longer the step takes because communication takes time */
	double communication_s; /* communication of the rank that communicates most, hidden behind kernels or not, without waiting */
	double efficiency;      /* compute_s / step_s */
	double scaled;          /* share of the time of kernels, 0 ... 1, that was measured for another size only */
};

/* GT_EDATA: the file of times has no row for a kernel, which the error message names. GT_EINTERNAL: the step lists of the ranks do not
 * match. */
enum gt_code gt_cost_predict(const struct gt_world_plan *w, const struct gt_times *times, const struct gt_link *link, struct gt_arena *a,
                             struct gt_cost *out, struct gt_err *err);

#endif
