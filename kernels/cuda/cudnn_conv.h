/* Convolutions with cuDNN: builds the operation graph, chooses an engine for it and runs the plan.
 *
 *     gt_dnn_plan_make(dev, &conv, &plan, err);                        cache or heuristic -> engine -> plan
 *     gt_dnn_plan_run(dev, &plan, at, workspace, stream, err);
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

#include "cuda/cudnn_lib.h"

#define GT_DNN_WORKSPACE ((int64_t)256 << 20) /* maximum bytes of workspace of an engine */
#define GT_DNN_CANDIDATES 16                  /* maximum number of engines that are timed or searched for tensor cores */

enum gt_dnn_pass { GT_DNN_FWD, GT_DNN_DX, GT_DNN_DW };

struct gt_dnn_conv {
	enum gt_dnn_pass pass;
	enum gt_dtype type;       /* dtype of every tensor: f32, bf16, f16; sums are f32 */
	int64_t x[4], w[4], y[4]; /* logical shapes of x, w and y; in the gradients, of dx, dw or dy instead */
	int64_t stride[2], padding[2], dilation[2];
	bool bias, relu; /* for the forward pass: add a bias; apply relu, which requires bias */
	bool add;        /* for the gradient by weights: add to the values in dw */
};

enum { GT_DNN_X, GT_DNN_W, GT_DNN_Y, GT_DNN_BIAS, GT_DNN_TENSORS }; /* indices of the pointers of a run */

struct gt_dnn_plan {
	struct gt_dnn_set set; /* the descriptors of graph, engine and plan */
	cudnnBackendDescriptor_t graph, plan;
	struct gt_dnn_set pack_set;
	cudnnBackendDescriptor_t pack; /* variant pack of the pointers below; created again when they change */
	void *at[GT_DNN_TENSORS], *workspace_at;
	bool bias, tensor_core;
	size_t workspace; /* bytes, aligned to 256 */
	struct gt_dnn_choice choice;
	const char *how; /* how the engine was chosen: "heuristic", "timed", "cached" */
};

/* Chooses an engine and makes its plan. The cache's choice is used if it is still valid. Otherwise the candidates are the engines of the
 * heuristic (mode A, then fallback) that dev's options allow and that run. With dev->autotune, and if the run need not be reproducible, the
 * fastest engine is used; otherwise the first engine that uses tensor cores, or the first engine if none does. (In cuDNN 9.19 the first
 * three engines for a 1x1 convolution with stride 2 in 16 bits do not use tensor cores.) Returns GT_EUNAVAILABLE if no engine is allowed;
 * err then has the reasons, without the name of the call. */
enum gt_code gt_dnn_plan_make(struct gt_dev *dev, const struct gt_dnn_conv *c, struct gt_dnn_plan *out, struct gt_err *err);
void gt_dnn_plan_drop(struct gt_dnn_plan *p); /* p may be zeroed */

/* Queues the plan on a stream. Pointers are aligned to 16 bytes, the workspace to 256. Allocates only if the pointers differ from the
 * previous run. */
enum gt_code gt_dnn_plan_run(struct gt_dev *dev, struct gt_dnn_plan *p, void *const at[GT_DNN_TENSORS], void *workspace, cudaStream_t s,
                             struct gt_err *err);

/* ---- shared by cudnn_conv.c, cudnn_tune.c and cudnn_trial.c ------------------------------------------------------------------------- */
/* Builds the operation graph of c in p. p->set must be empty; it records the first failure. */
void gt_dnn_graph(struct gt_dnn_plan *p, const struct gt_dnn_conv *c);
/* Writes the key of c in the cache of engines: operation, shapes, options. */
void gt_dnn_key(const struct gt_dev *dev, const struct gt_dnn_conv *c, char key[GT_DNN_KEY]);

enum gt_dnn_verdict {
	GT_DNN_FINE,
	GT_DNN_NO_TF32,
	GT_DNN_NO_ORDER,
	GT_DNN_NO_PRECISION,
	GT_DNN_NO_COMPILED,
	GT_DNN_NO_WORKSPACE,
	GT_DNN_NO_PLAN,
	GT_DNN_VERDICTS
};
/* Creates the engine, configuration and plan of a choice for p's graph, if dev's options allow it; otherwise p->set has cuDNN's error.
 * If compiled is true, it allows engines whose kernels NVRTC compiles when the plan is made, which takes a second each in every process. */
enum gt_dnn_verdict gt_dnn_realize(struct gt_dev *dev, struct gt_dnn_plan *p, const struct gt_dnn_conv *c,
                                   const struct gt_dnn_choice *choice, bool compiled);
/* Runs the *n choices on its own memory. Keeps in `choice` the choices that ran, and their count in *n: if timed is true, all of them, the
 * fastest first; otherwise only the first choice that ran. Changes nothing during a capture, without a device, or if memory is too small.
 * Returns GT_EUNAVAILABLE if none runs. */
enum gt_code gt_dnn_try(struct gt_dev *dev, const struct gt_dnn_conv *c, struct gt_dnn_choice *choice, int *n, bool timed,
                        struct gt_err *err);

#endif
