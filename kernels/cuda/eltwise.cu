/* Element-wise operations and cast: a thread computes one 16-byte vector of the output. The kernels walk through tensors in memory order,
 * so all operands must have the same layout. */
#include "cuda/device.cuh"

#define BLOCK 256

/* ---- kernels --------------------------------------------------------------------------------------------------------------------- */
#define UNARY(name, expr)                                                                                                                  \
	struct op_##name {                                                                                                                     \
		static constexpr int nin = 1;                                                                                                      \
		__device__ static float f(float x, float, float n0, float n1)                                                                      \
		{                                                                                                                                  \
			(void)n0, (void)n1;                                                                                                            \
			return expr;                                                                                                                   \
		}                                                                                                                                  \
	};
#define BINARY(name, expr)                                                                                                                 \
	struct op_##name {                                                                                                                     \
		static constexpr int nin = 2;                                                                                                      \
		__device__ static float f(float a, float b, float n0, float n1)                                                                    \
		{                                                                                                                                  \
			(void)n0, (void)n1;                                                                                                            \
			return expr;                                                                                                                   \
		}                                                                                                                                  \
	};
#define GT_X(arg, CODE, name, saved, numbers, ...)                                                                                         \
	UNARY(name, gt_##name##_f32(x GT_ACTIVATION_NUMBERS_##numbers))                                                                        \
	BINARY(name##_dx, gt_##name##_dx_f32(a, b GT_ACTIVATION_NUMBERS_##numbers))
GT_ACTIVATIONS(GT_X)
#undef GT_X
UNARY(gelu_tanh, gt_gelu_tanh_f32(x))
BINARY(gelu_tanh_dx, gt_gelu_tanh_dx_f32(a, b))
UNARY(scale, x *n0)
BINARY(mul, a *b)

template <class S, class Op> __global__ void __launch_bounds__(BLOCK) eltwise(const gt_cu_eltwise a)
{
	after_previous();
	constexpr int V = width<S>::n;
	int64_t i = ((int64_t)blockIdx.x * BLOCK + threadIdx.x) * V;
	if (i >= a.n)
		return;
	float x[V], y[V] = {};
	load_vector<S>(x, a.x[0], i, a.n, a.aligned, 0);
	if (Op::nin == 2)
		load_vector<S>(y, a.x[1], i, a.n, a.aligned, 0);
#pragma unroll
	for (int j = 0; j < V; j++)
		x[j] = Op::f(x[j], y[j], a.number[0], a.number[1]);
	store_vector<S>(a.out, x, i, a.n, a.aligned);
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
	load_vector<S>(sum, a.x[0], i, a.n, a.aligned, 0);
#pragma unroll
	for (int k = 1; k < GT_MAX_IO; k++) {
		float x[V];
		if (k >= a.nin)
			break;
		load_vector<S>(x, a.x[k], i, a.n, a.aligned, 0);
#pragma unroll
		for (int j = 0; j < V; j++)
			sum[j] += x[j];
	}
	store_vector<S>(a.out, sum, i, a.n, a.aligned);
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
	store_vector<S>(y, v, i, n, aligned);
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
		load_vector<S>(v + j, in, i + j, n, aligned, 0);
#pragma unroll
	for (int j = 0; j < 8; j += width<D>::n)
		store_vector<D>(out, v + j, i + j, n, aligned);
}

/* ---- launchers ------------------------------------------------------------------------------------------------------------------- */
typedef void eltwise_fn(const gt_cu_eltwise);

#define ROW(code, name)                                                                                                                    \
	case code:                                                                                                                             \
		return OF_TYPE(type, eltwise, op_##name);

static eltwise_fn *find_kernel(int code, bool gelu_tanh, int type)
{
	if (gelu_tanh && code == GT_OP_GELU)
		return OF_TYPE(type, eltwise, op_gelu_tanh);
	if (gelu_tanh && code == GT_OP_GELU_DX)
		return OF_TYPE(type, eltwise, op_gelu_tanh_dx);
	switch (code) {
#define GT_X(arg, CODE, name, ...) ROW(GT_OP_##CODE, name) ROW(GT_OP_##CODE##_DX, name##_dx)
		GT_ACTIVATIONS(GT_X)
#undef GT_X
		ROW(GT_OP_SCALE, scale)
		ROW(GT_OP_MUL, mul)
	case GT_OP_ADD:
		return OF_TYPE(type, add);
	}
	return NULL;
}

cudaError_t gt_cu_eltwise_start(int code, bool gelu_tanh, int type, const struct gt_cu_eltwise *a, cudaStream_t s)
{
	int64_t blocks = ceil_div(a->n, BLOCK * (type == GT_CU_F32 ? width<float>::n : width<bf16>::n));
	eltwise_fn *fn = find_kernel(code, gelu_tanh, type);
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

/* ---- calls ----------------------------------------------------------------------------------------------------------------------- */
/* Returns how many parameters (gt_attr_act.number) an activation takes. */
static int numbers_of(int code)
{
	switch (code) {
#define GT_X(arg, CODE, name, saved, numbers, ...) \
	case GT_OP_##CODE: \
	case GT_OP_##CODE##_DX: \
		return numbers;
		GT_ACTIVATIONS(GT_X)
#undef GT_X
	}
	return 0;
}

static const char *refuse_call(const struct gt_opcall *op)
{
	const struct gt_tdesc *x = gt_opcall_input(op);
	struct gt_tdesc *y = gt_opcall_output(op);
	if (gt_cuda_type(x->dtype) < 0 || gt_cuda_type(y->dtype) < 0)
		return "this type is not supported";
	if (y->any)
		y->layout = x->layout, y->any = false;
	struct gt_tdesc like = *y;
	like.dtype = x->dtype;
	/* only a cast can fail here, because the other operations have the standard layout */
	return gt_tdesc_equal(x, &like) ? NULL : "input and output must have the same layout";
}

static const char *name_variant(const struct gt_opcall *op)
{
	return op->code == GT_OP_CAST ? "cast" : "eltwise";
}

static cudaError_t start_cast(const struct gt_cu_call *c, const void *x, void *y, cudaStream_t s)
{
	const struct gt_tdesc *d = gt_opcall_input(c->op);
	int to = gt_cuda_type(gt_opcall_output(c->op)->dtype);
	if (c->type != to)
		return gt_cu_cast_start(c->type, to, x, y, gt_tdesc_padded(d), s);
	return x != y ? cudaMemcpyAsync(y, x, gt_tdesc_bytes(d), cudaMemcpyDeviceToDevice, s) : cudaSuccess;
}

static cudaError_t start_call(const struct gt_cu_call *c, cudaStream_t s)
{
	const struct gt_opcall *op = c->op;
	struct gt_cu_eltwise a = {};
	bool gelu = op->code == GT_OP_GELU || op->code == GT_OP_GELU_DX;
	uintptr_t at = (uintptr_t)*c->out;
	for (int i = 0; i < op->nin; i++) {
		a.x[i] = c->in[i];
		at |= (uintptr_t)a.x[i];
	}
	a.out = *c->out;
	if (op->code == GT_OP_CAST)
		return start_cast(c, a.x[0], a.out, s);
	a.n = gt_tdesc_padded(gt_opcall_input(op));
	a.nin = op->nin;
	a.aligned = at % 16 == 0;
	for (int i = 0; i < numbers_of(op->code); i++)
		a.number[i] = (float)((const struct gt_attr_act *)op->attr)->number[i];
	if (op->code == GT_OP_SCALE)
		a.number[0] = (float)((const struct gt_attr_scale *)op->attr)->factor;
	return gt_cu_eltwise_start(op->code, gelu && ((const struct gt_attr_gelu *)op->attr)->approximate, c->type, &a, s);
}

GT_CU_FAMILY(eltwise, start_call, NULL, refuse_call, NULL, NULL, NULL, name_variant)
