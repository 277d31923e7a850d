/* The operation check, which decides whether the step is applied. One thread does it: the operands are a dozen numbers, and in a skipped
 * step also the numbers of the steps that follow. If gradients are an operand, the kernel that ends their sum of squares (update.cu) also
 * checks, which saves a kernel in every step. */
#include "cuda/device.cuh"

/* ---- kernels --------------------------------------------------------------------------------------------------------------------- */
__global__ void __launch_bounds__(32) check_step(const gt_cu_check a)
{
	after_previous();
	if (threadIdx.x == 0)
		gt_check(&a.attr, a.scalars, a.scaler, a.numbers, a.parts);
}

/* ---- calls ----------------------------------------------------------------------------------------------------------------------- */
/* Returns the gradients whose squares the call adds up first, or NULL. */
static const struct gt_tdesc *gradients_of(const struct gt_opcall *op)
{
	return op->nin > 4 ? op->in[4] : NULL;
}

static const char *refuse_call(const struct gt_opcall *op)
{
	const struct gt_attr_check *attr = (const struct gt_attr_check *)op->attr;
	if (attr->scaling && (op->nin < 3 || !op->in[2]))
		return "a loss scale needs the arguments of the following steps";
	if (attr->ranks > 1 && (op->nin < 4 || !op->in[3] || op->in[3]->dim[0] != attr->ranks))
		return "with several ranks it needs the scalars of every rank";
	return NULL;
}

static const char *name_variant(const struct gt_opcall *op)
{
	return gradients_of(op) ? "sumsq + check" : "check";
}

static size_t scratch_bytes(const struct gt_opcall *op)
{
	const struct gt_tdesc *g = gradients_of(op);
	return g ? (size_t)(gt_tdesc_padded(g) / GT_CU_CHUNK + 1) * sizeof(double) : 0;
}

static int64_t count_counters(const struct gt_opcall *op)
{
	return gradients_of(op) != NULL;
}

static cudaError_t start_call(const struct gt_cu_call *c, cudaStream_t s)
{
	const struct gt_tdesc *g = gradients_of(c->op);
	gt_cu_check a = {};
	a.attr = *(const struct gt_attr_check *)c->op->attr;
	a.scalars = (struct gt_scalars *)c->in[0];
	a.scaler = (struct gt_scaler *)c->in[1];
	a.numbers = a.attr.scaling ? (struct gt_step_args *)c->in[2] : NULL;
	a.parts = a.attr.ranks > 1 ? (struct gt_scalars *)c->in[3] : NULL;
	if (g)
		return gt_cu_sumsq_check_start((const float *)c->in[4], gt_tdesc_padded(g), (double *)c->scratch, c->counter, &a, s);
	return launch(check_step, dim3(1), dim3(32), s, a);
}

GT_CU_FAMILY(check, start_call, scratch_bytes, refuse_call, NULL, count_counters, NULL, name_variant)
