#include "cpu/team_choice.h"

#define WINDOW 0.02 /* seconds of a measurement: several of Linux's time slices (3 ms) */
#define GAIN 0.95   /* a trial of the other choice (all threads, or one) changes the choice if it takes less than this share of the time */
#define CHANGED 1.25
#define WAIT_MIN 2
#define WAIT_MAX 200 /* maximum of gt_team_choice.wait; a trial takes one window, so trials then take 0.5 % of the time */

static void end_trial(struct gt_team_choice *c, double mean)
{
	bool faster = mean < GAIN * c->mean[!c->one];
	c->trial = false;
	c->windows = 0;
	c->wait = faster || !c->wait ? WAIT_MIN : 2 * c->wait < WAIT_MAX ? 2 * c->wait : WAIT_MAX;
	if (!faster)
		c->one = !c->one;
	c->before = c->mean[c->one];
}

void gt_team_choice_record(struct gt_team_choice *c, double seconds)
{
	c->seconds += seconds;
	c->walks++;
	if (c->seconds < WINDOW)
		return;
	double mean = c->seconds / c->walks, other = c->mean[!c->one];
	c->seconds = 0, c->walks = 0;
	if (!c->warm) { /* the first window warms up pages and caches and is not measured */
		c->warm = true;
		return;
	}
	c->mean[c->one] = mean;
	if (c->trial) {
		end_trial(c, mean);
		return;
	}
	c->windows++;
	if (c->windows >= c->wait ? c->one || mean > GAIN * other : mean > CHANGED * c->before && c->windows >= WAIT_MIN) {
		c->one = !c->one;
		c->trial = true;
	}
}
