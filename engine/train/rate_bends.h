/* Finds the steps at which the curve of the learning rate bends, so that metrics.jsonl has a training line there: linear interpolation
 * between two logged rates is then accurate to 1 % of the largest rate.
 *
 *     rate     ______                 o: a line
 *           o-o      o
 *          /          \
 *         o            o____________o
 *
 * The slopes of all straight lines from the last logged step that pass the rates since then within the tolerance are an interval. The
 * step before the rate leaves the interval needs a line. */
#ifndef GT_TRAIN_RATE_BENDS_H
#define GT_TRAIN_RATE_BENDS_H

#include <stdbool.h>
#include <stdint.h>

struct gt_rate_bends { /* initialise with {0} */
	int64_t step;      /* the last step with a line; 0: none so far */
	double rate;       /* its learning rate */
	double low, high;  /* interval of the slopes, in units of the rate for each step */
	double most;       /* largest rate so far */
	int added;         /* number of lines beside those of log.every_steps */
};

/* Takes the rates of step `step` (from 1) and of the step after it. line: the step has a line in any case. Returns whether `step` needs
 * a line. A schedule whose slope changes at every step, such as cosine, gets a limited number of lines in metrics.jsonl. */
bool gt_rate_bends_take(struct gt_rate_bends *b, int64_t step, double rate, double next, bool line);

#endif
