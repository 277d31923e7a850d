/* The operation check, which decides whether the step is applied. One thread suffices: the operands are a dozen values and, in a skipped
 * step, the values of the queued steps. If gradients are an operand, the kernel that computes their sum of squares (update.cu) also does
 * the check, which saves a kernel in every step. */
#include "cuda/device.cuh"

/* ---- kernels --------------------------------------------------------------------------------------------------------------------- */
__global__ void __launch_bounds__(32) check_step(const gt_cu_check a)
{
	after_previous();
	if (threadIdx.x == 0)
		gt_check(&a.attr, a.scalars, a.scaler, a.numbers, a.parts);
}

/* ---- calls ----------------------------------------------------------------------------------------------------------------------- */
/* Returns the gradients (operand g) whose sum of squares the call computes before the check; NULL: the call has no operand g. */
static const struct gt_tdesc *gradients_of(const struct gt_opcall *op)
{
	return gt_opcall_operand(op, "g");
}

static const char *refuse_call(const struct gt_opcall *op)
{
	const struct gt_attr_check *attr = (const struct gt_attr_check *)op->attr;
	const struct gt_tdesc *parts = gt_opcall_operand(op, "parts");
	if (attr->scaling && !gt_opcall_operand(op, "numbers"))
		return "a loss scale needs the arguments of the following steps";
	if (attr->ranks > 1 && (!parts || parts->dim[0] != attr->ranks))
		return "with several ranks, the scalars of every rank are required";
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
	struct args {
		gt_cu_check check;
		const float *g;
	} a = {};
	static const struct gt_operand_slot slots[] = {
	    GT_SLOT_AS(args, "g", g), GT_SLOT_AS(args, "scalars", check.scalars), GT_SLOT_AS(args, "scaler", check.scaler),
	    GT_SLOT_AS(args, "numbers", check.numbers), GT_SLOT_AS(args, "parts", check.parts)};
	const struct gt_tdesc *g = gradients_of(c->op);
	GT_CU_BIND(c, slots, &a);
	a.check.attr = *(const struct gt_attr_check *)c->op->attr;
	if (!a.check.attr.scaling)
		a.check.numbers = NULL;
	if (a.check.attr.ranks <= 1)
		a.check.parts = NULL;
	if (g)
		return gt_cu_sumsq_check_start(a.g, gt_tdesc_padded(g), (double *)c->scratch, c->counter, &a.check, s);
	return launch(check_step, dim3(1), dim3(32), s, a.check);
}

GT_CU_FAMILY(check, start_call, scratch_bytes, refuse_call, NULL, count_counters, NULL, name_variant)
