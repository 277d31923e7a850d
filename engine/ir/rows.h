/* Inside the room: the list of rows, in the manual's order, and what the families (ops_*.c) share. To add an operation: its code in
 * kernels/opcall.h, a row in a family, its name below; then a kernel in a backend. */
#ifndef GT_IR_ROWS_H
#define GT_IR_ROWS_H

#include "ir/op.h"
#include <math.h>
#include <stddef.h>

/* Layers, then losses, then what only the engine adds. */
#define GT_ROWS(X)                                                                                                                         \
	X(linear)                                                                                                                              \
	X(conv2d) X(maxpool2d) X(avgpool2d) X(adaptive_avgpool2d) X(adaptive_maxpool2d) X(global_avgpool) X(batchnorm1d) X(batchnorm2d)        \
	    X(layernorm) X(relu) X(leaky_relu) X(sigmoid) X(tanh) X(gelu) X(silu) X(softmax) X(log_softmax) X(dropout) X(flatten) X(add)       \
	        X(mul) X(scale) X(concat) X(identity) X(shortcut) X(cross_entropy) X(nll) X(mse) X(linear_dx) X(linear_dw) X(conv2d_dx) X(conv2d_dw)    \
	            X(maxpool2d_dx) X(avgpool2d_dx) X(adaptive_avgpool2d_dx) X(batchnorm_y) X(batchnorm_dx) X(layernorm_dx) X(relu_dx) X(leaky_relu_dx)       \
	                X(sigmoid_dx) X(tanh_dx) X(gelu_dx) X(silu_dx) X(softmax_dx) X(log_softmax_dx) X(flatten_dx) X(concat_dx) X(cast)      \
	                    X(gather) X(sumsq) X(bound) X(check) X(linear_dw_update) X(sgd) X(adam) X(rmsprop) X(bias_db)                       \
	                        X(views_mean) X(muon) X(rows) X(comm) X(batchnorm_stats) X(batchnorm_merge) X(batchnorm_sums)  \
	                            X(linear_loss) X(linear_back)

#define GT_X(row) extern const struct gt_op gt_row_##row;
GT_ROWS(GT_X)
#undef GT_X

/* One key of `struct st`. */
#define GT_KEY(st, text, member, kind, ...)                                                                                                \
	{                                                                                                                                      \
		.key = text, .type = kind, .offset = offsetof(struct st, member), __VA_ARGS__                                                      \
	}
#define GT_KEYS_END                                                                                                                        \
	{                                                                                                                                      \
		NULL                                                                                                                               \
	}
#define GT_REQUIRED NAN
#define GT_MAX_FEATURES (1 << 24) /* largest number of features or channels a layer may ask for */

#define GT_GRADIENT_ARGS struct gt_graph *g, struct gt_node *n, gt_vid dy, const bool *want, gt_vid *dx, struct gt_err *err

/* shared.c */
enum gt_code gt_expect_rank(const struct gt_graph *g, const struct gt_node *n, int rank, struct gt_err *err);
/* Output length of a window of k cells, d apart, over n cells with p of padding on both sides, moved by s (torch.nn.Conv2d, MaxPool2d).
 * ceil: rounds up (even a single window may then reach beyond), but the last one begins inside the input or the padding before it.
 * < 1: no window fits. */
int64_t gt_window_out(int64_t n, int64_t k, int64_t s, int64_t p, int64_t d, bool ceil);
bool gt_alias_always(const struct gt_graph *g, const struct gt_node *n);
double gt_flops_none(const struct gt_graph *g, const struct gt_node *n);
enum gt_code gt_infer_same(struct gt_graph *g, struct gt_node *n, struct gt_err *err); /* y like x */
/* dx = code(dy, other): one node, sharing n's attributes; other -1: dy alone. Nothing where !want[0]. */
enum gt_code gt_gradient_unary(GT_GRADIENT_ARGS, enum gt_opcode code, gt_vid other);
/* linear, conv2d: dw (and db) = code_dw(dy, x), dx = code_dx(dy, w). */
enum gt_code gt_gradient_weighted(GT_GRADIENT_ARGS, enum gt_opcode code_dx, enum gt_opcode code_dw);
/* A backward node of n with the input dy and n's attributes. */
enum gt_code gt_backward_node(struct gt_graph *g, const struct gt_node *n, enum gt_opcode code, gt_vid dy, struct gt_node **out,
                              struct gt_err *err);
/* The bound of PyTorch's default: kaiming_uniform_(a = sqrt(5)), in its own order of operations. */
struct gt_init gt_init_weight_default(int64_t fan_in);
struct gt_init gt_init_bias_default(int64_t fan_in);

#endif
