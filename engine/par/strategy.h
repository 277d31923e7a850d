/* A parallel mode is a pure function from plans to the list of steps of one rank. One const row a mode; nothing else in the engine
 * knows which mode runs. */
#ifndef GT_PAR_STRATEGY_H
#define GT_PAR_STRATEGY_H

#include "conf/conf.h"
#include "plan/step.h"

/* Where a rank stands. */
struct gt_place_of_rank {
	int rank, world;
	int data, ndata; /* its number among the ranks that have the same part of the model and other samples, and how many these are */
	int pipe, npipe; /* its number among the stages of its copy of the model */
};

/* One part of a micro-batch of this rank. With reproducible = "world" a part belongs to a virtual shard, whose gradients are made alone, in the
 * level of GRAD that is free, and then summed in comm.h's tree: with as many levels below as are complete. */
struct gt_unit {
	struct gt_plan *plan; /* NULL: the part is empty; a graph of batch 0: and yet there is something to do (plan/syncbn.h) */
	int level;            /* of GRAD */
	int carry;            /* behind it: level is added to level - 1, that to level - 2, … so many times */
	bool clears;          /* before it: level becomes 0, since no part that adds to it has samples */
	struct gt_plan **stage; /* mode pipe: the plans of this rank's stages, ascending; plan is the first */
};

/* Mode pipe: what ends a mini-batch on a stage (gt_defer_bn_prepare). */
struct gt_ending {
	const struct gt_graph *graph; /* of the stage */
	struct gt_call *call;
	int n;
};

/* What there is to do: one optimizer step, or one batch of an evaluation. */
struct gt_job {
	struct gt_arena *arena;
	struct gt_space *space;
	struct gt_unit *unit; /* of this rank, in the loader's order; index: the step's micro */
	int nunits;
	struct gt_plan *like; /* the plan of part 0, which every rank has: what a rank without samples goes by */
	int64_t samples;      /* of all ranks */
	const struct gt_update *update; /* NULL: an evaluation */
	struct gt_place_of_rank at;
	enum gt_pipe_schedule schedule; /* mode pipe */
	int nstages;          /* mode pipe: stages of this rank */
	int chunks;           /* mode pipe: consecutive units that are one mini-batch */
	const struct gt_ending *ending; /* mode pipe: one a stage of this rank; NULL: nothing ends a mini-batch */
	bool queues;          /* steps wait in streams, so that what joins ranks can go on beside kernels; else they run in the order of the list */
};

struct gt_strategy {
	const char *name; /* parallel.mode */
	/* Refuses by both names what the mode cannot do together with the rest of the config; fills in where a rank stands. */
	enum gt_code (*place)(const struct gt_conf *c, int rank, int world, struct gt_place_of_rank *out, struct gt_err *err);
	/* How the flat arenas are cut for it; NULL: one bucket. common: ranks may have memory in common. */
	void (*cut)(const struct gt_conf *c, const struct gt_place_of_rank *at, bool common, struct gt_shard_spec *out);
	enum gt_code (*schedule)(const struct gt_job *job, struct gt_prog *out, struct gt_err *err);
};

extern const struct gt_strategy gt_strategy_single, gt_strategy_dp, gt_strategy_ddp, gt_strategy_zero, gt_strategy_pipe;

/* NULL: this build has no such mode. */
const struct gt_strategy *gt_strategy_find(const char *name);

#endif
