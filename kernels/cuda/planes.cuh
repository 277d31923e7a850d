/* Sums over the pixels of each sample of a tensor [samples, pixels, cols] whose pixels are contiguous rows: global average pooling, and the
 * gradient of a second input that has one value for each channel of a sample.
 *
 * The kernels divide a sample as columns.cuh divides a tensor. If all samples together have fewer tiles than COL_BLOCKS, several blocks
 * share a tile, each with a piece of the pixels, and the last block to finish adds their partial results part[sample][split][col]. */
#ifndef GT_KERNELS_CUDA_PLANES_CUH
#define GT_KERNELS_CUDA_PLANES_CUH

#include "cuda/columns.cuh"

static inline dim3 planes_grid(int64_t samples, const struct tiling &t)
{
	return dim3((unsigned)(samples * t.tiles), (unsigned)t.splits);
}

/* Returns the number of floats that the array `part` needs, for any V. */
static inline int64_t planes_floats(int64_t samples, int64_t pixels, int64_t cols)
{
	int64_t most = 0;
	for (int v = 1; v <= 8; v *= 2) {
		int64_t splits = tile_columns(pixels, cols, v, samples).splits;
		most = splits > most ? splits : most;
	}
	return most > 1 ? samples * most * cols : 0;
}

/* Returns the number of counters of a kernel, for any V: one for each tile of a sample. */
static inline int64_t planes_counters(int64_t samples, int64_t cols)
{
	return samples * ceil_div(cols, 32);
}

/* Adds v[0 ... V - 1] of the elements `at` of x, or of x and of y multiplied if MUL is true, to sum. */
template <class S, int V, bool MUL, int N>
__device__ static inline void add_pixels(const S *x, const S *y, int64_t at, int64_t step, float (&sum)[V])
{
	packed<S, V> q[N], r[MUL ? N : 1];
#pragma unroll
	for (int k = 0; k < N; k++) {
		q[k].fetch(x + at + k * step);
		if (MUL)
			r[k].fetch(y + at + k * step);
	}
#pragma unroll
	for (int k = 0; k < N; k++) {
		float v[V], w[V];
		q[k].get(v);
		if (MUL)
			r[k].get(w);
#pragma unroll
		for (int j = 0; j < V; j++)
			sum[j] += MUL ? v[j] * w[j] : v[j];
	}
}

/* Sums x, or the product of x and y, over the pixels of the block's sample. counter: one for each block in x. Returns true in the threads
 * that have a result: the sums of the columns p.col ... p.col + V - 1 of `sample`. All threads of the block must call it. */
template <class S, int V, bool MUL>
__device__ static inline bool sum_plane(const S *x, const S *y, const tiling &t, float *part, uint32_t *counter, float (&sum)[V], place &p,
                                        int64_t &sample)
{
	sample = blockIdx.x / t.tiles;
	p = place_of<V>(t, (int)blockIdx.y, (unsigned)(blockIdx.x - sample * t.tiles));
#pragma unroll
	for (int j = 0; j < V; j++)
		sum[j] = 0;
	int64_t at = (sample * t.rows + p.row) * t.cols + p.col, step = p.ty * t.cols;
	int left = p.n;
	for (; left >= COL_AHEAD; left -= COL_AHEAD, at += COL_AHEAD * step)
		add_pixels<S, V, MUL, COL_AHEAD>(x, y, at, step, sum);
	for (; left > 0; left--, at += step)
		add_pixels<S, V, MUL, 1>(x, y, at, step, sum);
	block_columns<V>(sum, p);
	if (t.splits == 1)
		return !p.y && p.in;
	part += sample * t.splits * t.cols + p.col;
	if (!p.y && p.in)
		put_f32<V>(part + (int64_t)blockIdx.y * t.cols, sum);
	if (!last_of(counter + blockIdx.x, (uint32_t)t.splits))
		return false;
#pragma unroll
	for (int j = 0; j < V; j++)
		sum[j] = 0;
	for (int k = p.y; p.in && k < t.splits; k += p.ty) {
		constexpr int W = V == 1 ? 1 : 4;
#pragma unroll
		for (int j = 0; j < V; j += W) {
			float v[W];
			get_written<W>(v, part + k * t.cols + j);
#pragma unroll
			for (int i = 0; i < W; i++)
				sum[j + i] += v[i];
		}
	}
	block_columns<V>(sum, p);
	return !p.y && p.in;
}

#endif
