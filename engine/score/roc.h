/* The area under the ROC curve. */
#ifndef GT_SCORE_ROC_H
#define GT_SCORE_ROC_H

#include <stdbool.h>
#include <stdint.h>

/* Returns the probability that a positive sample has a larger score than a negative one, where an equal score counts half (Mann-Whitney;
 * the sum is exact). NAN: one of the two has no samples. p, positive: [n]. own: memory for as many numbers as there are positive
 * samples. */
double gt_roc_area(const double *p, const bool *positive, int64_t n, double *own);

#endif
