/* Kernels around cuDNN's attention, which requires lengths of at least one token (cuda_attention.c). */
#include "cuda/device.cuh"

#define BLOCK 256
#define SAMPLE_BLOCKS 8 /* blocks that share a sample */

/* ---- kernels --------------------------------------------------------------------------------------------------------------------- */
__global__ void __launch_bounds__(BLOCK)
    limit_lengths(const int32_t *lengths, int32_t samples, int32_t tokens, int32_t *all, int32_t *limited)
{
	after_previous();
	int32_t i = (int32_t)(blockIdx.x * BLOCK + threadIdx.x);
	if (i >= samples)
		return;
	int32_t n = lengths[i];
	all[i] = tokens;
	limited[i] = n < 1 ? 1 : n > tokens ? tokens : n;
}

/* A block writes its part of sample blockIdx.x. */
__global__ void __launch_bounds__(BLOCK) empty_samples(const int32_t *lengths, int64_t n, int64_t rows, uint16_t *y, float *lse)
{
	after_previous();
	if (lengths[blockIdx.x] > 0)
		return;
	int64_t begin = (int64_t)blockIdx.y * BLOCK + threadIdx.x;
	y += blockIdx.x * n;
	lse += blockIdx.x * rows;
	for (int64_t i = begin; i < n; i += SAMPLE_BLOCKS * BLOCK)
		y[i] = 0;
	for (int64_t i = begin; i < rows; i += SAMPLE_BLOCKS * BLOCK)
		lse[i] = INFINITY;
}

/* Blocks blockIdx.y share the tokens of sample blockIdx.x; a row of a token is 3 vectors of cols / 8. */
__global__ void __launch_bounds__(BLOCK) zero_padding(const int32_t *lengths, int64_t tokens, int32_t cols, uint4 *dqkv)
{
	after_previous();
	int32_t length = lengths[blockIdx.x];
	int32_t skip = length > 0 ? cols : 0; /* of padding tokens, clears dk and dv, but not dq: their queries attend to the keys */
	dqkv += blockIdx.x * tokens * 3 * cols;
	for (int64_t t = (length > 0 ? length : 0) + blockIdx.y; t < tokens; t += SAMPLE_BLOCKS)
		for (int32_t i = skip + (int32_t)threadIdx.x; i < 3 * cols; i += BLOCK)
			dqkv[t * 3 * cols + i] = make_uint4(0, 0, 0, 0);
}

/* ---- launchers ------------------------------------------------------------------------------------------------------------------- */
cudaError_t gt_cu_limit_lengths_start(const int32_t *lengths, int64_t samples, int64_t tokens, int32_t *all, int32_t *limited,
                                      cudaStream_t s)
{
	if (samples > INT32_MAX - BLOCK || tokens > INT32_MAX)
		return cudaErrorInvalidValue;
	return launch(limit_lengths, dim3((unsigned)ceil_div(samples, BLOCK)), dim3(BLOCK), s, lengths, (int32_t)samples, (int32_t)tokens, all,
	              limited);
}

cudaError_t gt_cu_empty_samples_start(const int32_t *lengths, int64_t samples, int64_t tokens, int64_t cols, int64_t heads, void *y,
                                      float *lse, cudaStream_t s)
{
	if (!grid_fits(samples))
		return cudaErrorInvalidValue;
	return launch(empty_samples, dim3((unsigned)samples, SAMPLE_BLOCKS), dim3(BLOCK), s, lengths, tokens * cols, heads * tokens,
	              (uint16_t *)y, lse);
}

cudaError_t gt_cu_zero_padding_start(const int32_t *lengths, int64_t samples, int64_t tokens, int64_t cols, void *dqkv, cudaStream_t s)
{
	if (!grid_fits(samples) || cols % 8 || 3 * cols > INT32_MAX)
		return cudaErrorInvalidValue;
	return launch(zero_padding, dim3((unsigned)samples, SAMPLE_BLOCKS), dim3(BLOCK), s, lengths, tokens, (int32_t)(cols / 8),
	              (uint4 *)dqkv);
}
