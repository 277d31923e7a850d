/* Strategies: the parallel modes. A strategy turns plans (graphs whose nodes are prepared kernels, plan/plan.h) into the list of steps of
 * one rank. It is a const row of functions (gt_strategy) whose results depend only on their arguments. No other part of the engine depends
 * on the mode.
 *
 *	const struct gt_strategy *st = gt_strategy_of(GT_MODE_DDP);
 *	st->position(conf, rank, world, &at, err);           checks the config and computes the rank's position
 *	st->shard(conf, &at, &offers, &space->shards.spec);  divides the arenas into buckets and shards
 *	…                                                    the caller makes the plans and describes the work as a gt_job
 *	st->schedule(&job, &prog, err);                      makes the steps of this rank
 *
 *	plans (one for each micro-batch size) ---+
 *	gt_update (calls of the optimizer) ------+--> gt_job --> schedule() --> gt_prog of this rank --> executor
 *	position of the rank, bucket layout -----+ */
#ifndef GT_PLAN_STRATEGY_H
#define GT_PLAN_STRATEGY_H

#include "conf/conf.h"
#include "plan/program.h"

/* Position of a rank in the world. The world is ndata copies of the model, each divided into npipe pipeline stages. */
struct gt_rank_position {
	int rank, world;
	int data, ndata; /* the data group (ranks with the same part of the model): index of this rank in the group, size of the group */
	int pipe, npipe; /* the ranks of one copy of the model, in the order of their stages: index of this rank, number of these ranks */
};

/* A unit: the part of one micro-batch that a rank processes at once. With reproducible = "world" the batch is divided into virtual
 * shards, and a unit belongs to one shard. The gradients of each virtual shard are computed in a free level (copy) of the arena GRAD and
 * then summed in the fixed tree of comm.h: when a shard is complete, its level is added to the level below, and so on for each level below
 * that is complete too. */
struct gt_unit {
	struct gt_plan *plan;   /* the plan that the unit executes. NULL: the unit has no samples and no work. A plan with batch 0: the unit has
	                           no samples, but takes part in communication that needs every rank (plan/syncbn.h) */
	int level;              /* level (copy) of GRAD to which the unit writes or adds its gradients */
	int carry;              /* number of additions of levels of GRAD after the unit: `level` to level - 1, then level - 1 to level - 2, … */
	bool clears;            /* a step sets `level` of GRAD to 0 before the unit, because no unit with samples writes to this level */
	struct gt_plan **stage; /* mode pipe: the plans of this rank's stages, in ascending order; the member `plan` is stage[0] */
};

/* The work of one program: one optimizer step, or one batch of an evaluation. */
struct gt_job {
	struct gt_arena *arena; /* memory for the program */
	struct gt_space *space;
	struct gt_unit *unit;   /* units of this rank, in the order in which the loader reads them; the index is gt_step.micro */
	int nunits;
	struct gt_plan *like;   /* the plan of part 0 of the batch, which is never empty. Every rank has this plan; a rank without samples uses
	                           the order of its communication steps */
	int64_t samples;        /* number of samples over all ranks */
	const struct gt_update *update; /* calls that check and apply the gradients; NULL: the program is an evaluation */
	struct gt_rank_position at;
	enum gt_pipe_schedule schedule; /* mode pipe */
	int nstages;            /* mode pipe: number of stages of this rank */
	bool queues;            /* true: the device queues steps in streams, or a thread executes the communication stream
	                           (exec/comm_thread.h), so communication can overlap with kernels; false: steps run one after the other, in
	                           the order of the list */
};

/* Properties of the device and the model on which gt_strategy.shard decides. */
struct gt_offers {
	bool shared_memory; /* the ranks of a data group can share one PARAM and one WORK arena */
	bool factors_pay;   /* GT_SYNC_FACTORED_UPDATE is possible and moves fewer bytes than the sum of gradients (gt_plan_factors_pay) */
};

struct gt_strategy {
	const char *name; /* parallel.mode; this and `ranks` are set by GT_STRATEGY_MODE */
	enum gt_mode_ranks ranks;
	/* Computes the position of a rank. GT_ECONFIG: the config has a setting that this mode does not support; the error names the setting
	 * and the mode. */
	enum gt_code (*position)(const struct gt_conf *c, int rank, int world, struct gt_rank_position *out, struct gt_err *err);
	/* Describes in *out, which is all zero before, how the flat arenas are divided into buckets and shards. NULL: the mode has one
	 * bucket and no shards. */
	void (*shard)(const struct gt_conf *c, const struct gt_rank_position *at, const struct gt_offers *offers, struct gt_shard_spec *out);
	/* Chooses the method by which the ranks that have the same parameters make an update, for gt_replicas_shard. NULL if shard is NULL. */
	enum gt_sync_method (*sync)(const struct gt_conf *c, const struct gt_offers *offers);
	/* Returns the smallest size of a micro-batch, over all ranks, at which every part has at least one sample. */
	int64_t (*least_micro)(const struct gt_conf *c, int64_t ranks);
	/* Makes the list of steps of this rank, in memory of job->arena. */
	enum gt_code (*schedule)(const struct gt_job *job, struct gt_prog *out, struct gt_err *err);
};

/* GT_STRATEGY_MODE(ddp), for example, sets those members of a gt_strategy that follow from the mode's row in base/modes.h. */
#define GT_STRATEGY_MODE(word) .name = #word, .ranks = (enum gt_mode_ranks)GT_STRATEGY_RANKS_##word
enum {
#define GT_STRATEGY_RANKS(NAME, word, RANKS) GT_STRATEGY_RANKS_##word = GT_RANKS_##RANKS,
	GT_MODES(GT_STRATEGY_RANKS)
#undef GT_STRATEGY_RANKS
};

#define GT_STRATEGY_EXTERN(NAME, word, ...) extern const struct gt_strategy gt_strategy_##word;
GT_MODES(GT_STRATEGY_EXTERN)
#undef GT_STRATEGY_EXTERN

/* Returns the strategy of a mode; never NULL. */
const struct gt_strategy *gt_strategy_of(enum gt_mode mode);

/* Rejects several ranks for a mode that runs one rank only. nproc: the argument of --nproc; 0: not given, parallel.nproc is used.
 * GT_ECONFIG: the error names both settings. */
enum gt_code gt_strategy_check_nproc(const struct gt_conf *c, int nproc, struct gt_err *err);

#endif
