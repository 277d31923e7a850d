/* The operation check, which decides whether the step is applied. One thread does it: the operands are a dozen numbers, and in a skipped
 * step also the numbers of the steps that follow. */
#include "cuda/device.cuh"

/* ---- kernels --------------------------------------------------------------------------------------------------------------------- */
__global__ void __launch_bounds__(32) check(const gt_cu_check a)
{
	after_previous();
	if (threadIdx.x == 0)
		gt_check(&a.attr, a.scalars, a.scaler, a.numbers, a.parts);
}

/* ---- launchers ------------------------------------------------------------------------------------------------------------------- */
cudaError_t gt_cu_check_start(const struct gt_cu_check *a, cudaStream_t s)
{
	return launch(check, dim3(1), dim3(32), s, *a);
}
