/* Strategies: the parallel modes. A strategy is a pure function from plans to the list of steps of one rank. Each mode is one const row of
 * functions (gt_strategy); nothing else in the engine knows which mode runs.
 *
 *	const struct gt_strategy *st = gt_strategy_of(GT_MODE_DDP);
 *	st->position(conf, rank, world, &at, err);    checks the config; the rank's position in the world
 *	st->shard(conf, &at, &offers, &space->shards.spec);  buckets and shards of the arenas
 *	…                                          the caller makes the plans and describes the work as a gt_job
 *	st->schedule(&job, &prog, err);            the steps of this rank
 *
 *	plans (one for each micro-batch size) ---+
 *	gt_update (optimizer's calls) -----------+--> gt_job --> schedule() --> gt_prog of this rank --> executor
 *	position of the rank, bucket layout -----+ */
#ifndef GT_PAR_STRATEGY_H
#define GT_PAR_STRATEGY_H

#include "conf/conf.h"
#include "plan/step.h"

/* Position of a rank in the world. The world is ndata copies of the model, each divided into npipe pipeline stages. */
struct gt_rank_position {
	int rank, world;
	int data, ndata; /* index among the ranks that have the same part of the model and other samples, and the number of these ranks */
	int pipe, npipe; /* index among the ranks that form one copy of the model, in the order of their stages, and their number */
};

/* A unit: the part of one micro-batch that a rank processes at once. With reproducible = "world" a unit belongs to a virtual shard of the
 * batch. The gradients of each virtual shard are made alone, in a free level (copy) of GRAD, and then summed in the fixed tree of comm.h:
 * after a shard is complete, its level is added to the level below, and so on for each level below that is complete too. */
struct gt_unit {
	struct gt_plan *plan;   /* NULL: the unit has no samples and no work; a plan of batch 0: no samples, but communication in which
	                           every rank must take part (plan/syncbn.h) */
	int level;              /* level of GRAD that the unit's gradients are written or added to */
	int carry;              /* number of additions after the unit: level is added to level - 1, that one to level - 2, … */
	bool clears;            /* before the unit, `level` is set to 0, because no unit that adds to it has samples */
	struct gt_plan **stage; /* mode pipe: the plans of this rank's stages, in ascending order; plan is the first one */
};

/* Mode pipe: the calls that end a mini-batch on one stage (gt_defer_bn_prepare). */
struct gt_bn_commit {
	const struct gt_graph *graph; /* of the stage */
	struct gt_call *call;
	int n; /* number of calls */
};

/* The work of one program: one optimizer step, or one batch of an evaluation. */
struct gt_job {
	struct gt_arena *arena; /* memory for the program */
	struct gt_space *space;
	struct gt_unit *unit;   /* units of this rank, in the order in which the loader reads them; the index is gt_step.micro */
	int nunits;
	struct gt_plan *like;   /* plan of part 0 of the batch, which every rank has; a rank without samples takes the order of communication
	                           from it */
	int64_t samples;        /* number of samples over all ranks */
	const struct gt_update *update; /* NULL: an evaluation */
	struct gt_rank_position at;
	enum gt_pipe_schedule schedule; /* mode pipe */
	int nstages;            /* mode pipe: number of stages of this rank */
	int chunks;             /* mode pipe: number of consecutive units that form one mini-batch */
	const struct gt_bn_commit *bn_commit; /* mode pipe: one for each stage of this rank; NULL: no calls end a mini-batch */
	bool queues;            /* the device queues steps in streams, so that communication overlaps with kernels; false: steps run in list
	                           order */
};

/* What the device and the model offer to gt_strategy.shard. */
struct gt_offers {
	bool shared_memory; /* the ranks of a data group can share one PARAM and one WORK arena */
	bool factors_pay;   /* GT_SYNC_FACTORED_UPDATE is possible and moves fewer bytes than gradients would (gt_plan_factors_pay) */
};

struct gt_strategy {
	const char *name; /* parallel.mode */
	/* Computes the position of a rank. GT_ECONFIG: the config has a setting that this mode does not support; the error names the setting
	 * and the mode. */
	enum gt_code (*position)(const struct gt_conf *c, int rank, int world, struct gt_rank_position *out, struct gt_err *err);
	/* Fills in how the flat arenas are divided; *out is all zero before. NULL: one bucket. */
	void (*shard)(const struct gt_conf *c, const struct gt_rank_position *at, const struct gt_offers *offers, struct gt_shard_spec *out);
	/* Makes the steps of this rank, in job->arena. */
	enum gt_code (*schedule)(const struct gt_job *job, struct gt_prog *out, struct gt_err *err);
};

extern const struct gt_strategy gt_strategy_single, gt_strategy_dp, gt_strategy_ddp, gt_strategy_zero, gt_strategy_pipe;

/* The strategy of a mode. Never NULL. */
const struct gt_strategy *gt_strategy_of(enum gt_mode mode);

#endif
