/* What `run` and `resume` show while they train. On a terminal one line of stderr is rewritten, at most ten times a second;
 * elsewhere a plain line comes every few seconds. Evaluations always get a line of their own. With --json the lines of
 * metrics.jsonl go to stdout as they are written. */
#ifndef GT_CLI_PROGRESS_H
#define GT_CLI_PROGRESS_H

#include "cli.h"

struct gt_progress_eval {
	bool have;
	char split[16];
	double loss, acc; /* acc: NAN where there is none */
	int64_t step, epoch;
};

struct gt_progress {
	struct gt_cli *cli;
	double start, last; /* seconds; last: when a progress line was last written */
	bool drawn;         /* a line of the terminal is ours, and has no newline yet */
	bool told;          /* something was: a process that only watches ranks, or is one of the others, has no result to print */
	bool out_told;      /* that stdout is lost was said */
	int64_t step, steps, epoch, epochs;
	double loss;        /* of the last step */
	struct gt_progress_eval eval, best; /* best: highest accuracy (lowest loss without one) of the split of eval */
	char checkpoint[1024]; /* the last one committed; "": none */
	bool early;            /* ended before the last step, by a signal or the time limit */
};

void gt_progress_init(struct gt_progress *p, struct gt_cli *cli);
void gt_progress_observe(void *user, const struct gt_event *ev); /* a gt_observer; user: struct gt_progress */
void gt_progress_say(void *user, const char *line); /* what another rank wrote, or its watcher has to say */
/* Ends the display and, after a success, prints the result on stdout. Returns code. */
enum gt_code gt_progress_finish(struct gt_progress *p, enum gt_code code);

#endif
