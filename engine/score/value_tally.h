/* The errors of predicted values (regression).
 *
 *     gt_value_tally_open(width, &t, err);
 *     while (...)
 *         gt_value_tally_add(t, outputs, targets, n);          n rows of each, in any order of the samples
 *     gt_value_tally_report(t, arena, &report, err);           the errors of each target
 *     gt_value_tally_means(t, scale, &scores);                 their means over the targets
 *     gt_value_tally_close(t);
 *
 * Definitions are from scikit-learn: mean_absolute_error, root_mean_squared_error and r2_score, with multioutput="uniform_average" for the
 * means. If a target is the same in all samples, its R2 is 1 if all predictions are right, else 0; with fewer than two samples, R2 is NAN.
 * Sums are computed in double, for R2 by Welford's method, in the order of the samples. */
#ifndef GT_SCORE_VALUE_TALLY_H
#define GT_SCORE_VALUE_TALLY_H

#include "base/arena.h"
#include "gtrain_use.h"
#include "session/session.h"

struct gt_value_tally;

/* width: number of target values of a sample. */
enum gt_code gt_value_tally_open(int64_t width, struct gt_value_tally **out, struct gt_err *err);
void gt_value_tally_close(struct gt_value_tally *t); /* t may be NULL */
void gt_value_tally_add(struct gt_value_tally *t, const float *z, const float *target, int64_t n);
/* Computes the report in the arena, in the unit of the outputs. The caller sets the names of the targets. GT_EDIVERGED: an output was not
 * finite. */
enum gt_code gt_value_tally_report(const struct gt_value_tally *t, struct gt_arena *a, struct gt_value_report **out, struct gt_err *err);
/* Sets mae, rmse and r2 of *out, in the unit of the targets. scale[width]: the conversion of each target from the unit of the outputs. */
void gt_value_tally_means(const struct gt_value_tally *t, const struct gt_value_scale *scale, struct gt_scores *out);

#endif
