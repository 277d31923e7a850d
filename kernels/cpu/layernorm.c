/* Layer normalisation over all dimensions but the first, with biased variance and eps inside the root. Activations are contiguous rows of
 * `cols` elements. gamma and beta of a rank-4 call are [C,H,W], plain or with the layout of NHWC. Plain ones are first copied into the
 * order of the activations in the scratch memory, so that the loops over a row are contiguous. */
#include "cpu/loops.h"
#include "ew.h"
#include <stdlib.h>

#define LANES 16
#define COLS 64
#define GT_LANE static inline __attribute__((always_inline))

struct args {
	const void *x, *dy;
	const void *gamma, *beta; /* parameters in the element order of the activations; NULL: the layer has no parameters */
	void *mean, *rstd;
	void *y; /* output y, or gradient dx */
	void *dgamma, *dbeta;
	bool add_gamma, add_beta;
	int64_t rows, cols, channels, pixels; /* pixels is 0 if gamma and beta have the element order of the activations */
	double eps;
};

/* Returns the index in gamma and beta of column j of a row. */
GT_LANE int64_t param_index(const struct args *c, int64_t j)
{
	return c->pixels ? j % c->channels * c->pixels + j / c->channels : j;
}

#define GT_TYPED "cpu/layernorm.inc"
#include "cpu/typed.inc"

#define ROW(op)                                                                                                                            \
	{                                                                                                                                      \
		op##_f32, op##_bf16, op##_f64                                                                                                      \
	}
static gt_range_fn *const run_forward[] = ROW(normalize_rows), *const run_dx[] = ROW(compute_dx),
                          *const run_params[] = ROW(compute_param_grads);
static void (*const run_reorder[])(const struct args *, const void *, void *) = ROW(reorder_param);

struct layernorm {
	struct gt_kernel head;
	struct args shape;
	int type;
	size_t param_bytes; /* number of bytes of gamma */
	bool affine;
	bool dgamma, dbeta;
	bool stats; /* the forward call also writes mean and rstd */
};

static enum gt_code launch_forward(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, struct gt_err *err)
{
	const struct layernorm *k = (const struct layernorm *)kernel;
	struct args c = k->shape;
	(void)err;
	c.x = a->in[0];
	c.y = a->out[0];
	if (k->stats) {
		c.mean = a->out[1];
		c.rstd = a->out[2];
	}
	if (k->affine) {
		c.gamma = a->in[1];
		c.beta = a->in[2];
		if (c.pixels) {
			run_reorder[k->type](&c, c.gamma, a->scratch);
			run_reorder[k->type](&c, c.beta, (char *)a->scratch + k->param_bytes);
			c.gamma = a->scratch;
			c.beta = (char *)a->scratch + k->param_bytes;
		}
	}
	gt_cpu_for(dev, c.rows, 16384 / c.cols + 1, 1, run_forward[k->type], &c);
	return GT_OK;
}

static enum gt_code launch_backward(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, struct gt_err *err)
{
	const struct layernorm *k = (const struct layernorm *)kernel;
	struct args c = k->shape;
	(void)err;
	c.dy = a->in[0];
	c.x = a->in[1];
	c.mean = a->in[3];
	c.rstd = a->in[4];
	if (k->affine) { /* the gradients of gamma and beta are computed before dx, which may overwrite dy */
		c.dgamma = k->dgamma ? a->out[1] : NULL;
		c.dbeta = k->dbeta ? a->out[2] : NULL;
		if (c.dgamma || c.dbeta)
			gt_cpu_for(dev, c.cols, 16384 / c.rows + 1, COLS, run_params[k->type], &c);
		c.gamma = a->in[2];
		if (c.pixels) {
			run_reorder[k->type](&c, c.gamma, a->scratch);
			c.gamma = a->scratch;
		}
	}
	c.y = a->out[0];
	if (c.y)
		gt_cpu_for(dev, c.rows, 16384 / c.cols + 1, 1, run_dx[k->type], &c);
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
	bool back = call->code == GT_OP_LAYERNORM_DX;
	const struct gt_attr_norm *attr = call->attr;
	const struct gt_tdesc *x = call->in[back];
	struct gt_tdesc *gamma = call->in[back ? 2 : 1];
	struct gt_tdesc *params[2] = {back ? (call->nout > 1 ? call->out[1] : NULL) : call->in[2],
	                              back && call->nout > 2 ? call->out[2] : NULL};
	int type = gt_cpu_type(x->dtype), order = 1;
	struct layernorm *k;
	(void)dev;
	if (gamma) {
		order = param_order(x, gamma);
		for (int i = 0; i < 2; i++)
			if (params[i] && param_order(x, params[i]) != order)
				order = -1;
		if (order < 0 || (!back && !params[0]))
			return gt_cpu_refuse(call, err, "gamma, beta and their gradients must have the same layout, plain or channels last");
	}
	GT_KERNEL_NEW(k, back ? launch_backward : launch_forward, "loop", err);
	k->type = type;
	k->affine = gamma != NULL;
	k->stats = !back && call->nout > 2 && call->out[1] && call->out[2];
	k->dgamma = back && params[0];
	k->dbeta = back && params[1];
	k->shape.rows = x->dim[0];
	k->shape.cols = gt_tdesc_count(x) / x->dim[0];
	k->shape.eps = attr->eps;
	k->shape.add_gamma = back && (call->accumulate & 2);
	k->shape.add_beta = back && (call->accumulate & 4);
	if (order == 0) {
		k->shape.channels = x->dim[1];
		k->shape.pixels = x->dim[2] * x->dim[3];
		k->param_bytes = gt_tdesc_bytes(gamma);
		k->head.scratch = k->param_bytes * (back ? 1 : 2);
	}
	*out = &k->head;
	return GT_OK;
}
