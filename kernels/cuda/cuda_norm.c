/* Batch normalisation. */
#include "cuda/cuda_internal.h"
#include "moments.h"
#include <stdlib.h>

/* Returns input i of the call, or NULL if it is absent. */
static struct gt_tdesc *input(const struct gt_opcall *call, int i)
{
	return i < call->nin ? call->in[i] : NULL;
}

static struct gt_tdesc *output(const struct gt_opcall *call, int i)
{
	return i < call->nout ? call->out[i] : NULL;
}

/* ---- batchnorm ------------------------------------------------------------------------------------------------------------------- */
struct batchnorm {
	struct gt_kernel head;
	struct gt_attr_norm attr;
	int type, mask;
	int64_t rows, c;
	bool sums;          /* true for batchnorm.sums, false for batchnorm.dx */
	bool in[9], out[4]; /* which optional operands exist */
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
	    .act = k->attr.act,
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
	    .act = k->attr.act,
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
	    .more = there(a->in, k->in, k->sums ? 7 : 8),
	    .x = a->in[1],
	    .gamma = there(a->in, k->in, 2),
	    .mean = a->in[3],
	    .rstd = a->in[4],
	    .beta = there(a->in, k->in, 5),
	    .y = there(a->in, k->in, 6),
	    .given = k->sums ? NULL : there(a->in, k->in, 7),
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

/* Returns the gradient of the activation that a call applies to dy: GT_CU_MASK_... */
static int mask_of(const struct gt_opcall *call)
{
	int act = ((const struct gt_attr_norm *)call->attr)->act, more = call->code == GT_OP_BATCHNORM_SUMS ? 7 : 8;
	if (call->nin <= 5 || (input(call, more) && !act) || (call->code == GT_OP_BATCHNORM_DX && input(call, 7)))
		return GT_CU_MASK_NONE;
	if (act > GT_ACT_RELU)
		return act == GT_ACT_GELU ? GT_CU_MASK_GELU : GT_CU_MASK_GELU_TANH;
	return input(call, 6) ? GT_CU_MASK_Y : GT_CU_MASK_BN;
}

/* Checks what the signature of batch normalisation (opsig.h) cannot express. Returns NULL, or the reason to refuse the call. */
static const char *wrong_batchnorm(const struct gt_opcall *call)
{
	const struct gt_attr_norm *attr = call->attr;
	const struct gt_tdesc *x = call->in[0];
	bool batch = attr->train || !attr->track;
	if (call->code == GT_OP_BATCHNORM_STATS && !attr->empty && call->out[0]->dim[1] != x->dim[1])
		return "a partial sum must be [3, C]";
	if (call->code == GT_OP_BATCHNORM_DX && input(call, 7) && input(call, 8))
		return "sums that are given cover the whole gradient";
	if (call->code != GT_OP_BATCHNORM)
		return NULL;
	if (!batch && (!input(call, 3) || !input(call, 4)))
		return "evaluation needs the running statistics";
	return attr->train && gt_tdesc_count(x) == x->dim[1] ? "batch statistics need more than one value per channel" : NULL;
}

enum gt_code gt_cuda_batchnorm(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	bool sums = call->code == GT_OP_BATCHNORM_SUMS, back = call->code == GT_OP_BATCHNORM_DX || sums;
	bool again = call->code == GT_OP_BATCHNORM_Y, stats = call->code == GT_OP_BATCHNORM_STATS;
	bool empty = stats && ((const struct gt_attr_norm *)call->attr)->empty;
	const struct gt_tdesc *x = call->in[back];
	struct batchnorm *k;
	enum gt_code code;
	const char *wrong = wrong_batchnorm(call);
	if (wrong)
		return gt_cuda_refuse(call, err, wrong);
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
	k->mask = back ? mask_of(call) : GT_CU_MASK_NONE;
	for (int i = 0; i < 9; i++)
		k->in[i] = input(call, i);
	for (int i = 0; i < 4; i++)
		k->out[i] = output(call, i);
	k->head.scratch = gt_cu_batchnorm_scratch(k->rows, k->c);
	code = gt_cuda_counters(dev, &k->head, gt_cu_batchnorm_counters(k->c), err);
	if (code != GT_OK) {
		free(k);
		*out = NULL;
	}
	return code;
}

/* ---- batchnorm.merge --------------------------------------------------------------------------------------------------------------- */
/* Returns true if a table is absent, or if its last dimension has n channels. */
static bool table(const struct gt_tdesc *d, int64_t n)
{
	return !d || d->dim[d->rank - 1] == n;
}

struct merge {
	struct gt_kernel head;
	struct gt_attr_norm attr;
	int64_t c;
	int n;
	bool in[4], out[2];
};

static enum gt_code launch_merge(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, cudaStream_t s,
                                 struct gt_err *err)
{
	const struct merge *k = (const struct merge *)kernel;
	struct gt_cu_moments m = {
	    .parts = a->in[0],
	    .rmean = there(a->in, k->in, 1),
	    .rvar = there(a->in, k->in, 2),
	    .nbt = there(a->in, k->in, 3),
	    .mean = there(a->out, k->out, 0),
	    .rstd = there(a->out, k->out, 1),
	    .c = k->c,
	    .n = k->n,
	    .eps = k->attr.eps,
	    .momentum = k->attr.momentum,
	};
	GT_CUDA(dev, gt_cu_moments_start(&m, s), "batchnorm.merge", err);
	return GT_OK;
}

enum gt_code gt_cuda_moments(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct gt_tdesc *p = call->in[0];
	int64_t c = p->rank < 2 ? 0 : p->dim[p->rank - 1], n = c ? gt_tdesc_count(p) / (3 * c) : 0;
	struct merge *k;
	(void)dev;
	if (n < 1 || n >= GT_MOMENTS_PARTS || p->dim[p->rank - 2] != 3)
		return gt_cuda_refuse(call, err, "parts are [k, 3, C], k from 1 to 1023");
	if (!table(input(call, 1), c) || !input(call, 1) != !input(call, 2) || !table(output(call, 0), c) || !table(output(call, 1), c))
		return gt_cuda_refuse(call, err, "statistics are [C], both running ones or none");
	GT_CUDA_NEW(k, launch_merge, "channels", err);
	k->attr = *(const struct gt_attr_norm *)call->attr;
	k->c = c;
	k->n = (int)n;
	for (int i = 0; i < 4; i++)
		k->in[i] = input(call, i);
	for (int i = 0; i < 2; i++)
		k->out[i] = output(call, i);
	*out = &k->head;
	return GT_OK;
}
