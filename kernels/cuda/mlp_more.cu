/* mlp.steps: the larger kernel (gt_mlp_division.more). It has a file of its own so that two jobs of make compile both kernels. */
#include "cuda/mlp_kernel.cuh"

mlp_kernel *gt_cu_mlp_more(int rows)
{
	return rows <= 32 ? mlp_steps<1, true> : rows <= 64 ? mlp_steps<2, true> : mlp_steps<4, true>;
}
