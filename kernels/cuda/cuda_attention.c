/* Attention: by cuDNN's fused kernels if the option cudnn_attention is set, the operands have 16 bits and cuDNN supports the shape
 * (cudnn_attention.h); otherwise by attention.cu. Each pass is decided alone, because both ways compute the same lse. */
#include "cuda/cuda_internal.h"
#include <stdlib.h>

#ifndef GT_CUDA_NO_CUDNN
#include "cuda/cudnn_attention.h"
#include <stdio.h>

struct attention {
	struct gt_kernel head;
	struct gt_dnn_shared *shared;
	struct gt_dnn_pack pack;
	struct gt_binding binding;
	int64_t samples, tokens, heads, cols; /* cols: features of all heads */
	bool lengths, gradient;
	/* offsets in the scratch memory in bytes; the workspace of cuDNN has offset 0 */
	size_t lengths_q, lengths_kv, sums, query_sums;
	char text[64];
};

/* The addresses of the operands (opcall.h). */
struct operands {
	char *qkv, *dqkv;
	void *y, *dy, *lse;
	const int32_t *lengths;
};

static const struct gt_operand_slot slots[] = {GT_SLOTS(operands, qkv, dqkv, y, dy, lse, lengths)};

/* Sets the addresses of the parts of qkv, or of its gradient, whose indices begin with `first`. */
static void split_parts(void *at[GT_DNN_TENSORS], int first, char *qkv, int64_t cols)
{
	for (int i = 0; i < 3; i++)
		at[first + i] = qkv + i * cols * 2;
}

static enum gt_code launch_attention(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, cudaStream_t s,
                                     struct gt_err *err)
{
	struct attention *k = (struct attention *)kernel;
	struct operands o = {0};
	void *at[GT_DNN_TENSORS] = {0};
	char *scratch = a->scratch;
	gt_binding_apply(&k->binding, &o, a->in, a->out);
	split_parts(at, GT_DNN_A_Q, o.qkv, k->cols);
	at[GT_DNN_A_Y] = o.y;
	at[GT_DNN_A_LSE] = o.lse;
	if (k->lengths) {
		at[GT_DNN_A_LENGTHS_Q] = scratch + k->lengths_q;
		at[GT_DNN_A_LENGTHS_KV] = scratch + k->lengths_kv;
		GT_CUDA(dev, gt_cu_limit_lengths_start(o.lengths, k->samples, k->tokens, at[GT_DNN_A_LENGTHS_Q], at[GT_DNN_A_LENGTHS_KV], s),
		        "attention: lengths", err);
	}
	if (k->gradient) {
		at[GT_DNN_A_DY] = o.dy;
		split_parts(at, GT_DNN_A_DQ, o.dqkv, k->cols);
		at[GT_DNN_A_SUMS] = scratch + k->sums;
		at[GT_DNN_A_QUERY_SUMS] = dev->deterministic ? NULL : scratch + k->query_sums;
	}
	GT_TRY(gt_dnn_plan_run(dev, &k->shared->plan, &k->pack, at, scratch, s, err));
	/* cuDNN's manual does not say what it writes for keys behind the length. */
	if (k->lengths && k->gradient)
		GT_CUDA(dev, gt_cu_zero_padding_start(o.lengths, k->samples, k->tokens, k->cols, o.dqkv, s), "attention.dx: padding", err);
	else if (k->lengths)
		GT_CUDA(dev, gt_cu_empty_samples_start(o.lengths, k->samples, k->tokens, k->cols, k->heads, o.y, o.lse, s),
		        "attention: samples without tokens", err);
	return GT_OK;
}

static void release_attention(struct gt_dev *dev, struct gt_kernel *kernel)
{
	struct attention *k = (struct attention *)kernel;
	gt_dnn_pack_drop(&k->pack);
	if (k->shared)
		gt_dnn_attention_close(dev, k->shared);
	free(k);
}

/* Reserves bytes at the end of the scratch memory and returns their offset. */
static size_t reserve_scratch(struct attention *k, int64_t bytes)
{
	size_t at = k->head.scratch;
	k->head.scratch += ((size_t)bytes + 255) / 256 * 256;
	return at;
}

static enum gt_code prepare_cudnn(struct gt_dev *dev, const struct gt_opcall *call, const struct gt_dnn_attention *shape,
                                  struct gt_kernel **out, struct gt_err *err)
{
	struct attention *k;
	GT_CUDA_NEW(k, launch_attention, NULL, err);
	enum gt_code code = gt_dnn_attention_open(dev, shape, &k->shared, err);
	if (code != GT_OK) {
		free(k);
		return code;
	}
	k->head.release = release_attention;
	gt_binding_make(&k->binding, slots, sizeof slots / sizeof *slots, call);
	k->samples = shape->samples, k->tokens = shape->tokens, k->heads = shape->heads, k->cols = shape->heads * shape->d;
	k->lengths = shape->lengths, k->gradient = shape->gradient;
	k->head.scratch = k->shared->plan.workspace;
	if (k->lengths) {
		k->lengths_q = reserve_scratch(k, k->samples * (int64_t)sizeof(int32_t));
		k->lengths_kv = reserve_scratch(k, k->samples * (int64_t)sizeof(int32_t));
	}
	if (k->gradient)
		k->sums = reserve_scratch(k, k->samples * k->heads * k->tokens * (int64_t)sizeof(float));
	if (k->gradient && !shape->ordered)
		k->query_sums = reserve_scratch(k, k->samples * k->tokens * k->cols * (int64_t)sizeof(float));
	snprintf(k->text, sizeof k->text, "cudnn:%lld (%s)", (long long)k->shared->plan.choice.engine, k->shared->plan.how);
	k->head.describe = k->text;
	*out = &k->head;
	return GT_OK;
}

enum gt_code gt_cuda_attention(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct gt_attr_attention *attr = call->attr;
	const struct gt_tdesc *qkv = gt_opcall_operand(call, "qkv"), *y = gt_opcall_operand(call, "y");
	bool wanted = dev->cudnn_attention && qkv->dtype != GT_F32 && qkv->dim[2] == 3 * y->dim[2] && gt_opcall_operand(call, "lse");
	const char *tiles = NULL;
	if (wanted) {
		struct gt_dnn_attention shape = {.type = qkv->dtype,
		                                 .samples = y->dim[0],
		                                 .heads = attr->heads,
		                                 .tokens = y->dim[1],
		                                 .d = y->dim[2] / attr->heads,
		                                 .causal = attr->causal,
		                                 .lengths = gt_opcall_operand(call, "lengths"),
		                                 .gradient = call->code == GT_OP_ATTENTION_DX,
		                                 .ordered = call->code == GT_OP_ATTENTION_DX && dev->deterministic};
		struct gt_err why;
		if (gt_dnn_open(dev, &why) != GT_OK)
			return gt_opcall_refuse(call, err, why.msg);
		tiles = gt_dnn_attention_refuses(dev->dnn, &shape);
		enum gt_code code = tiles ? GT_EUNAVAILABLE : prepare_cudnn(dev, call, &shape, out, &why);
		if (code == GT_OK)
			return GT_OK;
		if (code != GT_EUNAVAILABLE)
			return gt_fail(err, code, "%s", why.msg);
		tiles = tiles ? tiles : "tiles (cuDNN has no kernel for the shape)";
	}
	GT_TRY(gt_cuda_attention_tiles(dev, call, out, err));
	if (tiles)
		(*out)->describe = tiles;
	return GT_OK;
}

#else /* a build without cuDNN */
enum gt_code gt_cuda_attention(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	if (dev->cudnn_attention && gt_opcall_operand(call, "qkv")->dtype != GT_F32)
		return gt_opcall_refuse(call, err, "cudnn_attention: this build was made without cuDNN's headers");
	return gt_cuda_attention_tiles(dev, call, out, err);
}
#endif
