/* Mode "pipe": what a session needs to know before it has plans. It sizes the activation slots and proves that the transfers of the
 * schedule fit together (par/pipe.c makes the program itself, once plans exist). */
#ifndef GT_PAR_PIPE_H
#define GT_PAR_PIPE_H

#include "par/pipeline_schedule.h"
#include "par/strategy.h"
#include "par/verify_comm.h"
#include "plan/pipeline_partition.h"

/* Number of stages on each of npipe ranks: parallel.virtual_stages with the interleaved schedule, else 1. */
int gt_pipe_stages(const struct gt_conf *c, int npipe);

/* Whether the calls of a phase belong to a cell of the schedule. */
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

/* Computes what a rank needs for a step of up to `units` micro-batches. *act_slots: activation slots of all its stages together; *batches:
 * number of micro-batches whose images and labels it keeps at once. stages: number of stages on each rank. */
enum gt_code gt_pipe_act_slots(struct gt_arena *a, enum gt_pipe_schedule schedule, int ranks, int stages, int rank, int units,
                               int *act_slots, int *batches, struct gt_err *err);

/* Proves the transfers of a pipeline over `units` micro-batches (gt_verify_comm). Each micro-batch has the batch size of the partitioned
 * graph. */
enum gt_code gt_pipe_verify(struct gt_arena *a, const struct gt_partition *partition, enum gt_pipe_schedule schedule, int units,
                            struct gt_comm_report *out, struct gt_err *err);

#endif
