/* What layers cost on the device of this session, measured: parallel.balance = "measured". */
#ifndef GT_SESSION_STAGE_COST_H
#define GT_SESSION_STAGE_COST_H

#include "session/session.h"

/* Seconds of each node of g, a whole training graph of one micro-batch: every kernel runs by itself, on zeros, its operands made for it and freed
 * behind it, so that no more memory is needed than the largest one takes. At most about ten milliseconds a kernel that takes less than one. g stays as
 * it is. The sum over a layer's nodes is what torchgpipe's balance_by_time measures (Kim et al., "torchgpipe", 2020, section 3.3). */
enum gt_code gt_stage_costs(const struct gt_session *s, struct gt_graph *g, double *seconds, struct gt_err *err);

#endif
