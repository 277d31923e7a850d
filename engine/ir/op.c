/* The table of operations and lookups in it. */
#include "ir/rows.h"
#include <string.h>

static const struct gt_op *const rows[] = {
#define GT_X(row) &gt_row_##row,
    GT_ROWS(GT_X)
#undef GT_X
#define GT_X(NAME, name, ...) &gt_row_##name,
    GT_UPDATES(GT_X)
#undef GT_X
};
#define NROWS ((int)(sizeof rows / sizeof rows[0]))

const struct gt_op *gt_op_at(int i)
{
	return i >= 0 && i < NROWS ? rows[i] : NULL;
}

const struct gt_op *gt_op_get(enum gt_opcode code)
{
	for (int i = 0; i < NROWS; i++)
		if (rows[i]->code == code)
			return rows[i];
	return NULL;
}

const char *gt_op_name(const struct gt_op *op)
{
	return op->name ? op->name : gt_opcode_name(op->code);
}

static const struct gt_op *find(const char *type, unsigned flag)
{
	for (int i = 0; i < NROWS; i++)
		if (rows[i]->flags & flag && !strcmp(gt_op_name(rows[i]), type))
			return rows[i];
	return NULL;
}

const struct gt_op *gt_op_find_layer(const char *type)
{
	return find(type, GT_OPF_LAYER);
}

const struct gt_op *gt_op_find_loss(const char *type)
{
	return find(type, GT_OPF_LOSS);
}

void gt_op_defaults(const struct gt_op *op, void *attr)
{
	memset(attr, 0, op->attr_size);
	for (const struct gt_attr_def *d = op->attrs; d && d->key; d++) {
		char *p = (char *)attr + d->offset;
		int64_t v = isnan(d->def) ? 0 : (int64_t)d->def;
		switch (d->type) {
		case GT_ATTR_INT2:
			((int64_t *)(void *)p)[1] = v;
			/* fall through */
		case GT_ATTR_INT:
			((int64_t *)(void *)p)[0] = v;
			break;
		case GT_ATTR_FLOAT:
			*(double *)(void *)p = isnan(d->def) ? 0 : d->def;
			break;
		case GT_ATTR_BOOL:
			*(bool *)p = v != 0;
			break;
		case GT_ATTR_ENUM:
			*(int *)(void *)p = (int)v;
			break;
		}
	}
}

bool gt_node_alias(const struct gt_graph *g, const struct gt_node *n)
{
	return n->op->flags & GT_OPF_ALIAS && n->op->alias(g, n);
}

gt_vid gt_graph_source(const struct gt_graph *g, gt_vid v)
{
	for (int i = v < 0 ? -1 : g->values[v].producer; i >= 0 && gt_node_alias(g, &g->nodes[i]); i = g->values[v].producer)
		v = g->nodes[i].in[0];
	return v;
}

double gt_node_flops(const struct gt_graph *g, const struct gt_node *n)
{
	if (gt_node_alias(g, n))
		return 0;
	if (n->op->flops)
		return n->op->flops(g, n);
	return n->nout && n->out[0] >= 0 ? (double)gt_tdesc_count(gt_graph_desc(g, n->out[0])) : 0;
}
