/* The metrics that a config names: "SPLIT/SCORE", such as "valid/loss", in checkpoint.best.metric, train.early_stop.metric and
 * train.schedule.metric. base/scores.h lists the scores.
 *
 *     struct gt_metric m;
 *     if (gt_metric_parse("valid/mae", &m) && m.split == GT_VALID)
 *         value = gt_score_get(&scores, m.score); */
#ifndef GT_CONF_METRIC_NAME_H
#define GT_CONF_METRIC_NAME_H

#include "base/scores.h"
#include "dataset.h"

struct gt_metric {
	enum gt_split split;
	enum gt_score score;
};

/* Returns false if the text is no metric, as "" is none. */
bool gt_metric_parse(const char *text, struct gt_metric *out);
/* Returns whether a lower value of the metric is better. */
bool gt_metric_falls(const char *text);
/* Returns whether the metric is of this score of any split. */
bool gt_metric_is(const char *text, enum gt_score score);

#endif
