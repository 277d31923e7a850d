/* Operations that change the shape or the order of a tensor's dimensions, for sequences: reshape, permute, select. */
#include "ir/rows.h"

/* ---- view ------------------------------------------------------------------------------------------------------------------------ */
enum gt_code gt_graph_view(struct gt_graph *g, const char *name, gt_vid v, int rank, const int64_t *dim, gt_vid *out, struct gt_err *err)
{
	struct gt_node *n;
	struct gt_tdesc d = gt_tdesc_make(gt_graph_desc(g, v)->dtype, rank, dim, true);
	GT_TRY(gt_graph_node(g, GT_OP_VIEW, name, NULL, &n, err));
	gt_node_input(n, v);
	n->ndata = 1;
	return gt_graph_output(g, n, NULL, &d, out, err);
}

static enum gt_code view_gradient(GT_GRADIENT_ARGS)
{
	return gt_gradient_unary(g, n, dy, want, dx, err, GT_OP_VIEW, -1);
}

/* ---- reshape --------------------------------------------------------------------------------------------------------------------- */
struct attr_reshape {
	struct gt_ints shape; /* sizes of the dimensions after the batch; at most one is -1 */
};

/* Writes the shape that the keys request, with the batch, to dim[4]. */
static enum gt_code new_shape(const struct gt_tdesc *x, const struct gt_ints *shape, int64_t *dim, struct gt_err *err)
{
	int64_t rest = gt_tdesc_count(x) / x->dim[0], known = 1;
	int open = -1;
	char buf[96];
	if (shape->n < 1 || shape->n > 3)
		return gt_fail(err, GT_ECONFIG, "shape: expected one to three sizes, without the batch, got %d", shape->n);
	dim[0] = x->dim[0];
	for (int i = 0; i < shape->n; i++) {
		dim[i + 1] = shape->v[i];
		if (shape->v[i] > 0 && !__builtin_mul_overflow(known, shape->v[i], &known))
			continue;
		if (shape->v[i] != -1 || open >= 0)
			return gt_fail(err, GT_ECONFIG, "shape: expected positive sizes and at most one -1, got %lld", (long long)shape->v[i]);
		open = i + 1;
	}
	if (open > 0 ? rest % known : rest != known)
		return gt_fail(err, GT_ECONFIG, "shape: expected sizes with product %lld, because a sample of the input %s has so many elements, "
		               "got %lld",
		               (long long)rest, gt_tdesc_text(x, buf, sizeof buf), (long long)known);
	if (open > 0)
		dim[open] = rest / known;
	return GT_OK;
}

enum gt_code gt_graph_unflatten(struct gt_graph *g, const char *name, gt_vid v, const int64_t *dim, gt_vid *out, struct gt_err *err)
{
	struct gt_node *n;
	struct gt_tdesc d = gt_tdesc_make(gt_graph_desc(g, v)->dtype, 4, dim, true);
	GT_TRY(gt_graph_node(g, GT_OP_FLATTEN_DX, name, NULL, &n, err));
	gt_node_input(n, v);
	n->ndata = 1;
	return gt_graph_output(g, n, NULL, &d, out, err);
}

/* Adds a reshape. An image (NHWC) is first flattened, and an image as the result is unflattened, so that elements have PyTorch's order. */
static enum gt_code reshape_expand(struct gt_graph *g, const struct gt_layer_spec *s, const gt_vid *in, int nin, gt_vid *y,
                                   struct gt_err *err)
{
	const struct attr_reshape *a = s->attr;
	struct gt_tdesc x = *gt_graph_desc(g, *in);
	int64_t dim[4];
	(void)nin;
	*y = *in;
	GT_TRY(new_shape(&x, &a->shape, dim, err));
	if (x.rank == 4)
		GT_TRY(gt_graph_apply(g, gt_op_get(GT_OP_FLATTEN), s->name, NULL, 1, in, y, err));
	if (a->shape.n < 3)
		return gt_graph_view(g, s->name, *y, a->shape.n + 1, dim, y, err);
	if (x.rank == 3)
		GT_TRY(gt_graph_view(g, s->name, *y, 2, (int64_t[]){x.dim[0], x.dim[1] * x.dim[2]}, y, err));
	return gt_graph_unflatten(g, s->name, *y, dim, y, err);
}

static const struct gt_attr_def reshape_attrs[] = {
    GT_KEY(attr_reshape, "shape", shape, GT_ATTR_INTS, .def = GT_REQUIRED, .min = -1, .max = GT_MAX_FEATURES,
           .help = "one to three sizes, without the batch; one size may be -1: it is computed from the rest"),
    GT_KEYS_END,
};

/* ---- permute --------------------------------------------------------------------------------------------------------------------- */
static enum gt_code permute_infer(struct gt_graph *g, struct gt_node *n, struct gt_err *err)
{
	struct gt_attr_permute *a = n->attr;
	struct gt_tdesc x = *gt_node_desc(g, n, "x");
	int64_t dim[GT_MAX_RANK] = {0};
	unsigned seen = 0;
	gt_vid y;
	for (int i = 0; i < a->dims.n && i < x.rank; i++) {
		int64_t d = a->dims.v[i] < 0 ? a->dims.v[i] + x.rank : a->dims.v[i];
		if (d < 0 || d >= x.rank || (!i && d))
			break;
		a->dims.v[i] = d;
		dim[i] = x.dim[d];
		seen |= 1u << d;
	}
	if (a->dims.n != x.rank || seen != (1u << x.rank) - 1)
		return gt_fail(err, GT_ECONFIG, "dims: expected each dimension from 0 to %d once, and 0 (the batch) first", x.rank - 1);
	struct gt_tdesc d = gt_tdesc_make(x.dtype, x.rank, dim, true);
	return gt_graph_output(g, n, NULL, &d, &y, err);
}

static enum gt_code permute_gradient(GT_GRADIENT_ARGS)
{
	const struct gt_attr_permute *a = n->attr;
	struct gt_attr_permute *back;
	GT_NEW(back, g->arena, 1, err);
	back->dims.n = a->dims.n;
	for (int i = 0; i < a->dims.n; i++)
		back->dims.v[a->dims.v[i]] = i;
	struct gt_node inverse = *n;
	inverse.attr = back;
	return gt_gradient_unary(g, &inverse, dy, want, dx, err, GT_OP_PERMUTE, -1);
}

static const struct gt_attr_def permute_attrs[] = {
    GT_KEY(gt_attr_permute, "dims", dims, GT_ATTR_INTS, .def = GT_REQUIRED, .min = -3, .max = 3,
           .help = "for each dimension of the output, its index in the input, as in torch.permute; the first is 0, the batch"),
    GT_KEYS_END,
};

/* ---- select ---------------------------------------------------------------------------------------------------------------------- */
static enum gt_code select_infer(struct gt_graph *g, struct gt_node *n, struct gt_err *err)
{
	struct gt_attr_select *a = n->attr;
	struct gt_tdesc x = *gt_node_desc(g, n, "x");
	int64_t dim[GT_MAX_RANK];
	char buf[96];
	gt_vid y;
	a->dim += a->dim < 0 ? x.rank : 0;
	if (x.rank < 3 || a->dim < 1 || a->dim >= x.rank)
		return gt_fail(err, GT_ECONFIG, "dim: expected a dimension after the batch in an input of rank 3 or 4, got dimension %lld of %s",
		               (long long)a->dim, gt_tdesc_text(&x, buf, sizeof buf));
	if (a->index < -x.dim[a->dim] || a->index >= x.dim[a->dim])
		return gt_fail(err, GT_ECONFIG, "index: expected a valid index for dimension %lld of the input %s, got %lld", (long long)a->dim,
		               gt_tdesc_text(&x, buf, sizeof buf), (long long)a->index);
	a->index += a->index < 0 ? x.dim[a->dim] : 0;
	for (int i = 0; i < x.rank - 1; i++)
		dim[i] = x.dim[i + (i >= a->dim)];
	struct gt_tdesc d = gt_tdesc_make(x.dtype, x.rank - 1, dim, true);
	return gt_graph_output(g, n, NULL, &d, &y, err);
}

static enum gt_code select_gradient(GT_GRADIENT_ARGS)
{
	return gt_gradient_unary(g, n, dy, want, dx, err, GT_OP_SELECT_DX, -1);
}

static const struct gt_attr_def select_attrs[] = {
    GT_KEY(gt_attr_select, "dim", dim, GT_ATTR_INT, .def = 1, .min = -3, .max = 3,
           .help = "dimension, not the batch, that is indexed; the output does not have it"),
    GT_KEY(gt_attr_select, "index", index, GT_ATTR_INT, .def = GT_REQUIRED, .min = -GT_MAX_FEATURES, .max = GT_MAX_FEATURES,
           .help = "index in this dimension; -1: the last index"),
    GT_KEYS_END,
};

const struct gt_op gt_ops_tokens[] = {
    {
        .code = GT_OP_COUNT,
        .name = "reshape",
        .help = "changes the shape of each sample and keeps PyTorch's order of elements (torch.reshape)",
        .also = "torch.reshape|view|unflatten",
        .flags = GT_OPF_LAYER | GT_OPF_TOKENS,
        .min_in = 1,
        .max_in = 1,
        .attrs = reshape_attrs,
        .attr_size = sizeof(struct attr_reshape),
        .expand = reshape_expand,
    },
    {
        .code = GT_OP_PERMUTE,
        .help = "changes the order of the dimensions (torch.permute)",
        .also = "torch.permute|transpose",
        .flags = GT_OPF_LAYER | GT_OPF_TOKENS,
        .min_in = 1,
        .max_in = 1,
        .attrs = permute_attrs,
        .infer = permute_infer,
        .gradient = permute_gradient,
        .flops = gt_flops_none,
    },
    {
        .code = GT_OP_SELECT,
        .help = "takes one index of a dimension, such as one token of [batch, tokens, features] (torch.select)",
        .flags = GT_OPF_LAYER | GT_OPF_TOKENS,
        .min_in = 1,
        .max_in = 1,
        .attrs = select_attrs,
        .infer = select_infer,
        .gradient = select_gradient,
        .flops = gt_flops_none,
    },
    {.code = GT_OP_SELECT_DX, .flops = gt_flops_none},
    {.code = GT_OP_VIEW, .flags = GT_OPF_ALIAS, .alias = gt_alias_always, .gradient = view_gradient, .flops = gt_flops_none},
    GT_OPS_END,
};
