/* Pipeline schedules: in which order each rank works on the micro-batches of one optimizer step. Pure functions of three numbers.
 *
 * p ranks, v stages on each (stage s runs on rank s % p), m micro-batches. A cell is one phase of one micro-batch on one stage.
 *   gpipe        all forward, then all backward (Huang et al., "GPipe", 2019)
 *   1f1b         one forward, one backward as soon as there is one: rank r keeps at most p - r micro-batches (Narayanan et al., "PipeDream-
 *                Flush" in "Memory-efficient pipeline-parallel DNN training", 2021)
 *   interleaved  1f1b with v > 1 stages a rank (Narayanan et al., "Efficient large-scale language model training on GPU clusters", 2021,
 *                section 2.2). Micro-batches go in groups of p; where the last group is smaller, there is more idle time
 *   zero-bubble  ZB-H1 (Qi et al., "Zero bubble pipeline parallelism", 2023, section 2.3): the gradients of parameters are put off, by
 *                r micro-batches on rank r, so that they fill what would be idle. At most p micro-batches are kept on every rank
 * In all of them every stage takes its micro-batches in ascending order in each phase, so that gradients add up in one order. */
#ifndef GT_PAR_PIPELINE_SCHEDULE_H
#define GT_PAR_PIPELINE_SCHEDULE_H

#include "conf/conf.h"

enum gt_cell_kind {
	GT_CELL_F,
	GT_CELL_B, /* without W */
	GT_CELL_W,
	GT_CELL_BW /* the whole backward pass */
};

struct gt_cell {
	enum gt_cell_kind kind;
	int stage, micro;
	int slot; /* which of the stage's sets of activations it uses */
};

struct gt_grid {
	enum gt_pipe_schedule schedule;
	int ranks, chunks, micros;
	int stages;          /* ranks * chunks */
	struct gt_cell **cell; /* [rank][i] */
	int *ncells;         /* one a rank */
	int *slots;          /* one a stage: micro-batches whose activations it keeps at once */
};

/* chunks: stages a rank; 1 unless interleaved. GT_EINTERNAL: out of range. In the arena. */
enum gt_code gt_grid_make(struct gt_arena *a, enum gt_pipe_schedule schedule, int ranks, int chunks, int micros, struct gt_grid **out,
                          struct gt_err *err);

/* Whether its backward pass is in two parts: gt_partition_make's split. */
static inline bool gt_pipe_splits(enum gt_pipe_schedule s)
{
	return s == GT_PIPE_ZERO_BUBBLE;
}

/* What a phase of one micro-batch takes on each stage; NULL: 1. Any unit of time. */
struct gt_grid_cost {
	const double *f, *b, *w;
	double transfer; /* between two ranks */
};

struct gt_grid_time {
	double span;          /* from the first cell's start to the last one's end */
	double *idle;         /* one a rank: share of span; over all ranks: */
	double bubble;
	double **start, **end; /* of each cell */
};

/* Runs it on paper. GT_EINTERNAL: the ranks wait for each other. In the arena. */
enum gt_code gt_grid_time(struct gt_arena *a, const struct gt_grid *g, const struct gt_grid_cost *cost, struct gt_grid_time *out,
                          struct gt_err *err);

/* The grid as text, a line a rank, a column a unit of time where every phase takes one (a whole backward pass two): "F3" is the forward pass
 * of micro-batch 3, "F3b" on the rank's second stage. At most `columns` characters a line; what does not fit ends in "...". *text is
 * malloc'ed. */
enum gt_code gt_grid_text(struct gt_arena *a, const struct gt_grid *g, int columns, char **text, size_t *len, struct gt_err *err);

#endif
