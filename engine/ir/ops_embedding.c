/* Tables of learned rows that integers select: embedding, embeddings (one table for each column) and embedding_bag (torch.nn.Embedding,
 * EmbeddingBag). A table is f32 in every precision, and has no 16-bit copy: rows are rounded when a batch reads them. */
#include "ir/rows.h"
#include <string.h>

/* Checks that input number `input` of n is i32 with `rank` dimensions. what: name of the input in errors. */
static enum gt_code expect_integers(const struct gt_graph *g, const struct gt_node *n, int input, int rank, const char *what,
                                    struct gt_err *err)
{
	const struct gt_tdesc *d = gt_graph_desc(g, n->in[input]);
	char buf[96];
	if (d->dtype == GT_I32 && d->rank == rank)
		return GT_OK;
	return gt_fail(err, GT_ECONFIG, "in: expected %s, got %s %s from \"%s\"", what, gt_dtype_name(d->dtype),
	               gt_tdesc_text(d, buf, sizeof buf), g->values[n->in[input]].name);
}

/* Sets *rows to the number of rows of a table for the codes of input v: `given`, or the number in the data. */
static enum gt_code table_rows(const struct gt_graph *g, gt_vid v, int64_t column, int64_t given, int64_t *rows, struct gt_err *err)
{
	const int64_t *codes = g->values[gt_graph_source(g, v)].codes;
	int64_t known = codes ? codes[column < 0 ? 0 : column] : 0;
	*rows = given ? given : known;
	if (!*rows)
		return gt_fail(err, GT_ECONFIG,
		               "num_embeddings: expected the number of different integers in the input \"%s\", because the data does not give it",
		               g->values[v].name);
	if (*rows < known)
		return gt_fail(err, GT_ECONFIG,
		               "num_embeddings: expected at least %lld, the number of different integers in the input \"%s\", got %lld",
		               (long long)known, g->values[v].name, (long long)given);
	return GT_OK;
}

static enum gt_code table_param(struct gt_graph *g, struct gt_node *n, struct gt_err *err)
{
	struct gt_attr_embedding *a = n->attr;
	GT_TRY(table_rows(g, gt_node_operand(n, "tokens"), a->column, a->num, &a->num, err));
	if (a->padding >= a->num)
		return gt_fail(err, GT_ECONFIG, "padding_idx: expected an index below num_embeddings (%lld), got %lld", (long long)a->num,
		               (long long)a->padding);
	GT_TRY(gt_graph_param(g, n, "weight", GT_PARAM_TABLE, 2, (int64_t[]){a->num, a->dim}, (struct gt_init){GT_INIT_NORMAL, 1},
	                      a->dim, a->num, err));
	if (!g->spec || !g->spec->tie) /* the owner of a tied table determines its initial values */
		g->params[g->nparams - 1].zero_row = a->padding;
	return GT_OK;
}

/* ---- embedding ------------------------------------------------------------------------------------------------------------------- */
/* Infers the internal operation: y is [number of tokens, dim]. */
static enum gt_code embedding_infer(struct gt_graph *g, struct gt_node *n, struct gt_err *err)
{
	const struct gt_attr_embedding *a = n->attr;
	struct gt_tdesc t = *gt_node_desc(g, n, "tokens");
	int64_t tokens = gt_tdesc_count(&t);
	gt_vid y;
	if (a->column >= 0)
		tokens /= t.dim[t.rank - 1];
	GT_TRY(table_param(g, n, err));
	struct gt_tdesc d = gt_tdesc_make(g->compute, 2, (int64_t[]){tokens, a->dim}, true);
	return gt_graph_output(g, n, NULL, &d, &y, err);
}

static enum gt_code embedding_gradient(GT_GRADIENT_ARGS)
{
	struct gt_node *b;
	gt_vid w = gt_node_operand(n, "w");
	(void)want, (void)dx;
	if (!gt_graph_learns(g, w))
		return GT_OK;
	GT_TRY(gt_backward_node(g, n, GT_OP_EMBEDDING_DW, dy, &b, err));
	gt_node_input(b, gt_node_operand(n, "tokens"));
	b->ndata = 2;
	return gt_graph_grad(g, b, w, err);
}

static enum gt_code embedding_expand(struct gt_graph *g, const struct gt_layer_spec *s, const gt_vid *in, int nin, gt_vid *y,
                                     struct gt_err *err)
{
	struct gt_attr_embedding a = *(const struct gt_attr_embedding *)s->attr;
	struct gt_tdesc t = *gt_graph_desc(g, *in);
	struct gt_node look = {.in = {*in}};
	(void)nin;
	a.column = -1;
	if (t.rank != 1)
		GT_TRY(expect_integers(g, &look, 0, 2, "integers of [batch] or [batch, tokens]", err));
	GT_TRY(gt_graph_apply(g, gt_op_get(GT_OP_EMBEDDING), s->name, &a, 1, in, y, err));
	return t.rank == 1 ? GT_OK : gt_graph_view(g, s->name, *y, 3, (int64_t[]){t.dim[0], t.dim[1], a.dim}, y, err);
}

#define NUM                                                                                                                                \
	GT_KEY(gt_attr_embedding, "num_embeddings", num, GT_ATTR_INT, .def = 0, .min = 0, .max = INT32_MAX - 1,                                \
	       .help = "number of rows in the table; 0: the number of different integers in the input, from the data")
#define DIM                                                                                                                                \
	GT_KEY(gt_attr_embedding, "embedding_dim", dim, GT_ATTR_INT, .def = GT_REQUIRED, .min = 1, .max = GT_MAX_FEATURES,                     \
	       .help = "features per row")
#define PADDING(text)                                                                                                                      \
	GT_KEY(gt_attr_embedding, "padding_idx", padding, GT_ATTR_INT, .def = -1, .min = -1, .max = INT32_MAX - 1, .help = text)
static const struct gt_attr_def embedding_attrs[] = {
    NUM, DIM, PADDING("index of a row that starts at 0 and is not trained; -1: no row"),
    GT_KEYS_END,
};

/* ---- embeddings ------------------------------------------------------------------------------------------------------------------ */
struct attr_embeddings {
	struct gt_ints num, dim; /* one entry for each column; empty: num from the data, dim by width_of() */
};

/* Returns the number of features of a column with n different codes, by the rule of fastai. */
static int64_t width_of(int64_t n)
{
	double w = round(1.6 * pow((double)n, 0.56));
	return w < 600 ? (int64_t)w : 600;
}

/* Joins n values along dimension 1, at most GT_MAX_LAYER_IN at once. */
static enum gt_code concat_values(struct gt_graph *g, const char *name, gt_vid *v, int64_t n, gt_vid *y, struct gt_err *err)
{
	for (; n > 1; n = (n + GT_MAX_LAYER_IN - 1) / GT_MAX_LAYER_IN)
		for (int64_t i = 0; i < n; i += GT_MAX_LAYER_IN) {
			int k = n - i < GT_MAX_LAYER_IN ? (int)(n - i) : GT_MAX_LAYER_IN;
			gt_vid *to = &v[i / GT_MAX_LAYER_IN];
			if (k == 1)
				*to = v[i];
			else
				GT_TRY(gt_graph_apply(g, gt_op_get(GT_OP_CONCAT), name, NULL, k, v + i, to, err));
		}
	*y = v[0];
	return GT_OK;
}

static enum gt_code embeddings_expand(struct gt_graph *g, const struct gt_layer_spec *s, const gt_vid *in, int nin, gt_vid *y,
                                      struct gt_err *err)
{
	const struct attr_embeddings *a = s->attr;
	struct gt_tdesc t = *gt_graph_desc(g, *in);
	struct gt_node look = {.in = {*in}};
	gt_vid *v;
	(void)nin;
	GT_TRY(expect_integers(g, &look, 0, 2, "codes of [batch, columns]", err));
	int64_t columns = t.dim[1];
	if ((a->num.n && a->num.n != columns) || (a->dim.n > 1 && a->dim.n != columns))
		return gt_fail(err, GT_ECONFIG, "%s: expected %lld values, one for each column of the input, got %d",
		               a->num.n && a->num.n != columns ? "num_embeddings" : "embedding_dim", (long long)columns,
		               a->num.n && a->num.n != columns ? a->num.n : a->dim.n);
	GT_NEW(v, g->arena, columns, err);
	for (int64_t c = 0; c < columns; c++) {
		struct gt_attr_embedding e = {.padding = -1, .column = c};
		const char *name;
		GT_TRY(table_rows(g, *in, c, a->num.n ? a->num.v[c] : 0, &e.num, err));
		e.dim = a->dim.n ? a->dim.v[a->dim.n > 1 ? c : 0] : width_of(e.num);
		GT_NEW_STR(name, gt_arena_printf(g->arena, "%s.%lld", s->name, (long long)c), err);
		GT_TRY(gt_graph_apply(g, gt_op_get(GT_OP_EMBEDDING), name, &e, 1, in, &v[c], err));
	}
	return concat_values(g, s->name, v, columns, y, err);
}

static const struct gt_attr_def embeddings_attrs[] = {
    GT_KEY(attr_embeddings, "num_embeddings", num, GT_ATTR_INTS, .def = 0, .min = 0, .max = INT32_MAX - 1,
           .help = "number of rows in the table of each column; []: the number of different codes in the column"),
    GT_KEY(attr_embeddings, "embedding_dim", dim, GT_ATTR_INTS, .def = 0, .min = 0, .max = GT_MAX_FEATURES,
           .help = "features for each column, or one value for all columns; []: min(600, round(1.6 n^0.56)) for a column of n codes"),
    GT_KEYS_END,
};

/* ---- embedding_bag --------------------------------------------------------------------------------------------------------------- */
static enum gt_code bag_infer(struct gt_graph *g, struct gt_node *n, struct gt_err *err)
{
	struct gt_attr_embedding *a = n->attr;
	struct gt_tdesc t = *gt_node_desc(g, n, "tokens");
	gt_vid y, idx;
	a->column = -1;
	GT_TRY(expect_integers(g, n, 0, 2, "tokens of [batch, tokens]", err));
	GT_TRY(gt_expect_lengths(g, n, 1, err));
	GT_TRY(table_param(g, n, err));
	struct gt_tdesc d = gt_tdesc_make(g->compute, 2, (int64_t[]){t.dim[0], a->dim}, true), i = d;
	GT_TRY(gt_graph_output(g, n, NULL, &d, &y, err));
	i.dtype = GT_I32;
	return a->mode == GT_BAG_MAX ? gt_graph_output(g, n, "idx", &i, &idx, err) : GT_OK;
}

enum gt_code gt_expect_lengths(struct gt_graph *g, struct gt_node *n, int input, struct gt_err *err)
{
	if (n->ndata <= input) {
		gt_node_input(n, -1);
		return GT_OK;
	}
	GT_TRY(expect_integers(g, n, input, 1, "the lengths of the samples, integers of [batch], as the second input", err));
	if (g->extended && gt_graph_desc(g, gt_node_first_input(n))->dtype != GT_I32)
		return gt_fail(err, GT_ECONFIG, "expected no lengths after a class_token: the lengths of the samples do not include this token");
	if (gt_graph_desc(g, n->in[input])->dim[0] == gt_graph_desc(g, gt_node_first_input(n))->dim[0])
		return GT_OK;
	return gt_fail(err, GT_ECONFIG, "in: expected an input of lengths with one length for each sample");
}

void gt_pass_lengths(const struct gt_node *n, int input, struct gt_node *b)
{
	gt_node_input(b, n->in[input]);
	if (n->in[input] >= 0)
		b->ndata = b->nin;
}

static enum gt_code bag_gradient(GT_GRADIENT_ARGS)
{
	struct gt_node *b;
	gt_vid w = gt_node_operand(n, "w");
	(void)want, (void)dx;
	if (!gt_graph_learns(g, w))
		return GT_OK;
	GT_TRY(gt_backward_node(g, n, GT_OP_EMBEDDING_BAG_DW, dy, &b, err));
	gt_node_input(b, gt_node_operand(n, "tokens"));
	b->ndata = 2;
	gt_pass_lengths(n, 1, b);
	gt_node_input(b, gt_node_operand(n, "idx"));
	return gt_graph_grad(g, b, w, err);
}

/* Counts an addition for each feature of each token. */
static double bag_flops(const struct gt_graph *g, const struct gt_node *n)
{
	const struct gt_attr_embedding *a = n->attr;
	return (double)gt_tdesc_count(gt_node_desc(g, n, "tokens")) * (double)a->dim;
}

static double table_dw_flops(const struct gt_graph *g, const struct gt_node *n)
{
	return (double)gt_tdesc_count(gt_graph_desc(g, gt_node_first_input(n)));
}

static const struct gt_attr_def bag_attrs[] = {
    NUM, DIM, PADDING("index of a token that is ignored and whose row starts at 0; -1: no token"),
    GT_KEY(gt_attr_embedding, "mode", mode, GT_ATTR_ENUM, .def = 0, .max = 2, .values = "mean|sum|max",
           .help = "how the rows of a sample's tokens are combined"),
    GT_KEYS_END,
};

const struct gt_op gt_ops_embedding[] = {
    {
        .code = GT_OP_COUNT,
        .name = "embedding",
        .help = "a learned row of a table for each token: [batch, tokens] to [batch, tokens, embedding_dim]",
        .also = "nn.Embedding",
        .flags = GT_OPF_LAYER | GT_OPF_CODES | GT_OPF_TIES,
        .min_in = 1,
        .max_in = 1,
        .attrs = embedding_attrs,
        .attr_size = sizeof(struct gt_attr_embedding),
        .expand = embedding_expand,
    },
    {
        .code = GT_OP_COUNT,
        .name = "embeddings",
        .help = "a table for each column of codes; concatenates the rows of a sample's codes ([batch, columns] to [batch, features])",
        .also = "entity_embedding|categorical_embedding",
        .flags = GT_OPF_LAYER | GT_OPF_CODES,
        .min_in = 1,
        .max_in = 1,
        .attrs = embeddings_attrs,
        .attr_size = sizeof(struct attr_embeddings),
        .expand = embeddings_expand,
    },
    {
        .code = GT_OP_EMBEDDING_BAG,
        .help = "mean, sum or maximum of the rows of a sample's tokens (torch.nn.EmbeddingBag); a second input gives each sample's length",
        .also = "nn.EmbeddingBag|embeddingbag|bag",
        .flags = GT_OPF_LAYER | GT_OPF_CODES,
        .min_in = 1,
        .max_in = 2,
        .attrs = bag_attrs,
        .infer = bag_infer,
        .gradient = bag_gradient,
        .flops = bag_flops,
    },
    {.code = GT_OP_EMBEDDING, .infer = embedding_infer, .gradient = embedding_gradient, .flops = gt_flops_none},
    {.code = GT_OP_EMBEDDING_DW, .flops = table_dw_flops},
    {.code = GT_OP_EMBEDDING_DW_UPDATE, .flags = GT_OPF_UPDATES, .flops = table_dw_flops},
    {.code = GT_OP_EMBEDDING_BAG_DW, .flops = bag_flops},
    {.code = GT_OP_EMBEDDING_BAG_DW_UPDATE, .flags = GT_OPF_UPDATES, .flops = bag_flops},
    GT_OPS_END,
};
