/* Kernels beside cuDNN's convolutions: widen converts 16-bit gradients of weights to f32, noise writes random operands for trials. */
#include "cuda/device.cuh"

/* ---- kernels --------------------------------------------------------------------------------------------------------------------- */
/* A thread converts one vector of 16 bytes. */
template <class S> __global__ void __launch_bounds__(256) widen(const void *x, float *out, int64_t n, bool add)
{
	after_previous();
	constexpr int V = width<S>::n;
	int64_t i = ((int64_t)blockIdx.x * 256 + threadIdx.x) * V;
	float v[V];
	if (i >= n)
		return;
	load<S>(v, x, i, n, true, 0);
#pragma unroll
	for (int j = 0; j < V; j++)
		if (i + j < n)
			out[i + j] = add ? out[i + j] + v[j] : v[j];
}

template <class S> __global__ void __launch_bounds__(256) noise(void *x, int64_t n, uint32_t seed)
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
	store<S>(x, v, i, n, true);
}

/* ---- launchers ------------------------------------------------------------------------------------------------------------------- */
cudaError_t gt_cu_widen_start(int type, const void *x, float *out, int64_t n, bool add, cudaStream_t s)
{
	int64_t blocks = ceil_div(n, 256 * (type == GT_CU_F32 ? 4 : 8));
	if (!blocks)
		return cudaSuccess;
	if (!grid_fits(blocks))
		return cudaErrorInvalidValue;
	return launch(OF_TYPE(type, widen), dim3((unsigned)blocks), dim3(256), s, x, out, n, add);
}

cudaError_t gt_cu_noise_start(int type, void *x, int64_t n, uint32_t seed, cudaStream_t s)
{
	int64_t blocks = ceil_div(n, 256 * (type == GT_CU_F32 ? 4 : 8));
	if (!blocks)
		return cudaSuccess;
	if (!grid_fits(blocks))
		return cudaErrorInvalidValue;
	return launch(OF_TYPE(type, noise), dim3((unsigned)blocks), dim3(256), s, x, n, seed);
}
