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

/* The metrics of a split as values of a key, each after a "|": metrics of training steps, and metrics of evaluations. */
#define GT_METRIC_TRAIN(score, ...) "|train/" #score
#define GT_METRIC_VALID(score, ...) "|valid/" #score
#define GT_METRIC_TEST(score, ...) "|test/" #score
#define GT_METRICS_TRAINED GT_SCORES_OF_STEPS(GT_METRIC_TRAIN)
#define GT_METRICS_EVALUATED GT_SCORES(GT_METRIC_VALID) GT_SCORES(GT_METRIC_TEST)
#define GT_METRICS_DIRECTION "losses and errors must fall, the others must rise" /* for help texts: which change is an improvement */

struct gt_metric {
	enum gt_split split;
	enum gt_score score;
};

/* Returns false if the text is not a metric, such as "". */
bool gt_metric_parse(const char *text, struct gt_metric *out);
/* Returns whether a lower value of the metric is better. */
bool gt_metric_falls(const char *text);
/* Returns whether the metric is this score, on any split. */
bool gt_metric_is(const char *text, enum gt_score score);

#endif
