/* softmax, log_softmax and their gradients over rows. A team of threads (device.cuh) handles one row, which it reads twice. */
#include "cuda/softmax.cuh"

/* The arguments of a call. Dimension 1 is contiguous in a rank-4 tensor (NHWC) too, so every tensor consists of `rows` rows of C
 * elements. */
struct softmax_args {
	const void *x, *y; /* x: the input, or dy; y: the forward output */
	void *out;
	int64_t rows, cols;
};

/* ---- kernels --------------------------------------------------------------------------------------------------------------------- */
/* Returns the row of this thread's team, or -1 for all threads of a warp without a row. */
__device__ static inline int64_t row_of(int64_t rows, int team)
{
	int64_t r = (int64_t)blockIdx.x * (TEAM_BLOCK / team) + threadIdx.x / team;
	return r < rows ? r : -1;
}

template <class S, int V, bool LOG> __global__ void __launch_bounds__(TEAM_BLOCK) softmax_rows(const softmax_args a, int team)
{
	after_previous();
	int64_t r = row_of(a.rows, team), n = a.cols;
	int lane = (int)threadIdx.x % team;
	if (r < 0)
		return;
	const S *x = (const S *)a.x + r * n;
	S *y = (S *)a.out + r * n;
	float v[V];
	softmax_sums sums;
	for (int64_t i = lane * V; i < n; i += team * V) {
		get_elements<S, V>(v, x + i);
		sums.add<V>(v);
	}
	sums.join(team, false);
	float lsum = LOG ? gt_log_f32(sums.exp) : 0;
	for (int64_t i = lane * V; i < n; i += team * V) {
		get_elements<S, V>(v, x + i);
#pragma unroll
		for (int j = 0; j < V; j++) {
			float z = v[j] - sums.max;
			v[j] = LOG ? z - lsum : gt_exp_f32(z) / sums.exp;
		}
		store_packed<S, V>(y + i, v);
	}
}

/* Computes the gradient of softmax, dx = y (dy - sum dy y), or of log_softmax, dx = dy - exp(y) sum dy. */
template <class S, int V, bool LOG> __global__ void __launch_bounds__(TEAM_BLOCK) softmax_dx(const softmax_args a, int team)
{
	after_previous();
	int64_t r = row_of(a.rows, team), n = a.cols;
	int lane = (int)threadIdx.x % team;
	if (r < 0)
		return;
	const S *dy = (const S *)a.x + r * n, *y = (const S *)a.y + r * n;
	S *dx = (S *)a.out + r * n;
	float sum = 0, g[V], p[V];
	for (int64_t i = lane * V; i < n; i += team * V) {
		get_elements<S, V>(g, dy + i);
		if (!LOG)
			get_elements<S, V>(p, y + i);
#pragma unroll
		for (int j = 0; j < V; j++)
			sum += LOG ? g[j] : g[j] * p[j];
	}
	sum = team_sum(sum, team);
	for (int64_t i = lane * V; i < n; i += team * V) {
		get_elements<S, V>(g, dy + i);
		get_elements<S, V>(p, y + i);
#pragma unroll
		for (int j = 0; j < V; j++)
			g[j] = LOG ? g[j] - gt_exp_f32(p[j]) * sum : p[j] * (g[j] - sum);
		store_packed<S, V>(dx + i, g);
	}
}

/* ---- launchers ------------------------------------------------------------------------------------------------------------------- */
typedef void softmax_fn(const softmax_args, int);

template <class S, int V> static softmax_fn *find_kernel(int code)
{
	bool log = code == GT_OP_LOG_SOFTMAX || code == GT_OP_LOG_SOFTMAX_DX;
	if (code == GT_OP_SOFTMAX || code == GT_OP_LOG_SOFTMAX)
		return log ? softmax_rows<S, V, true> : softmax_rows<S, V, false>;
	return log ? softmax_dx<S, V, true> : softmax_dx<S, V, false>;
}

template <class S> static cudaError_t launch_rows(const softmax_args &a, int code, cudaStream_t s)
{
	int v = row_vector<S>(a.cols, (uintptr_t)a.x | (uintptr_t)a.y | (uintptr_t)a.out), team = team_for(a.cols / v);
	softmax_fn *fn = v == 1 ? find_kernel<S, 1>(code) : find_kernel<S, width<S>::n>(code);
	int64_t blocks = ceil_div(a.rows, TEAM_BLOCK / team);
	if (!grid_fits(blocks))
		return cudaErrorInvalidValue;
	return blocks ? launch(fn, dim3((unsigned)blocks), dim3(TEAM_BLOCK), s, a, team) : cudaSuccess;
}

static cudaError_t start_call(const struct gt_cu_call *c, cudaStream_t s)
{
	static const struct gt_operand_slot slots[] = {
	    GT_SLOTS(softmax_args, x, y), GT_SLOT_AS(softmax_args, "dy", x), GT_SLOT_AS(softmax_args, "dx", out)};
	const struct gt_tdesc *x = gt_opcall_input(c->op);
	softmax_args a = {};
	GT_CU_BIND(c, slots, &a);
	if (!a.out) /* y is the output */
		a.out = (void *)a.y;
	a.rows = 1, a.cols = x->dim[1];
	for (int i = 0; i < x->rank; i++)
		a.rows *= i == 1 ? 1 : x->dim[i];
	return OF_TYPE(c->type, launch_rows)(a, c->op->code, s);
}

GT_CU_FAMILY(softmax, start_call, NULL, NULL, "rows")
