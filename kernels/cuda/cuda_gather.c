/* Gathers batches from the dataset in device memory. */
#include "aug.h"
#include "cuda/cuda_internal.h"
#include "recipe.h"
#include <stdlib.h>
#include <string.h>

struct gather {
	struct gt_kernel head;
	struct gt_cu_gather c; /* arguments of the kernel; the launch fills in the pointers */
	int type;
	bool draws;
};

static struct gt_cu_lookup lookup_of(const struct gt_tdesc *all, const struct gt_tdesc *index, int64_t n, int views)
{
	struct gt_cu_lookup l = {.n = n, .samples = n / (views > 1 ? views : 1), .all = all->dim[0]};
	if (index->rank == 2) {
		l.rows = index->dim[0];
		l.length = index->dim[1];
	}
	return l;
}

static enum gt_code launch_gather(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, cudaStream_t s,
                                  struct gt_err *err)
{
	const struct gather *k = (const struct gather *)kernel;
	struct gt_cu_gather c = k->c;
	c.images = a->in[0];
	c.labels = a->in[1];
	c.look.index = a->in[2];
	c.x = a->out[0];
	c.target = a->out[1];
	c.look.fault = dev->fault;
	if (k->draws || c.look.rows)
		GT_TRY(gt_cuda_step_args(dev, a, &c.look.step_args, err));
	GT_CUDA(dev, gt_cu_gather_start(k->type, &c, s), "gather", err);
	return GT_OK;
}

enum gt_code gt_cuda_gather(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct gt_attr_gather *attr = call->attr;
	const struct gt_tdesc *d = call->in[0], *x = call->out[0];
	struct gather *k;
	bool draws = !gt_aug_none(attr) && attr->views <= 1;
	int pad = attr->views > 2 ? 1 : draws && attr->pad_reflect ? attr->pad : 0;
	(void)dev;
	if (d->dim[1] > GT_MAX_CHANNELS || d->dim[2] * d->dim[3] > INT32_MAX / GT_MAX_CHANNELS)
		return gt_cuda_refuse(call, err, "images have at most 16 channels and 2^27 pixels");
	if (gt_cuda_type(x->dtype) < 0)
		return gt_cuda_refuse(call, err, "the output of images must be f32, bf16 or f16");
	if (pad > 0 && (pad >= d->dim[2] || pad >= d->dim[3]))
		return gt_cuda_refuse(call, err, "the padding reaches past the mirrored image");
	GT_CUDA_NEW(k, launch_gather, "gather", err);
	k->c.attr = *attr;
	k->c.look = lookup_of(d, call->in[2], x->dim[0], attr->views);
	k->c.c = (int32_t)d->dim[1], k->c.h = (int32_t)d->dim[2], k->c.w = (int32_t)d->dim[3];
	k->c.ld = gt_cuda_padded_channels(x);
	k->type = gt_cuda_type(x->dtype);
	k->draws = draws;
	*out = &k->head;
	return GT_OK;
}

/* ---- images with recipes -------------------------------------------------------------------------------------------------------- */
struct gather_recipes {
	struct gt_kernel head;
	struct gt_cu_recipes c; /* arguments of the kernel; the launch fills in the pointers */
	int type;
};

static enum gt_code launch_recipes(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, cudaStream_t s,
                                   struct gt_err *err)
{
	const struct gather_recipes *k = (const struct gather_recipes *)kernel;
	struct gt_cu_recipes c = k->c;
	c.rows = a->in[0];
	c.labels = a->in[1];
	c.look.index = a->in[2];
	c.x = a->out[0];
	c.target = a->out[1];
	c.look.fault = dev->fault;
	if (c.look.rows)
		GT_TRY(gt_cuda_step_args(dev, a, &c.look.step_args, err));
	GT_CUDA(dev, gt_cu_gather_recipes_start(k->type, &c, s), "gather.recipes", err);
	return GT_OK;
}

enum gt_code gt_cuda_gather_recipes(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct gt_attr_recipes *attr = call->attr;
	const struct gt_tdesc *d = call->in[0], *x = call->out[0];
	const char *why = gt_recipe_refuses(attr, d, x);
	struct gather_recipes *k;
	(void)dev;
	if (why)
		return gt_cuda_refuse(call, err, why);
	if (gt_cuda_type(x->dtype) < 0)
		return gt_cuda_refuse(call, err, "the output of images must be f32, bf16 or f16");
	GT_CUDA_NEW(k, launch_recipes, "gather.recipes", err);
	k->c.look = lookup_of(d, call->in[2], x->dim[0], attr->gather.views);
	k->c.row = d->dim[1];
	k->c.c = (int32_t)x->dim[1], k->c.h = (int32_t)x->dim[2], k->c.w = (int32_t)x->dim[3];
	k->c.ld = gt_cuda_padded_channels(x);
	k->c.ops = attr->ops;
	k->c.contrasts = attr->contrasts;
	k->c.resize = attr->resize;
	k->c.views = attr->gather.views;
	memcpy(k->c.scale, attr->gather.scale, sizeof k->c.scale);
	memcpy(k->c.shift, attr->gather.shift, sizeof k->c.shift);
	k->type = gt_cuda_type(x->dtype);
	*out = &k->head;
	return GT_OK;
}

/* ---- rows of numbers ----------------------------------------------------------------------------------------------------------- */
struct gather_rows {
	struct gt_kernel head;
	struct gt_cu_gather_rows c; /* arguments of the kernel; the launch fills in the pointers */
	int type;
};

static enum gt_code launch_rows(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, cudaStream_t s, struct gt_err *err)
{
	const struct gather_rows *k = (const struct gather_rows *)kernel;
	struct gt_cu_gather_rows c = k->c;
	c.from = a->in[0];
	c.look.index = a->in[1];
	c.y = a->out[0];
	c.look.fault = dev->fault;
	if (c.look.rows)
		GT_TRY(gt_cuda_step_args(dev, a, &c.look.step_args, err));
	GT_CUDA(dev, gt_cu_gather_rows_start(k->type, &c, s), "gather.rows", err);
	return GT_OK;
}

enum gt_code gt_cuda_gather_rows(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct gt_tdesc *d = call->in[0], *y = call->out[0];
	struct gather_rows *k;
	(void)dev;
	if (d->dtype == GT_I32 ? y->dtype != GT_I32 : d->dtype != GT_F32 || gt_cuda_type(y->dtype) < 0)
		return gt_cuda_refuse(call, err, "rows of i32 stay i32, and rows of f32 become f32, bf16 or f16");
	GT_CUDA_NEW(k, launch_rows, "gather.rows", err);
	k->c.width = gt_tdesc_count(d) / d->dim[0];
	k->c.look = lookup_of(d, call->in[1], y->dim[0], ((const struct gt_attr_views *)call->attr)->views);
	k->type = d->dtype == GT_I32 ? -1 : gt_cuda_type(y->dtype);
	*out = &k->head;
	return GT_OK;
}

/* ---- sequences of different lengths --------------------------------------------------------------------------------------------- */
struct gather_ragged {
	struct gt_kernel head;
	struct gt_cu_gather_ragged c; /* arguments of the kernel; the launch fills in the pointers */
};

static enum gt_code launch_ragged(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, cudaStream_t s,
                                  struct gt_err *err)
{
	const struct gather_ragged *k = (const struct gather_ragged *)kernel;
	struct gt_cu_gather_ragged c = k->c;
	c.from = a->in[0];
	c.start = a->in[1];
	c.look.index = a->in[2];
	c.y = a->out[0];
	c.look.fault = dev->fault;
	if (c.look.rows)
		GT_TRY(gt_cuda_step_args(dev, a, &c.look.step_args, err));
	GT_CUDA(dev, gt_cu_gather_ragged_start(&c, s), "gather.ragged", err);
	return GT_OK;
}

enum gt_code gt_cuda_gather_ragged(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct gt_tdesc *y = call->out[0];
	const struct gt_attr_ragged *attr = call->attr;
	struct gather_ragged *k;
	(void)dev;
	GT_CUDA_NEW(k, launch_ragged, "gather.ragged", err);
	k->c.width = y->dim[1];
	k->c.pad = attr->pad;
	k->c.look = lookup_of(call->in[1], call->in[2], y->dim[0], attr->views);
	k->c.look.all--; /* start has the end of the last sequence too */
	*out = &k->head;
	return GT_OK;
}
