/* Redraws the curves of runs on the terminal while they train. */
#ifndef GT_CLI_PLOT_FOLLOW_H
#define GT_CLI_PLOT_FOLLOW_H

#include "gtrain_chart.h"
#include "plot_chart.h"

struct gt_run_curves;

struct gt_plot_runs {
	struct gt_run_curves **run; /* [n] */
	int n;
	struct gt_run_chart_spec spec;
};

/* Makes a chart of the curves that the runs have at the last update (gt_run_curves). */
enum gt_code gt_plot_runs_chart(const struct gt_plot_runs *runs, struct gt_arena *a, struct gt_chart **out, struct gt_err *err);
/* Waits until the directory `path` contains a run, or a sweep with at least one trial. If it has to wait, it prints one message. If path
 * is a file, returns at once. */
void gt_plot_wait(struct gt_cli *cli, const char *path);
/* Draws the curves whenever they have changed, with the height of the terminal, and returns when all runs have ended. */
enum gt_code gt_plot_follow(struct gt_cli *cli, const struct gt_plot_runs *runs, struct gt_err *err);

#endif
