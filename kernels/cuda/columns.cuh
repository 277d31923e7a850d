/* Reductions over the rows of a [rows, cols] tensor, where the elements of a row lie side by side: batch normalisation of [N, C] and of
 * NHWC, gradients of biases and of layer normalisation.
 *
 * Two levels. A block owns a tile of columns and a piece of the rows: a thread keeps V neighbouring columns (16 bytes, or one element where
 * the width or an address does not allow it) in registers and walks every ty-th row, so that a warp reads whole runs of memory; the
 * block's threads are put together in shared memory and leave one partial result a column in the scratch, part[split][plane][col]. The
 * pieces are put together in double, by a second kernel or, where a launch more would show, by the block of the tile that comes
 * last. Results are never added atomically: the order is a function of the shape alone, the same on every GPU. */
#ifndef GT_KERNELS_CUDA_COLUMNS_CUH
#define GT_KERNELS_CUDA_COLUMNS_CUH

#include "cuda/device.cuh"

#define COL_BLOCK 256
#define COL_RESIDENT 3 /* blocks a multiprocessor, which leaves a thread 80 registers */
/* One wave on an H200's 132 multiprocessors; not asked of the device, so that results do not depend on it. */
#define COL_BLOCKS (132 * COL_RESIDENT)
#define COL_AHEAD 4 /* rows that a thread reads at once */

struct tiling {
	int64_t rows, cols;
	int64_t piece;  /* rows a block */
	int32_t tx_log; /* 2^tx_log threads side by side */
	int32_t tiles, splits;
};

static inline struct tiling tile_columns(int64_t rows, int64_t cols, int v)
{
	struct tiling t = {rows, cols, 0, 0, 0, 0};
	int64_t units = ceil_div(cols, v), ty, step;
	while (t.tx_log < 5 && ((int64_t)1 << t.tx_log) < units)
		t.tx_log++;
	ty = COL_BLOCK >> t.tx_log;
	step = ty * COL_AHEAD;
	t.tiles = (int32_t)ceil_div(units, (int64_t)1 << t.tx_log);
	t.splits = t.tiles < COL_BLOCKS ? COL_BLOCKS / t.tiles : 1;
	t.piece = ceil_div(ceil_div(rows, t.splits), step) * step;
	t.splits = (int32_t)ceil_div(rows, t.piece);
	return t;
}

/* Columns a thread owns: 1 unless rows begin at multiples of 16 bytes. at: the addresses of all operands, or'd */
template <class S> static inline int columns_of(int64_t cols, uintptr_t at)
{
	return cols % width<S>::n == 0 && at % 16 == 0 ? width<S>::n : 1;
}

static inline dim3 tiling_grid(const struct tiling &t)
{
	return dim3((unsigned)t.tiles, (unsigned)t.splits);
}

/* Floats of part with `planes` results a column, whatever V turns out to be. */
static inline int64_t tiling_floats(int64_t rows, int64_t cols, int planes)
{
	int64_t most = 0;
	for (int v = 1; v <= 8; v *= 2) {
		int64_t splits = tile_columns(rows, cols, v).splits;
		most = splits > most ? splits : most;
	}
	return most * planes * cols;
}

/* Where a thread stands: its first column, its first row, how many rows it has, each ty behind the last. */
struct place {
	int64_t col, row;
	int n; /* 0 where its columns do not exist */
	int y, tx, ty;
	bool in; /* its columns exist */
};

template <int V> __device__ static inline place place_of(const tiling &t)
{
	place p;
	p.tx = 1 << t.tx_log;
	p.ty = COL_BLOCK >> t.tx_log;
	p.y = (int)threadIdx.x >> t.tx_log;
	p.col = ((int64_t)blockIdx.x * p.tx + ((int)threadIdx.x & (p.tx - 1))) * V;
	p.row = (int64_t)blockIdx.y * t.piece + p.y;
	p.in = p.col < t.cols;
	int64_t left = t.rows - (int64_t)blockIdx.y * t.piece;
	int rows = (int)(left < t.piece ? left : t.piece);
	p.n = p.in && rows > p.y ? (rows - p.y + p.ty - 1) / p.ty : 0;
	return p;
}

/* V elements as they lie in memory. */
template <class S, int V> struct packed {
	uint4 u;
	__device__ void fetch(const S *p)
	{
		u = *(const uint4 *)p;
	}
	__device__ void get(float *v) const
	{
		unpack(v, u, S());
	}
};

template <class S> struct packed<S, 1> {
	S u;
	__device__ void fetch(const S *p)
	{
		u = *p;
	}
	__device__ void get(float *v) const
	{
		v[0] = to_float(u);
	}
};

template <class S, int V> __device__ static inline void put(S *p, const float *v)
{
	if constexpr (V == 1)
		*p = from_float<S>(v[0]);
	else
		*(uint4 *)p = pack<S>(v);
}

/* V numbers of a table of f32 columns. p + col is aligned to 16 bytes where V > 1. */
template <int V> __device__ static inline void get_f32(float *v, const float *p)
{
#pragma unroll
	for (int j = 0; j < V; j += 4)
		if constexpr (V == 1)
			v[0] = p[0];
		else
			unpack(v + j, *(const uint4 *)(p + j), float());
}

template <int V> __device__ static inline void put_f32(float *p, const float *v)
{
#pragma unroll
	for (int j = 0; j < V; j += 4)
		if constexpr (V == 1)
			p[0] = v[0];
		else
			*(uint4 *)(p + j) = pack<float>(v + j);
}

/* Sums of V columns over a block's rows, into the threads with y = 0; N of them at once. Every thread of the block must come. */
template <int N> __device__ static inline void block_columns(float (&v)[N], const place &p)
{
	__shared__ float s[N][COL_BLOCK];
	int me = (int)threadIdx.x;
	for (int h = p.ty / 2; h > 0; h /= 2) {
		if (p.y >= h && p.y < 2 * h)
#pragma unroll
			for (int j = 0; j < N; j++)
				s[j][me] = v[j];
		__syncthreads();
		if (p.y < h)
#pragma unroll
			for (int j = 0; j < N; j++)
				v[j] += s[j][me + h * p.tx];
	}
}

/* ---- the second level in the block that comes last ------------------------------------------------------------------------------ */
/* counter: one a tile */
__device__ static inline bool last_of_tile(uint32_t *counter, const tiling &t)
{
	return last_of(counter + blockIdx.x, (uint32_t)t.splits);
}

/* W numbers of a table of f32 that other blocks have written. */
template <int W> __device__ static inline void get_written(float *v, const float *p)
{
	if constexpr (W == 1)
		v[0] = __ldcg(p);
	else
		unpack(v, __ldcg((const uint4 *)p), float());
}

/* Two planes of a tile, a thread a column c of it: their sums a and b; or, MOMENTS, mean and squared distances of the pieces, which become
 * those of all rows. false: the thread has no column. Every thread of the block must come. */
template <int V, bool MOMENTS>
__device__ static inline bool tile_totals(const float *part, const tiling &t, int64_t &c, double &a, double &b)
{
	constexpr int W = V == 1 ? 1 : 4, LOG = V == 8 ? 1 : 0;
	__shared__ double s[2 * W][COL_BLOCK];
	int me = (int)threadIdx.x, wide_log = t.tx_log + LOG, wide = 1 << wide_log, lanes = COL_BLOCK >> wide_log, lane = me >> wide_log;
	int64_t first = (int64_t)blockIdx.x * wide * W, col = first + (me & (wide - 1)) * W;
	double sum[2 * W] = {};
	if (col < t.cols) {
		float from[W] = {};
		if (MOMENTS)
			get_written<W>(from, part + col);
		for (int k = lane; k < t.splits; k += lanes) {
			float p[W], q[W];
			get_written<W>(p, part + 2 * k * t.cols + col);
			get_written<W>(q, part + (2 * k + 1) * t.cols + col);
			double n = (double)(k + 1 < t.splits ? t.piece : t.rows - k * t.piece);
#pragma unroll
			for (int j = 0; j < W; j++) {
				double d = MOMENTS ? (double)p[j] - (double)from[j] : (double)p[j];
				sum[j] += MOMENTS ? n * d : d;
				sum[W + j] += MOMENTS ? (double)q[j] + n * d * d : (double)q[j];
			}
		}
	}
#pragma unroll
	for (int j = 0; j < 2 * W; j++)
		s[j][me] = sum[j];
	__syncthreads();
	for (int h = lanes / 2; h > 0; h /= 2) {
		if (lane < h)
#pragma unroll
			for (int j = 0; j < 2 * W; j++)
				s[j][me] += s[j][me + (h << wide_log)];
		__syncthreads();
	}
	c = first + me;
	if (me >= wide * W || c >= t.cols)
		return false;
	a = s[me % W][me / W];
	b = s[W + me % W][me / W];
	if (MOMENTS) {
		double shift = a / (double)t.rows; /* of the mean, from the first piece's */
		b -= a * shift;
		a = (double)__ldcg(part + c) + shift;
	}
	return true;
}

/* ---- the second level in a kernel: 32 columns a block, 32 threads a column ------------------------------------------------------------------- */
#define FINISH_COLS 32
#define FINISH_LANES 32

static inline dim3 finish_grid(int64_t cols)
{
	return dim3((unsigned)ceil_div(cols, FINISH_COLS));
}

/* The column's sum, in each of its threads. Every thread of the block must come. */
__device__ static inline double finish_sum(double v)
{
	__shared__ double s[FINISH_LANES][FINISH_COLS + 1];
	__shared__ double total[FINISH_COLS];
	__syncthreads(); /* the last total has been read */
	s[threadIdx.y][threadIdx.x] = v;
	__syncthreads();
	v = s[threadIdx.x][threadIdx.y];
#pragma unroll
	for (int w = 16; w > 0; w /= 2)
		v += __shfl_xor_sync(0xffffffffu, v, w);
	if (threadIdx.x == 0)
		total[threadIdx.y] = v;
	__syncthreads();
	return total[threadIdx.x];
}

/* Sum over the splits of one plane, for column c. */
__device__ static inline double finish_plane(const float *part, const tiling &t, int planes, int plane, int64_t c)
{
	double sum = 0;
	if (c < t.cols)
		for (int64_t k = threadIdx.y; k < t.splits; k += FINISH_LANES)
			sum += (double)part[(k * planes + plane) * t.cols + c];
	return finish_sum(sum);
}

#endif
