/* The area under the ROC curve of an evaluation, as struct gt_class_report has it: of class 1 if there are two classes, else the mean over
 * the classes or labels that have one.
 *
 *     struct gt_auc_tally t = {.samples = n, .ignore = ignore_index};
 *     gt_auc_tally_add(&t, rows, err);                  for all samples
 *     gt_auc_tally_score(&t, &auc, err);
 *     gt_auc_tally_free(&t); */
#ifndef GT_SCORE_AUC_H
#define GT_SCORE_AUC_H

#include "score/class_report.h"
#include "score/outputs.h"
#include "score/target_report.h"

struct gt_auc_tally {
	int64_t samples, ignore; /* maximum number of samples; label of those that do not count */
	/* The outputs of all samples; owned, at most one of the two. */
	struct gt_class_tally *classes;
	struct gt_target_tally *labels;
};

enum gt_code gt_auc_tally_add(struct gt_auc_tally *t, const struct gt_output_rows *rows, struct gt_err *err);
/* *out is NAN if no class has an area. */
enum gt_code gt_auc_tally_score(const struct gt_auc_tally *t, double *out, struct gt_err *err);
void gt_auc_tally_free(struct gt_auc_tally *t);

#endif
