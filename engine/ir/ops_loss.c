/* Losses. A loss adds its sums over the samples to struct gt_metrics; in a training graph it also makes the gradient of its input. */
#include "ir/rows.h"
#include "losses.h"

static enum gt_code loss_infer(struct gt_graph *g, struct gt_node *n, struct gt_err *err)
{
	struct gt_tdesc x = *gt_graph_desc(g, gt_node_first_input(n));
	int64_t bytes = sizeof(struct gt_metrics);
	gt_vid metrics, dx;
	const struct gt_attr_loss *a = n->attr;
	char buf[96];
	if (x.rank != 2)
		return gt_fail(err, GT_ECONFIG,
		               "expected the model's output to be [batch, classes], got %s: put a layer of type \"flatten\" at the model's end",
		               gt_tdesc_text(&x, buf, sizeof buf));
	if (a->nweights && a->nweights != x.dim[1])
		return gt_fail(err, GT_ECONFIG, "%s: expected %lld values, one for each output of the model, got %lld",
		               gt_loss_row(n->op->code)->weight == GT_WEIGHT_BY_CLASS ? "train.class_weights" : "train.pos_weight",
		               (long long)x.dim[1],
		               (long long)a->nweights);
	struct gt_tdesc d = gt_tdesc_make(GT_U8, 1, &bytes, false);
	GT_TRY(gt_graph_output(g, n, "metrics", &d, &metrics, err));
	g->values[metrics].kind = GT_V_METRICS;
	return g->train ? gt_graph_output(g, n, "dx", &x, &dx, err) : GT_OK;
}

enum gt_code gt_loss_target(const struct gt_loss_spec *loss, int64_t samples, int64_t outputs, struct gt_tdesc *out, struct gt_err *err)
{
	if (loss->dense && gt_loss_row(loss->op->code)->labels_only)
		return gt_fail(err, GT_ECONFIG, "this loss takes class labels, but the targets are real numbers; \"cross_entropy\" takes both");
	*out = loss->dense ? gt_tdesc_make(GT_F32, 2, (int64_t[]){samples, outputs}, false) : gt_tdesc_make(GT_I32, 1, &samples, false);
	return GT_OK;
}

bool gt_loss_ignores(const struct gt_loss_spec *loss)
{
	return gt_loss_has_classes(gt_loss_row(loss->op->code)) && !loss->dense;
}

const double *gt_loss_class_weights(const struct gt_loss_spec *loss)
{
	return gt_loss_ignores(loss) && loss->attr.nweights ? loss->attr.weights : NULL;
}

/* Counts five operations for each class: maximum, exponential, sum, difference and scale. */
static double loss_flops(const struct gt_graph *g, const struct gt_node *n)
{
	return 5.0 * (double)gt_tdesc_count(gt_graph_desc(g, gt_node_first_input(n)));
}

const struct gt_op gt_ops_loss[] = {
#define GT_X(arg, CODE, id, kind, output, target, weight, numbers, names, text)                                                            \
	{                                                                                                                                      \
		.code = GT_OP_##CODE, .help = text, .flags = GT_OPF_LOSS, .min_in = 2, .max_in = 2, .flops = loss_flops, .infer = loss_infer       \
	},
    GT_LOSSES(GT_X)
#undef GT_X
    GT_OPS_END,
};
