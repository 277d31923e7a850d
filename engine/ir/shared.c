/* Functions that the files of rows (ops_*.c) share. */
#include "ir/rows.h"

enum gt_code gt_expect_rank(const struct gt_graph *g, const struct gt_node *n, int rank, struct gt_err *err)
{
	const struct gt_tdesc *x = gt_graph_desc(g, gt_node_first_input(n));
	char buf[96];
	if (x->rank == rank)
		return GT_OK;
	gt_tdesc_text(x, buf, sizeof buf);
	if (rank == 2)
		return gt_fail(err, GT_ECONFIG, "expected an input of [batch, features], got %s: put a \"flatten\" layer before this layer", buf);
	return gt_fail(err, GT_ECONFIG, "expected an input of [batch, channels, height, width], got %s", buf);
}

enum gt_code gt_infer_same(struct gt_graph *g, struct gt_node *n, struct gt_err *err)
{
	gt_vid y;
	struct gt_tdesc d = *gt_graph_desc(g, gt_node_first_input(n));
	return gt_graph_output(g, n, NULL, &d, &y, err);
}

enum gt_code gt_backward_node(struct gt_graph *g, const struct gt_node *n, enum gt_opcode code, gt_vid dy, struct gt_node **out,
                              struct gt_err *err)
{
	GT_TRY(gt_graph_node(g, code, n->name, n->attr, out, err));
	gt_node_input(*out, dy);
	(*out)->ndata = 1;
	return GT_OK;
}

enum gt_code gt_gradient_unary(GT_GRADIENT_ARGS, enum gt_opcode code, gt_vid other)
{
	struct gt_node *b;
	if (!want[0])
		return GT_OK;
	GT_TRY(gt_backward_node(g, n, code, dy, &b, err));
	if (other >= 0) {
		gt_node_input(b, other);
		b->ndata = 2;
	}
	struct gt_tdesc d = *gt_graph_desc(g, gt_node_first_input(n));
	return gt_graph_output(g, b, "dx", &d, &dx[0], err);
}

struct gt_init gt_init_weight_default(int64_t fan_in)
{
	/* As torch.nn.init does: calculate_gain('leaky_relu', sqrt(5)), then std, then bound. The last bit depends on this order. */
	double a = sqrt(5.0), gain = sqrt(2.0 / (1.0 + a * a)), std = gain / sqrt((double)fan_in);
	return (struct gt_init){GT_INIT_UNIFORM, sqrt(3.0) * std};
}

struct gt_init gt_init_bias_default(int64_t fan_in)
{
	return (struct gt_init){GT_INIT_UNIFORM, 1.0 / sqrt((double)fan_in)};
}

/* The weight gradient is computed before dx. x is then no longer needed, so dx can use the memory of x, and the all-reduce of the weight
 * gradient can start earlier. */
enum gt_code gt_gradient_weighted(GT_GRADIENT_ARGS, enum gt_opcode code_dx, enum gt_opcode code_dw)
{
	struct gt_node *b;
	gt_vid x = gt_node_operand(n, "x"), w = gt_node_operand(n, "w"), bias = gt_node_operand(n, "b");
	if (gt_graph_learns(g, w)) {
		GT_TRY(gt_backward_node(g, n, code_dw, dy, &b, err));
		gt_node_input(b, x);
		b->ndata = 2;
		GT_TRY(gt_graph_grad(g, b, w, err));
		GT_TRY(gt_graph_grad(g, b, gt_graph_borrows(g, n, w) ? -1 : bias, err));
	}
	/* the dw node of a shared weight moves to the owner of the weight (autodiff.c), which may be on another pipeline stage than the bias */
	if ((!gt_graph_learns(g, w) || gt_graph_borrows(g, n, w)) && gt_graph_learns(g, bias)) {
		GT_TRY(gt_graph_node(g, GT_OP_BIAS_DB, n->name, NULL, &b, err));
		gt_node_input(b, dy);
		b->ndata = 1;
		GT_TRY(gt_graph_grad(g, b, bias, err));
	}
	if (want[0]) {
		GT_TRY(gt_backward_node(g, n, code_dx, dy, &b, err));
		gt_node_input(b, w);
		struct gt_tdesc d = *gt_graph_desc(g, x);
		GT_TRY(gt_graph_output(g, b, "dx", &d, &dx[0], err));
	}
	return GT_OK;
}

int64_t gt_window_out(int64_t n, int64_t k, int64_t s, int64_t p, int64_t d, bool ceil)
{
	int64_t span = n + 2 * p - d * (k - 1) - 1 + (ceil ? s - 1 : 0);
	if (span < 0)
		return 0;
	int64_t out = span / s + 1;
	return ceil && (out - 1) * s >= n + p ? out - 1 : out;
}

bool gt_alias_always(const struct gt_graph *g, const struct gt_node *n)
{
	(void)g, (void)n;
	return true;
}

double gt_flops_none(const struct gt_graph *g, const struct gt_node *n)
{
	(void)g, (void)n;
	return 0;
}
