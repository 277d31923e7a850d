/* Scaled dot-product attention with cuDNN's fused kernels, in 16 bits: the operation graphs of the forward and of the backward pass.
 *
 *     gt_dnn_attention_open(dev, &attention, &shared, err);
 *     gt_dnn_plan_run(dev, &shared->plan, &pack, at, workspace, stream, err);         at[GT_DNN_A_*]
 *     gt_dnn_attention_close(dev, shared);
 *
 * cuDNN has one kernel for a whole pass. It finds the kernel by the graph's operations, which must be those that NVIDIA's cudnn-frontend
 * writes (its class CompositeSDPANode): matrix products, masks from indices, a softmax of reductions. cuDNN's single operation
 * CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR cannot mask causally before 9.21. The statistics of the softmax are lse of the operation
 * `attention`, so either pass can also be computed by attention.cu. The scores' probabilities and their gradients are rounded to the dtype
 * of qkv before they are multiplied, on tensor cores; attention.cu keeps them in f32.
 *
 * cuDNN computes no row of a padded query, but gtrain's padded queries see the sample's keys. So LENGTHS_Q has the full length for every
 * sample. No key at all is not defined by cuDNN: LENGTHS_KV is at least 1, and cuda_attention.c sets y and lse of such samples itself.
 *
 * The plain gradient of the queries is added up by several blocks in no fixed order, in QUERY_SUMS (f32). For reproducible runs the graph
 * has no such tensor, and cuDNN keeps the gradients of all scores in its workspace (2 bytes each). tests/cuda/dnn_attention.c lists the
 * graphs that the installed cuDNN supports. */
#ifndef GT_KERNELS_CUDNN_ATTENTION_H
#define GT_KERNELS_CUDNN_ATTENTION_H

#include "cuda/cudnn_plan.h"

struct gt_dnn_attention {
	enum gt_dtype type; /* bf16 or f16; sums are f32 */
	int64_t samples, heads, tokens, d;
	bool causal, lengths, gradient;
	bool ordered; /* of the gradient: sums have a fixed order */
};

/* Indices of the pointers of a run. The forward pass reads Q, K, V and writes Y, LSE; the gradient reads these and DY. */
enum {
	GT_DNN_A_Q,
	GT_DNN_A_K,
	GT_DNN_A_V,
	GT_DNN_A_Y,
	GT_DNN_A_LSE,        /* f32 [samples, heads, tokens] */
	GT_DNN_A_LENGTHS_Q,  /* i32 [samples], if lengths is true */
	GT_DNN_A_LENGTHS_KV,
	GT_DNN_A_DY,
	GT_DNN_A_DQ,
	GT_DNN_A_DK,
	GT_DNN_A_DV,
	GT_DNN_A_SUMS,       /* f32 [samples, heads, tokens]: written, the sums of dy * y */
	GT_DNN_A_QUERY_SUMS, /* f32 [samples, heads, tokens, d]: written, unless the sums are ordered */
	GT_DNN_A_TENSORS
};

/* Returns NULL, or the description of a call for which cuDNN is not asked, because of the head size or of errors of its version. */
const char *gt_dnn_attention_refuses(const struct gt_dnn *dnn, const struct gt_dnn_attention *a);
/* A plan, which all layers of equal shape use: NVRTC compiles its kernel when the plan is made, which takes a second. */
struct gt_dnn_shared {
	struct gt_dnn_plan plan;
	char key[GT_DNN_KEY];
	int users;
	struct gt_dnn_shared *next;
};
/* Returns the plan of a pass, which is made at the first call. Fails like gt_dnn_plan_find. */
enum gt_code gt_dnn_attention_open(struct gt_dev *dev, const struct gt_dnn_attention *a, struct gt_dnn_shared **out, struct gt_err *err);
void gt_dnn_attention_close(struct gt_dev *dev, struct gt_dnn_shared *shared);

/* Fills *out for the forward or the backward pass that a describes. */
void gt_dnn_attention_call(const struct gt_dev *dev, const struct gt_dnn_attention *a, struct gt_dnn_call *out);

#endif
