#include "session/schedule.h"
#include <math.h>

/* The position of a step in the cycle of OneCycleLR. */
struct cycle_position {
	int part;    /* 0: the learning rate rises; 1: it falls; 2: with three phases, it falls from its first value to the end */
	double done; /* share of the part that is done, 0 ... 1 */
};

static struct cycle_position cycle_at(const struct gt_conf_schedule *s, double x, double length)
{
	/* PyTorch has these ends, which begin to count at 0 */
	double end[3] = {s->pct_start * length - 1, s->three_phase ? 2 * s->pct_start * length - 2 : length - 1, length - 1}, begin = 0;
	int part = 0, parts = s->three_phase ? 3 : 2;
	while (part < parts - 1 && x > end[part])
		begin = end[part++];
	double done = end[part] > begin ? (x - begin) / (end[part] - begin) : 1;
	return (struct cycle_position){part, done > 1 ? 1 : done};
}

static double anneal_value(const struct gt_conf_schedule *s, double from, double to, double done)
{
	if (s->anneal == GT_ANNEAL_LINEAR)
		return (to - from) * done + from;
	return to + (from - to) / 2 * (1 + cos(M_PI * done));
}

/* Returns the learning rate of OneCycleLR. */
static double one_cycle(const struct gt_conf_schedule *s, double max_lr, double x, double length)
{
	double first = max_lr / s->div_factor, last = first / s->final_div_factor;
	const double from[3] = {first, max_lr, first}, to[3] = {max_lr, s->three_phase ? first : last, last};
	struct cycle_position p = cycle_at(s, x, length);
	return anneal_value(s, from[p.part], to[p.part], p.done);
}

/* Returns the learning rate of CosineAnnealingWarmRestarts. first: length of the first half cosine in steps. */
static double with_restarts(const struct gt_conf_schedule *s, double lr, double x, double first)
{
	double length = first;
	if (s->t_mult == 1)
		x -= length * floor(x / length + 1e-9);
	for (; s->t_mult > 1 && x + 1e-9 >= length; length *= (double)s->t_mult)
		x -= length;
	return s->min_lr + (lr - s->min_lr) * (1 + cos(M_PI * x / length)) / 2;
}

/* Returns how high the learning rate of CyclicLR is above base_lr, 0 ... 1, relative to the highest one of all cycles. */
static double cyclic_height(const struct gt_conf_schedule *s, double x, double unit)
{
	double up = s->step_size_up * unit, down = s->step_size_down > 0 ? s->step_size_down * unit : up;
	double cycle = floor(x / (up + down) + 1e-9), at = x - cycle * (up + down);
	double height = at <= up ? at / up : (up + down - at) / down;
	if (height < 0) /* a rounding error */
		height = 0;
	if (s->mode == GT_CYCLIC_EXP_RANGE)
		return height * pow(s->gamma, x / unit);
	return s->mode == GT_CYCLIC_TRIANGULAR2 ? height * pow(2, -cycle) : height;
}

/* Returns the length of the smooth schedules in steps. unit: steps of their unit; warm: steps of the warm-up. */
static double length_of(const struct gt_conf_schedule *s, int64_t total, double unit, double warm)
{
	return s->t_max > 0 ? s->t_max * unit : (double)total - warm;
}

static double unit_of(const struct gt_conf_schedule *s, int64_t per_epoch)
{
	return s->unit == GT_UNIT_EPOCH && per_epoch > 0 ? (double)per_epoch : 1;
}

bool gt_schedule_cycles_momentum(const struct gt_conf_schedule *s, const struct gt_conf_optimizer *o)
{
	return (s->type == GT_SCHED_ONECYCLE || s->type == GT_SCHED_CYCLIC) && s->cycle_momentum && gt_conf_has_momentum(o);
}

double gt_schedule_momentum(const struct gt_conf_schedule *s, int64_t step, int64_t total, int64_t per_epoch)
{
	const double from[3] = {s->max_momentum, s->base_momentum, s->max_momentum};
	const double to[3] = {s->base_momentum, s->max_momentum, s->max_momentum};
	if (s->type == GT_SCHED_CYCLIC)
		return s->max_momentum - (s->max_momentum - s->base_momentum) * cyclic_height(s, (double)step, unit_of(s, per_epoch));
	struct cycle_position p = cycle_at(s, (double)step, length_of(s, total, unit_of(s, per_epoch), 0));
	return anneal_value(s, from[p.part], to[p.part], p.done);
}

double gt_schedule_rate(const struct gt_conf_schedule *s, double lr, int64_t step, int64_t total, int64_t per_epoch)
{
	double unit = unit_of(s, per_epoch);
	double warm = s->warmup * unit;
	if ((double)step < warm)
		return lr * (s->warmup_start + (1 - s->warmup_start) * (double)step / warm);
	double x = (double)step - warm; /* steps since the start of the schedule */
	double length = length_of(s, total, unit, warm);
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
	case GT_SCHED_COSINE_RESTARTS:
		return with_restarts(s, lr, x, s->t_0 * unit);
	case GT_SCHED_CYCLIC:
		return s->base_lr + (lr - s->base_lr) * cyclic_height(s, x, unit);
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
