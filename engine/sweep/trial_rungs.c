#include "sweep/trial_rungs.h"
#include <math.h>

bool gt_score_better(double a, double b, bool falls)
{
	return isnan(b) ? !isnan(a) : !isnan(a) && (falls ? a < b : a > b);
}

static bool can_run(const struct gt_trial_run *t, const struct gt_sweep_plan *p)
{
	return !t->running && !t->code && !t->postponed && t->done < p->nrungs;
}

/* Returns whether a trial has ended rung k. A trial that failed in rung k has also ended it, with the worst score. */
static bool has_ended(const struct gt_trial_run *t, int k)
{
	return t->done > k || (t->code && t->done == k);
}

static double score_at(const struct gt_trial_run *t, int k)
{
	return t->done > k ? t->score[k] : NAN;
}

/* Returns the number of trials that are better than trial i at the end of rung k; of trials with equal scores, the first is better. */
static int count_better(const struct gt_trial_run *t, const struct gt_sweep_plan *p, int i, int k)
{
	int n = 0;
	for (int j = 0; j < p->ntrials; j++) {
		double own = score_at(&t[i], k), other = score_at(&t[j], k);
		if (j != i && has_ended(&t[j], k) && !gt_score_better(own, other, p->falls))
			n += j < i || gt_score_better(other, own, p->falls);
	}
	return n;
}

/* Returns the index of the best trial that can be promoted from rung k; -1: no trial can be promoted. */
static int find_promotable(const struct gt_trial_run *t, const struct gt_sweep_plan *p, int k)
{
	int ended = 0, best = -1, least = p->ntrials;
	for (int i = 0; i < p->ntrials; i++)
		ended += has_ended(&t[i], k);
	for (int i = 0; i < p->ntrials; i++) {
		int rank = t[i].done == k + 1 && can_run(&t[i], p) ? count_better(t, p, i, k) : ended;
		if (rank < ended / GT_SWEEP_ETA && rank < least) {
			best = i;
			least = rank;
		}
	}
	return best;
}

int gt_trial_next(const struct gt_trial_run *t, const struct gt_sweep_plan *p)
{
	for (int i = 0; i < p->ntrials; i++)
		if (t[i].started && can_run(&t[i], p))
			return i;
	for (int k = p->nrungs - 2; k >= 0; k--) {
		int i = find_promotable(t, p, k);
		if (i >= 0)
			return i;
	}
	for (int i = 0; i < p->ntrials; i++)
		if (!t[i].done && can_run(&t[i], p))
			return i;
	return -1;
}

int gt_trial_runs_expected(const struct gt_sweep_plan *p)
{
	int n = 0;
	for (int k = 0, in_rung = p->ntrials; k < p->nrungs; k++, in_rung /= GT_SWEEP_ETA)
		n += in_rung;
	return n;
}
