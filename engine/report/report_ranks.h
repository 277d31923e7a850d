/* Fills in the part of struct gt_report that describes the ranks of a run. */
#ifndef GT_REPORT_REPORT_RANKS_H
#define GT_REPORT_REPORT_RANKS_H

#include "gtrain_report.h"
#include "session/world_plan.h"

/* Fills in the memory, traffic and steps of each rank, in the arena of the report, and verifies that the steps of all ranks match. */
enum gt_code gt_report_ranks(struct gt_report *r, const struct gt_world_plan *world_plan, struct gt_err *err);

#endif
