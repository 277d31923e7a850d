/* Element-wise operations: a thread computes one 16-byte vector of the output. */
#include "cuda/device.cuh"

#define BLOCK 256

/* ---- kernels --------------------------------------------------------------------------------------------------------------------- */
#define UNARY(name, expr)                                                                                                                  \
	struct op_##name {                                                                                                                     \
		static constexpr int nin = 1;                                                                                                      \
		__device__ static float f(float x, float, float slope)                                                                             \
		{                                                                                                                                  \
			(void)slope;                                                                                                                   \
			return expr;                                                                                                                   \
		}                                                                                                                                  \
	};
#define BINARY(name, expr)                                                                                                                 \
	struct op_##name {                                                                                                                     \
		static constexpr int nin = 2;                                                                                                      \
		__device__ static float f(float a, float b, float slope)                                                                           \
		{                                                                                                                                  \
			(void)slope;                                                                                                                   \
			return expr;                                                                                                                   \
		}                                                                                                                                  \
	};
UNARY(relu, gt_relu_f32(x))
UNARY(leaky_relu, gt_leaky_relu_f32(x, slope))
UNARY(scale, x *slope)
UNARY(sigmoid, gt_sigmoid_f32(x))
UNARY(tanh, gt_tanh_f32(x))
UNARY(gelu, gt_gelu_f32(x))
UNARY(gelu_tanh, gt_gelu_tanh_f32(x))
UNARY(silu, gt_silu_f32(x))
UNARY(mish, gt_mish_f32(x))
UNARY(elu, gt_elu_f32(x, slope))
UNARY(relu6, gt_relu6_f32(x))
UNARY(hardsigmoid, gt_hardsigmoid_f32(x))
UNARY(hardswish, gt_hardswish_f32(x))
BINARY(relu_dx, gt_relu_dx_f32(a, b))
BINARY(leaky_relu_dx, gt_leaky_relu_dx_f32(a, b, slope))
BINARY(sigmoid_dx, gt_sigmoid_dx_f32(a, b))
BINARY(tanh_dx, gt_tanh_dx_f32(a, b))
BINARY(gelu_dx, gt_gelu_dx_f32(a, b))
BINARY(gelu_tanh_dx, gt_gelu_tanh_dx_f32(a, b))
BINARY(silu_dx, gt_silu_dx_f32(a, b))
BINARY(mish_dx, gt_mish_dx_f32(a, b))
BINARY(elu_dx, gt_elu_dx_f32(a, b, slope))
BINARY(relu6_dx, gt_relu6_dx_f32(a, b))
BINARY(hardsigmoid_dx, gt_hardsigmoid_dx_f32(a, b))
BINARY(hardswish_dx, gt_hardswish_dx_f32(a, b))
BINARY(mul, a *b)

template <class S, class Op> __global__ void __launch_bounds__(BLOCK) eltwise(const gt_cu_eltwise a)
{
	after_previous();
	constexpr int V = width<S>::n;
	int64_t i = ((int64_t)blockIdx.x * BLOCK + threadIdx.x) * V;
	if (i >= a.n)
		return;
	float x[V], y[V] = {};
	load<S>(x, a.in[0], i, a.n, a.aligned, 0);
	if (Op::nin == 2)
		load<S>(y, a.in[1], i, a.n, a.aligned, 0);
#pragma unroll
	for (int j = 0; j < V; j++)
		x[j] = Op::f(x[j], y[j], a.slope);
	store<S>(a.out, x, i, a.n, a.aligned);
}

/* Adds 2 to GT_MAX_IO inputs in f32 and rounds the sum once. */
template <class S> __global__ void __launch_bounds__(BLOCK) add(const gt_cu_eltwise a)
{
	after_previous();
	constexpr int V = width<S>::n;
	int64_t i = ((int64_t)blockIdx.x * BLOCK + threadIdx.x) * V;
	if (i >= a.n)
		return;
	float sum[V];
	load<S>(sum, a.in[0], i, a.n, a.aligned, 0);
#pragma unroll
	for (int k = 1; k < GT_MAX_IO; k++) {
		float x[V];
		if (k >= a.nin)
			break;
		load<S>(x, a.in[k], i, a.n, a.aligned, 0);
#pragma unroll
		for (int j = 0; j < V; j++)
			sum[j] += x[j];
	}
	store<S>(a.out, sum, i, a.n, a.aligned);
}

template <class S> __global__ void __launch_bounds__(BLOCK) fill_rows(const float *row, void *y, int64_t n, int64_t cols, bool aligned)
{
	after_previous();
	constexpr int V = width<S>::n;
	int64_t i = ((int64_t)blockIdx.x * BLOCK + threadIdx.x) * V;
	if (i >= n)
		return;
	float v[V];
	int64_t c = i % cols;
#pragma unroll
	for (int j = 0; j < V; j++) {
		v[j] = row[c];
		c = c + 1 < cols ? c + 1 : 0;
	}
	store<S>(y, v, i, n, aligned);
}

/* A thread converts eight elements: one vector of 16-bit elements, two of f32. */
template <class S, class D> __global__ void __launch_bounds__(BLOCK) cast(const void *in, void *out, int64_t n, bool aligned)
{
	after_previous();
	int64_t i = ((int64_t)blockIdx.x * BLOCK + threadIdx.x) * 8;
	float v[8];
	if (i >= n)
		return;
#pragma unroll
	for (int j = 0; j < 8; j += width<S>::n)
		load<S>(v + j, in, i + j, n, aligned, 0);
#pragma unroll
	for (int j = 0; j < 8; j += width<D>::n)
		store<D>(out, v + j, i + j, n, aligned);
}

/* ---- launchers ------------------------------------------------------------------------------------------------------------------- */
typedef void eltwise_fn(const gt_cu_eltwise);

#define ROW(code, name)                                                                                                                    \
	case code:                                                                                                                             \
		return OF_TYPE(type, eltwise, op_##name);

static eltwise_fn *find(int code, bool gelu_tanh, int type)
{
	if (gelu_tanh && code == GT_OP_GELU)
		return OF_TYPE(type, eltwise, op_gelu_tanh);
	if (gelu_tanh && code == GT_OP_GELU_DX)
		return OF_TYPE(type, eltwise, op_gelu_tanh_dx);
	switch (code) {
		ROW(GT_OP_RELU, relu)
		ROW(GT_OP_RELU_DX, relu_dx)
		ROW(GT_OP_LEAKY_RELU, leaky_relu)
		ROW(GT_OP_LEAKY_RELU_DX, leaky_relu_dx)
		ROW(GT_OP_SCALE, scale)
		ROW(GT_OP_SIGMOID, sigmoid)
		ROW(GT_OP_SIGMOID_DX, sigmoid_dx)
		ROW(GT_OP_TANH, tanh)
		ROW(GT_OP_TANH_DX, tanh_dx)
		ROW(GT_OP_GELU, gelu)
		ROW(GT_OP_GELU_DX, gelu_dx)
		ROW(GT_OP_SILU, silu)
		ROW(GT_OP_SILU_DX, silu_dx)
		ROW(GT_OP_MISH, mish)
		ROW(GT_OP_MISH_DX, mish_dx)
		ROW(GT_OP_ELU, elu)
		ROW(GT_OP_ELU_DX, elu_dx)
		ROW(GT_OP_RELU6, relu6)
		ROW(GT_OP_RELU6_DX, relu6_dx)
		ROW(GT_OP_HARDSIGMOID, hardsigmoid)
		ROW(GT_OP_HARDSIGMOID_DX, hardsigmoid_dx)
		ROW(GT_OP_HARDSWISH, hardswish)
		ROW(GT_OP_HARDSWISH_DX, hardswish_dx)
		ROW(GT_OP_MUL, mul)
	case GT_OP_ADD:
		return OF_TYPE(type, add);
	}
	return NULL;
}

cudaError_t gt_cu_eltwise_start(int code, bool gelu_tanh, int type, const struct gt_cu_eltwise *a, cudaStream_t s)
{
	int64_t blocks = ceil_div(a->n, BLOCK * (type == GT_CU_F32 ? width<float>::n : width<bf16>::n));
	eltwise_fn *fn = find(code, gelu_tanh, type);
	if (!fn || !grid_fits(blocks))
		return cudaErrorInvalidValue;
	return blocks ? launch(fn, dim3((unsigned)blocks), dim3(BLOCK), s, *a) : cudaSuccess;
}

cudaError_t gt_cu_fill_rows_start(int type, const float *row, void *y, int64_t rows, int64_t cols, cudaStream_t s)
{
	int64_t n = rows * cols, blocks = ceil_div(n, BLOCK * (type == GT_CU_F32 ? width<float>::n : width<bf16>::n));
	if (!grid_fits(blocks))
		return cudaErrorInvalidValue;
	return blocks ? launch(OF_TYPE(type, fill_rows), dim3((unsigned)blocks), dim3(BLOCK), s, row, y, n, cols, (uintptr_t)y % 16 == 0)
	              : cudaSuccess;
}

typedef void cast_fn(const void *, void *, int64_t, bool);

template <class S> static cast_fn *cast_to(int to)
{
	return to == GT_CU_F32 ? cast<S, float> : to == GT_CU_BF16 ? cast<S, bf16> : cast<S, f16>;
}

cudaError_t gt_cu_cast_start(int from, int to, const void *in, void *out, int64_t n, cudaStream_t s)
{
	int64_t blocks = ceil_div(n, BLOCK * 8);
	bool aligned = ((uintptr_t)in | (uintptr_t)out) % 16 == 0;
	cast_fn *fn = OF_TYPE(from, cast_to)(to);
	if (from == to || !grid_fits(blocks))
		return cudaErrorInvalidValue;
	return blocks ? launch(fn, dim3((unsigned)blocks), dim3(BLOCK), s, in, out, n, aligned) : cudaSuccess;
}
