/* Data movement by element size: flatten (between NHWC and PyTorch's element order), a transposition through shared memory, and
 * concatenation along dimension 1. */
#include "cuda/device.cuh"

#define TILE 32
#define TILE_ROWS 8
#define BLOCK 256
#define MAX_Z 65535 /* blocks of a grid in y and in z */
#define AHEAD 4     /* rows that a thread of concat reads before it stores the first one */

/* Joins or splits rows of start[nparts] units. Part i has the units start[i] ... start[i + 1] - 1 of every row, with start[0] = 0, and is a
 * separate tensor. A unit has 2, 4 or 16 bytes; every pointer and width is a multiple of it. If join is true, the parts are copied to
 * whole, otherwise whole to the parts; a NULL part is left out. */
struct concat_args {
	void *part[GT_MAX_IO];
	void *whole;
	int64_t start[GT_MAX_IO + 1], rows;
	int nparts;
	bool join;
};

/* ---- kernels --------------------------------------------------------------------------------------------------------------------- */
/* Transposes tiles that are read and written in rows of 32 elements. The extra column avoids bank conflicts of the strided access. */
template <class U>
__global__ void __launch_bounds__(TILE *TILE_ROWS) transpose_tiles(const U *in, U *out, int64_t batch, int64_t rows, int64_t cols)
{
	after_previous();
	__shared__ U tile[TILE][TILE + 1];
	int64_t col0 = (int64_t)blockIdx.x * TILE;
	for (int64_t z = blockIdx.z; z < batch; z += gridDim.z) {
		const U *from = in + z * rows * cols;
		U *to = out + z * rows * cols;
		for (int64_t row0 = (int64_t)blockIdx.y * TILE; row0 < rows; row0 += (int64_t)gridDim.y * TILE) {
			for (int r = (int)threadIdx.y; r < TILE; r += TILE_ROWS)
				if (row0 + r < rows && col0 + threadIdx.x < cols)
					tile[r][threadIdx.x] = from[(row0 + r) * cols + col0 + threadIdx.x];
			__syncthreads();
			for (int c = (int)threadIdx.y; c < TILE; c += TILE_ROWS)
				if (col0 + c < cols && row0 + threadIdx.x < rows)
					to[(col0 + c) * rows + row0 + threadIdx.x] = tile[threadIdx.x][c];
			__syncthreads();
		}
	}
}

/* A thread copies one column of AHEAD rows at a time, so that it needs no division and looks for the column's part once. */
template <class U> __global__ void __launch_bounds__(BLOCK) copy_parts(const concat_args a)
{
	after_previous();
	int64_t width = a.start[a.nparts], col = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, begin = 0, n = 0;
	int64_t row0 = (int64_t)blockIdx.y * blockDim.y + threadIdx.y, step = (int64_t)gridDim.y * blockDim.y;
	U *part = NULL;
#pragma unroll
	for (int k = 0; k < GT_MAX_IO; k++)
		if (k < a.nparts && col >= a.start[k] && col < a.start[k + 1]) {
			part = (U *)a.part[k];
			begin = a.start[k];
			n = a.start[k + 1] - begin;
		}
	if (!part)
		return;
	part += col - begin;
	U *whole = (U *)a.whole + col;
	const U *from = a.join ? part : whole;
	U *to = a.join ? whole : part;
	int64_t from_row = a.join ? n : width, to_row = a.join ? width : n;
	for (int64_t r = row0; r < a.rows; r += step * AHEAD) {
		U u[AHEAD];
#pragma unroll
		for (int k = 0; k < AHEAD; k++)
			if (r + k * step < a.rows)
				u[k] = from[(r + k * step) * from_row];
#pragma unroll
		for (int k = 0; k < AHEAD; k++)
			if (r + k * step < a.rows)
				to[(r + k * step) * to_row] = u[k];
	}
}

/* ---- launchers ------------------------------------------------------------------------------------------------------------------- */
cudaError_t gt_cu_transpose_start(size_t size, const void *in, void *out, int64_t batch, int64_t rows, int64_t cols, cudaStream_t s)
{
	int64_t x = ceil_div(cols, TILE), y = ceil_div(rows, TILE);
	if (!x || !y || !batch)
		return cudaSuccess;
	if (!grid_fits(x) || (size != 2 && size != 4))
		return cudaErrorInvalidValue;
	dim3 grid((unsigned)x, (unsigned)(y < MAX_Z ? y : MAX_Z), (unsigned)(batch < MAX_Z ? batch : MAX_Z)), block(TILE, TILE_ROWS);
	if (size == 2)
		return launch(transpose_tiles<uint16_t>, grid, block, s, (const uint16_t *)in, (uint16_t *)out, batch, rows, cols);
	return launch(transpose_tiles<uint32_t>, grid, block, s, (const uint32_t *)in, (uint32_t *)out, batch, rows, cols);
}

static cudaError_t launch_concat(size_t unit, const concat_args &a, cudaStream_t s)
{
	int64_t width = a.start[a.nparts];
	unsigned tx = 1;
	while (tx < BLOCK && tx < width)
		tx *= 2;
	int64_t x = ceil_div(width, tx), y = ceil_div(a.rows, (BLOCK / tx) * AHEAD);
	dim3 grid((unsigned)x, (unsigned)(y < MAX_Z ? y : MAX_Z)), block(tx, BLOCK / tx);
	if (!x || !y)
		return cudaSuccess;
	if (!grid_fits(x))
		return cudaErrorInvalidValue;
	switch (unit) {
	case 2:
		return launch(copy_parts<uint16_t>, grid, block, s, a);
	case 4:
		return launch(copy_parts<uint32_t>, grid, block, s, a);
	case 16:
		return launch(copy_parts<uint4>, grid, block, s, a);
	}
	return cudaErrorInvalidValue;
}

/* ---- flatten --------------------------------------------------------------------------------------------------------------------- */
static cudaError_t start_flatten(const struct gt_cu_call *c, cudaStream_t s)
{
	bool back = c->op->code == GT_OP_FLATTEN_DX;
	const struct gt_tdesc *x = gt_opcall_operand(c->op, back ? "dx" : "x");
	const void *in = *c->in;
	void *out = *c->out;
	int64_t pixels = 1;
	for (int i = 2; i < x->rank; i++)
		pixels *= x->dim[i];
	if (x->rank == 4 && pixels > 1 && x->dim[1] > 1)
		return gt_cu_transpose_start(gt_dtype_size(x->dtype), in, out, x->dim[0], back ? x->dim[1] : pixels, back ? pixels : x->dim[1], s);
	/* the orders of input and output are the same */
	return in != out ? cudaMemcpyAsync(out, in, gt_tdesc_bytes(x), cudaMemcpyDeviceToDevice, s) : cudaSuccess;
}

/* ---- concat ---------------------------------------------------------------------------------------------------------------------- */
static bool is_concat(int code)
{
	return code == GT_OP_CONCAT || code == GT_OP_CONCAT_DX;
}

/* Sets the sizes in *a, with a->start in elements; the pointers are set by the launch. Returns the reason why the call is refused, or
 * NULL. */
static const char *divide_rows(const struct gt_opcall *op, concat_args *a)
{
	bool back = op->code == GT_OP_CONCAT_DX;
	const struct gt_tdesc *y = gt_opcall_operand(op, back ? "dy" : "y");
	struct gt_tdesc *const *part = back ? op->out : op->in;
	int n = back ? op->nout : op->nin, unknown = -1;
	int64_t width[GT_MAX_IO] = {0}, sum = 0, token = y->rank == 3 ? y->dim[2] : 1;
	for (int i = 0; i < n; i++) {
		if (!part[i]) {
			if (unknown >= 0)
				return "at most one part may be absent";
			unknown = i;
			continue;
		}
		width[i] = part[i]->dim[1];
		sum += width[i];
	}
	if (unknown >= 0 && back && sum < y->dim[1])
		width[unknown] = y->dim[1] - sum;
	else if (unknown >= 0 || sum != y->dim[1])
		return "the widths of the parts do not add up to the whole width";
	*a = {};
	a->rows = gt_tdesc_count(y) / (y->dim[1] * token);
	a->nparts = n;
	a->join = !back;
	for (int i = 0; i < n; i++)
		a->start[i + 1] = a->start[i] + width[i] * token;
	return NULL;
}

static cudaError_t start_concat(const struct gt_cu_call *c, cudaStream_t s)
{
	concat_args a;
	if (divide_rows(c->op, &a))
		return cudaErrorInvalidValue;
	void *const *parts = a.join ? c->in : c->out;
	a.whole = a.join ? *c->out : *c->in;
	int64_t size = (int64_t)gt_dtype_size(gt_opcall_operand(c->op, a.join ? "y" : "dy")->dtype);
	uintptr_t at = (uintptr_t)a.whole;
	for (int i = 0; i < a.nparts; i++) {
		a.part[i] = (a.join ? c->op->in[i] : c->op->out[i]) ? parts[i] : NULL;
		at |= (uintptr_t)a.part[i] | (uintptr_t)(a.start[i + 1] * size);
	}
	int64_t unit = at % 16 == 0 ? 16 : at % 4 == 0 ? 4 : 2;
	for (int i = 0; i <= a.nparts; i++)
		a.start[i] = a.start[i] * size / unit;
	return launch_concat((size_t)unit, a, s);
}

/* ---- calls ----------------------------------------------------------------------------------------------------------------------- */
static const char *refuse_call(const struct gt_opcall *op)
{
	concat_args a;
	if (is_concat(op->code))
		return divide_rows(op, &a);
	return gt_tdesc_count(gt_opcall_input(op)) == gt_tdesc_count(gt_opcall_output(op)) ? NULL : "the number of output elements differs";
}

static const char *name_variant(const struct gt_opcall *op)
{
	return is_concat(op->code) ? "copy" : "transpose";
}

static cudaError_t start_call(const struct gt_cu_call *c, cudaStream_t s)
{
	return is_concat(c->op->code) ? start_concat(c, s) : start_flatten(c, s);
}

GT_CU_FAMILY(shape, start_call, NULL, refuse_call, NULL, NULL, NULL, name_variant)
