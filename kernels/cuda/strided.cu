/* permute, select and select.dx: copies by element size (strided.h). Dimensions that are neighbours in both tensors are joined first. If
 * the fastest dimension is the same in both tensors, a thread copies 16 bytes; if another dimension is the fastest one of the input, blocks
 * transpose tiles of these two; otherwise a thread copies one element. */
#include "cuda/device.cuh"
extern "C" {
#include "strided.h"
}

#define BLOCK 256
#define TILE 32
#define TILE_ROWS 8
#define LEAST 8  /* minimum size of both dimensions for which tiles are transposed */
#define MAX_YZ 65535

/* A copy that exchanges the fastest dimensions: the output has [outer[0], outer[1], cols, rows] with cols contiguous in the input. */
struct exchange {
	int64_t rows, cols, outer[2];
	int64_t row_in, col_out;               /* distances of rows in the input, and of columns in the output */
	int64_t outer_in[2], outer_out[2]; /* distances of the outer dimensions */
	int64_t first;
};

/* ---- kernels --------------------------------------------------------------------------------------------------------------------- */
/* A thread writes one unit of the output: U, an element or 16 bytes. Distances are in units. (nvcc's 64-bit divisions test at run time
 * whether 32 bits are enough.) */
template <class U> __global__ void __launch_bounds__(BLOCK) copy_strided(const U *in, U *out, int64_t n, const gt_strided s)
{
	after_previous();
	int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x, left = i, from = s.first;
	bool zero = false;
	if (i >= n)
		return;
#pragma unroll
	for (int k = 3; k >= 0; k--) {
		int64_t rest = s.dim[k] > 1 ? left / s.dim[k] : left, at = left - rest * s.dim[k];
		from += at * s.step[k];
		zero |= k == s.guard && at != s.index;
		left = rest;
	}
	out[i] = zero ? U{} : in[from];
}

/* A block transposes tiles that it reads and writes in rows of 32 elements. The extra column avoids bank conflicts. */
template <class U> __global__ void __launch_bounds__(TILE *TILE_ROWS) exchange_tiles(const U *in, U *out, const exchange x)
{
	after_previous();
	__shared__ U tile[TILE][TILE + 1];
	int64_t col0 = (int64_t)blockIdx.x * TILE;
	for (int64_t z = blockIdx.z; z < x.outer[0] * x.outer[1]; z += gridDim.z) {
		int64_t a = z / x.outer[1], b = z - a * x.outer[1];
		const U *from = in + x.first + a * x.outer_in[0] + b * x.outer_in[1];
		U *to = out + a * x.outer_out[0] + b * x.outer_out[1];
		for (int64_t row0 = (int64_t)blockIdx.y * TILE; row0 < x.rows; row0 += (int64_t)gridDim.y * TILE) {
#pragma unroll
			for (int r = (int)threadIdx.y; r < TILE; r += TILE_ROWS)
				if (row0 + r < x.rows && col0 + threadIdx.x < x.cols)
					tile[r][threadIdx.x] = from[(row0 + r) * x.row_in + col0 + threadIdx.x];
			__syncthreads();
#pragma unroll
			for (int c = (int)threadIdx.y; c < TILE; c += TILE_ROWS)
				if (col0 + c < x.cols && row0 + threadIdx.x < x.rows)
					to[(col0 + c) * x.col_out + row0 + threadIdx.x] = tile[threadIdx.x][c];
			__syncthreads();
		}
	}
}

/* ---- launcher -------------------------------------------------------------------------------------------------------------------- */
/* Removes dimensions of size 1, and joins neighbours in the output that are neighbours in the input. If fewer than four dimensions
 * remain, the first ones get size 1. */
static void join_dims(gt_strided *s)
{
	gt_strided to = *s;
	int n = 4; /* dimensions n ... 3 of `to` are set */
	to.guard = -1;
	for (int k = 3; k >= 0; k--) {
		bool guards = k == s->guard;
		if (s->dim[k] == 1 && !guards)
			continue;
		if (n < 4 && !guards && to.guard != n && s->step[k] == to.step[n] * to.dim[n]) {
			to.dim[n] *= s->dim[k];
			continue;
		}
		n--;
		to.dim[n] = s->dim[k];
		to.step[n] = s->step[k];
		to.guard = guards ? n : to.guard;
	}
	for (int k = 0; k < n; k++) {
		to.dim[k] = 1;
		to.step[k] = 0;
	}
	*s = to;
}

/* Divides all distances by v if a thread can copy v elements of the fastest dimension at once. */
static bool widen_units(gt_strided *s, int64_t v, uintptr_t at)
{
	int64_t all = s->dim[3] | s->first;
	for (int k = 0; k < 3; k++)
		all |= s->dim[k] > 1 ? s->step[k] : 0;
	if (s->step[3] != 1 || s->guard == 3 || all % v || at % 16)
		return false;
	s->dim[3] /= v;
	s->first /= v;
	for (int k = 0; k < 3; k++)
		s->step[k] /= v;
	return true;
}

/* Sets *x if a dimension other than the fastest one of the output is contiguous in the input, and both are long enough for tiles. */
static bool find_exchange(const gt_strided &s, exchange *x)
{
	int64_t out[4] = {0, 0, 0, 1};
	int col = -1, n = 0;
	for (int k = 2; k >= 0; k--) {
		out[k] = out[k + 1] * s.dim[k + 1];
		col = s.step[k] == 1 && s.dim[k] > 1 ? k : col;
	}
	if (col < 0 || s.guard >= 0 || s.dim[col] < LEAST || s.dim[3] < LEAST)
		return false;
	*x = {};
	x->rows = s.dim[3], x->cols = s.dim[col], x->row_in = s.step[3], x->col_out = out[col], x->first = s.first;
	for (int k = 0; k < 3; k++)
		if (k != col) {
			x->outer[n] = s.dim[k], x->outer_in[n] = s.step[k], x->outer_out[n] = out[k];
			n++;
		}
	return true;
}

template <class U> static cudaError_t launch_copy(const void *in, void *out, gt_strided how, cudaStream_t s)
{
	exchange x;
	join_dims(&how);
	if (find_exchange(how, &x)) {
		int64_t cols = ceil_div(x.cols, TILE), rows = ceil_div(x.rows, TILE), outer = x.outer[0] * x.outer[1];
		dim3 grid((unsigned)cols, (unsigned)(rows < MAX_YZ ? rows : MAX_YZ), (unsigned)(outer < MAX_YZ ? outer : MAX_YZ));
		return grid_fits(cols) ? launch(exchange_tiles<U>, grid, dim3(TILE, TILE_ROWS), s, (const U *)in, (U *)out, x)
		                       : cudaErrorInvalidValue;
	}
	bool wide = widen_units(&how, 16 / (int64_t)sizeof(U), (uintptr_t)in | (uintptr_t)out);
	int64_t n = how.dim[0] * how.dim[1] * how.dim[2] * how.dim[3], blocks = ceil_div(n, BLOCK);
	if (!grid_fits(blocks))
		return cudaErrorInvalidValue;
	if (wide)
		return launch(copy_strided<uint4>, dim3((unsigned)blocks), dim3(BLOCK), s, (const uint4 *)in, (uint4 *)out, n, how);
	return launch(copy_strided<U>, dim3((unsigned)blocks), dim3(BLOCK), s, (const U *)in, (U *)out, n, how);
}

static const char *refuse_call(const struct gt_opcall *op)
{
	struct gt_strided s;
	return gt_strided_make(op, &s);
}

static cudaError_t start_call(const struct gt_cu_call *c, cudaStream_t s)
{
	struct args {
		const void *in;
		void *out;
	} a = {};
	static const struct gt_operand_slot slots[] = {
	    GT_SLOT_AS(args, "x", in), GT_SLOT_AS(args, "dy", in), GT_SLOT_AS(args, "y", out), GT_SLOT_AS(args, "dx", out)};
	struct gt_strided how;
	if (gt_strided_make(c->op, &how))
		return cudaErrorInvalidValue;
	GT_CU_BIND(c, slots, &a);
	return c->type == GT_CU_F32 ? launch_copy<uint32_t>(a.in, a.out, how, s) : launch_copy<uint16_t>(a.in, a.out, how, s);
}

GT_CU_FAMILY(strided, start_call, NULL, refuse_call, "copy")
