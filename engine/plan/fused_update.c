/* Fused updates: the kernel that computes a weight gradient of a linear layer also updates the weight, on one rank, or on several ranks
 * that each update a part of it (plan.h). The backward node of the layer is replaced by two nodes, and the update runs after the CHECK:
 *
 *	linear.dw -> dw      becomes      bound (at the same place)   …   linear.dw+update (at the end of the list)
 *
 * The table of an embedding or embedding_bag gets a fused update, too, if the optimizer does not change rows without a gradient:
 * embedding.dw+update reads and writes only the rows that the batch names, so that the cost of a step does not depend on the size of the
 * table. The gradient of a tied parameter is a sum of several products, so its update is not fused. */
#include "plan/plan_parts.h"
#include "ir/op.h"

/* Sets *yes to whether the backend offers the fused update of the weight whose gradient node dw makes, from the rows of `ranks` ranks. */
static enum gt_code check_offer(struct gt_space *s, const struct gt_graph *g, const struct gt_node *dw, int ranks,
                                const struct gt_attr_dw_update *attr, bool *yes, struct gt_err *err)
{
	const struct gt_param_slot *place = s->layout.param ? &s->layout.param[g->values[gt_node_operand(dw, "dw")].param] : NULL;
	int64_t words = GT_SCALARS_WORDS;
	struct gt_tdesc dy = *gt_node_desc(g, dw, "dy"), x = *gt_node_desc(g, dw, "x"), w = *gt_node_desc(g, dw, "dw"), db = {0},
	                scalars = gt_tdesc_make(GT_F64, 1, &words, false);
	struct gt_opcall oc = {.code = GT_OP_LINEAR_DW_UPDATE,
	                       .name = dw->name,
	                       .attr = attr,
	                       .nin = 4,
	                       .nout = 1,
	                       .in = {&dy, &x, &w, &scalars}};
	dy.dim[0] *= ranks;
	x.dim[0] *= ranks;
	*yes = false; /* if no plan has chosen the layout of the weight yet (w.any), the update may choose it */
	if (place) {
		if (!place->fused_update) /* the first plan of the space has decided for all plans which updates are fused */
			return GT_OK;
		w = place->desc;
	}
	if (gt_node_operand(dw, "db") >= 0 && ranks == 1) {
		db = *gt_node_desc(g, dw, "db");
		*oc.out = &db;
	}
	for (int i = 0; i < s->layout.nstates; i++)
		oc.in[oc.nin++] = &w;
	return gt_call_supported(s, &oc, yes, err);
}

static bool is_tied(const struct gt_graph *g, const struct gt_node *dw)
{
	return gt_node_first_output(dw) >= 0 && g->params[g->values[gt_node_first_output(dw)].param].tied;
}

static bool is_dw(const struct gt_graph *g, const struct gt_node *n)
{
	return n->op->code == GT_OP_LINEAR_DW && gt_node_operand(n, "dw") >= 0 && !is_tied(g, n);
}

/* Returns the operation that combines node n with the update of its table; GT_OP_COUNT: n computes no gradient of a table. */
static enum gt_opcode table_update(const struct gt_node *n)
{
	return n->op->code == GT_OP_EMBEDDING_DW       ? GT_OP_EMBEDDING_DW_UPDATE
	       : n->op->code == GT_OP_EMBEDDING_BAG_DW ? GT_OP_EMBEDDING_BAG_DW_UPDATE
	                                               : GT_OP_COUNT;
}

static bool is_table_dw(const struct gt_graph *g, const struct gt_node *n)
{
	return table_update(n) != GT_OP_COUNT && gt_node_operand(n, "dw") >= 0 && !is_tied(g, n);
}

/* Makes the attributes of the fused update that replaces linear.dw, node i. The update changes part `part` (0 … parts - 1) of the
 * weights. */
static enum gt_code make_attributes(struct gt_graph *g, int i, const struct gt_update_spec *apply, int part, int parts,
                                    struct gt_attr_dw_update **out, struct gt_err *err)
{
	const struct gt_update_spec *own = &apply[g->values[gt_node_operand(&g->nodes[i], "dw")].param];
	struct gt_attr_dw_update *attr;
	struct gt_seg *seg;
	GT_NEW(attr, g->arena, 1, err);
	GT_NEW(seg, g->arena, 1, err);
	*seg = own->hyper;
	*attr = (struct gt_attr_dw_update){.part = part, .parts = parts, .optimizer = own->code, .update = own->attr};
	attr->update.seg = seg;
	attr->update.nseg = 1;
	*out = attr;
	return GT_OK;
}

/* One weight gradient whose update is fused. */
struct fused {
	int node;       /* index of the linear.dw node, which is turned into the BOUND node */
	gt_vid dy, x;   /* the two factors of the gradient, which is their matrix product */
	gt_vid w, db;   /* w: the weights; db: the gradient of the bias, -1: the layer has no bias */
	struct gt_attr_dw_update *attr;
};

/* Appends a backward node at the end of the list, which belongs to the same layer as node `like`. */
static enum gt_code append_node(struct gt_graph *g, enum gt_opcode code, const void *attr, int like, struct gt_node **n, struct gt_err *err)
{
	int layer = g->nodes[like].layer;
	GT_TRY(gt_graph_node(g, code, g->nodes[like].name, attr, n, err));
	(*n)->layer = layer;
	(*n)->backward = true;
	return GT_OK;
}

/* Turns node dw into a BOUND node, which computes an upper bound of the gradient that dw made. Each element of this gradient is a sum of at
 * most factor * (number of rows) products. */
static enum gt_code make_bound(struct gt_graph *g, struct gt_node *dw, int64_t factor, gt_vid bound, struct gt_err *err)
{
	struct gt_attr_scale *attr;
	GT_NEW(attr, g->arena, 1, err);
	attr->factor = (double)factor;
	dw->op = gt_op_get(GT_OP_BOUND);
	dw->attr = attr;
	dw->nin = dw->ndata = 2;
	dw->nout = 1;
	gt_node_replace(dw, "scalar", bound);
	return GT_OK;
}

/* Turns linear.dw, node i, into a BOUND node, and stores the operands of the fused update in *out. */
static enum gt_code replace_dw(struct gt_graph *g, int i, struct gt_attr_dw_update *attr, gt_vid bound, struct fused *out,
                               struct gt_err *err)
{
	struct gt_node *dw = &g->nodes[i];
	*out = (struct fused){.node = i,
	                      .dy = gt_node_operand(dw, "dy"),
	                      .x = gt_node_operand(dw, "x"),
	                      .w = g->params[g->values[gt_node_operand(dw, "dw")].param].value,
	                      .db = gt_node_operand(dw, "db"),
	                      .attr = attr};
	return make_bound(g, dw, 1, bound, err);
}

/* Adds db, the gradient of the bias, to the outputs of node n; db is -1 if there is no bias. */
static void add_bias_output(struct gt_graph *g, struct gt_node *n, gt_vid db)
{
	n->out[n->nout++] = db;
	if (db >= 0)
		g->values[db].producer = (int)(n - g->nodes);
}

/* Appends the node that makes the fused update e. */
static enum gt_code append_update(struct gt_graph *g, const struct fused *e, struct gt_node **n, struct gt_err *err)
{
	GT_TRY(append_node(g, GT_OP_LINEAR_DW_UPDATE, e->attr, e->node, n, err));
	gt_node_input(*n, e->dy);
	gt_node_input(*n, e->x);
	gt_node_input(*n, e->w);
	(*n)->ndata = 2;
	return GT_OK;
}

static enum gt_code new_bound(struct gt_graph *g, gt_vid *bound, struct gt_err *err)
{
	struct gt_tdesc scalar = gt_tdesc_make(GT_F64, 0, NULL, false);
	return gt_graph_value(g, "bound", GT_V_BOUND, &scalar, bound, err);
}

/* Sets *yes to whether the backend offers the fused update of the table whose gradient node dw makes, from the rows of `ranks` ranks. */
static enum gt_code offers_table(struct gt_space *s, const struct gt_graph *g, const struct gt_node *dw, int ranks,
                                 const struct gt_attr_embedding_update *attr, bool *yes, struct gt_err *err)
{
	int param = g->values[gt_node_operand(dw, "dw")].param, n = 0;
	int64_t words = GT_SCALARS_WORDS;
	struct gt_tdesc in[GT_MAX_IO], scalars = gt_tdesc_make(GT_F64, 1, &words, false), none = gt_tdesc_make(GT_F64, 0, NULL, false);
	struct gt_opcall oc = {.code = table_update(dw), .name = dw->name, .attr = attr},
	                 bound = {.code = GT_OP_BOUND, .name = dw->name, .attr = &(struct gt_attr_scale){1}, .nin = 2, .nout = 1,
	                          .in = {in, in}, .out = {&none}};
	*yes = false;
	/* the first plan of the space has decided for all plans which updates are fused */
	if (s->layout.param && !s->layout.param[param].fused_update)
		return GT_OK;
	for (int k = 0; k < dw->nin + 1; k++, n++) {
		gt_vid v = k < 2 ? dw->in[k] : k == 2 ? gt_node_operand(dw, "dw") : dw->in[k - 1]; /* dy tokens w ... */
		if (v < 0)
			continue;
		in[n] = g->values[v].desc;
		in[n].dim[0] *= k == 2 ? 1 : ranks;
		oc.in[n] = &in[n];
	}
	oc.in[n++] = &scalars;
	oc.nin = n;
	GT_TRY(gt_call_supported(s, &oc, yes, err));
	return *yes ? gt_call_supported(s, &bound, yes, err) : GT_OK;
}

/* Makes the attributes of the fused update of the table whose gradient dw makes. It updates block `part` of `parts` blocks of rows. */
static enum gt_code table_attributes(const struct gt_graph *g, const struct gt_node *dw, const struct gt_update_spec *apply, int part,
                                     int parts, struct gt_attr_embedding_update **out, struct gt_err *err)
{
	const struct gt_update_spec *own = &apply[g->values[gt_node_operand(dw, "dw")].param];
	const struct gt_attr_embedding *table = dw->attr;
	struct gt_attr_embedding_update *attr;
	struct gt_seg *seg;
	GT_NEW(attr, g->arena, 1, err);
	GT_NEW(seg, g->arena, 1, err);
	*seg = own->hyper;
	*attr = (struct gt_attr_embedding_update){
	    .table = *table, .part = part, .parts = parts, .optimizer = own->code, .update = own->attr};
	attr->update.seg = seg;
	attr->update.nseg = 1;
	*out = attr;
	return GT_OK;
}

/* Turns gradient node i of a table into a BOUND node. A row of the gradient is a sum of rows of dy; with bags, a row of dy is added once
 * for each token of its bag. */
static enum gt_code bound_of_table(struct gt_graph *g, int i, gt_vid bound, struct gt_err *err)
{
	struct gt_node *dw = &g->nodes[i];
	int64_t factor = dw->op->code == GT_OP_EMBEDDING_BAG_DW ? gt_node_desc(g, dw, "tokens")->dim[1] : 1;
	gt_node_replace(dw, "tokens", gt_node_operand(dw, "dy"));
	return make_bound(g, dw, factor, bound, err);
}

/* Appends the fused update of the table whose gradient node i made; dw: a copy of that node as it was before. */
static enum gt_code update_table(struct gt_graph *g, int i, const struct gt_node *dw, const struct gt_attr_embedding_update *attr,
                                 struct gt_err *err)
{
	struct gt_node *n;
	GT_TRY(append_node(g, table_update(dw), attr, i, &n, err));
	gt_node_input(n, gt_node_operand(dw, "dy"));
	gt_node_input(n, gt_node_operand(dw, "tokens"));
	gt_node_input(n, g->params[g->values[gt_node_operand(dw, "dw")].param].value);
	n->ndata = 2;
	for (int k = 2; k < dw->nin; k++)
		gt_node_input(n, dw->in[k]);
	n->out[n->nout++] = -1;
	return GT_OK;
}

/* Fuses the update of the table whose gradient node i makes, if the backend offers it. */
static enum gt_code fuse_table(struct gt_space *s, struct gt_graph *g, int i, const struct gt_update_spec *apply, gt_vid *bound,
                               struct gt_err *err)
{
	const struct gt_node dw = g->nodes[i];
	struct gt_attr_embedding_update *attr;
	bool yes;
	GT_TRY(table_attributes(g, &dw, apply, 0, 1, &attr, err));
	GT_TRY(offers_table(s, g, &dw, 1, attr, &yes, err));
	if (!yes)
		return GT_OK;
	if (*bound < 0)
		GT_TRY(new_bound(g, bound, err));
	GT_TRY(bound_of_table(g, i, *bound, err));
	return update_table(g, i, &dw, attr, err);
}

/* Fuses the update of the weight of linear.dw node i, if the backend offers it. */
static enum gt_code fuse_linear(struct gt_space *s, struct gt_graph *g, int i, const struct gt_update_spec *apply, gt_vid *bound,
                                struct gt_err *err)
{
	struct gt_attr_dw_update *attr;
	struct gt_node *n;
	struct fused e;
	bool yes;
	GT_TRY(make_attributes(g, i, apply, 0, 1, &attr, err));
	GT_TRY(check_offer(s, g, &g->nodes[i], 1, attr, &yes, err));
	if (!yes)
		return GT_OK;
	if (*bound < 0)
		GT_TRY(new_bound(g, bound, err));
	GT_TRY(replace_dw(g, i, attr, *bound, &e, err));
	GT_TRY(append_update(g, &e, &n, err));
	add_bias_output(g, n, e.db);
	return GT_OK;
}

enum gt_code gt_plan_fuse_updates(struct gt_space *s, struct gt_graph *g, const struct gt_update_spec *apply, struct gt_err *err)
{
	int count = g->nnodes;
	gt_vid bound = -1;
	/* the optimizer's own kernel also writes the 16-bit copies of weights; tables have no such copies */
	bool half = g->compute != gt_graph_stat_dtype(g);
	for (int i = 0; i < count; i++) {
		if (is_table_dw(g, &g->nodes[i]))
			GT_TRY(fuse_table(s, g, i, apply, &bound, err));
		else if (is_dw(g, &g->nodes[i]) && !half)
			GT_TRY(fuse_linear(s, g, i, apply, &bound, err));
	}
	return GT_OK;
}

/* ---- on several ranks -------------------------------------------------------------------------------------------------------------- */
/* Returns whether each row of an activation depends on one sample only, so that padding rows change no result. */
static bool rows_independent(const struct gt_graph *g)
{
	for (int i = 0; i < g->nnodes; i++)
		if (g->nodes[i].op->code == GT_OP_BATCHNORM || g->nodes[i].op->code == GT_OP_BATCHNORM_STATS)
			return false;
	return true;
}

enum gt_code gt_plan_factors_pay(struct gt_space *s, struct gt_graph *g, const struct gt_update_spec *apply, int ranks, bool *out,
                                 struct gt_err *err)
{
	int64_t made = 0, moved = 0;
	*out = false;
	if (g->compute != gt_graph_stat_dtype(g) || !rows_independent(g))
		return GT_OK;
	for (int i = 0; i < g->nnodes; i++) {
		const struct gt_node *n = &g->nodes[i];
		struct gt_attr_dw_update *attr;
		struct gt_attr_embedding_update *table;
		bool yes;
		if (is_dw(g, n)) {
			GT_TRY(make_attributes(g, i, apply, 0, ranks, &attr, err));
			GT_TRY(check_offer(s, g, n, ranks, attr, &yes, err));
		} else if (is_table_dw(g, n)) {
			GT_TRY(table_attributes(g, n, apply, 0, ranks, &table, err));
			GT_TRY(offers_table(s, g, n, ranks, table, &yes, err));
		} else {
			continue;
		}
		if (!yes)
			return GT_OK;
		made += gt_tdesc_count(gt_node_desc(g, n, "dw"));
		for (int k = 0; k < n->nin; k++)
			moved += n->in[k] < 0 ? 0 : ranks * gt_tdesc_count(gt_graph_desc(g, n->in[k]));
	}
	/* A factor is written once and read by every rank; a gradient is written, added up, read and applied. So factors are faster if they
	 * have less than a quarter of the gradients' elements. Only rank 0 updates the other parameters, so these must be few. */
	*out = moved * 4 < made && made * 20 > gt_graph_num_params(g) * 19;
	return GT_OK;
}

/* Settings for the functions below, which let all ranks read a value that each rank computes for its own samples. */
struct sharing {
	int rank, ranks;
	bool copies; /* inputs of the model are first copied into memory that all ranks read */
	int first;   /* index of the first node that these functions append */
};

/* Returns whether a value may share the memory of an input of the model. */
static bool from_input(const struct gt_graph *g, gt_vid v)
{
	int at = g->values[v].producer;
	while (at >= 0 && g->nodes[at].op->flags & GT_OPF_ALIAS) {
		v = gt_node_first_input(&g->nodes[at]);
		at = g->values[v].producer;
	}
	return g->values[v].kind == GT_V_INPUT;
}

/* Replaces *v, an input of the model, by a copy in memory that all ranks read. Tables that read the same tokens share one copy. */
static enum gt_code copy_operand(struct gt_graph *g, const struct sharing *how, int node, gt_vid *v, struct gt_err *err)
{
	struct gt_tdesc d = *gt_graph_desc(g, *v);
	struct gt_node *n;
	for (int i = how->first; i < g->nnodes; i++)
		if (g->nodes[i].op->code == GT_OP_CAST && gt_node_operand(&g->nodes[i], "x") == *v) {
			*v = gt_node_operand(&g->nodes[i], "y");
			return GT_OK;
		}
	GT_TRY(append_node(g, GT_OP_CAST, NULL, node, &n, err));
	n->ndata = 1;
	gt_node_input(n, *v);
	return gt_graph_output(g, n, "copy", &d, v, err);
}

/* Replaces *v, a value with the rows of this rank, by a value with the rows of all ranks (GT_OP_ROWS). node: a node of the layer of *v. */
static enum gt_code share_rows(struct gt_graph *g, const struct sharing *how, int node, gt_vid *v, struct gt_err *err)
{
	struct gt_attr_rows *attr;
	struct gt_tdesc d = *gt_graph_desc(g, *v);
	struct gt_node *n;
	if (how->copies && from_input(g, *v))
		GT_TRY(copy_operand(g, how, node, v, err));
	GT_NEW(attr, g->arena, 1, err);
	*attr = (struct gt_attr_rows){.part = how->rank, .parts = how->ranks};
	GT_TRY(append_node(g, GT_OP_ROWS, attr, node, &n, err));
	n->ndata = 1;
	gt_node_input(n, *v);
	d.dim[0] *= attr->parts;
	return gt_graph_output(g, n, "of all ranks", &d, v, err);
}

/* Replaces this rank's factors by the factors of all ranks, and appends a node for the bias gradient of this rank's samples. */
static enum gt_code share_factors(struct gt_graph *g, const struct sharing *how, struct fused *e, struct gt_err *err)
{
	struct gt_node *n;
	gt_vid own = e->dy;
	GT_TRY(share_rows(g, how, e->node, &e->dy, err));
	GT_TRY(share_rows(g, how, e->node, &e->x, err));
	if (e->db < 0)
		return GT_OK;
	GT_TRY(append_node(g, GT_OP_BIAS_DB, NULL, e->node, &n, err));
	n->ndata = 1;
	gt_node_input(n, own);
	add_bias_output(g, n, e->db);
	return GT_OK;
}

/* A table whose update is fused: a copy of the original gradient node, and the operands with the rows of all ranks. */
struct fused_table {
	int node;
	struct gt_node dw;
	struct gt_attr_embedding_update *attr;
};

static enum gt_code share_table(struct gt_graph *g, const struct sharing *how, int i, const struct gt_update_spec *apply, gt_vid bound,
                                struct fused_table *out, struct gt_err *err)
{
	*out = (struct fused_table){.node = i, .dw = g->nodes[i]};
	GT_TRY(table_attributes(g, &out->dw, apply, how->rank, how->ranks, &out->attr, err));
	GT_TRY(bound_of_table(g, i, bound, err));
	for (int k = 0; k < out->dw.nin; k++)
		if (out->dw.in[k] >= 0)
			GT_TRY(share_rows(g, how, i, &out->dw.in[k], err));
	return GT_OK;
}

enum gt_code gt_plan_factors(struct gt_graph *g, const struct gt_update_spec *apply, int ranks, int rank, bool copies, struct gt_err *err)
{
	struct sharing how = {rank, ranks, copies, g->nnodes};
	struct fused *e;
	struct fused_table *t;
	gt_vid bound;
	int count = g->nnodes, n = 0, tables = 0;
	GT_NEW(e, g->arena, count, err);
	GT_NEW(t, g->arena, count, err);
	GT_TRY(new_bound(g, &bound, err));
	for (int i = 0; i < count; i++) {
		struct gt_attr_dw_update *attr;
		if (is_table_dw(g, &g->nodes[i]))
			GT_TRY(share_table(g, &how, i, apply, bound, &t[tables++], err));
		if (!is_dw(g, &g->nodes[i]))
			continue;
		GT_TRY(make_attributes(g, i, apply, rank, ranks, &attr, err));
		GT_TRY(replace_dw(g, i, attr, bound, &e[n], err));
		GT_TRY(share_factors(g, &how, &e[n++], err));
	}
	for (int i = 0; i < n; i++) { /* fused updates run after the CHECK, so they come after all other nodes */
		struct gt_node *up;
		GT_TRY(append_update(g, &e[i], &up, err));
	}
	for (int i = 0; i < tables; i++)
		GT_TRY(update_table(g, t[i].node, &t[i].dw, t[i].attr, err));
	return GT_OK;
}
