/* Mean and standard deviation of the scores that `gtrain compare` prints, over the runs of each group. */
#ifndef GT_CLI_COMPARE_SCORES_H
#define GT_CLI_COMPARE_SCORES_H

#include "gtrain_view.h"

struct gt_compared {
	struct gt_run_record *run; /* [n] */
	int n;
	struct gt_run_comparison c;
};

/* Mean and sample standard deviation (divisor n - 1) of a score over those runs of a group that have the score. */
struct gt_statistic {
	int n;
	double mean, deviation;
};

/* Returns the value of a score of a run on a split; NAN: the run does not have it. */
typedef double gt_run_score(const struct gt_run_record *r, int split, int score);
gt_run_score gt_score_last; /* returns the last value of the score */
gt_run_score gt_score_best; /* returns the best value, if the score is the run's checkpoint.best.metric */

struct gt_statistic gt_compared_statistic(const struct gt_compared *x, int group, gt_run_score *get, int split, int score);
/* Returns the first run of a group; *n: the number of its runs. */
const struct gt_run_record *gt_compared_first(const struct gt_compared *x, int group, int *n);

#endif
