/* Operations: one const row for each. A row has all properties of an operation that the engine needs, so no code outside the backends
 * switches over operations. The rows are in ops_*.c. The rows with GT_OPF_LAYER are the layer types of the config, and their attributes are
 * the layers' keys.
 *
 *	const struct gt_op *op = gt_op_find_layer("conv2d");
 *	gt_op_defaults(op, &attr);        the config then overwrites the keys that it sets
 *	op->infer(g, node, err);          parameters and output shapes
 *	op->gradient(g, node, dy, want, dx, err);
 *
 *	config keys --> attributes --> infer(): forward node --> gradient(): backward nodes --> the backend's kernels */
#ifndef GT_IR_OP_H
#define GT_IR_OP_H

#include "opcall.h"

struct gt_graph; /* defined in ir/graph.h, which includes this header */
struct gt_node;
struct gt_layer_spec;
typedef int gt_vid; /* index of a value of a graph; -1: none */

enum gt_opflag {
	GT_OPF_LAYER = 1 << 0,   /* is a layer type of model.layers in the config */
	GT_OPF_LOSS = 1 << 1,    /* is a loss of train.loss in the config */
	GT_OPF_INPLACE = 1 << 2, /* an output may overwrite an input if no later node reads the input: gt_op.inplace */
	GT_OPF_ALIAS = 1 << 3,   /* if alias() returns true, the output is the memory of the input with another description; no call is made */
	GT_OPF_CHEAP = 1 << 4,   /* recomputing the output costs about as much as reading the operands (plan/recompute.h) */
	GT_OPF_ONCE = 1 << 5,    /* must not be recomputed, because it changes state or communicates with other ranks */
	GT_OPF_TOKENS = 1 << 8,  /* a layer whose inputs may have rank 3: [batch, tokens, features] */
	GT_OPF_CODES = 1 << 9,   /* a layer that has an input of integers (i32): codes, tokens or lengths */
	GT_OPF_UPDATES = 1 << 10, /* updates its third input, a parameter, with the gradient that it computes (plan/fused_update.c) */
	GT_OPF_TIES = 1 << 11    /* a layer that may share the weight of another layer (gt_layer_spec.tie) */
};

enum gt_attr_type { GT_ATTR_INT, GT_ATTR_INT2, GT_ATTR_INTS, GT_ATTR_FLOAT, GT_ATTR_BOOL, GT_ATTR_ENUM };

/* One key of a layer in the config. INT2 accepts `3` or `[3, 5]` (height, width), INTS a list of any length. */
struct gt_attr_def {
	const char *key;
	enum gt_attr_type type;
	size_t offset;      /* byte offset in the operation's attribute struct, of an int64_t, int64_t[2], struct gt_ints, double, bool or
	                       int (ENUM) */
	double def;         /* default value; NAN: the key is required; INTS: 0 means the empty list */
	double min, max;    /* range of the value, inclusive */
	const char *values; /* ENUM: the allowed words, "a|b"; the stored value is the index of the word */
	const char *help;   /* text for gtrain.cfg(5) and shell completion */
};

struct gt_op {
	enum gt_opcode code;    /* GT_OP_COUNT: a composite, which adds nodes of other operations and none of its own */
	const char *name;       /* name of the layer type; NULL: the name of the opcode */
	const char *help;       /* one line for gtrain.cfg(5); NULL for internal operations */
	const char *also;       /* other names of the layer type, such as "dense|fc", for which an error suggests this type; NULL: none */
	unsigned flags;         /* enum gt_opflag */
	uint8_t min_in, max_in; /* number of data inputs of a layer */
	const struct gt_attr_def *attrs; /* keys of the layer type in the config; the last entry has key NULL */
	size_t attr_size;       /* of a composite: bytes of its attribute struct; else 0 (gt_op_attr_size works for all) */
	struct {
		uint8_t out, in;
	} inplace, inplace2;    /* with GT_OPF_INPLACE: indices of an output and of the input that it may overwrite; inplace2: a second such
	                         * pair, {0, 0}: none */

	/* Returns whether a layer with these attributes processes each token of an input [N, T, C] separately. Its node then gets the input as
	 * a view [N * T, C]. NULL: never. */
	bool (*per_token)(const void *attr);

	/* Returns whether a node with these attributes computes the output of a sample from other samples of the batch, too. A batch is then
	 * not divided (gt_graph_mixes_samples). attr: as infer has completed it. NULL: never. */
	bool (*mixes_samples)(const void *attr);

	/* Completes attributes, checks input shapes, declares parameters (gt_graph_param) and outputs (gt_graph_output). Errors name the
	 * expected and the actual value; the caller prepends the layer and its source location. */
	enum gt_code (*infer)(struct gt_graph *g, struct gt_node *n, struct gt_err *err);

	/* Appends the backward nodes of n. dy: gradient of its first output. Sets dx[i] to the gradient of data input i where want[i] is true.
	 * Gradients of parameters are written to gt_param.grad through gt_graph_grad(). NULL: the operation is not differentiable. */
	enum gt_code (*gradient)(struct gt_graph *g, struct gt_node *n, gt_vid dy, const bool *want, gt_vid *dx, struct gt_err *err);

	/* For recomputation: appends a node that computes the first output of n again in the backward pass, from the inputs of n, which are
	 * available there, and from the other outputs of n. NULL: a copy of n computes it. */
	enum gt_code (*again)(struct gt_graph *g, const struct gt_node *n, struct gt_node **out, struct gt_err *err);

	/* With GT_OPF_ALIAS: returns whether the output of node n is an alias of its input. */
	bool (*alias)(const struct gt_graph *g, const struct gt_node *n);

	/* Adds the nodes of one layer (gt_graph_apply) and returns its output in *y. Set for composites, and for operations that need further
	 * nodes for some inputs. */
	enum gt_code (*expand)(struct gt_graph *g, const struct gt_layer_spec *s, const gt_vid *in, int nin, gt_vid *y, struct gt_err *err);
	/* Returns the number of floating-point operations of a node; a multiply-add counts as two. NULL: one for each output element. */
	double (*flops)(const struct gt_graph *g, const struct gt_node *n);
};

const struct gt_op *gt_op_get(enum gt_opcode code);     /* the first row of an opcode; never NULL for a valid opcode */
const struct gt_op *gt_op_at(int i);                    /* every row, in the manual's order; NULL after the last one */
const struct gt_op *gt_op_find_layer(const char *type); /* NULL: no layer type has this name */
const struct gt_op *gt_op_find_loss(const char *type);  /* NULL: no loss has this name */
const struct gt_op *gt_op_find_also(const char *word);  /* finds a layer type by gt_op.also, upper or lower case; NULL: none */
const char *gt_op_name(const struct gt_op *op);
size_t gt_op_attr_size(const struct gt_op *op);         /* bytes of the attribute struct; 0: it has none */
/* Writes the defaults into an attribute struct, which it sets to 0 first; required keys stay 0. */
void gt_op_defaults(const struct gt_op *op, void *attr);

/* The families of operations. File ops_<family>.c has the rows gt_ops_<family>, in the order of the manual. */
#define GT_FAMILIES(X) \
	X(linear) X(conv) X(pool) X(norm) X(act) X(shape) X(embedding) X(tokens) X(attention) X(rnn) X(composite) X(loss) X(internal)
#define GT_X(family) extern const struct gt_op gt_ops_##family[];
GT_FAMILIES(GT_X)
#undef GT_X

#endif
