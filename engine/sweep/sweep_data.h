/* Looks for the data of a sweep, so that a sweep without data ends with one error before its first trial. */
#ifndef GT_SWEEP_SWEEP_DATA_H
#define GT_SWEEP_SWEEP_DATA_H

#include "sweep/trial_rungs.h"

/* Looks for the data of a new sweep; a: arena for temporary memory. GT_ENOINPUT: the data of every trial is missing; the message is about
 * the data of the first trial. */
enum gt_code gt_sweep_data_new(const struct gt_sweep_spec *spec, const struct gt_sweep_plan *p, struct gt_arena *a, struct gt_err *err);
/* Looks for the data of those trials of the sweep in `dir` that have not ended. Returns GT_OK if all have ended. */
enum gt_code gt_sweep_data_continued(const char *dir, const struct gt_sweep_plan *p, const struct gt_trial_run *t, struct gt_err *err);

#endif
