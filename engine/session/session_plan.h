/* The graphs and plans of a session. gt_session_plan (session.h) returns a plan by its key. */
#ifndef GT_SESSION_SESSION_PLAN_H
#define GT_SESSION_SESSION_PLAN_H

#include "session/session.h"

/* Returns the longest length of sequences; 0: the model reads no sequences. */
static inline int64_t gt_session_longest(const struct gt_session *s)
{
	return s->data.lengths.n ? s->data.lengths.at[s->data.lengths.n - 1] : 0;
}

/* Returns the first non-idle graph; all non-idle graphs of the session have the same inputs. */
const struct gt_graph *gt_session_graph_of_samples(const struct gt_session *s);

/* Builds the graph of a plan, without the plan. */
enum gt_code gt_session_graph(struct gt_session *s, const struct gt_plan_key *w, struct gt_graph **out, struct gt_err *err);

/* Sets *out to whether the ranks of the data group can make one update from the factors of their weight gradients (gt_plan_factors), with
 * fewer bytes than by exchanging gradients. Call it before the first plan is made. */
enum gt_code gt_session_factors_pay(struct gt_session *s, bool *out, struct gt_err *err);

#endif
