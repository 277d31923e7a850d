/* check: whether the step is applied. One thread: a dozen numbers, and in a step that is skipped those of the steps behind it. */
#include "cuda/device.cuh"

/* ---- kernels --------------------------------------------------------------------------------------------------------------------- */
__global__ void __launch_bounds__(32) check(const gt_attr_check a, gt_scalars *scalars, gt_scaler *scaler, gt_dyn *numbers,
                                             gt_scalars *parts)
{
	if (threadIdx.x == 0)
		gt_check(&a, scalars, scaler, numbers, parts);
}

/* ---- launchers ------------------------------------------------------------------------------------------------------------------- */
cudaError_t gt_cu_check_start(const struct gt_attr_check *a, struct gt_scalars *scalars, struct gt_scaler *scaler, struct gt_dyn *numbers,
                              struct gt_scalars *parts, cudaStream_t s)
{
	return launch(check, dim3(1), dim3(32), s, *a, scalars, scaler, numbers, parts);
}
