/* Communication of a session: the groups of ranks, the memory that ranks share, and values that ranks agree on. */
#ifndef GT_SESSION_SESSION_TEAM_H
#define GT_SESSION_SESSION_TEAM_H

#include "session/session.h"

/* Creates the executor's communicators, registers the memory that ranks share, and verifies that all ranks have the same step sizes and
 * parameter offsets. With one rank it does nothing. Call it before gt_space_alloc. GT_ECONFIG: reproducible = "world" with a communicator
 * that has no fixed summation order, or the ranks differ. */
enum gt_code gt_session_comm_open(struct gt_session *s, struct gt_err *err);
/* Returns whether the ranks of the spec share memory or, in a dry session, would share memory. */
bool gt_session_shares_memory(const struct gt_session_spec *spec, const struct gt_conf *c, const struct gt_backend *be);
/* Returns the communicator, on host memory, of the ranks that hold the same parameters as this rank; NULL: there is one rank. */
struct gt_comm *gt_session_host_group(const struct gt_session *s);
/* Waits until all ranks that hold the same parameters as this rank have called it. */
enum gt_code gt_session_barrier(struct gt_session *s, struct gt_err *err);
void gt_session_comm_close(struct gt_session *s); /* closes the communicators, after the space is closed */

/* Copies the running statistics of rank 0 to the other ranks with the same parameters, which keep them until the next training step. */
enum gt_code gt_session_sync_buffers(struct gt_session *s, struct gt_err *err);

/* Adds up the metrics of an evaluation over the ranks. */
enum gt_code gt_session_sum_metrics(struct gt_session *s, struct gt_metrics *m, struct gt_err *err);

#endif
