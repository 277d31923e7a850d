/* lstm.steps, gru.steps and their gradients. A block takes a few samples through all steps, so that no block waits for another. At each
 * step a thread multiplies a part of the hidden states of all of these samples by the weights of one unit; then the parts are added, and a
 * thread computes the cells of some of the samples. The forward pass reads a transposed copy of the weights, in which the weights of
 * neighbouring units are adjacent; the gradient reads the weights themselves, in which they are adjacent. The order of a sum depends on the
 * number of units only. */
#include "cuda/columns.cuh"

#define BLOCK 512
#define UNITS 512 /* maximum number of units for which the hidden states are in shared memory */
#define MOST_ROWS 4 /* maximum number of samples of a block */
#define FEW_WEIGHTS (128 << 10) /* bytes of weights that stay in the L1 cache of a multiprocessor */

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

/* Fills the tokens after the end of each sample of a block with 0. `to` has `width` elements for each token. */
template <class S, int ROWS> __device__ static void clear_padding(const rnn_args &a, S *to, int64_t first, int64_t width)
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

/* A block divides its threads into units and, if there are fewer units than threads, into parts of the sums over k. */
struct division {
	int unit, units_log; /* this thread's unit among 1 << units_log units */
	int part, parts;     /* this thread's part; number of parts, a power of two */
	__device__ division(int64_t h)
	{
		for (units_log = 5; 1 << units_log < BLOCK && 1 << units_log < h;)
			units_log++;
		parts = BLOCK >> units_log;
		unit = (int)threadIdx.x & ((1 << units_log) - 1);
		part = (int)threadIdx.x >> units_log;
	}
	/* Returns the first k of part p of n; a multiple of 4, or n. */
	__device__ int begin(int n, int p) const
	{
		int at = (n + parts * 4 - 1) / (parts * 4) * 4 * p;
		return at < n ? at : n;
	}
	/* Returns whether this thread computes the cells of sample r of the block. */
	__device__ bool owns(int r) const
	{
		return (r & (parts - 1)) == part;
	}
};

/* Returns n rounded up to whole vectors of 4. */
__host__ __device__ static inline int64_t round_up(int64_t n)
{
	return (n + 3) / 4 * 4;
}

/* Adds the products of `rows` weights from w on, which are h elements apart, with the values of K neighbouring k in q. */
template <class S, int GATES, int ROWS, int K>
__device__ static inline void add_products(float (&sum)[ROWS][GATES], const S *w, int64_t h, const float *q, int64_t row)
{
	float v[K][GATES];
#pragma unroll
	for (int i = 0; i < K; i++)
#pragma unroll
		for (int g = 0; g < GATES; g++)
			v[i][g] = to_float(w[(i * GATES + g) * h]);
#pragma unroll
	for (int r = 0; r < ROWS; r++) {
		float x[K];
		get_f32<K>(x, q + r * row);
#pragma unroll
		for (int i = 0; i < K; i++)
#pragma unroll
			for (int g = 0; g < GATES; g++)
				sum[r][g] = gt_fma_f32(x[i], v[i][g], sum[r][g]);
	}
}

/* Adds the sums of all parts of a unit, in order, for the samples that this thread owns. All threads of the block must call it. */
template <int GATES, int ROWS> __device__ static inline void add_parts(float (&sum)[ROWS][GATES], const division &d)
{
	__shared__ float part[ROWS * GATES][BLOCK];
	if (d.parts == 1) {
		__syncthreads();
		return;
	}
#pragma unroll
	for (int i = 0; i < ROWS * GATES; i++)
		part[i][threadIdx.x] = sum[i / GATES][i % GATES];
	__syncthreads();
#pragma unroll
	for (int i = 0; i < ROWS * GATES; i++)
		if (d.owns(i / GATES)) {
			float all = part[i][d.unit];
			for (int p = 1; p < d.parts; p++)
				all += part[i][d.unit + (p << d.units_log)];
			sum[i / GATES][i % GATES] = all;
		}
}

/* Computes all steps of the samples of a block. A block's part of a.state holds the cell state of each sample and, if they are not in
 * shared memory, two hidden states. */
template <class S, int GATES, int ROWS> __global__ void __launch_bounds__(BLOCK, 1) rnn_steps(const rnn_args a)
{
	after_previous();
	__shared__ uint4 hidden[ROWS * UNITS / 4];
	int64_t first = (int64_t)blockIdx.x * ROWS, h = a.h, row = round_up(h), longest = 0, length[ROWS];
	const division d(h);
	float *c = a.state + (int64_t)blockIdx.x * ROWS * 3 * row, *now = h <= UNITS ? (float *)hidden : c + ROWS * row;
	float *next = h <= UNITS ? now : now + ROWS * row;
	for (int r = 0; r < ROWS; r++) {
		length[r] = length_of(a, first + r);
		longest = length[r] > longest ? length[r] : longest;
	}
	clear_padding<S, ROWS>(a, (S *)a.y, first, h);
	if (a.gates) {
		clear_padding<float, ROWS>(a, a.gates, first, GATES * h);
		clear_padding<float, ROWS>(a, a.cells, first, h);
	}
	for (int64_t i = threadIdx.x; i < ROWS * row; i += BLOCK)
		now[i] = c[i] = 0;
	__syncthreads();
	for (int64_t s = 0; s < longest; s++) {
		for (int64_t u = d.unit; u < h + d.unit; u += 1 << d.units_log) {
			float sum[ROWS][GATES] = {};
			S x[ROWS][GATES]; /* loaded before the products are computed, so that both overlap in time */
#pragma unroll
			for (int r = 0; r < ROWS; r++)
				if (u < h && d.owns(r) && s < length[r])
#pragma unroll
					for (int g = 0; g < GATES; g++)
						x[r][g] = ((const S *)a.x)[(token_at(a, first + r, length[r], s) * GATES + g) * h + u];
			int k = d.begin((int)h, d.part), end = u < h ? d.begin((int)h, d.part + 1) : 0;
			const S *w = (const S *)a.w + u;
			for (; k + 4 <= end; k += 4)
				add_products<S, GATES, ROWS, 4>(sum, w + k * GATES * h, h, now + k, row);
			for (; k < end; k++)
				add_products<S, GATES, ROWS, 1>(sum, w + k * GATES * h, h, now + k, row);
			add_parts(sum, d);
#pragma unroll
			for (int r = 0; r < ROWS; r++)
				if (u < h && d.owns(r) && s < length[r])
					next[r * row + u] =
					    compute_cell<S, GATES>(a, token_at(a, first + r, length[r], s), u, sum[r], x[r], &c[r * row + u], now[r * row + u]);
			__syncthreads();
		}
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

/* Computes the gradients of all steps of the samples of a block. A block's part of a.state holds, for each sample, the gradients of the
 * hidden and the cell state and, if they are not in shared memory, of the sums. dc of a GRU is the direct part of the gradient of the
 * hidden state. */
template <class S, int GATES, int ROWS> __global__ void __launch_bounds__(BLOCK, 1) rnn_steps_dx(const rnn_args a)
{
	after_previous();
	__shared__ uint4 sums[ROWS * GATES * UNITS / 4];
	int64_t first = (int64_t)blockIdx.x * ROWS, h = a.h, row = round_up(h), longest = 0, length[ROWS];
	const division d(h);
	float *dh = a.state + (int64_t)blockIdx.x * ROWS * (2 + GATES) * row, *dc = dh + ROWS * row;
	float *ds = h <= UNITS ? (float *)sums : dc + ROWS * row; /* GATES * row floats for each sample */
	for (int r = 0; r < ROWS; r++) {
		length[r] = length_of(a, first + r);
		longest = length[r] > longest ? length[r] : longest;
	}
	clear_padding<S, ROWS>(a, (S *)a.dx, first, GATES * h);
	clear_padding<S, ROWS>(a, (S *)a.dh, first, GATES * h);
	clear_padding<S, ROWS>(a, (S *)a.before, first, h);
	for (int64_t i = threadIdx.x; i < 2 * ROWS * row; i += BLOCK)
		dh[i] = 0;
	for (int64_t i = threadIdx.x; i < ROWS * GATES * row; i += BLOCK)
		ds[i] = 0;
	__syncthreads();
	for (int64_t s = longest - 1; s >= 0; s--) {
		for (int64_t u = d.unit; u < h; u += 1 << d.units_log) {
			saved<S, GATES> q[ROWS] = {}; /* load all samples before any store; otherwise loads wait for the stores of the previous cell */
#pragma unroll
			for (int r = 0; r < ROWS; r++)
				if (d.owns(r) && s < length[r])
					q[r].fetch(a, token_at(a, first + r, length[r], s), s ? token_at(a, first + r, length[r], s - 1) : -1, u);
#pragma unroll
			for (int r = 0; r < ROWS; r++)
				if (d.owns(r) && s < length[r])
					compute_cell_gradient<S, GATES>(a, q[r], token_at(a, first + r, length[r], s), u, dh[r * row + u], &dc[r * row + u],
					                                ds + r * GATES * row);
		}
		__syncthreads();
		for (int64_t u = d.unit; u < h + d.unit; u += 1 << d.units_log) {
			float sum[ROWS][1] = {};
			int k = d.begin((int)(GATES * h), d.part), end = u < h ? d.begin((int)(GATES * h), d.part + 1) : 0;
			const S *w = (const S *)a.w + u;
#pragma unroll 2
			for (; k + 4 <= end; k += 4)
				add_products<S, 1, ROWS, 4>(sum, w + k * h, h, ds + k, GATES * row);
			for (; k < end; k++)
				add_products<S, 1, ROWS, 1>(sum, w + k * h, h, ds + k, GATES * row);
			add_parts(sum, d);
#pragma unroll
			for (int r = 0; r < ROWS; r++)
				if (u < h && d.owns(r))
					dh[r * row + u] = sum[r][0] + (GATES == 3 ? dc[r * row + u] : 0);
			__syncthreads();
		}
	}
}

/* ---- launchers ------------------------------------------------------------------------------------------------------------------- */
typedef void rnn_fn(const rnn_args);

static bool is_back(const struct gt_opcall *op)
{
	return op->code == GT_OP_LSTM_STEPS_DX || op->code == GT_OP_GRU_STEPS_DX;
}

template <class S, int ROWS> static rnn_fn *find_kernel(const struct gt_opcall *op)
{
	bool lstm = op->code == GT_OP_LSTM_STEPS || op->code == GT_OP_LSTM_STEPS_DX;
	if (is_back(op))
		return lstm ? rnn_steps_dx<S, 4, ROWS> : rnn_steps_dx<S, 3, ROWS>;
	return lstm ? rnn_steps<S, 4, ROWS> : rnn_steps<S, 3, ROWS>;
}

/* Returns the number of samples of a block. More blocks than a large GPU has multiprocessors are not needed. If every block reads the
 * weights from the L2 cache at every step, about 48 blocks use the whole bandwidth of that cache. */
static int choose_rows(const struct gt_opcall *op)
{
	int64_t n = gt_opcall_input(op)->dim[0], most = gt_tdesc_bytes(gt_opcall_operand(op, "w")) <= FEW_WEIGHTS ? 132 : 48;
	return n <= most ? 1 : n <= 2 * most ? 2 : MOST_ROWS;
}

/* Returns the bytes of the transposed weights, which precede the states in the scratch memory. */
static size_t transposed_bytes(const struct gt_opcall *op)
{
	return is_back(op) ? 0 : (gt_tdesc_bytes(gt_opcall_operand(op, "w")) + 255) / 256 * 256;
}

static size_t scratch_bytes(const struct gt_opcall *op)
{
	const struct gt_tdesc *w = gt_opcall_operand(op, "w");
	int64_t states = is_back(op) ? 2 + w->dim[0] / w->dim[1] : 3, samples = ceil_div(gt_opcall_input(op)->dim[0], MOST_ROWS) * MOST_ROWS;
	return transposed_bytes(op) + (size_t)(samples * states * round_up(w->dim[1])) * sizeof(float);
}

static const char *refuse_call(const struct gt_opcall *op)
{
	struct gt_tdesc *w = gt_opcall_operand(op, "w");
	bool lstm = op->code == GT_OP_LSTM_STEPS || op->code == GT_OP_LSTM_STEPS_DX;
	if (w->any)
		*w = gt_tdesc_make(w->dtype, w->rank, w->dim, false);
	if (!gt_tdesc_plain(w))
		return "weights must have the plain layout";
	if (w->dim[1] > INT32_MAX / 16)
		return "there are too many units";
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
	int rows = choose_rows(op);
	int64_t blocks = ceil_div(a.n, rows);
	rnn_fn *fn = rows == 1 ? OF_TYPE(c->type, find_kernel, 1)(op)
	             : rows == 2 ? OF_TYPE(c->type, find_kernel, 2)(op) : OF_TYPE(c->type, find_kernel, MOST_ROWS)(op);
	if (!grid_fits(blocks))
		return cudaErrorInvalidValue;
	return launch(fn, dim3((unsigned)blocks), dim3(BLOCK), s, a);
}

GT_CU_FAMILY(rnn, start_call, scratch_bytes, refuse_call, "rows")
