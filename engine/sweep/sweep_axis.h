/* The settings of a sweep: keys with one value, and axes (keys with several values).
 *
 *     data.limit=1000                  one value for all trials
 *     data.batch=32,64                 a list. Commas inside brackets and quotation marks belong to a value
 *     train.optimizer.lr=1e-4..1e-2    a range: log-uniform if both ends are positive and high >= 10 low, else uniform
 *     model.layers[1].out=64..512      integer ends: the values are integers, ends included */
#ifndef GT_SWEEP_AXIS_H
#define GT_SWEEP_AXIS_H

#include "base/arena.h"
#include <stdbool.h>
#include <stdint.h>

struct gt_sweep_axis {
	const char *key, *text; /* "data.batch", "32,64" */
	const char **value;     /* [nvalues] the values of a list */
	int nvalues;            /* number of values in the list; 0: the axis is a range */
	double low, high;       /* smallest and largest value of a range */
	bool whole, log_scale;
};

struct gt_sweep_axes {
	struct gt_sweep_axis *axis; /* [n] in the order of the settings */
	int n;
	const char **fixed;         /* [nfixed] settings with one value */
	int nfixed;
	bool ranges;                /* at least one axis is a range, so values are drawn at random */
};

enum gt_code gt_sweep_axes_parse(const char *const *sets, int nsets, struct gt_arena *a, struct gt_sweep_axes *out, struct gt_err *err);

/* Returns a value of the axis for a random number u, 0 <= u < 1, as a string in the arena; NULL: out of memory. */
const char *gt_sweep_axis_value(const struct gt_sweep_axis *x, double u, struct gt_arena *a);

#endif
