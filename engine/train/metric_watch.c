#include "train/metric_watch.h"
#include "conf/metric_name.h"
#include <math.h>
#include <string.h>

/* Begins to watch a metric: if the state w has no value of it yet, sets the best value to the worst possible value. */
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
	begin_watch(w, metric); /* sets w->set again, because a checkpoint stores the count of learning-rate reductions only if it is set */
	return true;
}

/* Stores a value as the best if it is better than bound; otherwise counts it in w->bad. NaN is never better. */
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
	/* ReduceLROnPlateau multiplies the best value by 1 +- threshold. With a negative best value (r2 can be negative), this would accept
	 * a slightly worse value as better, so the sign of the threshold is changed. */
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
