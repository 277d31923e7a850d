/* softmax, log_softmax and their gradients over rows. A team of threads (device.cuh) handles one row. */
#include "cuda/device.cuh"

/* Dimension 1 is contiguous in a rank-4 tensor (NHWC) too, so that every tensor consists of rows of C elements. */
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

template <class S> __device__ static inline float row_max(const S *x, int64_t n, int lane, int team)
{
	float m = -INFINITY;
	for (int64_t i = lane; i < n; i += team)
		m = fmaxf(m, to_float(x[i]));
	return team_max(m, team);
}

template <class S, bool LOG> __global__ void __launch_bounds__(TEAM_BLOCK) softmax_rows(const softmax_args a, int team)
{
	after_previous();
	int64_t r = row_of(a.rows, team), n = a.cols;
	int lane = (int)threadIdx.x % team;
	if (r < 0)
		return;
	const S *x = (const S *)a.x + r * n;
	S *y = (S *)a.out + r * n;
	float max = row_max(x, n, lane, team), sum = 0;
	for (int64_t i = lane; i < n; i += team)
		sum += gt_exp_f32(to_float(x[i]) - max);
	sum = team_sum(sum, team);
	float lsum = LOG ? gt_log_f32(sum) : 0;
	for (int64_t i = lane; i < n; i += team) {
		float z = to_float(x[i]) - max;
		y[i] = from_float<S>(LOG ? z - lsum : gt_exp_f32(z) / sum);
	}
}

/* Computes the gradient of softmax, dx = y (dy - sum dy y), or of log_softmax, dx = dy - exp(y) sum dy. */
template <class S, bool LOG> __global__ void __launch_bounds__(TEAM_BLOCK) softmax_dx(const softmax_args a, int team)
{
	after_previous();
	int64_t r = row_of(a.rows, team), n = a.cols;
	int lane = (int)threadIdx.x % team;
	if (r < 0)
		return;
	const S *dy = (const S *)a.x + r * n, *y = (const S *)a.y + r * n;
	S *dx = (S *)a.out + r * n;
	float sum = 0;
	for (int64_t i = lane; i < n; i += team)
		sum += LOG ? to_float(dy[i]) : to_float(dy[i]) * to_float(y[i]);
	sum = team_sum(sum, team);
	for (int64_t i = lane; i < n; i += team) {
		float g = to_float(dy[i]), p = to_float(y[i]);
		dx[i] = from_float<S>(LOG ? g - gt_exp_f32(p) * sum : p * (g - sum));
	}
}

/* ---- launchers ------------------------------------------------------------------------------------------------------------------- */
typedef void softmax_fn(const softmax_args, int);

template <class S> static softmax_fn *find_kernel(int code)
{
	bool log = code == GT_OP_LOG_SOFTMAX || code == GT_OP_LOG_SOFTMAX_DX;
	if (code == GT_OP_SOFTMAX || code == GT_OP_LOG_SOFTMAX)
		return log ? softmax_rows<S, true> : softmax_rows<S, false>;
	return log ? softmax_dx<S, true> : softmax_dx<S, false>;
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
	int team = team_for(a.cols);
	int64_t blocks = ceil_div(a.rows, TEAM_BLOCK / team);
	softmax_fn *fn = OF_TYPE(c->type, find_kernel)(c->op->code);
	if (!grid_fits(blocks))
		return cudaErrorInvalidValue;
	return blocks ? launch(fn, dim3((unsigned)blocks), dim3(TEAM_BLOCK), s, a, team) : cudaSuccess;
}

GT_CU_FAMILY(softmax, start_call, NULL, NULL, "rows")
