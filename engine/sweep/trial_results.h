/* Reads and writes results.json of a sweep, and reads the run directories of its trials. */
#ifndef GT_SWEEP_TRIAL_RESULTS_H
#define GT_SWEEP_TRIAL_RESULTS_H

#include "gtrain_view.h"
#include "sweep/trial_rungs.h"

/* Fills t[ntrials] from results.json, if it exists, and from the run directories. Results that only the run directories have are added to
 * results.json. A failure whose cause may be temporary is dropped, so that the trial runs again: a signal, a full disk, or an error before
 * the first step, such as missing data. */
enum gt_code gt_results_read(const char *dir, const struct gt_sweep_plan *p, struct gt_arena *a, struct gt_trial_run *t,
                             struct gt_err *err);
/* Replaces results.json. */
enum gt_code gt_results_write(const char *dir, const struct gt_sweep_plan *p, const struct gt_trial_run *t, struct gt_err *err);

/* Ends rung t->done of a trial whose process has ended without an error: reads the score from the run directory. */
enum gt_code gt_trial_end_rung(const char *run_dir, const struct gt_sweep_plan *p, struct gt_arena *a, struct gt_trial_run *t,
                               struct gt_err *err);
/* Returns whether the run directory has a checkpoint, from which the trial can resume. */
bool gt_trial_has_checkpoint(const char *run_dir);
/* Sets *why to the last error message in a trial's log, in the arena; "" if there is none. */
enum gt_code gt_trial_log_error(const char *log, struct gt_arena *a, const char **why, struct gt_err *err);

#endif
