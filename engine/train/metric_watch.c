#include "train/metric_watch.h"
#include "conf/metric_name.h"
#include <math.h>
#include <string.h>

/* Gives the state of a metric that was not measured yet the worst value. */
static void begin_watch(struct gt_ckpt_watch *w, const char *metric)
{
	if (!w->set)
		w->best = gt_metric_falls(metric) ? INFINITY : -INFINITY;
	w->set = true;
	w->metric = metric;
}

bool gt_watch_continue(struct gt_ckpt_watch *w, const char *metric)
{
	if (!w->set || !w->metric || !strcmp(w->metric, metric))
		return false;
	w->set = false;
	w->bad = 0;
	begin_watch(w, metric); /* the state remains set, because a checkpoint stores learning-rate reductions only if the state is set */
	return true;
}

/* Counts a value, and stores it as the best if it is better than bound. NaN is never better. */
static void record_value(struct gt_ckpt_watch *w, double value, double bound, bool low)
{
	bool better = low ? value < bound : value > bound;
	if (better)
		w->best = value;
	w->bad = better ? 0 : w->bad + 1;
}

bool gt_watch_early_stop(const struct gt_conf_train *t, struct gt_ckpt_watch *w, double value)
{
	bool low = gt_metric_falls(t->early_stop.metric);
	begin_watch(w, t->early_stop.metric);
	record_value(w, value, low ? w->best - t->early_stop.min_delta : w->best + t->early_stop.min_delta, low);
	return gt_watch_stopped(t, w);
}

bool gt_watch_stopped(const struct gt_conf_train *t, const struct gt_ckpt_watch *w)
{
	return *t->early_stop.metric && w->bad >= t->early_stop.patience;
}

void gt_watch_plateau(const struct gt_conf_schedule *s, struct gt_ckpt_watch *w, double value)
{
	bool low = gt_metric_falls(s->metric);
	begin_watch(w, s->metric);
	/* ReduceLROnPlateau multiplies the best value by 1 +- threshold. If the best value is negative (r2 can be), a slightly worse value
	 * would be taken as better. */
	double share = isinf(w->best) ? 0 : w->best < 0 ? -s->threshold : s->threshold;
	record_value(w, value, w->best * (low ? 1 - share : 1 + share), low);
	if (w->cooldown > 0) {
		w->cooldown--;
		w->bad = 0;
	}
	if (w->bad > s->patience) {
		w->drops++;
		w->cooldown = s->cooldown;
		w->bad = 0;
	}
}
