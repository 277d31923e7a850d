/* lstm.steps, gru.steps and their gradients. A block takes a few samples through all steps, so that no block waits for another. At each
 * step a thread computes one unit of all of these samples: its products with the hidden states, which the block keeps in memory, and its
 * cell. The forward pass reads a transposed copy of the weights, in which the weights of neighbouring units are adjacent; the gradient
 * reads the weights themselves, in which they are adjacent. */
#include "cuda/device.cuh"

#define BLOCK 128
#define ROWS 4 /* samples of a block */

struct rnn_args {
	const void *x, *w, *y0, *dy; /* w: transposed in the forward pass; y0: y, which the gradient reads */
	const float *b;
	const int32_t *lengths;
	void *y, *dx, *before, *dh;
	float *gates, *cells, *state; /* state: workspace of each block */
	int64_t n, t, h;
	bool reverse;
};

/* ---- kernels --------------------------------------------------------------------------------------------------------------------- */
__device__ static inline int64_t length_of(const rnn_args &a, int64_t sample)
{
	int64_t l = sample >= a.n ? 0 : a.lengths ? a.lengths[sample] : a.t;
	return l < 0 ? 0 : l > a.t ? a.t : l;
}

/* Returns the token of step s of a sample that has `length` tokens, among the tokens of all samples. */
__device__ static inline int64_t token_at(const rnn_args &a, int64_t sample, int64_t length, int64_t s)
{
	return sample * a.t + (a.reverse ? length - 1 - s : s);
}

/* Sets the tokens after the ends of a block's samples to 0: rows of `width` elements. */
template <class S> __device__ static void clear_padding(const rnn_args &a, S *to, int64_t first, int64_t width)
{
	for (int r = 0; to && r < ROWS && first + r < a.n; r++)
		for (int64_t i = length_of(a, first + r) * width + threadIdx.x; i < a.t * width; i += BLOCK)
			to[(first + r) * a.t * width + i] = from_float<S>(0);
}

/* Computes unit u of one sample. sum: its products with the hidden state, x: with the input; GATES of each. */
template <class S, int GATES>
__device__ static inline float compute_cell(const rnn_args &a, int64_t at, int64_t u, float *sum, const S *x, float *c, float before)
{
	float h;
	for (int g = 0; g < GATES; g++)
		sum[g] = sum[g] + (a.b ? a.b[g * a.h + u] : 0);
	if (GATES == 4) {
		for (int g = 0; g < GATES; g++)
			sum[g] = to_float(x[g]) + sum[g];
		h = gt_lstm_cell_f32(&sum[0], &sum[1], &sum[2], &sum[GATES - 1], c);
	} else {
		*c = sum[2];
		for (int g = 0; g < 2; g++)
			sum[g] = to_float(x[g]) + sum[g];
		sum[2] = to_float(x[2]);
		h = gt_gru_cell_f32(&sum[0], &sum[1], &sum[2], *c, before);
	}
	S stored = from_float<S>(h);
	((S *)a.y)[at * a.h + u] = stored;
	if (a.gates) {
		for (int g = 0; g < GATES; g++)
			a.gates[(at * GATES + g) * a.h + u] = sum[g];
		a.cells[at * a.h + u] = *c;
	}
	return to_float(stored);
}

/* State of a block: two hidden states and a cell state of each sample. */
template <class S, int GATES> __global__ void __launch_bounds__(BLOCK, 4) rnn_steps(const rnn_args a)
{
	after_previous();
	int64_t first = (int64_t)blockIdx.x * ROWS, h = a.h, longest = 0, length[ROWS];
	float *now = a.state + (int64_t)blockIdx.x * ROWS * 3 * h, *next = now + ROWS * h, *c = next + ROWS * h;
	for (int r = 0; r < ROWS; r++) {
		length[r] = length_of(a, first + r);
		longest = length[r] > longest ? length[r] : longest;
	}
	clear_padding(a, (S *)a.y, first, h);
	if (a.gates) {
		clear_padding(a, a.gates, first, GATES * h);
		clear_padding(a, a.cells, first, h);
	}
	for (int64_t i = threadIdx.x; i < ROWS * h; i += BLOCK)
		now[i] = c[i] = 0;
	__syncthreads();
	for (int64_t s = 0; s < longest; s++) {
		for (int64_t u = threadIdx.x; u < h; u += BLOCK) {
			float sum[ROWS][GATES] = {};
			const S *w = (const S *)a.w + u;
			S x[ROWS][GATES]; /* loaded early: they arrive from global memory while the products are computed */
#pragma unroll
			for (int r = 0; r < ROWS; r++)
				if (s < length[r])
#pragma unroll
					for (int g = 0; g < GATES; g++)
						x[r][g] = ((const S *)a.x)[(token_at(a, first + r, length[r], s) * GATES + g) * h + u];
#pragma unroll 4
			for (int64_t k = 0; k < h; k++)
#pragma unroll
				for (int g = 0; g < GATES; g++) {
					float v = to_float(w[(k * GATES + g) * h]);
#pragma unroll
					for (int r = 0; r < ROWS; r++)
						sum[r][g] = gt_fma_f32(now[r * h + k], v, sum[r][g]);
				}
#pragma unroll
			for (int r = 0; r < ROWS; r++)
				if (s < length[r])
					next[r * h + u] =
					    compute_cell<S, GATES>(a, token_at(a, first + r, length[r], s), u, sum[r], x[r], &c[r * h + u], now[r * h + u]);
		}
		__syncthreads();
		float *swap = now;
		now = next;
		next = swap;
	}
}

/* The values of the forward pass that the gradient of a cell reads. */
template <class S, int GATES> struct saved {
	float gate[GATES], c, c_before; /* the cell states after and before the step */
	S dy, before;                   /* before: the hidden state before the step */
	__device__ void fetch(const rnn_args &a, int64_t at, int64_t prev, int64_t u)
	{
#pragma unroll
		for (int g = 0; g < GATES; g++)
			gate[g] = a.gates[(at * GATES + g) * a.h + u];
		c = a.cells[at * a.h + u];
		c_before = prev < 0 ? 0 : a.cells[prev * a.h + u];
		dy = ((const S *)a.dy)[at * a.h + u];
		before = prev < 0 ? from_float<S>(0) : ((const S *)a.y0)[prev * a.h + u];
	}
};

/* Computes the gradient of unit u of one sample's cell. d receives the gradients of the sums that are products with the hidden state. */
template <class S, int GATES>
__device__ static inline void compute_cell_gradient(const rnn_args &a, const saved<S, GATES> &q, int64_t at, int64_t u, float dh, float *dc,
                                                    float *d)
{
	int64_t h = a.h;
	float v[GATES], before = to_float(q.before);
	S *dx = (S *)a.dx + at * GATES * h + u, *out = (S *)a.dh;
	dh += to_float(q.dy);
	for (int g = 0; g < GATES; g++)
		v[g] = q.gate[g];
	if (GATES == 4)
		gt_lstm_cell_dx_f32(&v[0], &v[1], &v[2], &v[GATES - 1], q.c, q.c_before, dh, dc);
	float dm = GATES == 4 ? v[2] : gt_gru_cell_dx_f32(&v[0], &v[1], &v[2], q.c, before, dh, dc);
	for (int g = 0; g < GATES; g++) {
		float sum = g == 2 ? dm : v[g];
		d[g * h + u] = sum;
		dx[g * h] = from_float<S>(v[g]);
		if (out)
			out[(at * GATES + g) * h + u] = from_float<S>(sum);
	}
	if (a.before)
		((S *)a.before)[at * h + u] = from_float<S>(before);
}

/* State of a block: the gradients of the hidden and the cell state and of the sums, of each sample. dc of a GRU is the direct part of the
 * gradient of the hidden state. */
template <class S, int GATES> __global__ void __launch_bounds__(BLOCK, 2) rnn_steps_dx(const rnn_args a)
{
	after_previous();
	int64_t first = (int64_t)blockIdx.x * ROWS, h = a.h, longest = 0, length[ROWS];
	float *dh = a.state + (int64_t)blockIdx.x * ROWS * (2 + GATES) * h, *dc = dh + ROWS * h, *d = dc + ROWS * h;
	for (int r = 0; r < ROWS; r++) {
		length[r] = length_of(a, first + r);
		longest = length[r] > longest ? length[r] : longest;
	}
	clear_padding(a, (S *)a.dx, first, GATES * h);
	clear_padding(a, (S *)a.dh, first, GATES * h);
	clear_padding(a, (S *)a.before, first, h);
	for (int64_t i = threadIdx.x; i < ROWS * (2 + GATES) * h; i += BLOCK)
		dh[i] = 0;
	__syncthreads();
	for (int64_t s = longest - 1; s >= 0; s--) {
		for (int64_t u = threadIdx.x; u < h; u += BLOCK) {
			saved<S, GATES> q[ROWS]; /* load all samples before any store; otherwise loads wait for the stores of the previous cell */
#pragma unroll
			for (int r = 0; r < ROWS; r++)
				if (s < length[r])
					q[r].fetch(a, token_at(a, first + r, length[r], s), s ? token_at(a, first + r, length[r], s - 1) : -1, u);
#pragma unroll
			for (int r = 0; r < ROWS; r++)
				if (s < length[r])
					compute_cell_gradient<S, GATES>(a, q[r], token_at(a, first + r, length[r], s), u, dh[r * h + u], &dc[r * h + u],
					                                d + r * GATES * h);
		}
		__syncthreads();
		for (int64_t u = threadIdx.x; u < h; u += BLOCK) {
			float sum[ROWS] = {};
			for (int64_t k = 0; k < GATES * h; k++) {
				float v = to_float(((const S *)a.w)[k * h + u]);
#pragma unroll
				for (int r = 0; r < ROWS; r++)
					sum[r] = gt_fma_f32(d[r * GATES * h + k], v, sum[r]);
			}
			for (int r = 0; r < ROWS; r++)
				dh[r * h + u] = sum[r] + (GATES == 3 ? dc[r * h + u] : 0);
		}
		__syncthreads();
	}
}

/* ---- launchers ------------------------------------------------------------------------------------------------------------------- */
typedef void rnn_fn(const rnn_args);

static bool is_back(const struct gt_opcall *op)
{
	return op->code == GT_OP_LSTM_STEPS_DX || op->code == GT_OP_GRU_STEPS_DX;
}

template <class S> static rnn_fn *find_kernel(const struct gt_opcall *op)
{
	bool lstm = op->code == GT_OP_LSTM_STEPS || op->code == GT_OP_LSTM_STEPS_DX;
	if (is_back(op))
		return lstm ? rnn_steps_dx<S, 4> : rnn_steps_dx<S, 3>;
	return lstm ? rnn_steps<S, 4> : rnn_steps<S, 3>;
}

/* Bytes of the transposed weights, which come before the states. */
static size_t transposed_bytes(const struct gt_opcall *op)
{
	return is_back(op) ? 0 : (gt_tdesc_bytes(gt_opcall_operand(op, "w")) + 255) / 256 * 256;
}

static size_t scratch_bytes(const struct gt_opcall *op)
{
	const struct gt_tdesc *w = gt_opcall_operand(op, "w");
	int64_t states = is_back(op) ? 2 + w->dim[0] / w->dim[1] : 3;
	return transposed_bytes(op) + (size_t)(ceil_div(gt_opcall_input(op)->dim[0], ROWS) * ROWS * states * w->dim[1]) * sizeof(float);
}

static const char *refuse_call(const struct gt_opcall *op)
{
	struct gt_tdesc *w = gt_opcall_operand(op, "w");
	bool lstm = op->code == GT_OP_LSTM_STEPS || op->code == GT_OP_LSTM_STEPS_DX;
	if (w->any)
		*w = gt_tdesc_make(w->dtype, w->rank, w->dim, false);
	if (!gt_tdesc_plain(w))
		return "weights must have the plain layout";
	return w->dim[0] == w->dim[1] * (lstm ? 4 : 3) ? NULL : "the weights must have rows for all gates";
}

static cudaError_t start_call(const struct gt_cu_call *c, cudaStream_t s)
{
	static const struct gt_operand_slot slots[] = {GT_SLOTS(rnn_args, x, lengths, w, b, y, gates, cells, dy, dx, before, dh)};
	const struct gt_opcall *op = c->op;
	const struct gt_tdesc *w = gt_opcall_operand(op, "w"), *x = gt_opcall_input(op);
	rnn_args a = {};
	GT_CU_BIND(c, slots, &a);
	a.n = x->dim[0], a.t = x->dim[1], a.h = w->dim[1];
	a.reverse = ((const struct gt_attr_rnn *)op->attr)->reverse;
	a.state = (float *)((char *)c->scratch + transposed_bytes(op));
	if (is_back(op)) {
		a.y0 = a.y, a.y = NULL;
	} else {
		cudaError_t e = gt_cu_transpose_start(gt_dtype_size(w->dtype), a.w, c->scratch, 1, w->dim[0], w->dim[1], s);
		if (e != cudaSuccess)
			return e;
		a.w = c->scratch;
	}
	int64_t blocks = ceil_div(a.n, ROWS);
	rnn_fn *fn = OF_TYPE(c->type, find_kernel)(op);
	if (!grid_fits(blocks))
		return cudaErrorInvalidValue;
	return launch(fn, dim3((unsigned)blocks), dim3(BLOCK), s, a);
}

GT_CU_FAMILY(rnn, start_call, scratch_bytes, refuse_call, "rows")
