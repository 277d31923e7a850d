/* The programs of a session: the optimizer step, the evaluations, and the plans and loaders that they need. */
#ifndef GT_SESSION_SESSION_PROGRAMS_H
#define GT_SESSION_SESSION_PROGRAMS_H

#include "session/session.h"

/* Makes the plans and programs of spec, after data, batch partition and pipeline are open. All sizes of s->space are known afterwards.
 * GT_ENOINPUT: no split of spec has samples. GT_ECONFIG: the model has fewer outputs than the data has classes. */
enum gt_code gt_session_programs_open(struct gt_session *s, const struct gt_session_spec *spec, struct gt_err *err);
/* Sets the operand addresses of all kernel calls and opens the loaders. Call it after gt_space_alloc. */
enum gt_code gt_session_programs_start(struct gt_session *s, bool train, struct gt_err *err);
/* Closes loaders and plans. Call it also if open or start failed, before the space is closed. */
void gt_session_programs_close(struct gt_session *s);

#endif
