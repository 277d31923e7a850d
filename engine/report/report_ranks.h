/* Writes the part of the report that describes the ranks of a run. */
#ifndef GT_REPORT_REPORT_RANKS_H
#define GT_REPORT_REPORT_RANKS_H

#include "base/json.h"
#include "session/world_plan.h"

/* Verifies that the steps of all ranks match, and writes the memory, traffic and steps of each rank, the buckets, and the stages of a
 * pipeline as members of the open object *j. part: number of samples of one micro-batch that the first rank processes. */
enum gt_code gt_report_ranks(struct gt_json *j, const struct gt_world_plan *world_plan, int64_t part, struct gt_err *err);

#endif
