/* The macro F1 score: the mean F1 over the classes that are the label or the prediction of some sample. Keeps three counts for each class.
 *
 *     struct gt_f1_tally t = {.ignore = ignore_index};
 *     gt_f1_tally_add(&t, rows, err);                   for all samples
 *     f1 = gt_f1_tally_score(&t);
 *     gt_f1_tally_free(&t); */
#ifndef GT_SCORE_MACRO_F1_H
#define GT_SCORE_MACRO_F1_H

#include "score/outputs.h"

struct gt_f1_count {
	int64_t support, predicted, correct; /* samples of the class; samples assigned to it; both */
};

struct gt_f1_tally {
	int64_t classes, ignore; /* ignore: label of samples that do not count */
	struct gt_f1_count *of;  /* [classes]; owned */
};

enum gt_code gt_f1_tally_add(struct gt_f1_tally *t, const struct gt_output_rows *rows, struct gt_err *err);
double gt_f1_tally_score(const struct gt_f1_tally *t); /* NAN: there were no samples */
void gt_f1_tally_free(struct gt_f1_tally *t);

#endif
