/* The scores of a model on the samples of a split, also called metrics.
 *
 * GT_SCORES has a row for each: X(word, label, falls, kinds, help). These rows generate struct gt_scores, the metrics that a config can
 * name ("valid/f1"), their measurement, and their output in metrics.jsonl, TensorBoard and commands. A score of a new kind needs a row here
 * and a function in engine/score/.
 *
 *     word   the name in a config and in JSON, and the member of struct gt_scores
 *     label  the name in the output of commands
 *     falls  a lower value is better
 *     kinds  kinds of targets that have the score, as bits GT_KIND_...
 *     help   text for the manual, which begins with "; "; "": the word needs no explanation */
#ifndef GT_BASE_SCORES_H
#define GT_BASE_SCORES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Kinds of targets of a model, as bits. */
#define GT_KIND_CLASS 1   /* one class for each sample */
#define GT_KIND_LABELS 2  /* several labels for each sample */
#define GT_KIND_NUMBERS 4 /* columns of numbers */
#define GT_KIND_ANY 7

/* The loss kernel sums up these scores, also over the training steps of an epoch: the mean loss, and the shares (0 ... 1) of samples whose
 * label has the largest output (acc) or one of the five largest outputs (top5). */
#define GT_SCORES_OF_STEPS(X)                                \
	X(loss, "loss", true, GT_KIND_ANY, "")                   \
	X(acc, "accuracy", false, GT_KIND_CLASS, "")             \
	X(top5, "top-5 accuracy", false, GT_KIND_CLASS, "")
/* Scores computed from sample counts by class and by prediction: gt_counts_WORD() of score/class_counts.h. */
#define GT_SCORES_OF_COUNTS(X)                                                                  \
	X(f1, "F1", false, GT_KIND_CLASS | GT_KIND_LABELS, "; f1: macro F1")                            \
	X(mcc, "MCC", false, GT_KIND_CLASS, "; mcc: Matthews correlation coefficient")              \
	X(balanced_acc, "balanced accuracy", false, GT_KIND_CLASS, "; balanced_acc: mean recall of the classes")
/* Scores that rank all samples by their outputs: score/class_report.h. */
#define GT_SCORES_OF_RANKS(X) X(auc, "AUC", false, GT_KIND_CLASS | GT_KIND_LABELS, "; auc: area under the ROC curve")
/* Errors of predicted values, in the unit of the target; with several targets, the mean over the targets: score/value_tally.h. */
#define GT_SCORES_OF_NUMBERS(X)                                          \
	X(mae, "MAE", true, GT_KIND_NUMBERS, "; mae: mean absolute error")       \
	X(rmse, "RMSE", true, GT_KIND_NUMBERS, "; rmse: root mean squared error") \
	X(r2, "R2", false, GT_KIND_NUMBERS, "; r2: coefficient of determination")
#define GT_SCORES_OF_OUTPUTS(X) GT_SCORES_OF_COUNTS(X) GT_SCORES_OF_RANKS(X) GT_SCORES_OF_NUMBERS(X)
#define GT_SCORES(X) GT_SCORES_OF_STEPS(X) GT_SCORES_OF_OUTPUTS(X)

struct gt_scores {
#define GT_SCORE_MEMBER(word, ...) double word;
	GT_SCORES(GT_SCORE_MEMBER) /* NAN: not measured, or the targets have no such score */
#undef GT_SCORE_MEMBER
	int64_t samples; /* number of samples; 0: nothing was measured */
};

enum gt_score {
#define GT_SCORE_NUMBER(word, ...) GT_SCORE_##word,
	GT_SCORES(GT_SCORE_NUMBER)
#undef GT_SCORE_NUMBER
	GT_SCORE_COUNT
};

struct gt_score_row {
	const char *word, *label;
	bool falls;
	bool of_steps; /* the score is in GT_SCORES_OF_STEPS */
	unsigned kinds;
	size_t offset; /* byte offset of the score in struct gt_scores */
};
extern const struct gt_score_row gt_score_rows[GT_SCORE_COUNT];

double gt_score_get(const struct gt_scores *s, enum gt_score score);
/* Sets all scores of GT_SCORES_OF_OUTPUTS to NAN. */
void gt_scores_clear_outputs(struct gt_scores *s);

#endif
