/* mlp.steps: the smaller kernel (mlp_kernel.cuh), the choice among both, and their launch. */
#include "cuda/mlp_kernel.cuh"

/* Returns the kernel of a division; NULL: there is none. */
static mlp_kernel *find(const struct gt_mlp_division *d)
{
	if (d->rows < 1 || d->rows > GT_MLP_ROWS)
		return NULL;
	if (d->more)
		return gt_cu_mlp_more(d->rows);
	return d->rows <= 32 ? mlp_steps<1, false> : d->rows <= 64 ? mlp_steps<2, false> : NULL;
}

cudaError_t gt_cu_mlp_check(const struct gt_mlp_division *d, const struct gt_mlp_card *card)
{
	mlp_kernel *fn = find(d);
	int each;
	if (!fn)
		return cudaErrorInvalidValue;
	/* The limit belongs to the kernel and not to the division, so it is the same for all divisions: a smaller one would make launches of a
	 * division fail that was checked before. */
	cudaError_t e = cudaFuncSetAttribute(fn, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)(card->shared - GT_MLP_RESERVED));
	if (e == cudaSuccess)
		e = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, fn, BLOCK, d->shared);
	return e != cudaSuccess ? e : each * card->sms < d->blocks ? cudaErrorCooperativeLaunchTooLarge : cudaSuccess;
}

cudaError_t gt_cu_mlp_start(const struct gt_cu_mlp *a, cudaStream_t s)
{
	mlp_kernel *fn = find(&a->d);
	if (!fn || !has_step(a->update_code, a->d.nstates))
		return cudaErrorInvalidValue;
	cudaError_t e = cudaMemsetAsync(a->work, 0, GT_MLP_HEAD * sizeof(uint32_t), s);
	return e == cudaSuccess ? launch_together(fn, dim3((unsigned)a->d.blocks), dim3(BLOCK), a->d.shared, s, *a) : e;
}
