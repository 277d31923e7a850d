/* A series of values in bounded memory. Values are added one by one. Each group of neighbouring values keeps only its minimum and its
 * maximum. The groups double in size whenever their number reaches GT_SERIES_POINTS / 2. */
#ifndef GT_VIEW_SERIES_BUILDER_H
#define GT_VIEW_SERIES_BUILDER_H

#include "gtrain_view.h"

struct gt_series_group {
	struct gt_run_point low, high;
	bool gap; /* a value in the group or directly before it was not finite */
};

struct gt_series_builder {
	struct gt_series_group *group; /* [n], memory for GT_SERIES_POINTS / 2; NULL before the first value */
	int n;
	int64_t size;        /* number of values in each group except the last group */
	int64_t in_last;     /* number of values in the last group */
	int64_t values, missing;
	double sum, weight;  /* of the moving average: weighted sum of the values, and the sum of their weights */
	bool gap;            /* the last value was not finite */
};

/* Adds a value, which can be NAN. A value is ignored if its step is before the step of the last value. smooth: see gt_run_curves_open. */
enum gt_code gt_series_add(struct gt_series_builder *b, int64_t step, double epoch, double value, double smooth, struct gt_err *err);
/* Sets the epochs of the points before the end of the first epoch, which was at step `length`. */
void gt_series_set_epochs(struct gt_series_builder *b, double length);
/* Writes the kept points to out->point, which has memory for GT_SERIES_POINTS. */
void gt_series_store(const struct gt_series_builder *b, struct gt_run_series *out);

#endif
