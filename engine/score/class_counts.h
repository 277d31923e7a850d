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
	/* number of samples of the class; number of samples predicted as the class; number of these predictions that are correct */
	int64_t support, predicted, correct;
};

struct gt_class_counts {
	int64_t classes, ignore;   /* classes: number of classes; ignore: samples with this label are not counted */
	struct gt_class_count *of; /* [classes]; owned */
};

enum gt_code gt_class_counts_add(struct gt_class_counts *t, const struct gt_output_rows *rows, struct gt_err *err);
void gt_class_counts_free(struct gt_class_counts *t);

/* returns a score; NAN if no samples were counted */
#define GT_COUNTS_FUNCTION(word, ...) double gt_counts_##word(const struct gt_class_counts *t);
GT_SCORES_OF_COUNTS(GT_COUNTS_FUNCTION)
#undef GT_COUNTS_FUNCTION

#endif
