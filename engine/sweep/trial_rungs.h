/* Decides which trial of a sweep runs next. The rule of asynchronous successive halving, ASHA (Li et al., "A System for Massively Parallel
 * Hyperparameter Tuning", MLSys 2020, algorithm 2; arXiv 1810.05934): a trial is promoted from a rung if it is among the best third of the
 * trials that have ended this rung, where higher rungs are searched first. If no trial can be promoted, a new trial enters the first rung.
 * With one rung, trials simply run in their order. With several jobs, promotions also depend on the order in which trials end. */
#ifndef GT_SWEEP_TRIAL_RUNGS_H
#define GT_SWEEP_TRIAL_RUNGS_H

#include "sweep/sweep_plan.h"

struct gt_trial_run {
	int done;                   /* number of rungs that the trial has ended */
	double score[GT_RUNGS_MAX]; /* [done] score at the end of each rung; NAN: not measured, treated as the worst */
	int code;                   /* exit code if the trial failed in rung `done`; 0: it has not failed */
	const char *error;          /* error message of the failure, in the arena of the sweep */
	bool started;               /* the trial has begun rung `done` and not ended it */
	bool running;               /* a process runs the trial at the moment */
	bool postponed;             /* a signal to its process has ended the trial, and the next call of the sweep continues it */
};

/* Returns the index of the trial that runs next; -1: no trial can start before a running trial ends. */
int gt_trial_next(const struct gt_trial_run *t, const struct gt_sweep_plan *p);
/* Returns whether score a is better than score b. NAN is worse than any number. falls: smaller scores are better. */
bool gt_score_better(double a, double b, bool falls);
/* Returns the number of processes that a sweep starts in total if no trial fails. */
int gt_trial_runs_expected(const struct gt_sweep_plan *p);

#endif
