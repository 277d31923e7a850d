#include "train/rate_bends.h"
#include <math.h>

#define TOLERANCE 0.01 /* of the largest rate */
#define MOST_ADDED 2000

static void restart_interval(struct gt_rate_bends *b, int64_t step, double rate)
{
	b->step = step;
	b->rate = rate;
	b->low = -INFINITY;
	b->high = INFINITY;
}

/* Returns whether the straight line from the last logged rate to this rate is within the tolerance of all rates between them. */
static bool is_straight(const struct gt_rate_bends *b, int64_t step, double rate)
{
	double slope = (rate - b->rate) / (double)(step - b->step);
	return slope >= b->low && slope <= b->high;
}

static void narrow_interval(struct gt_rate_bends *b, int64_t step, double rate)
{
	double distance = (double)(step - b->step), tolerance = TOLERANCE * b->most;
	b->low = fmax(b->low, (rate - tolerance - b->rate) / distance);
	b->high = fmin(b->high, (rate + tolerance - b->rate) / distance);
}

bool gt_rate_bends_take(struct gt_rate_bends *b, int64_t step, double rate, double next, bool line)
{
	bool first = !b->step;
	b->most = fmax(b->most, fmax(rate, next));
	if (first)
		restart_interval(b, step - 1, rate); /* start at the step before, for which a resumed run already has a line */
	bool bends = (first && step == 1) || !is_straight(b, step, rate);
	narrow_interval(b, step, rate);
	bends |= !is_straight(b, step + 1, next);
	if (!line && bends && b->added < MOST_ADDED) {
		b->added++;
		line = true;
	}
	if (line)
		restart_interval(b, step, rate);
	return line;
}
