/* All ranks of a world, planned in this process and not run: what `gtrain check` and `gtrain plan` show of it, and what is wrong with it before
 * any rank is started. A strategy is a pure function, so that these are the programs that the ranks will make. */
#ifndef GT_SESSION_CREW_H
#define GT_SESSION_CREW_H

#include "par/pipe_grid.h"
#include "par/prove.h"
#include "session/session.h"

#define GT_CREW_MAX 4096 /* ranks: half a megabyte each for a ResNet */

struct gt_crew {
	struct gt_arena *arena;     /* of what is found out about them */
	int world;
	int copies, ranks;          /* of the model; ranks a copy: more than 1 in a pipeline */
	int stages;                 /* of a pipeline; else 1 */
	struct gt_session **rank;   /* [world], dry */
};

/* device: NULL: the config's. paper: none is opened; so too with "null". GT_ECONFIG and so on as a run would say it. */
enum gt_code gt_crew_open(struct gt_conf *c, const char *device, bool paper, int world, struct gt_crew **out, struct gt_err *err);
void gt_crew_close(struct gt_crew *c);
/* One of them. */
struct gt_session_spec gt_crew_spec(struct gt_conf *c, const char *device, bool paper, int rank, int world);

/* That the programs of all ranks fit together, and that parameters lie in the same places. GT_EINTERNAL: which ones do not. */
struct gt_crew_proof {
	int least, most;                /* steps of a rank in an optimizer step */
	int64_t transfers, collectives; /* of all ranks, in an optimizer step */
	size_t ahead;                   /* bytes that may lie unread between two ranks, in any program: gt_proof */
};
enum gt_code gt_crew_prove(const struct gt_crew *c, struct gt_crew_proof *out, struct gt_err *err);

/* The graph of a stage that trains, of the first copy of the model, on the largest part of a batch. */
const struct gt_graph *gt_crew_graph(const struct gt_crew *c, int stage);

/* The pipeline's schedule, and what it takes if a stage's time is its share of the FLOPs; NULL without a pipeline. even: if all stages took
 * as long. In the crew's arena. */
struct gt_crew_grid {
	struct gt_grid *grid;
	double bubble, even;
};
enum gt_code gt_crew_grid(const struct gt_crew *c, struct gt_crew_grid *out, struct gt_err *err);
/* The schedule of one rank's session, as far as the config says it. */
enum gt_code gt_session_grid(const struct gt_session *s, struct gt_arena *a, struct gt_grid **out, struct gt_err *err);

/* Before ranks are started: what a rank would refuse is refused here, once, without a rank's name. */
enum gt_code gt_crew_preflight(struct gt_conf *c, const char *device, int world, struct gt_err *err);

#endif
