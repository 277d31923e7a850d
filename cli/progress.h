/* The output of `run` and `resume` during training. On a terminal, one line of stderr is rewritten at most ten times per second, with the
 * epoch, a bar for the whole run, elapsed and remaining time, the loss, and further values if the terminal is wide enough. If stderr is not
 * a terminal, a plain line is printed every few seconds. Each epoch, and each evaluation within an epoch, leaves a permanent line. With
 * --json, the lines of metrics.jsonl are printed on stdout. */
#ifndef GT_CLI_PROGRESS_H
#define GT_CLI_PROGRESS_H

#include "cli.h"
#include "gtrain.h"

#define GT_PROGRESS_EVALS 2 /* number of splits that are evaluated: valid and test */

struct gt_progress_eval {
	char split[16]; /* the evaluated split; "": no evaluation yet */
	struct gt_scores scores;
	int64_t step, epoch;
};

/* The next permanent line: the scores of an epoch and the evaluations after it. */
struct gt_progress_row {
	/* have: a line must be printed. whole: it is about a complete epoch, not about evaluations within an epoch */
	bool have, whole;
	int64_t step, epoch;
	struct gt_scores train;
	double seconds;
	struct gt_progress_eval eval[GT_PROGRESS_EVALS];
	int nevals;
};

struct gt_progress {
	struct gt_cli *cli;
	const struct gt_job_args *job; /* options that a later command needs again */
	double start, last; /* times (gt_clock) at which the display began, and at which the last line of steps was shown */
	double last_phase;  /* time (gt_clock) at which the last line of a phase was shown, such as an evaluation or a save */
	bool shown;         /* an event was shown, so a result is printed at the end; false in launchers and in ranks other than 0 */
	bool out_told;      /* the warning that output to stdout is lost was printed */
	int64_t step, steps, epoch, epochs; /* progress, and totals of the run; epochs is 0 if the run's length is given in steps */
	double loss;        /* loss of the last training step */
	struct gt_progress_row row;
	struct gt_progress_eval eval;       /* the last evaluation; of the test split if it is evaluated */
	bool ended;                         /* the run has ended, and `result` is set */
	struct gt_run_result result;
	char best_metric[32];               /* result.best_metric */
	char checkpoint[1024]; /* path of the last committed checkpoint; "": none */
	bool complete;         /* the run was already complete, and a message about this was printed in place of a result */
	char page_dir[4096];   /* run directory whose report must be written (log.report); "": none */
	bool early;            /* a signal or the time limit ended the run before its last step */
};

void gt_progress_init(struct gt_progress *p, struct gt_cli *cli, const struct gt_job_args *job);
void gt_progress_observe(void *user, const struct gt_event *ev); /* a gt_observer; user: struct gt_progress */
void gt_progress_say(void *user, const char *line); /* prints a line from another rank or from the launcher */
void gt_progress_want_page(void *user, const char *dir); /* gt_run_opts.want_page; user: struct gt_progress */
/* Ends the progress display; `code` is the command's exit code. After a success, prints the result on stdout, the path of the checkpoint,
 * and suggested next commands. Returns code. */
enum gt_code gt_progress_finish(struct gt_progress *p, enum gt_code code);

#endif
