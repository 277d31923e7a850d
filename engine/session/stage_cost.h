/* Measures the cost of layers on the session's device, for parallel.balance = "measured". */
#ifndef GT_SESSION_STAGE_COST_H
#define GT_SESSION_STAGE_COST_H

#include "session/session.h"

/* Measures the seconds of each node of g, a whole training graph of one micro-batch, into seconds[]. Each kernel runs alone on zeros, with
 * operands that are allocated for it and freed afterwards, so that the measurement needs no more memory than the largest kernel. A kernel
 * that takes less than a millisecond is measured for at most about ten milliseconds. g does not change. The sum over the nodes of a layer
 * is what torchgpipe's balance_by_time measures (Kim et al., "torchgpipe", 2020, section 3.3). */
enum gt_code gt_stage_costs(const struct gt_session *s, struct gt_graph *g, double *seconds, struct gt_err *err);

#endif
