/* Batch and layer normalisation. */
#include "cuda/cuda_internal.h"
#include "moments.h"
#include <stdlib.h>
#include <string.h>

/* The operand, NULL where it is absent. */
static struct gt_tdesc *input(const struct gt_opcall *call, int i)
{
	return i < call->nin ? call->in[i] : NULL;
}

static struct gt_tdesc *output(const struct gt_opcall *call, int i)
{
	return i < call->nout ? call->out[i] : NULL;
}

/* Rank 4 is NHWC, rank 2 plain. */
static bool standard(const struct gt_tdesc *d)
{
	struct gt_tdesc want = gt_tdesc_make(d->dtype, d->rank, d->dim, true);
	return (d->rank == 2 || d->rank == 4) && gt_cuda_type(d->dtype) >= 0 && d->dim[1] > 0 && gt_tdesc_equal(d, &want);
}

/* Absent, or like x; a layout that is open becomes x's. */
static bool like(struct gt_tdesc *d, const struct gt_tdesc *x)
{
	if (d && d->any)
		d->layout = x->layout, d->any = false;
	return !d || gt_tdesc_equal(d, x);
}

/* Absent, or n numbers of f32. */
static bool table(const struct gt_tdesc *d, int64_t n)
{
	return !d || (d->dtype == GT_F32 && gt_tdesc_padded(d) == n && gt_tdesc_count(d) == n);
}

/* Absent, or f64 [3, n]. */
static bool part(const struct gt_tdesc *d, int64_t n)
{
	return !d || (d->dtype == GT_F64 && d->rank == 2 && d->dim[0] == 3 && d->dim[1] == n && gt_tdesc_padded(d) == 3 * n);
}

/* ---- batchnorm ------------------------------------------------------------------------------------------------------------------- */
struct batchnorm {
	struct gt_kernel head;
	struct gt_attr_norm attr;
	int type, mask;
	int64_t rows, c;
	bool sums;          /* batchnorm.sums, not .dx */
	bool in[8], out[4]; /* operands that are there */
	uint32_t accumulate;
};

static void *there(void *const *p, const bool *is, int i)
{
	return is[i] ? p[i] : NULL;
}

static enum gt_code launch_batchnorm(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, cudaStream_t s,
                                     struct gt_err *err)
{
	const struct batchnorm *k = (const struct batchnorm *)kernel;
	struct gt_cu_batchnorm c = {
	    .x = a->in[0],
	    .gamma = there(a->in, k->in, 1),
	    .beta = there(a->in, k->in, 2),
	    .rmean = there(a->in, k->in, 3),
	    .rvar = there(a->in, k->in, 4),
	    .nbt = there(a->in, k->in, 5),
	    .res = there(a->in, k->in, 6),
	    .y = a->out[0],
	    .mean = there(a->out, k->out, 1),
	    .rstd = there(a->out, k->out, 2),
	    .rows = k->rows,
	    .c = k->c,
	    .eps = k->attr.eps,
	    .momentum = k->attr.momentum,
	    .batch = k->attr.train || !k->attr.track,
	    .update = k->attr.train && k->attr.track && k->in[3],
	    .relu = k->attr.act == GT_ACT_RELU,
	    .part = there(a->out, k->out, 3),
	    .join = k->accumulate & 8,
	    .scratch = a->scratch,
	    .counter = k->head.counter,
	};
	GT_CUDA(dev, gt_cu_batchnorm_start(k->type, &c, s), "batchnorm", err);
	return GT_OK;
}

static enum gt_code launch_batchnorm_stats(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, cudaStream_t s,
                                           struct gt_err *err)
{
	const struct batchnorm *k = (const struct batchnorm *)kernel;
	struct gt_cu_batchnorm c = {
	    .x = a->in[0], .part = a->out[0], .rows = k->rows, .c = k->c, .batch = true, .scratch = a->scratch, .counter = k->head.counter};
	GT_CUDA(dev, gt_cu_batchnorm_start(k->type, &c, s), "batchnorm.stats", err);
	return GT_OK;
}

static enum gt_code launch_batchnorm_none(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, cudaStream_t s,
                                          struct gt_err *err)
{
	const struct batchnorm *k = (const struct batchnorm *)kernel;
	GT_CUDA(dev, cudaMemsetAsync(a->out[0], 0, (size_t)k->c * 3 * sizeof(double), s), "batchnorm.stats", err);
	return GT_OK;
}

static enum gt_code launch_batchnorm_y(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, cudaStream_t s,
                                       struct gt_err *err)
{
	const struct batchnorm *k = (const struct batchnorm *)kernel;
	struct gt_cu_batchnorm c = {
	    .x = a->in[0],
	    .gamma = there(a->in, k->in, 1),
	    .beta = there(a->in, k->in, 2),
	    .mean = a->in[3],
	    .rstd = a->in[4],
	    .res = there(a->in, k->in, 5),
	    .y = a->out[0],
	    .rows = k->rows,
	    .c = k->c,
	    .again = true,
	    .relu = k->attr.act == GT_ACT_RELU,
	    .scratch = a->scratch,
	};
	GT_CUDA(dev, gt_cu_batchnorm_start(k->type, &c, s), "batchnorm.y", err);
	return GT_OK;
}

static enum gt_code launch_batchnorm_dx(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, cudaStream_t s,
                                        struct gt_err *err)
{
	const struct batchnorm *k = (const struct batchnorm *)kernel;
	struct gt_cu_batchnorm_dx c = {
	    .dy = a->in[0],
	    .x = a->in[1],
	    .gamma = there(a->in, k->in, 2),
	    .mean = a->in[3],
	    .rstd = a->in[4],
	    .beta = there(a->in, k->in, 5),
	    .y = there(a->in, k->in, 6),
	    .given = there(a->in, k->in, 7),
	    .sums = k->sums ? a->out[0] : NULL,
	    .dx = k->sums ? NULL : there(a->out, k->out, 0),
	    .dgamma = there(a->out, k->out, 1),
	    .dbeta = there(a->out, k->out, 2),
	    .g = there(a->out, k->out, 3),
	    .rows = k->rows,
	    .c = k->c,
	    .mask = k->mask,
	    .batch = k->attr.train || !k->attr.track,
	    .add_gamma = k->accumulate & 2,
	    .add_beta = k->accumulate & 4,
	    .scratch = a->scratch,
	    .counter = k->head.counter,
	};
	GT_CUDA(dev, gt_cu_batchnorm_dx_start(k->type, &c, s), k->sums ? "batchnorm.sums" : "batchnorm.dx", err);
	return GT_OK;
}

static enum gt_code check_batchnorm_y(const struct gt_opcall *call, const struct gt_tdesc *x, struct gt_err *err)
{
	int64_t c = x->dim[1];
	if (!standard(x))
		return gt_cuda_refuse(call, err, "activations are plain [N, C] or channels last, f32, bf16 or f16");
	if (!table(input(call, 1), c) || !table(input(call, 2), c) || !input(call, 3) || !table(input(call, 3), c) || !input(call, 4) || !table(input(call, 4), c))
		return gt_cuda_refuse(call, err, "parameters and statistics are f32 [C]");
	if (!output(call, 0) || !like(output(call, 0), x) || !like(input(call, 5), x))
		return gt_cuda_refuse(call, err, "activations must have the same shape, type and layout");
	return GT_OK;
}

static enum gt_code check_batchnorm(const struct gt_opcall *call, const struct gt_tdesc *x, struct gt_err *err)
{
	const struct gt_attr_norm *attr = call->attr;
	bool batch = attr->train || !attr->track, tables = true;
	int64_t c = x->dim[1];
	const struct gt_tdesc *nbt = input(call, 5);
	if (!standard(x))
		return gt_cuda_refuse(call, err, "activations are plain [N, C] or channels last, f32, bf16 or f16");
	for (int i = 1; i < 5; i++)
		tables = tables && table(input(call, i), c);
	if (!tables || !table(output(call, 1), c) || !table(output(call, 2), c) || (nbt && nbt->dtype != GT_I64))
		return gt_cuda_refuse(call, err, "parameters and statistics are f32 [C], the count of batches is i64");
	if (!part(output(call, 3), c) || (output(call, 3) && !batch))
		return gt_cuda_refuse(call, err, "a partial sum must be f64 [3, C], and batch statistics must be in use");
	if (!output(call, 0) || !like(input(call, 6), x) || !like(output(call, 0), x))
		return gt_cuda_refuse(call, err, "activations must have the same shape, type and layout");
	if (!batch && (!input(call, 3) || !input(call, 4)))
		return gt_cuda_refuse(call, err, "evaluation needs the running statistics");
	if (attr->train && gt_tdesc_count(x) == c)
		return gt_cuda_refuse(call, err, "batch statistics need more than one value per channel");
	return GT_OK;
}

/* batchnorm.dx and .sums */
static enum gt_code check_batchnorm_dx(const struct gt_opcall *call, const struct gt_tdesc *x, struct gt_err *err)
{
	bool sums = call->code == GT_OP_BATCHNORM_SUMS, tables = true;
	int64_t c = x->dim[1];
	if (!standard(x))
		return gt_cuda_refuse(call, err, "activations are plain [N, C] or channels last, f32, bf16 or f16");
	for (int i = 2; i < 6; i++)
		tables = tables && table(input(call, i), c);
	if (!tables || !table(output(call, 1), c) || !table(output(call, 2), c) || !input(call, 3) || !input(call, 4))
		return gt_cuda_refuse(call, err, "parameters and statistics are f32 [C]");
	if (!part(sums ? output(call, 0) : input(call, 7), c) || (sums && (!output(call, 0) || input(call, 7))))
		return gt_cuda_refuse(call, err, "sums are f64 [3, C]");
	if (!like(input(call, 0), x) || !like(input(call, 6), x) || (!sums && !like(output(call, 0), x)) || !like(output(call, 3), x))
		return gt_cuda_refuse(call, err, "activations and their gradients must have the same shape, type and layout");
	return GT_OK;
}

static enum gt_code check_batchnorm_stats(const struct gt_opcall *call, const struct gt_tdesc *x, struct gt_err *err)
{
	bool empty = ((const struct gt_attr_norm *)call->attr)->empty;
	const struct gt_tdesc *p = output(call, 0);
	if (!empty && !standard(x))
		return gt_cuda_refuse(call, err, "activations are plain [N, C] or channels last, f32, bf16 or f16");
	if (!p || !part(p, empty ? p->dim[1] : x->dim[1]))
		return gt_cuda_refuse(call, err, "a part is f64 [3, C]");
	return GT_OK;
}

enum gt_code gt_cuda_batchnorm(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	bool sums = call->code == GT_OP_BATCHNORM_SUMS, back = call->code == GT_OP_BATCHNORM_DX || sums;
	bool again = call->code == GT_OP_BATCHNORM_Y, stats = call->code == GT_OP_BATCHNORM_STATS;
	bool empty = stats && ((const struct gt_attr_norm *)call->attr)->empty;
	const struct gt_tdesc *x = call->in[back];
	struct batchnorm *k;
	enum gt_code code;
	GT_TRY(again   ? check_batchnorm_y(call, x, err)
	       : stats ? check_batchnorm_stats(call, x, err)
	       : back  ? check_batchnorm_dx(call, x, err)
	               : check_batchnorm(call, x, err));
	GT_CUDA_NEW(k, back ? launch_batchnorm_dx : again ? launch_batchnorm_y : launch_batchnorm, "columns", err);
	if (stats)
		k->head.launch = empty ? launch_batchnorm_none : launch_batchnorm_stats;
	k->attr = *(const struct gt_attr_norm *)call->attr;
	k->c = stats ? call->out[0]->dim[1] : x->dim[1];
	*out = &k->head;
	if (empty)
		return GT_OK;
	k->type = gt_cuda_type(x->dtype);
	k->rows = gt_tdesc_count(x) / k->c;
	k->accumulate = call->accumulate;
	k->sums = sums;
	if (back && call->nin > 5 && !input(call, 7))
		k->mask = input(call, 6) ? 2 : 1;
	for (int i = 0; i < 8; i++)
		k->in[i] = input(call, i);
	for (int i = 0; i < 4; i++)
		k->out[i] = output(call, i) && (i < 3 || k->mask || !back);
	k->head.scratch = gt_cu_batchnorm_scratch(k->rows, k->c);
	code = gt_cuda_counters(dev, &k->head, gt_cu_batchnorm_counters(k->c), err);
	if (code != GT_OK) {
		free(k);
		*out = NULL;
	}
	return code;
}

/* ---- batchnorm.merge --------------------------------------------------------------------------------------------------------------- */
struct merge {
	struct gt_kernel head;
	struct gt_attr_norm attr;
	int64_t c;
	int n;
	bool in[4], out[3], join;
};

static enum gt_code launch_merge(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, cudaStream_t s, struct gt_err *err)
{
	const struct merge *k = (const struct merge *)kernel;
	struct gt_cu_moments m = {
	    .parts = a->in[0],
	    .rmean = there(a->in, k->in, 1),
	    .rvar = there(a->in, k->in, 2),
	    .nbt = there(a->in, k->in, 3),
	    .mean = there(a->out, k->out, 0),
	    .rstd = there(a->out, k->out, 1),
	    .part = there(a->out, k->out, 2),
	    .c = k->c,
	    .n = k->n,
	    .eps = k->attr.eps,
	    .momentum = k->attr.momentum,
	    .deferred = k->attr.deferred,
	    .join = k->join,
	};
	GT_CUDA(dev, gt_cu_moments_start(&m, s), "batchnorm.merge", err);
	return GT_OK;
}

enum gt_code gt_cuda_moments(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct gt_tdesc *p = call->in[0], *nbt = input(call, 3);
	int64_t c = p->rank < 2 ? 0 : p->dim[p->rank - 1], n = c ? gt_tdesc_count(p) / (3 * c) : 0;
	struct merge *k;
	(void)dev;
	if (p->dtype != GT_F64 || n < 1 || n >= GT_MOMENTS_PARTS || p->dim[p->rank - 2] != 3)
		return gt_cuda_refuse(call, err, "parts are f64 [k, 3, C], k from 1 to 1023");
	if (!table(input(call, 1), c) || !table(input(call, 2), c) || !input(call, 1) != !input(call, 2) || !table(output(call, 0), c) ||
	    !table(output(call, 1), c) || !part(output(call, 2), c) || (nbt && nbt->dtype != GT_I64))
		return gt_cuda_refuse(call, err, "statistics are f32 [C], both running ones or none, the count of batches is i64");
	GT_CUDA_NEW(k, launch_merge, "channels", err);
	k->attr = *(const struct gt_attr_norm *)call->attr;
	k->c = c;
	k->n = (int)n;
	k->join = call->accumulate & 4;
	for (int i = 0; i < 4; i++)
		k->in[i] = input(call, i);
	for (int i = 0; i < 3; i++)
		k->out[i] = output(call, i);
	*out = &k->head;
	return GT_OK;
}

/* ---- layernorm ------------------------------------------------------------------------------------------------------------------- */
struct layernorm {
	struct gt_kernel head;
	int type;
	int64_t rows, cols, pixels;
	double eps;
	bool affine, stats, out[3];
	uint32_t accumulate;
};

static enum gt_code launch_layernorm(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, cudaStream_t s,
                                     struct gt_err *err)
{
	const struct layernorm *k = (const struct layernorm *)kernel;
	struct gt_cu_layernorm c = {
	    .x = a->in[0],
	    .y = a->out[0],
	    .gamma = k->affine ? a->in[1] : NULL,
	    .beta = k->affine ? a->in[2] : NULL,
	    .mean = k->stats ? a->out[1] : NULL,
	    .rstd = k->stats ? a->out[2] : NULL,
	    .rows = k->rows,
	    .cols = k->cols,
	    .pixels = k->pixels,
	    .eps = k->eps,
	};
	GT_CUDA(dev, gt_cu_layernorm_start(k->type, &c, s), "layernorm", err);
	return GT_OK;
}

static enum gt_code launch_layernorm_dx(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, cudaStream_t s,
                                        struct gt_err *err)
{
	const struct layernorm *k = (const struct layernorm *)kernel;
	struct gt_cu_layernorm_dx c = {
	    .dy = a->in[0],
	    .x = a->in[1],
	    .gamma = k->affine ? a->in[2] : NULL,
	    .mean = a->in[3],
	    .rstd = a->in[4],
	    .dx = there(a->out, k->out, 0),
	    .dgamma = there(a->out, k->out, 1),
	    .dbeta = there(a->out, k->out, 2),
	    .rows = k->rows,
	    .cols = k->cols,
	    .pixels = k->pixels,
	    .add_gamma = k->accumulate & 2,
	    .add_beta = k->accumulate & 4,
	    .scratch = a->scratch,
	};
	GT_CUDA(dev, gt_cu_layernorm_dx_start(k->type, &c, s), "layernorm.dx", err);
	return GT_OK;
}

/* 1: parameters in the order of a row; 0: plain [C, H, W] under NHWC; -1: neither. An open layout becomes that of a row. */
static int param_order(const struct gt_tdesc *x, struct gt_tdesc *p)
{
	static const uint8_t hwc[3] = {1, 2, 0};
	if (p->any) {
		*p = gt_tdesc_make(p->dtype, p->rank, p->dim, false);
		if (p->rank == 3)
			memcpy(p->layout.order, hwc, sizeof hwc);
	}
	if (p->layout.nblk)
		return -1;
	if (gt_tdesc_plain(p))
		return x->rank == 2 || x->dim[1] == 1 || x->dim[2] * x->dim[3] == 1;
	return p->rank == 3 && !memcmp(p->layout.order, hwc, sizeof hwc) ? 1 : -1;
}

/* *order: that of all parameters. */
static enum gt_code check_layernorm(const struct gt_opcall *call, bool back, const struct gt_tdesc *x, int *order, struct gt_err *err)
{
	struct gt_tdesc *params[3] = {input(call, back ? 2 : 1), back ? output(call, 1) : input(call, 2), back ? output(call, 2) : NULL};
	const struct gt_tdesc *stats[2] = {back ? input(call, 3) : output(call, 1), back ? input(call, 4) : output(call, 2)};
	int64_t rows = x->dim[0];
	if (!standard(x) || rows < 1)
		return gt_cuda_refuse(call, err, "activations are plain [N, C] or channels last, f32, bf16 or f16");
	if (!like(input(call, 0), x) || !like(output(call, 0), x) || (!back && !output(call, 0)))
		return gt_cuda_refuse(call, err, "activations and their gradients must have the same shape, type and layout");
	if (!table(stats[0], rows) || !table(stats[1], rows) || (back && (!stats[0] || !stats[1])))
		return gt_cuda_refuse(call, err, "mean and rstd are f32 [N]");
	for (int i = 0, first = 1; i < 3; i++)
		if (params[i]) {
			int o = table(params[i], gt_tdesc_count(x) / rows) ? param_order(x, params[i]) : -1;
			*order = first || *order == o ? o : -1;
			first = 0;
		}
	if (*order < 0 || (!back && !params[0] != !params[1]))
		return gt_cuda_refuse(call, err, "gamma, beta and their gradients are f32 in one layout, plain or channels last");
	return GT_OK;
}

enum gt_code gt_cuda_layernorm(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	bool back = call->code == GT_OP_LAYERNORM_DX;
	const struct gt_tdesc *x = call->in[back];
	struct layernorm *k;
	int order = 1;
	(void)dev;
	GT_TRY(check_layernorm(call, back, x, &order, err));
	GT_CUDA_NEW(k, back ? launch_layernorm_dx : launch_layernorm, "rows", err);
	k->type = gt_cuda_type(x->dtype);
	k->rows = x->dim[0];
	k->cols = gt_tdesc_count(x) / k->rows;
	k->pixels = order ? 0 : x->dim[2] * x->dim[3];
	k->eps = ((const struct gt_attr_norm *)call->attr)->eps;
	k->affine = input(call, back ? 2 : 1);
	k->stats = !back && output(call, 1) && output(call, 2);
	k->accumulate = call->accumulate;
	for (int i = 0; i < 3; i++)
		k->out[i] = output(call, i);
	if (back && (k->out[1] || k->out[2]))
		k->head.scratch = gt_cu_layernorm_scratch(k->rows, k->cols);
	*out = &k->head;
	return GT_OK;
}
