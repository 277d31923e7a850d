/* Data movement by element size: transposition through shared memory, and concatenation. */
#include "cuda/device.cuh"

#define TILE 32
#define TILE_ROWS 8
#define BLOCK 256
#define MAX_Z 65535

/* ---- kernels --------------------------------------------------------------------------------------------------------------------- */
/* Transposes tiles that are read and written in rows of 32 elements. The extra column avoids bank conflicts of the strided access. */
template <class U>
__global__ void __launch_bounds__(TILE *TILE_ROWS) transpose(const U *in, U *out, int64_t batch, int64_t rows, int64_t cols)
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

template <class U> __global__ void __launch_bounds__(BLOCK) concat(const gt_cu_concat a)
{
	after_previous();
	int64_t width = a.start[a.nparts], i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
	if (i >= a.rows * width)
		return;
	int64_t row = i / width, col = i - row * width, begin = 0, n = 0;
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
	U *p = part + row * n + (col - begin), *whole = (U *)a.whole + i;
	if (a.join)
		*whole = *p;
	else
		*p = *whole;
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
		return launch(transpose<uint16_t>, grid, block, s, (const uint16_t *)in, (uint16_t *)out, batch, rows, cols);
	return launch(transpose<uint32_t>, grid, block, s, (const uint32_t *)in, (uint32_t *)out, batch, rows, cols);
}

cudaError_t gt_cu_concat_start(size_t unit, const struct gt_cu_concat *a, cudaStream_t s)
{
	int64_t blocks = ceil_div(a->rows * a->start[a->nparts], BLOCK);
	if (!blocks)
		return cudaSuccess;
	if (!grid_fits(blocks))
		return cudaErrorInvalidValue;
	switch (unit) {
	case 2:
		return launch(concat<uint16_t>, dim3((unsigned)blocks), dim3(BLOCK), s, *a);
	case 4:
		return launch(concat<uint32_t>, dim3((unsigned)blocks), dim3(BLOCK), s, *a);
	case 16:
		return launch(concat<uint4>, dim3((unsigned)blocks), dim3(BLOCK), s, *a);
	}
	return cudaErrorInvalidValue;
}
