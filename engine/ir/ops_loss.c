/* Losses. A loss adds its sums over the samples to struct gt_metrics; in a training graph it also makes the gradient of its input. */
#include "ir/rows.h"

static enum gt_code loss_infer(struct gt_graph *g, struct gt_node *n, struct gt_err *err)
{
	struct gt_tdesc x = *gt_graph_desc(g, n->in[0]);
	int64_t bytes = sizeof(struct gt_metrics);
	gt_vid metrics, dx;
	char buf[96];
	if (x.rank != 2)
		return gt_fail(err, GT_ECONFIG,
		               "expected the model's output to be [batch, classes], got %s: put a layer of type \"flatten\" at its end",
		               gt_tdesc_text(&x, buf, sizeof buf));
	struct gt_tdesc d = gt_tdesc_make(GT_U8, 1, &bytes, false);
	GT_TRY(gt_graph_output(g, n, "metrics", &d, &metrics, err));
	g->values[metrics].kind = GT_V_METRICS;
	return g->train ? gt_graph_output(g, n, "dx", &x, &dx, err) : GT_OK;
}

/* Counts five operations for each class: maximum, exponential, sum, difference and scale. */
static double loss_flops(const struct gt_graph *g, const struct gt_node *n)
{
	return 5.0 * (double)gt_tdesc_count(gt_graph_desc(g, n->in[0]));
}

#define LOSS(opcode, text)                                                                                                                 \
	{                                                                                                                                      \
	    .code = opcode,                                                                                                                    \
	    .help = text,                                                                                                                      \
	    .flags = GT_OPF_LOSS,                                                                                                              \
	    .min_in = 2,                                                                                                                       \
	    .max_in = 2,                                                                                                                       \
	    .infer = loss_infer,                                                                                                               \
	    .flops = loss_flops,                                                                                                               \
	}

const struct gt_op gt_ops_loss[] = {
    LOSS(GT_OP_CROSS_ENTROPY, "log-softmax followed by the negative log-likelihood of the label, with optional label smoothing"),
    LOSS(GT_OP_NLL, "negative log-likelihood of the label; the model must end in log_softmax"),
    LOSS(GT_OP_MSE, "mean squared difference between the output and the one-hot label"),
    GT_OPS_END,
};
