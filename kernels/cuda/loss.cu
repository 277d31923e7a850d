/* The losses. A team of threads computes the loss and the rank of one row and stores them in the scratch memory. The last
 * block adds them up in a fixed order. */
#include "cuda/loss.cuh"
#include <stdlib.h>

/* ---- kernels --------------------------------------------------------------------------------------------------------------------- */
template <class S, int V, class Loss> __global__ void __launch_bounds__(TEAM_BLOCK, 6) loss_rows(const loss_args a, int team)
{
	after_previous();
	int64_t r = (int64_t)blockIdx.x * (TEAM_BLOCK / team) + threadIdx.x / team;
	if (r < a.rows)
		loss_row<S, V, Loss>(a, r, (int)threadIdx.x % team, team);
	if (last_of(a.counter, gridDim.x))
		loss_total(a);
}

/* Computes the calls that loss_row does not support: other losses, weights, values as targets. */
template <class S> __global__ void __launch_bounds__(TEAM_BLOCK) other_rows(const loss_args a, int code, int team)
{
	after_previous();
	int64_t r = (int64_t)blockIdx.x * (TEAM_BLOCK / team) + threadIdx.x / team;
	if (r < a.rows)
		other_row<S>(a, code, r, (int)threadIdx.x % team, team);
	if (last_of(a.counter, gridDim.x))
		loss_total(a);
}

/* ---- launchers ------------------------------------------------------------------------------------------------------------------- */
typedef void loss_fn(const loss_args, int);

template <class S, int V> static loss_fn *find_kernel(int code)
{
	switch (code) {
	case GT_OP_CROSS_ENTROPY:
		return loss_rows<S, V, loss_cross_entropy>;
	case GT_OP_NLL:
		return loss_rows<S, V, loss_nll>;
	case GT_OP_MSE:
		return loss_rows<S, V, loss_mse>;
	}
	return NULL;
}

template <class S> static cudaError_t launch_loss(const loss_args &a, int code, cudaStream_t s)
{
	int v = row_vector<S>(a.cols, (uintptr_t)a.x | (uintptr_t)a.dx);
	loss_fn *fn = a.weights || a.dense ? NULL : v == 1 ? find_kernel<S, 1>(code) : find_kernel<S, width<S>::n>(code);
	int team = team_for(fn ? a.cols / v : a.cols);
	int64_t blocks = ceil_div(a.rows, TEAM_BLOCK / team);
	if (!grid_fits(blocks))
		return cudaErrorInvalidValue;
	if (!blocks)
		return cudaSuccess;
	if (!fn)
		return launch(other_rows<S>, dim3((unsigned)blocks), dim3(TEAM_BLOCK), s, a, code, team);
	return launch(fn, dim3((unsigned)blocks), dim3(TEAM_BLOCK), s, a, team);
}

/* ---- calls ----------------------------------------------------------------------------------------------------------------------- */
static const char *refuse_call(const struct gt_opcall *op)
{
	bool dense;
	return gt_loss_check(op, &dense);
}

static size_t scratch_bytes(const struct gt_opcall *op)
{
	return (size_t)gt_opcall_operand(op, "x")->dim[0] * (sizeof(double) + sizeof(int32_t));
}

/* Copies the weights to the device as f32. */
static enum gt_code upload_weights(struct gt_dev *dev, const struct gt_opcall *op, struct gt_cu_table *table, struct gt_err *err)
{
	const struct gt_attr_loss *attr = (const struct gt_attr_loss *)op->attr;
	if (!attr || !attr->nweights)
		return GT_OK;
	size_t bytes = (size_t)attr->nweights * sizeof(float);
	float *w = (float *)malloc(bytes);
	if (!w)
		return gt_fail(err, GT_EFAIL, "out of memory");
	for (int64_t i = 0; i < attr->nweights; i++)
		w[i] = (float)attr->weights[i];
	enum gt_code code = gt_cuda_upload(dev, w, bytes, &table->p, err);
	free(w);
	return code;
}

static cudaError_t start_call(const struct gt_cu_call *c, cudaStream_t s)
{
	static const struct gt_operand_slot slots[] = {GT_SLOTS(loss_args, x, target, scale, metrics, dx)};
	const struct gt_attr_loss *attr = (const struct gt_attr_loss *)c->op->attr;
	const struct gt_tdesc *x = gt_opcall_operand(c->op, "x");
	const struct gt_loss_row *row = gt_loss_row(c->op->code);
	loss_args a = {};
	GT_CU_BIND(c, slots, &a);
	if (gt_opcall_operand(c->op, "target")->dtype == GT_F32)
		a.dense = (const float *)a.target, a.target = NULL;
	a.rows = x->dim[0], a.cols = x->dim[1];
	a.weights = (const float *)c->table->p;
	a.by_class = a.weights && row->weight == GT_WEIGHT_BY_CLASS;
	a.loss = (double *)c->scratch;
	a.rank = (int32_t *)(a.loss + a.rows);
	a.counter = c->counter;
	for (int i = 0; attr && i < row->numbers; i++)
		a.number[i] = attr->number[i];
	a.ignore = attr && gt_loss_has_classes(row) ? attr->ignore_index : INT64_MIN;
	a.fault = c->fault;
	a.step_args = c->step_args;
	return OF_TYPE(c->type, launch_loss)(a, c->op->code, s);
}

GT_CU_FAMILY(loss, start_call, scratch_bytes, refuse_call, "rows", gt_cu_one_counter, gt_cu_always, NULL, upload_weights)
