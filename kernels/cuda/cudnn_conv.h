/* Convolutions with cuDNN: their operation graphs and plans.
 *
 *     gt_dnn_plan_make(dev, &conv, &plan, err);                        cache or heuristic -> engine -> plan
 *     gt_dnn_plan_run(dev, &plan, at, workspace, stream, err);         at[GT_DNN_X], ...
 *     gt_dnn_plan_drop(&plan);
 *
 * All tensors are channels last: activations [N, C, H, W] and weights [K, C/groups, R, S] have a stride of 1 between channels. cuDNN
 * derives the number of groups from the channels: C of x divided by C of w ("CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR").
 *
 * Graphs for which cuDNN 9.19 and 9.26 have precompiled engines for compute capability 9.0 (queried from the libraries;
 * tests/cuda/dnn_plans.c repeats the query):
 * - The forward pass alone; and conv -> add -> [relu] (bias and optional relu) if w, y and the bias have the dtype of x and the values
 *   between the operations are f32. For a bias of another dtype, a relu without a bias, or 16-bit values between the operations, all
 *   engines are compiled when a plan is made, about a second each. Therefore the bias is rounded to the dtype of x first, and a relu
 *   without a bias gets a bias of zeros.
 * - The gradients by data and by weights if every tensor has the same dtype. For dw in f32 with 16-bit activations there is at most one
 *   engine, a compiled one. Therefore dw is computed in the dtype of x and widened by conv_tail.cu; cuDNN sums in f32 before it rounds.
 * - beta = 1 in the gradient by weights: dw is added to the existing values.
 * Graphs of a convolution and a batch normalisation are not used, although there are engines for f16 (tests/cuda/dnn_fusions.c; reasons:
 * tests/bench/RESULTS.md). */
#ifndef GT_KERNELS_CUDNN_CONV_H
#define GT_KERNELS_CUDNN_CONV_H

#include "cuda/cudnn_plan.h"

enum gt_dnn_pass { GT_DNN_FWD, GT_DNN_DX, GT_DNN_DW };

struct gt_dnn_conv {
	enum gt_dnn_pass pass;
	enum gt_dtype type;       /* dtype of every tensor: f32, bf16, f16; sums are f32 */
	int64_t x[4], w[4], y[4]; /* logical shapes of x, w and y; in the gradients, of dx, dw or dy instead */
	int64_t stride[2], padding[2], dilation[2];
	bool bias, relu; /* for the forward pass: add a bias; apply relu, which requires bias */
	bool add;        /* for the gradient by weights: add to the values in dw */
};

enum { GT_DNN_X, GT_DNN_W, GT_DNN_Y, GT_DNN_BIAS }; /* indices of the pointers of a run */

enum gt_code gt_dnn_plan_make(struct gt_dev *dev, const struct gt_dnn_conv *c, struct gt_dnn_plan *out, struct gt_err *err);

/* ---- parts of it, for tests --------------------------------------------------------------------------------------------------------- */
/* Builds the operation graph of c in p. p->set must be empty; it records the first failure. */
void gt_dnn_graph(struct gt_dnn_plan *p, const struct gt_dnn_conv *c);
/* Writes the key of c in the cache of engines: operation, shapes, options. */
void gt_dnn_key(const struct gt_dev *dev, const struct gt_dnn_conv *c, char key[GT_DNN_KEY]);

#endif
