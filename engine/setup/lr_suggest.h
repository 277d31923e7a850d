/* Computes the suggested learning rates from the curve of a range test, as fastai's module callback.schedule defines them.
 *
 *     loss  ----.__                 valley: the middle of the longest descent
 *                  `-.      /       steep: the steepest slope over the logarithm of the rate
 *                     `-.__/        minimum: a tenth of the rate at the lowest loss
 *           ------------------> log lr */
#ifndef GT_SETUP_LR_SUGGEST_H
#define GT_SETUP_LR_SUGGEST_H

#include "gtrain_data.h"

/* Returns the factor of the moving average of the loss in a test of this number of steps: fastai's 0.98 for 100 steps, else 0.98^(100 /
 * steps), so that the average always covers the same fraction of the test. The average lags behind the loss; with a lag of a fixed number
 * of steps, the suggestion would depend on `steps`. */
double gt_lr_smooth(int steps);
/* Fills in c->suggestion from the points of the curve and c->steps, the length of the whole test. The first tenth of this length and the
 * last five points are ignored. A rate is NAN if fewer than two points remain or if the loss never falls. GT_EFAIL: no memory. */
enum gt_code gt_lr_suggest(struct gt_lr_curve *c, struct gt_err *err);

#endif
