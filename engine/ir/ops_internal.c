/* Internal operations, which only the engine uses: batch loading, casts, checks, communication, optimizers. The planner builds their calls,
 * so they have no infer. */
#include "ir/rows.h"

/* Counts a multiply-add for each element of the first operand. */
static double in0_flops(const struct gt_graph *g, const struct gt_node *n)
{
	return 2.0 * (double)gt_tdesc_count(gt_graph_desc(g, gt_node_first_input(n)));
}

/* Counts an addition for each element of the first operand. */
static double in0_half_flops(const struct gt_graph *g, const struct gt_node *n)
{
	return (double)gt_tdesc_count(gt_graph_desc(g, gt_node_first_input(n)));
}

static double dw_flops(const struct gt_graph *g, const struct gt_node *n)
{
	const struct gt_attr_dw_update *a = n->attr;
	double all = 2.0 * (double)gt_tdesc_count(gt_graph_desc(g, gt_node_first_input(n))) * (double)gt_node_desc(g, n, "x")->dim[1];
	return a && a->parts ? all / a->parts : all;
}

const struct gt_op gt_ops_internal[] = {
    {.code = GT_OP_CAST, .flops = gt_flops_none},
    {.code = GT_OP_GATHER},
    {.code = GT_OP_GATHER_RECIPES},
    {.code = GT_OP_GATHER_ROWS},
    {.code = GT_OP_GATHER_RAGGED},
    {.code = GT_OP_SUMSQ, .flops = in0_flops},
    {.code = GT_OP_CHECK, .flops = gt_flops_none},
    {.code = GT_OP_BOUND, .flops = gt_flops_none},
    {.code = GT_OP_LINEAR_DW_UPDATE, .flags = GT_OPF_UPDATES, .flops = dw_flops},
    {.code = GT_OP_BIAS_DB, .flops = in0_half_flops},
    {.code = GT_OP_VIEWS_MEAN, .flops = in0_flops},
    {.code = GT_OP_ROWS, .flags = GT_OPF_ALIAS, .alias = gt_alias_always, .flops = gt_flops_none},
    {.code = GT_OP_COMM, .flags = GT_OPF_ONCE, .flops = gt_flops_none},
/* The optimizers' update operations. */
#define GT_X(NAME, ...) {.code = GT_OP_##NAME, .flops = in0_flops},
    GT_UPDATES(GT_X)
#undef GT_X
    GT_OPS_END,
};
