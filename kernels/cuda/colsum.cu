/* Column sums: the gradient of a bias. A block owns 32 columns; its 8 warps take every eighth row, in order, and are added in order. */
#include "cuda/device.cuh"

#define COLS 32
#define LANES 8

/* ---- kernels --------------------------------------------------------------------------------------------------------------------- */
template <class S> __global__ void __launch_bounds__(COLS *LANES) colsum(const void *data, float *out, int64_t rows, int64_t cols, bool add)
{
	__shared__ float part[LANES][COLS];
	const S *x = (const S *)data;
	int64_t c = (int64_t)blockIdx.x * COLS + threadIdx.x;
	float sum = 0;
	if (c < cols)
#pragma unroll 4
		for (int64_t r = threadIdx.y; r < rows; r += LANES)
			sum += to_float(x[r * cols + c]);
	part[threadIdx.y][threadIdx.x] = sum;
	__syncthreads();
	if (threadIdx.y || c >= cols)
		return;
#pragma unroll
	for (int i = 1; i < LANES; i++)
		sum += part[i][threadIdx.x];
	out[c] = add ? out[c] + sum : sum;
}

/* ---- launchers ------------------------------------------------------------------------------------------------------------------- */
cudaError_t gt_cu_colsum_start(int type, const void *x, float *out, int64_t rows, int64_t cols, bool add, cudaStream_t s)
{
	int64_t blocks = ceil_div(cols, COLS);
	dim3 grid((unsigned)blocks), block(COLS, LANES);
	if (!blocks)
		return cudaSuccess;
	if (!grid_fits(blocks))
		return cudaErrorInvalidValue;
	return launch(OF_TYPE(type, colsum), grid, block, s, x, out, rows, cols, add);
}
