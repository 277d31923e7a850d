/* Internal to engine/ir: macros and functions that the files of rows (ops_*.c) share. A file has one family (op.h): an array of rows, the
 * layers in the manual's order, then their gradients and what else only the engine adds. */
#ifndef GT_IR_ROWS_H
#define GT_IR_ROWS_H

#include "ir/graph.h"
#include <math.h>
#include <stddef.h>

/* The end of a family. */
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
/* GT_ECONFIG: the first input of n has another rank. */
enum gt_code gt_expect_rank(const struct gt_graph *g, const struct gt_node *n, int rank, struct gt_err *err);
/* Number of positions of a sliding window in one dimension, as in torch.nn.Conv2d and MaxPool2d. n: input length; k: window length (kernel
 * size); s: stride; p: padding on both sides; d: dilation. ceil: rounds up, so that the last window may reach beyond the padded input (even
 * a single window may), but it must begin inside the input or the padding before it. A result below 1 means that no window fits. */
int64_t gt_window_out(int64_t n, int64_t k, int64_t s, int64_t p, int64_t d, bool ceil);
/* Functions for gt_op.alias and gt_op.flops: always true, and always 0. */
bool gt_alias_always(const struct gt_graph *g, const struct gt_node *n);
double gt_flops_none(const struct gt_graph *g, const struct gt_node *n);
enum gt_code gt_infer_same(struct gt_graph *g, struct gt_node *n, struct gt_err *err); /* the output has the input's description */
/* Appends one node dx = code(dy, other) with n's attributes; other -1: dx = code(dy). Appends nothing if !want[0]. */
enum gt_code gt_gradient_unary(GT_GRADIENT_ARGS, enum gt_opcode code, gt_vid other);
/* For linear and conv2d: dw (and db) = code_dw(dy, x), and dx = code_dx(dy, w). */
enum gt_code gt_gradient_weighted(GT_GRADIENT_ARGS, enum gt_opcode code_dx, enum gt_opcode code_dw);
/* Appends a backward node of n with the input dy and n's attributes. */
enum gt_code gt_backward_node(struct gt_graph *g, const struct gt_node *n, enum gt_opcode code, gt_vid dy, struct gt_node **out,
                              struct gt_err *err);
/* PyTorch's default distributions. The bound of the weights is that of kaiming_uniform_(a = sqrt(5)), computed in PyTorch's order of
 * operations. */
struct gt_init gt_init_weight_default(int64_t fan_in);
struct gt_init gt_init_bias_default(int64_t fan_in);

#endif
