/* The losses. A team of threads computes the loss and the rank of one row and stores them in the scratch memory. The last
 * block adds them up in a fixed order. */
#include "cuda/loss.cuh"

/* ---- kernels --------------------------------------------------------------------------------------------------------------------- */
template <class S, int CODE> __global__ void __launch_bounds__(TEAM_BLOCK) loss_rows(const gt_cu_loss a, int team)
{
	after_previous();
	int64_t r = (int64_t)blockIdx.x * (TEAM_BLOCK / team) + threadIdx.x / team;
	if (r < a.rows)
		loss_row<S, CODE>(a, r, (int)threadIdx.x % team, team);
	if (last_of(a.counter, gridDim.x))
		loss_total(a);
}

/* Calls that loss_row does not compute. */
template <class S, int CODE> __global__ void __launch_bounds__(TEAM_BLOCK) other_rows(const gt_cu_loss a, int team)
{
	after_previous();
	int64_t r = (int64_t)blockIdx.x * (TEAM_BLOCK / team) + threadIdx.x / team;
	if (r < a.rows)
		other_row<S, CODE>(a, r, (int)threadIdx.x % team, team);
	if (last_of(a.counter, gridDim.x))
		loss_total(a);
}

/* ---- launchers ------------------------------------------------------------------------------------------------------------------- */
typedef void loss_fn(const gt_cu_loss, int);

/* labels: the targets are labels, and there are no weights. */
template <class S> static loss_fn *find_kernel(int code, bool labels)
{
	if (labels && code == GT_OP_CROSS_ENTROPY)
		return loss_rows<S, GT_OP_CROSS_ENTROPY>;
	if (labels && code == GT_OP_NLL)
		return loss_rows<S, GT_OP_NLL>;
	if (labels && code == GT_OP_MSE)
		return loss_rows<S, GT_OP_MSE>;
	switch (code) {
#define GT_X(arg, CODE, ...)                                                                                                               \
	case GT_OP_##CODE:                                                                                                                     \
		return other_rows<S, GT_OP_##CODE>;
		GT_LOSSES(GT_X)
#undef GT_X
	}
	return NULL;
}

cudaError_t gt_cu_loss_start(int code, int type, const struct gt_cu_loss *a, cudaStream_t s)
{
	int team = team_for(a->cols);
	int64_t blocks = ceil_div(a->rows, TEAM_BLOCK / team);
	loss_fn *fn = OF_TYPE(type, find_kernel)(code, !a->weights && !a->dense);
	if (!fn || !grid_fits(blocks))
		return cudaErrorInvalidValue;
	return blocks ? launch(fn, dim3((unsigned)blocks), dim3(TEAM_BLOCK), s, *a, team) : cudaSuccess;
}
