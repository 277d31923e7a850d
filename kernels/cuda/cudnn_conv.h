/* A convolution as a cuDNN operation graph, the choice of an engine for it, and running what was chosen.
 *
 * All tensors are channels last: activations [N, C, H, W] and weights [K, C/groups, R, S] with strides of (…, channel = 1). Groups follow
 * from the channels: cuDNN takes C of x divided by C of w ("CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR").
 *
 * What has precompiled engines for compute capability 9.0 (asked of cuDNN 9.19 and 9.26 themselves: tests/cuda/dnn_plans.c asks again):
 * - forward alone; forward + bias + [relu] as conv → add → [relu] where w, y and the bias have the type of x and what lies between is f32.
 *   A bias of another type, a relu without a bias, 16-bit values in between: only engines that are compiled when a plan is made, about a
 *   second each. So the bias is rounded to the type of x before, and a relu without bias gets a bias of zeros.
 * - gradients by data and by weights where every tensor has the same type. dw as f32 of 16-bit activations: at most one engine, which is
 *   compiled. So dw comes in the type of x and is widened by conv_tail.cu; it is summed in f32 before.
 * - beta = 1 in the gradient by weights: dw is added to what stands there. */
#ifndef GT_KERNELS_CUDNN_CONV_H
#define GT_KERNELS_CUDNN_CONV_H

#include "cuda/cudnn_lib.h"

#define GT_DNN_WORKSPACE ((int64_t)256 << 20) /* an engine that takes more is not considered */
#define GT_DNN_CANDIDATES 16                  /* considered at most: timed, or looked through for engines on tensor cores */

enum gt_dnn_pass { GT_DNN_FWD, GT_DNN_DX, GT_DNN_DW };

struct gt_dnn_conv {
	enum gt_dnn_pass pass;
	enum gt_dtype type;       /* of every tensor: f32, bf16, f16; sums are f32 */
	int64_t x[4], w[4], y[4]; /* logical shapes; dx, dw, dy in their gradients */
	int64_t stride[2], padding[2], dilation[2];
	bool bias, relu; /* forward; relu only with bias */
	bool add;        /* gradient by weights: to what dw holds */
};

enum { GT_DNN_X, GT_DNN_W, GT_DNN_Y, GT_DNN_BIAS, GT_DNN_TENSORS }; /* places in the pointers of a run */

struct gt_dnn_plan {
	struct gt_dnn_set set; /* graph, engine, plan */
	cudnnBackendDescriptor_t graph, plan;
	struct gt_dnn_set pack_set;
	cudnnBackendDescriptor_t pack; /* of the pointers below; made anew when they change */
	void *at[GT_DNN_TENSORS], *workspace_at;
	bool bias, tensor_core;
	size_t workspace; /* bytes, aligned to 256 */
	struct gt_dnn_choice choice;
	const char *how; /* "heuristic", "timed", "cached" */
};

/* Chooses an engine and makes its plan: the cache's choice if it still holds, else the heuristic's (modes A, then fallback) that dev's
 * options allow and that runs: the fastest of them where dev->autotune is on and the run need not be repeatable; else the first on tensor
 * cores, and the first of all where none is (asked of cuDNN 9.19: of a 1x1 convolution with stride 2 in 16 bits the first three are not).
 * GT_EUNAVAILABLE: nothing is allowed; err says what was refused and why, without naming the call. */
enum gt_code gt_dnn_plan_make(struct gt_dev *dev, const struct gt_dnn_conv *c, struct gt_dnn_plan *out, struct gt_err *err);
void gt_dnn_plan_drop(struct gt_dnn_plan *p); /* a zeroed one is fine */

/* Puts it on a stream; pointers aligned to 16 bytes, workspace to 256. Allocates only where the pointers differ from the last run's. */
enum gt_code gt_dnn_plan_run(struct gt_dev *dev, struct gt_dnn_plan *p, void *const at[GT_DNN_TENSORS], void *workspace, cudaStream_t s,
                             struct gt_err *err);

/* ---- between cudnn_conv.c, cudnn_tune.c and cudnn_trial.c ------------------------------------------------------------------------- */
void gt_dnn_graph(struct gt_dnn_plan *p, const struct gt_dnn_conv *c); /* p->set must be empty; failures stick there */
/* What identifies the choice: operation, shapes, options. */
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
/* Engine, configuration and plan of a choice behind p's graph, if dev's options allow it; otherwise p->set has what cuDNN said.
 * compiled: engines whose kernels NVRTC makes when the plan is made, a second each in every process, are allowed. */
enum gt_dnn_verdict gt_dnn_realize(struct gt_dev *dev, struct gt_dnn_plan *p, const struct gt_dnn_conv *c,
                                   const struct gt_dnn_choice *choice, bool compiled);
/* Runs the choices on memory of its own and leaves those that ran: timed, the fastest first; else the first that runs alone. Leaves them
 * as they are while a graph is captured, without a device, or without room. GT_EUNAVAILABLE: none runs. */
enum gt_code gt_dnn_try(struct gt_dev *dev, const struct gt_dnn_conv *c, struct gt_dnn_choice *choice, int *n, bool timed,
                        struct gt_err *err);

#endif
