/* Inside the room: the list of rows, in the manual's order, and what the families (ops_*.c) share. To add an operation: its code in
 * kernels/opcall.h, a row in a family, its name below; then a kernel in a backend. */
#ifndef GT_IR_ROWS_H
#define GT_IR_ROWS_H

#include "ir/op.h"
#include <math.h>
#include <stddef.h>

#define GT_ROWS(X) X(linear) X(relu) X(flatten) X(identity) X(linear_dx) X(linear_dw) X(relu_dx) X(flatten_dx) X(add) X(cross_entropy)

#define GT_X(row) extern const struct gt_op gt_row_##row;
GT_ROWS(GT_X)
#undef GT_X

/* One key of `struct st`. */
#define GT_KEY(st, text, member, kind, ...) {.key = text, .type = kind, .offset = offsetof(struct st, member), __VA_ARGS__}
#define GT_KEYS_END {NULL}
#define GT_REQUIRED NAN
#define GT_MAX_FEATURES (1 << 24) /* largest number of features or channels a layer may ask for */

#define GT_GRADIENT_ARGS struct gt_graph *g, struct gt_node *n, gt_vid dy, const bool *want, gt_vid *dx, struct gt_err *err

/* shared.c */
enum gt_code gt_expect_rank(const struct gt_graph *g, const struct gt_node *n, int rank, struct gt_err *err);
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
