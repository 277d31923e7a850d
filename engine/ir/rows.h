/* Internal to engine/ir: the list of operation rows, in the manual's order, and functions that the files of rows (ops_*.c) share. To add an
 * operation, add its opcode to kernels/opcall.h, its row to one of the files ops_*.c and its name to the list below; then write its kernel
 * in each backend. */
#ifndef GT_IR_ROWS_H
#define GT_IR_ROWS_H

#include "ir/op.h"
#include <math.h>
#include <stddef.h>

/* Layers, then losses, then operations that only the engine adds (backward nodes, then the planner's). */
#define GT_ROWS(X)                                                                                                  \
	X(linear)                                                                                                       \
	X(conv2d) X(maxpool2d) X(avgpool2d) X(adaptive_avgpool2d) X(adaptive_maxpool2d) X(global_avgpool)               \
	X(batchnorm1d) X(batchnorm2d) X(layernorm)                                                                      \
	X(relu) X(leaky_relu) X(sigmoid) X(tanh) X(gelu) X(silu) X(softmax) X(log_softmax) X(dropout)                   \
	X(flatten) X(add) X(mul) X(scale) X(concat) X(identity) X(shortcut)                                             \
	X(cross_entropy) X(nll) X(mse)                                                                                  \
	X(linear_dx) X(linear_dw) X(conv2d_dx) X(conv2d_dw) X(maxpool2d_dx) X(avgpool2d_dx) X(adaptive_avgpool2d_dx)    \
	X(batchnorm_y) X(batchnorm_dx) X(layernorm_dx)                                                                  \
	X(relu_dx) X(leaky_relu_dx) X(sigmoid_dx) X(tanh_dx) X(gelu_dx) X(silu_dx) X(softmax_dx) X(log_softmax_dx)      \
	X(flatten_dx) X(concat_dx)                                                                                      \
	X(cast) X(gather) X(sumsq) X(bound) X(check) X(linear_dw_update) X(bias_db) X(views_mean) X(rows) X(comm)       \
	X(batchnorm_stats) X(batchnorm_merge) X(batchnorm_sums) X(linear_loss) X(linear_back)

#define GT_X(row) extern const struct gt_op gt_row_##row;
GT_ROWS(GT_X)
#undef GT_X
#define GT_X(NAME, name, ...) extern const struct gt_op gt_row_##name;
GT_UPDATES(GT_X) /* the optimizers' operations, after the others: kernels/optimizer_rows.h */
#undef GT_X

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
