/* Convolutions by cuDNN; cudnn_conv.h describes what cuDNN supports. Weights are stored as [out, kh, kw, in/groups].
 *   conv2d     One graph of convolution, bias and relu. In 16 bits, a kernel first rounds the bias into the scratch memory, as
 *              PyTorch's autocast does.
 *   conv2d.dx  One graph.
 *   conv2d.dw  One graph. In 16 bits it writes dw in 16 bits into the scratch memory and a kernel converts it to f32, as PyTorch's
 *              autocast does. Own kernels compute db, because cuDNN's backward bias is very slow on NHWC.
 * If the channels of x are padded (16 bits only), cuDNN gets a convolution of all channels, the padding included; its engines on tensor
 * cores can read this x. conv2d then pads the weights in the scratch memory, and conv2d.dw leaves out the padding when it converts dw. */
#include "cuda/cuda_internal.h"
#include <stdlib.h>

#ifndef GT_CUDA_NO_CUDNN
#include "cuda/cudnn_conv.h"
#include <stdio.h>
#include <string.h>

struct conv {
	struct gt_kernel head;
	struct gt_dnn_plan plan; /* the plan is unused if the call computes only db */
	struct gt_dnn_pack pack;
	struct gt_binding binding;
	int type;
	int64_t rows, cols; /* for db: rows: number of pixels of dy in the batch; cols: number of channels of dy */
	int64_t weights;    /* number of elements of the weights */
	int32_t in, ld;     /* channels of x; ld: channels in memory if x is padded, else 0 */
	bool bias, dw, add_dw, add_db;
	void *zeros;       /* device memory with a bias of zeros, for a relu without a bias: cuDNN's fast engines require a bias */
	/* offsets in the scratch memory in bytes. half: of the 16-bit bias or dw; part: of the partial sums of db; padded: of padded weights.
	 * The workspace of cuDNN has offset 0 */
	size_t half, part, padded;
	char text[96];
};

/* The addresses of the operands (opcall.h). */
struct operands {
	void *at[GT_DNN_TENSORS]; /* addresses of cuDNN's tensors: the operands or their gradients */
	void *bias;               /* b or db */
};

static const struct gt_operand_slot slots[] = {
    GT_SLOT_AS(operands, "x", at[GT_DNN_X]), GT_SLOT_AS(operands, "dx", at[GT_DNN_X]), GT_SLOT_AS(operands, "w", at[GT_DNN_W]),
    GT_SLOT_AS(operands, "y", at[GT_DNN_Y]), GT_SLOT_AS(operands, "dy", at[GT_DNN_Y]), GT_SLOT_AS(operands, "dw", at[GT_DNN_W]),
    GT_SLOT_AS(operands, "b", bias), GT_SLOT_AS(operands, "db", bias)};

static struct operands bind_operands(const struct conv *k, const struct gt_launch *a)
{
	struct operands o = {0};
	gt_binding_apply(&k->binding, &o, a->in, a->out);
	return o;
}

static enum gt_code launch_fwd(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, cudaStream_t s, struct gt_err *err)
{
	struct conv *k = (struct conv *)kernel;
	struct operands o = bind_operands(k, a);
	void **at = o.at, *w = at[GT_DNN_W];
	at[GT_DNN_BIAS] = !k->bias ? k->zeros : k->type == GT_CU_F32 ? o.bias : (char *)a->scratch + k->half;
	if (k->bias && k->type != GT_CU_F32)
		GT_CUDA(dev, gt_cu_cast_start(GT_CU_F32, k->type, o.bias, at[GT_DNN_BIAS], k->cols, s), "conv2d: bias", err);
	if (k->ld) {
		at[GT_DNN_W] = (char *)a->scratch + k->padded;
		GT_CUDA(dev, gt_cu_pad_rows_start(w, k->in, at[GT_DNN_W], k->ld, k->weights / k->in, s), "conv2d: weights", err);
	}
	return gt_dnn_plan_run(dev, &k->plan, &k->pack, at, a->scratch, s, err);
}

static enum gt_code launch_dx(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, cudaStream_t s, struct gt_err *err)
{
	struct conv *k = (struct conv *)kernel;
	struct operands o = bind_operands(k, a);
	return gt_dnn_plan_run(dev, &k->plan, &k->pack, o.at, a->scratch, s, err);
}

static enum gt_code launch_dw(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, cudaStream_t s, struct gt_err *err)
{
	struct conv *k = (struct conv *)kernel;
	struct operands o = bind_operands(k, a);
	void *dw = o.at[GT_DNN_W], *half = (char *)a->scratch + k->half;
	if (k->dw) {
		if (k->type != GT_CU_F32)
			o.at[GT_DNN_W] = half;
		GT_TRY(gt_dnn_plan_run(dev, &k->plan, &k->pack, o.at, a->scratch, s, err));
		if (k->ld)
			GT_CUDA(dev, gt_cu_widen_rows_start(k->type, half, k->ld, dw, k->weights / k->in, k->in, k->add_dw, s),
			        "conv2d.dw: padded to f32", err);
		else if (k->type != GT_CU_F32)
			GT_CUDA(dev, gt_cu_widen_start(k->type, half, dw, k->weights, k->add_dw, s), "conv2d.dw: to f32", err);
	}
	if (k->bias)
		GT_CUDA(dev, gt_cu_colsum_start(k->type, o.at[GT_DNN_Y], o.bias, k->rows, k->cols, k->add_db, (char *)a->scratch + k->part, s),
		        "conv2d.dw: bias", err);
	return GT_OK;
}

static void release_conv(struct gt_dev *dev, struct gt_kernel *kernel)
{
	struct conv *k = (struct conv *)kernel;
	gt_dnn_pack_drop(&k->pack);
	gt_dnn_plan_drop(&k->plan);
	gt_cuda_free(dev, k->zeros);
	free(k);
}

static bool is_nhwc(const struct gt_tdesc *d)
{
	struct gt_tdesc want = gt_tdesc_make(d->dtype, 4, d->dim, true);
	return d->rank == 4 && gt_tdesc_equal(d, &want);
}

static enum gt_code check_shapes(const struct gt_opcall *call, const struct gt_tdesc *x, struct gt_tdesc *w, const struct gt_tdesc *y,
                                 struct gt_err *err)
{
	const struct gt_attr_conv2d *a = call->attr;
	if (w && w->any)
		*w = gt_tdesc_make(w->dtype, w->rank, w->dim, true);
	if (y->dim[1] != a->out || x->dim[1] % a->groups)
		return gt_opcall_refuse(call, err, "the groups must divide the channels");
	if (w && (!is_nhwc(w) || w->dim[0] != a->out || w->dim[1] != x->dim[1] / a->groups || w->dim[2] != a->kernel[0] ||
	          w->dim[3] != a->kernel[1]))
		return gt_opcall_refuse(call, err, "weights must be [out, in/groups, kh, kw], channels last");
	return GT_OK;
}

static enum gt_code make_plan(struct gt_dev *dev, const struct gt_opcall *call, struct conv *k, const struct gt_tdesc *x,
                              const struct gt_tdesc *w, const struct gt_tdesc *y, struct gt_err *err)
{
	const struct gt_attr_conv2d *a = call->attr;
	bool fwd = call->code == GT_OP_CONV2D, relu = fwd && a->act == GT_ACT_RELU;
	struct gt_dnn_conv c = {
	    .pass = fwd                             ? GT_DNN_FWD
	            : call->code == GT_OP_CONV2D_DX ? GT_DNN_DX
	                                            : GT_DNN_DW,
	    .type = x->dtype,
	    .stride = {a->stride[0], a->stride[1]},
	    .padding = {a->padding[0], a->padding[1]},
	    .dilation = {a->dilation[0], a->dilation[1]},
	    .bias = fwd && (k->bias || relu),
	    .relu = relu,
	    .add = k->add_dw && k->type == GT_CU_F32,
	};
	struct gt_err why;
	memcpy(c.x, x->dim, sizeof c.x);
	memcpy(c.w, w->dim, sizeof c.w);
	memcpy(c.y, y->dim, sizeof c.y);
	if (k->ld)
		c.x[1] = c.w[1] = k->ld;
	enum gt_code code = gt_dnn_plan_make(dev, &c, &k->plan, &why);
	if (code == GT_EUNAVAILABLE)
		return gt_opcall_refuse(call, err, why.msg);
	if (code != GT_OK)
		return gt_fail(err, code, "%s", why.msg);
	if (relu && !k->bias)
		GT_TRY(gt_cuda_alloc(dev, (size_t)y->dim[1] * gt_dtype_size(x->dtype), &k->zeros, err));
	return GT_OK;
}

/* Reserves bytes at the end of the scratch memory and returns their offset. */
static size_t reserve_scratch(struct conv *k, size_t bytes)
{
	size_t at = k->head.scratch;
	k->head.scratch += (bytes + 255) / 256 * 256;
	return at;
}

static void write_description(struct conv *k)
{
	size_t n = 0;
	if (!k->plan.plan)
		n += (size_t)snprintf(k->text, sizeof k->text, "colsum");
	else
		n += (size_t)snprintf(k->text, sizeof k->text, "cudnn:%lld (%s)%s", (long long)k->plan.choice.engine, k->plan.how,
		                      k->plan.tensor_core && k->type == GT_CU_F32 ? " tf32" : "");
	if (k->ld && k->plan.plan)
		n += (size_t)snprintf(k->text + n, sizeof k->text - n, ", %d channels as %d", (int)k->in, (int)k->ld);
	if (k->dw && k->type != GT_CU_F32)
		n += (size_t)snprintf(k->text + n, sizeof k->text - n, " + widen");
	if (k->bias && k->dw)
		snprintf(k->text + n, sizeof k->text - n, " + colsum");
	k->head.describe = k->text;
}

enum gt_code gt_cuda_conv(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	bool fwd = call->code == GT_OP_CONV2D, dw = call->code == GT_OP_CONV2D_DW;
	const struct gt_tdesc *x = gt_opcall_operand(call, fwd || dw ? "x" : "dx"), *y = gt_opcall_operand(call, fwd ? "y" : "dy");
	struct gt_tdesc *w = gt_opcall_operand(call, dw ? "dw" : "w");
	struct conv *k;
	enum gt_code code = GT_OK;
	GT_TRY(check_shapes(call, x, w, y, err));
	GT_CUDA_NEW(k, fwd ? launch_fwd : dw ? launch_dw : launch_dx, NULL, err);
	k->head.release = release_conv;
	k->type = gt_cuda_type(x->dtype);
	k->rows = y->dim[0] * y->dim[2] * y->dim[3], k->cols = y->dim[1];
	k->weights = w ? gt_tdesc_count(w) : 0;
	k->in = (int32_t)x->dim[1];
	k->ld = gt_cuda_padded_channels(x);
	k->bias = gt_opcall_operand(call, fwd ? "b" : "db");
	gt_binding_make(&k->binding, slots, sizeof slots / sizeof *slots, call);
	k->dw = dw && w;
	k->add_dw = gt_opcall_adds(call, "dw");
	k->add_db = gt_opcall_adds(call, "db");
	if (w)
		code = make_plan(dev, call, k, x, w, y, err);
	if (code != GT_OK) {
		release_conv(dev, &k->head);
		return code;
	}
	k->head.scratch = k->plan.workspace;
	if (k->type != GT_CU_F32)
		k->half = reserve_scratch(k, 2 * (size_t)(dw ? k->ld ? k->weights / k->in * k->ld : k->weights : fwd && k->bias ? k->cols : 0));
	if (fwd && k->ld)
		k->padded = reserve_scratch(k, 2 * (size_t)(k->weights / k->in * k->ld));
	if (dw && k->bias)
		k->part = reserve_scratch(k, gt_cu_colsum_scratch(k->rows, k->cols));
	write_description(k);
	*out = &k->head;
	return GT_OK;
}

void gt_cuda_conv_close(struct gt_dev *dev)
{
	gt_dnn_close(dev->dnn);
	dev->dnn = NULL;
}

#else /* a build without cuDNN refuses only convolutions */
enum gt_code gt_cuda_conv(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	(void)dev, (void)out;
	return gt_opcall_refuse(call, err, "this build was made without cuDNN's headers");
}

void gt_cuda_conv_close(struct gt_dev *dev)
{
	(void)dev;
}
#endif
