/* What a session must know of mode "pipe" before it has plans. */
#ifndef GT_PAR_PIPE_H
#define GT_PAR_PIPE_H

#include "par/pipeline_schedule.h"
#include "par/strategy.h"
#include "par/verify_comm.h"
#include "plan/pipeline_partition.h"

/* Stages of each rank, with npipe ranks. */
int gt_pipe_stages(const struct gt_conf *c, int npipe);

/* Whether a cell does the calls of a phase. */
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

/* Sets of activations that a rank needs for at most `units` micro-batches, and batches that it reads at once. */
enum gt_code gt_pipe_room(struct gt_arena *a, enum gt_pipe_schedule schedule, int ranks, int stages, int rank, int units, int *seats, int *batches,
                          struct gt_err *err);

/* Proves the transfers of a pipeline over `units` micro-batches of as many samples as the graph has that is cut. */
enum gt_code gt_pipe_verify(struct gt_arena *a, const struct gt_partition *cut, enum gt_pipe_schedule schedule, int units, struct gt_comm_report *out,
                           struct gt_err *err);

#endif
