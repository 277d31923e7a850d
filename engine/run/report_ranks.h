/* The part of gt_report that is about ranks. */
#ifndef GT_RUN_REPORT_RANKS_H
#define GT_RUN_REPORT_RANKS_H

#include "gtrain.h"
#include "session/world_plan.h"

/* Fills in what each rank has, sends and does, and proves that it fits together; in the report's arena. */
enum gt_code gt_report_ranks(struct gt_report *r, const struct gt_world_plan *world_plan, struct gt_err *err);

#endif
