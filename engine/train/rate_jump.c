#include "train/rate_jump.h"
#include "session/lr_schedule.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

#define TOLERANCE 0.01 /* smallest relative change of a rate that is a jump */

/* The position of the next step in a run, and the length of the run. */
struct position {
	int64_t step, total, per_epoch; /* arguments of gt_schedule_rate */
};

static double rate_at(const struct gt_conf_schedule *s, double lr, const struct position *p)
{
	return gt_schedule_rate(s, lr, p->step, p->total, p->per_epoch);
}

static bool rates_differ(double a, double b)
{
	return fabs(a - b) > TOLERANCE * fmax(a, b);
}

/* Returns the schedule of entry i of train.groups, or train.schedule if i is -1 or no such entry exists; *lr: its base learning rate. */
static const struct gt_conf_schedule *schedule_of(const struct gt_conf_train *t, int i, double *lr)
{
	bool group = i >= 0 && i < t->ngroups;
	*lr = group ? t->group[i].optimizer.lr : t->optimizer.lr;
	return group ? &t->group[i].schedule : &t->schedule;
}

/* "4 epochs" */
static const char *format_length(const struct gt_conf_train *t, char *buf, size_t size)
{
	bool by_steps = t->steps > 0;
	long long n = by_steps ? t->steps : t->epochs;
	snprintf(buf, size, "%lld %s%s", n, by_steps ? "step" : "epoch", n == 1 ? "" : "s");
	return buf;
}

/* Writes a warning if the rate of schedule i (schedule_of) jumps. If the new schedule gives the same rate for both lengths, another setting
 * has changed the rate, which is what the user asked for. next: number of the next step, from 1. */
static bool compare_rates(const struct gt_conf_train *before, const struct gt_conf_train *now, int i, const struct position *then,
                          const struct position *at, int64_t next, char *text, size_t size)
{
	char path[48] = "train", was[40], is[40];
	double lr, old_lr;
	const struct gt_conf_schedule *s = schedule_of(now, i, &lr), *old = schedule_of(before, i, &old_lr);
	double rate = rate_at(s, lr, at), old_rate = rate_at(old, old_lr, then);
	if (!rates_differ(rate, old_rate) || !rates_differ(rate, rate_at(s, lr, then)))
		return false;
	if (i >= 0)
		snprintf(path, sizeof path, "train.groups[%d]", i);
	int n = snprintf(text, size, "the learning rate jumps from %.3g to %.3g at step %lld, because %s.schedule (%s) lasts until the end of "
	                 "the run, which is now %s and was %s; ", old_rate, rate, (long long)next, path, gt_schedule_rows[s->type].word,
	                 format_length(now, is, sizeof is), format_length(before, was, sizeof was));
	snprintf(text + n, size - (size_t)n, "to continue at a constant rate instead, add -s %s.schedule.type=constant -s "
	         "%s.optimizer.lr=RATE; for one schedule over %s, start a new run", path, path, is);
	return true;
}

void gt_rate_jump(const struct gt_trainer *t, const struct gt_ckpt_meta *from, char *text, size_t size)
{
	const struct gt_session *s = t->s;
	const struct gt_conf_train *now = &s->conf->train;
	struct gt_conf *before;
	*text = 0;
	/* Rank 0 prints the warning. A text that cannot be read without the settings of this command has no rates to compare. */
	if (t->team->world.rank || !strcmp(from->config, s->conf->text) ||
	    gt_conf_load_resolved("config.cfg", from->config, strlen(from->config), NULL, 0, &before, NULL))
		return;
	const struct gt_conf_train *old = &before->train;
	struct position then = {from->schedule_step, 0, from->epoch_steps > 0 ? from->epoch_steps : s->batch.steps_per_epoch};
	struct position at = {t->state.step + t->shift, s->batch.steps, s->batch.steps_per_epoch};
	then.total = old->steps > 0 ? old->steps : old->epochs * then.per_epoch;
	bool jumps = compare_rates(old, now, -1, &then, &at, t->state.step + 1, text, size);
	for (int i = 0; i < now->ngroups && !jumps; i++)
		if (now->group[i].own_schedule && !now->group[i].frozen)
			jumps = compare_rates(old, now, i, &then, &at, t->state.step + 1, text, size);
	gt_conf_free(before);
}
