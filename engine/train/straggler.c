/* Finds the rank for which the other ranks of a run wait. Each rank measures how long its steps take and how long it waits for other ranks
 * in them (gt_exec.waited), which needs no communication. The ranks exchange these times at most once an epoch. */
#include "exec/comm_thread.h"
#include "session/session_data.h"
#include "team/team.h"
#include "train/trainer_parts.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_S 0.1     /* least seconds of steps in a report, because the shares of fewer steps are noise */
#define LEAST_SHARE 0.5 /* least share of a straggler: below it, all ranks wait for communication or for a processor most of the time */
#define LEAST_TIMES 1.5 /* least ratio of the straggler's share to the median of the other ranks */

struct step_times { /* of one rank, since its last report */
	double steps_s, waited_s;
	double comm_s; /* time of the communication thread; 0: the rank's own thread communicates, so this time is part of waited_s */
};

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* share: [n] share of the steps that each rank works. sorted: memory for n values. Returns the straggler, -1: none; *median: the median
 * share of the other ranks. */
static int find_straggler(const double *share, double *sorted, int n, double *median)
{
	int worst = 0, others = 0;
	for (int i = 1; i < n; i++)
		worst = share[i] > share[worst] ? i : worst;
	for (int i = 0; i < n; i++)
		if (i != worst)
			sorted[others++] = share[i];
	qsort(sorted, (size_t)others, sizeof *sorted, compare_doubles);
	*median = sorted[others / 2];
	return share[worst] >= LEAST_SHARE && share[worst] >= LEAST_TIMES * *median ? worst : -1;
}

/* Reports how much of the communication, the mean over the ranks, overlaps with kernels. */
static enum gt_code report_overlap(struct gt_trainer *t, const struct step_times *sum, struct gt_err *err)
{
	char text[200];
	struct gt_event ev = {.kind = GT_EV_DETAIL, .text = text};
	double hidden = 1 - sum->waited_s / sum->comm_s;
	if (sum->comm_s <= 0)
		return GT_OK;
	snprintf(text, sizeof text, "communication takes %.0f %% of a step; %.0f %% of it overlaps with computation",
	         100 * sum->comm_s / sum->steps_s, 100 * (hidden > 0 ? hidden : 0));
	return gt_trainer_send_event(t, &ev, false, err);
}

static enum gt_code report_times(struct gt_trainer *t, const char *all, size_t block, int n, struct gt_err *err)
{
	double *share = malloc(2 * (size_t)n * sizeof *share), median;
	struct step_times sum = {0};
	if (!share)
		return gt_fail_memory(err, 2 * (size_t)n * sizeof *share);
	for (int i = 0; i < n; i++) {
		struct step_times v;
		memcpy(&v, all + (size_t)i * block, sizeof v);
		share[i] = 1 - v.waited_s / v.steps_s;
		sum.steps_s += v.steps_s;
		sum.waited_s += v.waited_s;
		sum.comm_s += v.comm_s;
	}
	int worst = find_straggler(share, share + n, n, &median);
	enum gt_code code = GT_OK;
	if (worst >= 0) {
		char text[200];
		struct gt_event ev = {.kind = GT_EV_DETAIL, .text = text};
		snprintf(text, sizeof text, "rank %d is slower than the others: it works %.0f %% of a step, they %.0f %% (median)", worst,
		         100 * share[worst], 100 * median);
		code = gt_trainer_send_event(t, &ev, false, err);
	}
	free(share);
	return code == GT_OK ? report_overlap(t, &sum, err) : code;
}

bool gt_trainer_times_steps(const struct gt_trainer *t)
{
	/* on a GPU, communication is queued, and the thread of the rank does not see how long it takes */
	return t->s->at.world > 1 && t->s->device.be->host_memory;
}

enum gt_code gt_trainer_report_straggler(struct gt_trainer *t, struct gt_err *err)
{
	double busy = t->s->exec.comm_thread ? gt_comm_thread_busy(t->s->exec.comm_thread) : 0;
	struct step_times own = {t->steps_s, t->waited_s, busy - t->comm_s};
	int64_t shortest = -(int64_t)(1e9 * t->steps_s); /* the maximum over the ranks is that of the rank with the least time */
	size_t block;
	char *all;
	if (!gt_trainer_times_steps(t))
		return GT_OK;
	GT_TRY(gt_team_max(t->team, &shortest, 1, err));
	if (-shortest < (int64_t)(1e9 * LEAST_S)) /* short epochs are reported together */
		return GT_OK;
	t->steps_s = t->waited_s = 0;
	t->comm_s = busy;
	GT_TRY(gt_team_gather(t->team, &own, sizeof own, "times of steps", &all, &block, err));
	enum gt_code code = all ? report_times(t, all, block, t->s->at.world, err) : GT_OK;
	free(all);
	return code;
}
