/* The scores of the runs that `gtrain compare` compares, as mean and deviation over the runs of each group. */
#ifndef GT_CLI_COMPARE_SCORES_H
#define GT_CLI_COMPARE_SCORES_H

#include "gtrain_view.h"

struct gt_compared {
	struct gt_run_record *run; /* [n] */
	int n;
	struct gt_run_comparison c;
};

/* Mean and standard deviation (with n - 1) of a value over the runs of a group that have it. */
struct gt_statistic {
	int n;
	double mean, deviation;
};

/* A value of a run: one of these two functions. NAN: the run does not have it. */
typedef double gt_run_score(const struct gt_run_record *r, int split, int score);
gt_run_score gt_score_last; /* the last value of a score */
gt_run_score gt_score_best; /* the best value, if the score is the metric of the run */

struct gt_statistic gt_compared_statistic(const struct gt_compared *x, int group, gt_run_score *get, int split, int score);
/* Returns the first run of a group; *n: the number of its runs. */
const struct gt_run_record *gt_compared_first(const struct gt_compared *x, int group, int *n);

#endif
