/* What `run` and `resume` show while they train. On a terminal one line of stderr is repainted, at most ten times a second: epoch, a
 * bar over the whole run, elapsed and remaining time, loss, and what else the width has room for. Elsewhere a plain line comes every
 * few seconds. Each epoch and each evaluation within one leaves one line. With --json the lines of metrics.jsonl go to stdout as they
 * are written. */
#ifndef GT_CLI_PROGRESS_H
#define GT_CLI_PROGRESS_H

#include "cli.h"

#define GT_PROGRESS_EVALS 2 /* valid, test */

struct gt_progress_eval {
	char split[16]; /* "": none */
	struct gt_scores scores;
	int64_t step, epoch;
};

/* What the next line that stays says: an epoch's scores and the evaluations behind it. */
struct gt_progress_row {
	bool have, whole;          /* whole: of an epoch; else evaluations within one */
	int64_t step, epoch;
	struct gt_scores train;
	double seconds;
	struct gt_progress_eval eval[GT_PROGRESS_EVALS];
	int nevals;
};

struct gt_progress {
	struct gt_cli *cli;
	double start, last; /* seconds; last: when a progress line was last written */
	bool told;          /* something was: a process that only watches ranks, or is one of the others, has no result to print */
	bool out_told;      /* that stdout is lost was said */
	int64_t step, steps, epoch, epochs; /* epochs 0: steps end the run */
	double loss;        /* of the last step */
	struct gt_progress_row row;
	struct gt_progress_eval eval;       /* the last one, of the test split where there is one */
	bool ended;                         /* and `result` is there */
	struct gt_run_result result;
	char best_metric[32];               /* result.best_metric */
	char checkpoint[1024]; /* the last one committed; "": none */
	bool complete;         /* there was nothing left to do: that was said instead of a result */
	bool early;            /* ended before the last step, by a signal or the time limit */
};

void gt_progress_init(struct gt_progress *p, struct gt_cli *cli);
void gt_progress_observe(void *user, const struct gt_event *ev); /* a gt_observer; user: struct gt_progress */
void gt_progress_say(void *user, const char *line); /* what another rank wrote, or its watcher has to say */
/* Ends the display and, after a success, prints the result on stdout, then where it is saved and what to type next. Returns code. */
enum gt_code gt_progress_finish(struct gt_progress *p, enum gt_code code);

#endif
