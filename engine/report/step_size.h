/* The size of the work of one step of a program. gtrain bench writes it beside each measured time, and the cost model scales times by it.
 * */
#ifndef GT_REPORT_STEP_SIZE_H
#define GT_REPORT_STEP_SIZE_H

#include "session/session.h"

/* Returns what a step of a program of s works on: samples, for a kernel or a load of a graph; elements of the flat arenas, for an update, a
 * sum of gradients, a sum of squares, a check that reads gradients, or a call that compresses or decompresses gradients; bytes, for a step
 * that clears memory; 0: the time of the step does not depend on a size. */
int64_t gt_step_size(const struct gt_session *s, const struct gt_step *t);

#endif
