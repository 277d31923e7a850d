/* The operation graph of a convolution, the variant pack with its pointers, and its execution. */
#include "cuda/cudnn_conv.h"
#include <stdio.h>
#include <string.h>

#define ALIGNMENT 16 /* alignment of operands in bytes, on which engines may rely to load vectors; every run checks it */

/* ---- the graph ----------------------------------------------------------------------------------------------------------------- */
static cudnnDataType_t data_type(enum gt_dtype t)
{
	return t == GT_BF16 ? CUDNN_DATA_BFLOAT16 : t == GT_F16 ? CUDNN_DATA_HALF : CUDNN_DATA_FLOAT;
}

/* Describes a tensor of the operation graph. uid is the index of the tensor's pointer. A virtual tensor has its own uid and no pointer,
 * because it exists in registers only. */
static cudnnBackendDescriptor_t make_tensor(struct gt_dnn_set *s, int64_t uid, cudnnDataType_t type, const int64_t dim[4])
{
	int64_t stride[4] = {dim[1] * dim[2] * dim[3], 1, dim[3] * dim[1], dim[1]}, align = ALIGNMENT;
	bool is_virtual = uid >= GT_DNN_TENSORS;
	cudnnBackendDescriptor_t d = gt_dnn_new(s, CUDNN_BACKEND_TENSOR_DESCRIPTOR, "tensor");
	gt_dnn_put(s, d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
	gt_dnn_put(s, d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dim);
	gt_dnn_put(s, d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, stride);
	gt_dnn_put(s, d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &uid);
	gt_dnn_put(s, d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &align);
	if (is_virtual)
		gt_dnn_put(s, d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
	gt_dnn_finalize(s, d, "tensor");
	return d;
}

static cudnnBackendDescriptor_t make_convolution(struct gt_dnn_set *s, const struct gt_dnn_conv *c)
{
	cudnnDataType_t sums = CUDNN_DATA_FLOAT;
	cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION; /* PyTorch's convolution is a cross-correlation */
	int64_t spatial = 2;
	cudnnBackendDescriptor_t d = gt_dnn_new(s, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, "convolution");
	gt_dnn_put(s, d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &sums);
	gt_dnn_put(s, d, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
	gt_dnn_put(s, d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &spatial);
	gt_dnn_put(s, d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, c->padding);
	gt_dnn_put(s, d, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, c->padding);
	gt_dnn_put(s, d, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, c->dilation);
	gt_dnn_put(s, d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, c->stride);
	gt_dnn_finalize(s, d, "convolution");
	return d;
}

/* The attributes that have different names in the three passes of a convolution. */
static const struct {
	cudnnBackendDescriptorType_t op;
	cudnnBackendAttributeName_t x, w, y, conv, alpha, beta;
	const char *name;
} passes[] = {
    [GT_DNN_FWD] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, "convolution forward"},
    [GT_DNN_DX] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, "convolution backward data"},
    [GT_DNN_DW] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA, "convolution backward filter"},
};

static cudnnBackendDescriptor_t make_pointwise(struct gt_dnn_set *s, cudnnPointwiseMode_t mode, cudnnBackendDescriptor_t x,
                                               cudnnBackendDescriptor_t b, cudnnBackendDescriptor_t y)
{
	cudnnDataType_t math = CUDNN_DATA_FLOAT;
	cudnnNanPropagation_t nan = CUDNN_PROPAGATE_NAN; /* relu keeps a NaN, as in PyTorch; without this, cuDNN turns it into 0 */
	cudnnBackendDescriptor_t d = gt_dnn_new(s, CUDNN_BACKEND_POINTWISE_DESCRIPTOR, "pointwise"), op;
	gt_dnn_put(s, d, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
	gt_dnn_put(s, d, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &math);
	gt_dnn_put(s, d, CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, CUDNN_TYPE_NAN_PROPOGATION, 1, &nan);
	gt_dnn_finalize(s, d, "pointwise");
	op = gt_dnn_new(s, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, "pointwise");
	gt_dnn_put_desc(s, op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, d);
	gt_dnn_put_desc(s, op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
	if (b)
		gt_dnn_put_desc(s, op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
	gt_dnn_put_desc(s, op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
	gt_dnn_finalize(s, op, "pointwise");
	return op;
}

void gt_dnn_graph(struct gt_dnn_plan *p, const struct gt_dnn_conv *c)
{
	struct gt_dnn_set *s = &p->set;
	cudnnDataType_t type = data_type(c->type);
	float alpha = 1, beta = c->add ? 1 : 0;
	int64_t bias[4] = {1, c->y[1], 1, 1};
	cudnnBackendDescriptor_t ops[3], x = make_tensor(s, GT_DNN_X, type, c->x), w = make_tensor(s, GT_DNN_W, type, c->w),
	                                 y = make_tensor(s, GT_DNN_Y, type, c->y), conv = make_convolution(s, c), sum = y;
	int n = 0;
	p->bias = c->bias;
	if (c->bias)
		sum = make_tensor(s, GT_DNN_TENSORS, CUDNN_DATA_FLOAT, c->y);
	ops[n] = gt_dnn_new(s, passes[c->pass].op, passes[c->pass].name);
	gt_dnn_put_desc(s, ops[n], passes[c->pass].x, x);
	gt_dnn_put_desc(s, ops[n], passes[c->pass].w, w);
	gt_dnn_put_desc(s, ops[n], passes[c->pass].y, sum);
	gt_dnn_put_desc(s, ops[n], passes[c->pass].conv, conv);
	gt_dnn_put(s, ops[n], passes[c->pass].alpha, CUDNN_TYPE_FLOAT, 1, &alpha);
	gt_dnn_put(s, ops[n], passes[c->pass].beta, CUDNN_TYPE_FLOAT, 1, &beta);
	gt_dnn_finalize(s, ops[n++], passes[c->pass].name);
	if (c->bias) {
		cudnnBackendDescriptor_t b = make_tensor(s, GT_DNN_BIAS, type, bias),
		                         out = c->relu ? make_tensor(s, GT_DNN_TENSORS + 1, CUDNN_DATA_FLOAT, c->y) : y;
		ops[n++] = make_pointwise(s, CUDNN_POINTWISE_ADD, sum, b, out);
		if (c->relu)
			ops[n++] = make_pointwise(s, CUDNN_POINTWISE_RELU_FWD, out, NULL, y);
	}
	p->graph = gt_dnn_new(s, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, "operation graph");
	gt_dnn_put(s, p->graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, n, ops);
	if (s->dnn->handle)
		gt_dnn_put(s, p->graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &s->dnn->handle);
	gt_dnn_finalize(s, p->graph, "operation graph");
}

void gt_dnn_key(const struct gt_dev *dev, const struct gt_dnn_conv *c, char key[GT_DNN_KEY])
{
	static const char *const names[] = {[GT_DNN_FWD] = "fwd", [GT_DNN_DX] = "dx", [GT_DNN_DW] = "dw"};
	bool f32 = c->type == GT_F32;
	snprintf(key, GT_DNN_KEY, "conv2d %s %s x%lld,%lld,%lld,%lld w%lld,%lld,%lld,%lld s%lld,%lld p%lld,%lld d%lld,%lld%s%s%s %s%s%s",
	         names[c->pass], gt_dtype_name(c->type), (long long)c->x[0], (long long)c->x[1], (long long)c->x[2], (long long)c->x[3],
	         (long long)c->w[0], (long long)c->w[1], (long long)c->w[2], (long long)c->w[3], (long long)c->stride[0],
	         (long long)c->stride[1], (long long)c->padding[0], (long long)c->padding[1], (long long)c->dilation[0],
	         (long long)c->dilation[1], c->bias ? " bias" : "", c->relu ? " relu" : "", c->add ? " add" : "",
	         dev->deterministic ? "repeatable"
	         : dev->autotune    ? "timed"
	                            : "first",
	         f32 && dev->tf32 ? " tf32" : "", f32 && dev->winograd ? " winograd" : "");
}

/* ---- execution ---------------------------------------------------------------------------------------------------------------------- */
static enum gt_code make_pack(struct gt_dev *dev, struct gt_dnn_plan *p, void *const at[GT_DNN_TENSORS], void *workspace,
                              struct gt_err *err)
{
	struct gt_dnn_set *s = &p->pack_set;
	int64_t uids[GT_DNN_TENSORS] = {GT_DNN_X, GT_DNN_W, GT_DNN_Y, GT_DNN_BIAS};
	uintptr_t all = 0;
	for (int i = 0; i < GT_DNN_TENSORS; i++)
		all |= i < GT_DNN_BIAS || p->bias ? (uintptr_t)at[i] : 0;
	if (all % ALIGNMENT || (p->workspace && (uintptr_t)workspace % 256))
		return gt_fail(err, GT_EINTERNAL, "%s: an operand of a convolution is not aligned to %d bytes, or its scratch memory is not "
		               "aligned to 256 bytes",
		               dev->id,
		               ALIGNMENT);
	gt_dnn_drop(s, 0);
	s->dnn = dev->dnn;
	p->pack = gt_dnn_new(s, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, "variant pack");
	gt_dnn_put(s, p->pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, p->bias ? 4 : 3, uids);
	gt_dnn_put(s, p->pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, p->bias ? 4 : 3, at);
	gt_dnn_put(s, p->pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
	gt_dnn_finalize(s, p->pack, "variant pack");
	memset(p->at, 0, sizeof p->at);
	if (s->status != CUDNN_STATUS_SUCCESS)
		return gt_dnn_fail(dev, s->status, "variant pack", err);
	memcpy(p->at, at, sizeof p->at);
	p->workspace_at = workspace;
	return GT_OK;
}

enum gt_code gt_dnn_plan_run(struct gt_dev *dev, struct gt_dnn_plan *p, void *const at[GT_DNN_TENSORS], void *workspace, cudaStream_t s,
                             struct gt_err *err)
{
	struct gt_dnn *dnn = dev->dnn;
	cudnnStatus_t status;
	if (!p->workspace)
		workspace = NULL;
	if (!p->pack || memcmp(p->at, at, sizeof p->at) || p->workspace_at != workspace)
		GT_TRY(make_pack(dev, p, at, workspace, err));
	if (dnn->stream != s) {
		if ((status = dnn->cudnnSetStream(dnn->handle, s)) != CUDNN_STATUS_SUCCESS)
			return gt_dnn_fail(dev, status, "cudnnSetStream", err);
		dnn->stream = s;
	}
	status = dnn->cudnnBackendExecute(dnn->handle, p->plan, p->pack);
	return status == CUDNN_STATUS_SUCCESS ? GT_OK : gt_dnn_fail(dev, status, "cudnnBackendExecute", err);
}

void gt_dnn_plan_drop(struct gt_dnn_plan *p)
{
	if (p->pack_set.dnn)
		gt_dnn_drop(&p->pack_set, 0);
	if (p->set.dnn)
		gt_dnn_drop(&p->set, 0);
	memset(p, 0, sizeof *p);
}
