/* Scores from the number of samples of each class and of each prediction, without a confusion matrix. Definitions are from scikit-learn.
 *
 *     struct gt_class_counts t = {.ignore = ignore_index};
 *     gt_class_counts_add(&t, rows, err);               for all samples
 *     f1 = gt_counts_f1(&t);
 *     gt_class_counts_free(&t);
 *
 * GT_SCORES_OF_COUNTS (base/scores.h) lists the functions gt_counts_WORD. */
#ifndef GT_SCORE_CLASS_COUNTS_H
#define GT_SCORE_CLASS_COUNTS_H

#include "base/scores.h"
#include "score/outputs.h"

struct gt_class_count {
	int64_t support, predicted, correct; /* number of samples of the class; assigned to it; correctly assigned */
};

struct gt_class_counts {
	int64_t classes, ignore;   /* ignore: samples with this label are ignored */
	struct gt_class_count *of; /* [classes]; owned */
};

enum gt_code gt_class_counts_add(struct gt_class_counts *t, const struct gt_output_rows *rows, struct gt_err *err);
void gt_class_counts_free(struct gt_class_counts *t);

#define GT_COUNTS_FUNCTION(word, ...) double gt_counts_##word(const struct gt_class_counts *t); /* NAN: there were no samples */
GT_SCORES_OF_COUNTS(GT_COUNTS_FUNCTION)
#undef GT_COUNTS_FUNCTION

#endif
