/* A series of values in bounded memory: a value is added at a time, and of each group of neighbouring values, the least and the greatest
 * remain. The groups double in size whenever there are GT_SERIES_POINTS / 2 of them. */
#ifndef GT_VIEW_SERIES_BUILDER_H
#define GT_VIEW_SERIES_BUILDER_H

#include "gtrain_view.h"

struct gt_series_group {
	struct gt_run_point low, high;
	bool gap; /* a value before the group or in it was not finite */
};

struct gt_series_builder {
	struct gt_series_group *group; /* [n], memory for GT_SERIES_POINTS / 2; NULL before the first value */
	int n;
	int64_t size;        /* values in a group, except in the last one */
	int64_t in_last;     /* values in the last group */
	int64_t values, missing;
	double sum, weight;  /* of the moving average: weighted sum of the values, and the sum of their weights */
	bool gap;            /* the last value was not finite */
};

/* Adds a value, which can be NAN. A step before that of the last value is left out. smooth: see gt_run_curves_open. */
enum gt_code gt_series_add(struct gt_series_builder *b, int64_t step, double epoch, double value, double smooth, struct gt_err *err);
/* Sets the epoch of all points that have none: those before the first end of an epoch, at step `length`. */
void gt_series_set_epochs(struct gt_series_builder *b, double length);
/* Writes the points that remain to out->point, which has memory for GT_SERIES_POINTS. */
void gt_series_store(const struct gt_series_builder *b, struct gt_run_series *out);

#endif
