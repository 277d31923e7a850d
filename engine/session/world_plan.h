/* All ranks of a world, planned in this process and not run: what `gtrain check` and `gtrain plan` show of it, and what is wrong with it before
 * any rank is started. A strategy is a pure function, so that these are the programs that the ranks will make. */
#ifndef GT_SESSION_WORLD_PLAN_H
#define GT_SESSION_WORLD_PLAN_H

#include "par/pipeline_schedule.h"
#include "par/verify_comm.h"
#include "session/session.h"

#define GT_WORLD_PLAN_MAX 4096 /* ranks: half a megabyte each for a ResNet */

struct gt_world_plan {
	struct gt_arena *arena;     /* of what is found out about them */
	int world;
	int copies, ranks;          /* of the model; ranks a copy: more than 1 in a pipeline */
	int stages;                 /* of a pipeline; else 1 */
	struct gt_session **rank;   /* [world], dry */
};

/* device: NULL: the config's. paper: none is opened; so too with "null". GT_ECONFIG and so on as a run would say it. */
enum gt_code gt_world_plan_open(struct gt_conf *c, const char *device, bool paper, int world, struct gt_world_plan **out, struct gt_err *err);
void gt_world_plan_close(struct gt_world_plan *c);
/* One of them. */
struct gt_session_spec gt_world_plan_spec(struct gt_conf *c, const char *device, bool paper, int rank, int world);

/* That the programs of all ranks fit together, and that parameters lie in the same places. GT_EINTERNAL: which ones do not. */
struct gt_world_report {
	int least, most;                /* steps of a rank in an optimizer step */
	int64_t transfers, collectives; /* of all ranks, in an optimizer step */
	size_t ahead;                   /* bytes that may lie unread between two ranks, in any program: gt_comm_report */
};
enum gt_code gt_world_plan_verify(const struct gt_world_plan *c, struct gt_world_report *out, struct gt_err *err);

/* The graph of a stage that trains, of the first copy of the model, on the largest part of a batch. */
const struct gt_graph *gt_world_plan_graph(const struct gt_world_plan *c, int stage);

/* The pipeline's schedule, and what it takes if a stage's time is its share of the FLOPs; NULL without a pipeline. even: if all stages took
 * as long. In the crew's arena. */
struct gt_world_plan_schedule {
	struct gt_grid *grid;
	double bubble, even;
};
enum gt_code gt_world_plan_schedule(const struct gt_world_plan *c, struct gt_world_plan_schedule *out, struct gt_err *err);
/* The schedule of one rank's session, as far as the config says it. */
enum gt_code gt_session_grid(const struct gt_session *s, struct gt_arena *a, struct gt_grid **out, struct gt_err *err);

/* Before ranks are started: what a rank would refuse is refused here, once, without a rank's name. */
enum gt_code gt_world_plan_preflight(struct gt_conf *c, const char *device, int world, struct gt_err *err);

#endif
