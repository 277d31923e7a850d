/* Scaled dot-product attention of several heads, and its gradient, with tiles of keys or queries in shared memory and a running maximum and
 * sum, so that no matrix of scores is stored (see kernels/cpu/attention.c for the sources). A team of LANES threads owns one query, or one
 * key in the gradient of keys and values, with every LANES-th feature in each thread, and reads the tile's rows in order: results depend on
 * the shape only. Arithmetic is f32. */
#include "cuda/device.cuh"

#define ROWS 64 /* queries, or keys, of a block */
#define LANES 4
#define TILE 16 /* rows of a tile in shared memory */

struct attention_args {
	const void *qkv, *dy, *y;
	const int32_t *lengths;
	float *lse, *delta; /* [samples, heads, tokens]; delta: workspace, the sum of dy * y */
	void *out;          /* y, or the gradient of qkv */
	int64_t samples, tokens, heads, blocks; /* blocks: of ROWS tokens in a sequence */
	int d;              /* features of a head */
	float scale;
	bool causal;
};

/* ---- kernels --------------------------------------------------------------------------------------------------------------------- */
/* Where a team works: head h of a sample, and the token, which may be behind the last one. */
struct spot {
	int64_t sample, h, row, first, length; /* first: token of the block's first team */
	int lane;                              /* of the thread in its team: it has the features lane, lane + LANES, ... */
};

__device__ static inline spot spot_of(const attention_args &a)
{
	spot p;
	int64_t u = blockIdx.x / a.blocks;
	p.first = blockIdx.x % a.blocks * ROWS;
	p.row = p.first + threadIdx.x / LANES;
	p.lane = (int)threadIdx.x % LANES;
	p.sample = u / a.heads;
	p.h = u % a.heads;
	int64_t n = a.lengths ? a.lengths[p.sample] : a.tokens;
	p.length = n < 0 ? 0 : n > a.tokens ? a.tokens : n;
	return p;
}

/* Offset of the features of a token in qkv; part 0 is the query, 1 the key, 2 the value. */
__device__ static inline int64_t at(const attention_args &a, const spot &p, int64_t token, int part)
{
	return (((p.sample * a.tokens + token) * 3 + part) * a.heads + p.h) * a.d;
}

__device__ static inline int64_t at_y(const attention_args &a, const spot &p, int64_t token)
{
	return ((p.sample * a.tokens + token) * a.heads + p.h) * a.d;
}

/* Copies `n` rows of features into a tile, D wide and padded with zeros; `step` elements lie between two rows. */
template <class S, int D> __device__ static inline void fill(float (*tile)[D], const S *from, int64_t step, int n, int d)
{
	for (int i = (int)threadIdx.x; i < TILE * D; i += ROWS * LANES) {
		int r = i / D, c = i % D;
		tile[r][c] = r < n && c < d ? to_float(from[r * step + c]) : 0;
	}
}

/* Returns the dot product of a team's vector and a row of a tile. All threads of a warp must call it. */
template <int D> __device__ static inline float dot(const float *a, const float *row, int lane)
{
	float s = 0;
#pragma unroll
	for (int c = 0; c < D / LANES; c++)
		s += a[c] * row[c * LANES + lane];
	s += __shfl_xor_sync(0xffffffffu, s, 1);
	return s + __shfl_xor_sync(0xffffffffu, s, 2);
}

/* Loads a team's vector, times `factor`; zeros if `has` is false, and behind feature d. */
template <class S, int D> __device__ static inline void fetch(float *v, const S *from, bool has, int d, int lane, float factor)
{
#pragma unroll
	for (int c = 0; c < D / LANES; c++)
		v[c] = has && c * LANES + lane < d ? to_float(from[c * LANES + lane]) * factor : 0;
}

template <class S, int D> __device__ static inline void put_row(S *to, const float *v, int d, int lane, float factor)
{
#pragma unroll
	for (int c = 0; c < D / LANES; c++)
		if (c * LANES + lane < d)
			to[c * LANES + lane] = from_float<S>(v[c] * factor);
}

template <int N> __device__ static inline void add_row(float *v, float factor, const float *row, int lane)
{
#pragma unroll
	for (int c = 0; c < N; c++)
		v[c] += factor * row[c * LANES + lane];
}

template <class S, int D> __global__ void __launch_bounds__(ROWS *LANES) forward(const attention_args a)
{
	after_previous();
	__shared__ float key[TILE][D], value[TILE][D];
	const spot p = spot_of(a);
	const S *qkv = (const S *)a.qkv;
	int64_t step = 3 * a.heads * a.d, end = p.length;
	float q[D / LANES], acc[D / LANES] = {}, top = -INFINITY, sum = 0;
	bool in = p.row < a.tokens;
	fetch<S, D>(q, qkv + (in ? at(a, p, p.row, 0) : 0), in, a.d, p.lane, a.scale);
	if (a.causal && p.first + ROWS < end)
		end = p.first + ROWS;
	for (int64_t j0 = 0; j0 < end; j0 += TILE) {
		int n = (int)(end - j0 < TILE ? end - j0 : TILE);
		__syncthreads();
		fill<S, D>(key, qkv + at(a, p, j0, 1), step, n, a.d);
		fill<S, D>(value, qkv + at(a, p, j0, 2), step, n, a.d);
		__syncthreads();
		for (int j = 0; j < n; j++) {
			float s = dot<D>(q, key[j], p.lane);
			if (a.causal && j0 + j > p.row)
				continue;
			if (s > top) {
				float keep = gt_exp_f32(top - s);
				top = s;
				sum *= keep;
#pragma unroll
				for (int c = 0; c < D / LANES; c++)
					acc[c] *= keep;
			}
			float e = gt_exp_f32(s - top);
			sum += e;
			add_row<D / LANES>(acc, e, value[j], p.lane);
		}
	}
	if (!in)
		return;
	/* a sample of length 0 attends to nothing: y = 0 */
	put_row<S, D>((S *)a.out + at_y(a, p, p.row), acc, a.d, p.lane, sum > 0 ? 1.0f / sum : 0);
	if (p.lane == 0)
		a.lse[(p.sample * a.heads + p.h) * a.tokens + p.row] = sum > 0 ? top + gt_log_f32(sum) : INFINITY;
}

/* dq, and delta for the gradient of keys and values. */
template <class S, int D> __global__ void __launch_bounds__(ROWS *LANES) backward_q(const attention_args a)
{
	after_previous();
	__shared__ float key[TILE][D], value[TILE][D];
	const spot p = spot_of(a);
	const S *qkv = (const S *)a.qkv;
	int64_t step = 3 * a.heads * a.d, end = p.length, row = (p.sample * a.heads + p.h) * a.tokens + p.row;
	float q[D / LANES], dy[D / LANES], dq[D / LANES] = {}, delta = 0;
	bool in = p.row < a.tokens;
	float lse = in ? a.lse[row] : 0;
	int64_t here = in ? at_y(a, p, p.row) : 0;
	fetch<S, D>(q, (const S *)a.y + here, in, a.d, p.lane, 1);
	fetch<S, D>(dy, (const S *)a.dy + here, in, a.d, p.lane, 1);
#pragma unroll
	for (int c = 0; c < D / LANES; c++)
		delta += dy[c] * q[c];
	delta += __shfl_xor_sync(0xffffffffu, delta, 1);
	delta += __shfl_xor_sync(0xffffffffu, delta, 2);
	fetch<S, D>(q, qkv + (in ? at(a, p, p.row, 0) : 0), in, a.d, p.lane, a.scale);
	if (a.causal && p.first + ROWS < end)
		end = p.first + ROWS;
	for (int64_t j0 = 0; j0 < end; j0 += TILE) {
		int n = (int)(end - j0 < TILE ? end - j0 : TILE);
		__syncthreads();
		fill<S, D>(key, qkv + at(a, p, j0, 1), step, n, a.d);
		fill<S, D>(value, qkv + at(a, p, j0, 2), step, n, a.d);
		__syncthreads();
		for (int j = 0; j < n; j++) {
			float s = dot<D>(q, key[j], p.lane), g = dot<D>(dy, value[j], p.lane);
			if (!a.causal || j0 + j <= p.row)
				add_row<D / LANES>(dq, gt_exp_f32(s - lse) * (g - delta), key[j], p.lane);
		}
	}
	if (!in)
		return;
	put_row<S, D>((S *)a.out + at(a, p, p.row, 0), dq, a.d, p.lane, a.scale);
	if (p.lane == 0)
		a.delta[row] = delta;
}

/* dk and dv: a team owns a key, and the tiles are those of queries and of dy. */
template <class S, int D> __global__ void __launch_bounds__(ROWS *LANES) backward_kv(const attention_args a)
{
	after_previous();
	__shared__ float query[TILE][D], grad[TILE][D];
	const spot p = spot_of(a);
	const S *qkv = (const S *)a.qkv;
	int64_t step = 3 * a.heads * a.d, rows = (p.sample * a.heads + p.h) * a.tokens;
	float key[D / LANES], value[D / LANES], dk[D / LANES] = {}, dv[D / LANES] = {};
	bool in = p.row < a.tokens, sees = p.row < p.length;
	fetch<S, D>(key, qkv + (sees ? at(a, p, p.row, 1) : 0), sees, a.d, p.lane, a.scale);
	fetch<S, D>(value, qkv + (sees ? at(a, p, p.row, 2) : 0), sees, a.d, p.lane, 1);
	for (int64_t i0 = a.causal ? p.first / TILE * TILE : 0; p.first < p.length && i0 < a.tokens; i0 += TILE) {
		int n = (int)(a.tokens - i0 < TILE ? a.tokens - i0 : TILE);
		__syncthreads();
		fill<S, D>(query, qkv + at(a, p, i0, 0), step, n, a.d);
		fill<S, D>(grad, (const S *)a.dy + at_y(a, p, i0), a.heads * a.d, n, a.d);
		__syncthreads();
		for (int i = 0; i < n; i++) {
			float s = dot<D>(key, query[i], p.lane), g = dot<D>(value, grad[i], p.lane);
			if (!sees || (a.causal && i0 + i < p.row))
				continue;
			float e = gt_exp_f32(s - a.lse[rows + i0 + i]);
			add_row<D / LANES>(dv, e, grad[i], p.lane);
			add_row<D / LANES>(dk, e * (g - a.delta[rows + i0 + i]), query[i], p.lane);
		}
	}
	if (!in)
		return;
	put_row<S, D>((S *)a.out + at(a, p, p.row, 1), dk, a.d, p.lane, a.scale);
	put_row<S, D>((S *)a.out + at(a, p, p.row, 2), dv, a.d, p.lane, 1);
}

/* ---- launchers ------------------------------------------------------------------------------------------------------------------- */
static const struct gt_tdesc *y_of(const struct gt_opcall *op)
{
	return op->code == GT_OP_ATTENTION_DX ? op->in[0] : op->out[0];
}

static const char *refuse(const struct gt_opcall *op)
{
	const struct gt_tdesc *y = y_of(op), *qkv = op->in[op->code == GT_OP_ATTENTION_DX];
	if (qkv->dim[2] != 3 * y->dim[2])
		return "expected queries, keys and values of as many features as y";
	return op->code == GT_OP_ATTENTION && !(op->nout > 1 && op->out[1]) ? "expected the output lse" : NULL;
}

static size_t scratch(const struct gt_opcall *op)
{
	const struct gt_attr_attention *at = (const struct gt_attr_attention *)op->attr;
	const struct gt_tdesc *y = y_of(op);
	return op->code == GT_OP_ATTENTION_DX ? (size_t)(y->dim[0] * at->heads * y->dim[1]) * sizeof(float) : 0;
}

template <class S, int D> static cudaError_t run(const attention_args &a, bool back, cudaStream_t s)
{
	dim3 grid((unsigned)(a.samples * a.heads * a.blocks)), block(ROWS * LANES);
	if (!back)
		return launch(forward<S, D>, grid, block, s, a);
	cudaError_t e = launch(backward_q<S, D>, grid, block, s, a);
	return e == cudaSuccess ? launch(backward_kv<S, D>, grid, block, s, a) : e;
}

template <class S> static cudaError_t run_of_size(const attention_args &a, bool back, cudaStream_t s)
{
	return a.d <= 32 ? run<S, 32>(a, back, s) : a.d <= 64 ? run<S, 64>(a, back, s) : run<S, 128>(a, back, s);
}

static cudaError_t start(const struct gt_cu_call *c, cudaStream_t s)
{
	const struct gt_opcall *op = c->op;
	const struct gt_attr_attention *at = (const struct gt_attr_attention *)op->attr;
	const struct gt_tdesc *y = y_of(op);
	bool back = op->code == GT_OP_ATTENTION_DX;
	attention_args a = {};
	a.samples = y->dim[0], a.tokens = y->dim[1], a.heads = at->heads;
	a.blocks = ceil_div(a.tokens, ROWS);
	a.d = (int)(y->dim[2] / at->heads);
	a.scale = (float)(1.0 / sqrt((double)a.d));
	a.causal = at->causal;
	a.qkv = gt_cu_in(c, back);
	a.lengths = (const int32_t *)gt_cu_in(c, back ? 3 : 1);
	a.out = gt_cu_out(c, 0);
	a.lse = (float *)(back ? gt_cu_in(c, 4) : gt_cu_out(c, 1));
	if (back)
		a.dy = gt_cu_in(c, 0), a.y = gt_cu_in(c, 2), a.delta = (float *)c->scratch;
	if (!grid_fits(a.samples * a.heads * a.blocks))
		return cudaErrorInvalidValue;
	return OF_TYPE(c->type, run_of_size)(a, back, s);
}

GT_CU_FAMILY(attention, start, scratch, refuse, "tiles")
