/* Proof that the programs of all ranks of a world fit together, whatever mode made them: every send meets the recv that it is meant for,
 * every collective is entered by all members of its group in the same order with the same operands, and no rank waits for ever. Every
 * rank makes the lists of all ranks anyway (a strategy is a pure function), so every rank can prove it, on any machine.
 *
 * What is taken for granted is comm.h: the collectives of a group are in one order, transfers between two ranks of a group in one direction
 * match in their order, sends may run ahead of their recvs, and a rank executes its steps in the order of its list, transfers that follow each
 * other side by side (gt_step.apart). */
#ifndef GT_PAR_VERIFY_COMM_H
#define GT_PAR_VERIFY_COMM_H

#include "plan/step.h"

/* Where a rank of the world sits in each kind of group. */
struct gt_rank_coords {
	int color[GT_GROUP_COUNT]; /* ranks of one color are one group; -1: it is in none */
	int rank[GT_GROUP_COUNT];  /* its number there */
};

/* Stage-major: the data-parallel copies of a stage are neighbours, since they have the most to tell each other. world is a multiple of
 * stages; stages 1: the data group is the world. */
struct gt_rank_coords gt_rank_coords_of(int rank, int world, int stages);

struct gt_comm_report {
	int64_t transfers, collectives; /* of all ranks; a collective counts once */
	double bytes;                   /* of the transfers */
	/* For gt_comm_spec.pair_bytes, with 64 bytes for the head of each message and messages rounded up to 64: */
	size_t need;  /* with less, ranks would wait for each other for ever */
	size_t ahead; /* with this much, no send ever waits, however slow its receiver is */
};

/* prog: one a rank, seat: the same. Everything temporary is in the arena. GT_EINTERNAL: a sentence that names rank, step and transfer. */
enum gt_code gt_verify_comm(struct gt_arena *a, const struct gt_prog *const *prog, const struct gt_rank_coords *seat, int world, struct gt_comm_report *out,
                      struct gt_err *err);

#endif
