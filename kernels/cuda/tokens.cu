/* Operations on sequences [N, T, C]: positional and pool_tokens, and their gradients. The order of a sum depends on the shape only. */
#include "cuda/device.cuh"

#define BLOCK 256
#define MAX_Y 65535
#define AHEAD 8 /* samples that a thread of positional reads before it stores one; the compiler cannot do this, because y may be x */

struct tokens_args {
	const void *x; /* x, or dy */
	const float *w;
	const int32_t *lengths;
	int32_t *idx;
	void *y;       /* y, dx or dw */
	int64_t samples, tokens, cols, rows; /* rows: of the table of positional.dw */
	int64_t period; /* positional: tokens, or 1 if all tokens have row 0 of the table */
	int mode;      /* enum gt_pool_tokens */
	bool add;
};

/* ---- kernels --------------------------------------------------------------------------------------------------------------------- */
__device__ static inline int64_t length_of(const tokens_args &a, int64_t sample)
{
	int64_t n = a.lengths ? a.lengths[sample] : a.tokens;
	return n < 0 ? 0 : n > a.tokens ? a.tokens : n;
}

/* Returns the token that GT_POOL_FIRST and GT_POOL_LAST read. */
__device__ static inline int64_t place_of(const tokens_args &a, int64_t sample)
{
	int64_t n = length_of(a, sample);
	return a.mode == GT_POOL_LAST && n ? n - 1 : 0;
}

/* A thread handles one feature of one position. The blocks of a column in y share the samples. */
template <class S> __global__ void __launch_bounds__(BLOCK) add_positions(const tokens_args a)
{
	after_previous();
	int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x, n = a.tokens * a.cols;
	if (i >= n)
		return;
	float w = a.w ? a.w[a.period > 1 ? i : i % a.cols] : (float)gt_sinusoid(i / a.cols, i % a.cols, a.cols);
	for (int64_t s = (int64_t)blockIdx.y * AHEAD; s < a.samples; s += (int64_t)gridDim.y * AHEAD) {
		S x[AHEAD];
#pragma unroll
		for (int k = 0; k < AHEAD; k++)
			if (s + k < a.samples)
				x[k] = ((const S *)a.x)[(s + k) * n + i];
#pragma unroll
		for (int k = 0; k < AHEAD; k++)
			if (s + k < a.samples)
				((S *)a.y)[(s + k) * n + i] = from_float<S>(to_float(x[k]) + w);
	}
}

template <class S> __global__ void __launch_bounds__(BLOCK) positional_dw(const tokens_args a)
{
	after_previous();
	int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x, n = a.period * a.cols, all = a.samples * a.tokens * a.cols;
	double sum = 0;
	if (i >= a.rows * a.cols)
		return;
	for (int64_t at = i; i < n && at < all; at += n)
		sum += (double)to_float(((const S *)a.x)[at]);
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
		if (a.w) /* not for sinusoids: computing a sinusoid costs more than the samples that use it */
			grid.y = (unsigned)(a.samples < AHEAD ? 1 : a.samples / AHEAD < MAX_Y ? a.samples / AHEAD : MAX_Y);
		return launch(add_positions<S>, grid, block, s, a);
	case GT_OP_POSITIONAL_DW:
		return launch(positional_dw<S>, grid, block, s, a);
	case GT_OP_POOL_TOKENS:
		return launch(pool_features<S>, grid, block, s, a);
	}
	return launch(pool_dx<S>, grid, block, s, a);
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
	a.period = !pools && ((const struct gt_attr_positional *)op->attr)->kind == GT_POSITIONAL_SAME ? 1 : a.tokens;
	a.mode = pools ? ((const struct gt_attr_pool_tokens *)op->attr)->mode : 0;
	return OF_TYPE(c->type, launch_kernel)(a, op->code, s);
}

GT_CU_FAMILY(tokens, start_call, NULL, refuse_call, "tokens")
