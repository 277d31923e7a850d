/* How ranks agree on the end of a run: on signals, the time limit and a change of hosts, which only one of them may have observed. */
#include "base/clock.h"
#include "launch/signals.h"
#include "team/team.h"
#include "train/trainer_parts.h"

#define AGREE_S 0.02  /* seconds between two exchanges */
#define FEW_BATCHES 4 /* batches of an evaluation, for each stage of a pipeline, between two exchanges: an exchange empties the pipeline */

static bool is_time_up(const struct gt_trainer *t, double now)
{
	return t->opts->time_limit_s > 0 && now - t->start >= t->opts->time_limit_s;
}

/* Returns the number of windows until the next exchange. Rank 0 determines it, because the clocks of ranks differ. window_s: seconds of a
 * window. */
static int64_t count_until_exchange(double window_s)
{
	return window_s < AGREE_S ? (int64_t)(AGREE_S / (window_s > 1e-6 ? window_s : 1e-6)) : 1;
}

/* Rank 0 also determines the number of steps in a window. */
enum gt_code gt_trainer_exchange_stops(struct gt_trainer *t, struct gt_err *err)
{
	const struct gt_conf_checkpoint *c = &t->s->conf->checkpoint;
	double now = gt_clock();
	int64_t v[6] = {gt_signals_pending(), is_time_up(t, now), c->every_minutes > 0 && now - t->saved_at >= 60 * c->every_minutes, 1, 0,
	                gt_rank_must_regroup(t->team->link)};
	if (t->s->at.world > 1) {
		if (t->windows < t->agree_at)
			return GT_OK;
		struct gt_exec *x = &t->s->exec;
		double window_s = t->windows ? (now - t->start) / (double)t->windows : AGREE_S;
		if (t->s->at.rank == 0) {
			int64_t end;
			v[4] = (int64_t)(1e9 * gt_exec_step_s(x, gt_session_step_prog(t->s, t->state.step + t->shift, false, &end)));
			if (!x->rank0_step_s && v[4]) /* the time of a step is known only now, so the next windows have more steps */
				window_s = AGREE_S;
			v[3] = count_until_exchange(window_s);
		}
		double begin = gt_clock();
		GT_TRY(gt_team_max(t->team, v, 6, err));
		t->waited_s += gt_clock() - begin;
		t->agree_at = t->windows + v[3];
		x->rank0_step_s = 1e-9 * (double)v[4];
	}
	t->signal = t->signal ? t->signal : (int)v[0];
	t->timed_out = v[1];
	t->minutes_due = v[2];
	t->regroups = v[5];
	return GT_OK;
}

enum gt_code gt_trainer_poll_stop(struct gt_trainer *t, struct gt_stop_pace *pace, struct gt_err *err)
{
	double now = gt_clock();
	int64_t v[3] = {gt_signals_pending(), is_time_up(t, now), 1};
	if (t->s->at.world > 1) {
		if (++pace->calls < pace->agree_at)
			return GT_OK;
		if (t->s->at.rank == 0) {
			/* the first batches are queued on a GPU faster than it evaluates them, so the number at most doubles */
			int64_t next = count_until_exchange((now - pace->start) / (double)pace->calls), few = FEW_BATCHES * t->s->at.npipe;
			if (t->s->at.npipe > 1 && next < few)
				next = few;
			v[2] = next < pace->calls ? next : pace->calls;
		}
		GT_TRY(gt_team_max(t->team, v, 3, err));
		pace->agree_at = pace->calls + v[2];
	}
	t->signal = t->signal ? t->signal : (int)v[0];
	t->timed_out |= v[1];
	return GT_OK;
}

bool gt_trainer_is_stopped(const struct gt_trainer *t)
{
	return t->signal || t->timed_out;
}
