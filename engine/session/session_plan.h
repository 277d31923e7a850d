/* The graphs and plans of a session. gt_session_plan (session.h) returns a plan by its key. */
#ifndef GT_SESSION_SESSION_PLAN_H
#define GT_SESSION_SESSION_PLAN_H

#include "session/session.h"

/* Ranks that share their parameters may make the update of weights together, instead of adding up gradients first (gt_plan_factors). Sets
 * s->space->shards.spec.update if that moves fewer bytes. Call it before the first plan is made. */
enum gt_code gt_session_choose_factors(struct gt_session *s, struct gt_err *err);

#endif
