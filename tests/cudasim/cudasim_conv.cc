/* An operation graph: its rules (cuDNN documentation, "CUDNN_BACKEND_OPERATION_CONVOLUTION_*_DESCRIPTOR" and "…_POINTWISE_DESCRIPTOR"),
 * and the numbers, by plain loops with sums in double. */
#include "add_scaled.h"
#include "cudasim_dnn.h"
#include "cuda_runtime.h"
#include "ew.h"
#include <cmath>
#include <cstring>

#define REFUSE(status, text)                                                                                                               \
	do {                                                                                                                                   \
		*why = text;                                                                                                                       \
		return status;                                                                                                                     \
	} while (0)

size_t dnn_size_of(int type)
{
	return type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_INT32 ? 4 : type == CUDNN_DATA_BOOLEAN ? 1 : 2;
}

int64_t dnn_extent(const dnn_tensor &t)
{
	int64_t last = 0;
	for (int i = 0; i < 4; i++)
		last += (t.dim[i] - 1) * t.stride[i];
	return (last + 1) * (int64_t)dnn_size_of(t.type);
}

/* ---- rules ----------------------------------------------------------------------------------------------------------------------- */
dnn_tensor dnn_tensor_of(const dnn_desc *d)
{
	dnn_tensor t = {};
	t.uid = d->get<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID);
	t.align = d->get<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
	t.type = d->get<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE);
	t.is_virtual = d->has(CUDNN_ATTR_TENSOR_IS_VIRTUAL) && d->get<bool>(CUDNN_ATTR_TENSOR_IS_VIRTUAL);
	t.by_value = d->has(CUDNN_ATTR_TENSOR_IS_BY_VALUE) && d->get<bool>(CUDNN_ATTR_TENSOR_IS_BY_VALUE);
	memcpy(t.dim, d->a.at(CUDNN_ATTR_TENSOR_DIMENSIONS).as<int64_t>(), sizeof t.dim);
	memcpy(t.stride, d->a.at(CUDNN_ATTR_TENSOR_STRIDES).as<int64_t>(), sizeof t.stride);
	return t;
}

static const struct {
	int kind, x, w, y, conv, alpha, beta;
} convs[] = {
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
};

static cudnnStatus_t convolution(const dnn_desc *d, int i, dnn_op *op, std::string *why)
{
	const dnn_desc *c = d->ref(convs[i].conv);
	int64_t post[2];
	op->x = dnn_tensor_of(d->ref(convs[i].x)), op->w = dnn_tensor_of(d->ref(convs[i].w)), op->y = dnn_tensor_of(d->ref(convs[i].y));
	op->has_w = true;
	op->alpha = d->get<float>(convs[i].alpha), op->beta = d->get<float>(convs[i].beta);
	memcpy(op->pre, c->a.at(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS).as<int64_t>(), sizeof op->pre);
	memcpy(post, c->a.at(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS).as<int64_t>(), sizeof post);
	memcpy(op->stride, c->a.at(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES).as<int64_t>(), sizeof op->stride);
	memcpy(op->dilation, c->a.at(CUDNN_ATTR_CONVOLUTION_DILATIONS).as<int64_t>(), sizeof op->dilation);
	if (c->get<cudnnConvolutionMode_t>(CUDNN_ATTR_CONVOLUTION_CONV_MODE) != CUDNN_CROSS_CORRELATION)
		REFUSE(CUDNN_STATUS_NOT_SUPPORTED, "only cross-correlation here");
	if (c->get<cudnnDataType_t>(CUDNN_ATTR_CONVOLUTION_COMP_TYPE) != CUDNN_DATA_FLOAT)
		REFUSE(CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, "sums are f32");
	if (op->x.dim[1] % op->w.dim[1] || op->w.dim[0] % (op->x.dim[1] / op->w.dim[1]))
		REFUSE(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "channels and groups");
	if (op->x.dim[0] != op->y.dim[0] || op->w.dim[0] != op->y.dim[1])
		REFUSE(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "samples or output channels");
	for (int k = 0; k < 2; k++) {
		int64_t room = op->x.dim[2 + k] + op->pre[k] + post[k] - op->dilation[k] * (op->w.dim[2 + k] - 1) - 1;
		if (room < 0 || op->y.dim[2 + k] != room / op->stride[k] + 1)
			REFUSE(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "is_valid_spatial_dim");
	}
	return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t pointwise(const dnn_desc *d, dnn_op *op, std::string *why)
{
	const dnn_desc *p = d->ref(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
	op->mode = p->get<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE);
	op->keeps_nan = p->has(CUDNN_ATTR_POINTWISE_NAN_PROPAGATION) &&
	                p->get<cudnnNanPropagation_t>(CUDNN_ATTR_POINTWISE_NAN_PROPAGATION) == CUDNN_PROPAGATE_NAN;
	op->x = dnn_tensor_of(d->ref(CUDNN_ATTR_OPERATION_POINTWISE_XDESC));
	op->y = dnn_tensor_of(d->ref(CUDNN_ATTR_OPERATION_POINTWISE_YDESC));
	op->has_w = d->has(CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
	if (op->has_w != (op->mode == CUDNN_POINTWISE_ADD))
		REFUSE(CUDNN_STATUS_BAD_PARAM, "BDESC goes with an operation of two operands");
	if (op->has_w)
		op->w = dnn_tensor_of(d->ref(CUDNN_ATTR_OPERATION_POINTWISE_BDESC));
	for (int k = 0; k < 4; k++)
		if (op->x.dim[k] != op->y.dim[k] || (op->has_w && op->w.dim[k] != op->x.dim[k] && op->w.dim[k] != 1))
			REFUSE(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "operands of a pointwise operation");
	return CUDNN_STATUS_SUCCESS;
}

static bool same(const dnn_tensor &a, const dnn_tensor &b)
{
	return a.uid == b.uid && a.type == b.type && a.is_virtual == b.is_virtual && !memcmp(a.dim, b.dim, sizeof a.dim) &&
	       !memcmp(a.stride, b.stride, sizeof a.stride);
}

std::vector<const dnn_tensor *> dnn_tensors(const dnn_op &op)
{
	std::vector<const dnn_tensor *> all = {&op.x, &op.y};
	if (op.has_w)
		all.push_back(&op.w);
	if (op.has_t)
		all.push_back(&op.t);
	for (int i = 0; i < 3; i++)
		if (op.has_limit[i])
			all.push_back(&op.limit[i]);
	return all;
}

const dnn_tensor &dnn_output(const dnn_op &op)
{
	return op.kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR ? op.w
	       : op.kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR ? op.x
	                                                                                 : op.y;
}

/* Each name belongs to one tensor. A virtual tensor is written once, and read after that; an output is written once. */
static cudnnStatus_t names(const std::vector<dnn_op> &ops, std::string *why)
{
	std::map<int64_t, dnn_tensor> seen;
	std::map<int64_t, int> made, read;
	for (const dnn_op &op : ops) {
		const dnn_tensor *out = &dnn_output(op);
		for (const dnn_tensor *t : dnn_tensors(op)) {
			if (seen.count(t->uid) && !same(seen[t->uid], *t))
				REFUSE(CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES, "a unique id names two tensors");
			seen[t->uid] = *t;
			if (t != out && t->is_virtual && !made[t->uid])
				REFUSE(CUDNN_STATUS_BAD_PARAM, "a virtual tensor is read before it is made");
			if (t != out)
				read[t->uid]++;
		}
		if (made[out->uid]++ || (!out->is_virtual && read[out->uid]))
			REFUSE(CUDNN_STATUS_BAD_PARAM, "a tensor is made twice, or read before");
	}
	for (auto &t : seen)
		if (t.second.is_virtual && !read[t.first])
			REFUSE(CUDNN_STATUS_BAD_PARAM, "a virtual tensor is never read");
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t dnn_op_of(const dnn_desc *d, dnn_op *op, std::string *why)
{
	*op = {};
	op->kind = d->kind;
	for (int i = 0; i < 3; i++)
		if (d->kind == convs[i].kind)
			return convolution(d, i, op, why);
	return dnn_is_attention_op(d) ? dnn_attention_op(d, op, why) : pointwise(d, op, why);
}

cudnnStatus_t dnn_walk(const std::vector<const dnn_desc *> &descs, std::vector<dnn_op> *out, std::string *why)
{
	for (const dnn_desc *d : descs) {
		dnn_op op;
		cudnnStatus_t status = dnn_op_of(d, &op, why);
		if (status != CUDNN_STATUS_SUCCESS)
			return status;
		out->push_back(op);
	}
	return names(*out, why);
}

bool dnn_precompiled(const std::vector<dnn_op> &ops)
{
	const dnn_op &c = ops[0];
	bool fwd = c.kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR;
	if (!fwd && c.kind != CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR &&
	    c.kind != CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR)
		return false;
	if (c.x.type != c.w.type)
		return false;
	if (ops.size() == 1)
		return c.y.type == c.x.type && !c.y.is_virtual;
	if (!fwd || ops.size() > 3 || c.y.type != CUDNN_DATA_FLOAT || c.beta != 0)
		return false;
	const dnn_op &add = ops[1], &last = ops.back();
	if (add.mode != CUDNN_POINTWISE_ADD || !add.has_w || add.w.type != c.x.type || add.x.uid != c.y.uid || add.w.dim[1] != c.y.dim[1] ||
	    add.w.dim[0] != 1 || add.w.dim[2] != 1 || add.w.dim[3] != 1 || last.y.type != c.x.type)
		return false;
	return ops.size() == 2 || (last.mode == CUDNN_POINTWISE_RELU_FWD && last.x.uid == add.y.uid && add.y.type == CUDNN_DATA_FLOAT);
}

/* ---- numbers --------------------------------------------------------------------------------------------------------------------- */
static float load(const void *p, int type, int64_t i)
{
	if (type == CUDNN_DATA_FLOAT)
		return ((const float *)p)[i];
	return type == CUDNN_DATA_HALF ? gt_f16_to_f32(((const uint16_t *)p)[i]) : gt_bf16_to_f32(((const uint16_t *)p)[i]);
}

static void store(void *p, int type, int64_t i, double v)
{
	if (type == CUDNN_DATA_FLOAT)
		((float *)p)[i] = (float)v;
	else
		((uint16_t *)p)[i] = type == CUDNN_DATA_HALF ? gt_f16_from_f32((float)v) : gt_bf16_from_f32((float)v);
}

static float operand(dnn_rounding r, float x)
{
	uint32_t u;
	if (r == DNN_BF16)
		return gt_bf16_to_f32(gt_bf16_from_f32(x));
	if (r != DNN_TF32)
		return x;
	memcpy(&u, &x, 4);
	u = (u + 0xfff + (u >> 13 & 1)) & 0xffffe000u;
	memcpy(&x, &u, 4);
	return x;
}

struct view { /* a tensor with its memory */
	const dnn_tensor *t;
	void *p;
	int64_t at(int64_t a, int64_t b, int64_t c, int64_t d) const
	{
		return a * t->stride[0] + b * t->stride[1] + c * t->stride[2] + d * t->stride[3];
	}
};

/* The numbers of a tensor as an engine reads them, rounded, with the strides given. */
static std::vector<float> dense(const view &v, dnn_rounding round, const int64_t (&stride)[4])
{
	const int64_t *d = v.t->dim;
	std::vector<float> out((size_t)(d[0] * d[1] * d[2] * d[3]));
	for (int64_t i0 = 0; i0 < d[0]; i0++)
		for (int64_t i1 = 0; i1 < d[1]; i1++)
			for (int64_t i2 = 0; i2 < d[2]; i2++)
				for (int64_t i3 = 0; i3 < d[3]; i3++)
					out[(size_t)(i0 * stride[0] + i1 * stride[1] + i2 * stride[2] + i3 * stride[3])] =
					    operand(round, load(v.p, v.t->type, v.at(i0, i1, i2, i3)));
	return out;
}

/* The loops over all products. x and y are [n, h, w, c], w is [r, t, c, k] or, for the gradient of the data, [r, t, k, c]; c counts the
 * channels of a group. One of the three is the output, in double. */
struct operands {
	const float *x, *w, *y;
	double *out;
};

GT_CLONES static void products(const dnn_op &op, const operands &o)
{
	bool fwd = op.kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
	     data = op.kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR;
	int64_t C = op.x.dim[1], K = op.y.dim[1], c = op.w.dim[1], groups = C / c, per = K / groups;
	for (int64_t s = 0; s < op.y.dim[0]; s++)
		for (int64_t p = 0; p < op.y.dim[2]; p++)
			for (int64_t q = 0; q < op.y.dim[3]; q++)
				for (int64_t r = 0; r < op.w.dim[2]; r++)
					for (int64_t t = 0; t < op.w.dim[3]; t++) {
						int64_t h = p * op.stride[0] - op.pre[0] + r * op.dilation[0],
						        v = q * op.stride[1] - op.pre[1] + t * op.dilation[1];
						if (h < 0 || h >= op.x.dim[2] || v < 0 || v >= op.x.dim[3])
							continue;
						for (int64_t g = 0; g < groups; g++) {
							int64_t ix = ((s * op.x.dim[2] + h) * op.x.dim[3] + v) * C + g * c,
							        iy = ((s * op.y.dim[2] + p) * op.y.dim[3] + q) * K + g * per,
							        iw = (r * op.w.dim[3] + t) * c * K;
							if (data)
								for (int64_t k = 0; k < per; k++)
									add_scaled(o.out + ix, o.y[iy + k], o.w + iw + (g * per + k) * c, c);
							else
								for (int64_t i = 0; i < c; i++)
									if (fwd)
										add_scaled(o.out + iy, o.x[ix + i], o.w + iw + i * K + g * per, per);
									else
										add_scaled(o.out + iw + i * K + g * per, o.x[ix + i], o.y + iy, per);
						}
					}
}

static void convolve(const dnn_op &op, dnn_rounding round, int nth, const view &x, const view &w, const view &y)
{
	bool fwd = op.kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
	     data = op.kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR;
	const view &out = fwd ? y : data ? x : w;
	int64_t C = op.x.dim[1], K = op.y.dim[1], c = op.w.dim[1], T = op.w.dim[3];
	const int64_t sx[4] = {op.x.dim[2] * op.x.dim[3] * C, 1, op.x.dim[3] * C, C},
	              sy[4] = {op.y.dim[2] * op.y.dim[3] * K, 1, op.y.dim[3] * K, K},
	              sw[4] = {data ? c : 1, data ? 1 : K, T * c * K, c * K}, *so = fwd ? sy : data ? sx : sw;
	const int64_t *d = out.t->dim;
	for (int64_t i0 = 0; op.beta == 0 && i0 < d[0]; i0++) /* what the output held is not read, and it does not overlap the inputs */
		for (int64_t i1 = 0; i1 < d[1]; i1++)
			for (int64_t i2 = 0; i2 < d[2]; i2++)
				for (int64_t i3 = 0; i3 < d[3]; i3++)
					store(out.p, out.t->type, out.at(i0, i1, i2, i3), NAN);
	std::vector<float> dx, dw, dy;
	std::vector<double> sum((size_t)(d[0] * d[1] * d[2] * d[3]), 0.0);
	if (fwd || !data)
		dx = dense(x, round, sx);
	if (fwd || data)
		dw = dense(w, round, sw);
	if (!fwd)
		dy = dense(y, round, sy);
	products(op, {dx.data(), dw.data(), dy.data(), sum.data()});
	for (int64_t i0 = 0; i0 < d[0]; i0++)
		for (int64_t i1 = 0; i1 < d[1]; i1++)
			for (int64_t i2 = 0; i2 < d[2]; i2++)
				for (int64_t i3 = 0; i3 < d[3]; i3++) {
					int64_t i = out.at(i0, i1, i2, i3);
					double v = op.alpha * sum[(size_t)(i0 * so[0] + i1 * so[1] + i2 * so[2] + i3 * so[3])] +
					           (op.beta != 0 ? op.beta * load(out.p, out.t->type, i) : 0);
					if (round == DNN_WINOGRAD)
						v *= 1 + 0x1p-21;
					if (round == DNN_NOISE)
						v *= 1 + 0x1p-21 * (nth % 3);
					store(out.p, out.t->type, i, v);
				}
}

static void point(const dnn_op &op, const view &x, const view &b, const view &y)
{
	for (int64_t i0 = 0; i0 < op.y.dim[0]; i0++)
		for (int64_t i1 = 0; i1 < op.y.dim[1]; i1++)
			for (int64_t i2 = 0; i2 < op.y.dim[2]; i2++)
				for (int64_t i3 = 0; i3 < op.y.dim[3]; i3++) {
					float v = load(x.p, op.x.type, x.at(i0, i1, i2, i3));
					if (op.mode == CUDNN_POINTWISE_ADD)
						v += load(
						    b.p, op.w.type,
						    b.at(op.w.dim[0] > 1 ? i0 : 0, op.w.dim[1] > 1 ? i1 : 0, op.w.dim[2] > 1 ? i2 : 0, op.w.dim[3] > 1 ? i3 : 0));
					else
						v = v > 0 || (op.keeps_nan && v != v) ? v : 0;
					store(y.p, op.y.type, y.at(i0, i1, i2, i3), v);
				}
}

void dnn_run(const dnn_program &p, const std::map<int64_t, void *> &memory)
{
	static int nth;
	std::map<int64_t, std::vector<unsigned char>> inner;
	bool attention = dnn_is_attention(p.ops);
	nth++;
	auto view_of = [&](const dnn_tensor &t) {
		if (!t.is_virtual)
			return view{&t, memory.at(t.uid)};
		std::vector<unsigned char> &m = inner[t.uid];
		m.resize((size_t)dnn_extent(t), 0xff);
		return view{&t, m.data()};
	};
	for (const dnn_op &op : p.ops) {
		bool conv = op.kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR || &dnn_output(op) != &op.y;
		if (attention) {
			std::map<int64_t, void *> all = memory;
			for (const dnn_tensor *t : dnn_tensors(op))
				all[t->uid] = view_of(*t).p;
			dnn_run_attention_op(op, all);
			continue;
		}
		view x = view_of(op.x), y = view_of(op.y), w = op.has_w ? view_of(op.w) : view{nullptr, nullptr};
		if (conv)
			convolve(op, p.rounding, nth, x, w, y);
		else
			point(op, x, w, y);
	}
}
