/* Operations on sequences [N, T, C]: positional and pool_tokens, and their gradients. The order of a sum depends on the shape only. */
#include "cuda/device.cuh"
#include <stdlib.h>

#define BLOCK 256
#define MAX_Y 65535
#define AHEAD 8 /* samples that a thread reads before it uses the first; the compiler cannot hoist these loads, because y may alias x */

struct tokens_args {
	const void *x; /* x, or dy */
	const float *w;
	const int32_t *lengths;
	int32_t *idx;
	void *y;       /* y, dx or dw */
	int64_t samples, tokens, cols, rows; /* rows: number of rows of the position table (positional.dw) */
	bool same;     /* positional: row 0 of the position table is added to every token */
	int mode;      /* enum gt_pool_tokens */
	bool add;
};

/* ---- kernels --------------------------------------------------------------------------------------------------------------------- */
__device__ static inline int64_t length_of(const tokens_args &a, int64_t sample)
{
	int64_t n = a.lengths ? a.lengths[sample] : a.tokens;
	return n < 0 ? 0 : n > a.tokens ? a.tokens : n;
}

/* Returns the index of the token that pool_tokens copies in the modes GT_POOL_FIRST and GT_POOL_LAST. */
__device__ static inline int64_t place_of(const tokens_args &a, int64_t sample)
{
	int64_t n = length_of(a, sample);
	return a.mode == GT_POOL_LAST && n ? n - 1 : 0;
}

/* Reads element i, of n, of up to AHEAD samples from sample s on. */
template <class S> __device__ static inline void read_samples(S (&x)[AHEAD], const tokens_args &a, int64_t s, int64_t n, int64_t i)
{
#pragma unroll
	for (int k = 0; k < AHEAD; k++)
		if (s + k < a.samples)
			x[k] = ((const S *)a.x)[(s + k) * n + i];
}

/* A thread handles one feature of one position. The blocks with the same x divide the samples among them. */
template <class S> __global__ void __launch_bounds__(BLOCK) add_positions(const tokens_args a)
{
	after_previous();
	int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x, n = a.tokens * a.cols;
	if (i >= n)
		return;
	float w = a.w[a.same ? i % a.cols : i];
	for (int64_t s = (int64_t)blockIdx.y * AHEAD; s < a.samples; s += (int64_t)gridDim.y * AHEAD) {
		S x[AHEAD];
		read_samples(x, a, s, n, i);
#pragma unroll
		for (int k = 0; k < AHEAD; k++)
			if (s + k < a.samples)
				((S *)a.y)[(s + k) * n + i] = from_float<S>(to_float(x[k]) + w);
	}
}

/* The gradient of a table with a row for each token. A thread sums one element of the table over the samples, in order. */
template <class S> __global__ void __launch_bounds__(BLOCK) positional_dw(const tokens_args a)
{
	after_previous();
	int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x, n = a.tokens * a.cols;
	double sum = 0;
	if (i >= a.rows * a.cols)
		return;
	for (int64_t s = 0; i < n && s < a.samples; s += AHEAD) {
		S x[AHEAD];
		read_samples(x, a, s, n, i);
#pragma unroll
		for (int k = 0; k < AHEAD; k++)
			if (s + k < a.samples)
				sum += (double)to_float(x[k]);
	}
	float *dw = (float *)a.y + i;
	*dw = (float)((a.add ? (double)*dw : 0) + sum);
}

/* A thread computes one feature of one sample. */
template <class S> __global__ void __launch_bounds__(BLOCK) pool_features(const tokens_args a)
{
	after_previous();
	int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x, s = i / a.cols, c = i - s * a.cols;
	if (s >= a.samples)
		return;
	const S *x = (const S *)a.x + s * a.tokens * a.cols + c;
	int64_t length = length_of(a, s);
	bool one = a.mode == GT_POOL_FIRST || a.mode == GT_POOL_LAST;
	float top = one ? to_float(x[place_of(a, s) * a.cols]) : 0;
	double sum = 0;
	int32_t at = -1;
	for (int64_t t = 0; !one && t < length; t++) {
		float v = to_float(x[t * a.cols]);
		sum += (double)v;
		if (at < 0 || v > top || (v != v && top == top)) {
			top = v;
			at = (int32_t)t;
		}
	}
	if (a.mode == GT_POOL_MEAN)
		top = length ? (float)(sum / (double)length) : 0;
	((S *)a.y)[i] = from_float<S>(top);
	if (a.idx)
		a.idx[i] = at;
}

template <class S> __global__ void __launch_bounds__(BLOCK) pool_dx(const tokens_args a)
{
	after_previous();
	int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x, s = i / (a.tokens * a.cols), t = i / a.cols % a.tokens, c = i % a.cols;
	if (s >= a.samples)
		return;
	float g = to_float(((const S *)a.x)[s * a.cols + c]);
	int64_t length = length_of(a, s);
	if (a.mode == GT_POOL_MEAN)
		g = t < length ? g / (float)length : 0;
	else if (a.mode == GT_POOL_MAX)
		g = a.idx[s * a.cols + c] == (int32_t)t ? g : 0;
	else
		g = t == place_of(a, s) ? g : 0;
	((S *)a.y)[i] = from_float<S>(g);
}

/* ---- launchers ------------------------------------------------------------------------------------------------------------------- */
static const char *refuse_call(const struct gt_opcall *op)
{
	const struct gt_tdesc *x = gt_cu_operand(op, "x", "dy"), *w = gt_opcall_operand(op, "w"), *dw = gt_opcall_operand(op, "dw");
	if (op->code == GT_OP_POSITIONAL) {
		int kind = ((const struct gt_attr_positional *)op->attr)->kind;
		return !w != (kind == GT_POSITIONAL_SINUSOIDAL) || (kind == GT_POSITIONAL_LEARNED && w->dim[0] < x->dim[1])
		           ? "expected a plain table with a row for each token, or no table if sinusoidal"
		           : NULL;
	}
	if (op->code == GT_OP_POSITIONAL_DW)
		return ((const struct gt_attr_positional *)op->attr)->kind == GT_POSITIONAL_LEARNED && dw->dim[0] < x->dim[1]
		           ? "the table has fewer rows than there are tokens" : NULL;
	bool max = ((const struct gt_attr_pool_tokens *)op->attr)->mode == GT_POOL_MAX;
	return op->code == GT_OP_POOL_TOKENS_DX && max && !gt_opcall_operand(op, "idx") ? "the gradient of the maximum needs idx" : NULL;
}

template <class S> static cudaError_t launch_kernel(const tokens_args &a, int code, cudaStream_t s)
{
	int64_t n = code == GT_OP_POSITIONAL      ? a.tokens * a.cols
	            : code == GT_OP_POSITIONAL_DW ? a.rows * a.cols
	            : code == GT_OP_POOL_TOKENS   ? a.samples * a.cols
	                                          : a.samples * a.tokens * a.cols;
	int64_t blocks = ceil_div(n, BLOCK);
	if (!grid_fits(blocks))
		return cudaErrorInvalidValue;
	dim3 grid((unsigned)blocks), block(BLOCK);
	switch (code) {
	case GT_OP_POSITIONAL:
		grid.y = (unsigned)(a.samples < AHEAD ? 1 : a.samples / AHEAD < MAX_Y ? a.samples / AHEAD : MAX_Y);
		return launch(add_positions<S>, grid, block, s, a);
	case GT_OP_POSITIONAL_DW:
		return launch(positional_dw<S>, grid, block, s, a);
	case GT_OP_POOL_TOKENS:
		return launch(pool_features<S>, grid, block, s, a);
	}
	return launch(pool_dx<S>, grid, block, s, a);
}

static int positional_kind(const struct gt_opcall *op)
{
	bool pools = op->code == GT_OP_POOL_TOKENS || op->code == GT_OP_POOL_TOKENS_DX;
	return pools ? -1 : ((const struct gt_attr_positional *)op->attr)->kind;
}

/* Returns whether a call is the gradient of a table of which every token uses row 0: this gradient is the column sums of dy. */
static bool sums_columns(const struct gt_opcall *op)
{
	return op->code == GT_OP_POSITIONAL_DW && positional_kind(op) == GT_POSITIONAL_SAME;
}

static size_t scratch_bytes(const struct gt_opcall *op)
{
	const struct gt_tdesc *dy = gt_opcall_input(op);
	return sums_columns(op) ? gt_cu_colsum_scratch(dy->dim[0] * dy->dim[1], dy->dim[2]) : 0;
}

/* Uploads the sinusoids. Every sample of a batch needs the same ones. */
static enum gt_code upload_sinusoids(struct gt_dev *dev, const struct gt_opcall *op, struct gt_cu_table *table, struct gt_err *err)
{
	const struct gt_tdesc *x = gt_opcall_input(op);
	int64_t tokens = x->dim[1], cols = x->dim[2];
	size_t bytes = (size_t)(tokens * cols) * sizeof(float);
	if (op->code != GT_OP_POSITIONAL || positional_kind(op) != GT_POSITIONAL_SINUSOIDAL)
		return GT_OK;
	float *w = (float *)malloc(bytes);
	if (!w)
		return gt_fail(err, GT_EFAIL, "out of memory");
	for (int64_t t = 0; t < tokens; t++)
		for (int64_t j = 0; j < cols; j++)
			w[t * cols + j] = (float)gt_sinusoid(t, j, cols);
	enum gt_code code = gt_cuda_upload(dev, w, bytes, &table->p, err);
	free(w);
	return code;
}

static cudaError_t start_column_sums(const struct gt_cu_call *c, const tokens_args &a, cudaStream_t s)
{
	float *dw = (float *)a.y;
	if (a.rows > 1 && !a.add) { /* every token reads row 0 of the table, so the gradients of all other rows are 0 */
		cudaError_t e = cudaMemsetAsync(dw + a.cols, 0, (size_t)((a.rows - 1) * a.cols) * sizeof *dw, s);
		if (e != cudaSuccess)
			return e;
	}
	return gt_cu_colsum_start(c->type, a.x, dw, a.samples * a.tokens, a.cols, a.add, c->scratch, s);
}

static cudaError_t start_call(const struct gt_cu_call *c, cudaStream_t s)
{
	static const struct gt_operand_slot slots[] = {
	    GT_SLOTS(tokens_args, x, w, lengths, idx, y), GT_SLOT_AS(tokens_args, "dy", x), GT_SLOT_AS(tokens_args, "dx", y),
	    GT_SLOT_AS(tokens_args, "dw", y)};
	const struct gt_opcall *op = c->op;
	bool back = op->code == GT_OP_POOL_TOKENS_DX, pools = back || op->code == GT_OP_POOL_TOKENS;
	const struct gt_tdesc *x = back ? gt_opcall_operand(op, "dx") : gt_opcall_input(op), *dw = gt_opcall_operand(op, "dw");
	tokens_args a = {};
	GT_CU_BIND(c, slots, &a);
	a.samples = x->dim[0], a.tokens = x->dim[1], a.cols = x->dim[2];
	a.add = gt_opcall_adds(op, "dw");
	a.rows = dw ? dw->dim[0] : 0;
	a.same = positional_kind(op) == GT_POSITIONAL_SAME;
	if (op->code == GT_OP_POSITIONAL && !a.w)
		a.w = (const float *)c->table->p;
	a.mode = pools ? ((const struct gt_attr_pool_tokens *)op->attr)->mode : 0;
	return sums_columns(op) ? start_column_sums(c, a, s) : OF_TYPE(c->type, launch_kernel)(a, op->code, s);
}

GT_CU_FAMILY(tokens, start_call, scratch_bytes, refuse_call, "tokens", NULL, NULL, NULL, upload_sinusoids)
