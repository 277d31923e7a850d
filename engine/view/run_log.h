/* The lines of metrics.jsonl of a run. gtrain-checkpoint(5) describes the file. */
#ifndef GT_VIEW_RUN_LOG_H
#define GT_VIEW_RUN_LOG_H

#include "gtrain_view.h"

/* Reads <dir>/metrics.jsonl into the fields state (how the run ended; NULL: its last line is not of an end), step, steps, epoch, epochs,
 * changed, started, last and damaged of r. A file that is being written can end in the middle of a line, which is left out. GT_ENOINPUT:
 * there is no file. */
enum gt_code gt_run_log_read(const char *dir, struct gt_arena *a, struct gt_run_record *r, struct gt_err *err);
int gt_run_split_index(const char *name); /* returns the index of a name in gt_run_splits; -1: it has no such name */
/* run_record.c. Returns the state of the run in dir, as in struct gt_run_record. ended: how its last line says that it ended; NULL: the
 * last line is not of an end. */
const char *gt_run_state(const char *dir, const char *ended);

#endif
