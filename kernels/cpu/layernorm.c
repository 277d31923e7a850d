/* Layer normalisation over all dimensions but the first, with biased variance and eps inside the root. Activations are contiguous rows of
 * `cols` elements. gamma and beta of a rank-4 call are [C,H,W], plain or with the layout of NHWC. Plain ones are first copied into the
 * order of the activations in the scratch memory, so that the loops over a row are contiguous. */
#include "cpu/bf16_rows.h"
#include "cpu/loops.h"
#include "cpu/sized.h"
#include "ew.h"
#include <math.h>
#include <string.h>

#define LANES 16
#define GRAIN 64 /* columns of the smallest piece that a thread sums */
#define COLS 256 /* columns whose sums, or results before they are rounded to bf16, are on the stack */
#define GT_LANE static inline __attribute__((always_inline))

struct layernorm {
	struct gt_cpu_loop loop; /* over rows */
	const void *x, *dy;
	/* during a launch, the parameters in the element order of the activations; NULL: the layer has no parameters */
	const void *gamma, *beta;
	void *mean, *rstd; /* outputs of the forward operation, NULL if they are absent; operands of the gradient */
	void *y, *dx, *dgamma, *dbeta;
	bool add_gamma, add_beta;
	int64_t rows, cols, channels, pixels; /* pixels is 0 if gamma and beta have the element order of the activations */
	double eps;
	size_t param_bytes, param_size; /* number of bytes of gamma, and of one of its elements */
	gt_range_fn *params; /* the function that computes the gradients of gamma and beta */
};

static const struct gt_operand_slot slots[] = {GT_SLOTS(layernorm, x, dy, gamma, beta, mean, rstd, y, dx, dgamma, dbeta)};

/* Returns the index in gamma and beta of column j of a row. */
GT_LANE int64_t param_index(const struct layernorm *c, int64_t j)
{
	return c->pixels ? j % c->channels * c->pixels + j / c->channels : j;
}

#if defined(__x86_64__)
#include <immintrin.h>
#endif
#define GT_SIZED_LOOPS "cpu/layernorm.inc"
#include "cpu/sized.inc"

/* The functions for one size of vectors, by type. */
struct loops {
	gt_range_fn *forward[GT_T_COUNT], *dx[GT_T_COUNT], *params[GT_T_COUNT];
};

#define LOOPS(bytes)                                                                                                                       \
	{                                                                                                                                      \
		GT_SIZED_TYPES(normalize_rows, bytes), GT_SIZED_TYPES(compute_dx, bytes), GT_SIZED_TYPES(compute_param_grads, bytes)               \
	}
GT_SIZED_CHOOSE(loops, LOOPS)

/* Copies gamma or beta from plain [C, H, W] to the order of the activations. */
static void reorder_param(const struct layernorm *c, const void *from, void *to)
{
	for (int64_t j = 0; j < c->cols; j++)
		memcpy((char *)to + (size_t)j * c->param_size, (const char *)from + (size_t)param_index(c, j) * c->param_size, c->param_size);
}

/* Copies a parameter that has another element order to the scratch memory, in the order of the activations. */
static const void *in_order(const struct layernorm *k, const void *param, void *to)
{
	if (!param || !k->pixels)
		return param;
	reorder_param(k, param, to);
	return to;
}

static enum gt_code launch_forward(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, struct gt_err *err)
{
	struct layernorm *k = gt_cpu_loop_bind(kernel, a);
	(void)err;
	if (!k->mean || !k->rstd)
		k->mean = NULL;
	k->gamma = in_order(k, k->gamma, a->scratch);
	k->beta = in_order(k, k->beta, (char *)a->scratch + k->param_bytes);
	gt_cpu_for(dev, k->rows, k->loop.grain, 1, k->loop.fn, k);
	return GT_OK;
}

static enum gt_code launch_backward(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, struct gt_err *err)
{
	struct layernorm *k = gt_cpu_loop_bind(kernel, a);
	(void)err;
	if (k->dgamma || k->dbeta) /* computed before dx, because dx may overwrite dy */
		gt_cpu_for(dev, k->cols, 16384 / k->rows + 1, GRAIN, k->params, k);
	k->gamma = in_order(k, k->gamma, a->scratch);
	if (k->dx)
		gt_cpu_for(dev, k->rows, k->loop.grain, 1, k->loop.fn, k);
	return GT_OK;
}

/* Returns the element order of a parameter: 1 for the order of the activations, 0 for plain [C,H,W] with activations in NHWC, -1 for any
 * other order. */
static int param_order(const struct gt_tdesc *x, struct gt_tdesc *p)
{
	static const uint8_t hwc[3] = {1, 2, 0};
	bool trivial = x->rank < 4 || x->dim[1] == 1 || x->dim[2] * x->dim[3] == 1;
	if (p->any) {
		*p = gt_tdesc_make(p->dtype, p->rank, p->dim, false);
		for (int i = 0; i < 3 && p->rank == 3; i++)
			p->layout.order[i] = hwc[i];
	}
	if (p->layout.nblk)
		return -1;
	if (gt_tdesc_plain(p))
		return trivial;
	return p->rank == 3 && !memcmp(p->layout.order, hwc, sizeof hwc) ? 1 : -1;
}

enum gt_code gt_cpu_layernorm(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct loops *loops = choose_loops();
	bool back = call->code == GT_OP_LAYERNORM_DX;
	const struct gt_attr_norm *attr = call->attr;
	const struct gt_tdesc *x = gt_opcall_operand(call, "x");
	struct gt_tdesc *gamma = gt_opcall_operand(call, "gamma"), *beta = gt_opcall_operand(call, "beta");
	struct gt_tdesc *params_of[] = {beta, gt_opcall_operand(call, "dgamma"), gt_opcall_operand(call, "dbeta")};
	int type = gt_cpu_type(x->dtype), order = 1;
	struct layernorm *k;
	(void)dev;
	if (gamma) {
		order = param_order(x, gamma);
		for (int i = 0; i < 3; i++)
			if (params_of[i] && param_order(x, params_of[i]) != order)
				order = -1;
		if (order < 0 || (!back && !beta))
			return gt_opcall_refuse(call, err, "gamma, beta and their gradients must have the same layout, plain or channels last");
	}
	GT_LOOP_NEW(k, slots, call, "loop", err);
	k->loop.head.launch = back ? launch_backward : launch_forward;
	k->rows = x->dim[0];
	k->cols = gt_tdesc_count(x) / x->dim[0];
	gt_cpu_loop_over(&k->loop, back ? loops->dx[type] : loops->forward[type], k->rows, 16384 / k->cols + 1);
	k->params = loops->params[type];
	k->eps = attr->eps;
	k->add_gamma = gt_opcall_adds(call, "dgamma");
	k->add_beta = gt_opcall_adds(call, "dbeta");
	if (order == 0) {
		k->channels = x->dim[1];
		k->pixels = x->dim[2] * x->dim[3];
		k->param_bytes = gt_tdesc_bytes(gamma);
		k->param_size = gt_dtype_size(gamma->dtype);
		k->loop.head.scratch = k->param_bytes * (back ? 1 : 2);
	}
	*out = &k->loop.head;
	return GT_OK;
}
