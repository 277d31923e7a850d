/* The parts of a session that concern other ranks. */
#ifndef GT_SESSION_SESSION_TEAM_H
#define GT_SESSION_SESSION_TEAM_H

#include "session/session.h"

/* Before gt_space_alloc: the executor's groups, memory that ranks share, and the proof that all of them are about to execute lists that
 * fit together. */
enum gt_code gt_session_join(struct gt_session *s, struct gt_err *err);
/* Whether the ranks have memory in common; of a world that is not there: whether they would have. */
bool gt_session_common(const struct gt_session_spec *spec, const struct gt_conf *c, const struct gt_backend *be);
/* Those that have the same parameters, joined on host memory; NULL: there is one. */
struct gt_comm *gt_session_host_group(const struct gt_session *s);
/* The ranks that have the same parameters wait for each other. */
enum gt_code gt_session_meet(struct gt_session *s, struct gt_err *err);
void gt_session_leave(struct gt_session *s); /* after the space is closed */

/* Running statistics are rank 0's from here on, until the next training step. */
enum gt_code gt_session_sync_buffers(struct gt_session *s, struct gt_err *err);

/* The sum of an evaluation over the ranks. */
enum gt_code gt_session_sum(struct gt_session *s, struct gt_metrics *m, struct gt_err *err);

#endif
