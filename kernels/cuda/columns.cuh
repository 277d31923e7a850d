/* Reductions over the rows of a [rows, cols] tensor whose rows are contiguous: batch normalisation of [N, C] and of NHWC, gradients of
 * biases and of layer normalisation.
 *
 * There are two levels. A block owns a tile of columns and a piece of the rows. A thread keeps V neighbouring columns (16 bytes, or one
 * element if the width or an address does not allow vectors) in registers and reads every ty-th row, so that a warp reads contiguous
 * memory. The threads of the block combine their results in shared memory and store one partial result per column in the scratch memory,
 * part[split][plane][col]. The second level combines the pieces in double: in a second kernel, or, if another launch would cost too much,
 * in the last block of the tile. Results are never added atomically. Their order depends on the shape only and is the same on every GPU. */
#ifndef GT_KERNELS_CUDA_COLUMNS_CUH
#define GT_KERNELS_CUDA_COLUMNS_CUH

#include "cuda/device.cuh"

#define COL_BLOCK 256
#define COL_RESIDENT 3 /* blocks per multiprocessor, which leaves 80 registers to a thread */
/* As many blocks as run at once on the 132 multiprocessors of an H200. A constant, so that results do not depend on the device. */
#define COL_BLOCKS (132 * COL_RESIDENT)
#define COL_AHEAD 4 /* number of rows that a thread reads before it adds them */

struct tiling {
	int64_t rows, cols;
	int64_t piece;  /* number of rows of a block */
	int32_t tx_log; /* logarithm of the number of threads that cover the columns of a tile */
	int32_t tiles, splits;
};

/* tensors: number of tensors that the same kernel reads. */
static inline struct tiling tile_columns(int64_t rows, int64_t cols, int v, int64_t tensors = 1)
{
	struct tiling t = {rows, cols, 0, 0, 0, 0};
	int64_t units = ceil_div(cols, v), ty, step;
	while (t.tx_log < 5 && ((int64_t)1 << t.tx_log) < units)
		t.tx_log++;
	ty = COL_BLOCK >> t.tx_log;
	step = ty * COL_AHEAD;
	t.tiles = (int32_t)ceil_div(units, (int64_t)1 << t.tx_log);
	t.splits = t.tiles * tensors < COL_BLOCKS ? (int32_t)(COL_BLOCKS / (t.tiles * tensors)) : 1;
	t.piece = ceil_div(ceil_div(rows, t.splits), step) * step;
	t.splits = (int32_t)ceil_div(rows, t.piece);
	return t;
}

/* Returns the number of columns that a thread owns: 1 unless all rows begin at multiples of 16 bytes. at is the bitwise or of the addresses
 * of all tensors. */
template <class S> static inline int columns_of(int64_t cols, uintptr_t at)
{
	return cols % width<S>::n == 0 && at % 16 == 0 ? width<S>::n : 1;
}

static inline dim3 tiling_grid(const struct tiling &t)
{
	return dim3((unsigned)t.tiles, (unsigned)t.splits);
}

/* Returns the number of floats that the array `part` needs for `planes` partial results per column, for any V. */
static inline int64_t tiling_floats(int64_t rows, int64_t cols, int planes)
{
	int64_t most = 0;
	for (int v = 1; v <= 8; v *= 2) {
		int64_t splits = tile_columns(rows, cols, v).splits;
		most = splits > most ? splits : most;
	}
	return most * planes * cols;
}

/* The rows and columns of a tensor that one thread of a block reads: its first column, its first row, and its number of rows, which are ty
 * apart. */
struct place {
	int64_t col, row;
	int n; /* number of rows of this thread; 0 if its columns do not exist */
	int y, tx, ty;
	bool in; /* true if the thread's columns exist */
};

/* Returns the rows and columns of this thread in piece `split` of the rows of a tile of columns. */
template <int V> __device__ static inline place place_of(const tiling &t, int split, unsigned tile)
{
	place p;
	p.tx = 1 << t.tx_log;
	p.ty = COL_BLOCK >> t.tx_log;
	p.y = (int)threadIdx.x >> t.tx_log;
	p.col = ((int64_t)tile * p.tx + ((int)threadIdx.x & (p.tx - 1))) * V;
	p.row = split * t.piece + p.y;
	p.in = p.col < t.cols;
	int64_t left = t.rows - split * t.piece;
	int rows = (int)(left < t.piece ? left : t.piece);
	p.n = p.in && rows > p.y ? (rows - p.y + p.ty - 1) / p.ty : 0;
	return p;
}

template <int V> __device__ static inline place place_of(const tiling &t)
{
	return place_of<V>(t, (int)blockIdx.y, blockIdx.x);
}

/* Like place_of, for a kernel that reads a tensor again: the blocks of a tile in reverse order, and row is the thread's last row, from
 * which it walks back in steps of -ty rows. The previous pass has read these rows last, so they are still in the L2 cache. In the original
 * order, none of the rows of a tensor larger than the cache would still be there. */
template <int V> __device__ static inline place place_back(const tiling &t)
{
	place p = place_of<V>(t, t.splits - 1 - (int)blockIdx.y, blockIdx.x);
	p.row += (int64_t)(p.n - 1) * p.ty;
	return p;
}

/* V elements of type S as they are stored in memory. */
template <class S, int V> struct packed {
	uint4 u;
	__device__ void fetch(const S *p)
	{
		u = *(const uint4 *)p;
	}
	__device__ void get(float *v) const
	{
		unpack_vector(v, u, S());
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

template <class S, int V> __device__ static inline void store_packed(S *p, const float *v)
{
	if constexpr (V == 1)
		*p = from_float<S>(v[0]);
	else
		*(uint4 *)p = pack_vector<S>(v);
}

/* Reads V consecutive f32 values from p, which is aligned to 16 bytes if V > 1. */
template <int V> __device__ static inline void get_f32(float *v, const float *p)
{
#pragma unroll
	for (int j = 0; j < V; j += 4)
		if constexpr (V == 1)
			v[0] = p[0];
		else
			unpack_vector(v + j, *(const uint4 *)(p + j), float());
}

template <int V> __device__ static inline void put_f32(float *p, const float *v)
{
#pragma unroll
	for (int j = 0; j < V; j += 4)
		if constexpr (V == 1)
			p[0] = v[0];
		else
			*(uint4 *)(p + j) = pack_vector<float>(v + j);
}

/* Sums V columns over the rows of a block into the threads with y = 0, N values at once. All threads of the block must call it. */
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

/* ---- second level in the last block of a tile --------------------------------------------------------------------------------------- */
/* Returns true in the last block of a tile to finish. There is one counter per tile. */
__device__ static inline bool last_of_tile(uint32_t *counter, const tiling &t)
{
	return last_of(counter + blockIdx.x, (uint32_t)t.splits);
}

/* Reads W consecutive f32 values that other blocks have written. */
template <int W> __device__ static inline void get_written(float *v, const float *p)
{
	if constexpr (W == 1)
		v[0] = __ldcg(p);
	else
		unpack_vector(v, __ldcg((const uint4 *)p), float());
}

/* Combines the two planes of partial results of a tile: a thread gets a column, its index c, and the sums a and b of this column over
 * all pieces. With MOMENTS, the planes are the means and the squared distances of the pieces of rows, and a and b are the mean and the
 * squared distances of all rows. Returns false if the thread has no column. All threads of the block must call it. */
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
		double shift = a / (double)t.rows; /* distance of the mean of all rows from the mean of the first piece */
		b -= a * shift;
		a = (double)__ldcg(part + c) + shift;
	}
	return true;
}

/* ---- second level in a kernel: 32 columns per block, 32 threads per column ---------------------------------------------------------- */
#define FINISH_COLS 32
#define FINISH_LANES 32

static inline dim3 finish_grid(int64_t cols)
{
	return dim3((unsigned)ceil_div(cols, FINISH_COLS));
}

/* Returns the sum of v over the threads of a column, in each of these threads. All threads of the block must call it. */
__device__ static inline double finish_sum(double v)
{
	__shared__ double s[FINISH_LANES][FINISH_COLS + 1];
	__shared__ double total[FINISH_COLS];
	__syncthreads(); /* all threads must have read the total of the previous call before it is overwritten */
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

/* Sums one plane of partial results over the splits of the rows, for column c. */
__device__ static inline double finish_plane(const float *part, const tiling &t, int planes, int plane, int64_t c)
{
	double sum = 0;
	if (c < t.cols)
		for (int64_t k = threadIdx.y; k < t.splits; k += FINISH_LANES)
			sum += (double)part[(k * planes + plane) * t.cols + c];
	return finish_sum(sum);
}

#endif
