/* Plans all ranks of a world in this process, without running them: `gtrain check` and `gtrain plan` show the result; a run uses it to find
 * errors before it starts the ranks. A strategy is a pure function, so the planned programs equal the programs that the ranks will make.
 *
 *     gt_world_plan_open(conf, NULL, true, false, 4, GT_WORLD_PLAN_EACH, &w, err);
 *     gt_world_plan_verify(w, &report, err);
 *     gt_world_plan_close(w);
 */
#ifndef GT_SESSION_WORLD_PLAN_H
#define GT_SESSION_WORLD_PLAN_H

#include "plan/pipeline_schedule.h"
#include "plan/verify_comm.h"
#include "session/session.h"

/* Plans a world rank by rank if it has at most this many ranks: a rank takes a millisecond and half a megabyte for a ResNet. In a larger
 * world, ranks with equal programs are planned once. */
#define GT_WORLD_PLAN_EACH 64

struct gt_world_plan {
	struct gt_arena *arena;     /* memory of the results */
	int world;                  /* number of ranks */
	int copies, ranks;          /* copies of the model; ranks of each copy, more than 1 only in a pipeline */
	int stages;                 /* number of pipeline stages; 1 without a pipeline */
	/* Dry sessions of the planned ranks, in the order of their numbers (session->at.rank). equal[i]: number of consecutive ranks, from that
	 * of rank[i] on, that rank[i] stands for. In zero, equal ranks may differ in the elements of their shards and in the number of updates
	 * that these take. */
	struct gt_session **rank;   /* [nplanned] */
	int *equal, nplanned;
};

/* Plans `world` ranks, each of them if they are at most `each` (GT_WORLD_PLAN_EACH). device: overrides the config's device; NULL: the
 * config's. paper: open no device; the device "null" implies it. apart: each rank is on a host of its own. Returns the errors that a run
 * would return, GT_ECONFIG and others. */
enum gt_code gt_world_plan_open(struct gt_conf *c, const char *device, bool paper, bool apart, int world, int each,
                                struct gt_world_plan **out, struct gt_err *err);
void gt_world_plan_close(struct gt_world_plan *c);
/* Returns the session spec of one rank of the world plan. */
struct gt_session_spec gt_world_plan_spec(struct gt_conf *c, const char *device, bool paper, int rank, int world);

/* The figures that gt_world_plan_verify returns. */
struct gt_world_report {
	int least, most;                /* smallest and largest number of program steps of a planned rank in an optimizer step */
	int64_t transfers, collectives; /* number of transfers and of collectives in an optimizer step, over all ranks */
	size_t ahead;                   /* maximum number of sent but unread bytes between two ranks in any program (gt_comm_report.ahead) */
};
/* Verifies that the programs of all ranks match and that all ranks place parameters at the same offsets. GT_EINTERNAL: two ranks do not
 * match; the error names both. */
enum gt_code gt_world_plan_verify(const struct gt_world_plan *c, struct gt_world_report *out, struct gt_err *err);

/* Returns the training graph of a stage in the first copy of the model, for the largest part of a batch, in a phase given as in
 * gt_plan_key.phase; NULL: no such graph, because the run ends before the phase. */
const struct gt_graph *gt_world_plan_graph(const struct gt_world_plan *c, int stage, int phase);

/* The schedule of a pipeline and its idle time, in the arena of the world plan. */
struct gt_world_plan_schedule {
	struct gt_grid *grid;  /* NULL without a pipeline */
	/* share of the time in which ranks are idle, 0 ... 1. bubble: the time of a stage is proportional to its FLOPs. even: all stages take
	 * the same time */
	double bubble, even;
};
enum gt_code gt_world_plan_schedule(const struct gt_world_plan *c, struct gt_world_plan_schedule *out, struct gt_err *err);
/* Computes the pipeline schedule of one session from the config. */
enum gt_code gt_session_pipe_grid(const struct gt_session *s, struct gt_arena *a, struct gt_grid **out, struct gt_err *err);

/* gt_world_plan_preflight checks a run before its ranks are started, so that an error is reported once and without the name of a rank.
 * also: an additional check of the first rank's session; NULL: none. */
typedef enum gt_code gt_session_check(const struct gt_session *s, struct gt_err *err);
enum gt_code gt_world_plan_preflight(struct gt_conf *c, const char *device, int world, gt_session_check *also, struct gt_err *err);

#endif
