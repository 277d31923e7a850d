/* The losses. A team of threads computes the loss and the rank of one row and stores them in the scratch memory. The last
 * block adds them up in a fixed order. */
#include "cuda/loss.cuh"

/* ---- kernels --------------------------------------------------------------------------------------------------------------------- */
template <class S, class Loss> __global__ void __launch_bounds__(TEAM_BLOCK) loss_rows(const gt_cu_loss a, int team)
{
	after_previous();
	int64_t r = (int64_t)blockIdx.x * (TEAM_BLOCK / team) + threadIdx.x / team;
	if (r < a.rows)
		loss_row<S, Loss>(a, r, (int)threadIdx.x % team, team);
	if (last_of(a.counter, gridDim.x))
		loss_total(a);
}

/* Losses, and calls with weights or numbers as targets, that loss_row does not compute. */
template <class S> __global__ void __launch_bounds__(TEAM_BLOCK) other_rows(const gt_cu_loss a, int code, int team)
{
	after_previous();
	int64_t r = (int64_t)blockIdx.x * (TEAM_BLOCK / team) + threadIdx.x / team;
	if (r < a.rows)
		other_row<S>(a, code, r, (int)threadIdx.x % team, team);
	if (last_of(a.counter, gridDim.x))
		loss_total(a);
}

/* ---- launchers ------------------------------------------------------------------------------------------------------------------- */
typedef void loss_fn(const gt_cu_loss, int);

template <class S> static loss_fn *find_kernel(int code)
{
	switch (code) {
	case GT_OP_CROSS_ENTROPY:
		return loss_rows<S, loss_cross_entropy>;
	case GT_OP_NLL:
		return loss_rows<S, loss_nll>;
	case GT_OP_MSE:
		return loss_rows<S, loss_mse>;
	}
	return NULL;
}

cudaError_t gt_cu_loss_start(int code, int type, const struct gt_cu_loss *a, cudaStream_t s)
{
	int team = team_for(a->cols);
	int64_t blocks = ceil_div(a->rows, TEAM_BLOCK / team);
	loss_fn *fn = OF_TYPE(type, find_kernel)(code);
	if (!grid_fits(blocks))
		return cudaErrorInvalidValue;
	if (!blocks)
		return cudaSuccess;
	if (!fn || a->weights || a->dense)
		return launch(OF_TYPE(type, other_rows), dim3((unsigned)blocks), dim3(TEAM_BLOCK), s, *a, code, team);
	return launch(fn, dim3((unsigned)blocks), dim3(TEAM_BLOCK), s, *a, team);
}
