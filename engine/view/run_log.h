/* The lines of metrics.jsonl of a run. gtrain-checkpoint(5) describes the file. */
#ifndef GT_VIEW_RUN_LOG_H
#define GT_VIEW_RUN_LOG_H

#include "gtrain_view.h"

/* Reads <dir>/metrics.jsonl into the fields state (how the run ended; NULL: the last line is no event `end`), step, steps, epoch, epochs,
 * changed, started, last and damaged of r. An incomplete last line is skipped, because the file may still be written. GT_ENOINPUT: the file
 * does not exist. */
enum gt_code gt_run_log_read(const char *dir, struct gt_arena *a, struct gt_run_record *r, struct gt_err *err);
int gt_run_split_index(const char *name); /* returns the index of a name in gt_run_splits; -1: unknown name */
/* run_record.c. Returns the state of the run in dir, as in struct gt_run_record. ended: the status in the last line of the log; NULL: the
 * last line is no event `end`. */
const char *gt_run_state(const char *dir, const char *ended);

#endif
