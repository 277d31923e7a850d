/* The metrics that a config names: "SPLIT/SCORE", such as "valid/loss", in checkpoint.best.metric, train.early_stop.metric and
 * train.schedule.metric.
 *
 *     struct gt_metric m;
 *     if (gt_metric_parse("valid/mae", &m) && m.split == GT_VALID)
 *         value = gt_metric_value(&m, &scores);
 *
 * GT_METRICS has a row for each score: its name, whether it falls while a model improves, and the kinds of targets that have it. The keys
 * of the config, the measurement, the comparison and the refusals follow from the row. */
#ifndef GT_CONF_METRIC_NAME_H
#define GT_CONF_METRIC_NAME_H

#include "dataset.h"
#include <stdbool.h>

struct gt_scores; /* base/public.h */

/* What the targets of a model are, as bits. */
#define GT_KIND_CLASS 1   /* one class for each sample */
#define GT_KIND_LABELS 2  /* several labels for each sample */
#define GT_KIND_NUMBERS 4 /* columns of numbers */
#define GT_KIND_ANY 7

/* X(score, falls, kinds): the scores of every split, also of the training steps of an epoch; and those that only an evaluation has. `score`
 * is a member of struct gt_scores. */
#define GT_METRICS_OF_STEPS(X) X(loss, true, GT_KIND_ANY) X(acc, false, GT_KIND_CLASS) X(top5, false, GT_KIND_CLASS)
#define GT_METRICS_OF_OUTPUTS(X)              \
	X(f1, false, GT_KIND_CLASS | GT_KIND_LABELS)  \
	X(auc, false, GT_KIND_CLASS | GT_KIND_LABELS) \
	X(mae, true, GT_KIND_NUMBERS)             \
	X(rmse, true, GT_KIND_NUMBERS)            \
	X(r2, false, GT_KIND_NUMBERS)
#define GT_METRICS(X) GT_METRICS_OF_STEPS(X) GT_METRICS_OF_OUTPUTS(X)

struct gt_metric_row {
	const char *name;
	bool falls, of_steps; /* a lower value is better; the training steps of an epoch have it too */
	unsigned kinds;
	size_t offset; /* of the member of struct gt_scores */
};
extern const struct gt_metric_row gt_metric_rows[]; /* ends with a row without a name */

struct gt_metric {
	enum gt_split split;
	const struct gt_metric_row *score;
};

/* Returns false if the text is no metric, as "" is none. */
bool gt_metric_parse(const char *text, struct gt_metric *out);
double gt_metric_value(const struct gt_metric *m, const struct gt_scores *r);
/* Returns whether a lower value of the metric is better. */
bool gt_metric_falls(const char *text);
/* Returns whether the metric is of this score ("f1") of any split. */
bool gt_metric_is(const char *text, const char *score);

#endif
