/* The rows of loss_rows.h as structs, with which the engine and the backends look up the properties of a loss.
 *
 *     const struct gt_loss_row *row = gt_loss_row(GT_OP_BCE);        row->output is GT_OUTPUT_LABELS
 */
#ifndef GT_KERNELS_LOSSES_H
#define GT_KERNELS_LOSSES_H

#include "opcall.h"

enum gt_loss {
#define GT_X(arg, CODE, name, ...) GT_LOSS_##name,
	GT_LOSSES(GT_X)
#undef GT_X
	GT_LOSS_COUNT
};

/* GT_LOSSES explains the members of a row. */
enum gt_loss_kind { GT_LOSS_MEAN, GT_LOSS_SUM, GT_LOSS_ROWS };
enum gt_loss_output { GT_OUTPUT_LOGITS, GT_OUTPUT_LOG_PROBABILITIES, GT_OUTPUT_LABELS, GT_OUTPUT_VALUES };
enum gt_loss_weight { GT_WEIGHT_NONE, GT_WEIGHT_BY_CLASS, GT_WEIGHT_BY_OUTPUT };

struct gt_loss_row {
	enum gt_opcode code;
	const char *word; /* value of train.loss: "cross_entropy" */
	enum gt_loss_kind kind;
	enum gt_loss_output output;
	bool labels_only; /* targets are labels, never values */
	enum gt_loss_weight weight;
	int numbers;
	const char *also, *help;
};

extern const struct gt_loss_row gt_loss_rows[GT_LOSS_COUNT]; /* indexed by enum gt_loss */

const struct gt_loss_row *gt_loss_row(enum gt_opcode code); /* Returns the row of a loss; NULL: the operation is not a loss. */
const struct gt_loss_row *gt_loss_find(const char *word);   /* Returns the row of the loss with this name; NULL: no loss has it. */
/* Returns whether the outputs are classes, one of which is correct: a label may then be ignored (gt_attr_loss.ignore_index). */
bool gt_loss_has_classes(const struct gt_loss_row *row);
/* Checks the rules for a call of a loss that its signature (opsig.h) cannot express. Sets *dense to true if the targets are values, not
 * labels. Returns NULL, or the reason why a backend must reject the call. */
const char *gt_loss_check(const struct gt_opcall *call, bool *dense);

#endif
