#include "session/schedule.h"
#include <math.h>

/* Returns the learning rate of OneCycleLR with two phases and cosine annealing. */
static double one_cycle(const struct gt_conf_schedule *s, double max_lr, double x, double length)
{
	double first = max_lr / s->div_factor, last = first / s->final_div_factor;
	double up = s->pct_start * length - 1, end = length - 1;
	double from = first, to = max_lr, pct = up > 0 ? x / up : 1;
	if (x > up) {
		from = max_lr;
		to = last;
		pct = end > up ? (x - up) / (end - up) : 1;
	}
	if (pct > 1)
		pct = 1;
	return to + (from - to) / 2 * (1 + cos(M_PI * pct));
}

double gt_schedule_rate(const struct gt_conf_schedule *s, double lr, int64_t step, int64_t total, int64_t per_epoch)
{
	double unit = s->unit == GT_UNIT_EPOCH && per_epoch > 0 ? (double)per_epoch : 1;
	double warm = s->warmup * unit;
	if ((double)step < warm)
		return lr * (s->warmup_start + (1 - s->warmup_start) * (double)step / warm);
	double x = (double)step - warm;                                      /* steps since the start of the schedule */
	double length = s->t_max > 0 ? s->t_max * unit : (double)total - warm; /* length in steps of the schedules that are smooth */
	double units = floor(x / unit + 1e-9);
	switch ((enum gt_schedule)s->type) {
	case GT_SCHED_CONSTANT:
		return lr;
	case GT_SCHED_STEP:
		return lr * pow(s->gamma, floor(x / unit / s->step_size + 1e-9)); /* step_size may be a fraction of epochs */
	case GT_SCHED_MULTISTEP: {
		int passed = 0;
		for (int i = 0; i < s->milestones.n; i++)
			passed += x / unit + 1e-9 >= s->milestones.v[i];
		return lr * pow(s->gamma, passed);
	}
	case GT_SCHED_EXPONENTIAL:
		return lr * pow(s->gamma, units);
	case GT_SCHED_COSINE:
		if (length <= 0 || x >= length)
			return s->min_lr;
		return s->min_lr + (lr - s->min_lr) * (1 + cos(M_PI * x / length)) / 2;
	case GT_SCHED_POLYNOMIAL:
		if (length <= 0 || x >= length)
			return s->min_lr;
		return s->min_lr + (lr - s->min_lr) * pow(1 - x / length, s->power);
	case GT_SCHED_FLAT_COSINE: {
		double flat = s->pct_flat * length;
		if (x < flat)
			return lr;
		if (length <= 0 || x >= length)
			return s->min_lr;
		return s->min_lr + (lr - s->min_lr) * (1 + cos(M_PI * (x - flat) / (length - flat))) / 2;
	}
	case GT_SCHED_PLATEAU:
		return lr;
	case GT_SCHED_ONECYCLE:
		return one_cycle(s, lr, x, length);
	}
	return lr;
}

double gt_schedule_reduced(const struct gt_conf_schedule *s, double lr, int64_t drops)
{
	for (int64_t i = 0; s->type == GT_SCHED_PLATEAU && i < drops; i++) {
		double next = lr * s->factor > s->min_lr ? lr * s->factor : s->min_lr;
		if (lr - next <= 1e-8) /* ReduceLROnPlateau's eps */
			break;
		lr = next;
	}
	return lr;
}

double gt_schedule_lr(const struct gt_conf_train *t, int64_t step, int64_t total, int64_t per_epoch)
{
	return gt_schedule_rate(&t->schedule, t->optimizer.lr, step, total, per_epoch);
}
