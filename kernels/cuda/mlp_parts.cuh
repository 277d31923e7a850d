/* Parts of the kernel mlp.steps (mlp_kernel.cuh): columns of a batch in shared memory, and products with them.
 *
 * A tile has up to `wide` columns of a batch, each with the R rows of the batch (32, 64 or 128; those after the batch are 0) and one float
 * of padding, so that neither a warp that reads a column nor one that reads a row meets a bank twice. A product adds up column k in warp
 * k % WARPS, in ascending order, and then the warps in order. That order depends neither on the size of a tile nor on the number of
 * blocks. */
#ifndef GT_KERNELS_CUDA_MLP_PARTS_CUH
#define GT_KERNELS_CUDA_MLP_PARTS_CUH

#include "cuda/device.cuh"

#define WARPS (GT_MLP_BLOCK / 32)

/* ---- columns ---------------------------------------------------------------------------------------------------------------------- */
/* What a tile is filled from. row(b) is row b, of which load() reads the four columns from k on and unpack() makes floats of them; those
 * after the last column or the last row are 0. Both are apart so that a thread has several loads in flight before it needs the first.
 * QUADS: the rows have whole groups of four columns, each of which is one access. */

/* The samples of a step: their bytes, normalised, in the order C, H, W of PyTorch. */
struct image_row {
	typedef uint32_t four;
	const gt_cu_mlp &a;
	const uint8_t *x; /* NULL: there is no sample */
	int cols;
	template <bool QUADS> __device__ four load(int k) const
	{
		if constexpr (QUADS) {
			return x ? *(const uint32_t *)(x + k) : 0;
		} else {
			uint32_t w = 0;
			int c = k / a.pixels, pixel = k - c * a.pixels;
#pragma unroll
			for (int j = 0; j < 4; j++) {
				w |= x && k + j < cols ? (uint32_t)x[pixel * a.channels + c] << 8 * j : 0;
				if (++pixel == a.pixels)
					pixel = 0, c++;
			}
			return w;
		}
	}
	template <bool QUADS> __device__ void unpack(float (&v)[4], four w, int k) const
	{
		int c = QUADS ? 0 : k / a.pixels, pixel = QUADS ? 0 : k - c * a.pixels;
#pragma unroll
		for (int j = 0; j < 4; j++) {
			v[j] = x && (QUADS || k + j < cols) ? (float)(w >> 8 * j & 0xff) * a.gather.scale[c] + a.gather.shift[c] : 0;
			if (!QUADS && ++pixel == a.pixels)
				pixel = 0, c++;
		}
	}
};

struct image_rows {
	const gt_cu_mlp &a;
	const int64_t *place; /* of each row: number of its sample; -1: there is none */
	int cols;
	__device__ bool quads() const
	{
		return a.channels == 1 && cols % 4 == 0 && (uintptr_t)a.images % 4 == 0;
	}
	__device__ image_row row(int b) const
	{
		return {a, place[b] >= 0 ? a.images + place[b] * cols : NULL, cols};
	}
};

/* Rows that the blocks have written. */
struct float_row {
	typedef float4 four;
	const float *x; /* NULL: after the last row */
	int cols;
	template <bool QUADS> __device__ four load(int k) const
	{
		if constexpr (QUADS) {
			return x ? __ldcg((const float4 *)(x + k)) : make_float4(0, 0, 0, 0);
		} else {
			float v[4];
#pragma unroll
			for (int j = 0; j < 4; j++)
				v[j] = x && k + j < cols ? __ldcg(x + k + j) : 0;
			return make_float4(v[0], v[1], v[2], v[3]);
		}
	}
	template <bool QUADS> __device__ void unpack(float (&v)[4], four q, int) const
	{
		v[0] = q.x, v[1] = q.y, v[2] = q.z, v[3] = q.w;
	}
};

struct float_rows {
	const float *x;
	int rows, cols;
	__device__ bool quads() const
	{
		return cols % 4 == 0;
	}
	__device__ float_row row(int b) const
	{
		return {b < rows ? x + (int64_t)b * cols : NULL, cols};
	}
};

/* What a layer reads: the samples if floats.x is NULL. */
struct input_rows {
	image_rows images;
	float_rows floats;
};

/* A warp reads 4 rows of 8 groups of 4 columns at once: 128 bytes of each row of floats, and all banks when it writes. A thread stays in
 * its row and reads AHEAD groups before it writes the first, because a read takes hundreds of cycles. */
template <int RB, bool QUADS, int AHEAD, class Rows>
__device__ static inline void fill_groups(float *tile, const Rows &rows, int from, int n)
{
	constexpr int LD = 32 * RB + 1, GROUPS = 8 * RB, STEP = (WARPS > GROUPS ? WARPS / GROUPS : 1) * 32;
	int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, first = warp / GROUPS * 32 + lane % 8 * 4;
#pragma unroll 1
	for (int b = warp % GROUPS * 4 + lane / 8; b < 32 * RB; b += 4 * WARPS) {
		const auto row = rows.row(b);
#pragma unroll 1
		for (int at = first; at < n; at += AHEAD * STEP) {
			typename decltype(rows.row(b))::four w[AHEAD] = {};
#pragma unroll
			for (int i = 0; i < AHEAD; i++)
				if (at + i * STEP < n)
					w[i] = row.template load<QUADS>(from + at + i * STEP);
#pragma unroll
			for (int i = 0; i < AHEAD; i++) {
				int k = at + i * STEP;
				float v[4];
				row.template unpack<QUADS>(v, w[i], from + k);
#pragma unroll
				for (int j = 0; j < 4; j++)
					if (k + j < n)
						tile[(k + j) * LD + b] = v[j];
			}
		}
	}
}

/* Sets to[i] = read(i) for i < n. A thread reads four elements before it writes the first. */
template <class T, class F> __device__ static inline void copy_ahead(T *to, int n, F read)
{
	constexpr int BLOCK = GT_MLP_BLOCK, AHEAD = 4;
#pragma unroll 1
	for (int at = (int)threadIdx.x; at < n; at += AHEAD * BLOCK) {
		T v[AHEAD] = {};
#pragma unroll
		for (int i = 0; i < AHEAD; i++)
			if (at + i * BLOCK < n)
				v[i] = read(at + i * BLOCK);
#pragma unroll
		for (int i = 0; i < AHEAD; i++)
			if (at + i * BLOCK < n)
				to[at + i * BLOCK] = v[i];
	}
}

/* Copies the columns from ... from + n - 1 to the tile. */
template <int RB, class Rows> __device__ static inline void fill(float *tile, const Rows &rows, int from, int n)
{
	/* head() has 16 * RB sums in registers, and more reads of floats would not leave enough */
	constexpr int AHEAD = sizeof(typename decltype(rows.row(0))::four) == 4 ? 8 : RB == 4 ? 2 : 4;
	__syncthreads(); /* all threads have to have read the last tile */
	if (rows.quads())
		fill_groups<RB, true, AHEAD>(tile, rows, from, n);
	else
		fill_groups<RB, false, (AHEAD + 3) / 4>(tile, rows, from, n);
	__syncthreads();
}

/* One branch for a whole tile, so that a layer is the same code for both kinds of rows. */
template <int RB> __device__ static inline void fill(float *tile, const input_rows &rows, int from, int n)
{
	if (rows.floats.x)
		fill<RB>(tile, rows.floats, from, n);
	else
		fill<RB>(tile, rows.images, from, n);
}

/* Calls f(from, n) for each tile of the columns. resident: the tile has all of them already. */
template <int RB, class Rows, class F>
__device__ static inline void each_tile(float *tile, const Rows &rows, int cols, int most, bool resident, F f)
{
	for (int from = 0; from < cols; from += most) {
		int n = cols - from < most ? cols - from : most;
		if (!resident)
			fill<RB>(tile, rows, from, n);
		f(from, n);
	}
}

/* ---- products --------------------------------------------------------------------------------------------------------------------- */
/* Adds the products of this thread's rows with four columns w[k][4] of a weight. */
template <int RB> __device__ static inline void multiply(float (&sum)[RB][4], const float *tile, const float *w, int n)
{
	int lane = (int)threadIdx.x % 32;
#pragma unroll 4
	for (int k = (int)threadIdx.x / 32; k < n; k += WARPS) {
		const float4 v = *(const float4 *)(w + 4 * k);
#pragma unroll
		for (int r = 0; r < RB; r++) {
			float x = tile[k * (32 * RB + 1) + 32 * r + lane];
			sum[r][0] = gt_fma_f32(x, v.x, sum[r][0]);
			sum[r][1] = gt_fma_f32(x, v.y, sum[r][1]);
			sum[r][2] = gt_fma_f32(x, v.z, sum[r][2]);
			sum[r][3] = gt_fma_f32(x, v.w, sum[r][3]);
		}
	}
}

/* Adds up the warps' sums of four columns in order, and calls f(i, value) for i = 4 * row + column. */
template <int RB, class F> __device__ static inline void add_warps(const float (&sum)[RB][4], float *part, F f)
{
	constexpr int N = 32 * RB * 4;
	int me = (int)threadIdx.x;
	__syncthreads(); /* all threads have to have read the last parts */
#pragma unroll
	for (int r = 0; r < RB; r++)
		*(float4 *)(part + (me / 32 * 32 * RB + 32 * r + me % 32) * 4) = make_float4(sum[r][0], sum[r][1], sum[r][2], sum[r][3]);
	__syncthreads();
	if (me >= N)
		return;
	float v = part[me];
#pragma unroll
	for (int w = 1; w < WARPS; w++)
		v += part[w * N + me];
	f(me, v);
}

/* Adds the products of this thread's rows with the weights w[k][classes] of the last layer. */
template <int RB> __device__ static inline void multiply_last(float (&sum)[RB][GT_MLP_CLASSES], const float *tile, const float *w,
                                                              int classes, int n)
{
	int lane = (int)threadIdx.x % 32;
#pragma unroll(RB == 4 ? 1 : 4) /* 64 sums leave no registers for more */
	for (int k = (int)threadIdx.x / 32; k < n; k += WARPS) {
#pragma unroll
		for (int c = 0; c < GT_MLP_CLASSES; c += 4) {
			if (c >= classes)
				break;
			const float4 v = *(const float4 *)(w + k * classes + c);
#pragma unroll
			for (int r = 0; r < RB; r++) {
				float x = tile[k * (32 * RB + 1) + 32 * r + lane];
				sum[r][c] = gt_fma_f32(x, v.x, sum[r][c]);
				sum[r][c + 1] = gt_fma_f32(x, v.y, sum[r][c + 1]);
				sum[r][c + 2] = gt_fma_f32(x, v.z, sum[r][c + 2]);
				sum[r][c + 3] = gt_fma_f32(x, v.w, sum[r][c + 3]);
			}
		}
	}
}

/* The gradient of the logits of one row, in registers; 0 after the last class. */
struct row_gradient {
	float dy[GT_MLP_CLASSES];
	__device__ row_gradient(const float *from, int n)
	{
#pragma unroll
		for (int c = 0; c < GT_MLP_CLASSES; c++)
			dy[c] = c < n ? from[c] : 0;
	}
	/* The gradient of an input of the last layer with the weights w[classes]. */
	__device__ float dx(const float *w, int classes) const
	{
		float sum = 0;
#pragma unroll
		for (int c = 0; c < GT_MLP_CLASSES; c += 4) {
			if (c >= classes)
				break;
			const float4 v = *(const float4 *)(w + c);
			sum = gt_fma_f32(dy[c], v.x, sum);
			sum = gt_fma_f32(dy[c + 1], v.y, sum);
			sum = gt_fma_f32(dy[c + 2], v.z, sum);
			sum = gt_fma_f32(dy[c + 3], v.w, sum);
		}
		return sum;
	}
};

/* Applies an activation. *slope: its derivative, from the operand that its gradient needs (ew.h). */
__device__ static inline float activate(const gt_mlp_act &a, float x, float *slope)
{
	float y = x, t = a.slope;
	*slope = 1;
	switch (a.code) {
	case GT_OP_RELU:
		y = gt_relu_f32(x), *slope = gt_relu_dx_f32(1, y);
		break;
	case GT_OP_LEAKY_RELU:
		y = gt_leaky_relu_f32(x, t), *slope = gt_leaky_relu_dx_f32(1, x, t);
		break;
	case GT_OP_SIGMOID:
		y = gt_sigmoid_f32(x), *slope = gt_sigmoid_dx_f32(1, y);
		break;
	case GT_OP_TANH:
		y = gt_tanh_f32(x), *slope = gt_tanh_dx_f32(1, y);
		break;
	case GT_OP_GELU:
		y = a.tanh ? gt_gelu_tanh_f32(x) : gt_gelu_f32(x), *slope = a.tanh ? gt_gelu_tanh_dx_f32(1, x) : gt_gelu_dx_f32(1, x);
		break;
	case GT_OP_SILU:
		y = gt_silu_f32(x), *slope = gt_silu_dx_f32(1, x);
		break;
	case GT_OP_ELU:
		y = gt_elu_f32(x, t), *slope = gt_elu_dx_f32(1, x, t);
		break;
	default: /* none */
		break;
	}
	return y;
}

/* The gradient before an activation from the one after it. saved: the output of a relu; or the derivative (SLOPE), and where that is 0, as
 * in a relu, the gradient is 0, whatever comes after. */
template <bool SLOPE> __device__ static inline float back(float dy, float saved)
{
	return !SLOPE ? gt_relu_dx_f32(dy, saved) : saved == 0 ? 0 : dy * saved;
}

#endif
