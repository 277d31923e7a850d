/* Own kernels for cuDNN's convolutions: widen converts 16-bit gradients of weights to f32, noise writes random operands for trials. For
 * images with padded channels, pad_rows pads the weights, and widen_rows converts the gradients and leaves out the padding. */
#include "cuda/device.cuh"

/* ---- kernels --------------------------------------------------------------------------------------------------------------------- */
/* A thread converts one vector of 16 bytes. */
template <class S> __global__ void __launch_bounds__(256) widen_elements(const void *x, float *out, int64_t n, bool add)
{
	after_previous();
	constexpr int V = width<S>::n;
	int64_t i = ((int64_t)blockIdx.x * 256 + threadIdx.x) * V;
	float v[V];
	if (i >= n)
		return;
	load_vector<S>(v, x, i, n, true, 0);
#pragma unroll
	for (int j = 0; j < V; j++)
		if (i + j < n)
			out[i + j] = add ? out[i + j] + v[j] : v[j];
}

template <class S>
__global__ void __launch_bounds__(256) widen_rows(const void *x, int32_t ld, float *out, int32_t n, int32_t cols, bool add)
{
	after_previous();
	uint32_t i = blockIdx.x * 256 + threadIdx.x, row = i / (uint32_t)cols;
	if (i >= (uint32_t)n)
		return;
	float v = to_float(((const S *)x)[(int64_t)row * ld + (i - row * (uint32_t)cols)]);
	out[i] = add ? out[i] + v : v;
}

/* A thread writes one vector of 8 elements; a row has `each` vectors. */
__global__ void __launch_bounds__(256) pad_rows(const uint16_t *x, int32_t cols, uint4 *y, int32_t each, int32_t n)
{
	after_previous();
	int32_t i = (int32_t)(blockIdx.x * 256 + threadIdx.x), row = i / each, from = (i - row * each) * 8;
	uint32_t v[4] = {};
	if (i >= n)
		return;
#pragma unroll
	for (int j = 0; j < 8; j++)
		if (from + j < cols)
			v[j / 2] |= (uint32_t)x[(int64_t)row * cols + from + j] << 16 * (j % 2);
	y[i] = make_uint4(v[0], v[1], v[2], v[3]);
}

template <class S> __global__ void __launch_bounds__(256) fill_noise(void *x, int64_t n, uint32_t seed)
{
	after_previous();
	constexpr int V = width<S>::n;
	int64_t i = ((int64_t)blockIdx.x * 256 + threadIdx.x) * V;
	float v[V];
	if (i >= n)
		return;
#pragma unroll
	for (int j = 0; j < V; j++) {
		uint32_t h = (uint32_t)(i + j) * 0x9e3779b9u + seed; /* the hash is the last part of murmur3 */
		h = (h ^ h >> 16) * 0x85ebca6bu;
		h = (h ^ h >> 13) * 0xc2b2ae35u;
		v[j] = (float)(int32_t)(h ^ h >> 16) * 0x1p-31f;
	}
	store_vector<S>(x, v, i, n, true);
}

/* ---- launchers ------------------------------------------------------------------------------------------------------------------- */
cudaError_t gt_cu_widen_start(int type, const void *x, float *out, int64_t n, bool add, cudaStream_t s)
{
	int64_t blocks = ceil_div(n, 256 * (type == GT_CU_F32 ? 4 : 8));
	if (!blocks)
		return cudaSuccess;
	if (!grid_fits(blocks))
		return cudaErrorInvalidValue;
	return launch(OF_TYPE(type, widen_elements), dim3((unsigned)blocks), dim3(256), s, x, out, n, add);
}

cudaError_t gt_cu_widen_rows_start(int type, const void *x, int32_t ld, float *out, int64_t rows, int32_t cols, bool add, cudaStream_t s)
{
	int64_t blocks = ceil_div(rows * cols, 256);
	if (!blocks)
		return cudaSuccess;
	if (type == GT_CU_F32 || rows * ld > INT32_MAX)
		return cudaErrorInvalidValue;
	return launch(type == GT_CU_BF16 ? widen_rows<bf16> : widen_rows<f16>, dim3((unsigned)blocks), dim3(256), s, x, ld, out,
	              (int32_t)(rows * cols), cols, add);
}

cudaError_t gt_cu_pad_rows_start(const void *x, int32_t cols, void *y, int32_t ld, int64_t rows, cudaStream_t s)
{
	int64_t blocks = ceil_div(rows * ld / 8, 256);
	if (!blocks)
		return cudaSuccess;
	if (ld % 8 || rows * ld > INT32_MAX)
		return cudaErrorInvalidValue;
	return launch(pad_rows, dim3((unsigned)blocks), dim3(256), s, (const uint16_t *)x, cols, (uint4 *)y, ld / 8, (int32_t)(rows * ld / 8));
}

cudaError_t gt_cu_noise_start(int type, void *x, int64_t n, uint32_t seed, cudaStream_t s)
{
	int64_t blocks = ceil_div(n, 256 * (type == GT_CU_F32 ? 4 : 8));
	if (!blocks)
		return cudaSuccess;
	if (!grid_fits(blocks))
		return cudaErrorInvalidValue;
	return launch(OF_TYPE(type, fill_noise), dim3((unsigned)blocks), dim3(256), s, x, n, seed);
}
