/* Pipeline schedules: the order in which each rank works on the micro-batches of one optimizer step. A schedule is a pure function of three
 * counts: p ranks, v stages on each rank (stage s runs on rank s % p), and m micro-batches. A cell is one phase of one micro-batch on one
 * stage.
 *
 *   gpipe        all forward passes, then all backward passes (Huang et al., "GPipe", 2019)
 *   1f1b         alternates one forward and one backward pass as soon as a backward pass can run; rank r keeps the activations of at most
 *                p - r micro-batches (Narayanan et al., "PipeDream-Flush" in "Memory-efficient pipeline-parallel DNN training", 2021)
 *   interleaved  1f1b with v > 1 stages on each rank (Narayanan et al., "Efficient large-scale language model training on GPU clusters",
 *                2021, section 2.2). Micro-batches are processed in groups of p; a smaller last group adds idle time
 *   zero-bubble  ZB-H1 (Qi et al., "Zero bubble pipeline parallelism", 2023, section 2.3): rank r delays the gradients of parameters by r
 *                micro-batches, so that they fill idle time. Every rank keeps the activations of at most p micro-batches
 *
 * In every schedule each stage processes its micro-batches in ascending order in each phase, so gradients are added in one order.
 *
 * gt_grid_text prints a schedule as a timetable. 1f1b with p = 3 and m = 5; F: forward, B: backward (two columns), ".": idle:
 *
 *	rank 0 F0 F1 F2 .  .  .  .  B0 B0 F3 B1 B1 F4 B2 B2 .  B3 B3 .  B4 B4
 *	rank 1 .  F0 F1 .  .  B0 B0 F2 B1 B1 F3 B2 B2 F4 B3 B3 .  B4 B4 .  .
 *	rank 2 .  .  F0 B0 B0 F1 B1 B1 F2 B2 B2 F3 B3 B3 F4 B4 B4 .  .  .  .
 *
 * zero-bubble with the same p and m; B: gradients of activations, W: gradients of parameters:
 *
 *	rank 0 F0 F1 F2 .  .  B0 W0 F3 B1 W1 F4 B2 W2 B3 W3 B4 W4
 *	rank 1 .  F0 F1 .  B0 F2 B1 W0 F3 B2 W1 F4 B3 W2 B4 W3 W4
 *	rank 2 .  .  F0 B0 F1 B1 F2 B2 W0 F3 B3 W1 F4 B4 W2 W3 W4 */
#ifndef GT_PLAN_PIPELINE_SCHEDULE_H
#define GT_PLAN_PIPELINE_SCHEDULE_H

#include "conf/conf.h"

enum gt_cell_kind {
	GT_CELL_F, /* forward pass */
	GT_CELL_B, /* backward pass of one micro-batch on one stage, without the gradients of parameters */
	GT_CELL_W, /* gradients of parameters */
	GT_CELL_BW /* the whole backward pass */
};

struct gt_cell {
	enum gt_cell_kind kind;
	int stage; /* index of the pipeline stage, 0 … stages - 1 */
	int micro; /* index of the micro-batch, 0 … micros - 1 */
	int slot;  /* index of the activation slot that the cell uses, among the slots of its stage */
};

struct gt_grid {
	enum gt_pipe_schedule schedule;
	int ranks;
	int chunks;            /* stages on each rank */
	int micros;            /* micro-batches */
	int stages;            /* ranks * chunks */
	struct gt_cell **cell; /* [rank][i], in execution order */
	int *ncells;           /* [rank]: number of cells of the rank */
	int *slots;            /* [stage]: number of activation slots: micro-batches whose activations the stage keeps at the same time */
};

/* Makes a schedule in arena memory. chunks: number of stages on each rank, which is 1 unless the schedule is interleaved. Returns
 * GT_EINTERNAL if an argument is out of range. */
enum gt_code gt_grid_make(struct gt_arena *a, enum gt_pipe_schedule schedule, int ranks, int chunks, int micros, struct gt_grid **out,
                          struct gt_err *err);

/* Returns whether the schedule divides the backward pass into two phases, B and W. This is the argument `split` of gt_partition_make. */
static inline bool gt_pipe_splits_backward(enum gt_pipe_schedule s)
{
	return s == GT_PIPE_ZERO_BUBBLE;
}

/* Durations of the phases and transfers of a schedule, all in the same unit of time. */
struct gt_grid_cost {
	const double *f, *b, *w; /* [stage]: duration of phase F, B and W of one micro-batch; NULL: 1 on every stage */
	double transfer;         /* duration of a transfer from one rank to another */
};

struct gt_grid_time {
	double span;           /* time from the start of the first cell to the end of the last cell */
	double *idle;          /* [rank]: share of span in which the rank is idle, 0 … 1 */
	double bubble;         /* mean of idle[] over all ranks, 0 … 1 */
	double **start, **end; /* [rank][i]: times at which cell i of the rank starts and ends */
};

/* Computes when each cell of a schedule runs. The arrays of *out are in arena memory. Returns GT_EINTERNAL if the ranks would wait for each
 * other for ever. */
enum gt_code gt_grid_time(struct gt_arena *a, const struct gt_grid *g, const struct gt_grid_cost *cost, struct gt_grid_time *out,
                          struct gt_err *err);

/* Prints a schedule as text, one line for each rank. Each phase takes one column, a whole backward pass two. "F3" is the forward pass of
 * micro-batch 3; "F3b" is the same on the rank's second stage. A line has at most `columns` characters; a line that is cut off ends in
 * "...". *text is malloc'ed. */
enum gt_code gt_grid_text(struct gt_arena *a, const struct gt_grid *g, int columns, char **text, size_t *len, struct gt_err *err);

#endif
