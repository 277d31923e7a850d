#include "session/lr_schedule.h"
#include <math.h>

/* The arguments of a schedule's formula at one optimizer step. */
struct instant {
	double lr;     /* the base learning rate */
	double x;      /* number of optimizer steps since the end of the warm-up; may be a fraction */
	double unit;   /* number of optimizer steps in the unit (epoch or step) in which the config gives lengths */
	double length; /* length of the whole schedule in optimizer steps, for types that have the key t_max */
};

/* The position of a step in the cycle of OneCycleLR. */
struct cycle_position {
	int part;    /* 0: the learning rate rises; 1: it falls; 2: with three phases, it falls below its first value */
	double done; /* completed share of the current part, 0 ... 1 */
};

static struct cycle_position cycle_at(const struct gt_conf_schedule *s, double x, double length)
{
	/* the last step of each part, as in PyTorch, counted from the first step of the cycle */
	double end[3] = {s->pct_start * length - 1, s->three_phase ? 2 * s->pct_start * length - 2 : length - 1, length - 1}, begin = 0;
	int part = 0, parts = s->three_phase ? 3 : 2;
	while (part < parts - 1 && x > end[part])
		begin = end[part++];
	double done = end[part] > begin ? (x - begin) / (end[part] - begin) : 1;
	return (struct cycle_position){part, done > 1 ? 1 : done};
}

static double anneal_value(const struct gt_conf_schedule *s, double from, double to, double done)
{
	if (s->anneal_strategy == GT_ANNEAL_LINEAR)
		return (to - from) * done + from;
	return to + (from - to) / 2 * (1 + cos(M_PI * done));
}

/* Returns the height of CyclicLR's learning rate above base_lr, 0 ... 1, relative to the highest rate of all cycles. */
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

/* ---- the formulas of the types, rate_<word> ------------------------------------------------------------------------------- */
static double rate_constant(const struct gt_conf_schedule *s, const struct instant *t)
{
	(void)s;
	return t->lr;
}

static double rate_step(const struct gt_conf_schedule *s, const struct instant *t)
{
	/* 1e-9: if step_size is a fraction of an epoch, the quotient may be rounded to less than a whole number */
	return t->lr * pow(s->gamma, floor(t->x / t->unit / s->step_size + 1e-9));
}

static double rate_multistep(const struct gt_conf_schedule *s, const struct instant *t)
{
	int passed = 0;
	for (int i = 0; i < s->milestones.n; i++)
		passed += t->x / t->unit + 1e-9 >= s->milestones.v[i];
	return t->lr * pow(s->gamma, passed);
}

static double rate_exponential(const struct gt_conf_schedule *s, const struct instant *t)
{
	return t->lr * pow(s->gamma, floor(t->x / t->unit + 1e-9));
}

/* Returns the learning rate at step x of a half cosine from lr to min_lr. */
static double half_cosine(const struct gt_conf_schedule *s, double lr, double x, double length)
{
	return s->min_lr + (lr - s->min_lr) * (1 + cos(M_PI * x / length)) / 2;
}

static double rate_cosine(const struct gt_conf_schedule *s, const struct instant *t)
{
	return t->length <= 0 || t->x >= t->length ? s->min_lr : half_cosine(s, t->lr, t->x, t->length);
}

static double rate_polynomial(const struct gt_conf_schedule *s, const struct instant *t)
{
	if (t->length <= 0 || t->x >= t->length)
		return s->min_lr;
	return s->min_lr + (t->lr - s->min_lr) * pow(1 - t->x / t->length, s->power);
}

static double rate_onecycle(const struct gt_conf_schedule *s, const struct instant *t)
{
	double first = t->lr / s->div_factor, last = first / s->final_div_factor;
	const double from[3] = {first, t->lr, first}, to[3] = {t->lr, s->three_phase ? first : last, last};
	struct cycle_position p = cycle_at(s, t->x, t->length);
	return anneal_value(s, from[p.part], to[p.part], p.done);
}

static double rate_flat_cosine(const struct gt_conf_schedule *s, const struct instant *t)
{
	double flat = s->pct_flat * t->length;
	if (t->x < flat)
		return t->lr;
	return t->length <= 0 || t->x >= t->length ? s->min_lr : half_cosine(s, t->lr, t->x - flat, t->length - flat);
}

static double rate_plateau(const struct gt_conf_schedule *s, const struct instant *t)
{
	return rate_constant(s, t); /* gt_schedule_reduced has reduced lr */
}

static double rate_cosine_restarts(const struct gt_conf_schedule *s, const struct instant *t)
{
	double length = s->t_0 * t->unit, x = t->x;
	if (s->t_mult == 1)
		x -= length * floor(x / length + 1e-9);
	for (; s->t_mult > 1 && x + 1e-9 >= length; length *= (double)s->t_mult)
		x -= length;
	return half_cosine(s, t->lr, x, length);
}

static double rate_cyclic(const struct gt_conf_schedule *s, const struct instant *t)
{
	return s->base_lr + (t->lr - s->base_lr) * cyclic_height(s, t->x, t->unit);
}

static double rate_inverse_sqrt(const struct gt_conf_schedule *s, const struct instant *t)
{
	double scale = s->timescale > 0 ? s->timescale * t->unit : s->warmup > 0 ? s->warmup * t->unit : 10000;
	return t->lr / sqrt((t->x + scale) / scale);
}

static double (*const formulas[GT_SCHED_COUNT])(const struct gt_conf_schedule *, const struct instant *) = {
#define GT_X(NAME, word, ...) [GT_SCHED_##NAME] = rate_##word,
    GT_SCHEDULES(GT_X)
#undef GT_X
};

/* ---- functions of lr_schedule.h ---------------------------------------------------------------------------------------------- */
/* Returns the length of a smooth schedule in optimizer steps. unit: optimizer steps in one unit of t_max; warm: steps of the warm-up. */
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
	return gt_schedule_has(s->type, "cycle_momentum") && s->cycle_momentum && gt_conf_has_momentum(o);
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
	struct instant t = {lr, (double)step - warm, unit, length_of(s, total, unit, warm)};
	return formulas[s->type](s, &t);
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
