/* views.mean: the weighted mean of the views of each sample. A thread computes one element of the output; the sum is f32. */
#include "cuda/device.cuh"
#include "aug.h"

#define BLOCK 256

/* ---- kernels --------------------------------------------------------------------------------------------------------------------- */
template <class S> __global__ void __launch_bounds__(BLOCK) views_mean(const S *x, S *y, int64_t n, int views)
{
	after_previous();
	int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
	float sum = 0;
	if (i >= n)
		return;
	for (int v = 0; v < views; v++)
		sum += gt_aug_view_weight(views, v) * to_float(x[v * n + i]);
	y[i] = from_float<S>(sum);
}

/* ---- launchers ------------------------------------------------------------------------------------------------------------------- */
cudaError_t gt_cu_views_start(int type, const void *x, void *y, int64_t n, int views, cudaStream_t s)
{
	int64_t blocks = ceil_div(n, BLOCK);
	dim3 grid((unsigned)blocks);
	if (!blocks)
		return cudaSuccess;
	if (!grid_fits(blocks))
		return cudaErrorInvalidValue;
	if (type == GT_CU_F32)
		return launch(views_mean<float>, grid, dim3(BLOCK), s, (const float *)x, (float *)y, n, views);
	if (type == GT_CU_F16)
		return launch(views_mean<f16>, grid, dim3(BLOCK), s, (const f16 *)x, (f16 *)y, n, views);
	return launch(views_mean<bf16>, grid, dim3(BLOCK), s, (const bf16 *)x, (bf16 *)y, n, views);
}
