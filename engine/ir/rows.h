/* Internal header of engine/ir: macros and functions that the files of rows (ops_*.c) share. Each file has the array of rows of one family
 * (op.h): the layers in the manual's order, then their gradients and other internal operations. */
#ifndef GT_IR_ROWS_H
#define GT_IR_ROWS_H

#include "ir/graph.h"
#include <math.h>
#include <stddef.h>

/* The entry that ends the rows of a family. */
#define GT_OPS_END                                                                                                                         \
	{                                                                                                                                      \
		.code = GT_OP_COUNT                                                                                                                \
	}

/* One entry of gt_op.attrs: the config key `text`, stored in member `member` of `struct st`. */
#define GT_KEY(st, text, member, kind, ...)                                                                                                \
	{                                                                                                                                      \
		.key = text, .type = kind, .offset = offsetof(struct st, member), __VA_ARGS__                                                      \
	}
#define GT_KEYS_END                                                                                                                        \
	{                                                                                                                                      \
		NULL                                                                                                                               \
	}
#define GT_REQUIRED NAN
#define GT_MAX_FEATURES (1 << 24) /* largest number of features or channels of a layer */

#define GT_GRADIENT_ARGS struct gt_graph *g, struct gt_node *n, gt_vid dy, const bool *want, gt_vid *dx, struct gt_err *err

/* shared.c */
/* Checks that the first input of n has `rank` dimensions. Returns GT_ECONFIG if not. */
enum gt_code gt_expect_rank(const struct gt_graph *g, const struct gt_node *n, int rank, struct gt_err *err);
/* Appends a node whose output *out is an alias of v, an activation, with another shape and the same number of elements. Rank 4 (NHWC) is
 * not allowed on either side. */
enum gt_code gt_graph_view(struct gt_graph *g, const char *name, gt_vid v, int rank, const int64_t *dim, gt_vid *out, struct gt_err *err);
/* Appends a node whose output *out is v, [batch, elements], with the elements in PyTorch's order, converted to NHWC with the dimensions
 * dim[4]: the inverse of flatten. */
enum gt_code gt_graph_unflatten(struct gt_graph *g, const char *name, gt_vid v, const int64_t *dim, gt_vid *out, struct gt_err *err);
/* For a node with one data input and optionally, as input number `input`, the lengths of the samples: checks the lengths, or appends an
 * absent input. */
enum gt_code gt_expect_lengths(struct gt_graph *g, struct gt_node *n, int input, struct gt_err *err);
/* Appends n's lengths, or an absent input, to the backward node b, whose inputs so far are data. */
void gt_pass_lengths(const struct gt_node *n, int input, struct gt_node *b);
/* The projections of attention: linear operations whose parameters have other names and initial values (ops_linear.c). */
extern const struct gt_op gt_op_in_proj, gt_op_out_proj;
/* Number of positions of a sliding window in one dimension, as in torch.nn.Conv2d and MaxPool2d. n: input length; k: window length (kernel
 * size); s: stride; p: padding on both sides; d: dilation. ceil: rounds up, so that the last (or only) window may reach beyond the padded
 * input, but must begin inside the input or the padding before it. A result below 1 means that no window fits. */
int64_t gt_window_out(int64_t n, int64_t k, int64_t s, int64_t p, int64_t d, bool ceil);
bool gt_alias_always(const struct gt_graph *g, const struct gt_node *n); /* for gt_op.alias: returns true */
double gt_flops_none(const struct gt_graph *g, const struct gt_node *n); /* for gt_op.flops: returns 0 */
/* For gt_op.infer: the output has the same shape and dtype as the input. */
enum gt_code gt_infer_same(struct gt_graph *g, struct gt_node *n, struct gt_err *err);
/* For gt_op.gradient: appends one node dx = code(dy, other), or dx = code(dy) if other is -1, with n's attributes. Appends nothing if
 * want[0] is false. */
enum gt_code gt_gradient_unary(GT_GRADIENT_ARGS, enum gt_opcode code, gt_vid other);
/* For gt_op.gradient of linear and conv2d: appends the nodes dw, db = code_dw(dy, x) (db only with a bias) and dx = code_dx(dy, w). */
enum gt_code gt_gradient_weighted(GT_GRADIENT_ARGS, enum gt_opcode code_dx, enum gt_opcode code_dw);
/* Appends a backward node of n with the input dy and n's attributes. */
enum gt_code gt_backward_node(struct gt_graph *g, const struct gt_node *n, enum gt_opcode code, gt_vid dy, struct gt_node **out,
                              struct gt_err *err);
/* Return the distributions from which PyTorch draws the weights, and the biases, of linear and convolution layers by default. The bound for
 * weights is computed as in kaiming_uniform_(a = sqrt(5)), in PyTorch's order of operations. */
struct gt_init gt_init_weight_default(int64_t fan_in);
struct gt_init gt_init_bias_default(int64_t fan_in);

#endif
