/* Which trial of a sweep runs next. The rule of asynchronous successive halving, ASHA (Li et al., "A System for Massively Parallel
 * Hyperparameter Tuning", MLSys 2020, algorithm 2; arXiv 1810.05934): a trial is promoted from a rung, best rung first, if it is among the
 * best third of the trials that have ended that rung; if there is none, a new trial enters the first rung. With one rung this is a list of
 * trials in their order. With several jobs, promotions also depend on the order in which trials end. */
#ifndef GT_SWEEP_TRIAL_RUNGS_H
#define GT_SWEEP_TRIAL_RUNGS_H

#include "sweep/sweep_plan.h"

struct gt_trial_run {
	int done;                   /* number of rungs that have ended */
	double score[GT_RUNGS_MAX]; /* [done] the score at the end of each; NAN: not measured, which counts as the worst */
	int code;                   /* exit code with which it failed in rung `done`; 0: it has not */
	const char *error;          /* why; in the arena of the sweep */
	bool started;               /* it has begun rung `done` and not ended it */
	bool running;               /* it runs now */
	bool postponed;             /* a signal that this process did not send has ended it: the next sweep continues it */
};

/* Returns the index of the trial that runs next; -1: none, until a running one ends. */
int gt_trial_next(const struct gt_trial_run *t, const struct gt_sweep_plan *p);
/* Returns whether a score is better than another. NAN is worse than any number. */
bool gt_score_better(double a, double b, bool falls);
/* Returns the number of runs of a whole sweep in which no trial fails. */
int gt_trial_runs_expected(const struct gt_sweep_plan *p);

#endif
