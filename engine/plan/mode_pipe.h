/* Mode "pipe": functions that a session calls before it makes plans. They compute the number of activation slots and verify that the
 * transfers of all ranks match. The program itself is made from the plans by plan/mode_pipe.c. */
#ifndef GT_PLAN_MODE_PIPE_H
#define GT_PLAN_MODE_PIPE_H

#include "plan/pipeline_schedule.h"
#include "plan/strategy.h"
#include "plan/verify_comm.h"
#include "plan/pipeline_partition.h"

/* Returns the number of stages on each of the npipe ranks: parallel.virtual_stages with the interleaved schedule, else 1. */
int gt_pipe_stages(const struct gt_conf *c, int npipe);

/* Returns whether cell c of the schedule executes the calls of `phase`. */
static inline bool gt_cell_has(const struct gt_cell *c, enum gt_phase phase)
{
	switch (c->kind) {
	case GT_CELL_F:
		return phase == GT_PHASE_F;
	case GT_CELL_B:
		return phase == GT_PHASE_B;
	case GT_CELL_W:
		return phase == GT_PHASE_W;
	case GT_CELL_BW:
		break;
	}
	return phase != GT_PHASE_F;
}

/* Computes the memory that `rank` needs for a step of at most `units` micro-batches. Sets *act_slots to the number of activation slots
 * of all its stages together, and *batches to the number of micro-batches whose images and labels it keeps at once. stages: number of
 * stages on each rank. */
enum gt_code gt_pipe_act_slots(struct gt_arena *a, enum gt_pipe_schedule schedule, int ranks, int stages, int rank, int units,
                               int *act_slots, int *batches, struct gt_err *err);

/* Verifies with gt_verify_comm that the ranks' transfers match in a step of `units` micro-batches. Each micro-batch has the batch size of
 * the partitioned graph. */
enum gt_code gt_pipe_verify(struct gt_arena *a, const struct gt_partition *partition, enum gt_pipe_schedule schedule, int units,
                            struct gt_comm_report *out, struct gt_err *err);

#endif
