#include "losses.h"
#include "opsig.h"
#include <string.h>
#include <strings.h>

#define LABELS_ONLY_ANY false
#define LABELS_ONLY_LABEL true
const struct gt_loss_row gt_loss_rows[GT_LOSS_COUNT] = {
#define GT_X(arg, CODE, name, kind, output, target, weight, numbers, also, help) \
	{GT_OP_##CODE, #name, GT_LOSS_##kind, GT_OUTPUT_##output, LABELS_ONLY_##target, GT_WEIGHT_##weight, numbers, also, help},
    GT_LOSSES(GT_X)
#undef GT_X
};

const struct gt_loss_row *gt_loss_row(enum gt_opcode code)
{
	for (int i = 0; i < GT_LOSS_COUNT; i++)
		if (gt_loss_rows[i].code == code)
			return &gt_loss_rows[i];
	return NULL;
}

const struct gt_loss_row *gt_loss_find(const char *word)
{
	for (int i = 0; i < GT_LOSS_COUNT; i++)
		if (!strcmp(gt_loss_rows[i].word, word))
			return &gt_loss_rows[i];
	return NULL;
}

bool gt_loss_has_classes(const struct gt_loss_row *row)
{
	return row->output == GT_OUTPUT_LOGITS || row->output == GT_OUTPUT_LOG_PROBABILITIES;
}

const char *gt_loss_check(const struct gt_opcall *call, bool *dense)
{
	const struct gt_attr_loss *attr = call->attr;
	const struct gt_tdesc *x = gt_opcall_operand(call, "x"), *t = gt_opcall_operand(call, "target");
	bool labels = t->dtype == GT_I32 && t->rank == 1;
	*dense = t->dtype == GT_F32 && t->rank == 2 && t->dim[1] == x->dim[1];
	if (!labels && !*dense)
		return "the target is neither a label for each sample nor a value for each output";
	if (attr && attr->nweights && attr->nweights != x->dim[1])
		return "the number of weights differs from the number of outputs";
	return NULL;
}
