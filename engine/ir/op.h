/* Operations: one const row each. Nothing outside the backends switches over operations; what the engine must know of one stands
 * in its row (ops_*.c), and the config's layer types and their keys are the rows with GT_OPF_LAYER. */
#ifndef GT_IR_OP_H
#define GT_IR_OP_H

#include "ir/graph.h"

enum gt_opflag {
	GT_OPF_LAYER = 1 << 0,   /* may stand in a config's model.layers */
	GT_OPF_LOSS = 1 << 1,    /* may be train.loss */
	GT_OPF_INPLACE = 1 << 2, /* out[0] may share memory with in[0] if in[0] dies here */
	GT_OPF_ALIAS = 1 << 3,   /* out[0] is in[0] under another description, when alias() says so: never lowered */
	GT_OPF_CHEAP = 1 << 4,   /* making out[0] again costs about as much as reading its operands (plan/recompute.h) */
	GT_OPF_ONCE = 1 << 5     /* never made again: it changes state, or other ranks take part in it */
};

enum gt_attr_type { GT_ATTR_INT, GT_ATTR_INT2, GT_ATTR_FLOAT, GT_ATTR_BOOL, GT_ATTR_ENUM };

/* One key of a layer in the config. INT2 takes `3` or `[3, 5]` (h, w). */
struct gt_attr_def {
	const char *key;
	enum gt_attr_type type;
	size_t offset;      /* into the operation's attribute struct: int64_t, int64_t[2], double, bool, int */
	double def;         /* default; NAN: required */
	double min, max;    /* inclusive */
	const char *values; /* ENUM: "a|b", the int is the index */
	const char *help;   /* for gtrain.cfg(5) and completion */
};

struct gt_op {
	enum gt_opcode code; /* GT_OP_COUNT: a composite, which has no node of its own */
	const char *name;    /* layer type where it differs from the opcode's name (batchnorm2d); NULL: the opcode's */
	const char *help; /* one line for gtrain.cfg(5); NULL for internal operations */
	unsigned flags;
	uint8_t min_in, max_in; /* data inputs a layer takes */
	const struct gt_attr_def *attrs; /* ends with key NULL */
	size_t attr_size;

	/* Resolves attributes, checks input shapes, declares parameters (gt_graph_param) and outputs (gt_graph_output). Errors say
	 * what was expected and what came; the caller prefixes layer and place. */
	enum gt_code (*infer)(struct gt_graph *g, struct gt_node *n, struct gt_err *err);

	/* Appends the backward nodes. dy: gradient of out[0]. Sets dx[i] for data input i where want[i]; parameter gradients are
	 * written to gt_param.grad through gt_graph_grad(). NULL: not differentiable. */
	enum gt_code (*gradient)(struct gt_graph *g, struct gt_node *n, gt_vid dy, const bool *want, gt_vid *dx, struct gt_err *err);

	/* Appends the node that makes out[0] of n again in the backward pass, from n's inputs (as they are there) and its other outputs.
	 * NULL: another n does. */
	enum gt_code (*again)(struct gt_graph *g, const struct gt_node *n, struct gt_node **out, struct gt_err *err);

	bool (*alias)(const struct gt_graph *g, const struct gt_node *n); /* with GT_OPF_ALIAS */

	/* Composites only: adds the nodes of one layer (gt_graph_apply) and returns its output in *y. */
	enum gt_code (*expand)(struct gt_graph *g, const struct gt_layer_spec *s, const gt_vid *in, int nin, gt_vid *y, struct gt_err *err);
	double (*flops)(const struct gt_graph *g, const struct gt_node *n); /* multiply and add are two; NULL: one an output element */
};

const struct gt_op *gt_op_get(enum gt_opcode code); /* the first row of a code; never NULL for a valid one */
const struct gt_op *gt_op_at(int i);                /* every row, in the manual's order; NULL past the end */
const struct gt_op *gt_op_find_layer(const char *type); /* NULL: no such layer type */
const struct gt_op *gt_op_find_loss(const char *type);
const char *gt_op_name(const struct gt_op *op);
double gt_node_flops(const struct gt_graph *g, const struct gt_node *n); /* 0 for an alias */
gt_vid gt_graph_source(const struct gt_graph *g, gt_vid v); /* the value behind aliases, whose memory it is; -1 of -1 */
bool gt_node_alias(const struct gt_graph *g, const struct gt_node *n);   /* GT_OPF_ALIAS and alias() says so */
/* Writes every default into an attribute struct (attr_size bytes, zeroed first); required keys stay 0. */
void gt_op_defaults(const struct gt_op *op, void *attr);

#endif
