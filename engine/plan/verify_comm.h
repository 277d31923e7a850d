/* Verifies that the programs of all ranks of a world match, whatever strategy made them: every send has a receive, all members of a group
 * call the same collectives in the same order with the same operands, and no rank waits for ever. A strategy is a pure function, so any
 * rank can make the programs of all ranks and verify them, on any machine.
 *
 *	rank 0:  all_reduce #0     send a -> rank 1      all_reduce #1      must match, in this order
 *	rank 1:  all_reduce #0     recv a <- rank 0      all_reduce #1
 *
 * The verification relies on the rules of comm.h: the collectives of a group are in one order; between two ranks of a group, the k-th send
 * in one direction matches the k-th receive; a send may complete before its receive begins; a rank executes its steps in list order, and
 * adjacent transfers run at the same time (unless gt_step.apart is set). */
#ifndef GT_PLAN_VERIFY_COMM_H
#define GT_PLAN_VERIFY_COMM_H

#include "plan/program.h"

/* Coordinates of a rank of the world: its group and its rank within the group, for each kind of group (enum gt_group). */
struct gt_rank_coords {
	int color[GT_GROUP_COUNT]; /* ranks with the same color form one group; -1: the rank is in no group of this kind */
	int rank[GT_GROUP_COUNT];  /* rank within the group; in GT_GROUP_WORLD, the rank's number in error messages */
	int copies;                /* number of copies of the model that the rank's copy stands for, including itself: all do the same */
};

/* Returns the coordinates of a rank when ranks are numbered stage by stage: the data-parallel copies of one stage have consecutive ranks,
 * because they exchange the most data. world must be a multiple of stages. With stages = 1, the data group has all ranks. */
struct gt_rank_coords gt_rank_coords_of(int rank, int world, int stages);

struct gt_comm_report {
	int64_t transfers, collectives; /* numbers of transfers and collectives over all ranks; a collective counts once for its group */
	double bytes;                   /* sum of the sizes of all transfers, in bytes */
	/* Bounds for gt_comm_spec.pair_bytes, the send buffer of each pair of ranks, in bytes. Each message counts 64 bytes for its header
	 * and is rounded up to 64 bytes. */
	size_t need;  /* lower bound: with a smaller buffer, ranks would wait for each other for ever */
	size_t ahead; /* upper bound: with a buffer of this size, no send ever waits, however slow its receiver is */
};

/* Verifies the programs. prog and coords have one entry for each of `world` ranks. Of copies of the model that do the same, one is enough
 * (gt_rank_coords.copies): the members of a data group then differ in nothing that is verified, and a pipeline communicates only within its
 * copy. The report counts them all. Temporary memory is in the arena. Returns
 * GT_EINTERNAL if the programs do not match; the error names the rank, the step and the transfer. */
enum gt_code gt_verify_comm(struct gt_arena *a, const struct gt_prog *const *prog, const struct gt_rank_coords *coords, int world,
                            struct gt_comm_report *out, struct gt_err *err);

#endif
