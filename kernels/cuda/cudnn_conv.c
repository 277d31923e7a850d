/* The operation graph of a convolution. */
#include "cuda/cudnn_conv.h"
#include <stdio.h>
#include <string.h>

static void channels_last(const int64_t dim[4], int64_t stride[4])
{
	stride[0] = dim[1] * dim[2] * dim[3], stride[1] = 1, stride[2] = dim[3] * dim[1], stride[3] = dim[1];
}

static cudnnBackendDescriptor_t make_tensor(struct gt_dnn_plan *p, int64_t uid, enum gt_dtype type, const int64_t dim[4])
{
	int64_t stride[4];
	channels_last(dim, stride);
	return gt_dnn_tensor(p, uid, gt_dnn_type(type), dim, stride);
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

void gt_dnn_graph(struct gt_dnn_plan *p, const struct gt_dnn_conv *c)
{
	struct gt_dnn_set *s = &p->set;
	float alpha = 1, beta = c->add ? 1 : 0;
	int64_t bias[4] = {1, c->y[1], 1, 1}, step[4];
	cudnnBackendDescriptor_t ops[3], x = make_tensor(p, GT_DNN_X, c->type, c->x), w = make_tensor(p, GT_DNN_W, c->type, c->w),
	                                 y = make_tensor(p, GT_DNN_Y, c->type, c->y), conv = make_convolution(s, c), sum = y;
	int n = 0;
	channels_last(c->y, step);
	if (c->bias)
		sum = gt_dnn_register(p, CUDNN_DATA_FLOAT, c->y, step);
	ops[n] = gt_dnn_new(s, passes[c->pass].op, passes[c->pass].name);
	gt_dnn_put_desc(s, ops[n], passes[c->pass].x, x);
	gt_dnn_put_desc(s, ops[n], passes[c->pass].w, w);
	gt_dnn_put_desc(s, ops[n], passes[c->pass].y, sum);
	gt_dnn_put_desc(s, ops[n], passes[c->pass].conv, conv);
	gt_dnn_put(s, ops[n], passes[c->pass].alpha, CUDNN_TYPE_FLOAT, 1, &alpha);
	gt_dnn_put(s, ops[n], passes[c->pass].beta, CUDNN_TYPE_FLOAT, 1, &beta);
	gt_dnn_finalize(s, ops[n++], passes[c->pass].name);
	if (c->bias) {
		struct gt_dnn_pointwise add = {.mode = CUDNN_POINTWISE_ADD,
		                               .math = CUDNN_DATA_FLOAT,
		                               .x = sum,
		                               .b = make_tensor(p, GT_DNN_BIAS, c->type, bias),
		                               .y = c->relu ? gt_dnn_register(p, CUDNN_DATA_FLOAT, c->y, step) : y};
		ops[n++] = gt_dnn_pointwise(p, &add);
		if (c->relu)
			ops[n++] = gt_dnn_pointwise(
			    p, &(struct gt_dnn_pointwise){.mode = CUDNN_POINTWISE_RELU_FWD, .math = CUDNN_DATA_FLOAT, .x = add.y, .y = y});
	}
	gt_dnn_finish_graph(p, ops, n);
}

static void build_graph(struct gt_dnn_plan *p, const void *shape)
{
	gt_dnn_graph(p, shape);
}

void gt_dnn_key(const struct gt_dev *dev, const struct gt_dnn_conv *c, char key[GT_DNN_KEY])
{
	static const char *const names[] = {[GT_DNN_FWD] = "fwd", [GT_DNN_DX] = "dx", [GT_DNN_DW] = "dw"};
	char options[32];
	snprintf(key, GT_DNN_KEY, "conv2d %s %s x%lld,%lld,%lld,%lld w%lld,%lld,%lld,%lld s%lld,%lld p%lld,%lld d%lld,%lld%s%s%s%s",
	         names[c->pass], gt_dtype_name(c->type), (long long)c->x[0], (long long)c->x[1], (long long)c->x[2], (long long)c->x[3],
	         (long long)c->w[0], (long long)c->w[1], (long long)c->w[2], (long long)c->w[3], (long long)c->stride[0],
	         (long long)c->stride[1], (long long)c->padding[0], (long long)c->padding[1], (long long)c->dilation[0],
	         (long long)c->dilation[1], c->bias ? " bias" : "", c->relu ? " relu" : "", c->add ? " add" : "",
	         gt_dnn_options(dev, c->type, true, options));
}

static size_t bytes_of(const int64_t dim[4], enum gt_dtype t)
{
	return (size_t)(dim[0] * dim[1] * dim[2] * dim[3]) * gt_dtype_size(t);
}

enum gt_code gt_dnn_plan_make(struct gt_dev *dev, const struct gt_dnn_conv *c, struct gt_dnn_plan *out, struct gt_err *err)
{
	struct gt_dnn_call call = {.build = build_graph, .shape = c, .type = c->type, .timed = true, .first = 3};
	gt_dnn_key(dev, c, call.key);
	call.bytes[GT_DNN_X] = bytes_of(c->x, c->type);
	call.bytes[GT_DNN_W] = bytes_of(c->w, c->type);
	call.bytes[GT_DNN_Y] = bytes_of(c->y, c->type);
	if (c->bias)
		call.bytes[GT_DNN_BIAS] = (size_t)c->y[1] * gt_dtype_size(c->type);
	return gt_dnn_plan_find(dev, &call, out, err);
}
