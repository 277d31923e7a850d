/* Scaled dot-product attention of several heads, and its gradient, with tiles of keys or queries in shared memory and a running maximum and
 * sum, so that no matrix of scores is stored (see kernels/cpu/attention.c for the sources). A team of threads owns one query (in the
 * gradient of keys and values, one key) and reads the tile's rows in order, so results depend on the shape only. Arithmetic is f32.
 *
 * All teams of a warp read the same row of the tile at the same time, four features at once. So a thread with many features of its query
 * computes many products for each read, and a team of one thread needs no shuffle for a score. Registers are the limit: attention_forward()
 * keeps 2 vectors of a query, backward_q() 3, and backward_kv() 4 of a key. A group of rows is scored before its first row is added,
 * because a score waits for products and the exponential function; the gradient keeps the values that it has read of these rows. */
#include "cuda/device.cuh"

#define BLOCK 128

struct attention_args {
	const void *qkv, *dy, *y;
	const int32_t *lengths;
	float *lse, *delta; /* [samples, heads, tokens]; delta: workspace, the sum of dy * y */
	void *out;          /* y, or the gradient of qkv */
	int64_t samples, tokens, heads, blocks; /* blocks: number of blocks that share a sequence */
	int d;              /* features of a head */
	float scale;
	bool causal;
};

/* ---- kernels --------------------------------------------------------------------------------------------------------------------- */
/* The division of a kernel, and its tiles, for heads of at most D features; a thread has WIDTH features. */
template <int D, int WIDTH, int GROUP> struct division {
	static constexpr int wide = D, width = WIDTH, group = GROUP; /* group: rows that are scored at once */
	static constexpr int lanes = D / WIDTH, rows = BLOCK / lanes; /* lanes: threads of a team; rows: queries, or keys, of a block */
	static constexpr int tile = D <= 64 ? 32 : 16;                /* rows of a tile */
	alignas(16) float v[2][tile][D];
};
template <int D> using ahead = division<D, (D < 32 ? D : 32), 4>; /* of attention_forward() */
template <int D> using back = division<D, 16, 2>;                 /* of the gradient */

/* The work of a team: head h of a sample, and a token, which may be past the last token. */
struct spot {
	int64_t sample, h, row, first, length; /* first: token of the block's first team */
	int lane;                              /* index in the team; the thread has every lanes-th group of four features, from `lane` on */
};

template <class T> __device__ static inline spot spot_of(const attention_args &a)
{
	spot p;
	int64_t u = blockIdx.x / a.blocks;
	p.first = blockIdx.x % a.blocks * T::rows;
	p.row = p.first + threadIdx.x / T::lanes;
	p.lane = (int)threadIdx.x % T::lanes;
	p.sample = u / a.heads;
	p.h = u % a.heads;
	int64_t n = a.lengths ? a.lengths[p.sample] : a.tokens;
	p.length = n < 0 ? 0 : n > a.tokens ? a.tokens : n;
	return p;
}

/* Returns the offset of the features of a token in qkv; part 0 is the query, 1 the key, 2 the value. */
__device__ static inline int64_t qkv_offset(const attention_args &a, const spot &p, int64_t token, int part)
{
	return (((p.sample * a.tokens + token) * 3 + part) * a.heads + p.h) * a.d;
}

__device__ static inline int64_t y_offset(const attention_args &a, const spot &p, int64_t token)
{
	return ((p.sample * a.tokens + token) * a.heads + p.h) * a.d;
}

/* Copies `n` rows of features into a tile and pads the larger tile with zeros. `step` is the distance between two rows, in elements. */
template <class S, class T> __device__ static inline void fill_tile(float (*tile)[T::wide], const S *from, int64_t step, int n, int d)
{
	constexpr int AHEAD = 4; /* elements that a thread reads before it writes the first */
#pragma unroll 1
	for (int begin = (int)threadIdx.x; begin < T::tile * T::wide; begin += AHEAD * BLOCK) {
		float v[AHEAD];
#pragma unroll
		for (int k = 0; k < AHEAD; k++) {
			int i = begin + k * BLOCK, r = i / T::wide, c = i % T::wide;
			v[k] = r < n && c < d ? to_float(from[r * step + c]) : 0;
		}
#pragma unroll
		for (int k = 0; k < AHEAD; k++) {
			int i = begin + k * BLOCK;
			tile[i / T::wide][i % T::wide] = v[k];
		}
	}
}

/* Returns this thread's group i of four features in a row of a tile. */
template <class T> __device__ static inline float4 load_quad(const float *row, int i, int lane)
{
	return *(const float4 *)(row + (i * T::lanes + lane) * 4);
}

/* Computes the dot products of a team's vector and a group of rows of a tile. All threads of a warp must call it. */
template <class T> __device__ static inline void dot_rows(float (&s)[T::group], const float *v, const float (*rows)[T::wide], int lane)
{
#pragma unroll
	for (int g = 0; g < T::group; g++) {
		s[g] = 0;
#pragma unroll
		for (int i = 0; i < T::width / 4; i++) {
			const float4 q = load_quad<T>(rows[g], i, lane);
			s[g] = gt_fma_f32(v[4 * i], q.x, s[g]);
			s[g] = gt_fma_f32(v[4 * i + 1], q.y, s[g]);
			s[g] = gt_fma_f32(v[4 * i + 2], q.z, s[g]);
			s[g] = gt_fma_f32(v[4 * i + 3], q.w, s[g]);
		}
	}
#pragma unroll
	for (int h = 1; h < T::lanes; h *= 2)
#pragma unroll
		for (int g = 0; g < T::group; g++)
			s[g] += __shfl_xor_sync(0xffffffffu, s[g], h);
}

/* Adds factor * row to the team's vector v. */
template <class T> __device__ static inline void add_row(float *v, float factor, const float *row, int lane)
{
#pragma unroll
	for (int i = 0; i < T::width / 4; i++) {
		const float4 q = load_quad<T>(row, i, lane);
		v[4 * i] = gt_fma_f32(factor, q.x, v[4 * i]);
		v[4 * i + 1] = gt_fma_f32(factor, q.y, v[4 * i + 1]);
		v[4 * i + 2] = gt_fma_f32(factor, q.z, v[4 * i + 2]);
		v[4 * i + 3] = gt_fma_f32(factor, q.w, v[4 * i + 3]);
	}
}

/* Returns the index in the head of a thread's feature i. */
template <class T> __device__ static inline int feature_index(int i, int lane)
{
	return (i / 4 * T::lanes + lane) * 4 + i % 4;
}

/* Loads a team's vector, times `factor`; zeros if `has` is false, and from feature d on. */
template <class T, class S> __device__ static inline void load_features(float *v, const S *from, bool has, int d, int lane, float factor)
{
#pragma unroll
	for (int i = 0; i < T::width; i++)
		v[i] = has && feature_index<T>(i, lane) < d ? to_float(from[feature_index<T>(i, lane)]) * factor : 0;
}

template <class T, class S> __device__ static inline void put_row(S *to, const float *v, int d, int lane, float factor)
{
#pragma unroll
	for (int i = 0; i < T::width; i++)
		if (feature_index<T>(i, lane) < d)
			to[feature_index<T>(i, lane)] = from_float<S>(v[i] * factor);
}

/* Fills the tiles of keys and values from key j0 on, and returns the number of keys before `end`. */
template <class S, class T>
__device__ static inline int fill_keys(T &tiles, const attention_args &a, const spot &p, int64_t j0, int64_t end)
{
	int64_t step = 3 * a.heads * a.d;
	int n = (int)(end - j0 < T::tile ? end - j0 : T::tile);
	__syncthreads();
	fill_tile<S, T>(tiles.v[0], (const S *)a.qkv + qkv_offset(a, p, j0, 1), step, n, a.d);
	fill_tile<S, T>(tiles.v[1], (const S *)a.qkv + qkv_offset(a, p, j0, 2), step, n, a.d);
	__syncthreads();
	return n;
}

/* Returns 1 + the index of the last key to which any query of the block attends. */
template <class T> __device__ static inline int64_t end_of_keys(const attention_args &a, const spot &p)
{
	return a.causal && p.first + T::rows < p.length ? p.first + T::rows : p.length;
}

template <class S, class T> __global__ void __launch_bounds__(BLOCK, 4) attention_forward(const attention_args a)
{
	after_previous();
	__shared__ T tiles;
	const spot p = spot_of<T>(a);
	float q[T::width], acc[T::width] = {}, top = -INFINITY, sum = 0;
	bool in = p.row < a.tokens;
	load_features<T>(q, (const S *)a.qkv + (in ? qkv_offset(a, p, p.row, 0) : 0), in, a.d, p.lane, a.scale);
	for (int64_t j0 = 0, end = end_of_keys<T>(a, p); j0 < end; j0 += T::tile) {
		int n = fill_keys<S>(tiles, a, p, j0, end);
		int sees = a.causal && p.row - j0 < n ? (int)(p.row - j0) + 1 : n; /* number of keys that the query may attend to; <= 0: none */
#pragma unroll 1
		for (int j = 0; j < n; j += T::group) {
			float s[T::group], most = top;
			dot_rows<T>(s, q, tiles.v[0] + j, p.lane);
#pragma unroll
			for (int g = 0; g < T::group; g++)
				most = j + g < sees && s[g] > most ? s[g] : most;
			if (most > top) {
				float keep = gt_exp_f32(top - most);
				top = most;
				sum *= keep;
#pragma unroll
				for (int i = 0; i < T::width; i++)
					acc[i] *= keep;
			}
#pragma unroll
			for (int g = 0; g < T::group; g++) {
				float e = j + g < sees ? gt_exp_f32(s[g] - top) : 0;
				sum += e;
				add_row<T>(acc, e, tiles.v[1][j + g], p.lane);
			}
		}
	}
	if (!in)
		return;
	/* a sample of length 0 attends to nothing: y = 0 */
	put_row<T>((S *)a.out + y_offset(a, p, p.row), acc, a.d, p.lane, sum > 0 ? 1.0f / sum : 0);
	if (p.lane == 0)
		a.lse[(p.sample * a.heads + p.h) * a.tokens + p.row] = sum > 0 ? top + gt_log_f32(sum) : INFINITY;
}

/* Computes dq, and delta for the gradient of keys and values. */
template <class S, class T> __global__ void __launch_bounds__(BLOCK, 4) backward_q(const attention_args a)
{
	after_previous();
	__shared__ T tiles;
	const spot p = spot_of<T>(a);
	int64_t row = (p.sample * a.heads + p.h) * a.tokens + p.row;
	float q[T::width], dy[T::width], dq[T::width] = {}, delta = 0;
	bool in = p.row < a.tokens;
	float lse = in ? a.lse[row] : 0;
	int64_t here = in ? y_offset(a, p, p.row) : 0;
	load_features<T>(q, (const S *)a.y + here, in, a.d, p.lane, 1);
	load_features<T>(dy, (const S *)a.dy + here, in, a.d, p.lane, 1);
#pragma unroll
	for (int i = 0; i < T::width; i++)
		delta = gt_fma_f32(dy[i], q[i], delta);
#pragma unroll
	for (int h = 1; h < T::lanes; h *= 2)
		delta += __shfl_xor_sync(0xffffffffu, delta, h);
	load_features<T>(q, (const S *)a.qkv + (in ? qkv_offset(a, p, p.row, 0) : 0), in, a.d, p.lane, a.scale);
	for (int64_t j0 = 0, end = end_of_keys<T>(a, p); j0 < end; j0 += T::tile) {
		int n = fill_keys<S>(tiles, a, p, j0, end);
		int sees = a.causal && p.row - j0 < n ? (int)(p.row - j0) + 1 : n;
#pragma unroll 1
		for (int j = 0; j < n; j += T::group) {
			float s[T::group], d[T::group];
			dot_rows<T>(s, q, tiles.v[0] + j, p.lane);
			dot_rows<T>(d, dy, tiles.v[1] + j, p.lane);
#pragma unroll
			for (int g = 0; g < T::group; g++)
				add_row<T>(dq, j + g < sees ? gt_exp_f32(s[g] - lse) * (d[g] - delta) : 0, tiles.v[0][j + g], p.lane);
		}
	}
	if (!in)
		return;
	put_row<T>((S *)a.out + qkv_offset(a, p, p.row, 0), dq, a.d, p.lane, a.scale);
	if (p.lane == 0)
		a.delta[row] = delta;
}

/* Computes dk and dv: a team owns a key, and the tiles hold queries and dy. */
template <class S, class T> __global__ void __launch_bounds__(BLOCK, 3) backward_kv(const attention_args a)
{
	after_previous();
	__shared__ T tiles;
	__shared__ float lse[T::tile], delta[T::tile];
	const spot p = spot_of<T>(a);
	int64_t step = 3 * a.heads * a.d, rows = (p.sample * a.heads + p.h) * a.tokens;
	float key[T::width], value[T::width], dk[T::width] = {}, dv[T::width] = {};
	bool in = p.row < a.tokens, sees = p.row < p.length;
	int me = (int)threadIdx.x;
	load_features<T>(key, (const S *)a.qkv + (sees ? qkv_offset(a, p, p.row, 1) : 0), sees, a.d, p.lane, a.scale);
	load_features<T>(value, (const S *)a.qkv + (sees ? qkv_offset(a, p, p.row, 2) : 0), sees, a.d, p.lane, 1);
	for (int64_t i0 = a.causal ? p.first / T::tile * T::tile : 0; p.first < p.length && i0 < a.tokens; i0 += T::tile) {
		int n = (int)(a.tokens - i0 < T::tile ? a.tokens - i0 : T::tile);
		__syncthreads();
		fill_tile<S, T>(tiles.v[0], (const S *)a.qkv + qkv_offset(a, p, i0, 0), step, n, a.d);
		fill_tile<S, T>(tiles.v[1], (const S *)a.dy + y_offset(a, p, i0), a.heads * a.d, n, a.d);
		if (me < n)
			lse[me] = a.lse[rows + i0 + me], delta[me] = a.delta[rows + i0 + me];
		__syncthreads();
		int64_t begin = a.causal ? p.row - i0 : 0; /* index in the tile of the first query that attends to the key */
#pragma unroll 1
		for (int i = 0; i < n; i += T::group) {
			float s[T::group], d[T::group];
			dot_rows<T>(s, key, tiles.v[0] + i, p.lane);
			dot_rows<T>(d, value, tiles.v[1] + i, p.lane);
#pragma unroll
			for (int g = 0; g < T::group; g++) {
				bool there = sees && i + g >= begin && i + g < n;
				float e = there ? gt_exp_f32(s[g] - lse[i + g]) : 0;
				add_row<T>(dv, e, tiles.v[1][i + g], p.lane);
				add_row<T>(dk, there ? e * (d[g] - delta[i + g]) : 0, tiles.v[0][i + g], p.lane);
			}
		}
	}
	if (!in)
		return;
	put_row<T>((S *)a.out + qkv_offset(a, p, p.row, 1), dk, a.d, p.lane, a.scale);
	put_row<T>((S *)a.out + qkv_offset(a, p, p.row, 2), dv, a.d, p.lane, 1);
}

/* ---- launchers ------------------------------------------------------------------------------------------------------------------- */
static const char *refuse_call(const struct gt_opcall *op)
{
	const struct gt_tdesc *y = gt_opcall_operand(op, "y"), *qkv = gt_opcall_operand(op, "qkv");
	if (qkv->dim[2] != 3 * y->dim[2])
		return "expected as many features in queries, keys and values as in y";
	return gt_opcall_operand(op, "lse") ? NULL : "the output lse is required";
}

static size_t scratch_bytes(const struct gt_opcall *op)
{
	const struct gt_attr_attention *attr = (const struct gt_attr_attention *)op->attr;
	const struct gt_tdesc *y = gt_opcall_operand(op, "y");
	return op->code == GT_OP_ATTENTION_DX ? (size_t)(y->dim[0] * attr->heads * y->dim[1]) * sizeof(float) : 0;
}

/* Launches a kernel whose work is divided into blocks and teams as T (struct division) says. */
template <class T> static cudaError_t launch_divided(void (*kernel)(attention_args), attention_args a, cudaStream_t s)
{
	a.blocks = ceil_div(a.tokens, T::rows);
	int64_t blocks = a.samples * a.heads * a.blocks;
	return grid_fits(blocks) ? launch(kernel, dim3((unsigned)blocks), dim3(BLOCK), s, a) : cudaErrorInvalidValue;
}

template <class S, int D> static cudaError_t launch_size(const attention_args &a, bool gradient, cudaStream_t s)
{
	if (!gradient)
		return launch_divided<ahead<D>>(attention_forward<S, ahead<D>>, a, s);
	cudaError_t e = launch_divided<back<D>>(backward_q<S, back<D>>, a, s);
	return e == cudaSuccess ? launch_divided<back<D>>(backward_kv<S, back<D>>, a, s) : e;
}

template <class S> static cudaError_t launch_kernels(const attention_args &a, bool gradient, cudaStream_t s)
{
	return a.d <= 16   ? launch_size<S, 16>(a, gradient, s)
	       : a.d <= 32 ? launch_size<S, 32>(a, gradient, s)
	       : a.d <= 64 ? launch_size<S, 64>(a, gradient, s)
	                   : launch_size<S, 128>(a, gradient, s);
}

static cudaError_t start_call(const struct gt_cu_call *c, cudaStream_t s)
{
	static const struct gt_operand_slot slots[] = {
	    GT_SLOTS(attention_args, qkv, dy, y, lengths, lse), GT_SLOT_AS(attention_args, "dqkv", out)};
	const struct gt_opcall *op = c->op;
	const struct gt_attr_attention *attr = (const struct gt_attr_attention *)op->attr;
	const struct gt_tdesc *y = gt_opcall_operand(op, "y");
	bool gradient = op->code == GT_OP_ATTENTION_DX;
	attention_args a = {};
	GT_CU_BIND(c, slots, &a);
	a.samples = y->dim[0], a.tokens = y->dim[1], a.heads = attr->heads;
	a.d = (int)(y->dim[2] / attr->heads);
	a.scale = (float)(1.0 / sqrt((double)a.d));
	a.causal = attr->causal;
	if (gradient)
		a.delta = (float *)c->scratch;
	else
		a.out = (void *)a.y;
	return OF_TYPE(c->type, launch_kernels)(a, gradient, s);
}

GT_CU_FAMILY(attention_tiles, start_call, scratch_bytes, refuse_call, "tiles")
