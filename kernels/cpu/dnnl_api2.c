#include "cpu/dnnl_api.h"
#if DNNL_VERSION_MAJOR == 2
#include <string.h>

static dnnl_status_t to_dnnl(const struct gt_dnnl_md *md, dnnl_memory_desc_t *out)
{
	if (md->any)
		return dnnl_memory_desc_init_by_tag(out, md->ndims, md->dims, md->dtype, dnnl_format_tag_any);
	/* The descriptor is created dense and gets the strides of md afterwards, because this function rejects the strides of a blocked
	 * layout: it checks them against the dimensions as if there were no blocks. */
	dnnl_status_t st = dnnl_memory_desc_init_by_strides(out, md->ndims, md->dims, md->dtype, NULL);
	if (st != dnnl_success)
		return st;
	dnnl_blocking_desc_t *b = &out->format_desc.blocking;
	memcpy(b->strides, md->strides, sizeof *md->strides * (size_t)md->ndims);
	memcpy(out->padded_dims, md->padded, sizeof *md->padded * (size_t)md->ndims);
	b->inner_nblks = md->nblk;
	for (int i = 0; i < md->nblk; i++) {
		b->inner_blks[i] = md->blk[i];
		b->inner_idxs[i] = md->blk_dim[i];
	}
	return dnnl_success;
}

bool gt_dnnl_md_read(gt_dnnl_ref ref, struct gt_dnnl_md *out)
{
	const dnnl_blocking_desc_t *b = &ref->format_desc.blocking;
	if (ref->format_kind != dnnl_blocked || b->inner_nblks > GT_MAX_BLOCKS)
		return false;
	*out = (struct gt_dnnl_md){.dtype = ref->data_type, .ndims = ref->ndims, .nblk = b->inner_nblks};
	memcpy(out->dims, ref->dims, sizeof *ref->dims * (size_t)ref->ndims);
	memcpy(out->padded, ref->padded_dims, sizeof *ref->dims * (size_t)ref->ndims);
	memcpy(out->strides, b->strides, sizeof *ref->dims * (size_t)ref->ndims);
	for (int i = 0; i < b->inner_nblks; i++) {
		out->blk[i] = b->inner_blks[i];
		out->blk_dim[i] = (int)b->inner_idxs[i];
	}
	return gt_dnnl_md_is(out, ref);
}

bool gt_dnnl_md_is(const struct gt_dnnl_md *md, gt_dnnl_ref ref)
{
	dnnl_memory_desc_t own;
	return to_dnnl(md, &own) == dnnl_success && dnnl_memory_desc_equal(&own, ref) &&
	       dnnl_memory_desc_get_size(&own) == dnnl_memory_desc_get_size(ref);
}

dnnl_status_t gt_dnnl_memory(dnnl_engine_t engine, const struct gt_dnnl_md *md, dnnl_memory_t *out)
{
	dnnl_memory_desc_t own;
	dnnl_status_t st = to_dnnl(md, &own);
	return st == dnnl_success ? dnnl_memory_create(out, &own, engine, DNNL_MEMORY_NONE) : st;
}

/* ---- primitives -------------------------------------------------------------------------------------------------------------- */
union operation {
	dnnl_convolution_desc_t conv;
	dnnl_inner_product_desc_t linear;
};

static dnnl_status_t init_op_desc(const struct gt_dnnl_request *r, const dnnl_memory_desc_t *x, const dnnl_memory_desc_t *w,
                                  const dnnl_memory_desc_t *b, const dnnl_memory_desc_t *y, union operation *op)
{
	const struct gt_dnnl_window *c = r->window;
	if (!c) {
		if (r->pass == GT_DNNL_FWD)
			return dnnl_inner_product_forward_desc_init(&op->linear, dnnl_forward_training, x, w, b, y);
		return r->pass == GT_DNNL_DX ? dnnl_inner_product_backward_data_desc_init(&op->linear, x, w, y)
		                             : dnnl_inner_product_backward_weights_desc_init(&op->linear, x, w, b, y);
	}
	const dnnl_alg_kind_t direct = dnnl_convolution_direct;
	if (r->pass == GT_DNNL_FWD)
		return dnnl_dilated_convolution_forward_desc_init(&op->conv, dnnl_forward_training, direct, x, w, b, y, c->stride, c->dilation,
		                                                  c->padding, c->padding);
	if (r->pass == GT_DNNL_DX)
		return dnnl_dilated_convolution_backward_data_desc_init(&op->conv, direct, x, w, y, c->stride, c->dilation, c->padding,
		                                                        c->padding);
	return dnnl_dilated_convolution_backward_weights_desc_init(&op->conv, direct, x, w, b, y, c->stride, c->dilation, c->padding,
	                                                           c->padding);
}

/* Replaces *pd by another implementation that the caller prefers, if there is one. */
static void replace_impl(dnnl_engine_t engine, const struct gt_dnnl_request *r, const union operation *op, dnnl_primitive_desc_t *pd)
{
	dnnl_primitive_desc_iterator_t it;
	if (dnnl_primitive_desc_iterator_create(&it, op, r->attr, engine, r->hint) != dnnl_success)
		return;
	do {
		dnnl_primitive_desc_t next = dnnl_primitive_desc_iterator_fetch(it);
		if (r->instead(gt_dnnl_impl(*pd), gt_dnnl_impl(next))) {
			dnnl_primitive_desc_destroy(*pd);
			*pd = next;
			break;
		}
		dnnl_primitive_desc_destroy(next);
	} while (dnnl_primitive_desc_iterator_next(it) == dnnl_success);
	dnnl_primitive_desc_iterator_destroy(it);
}

dnnl_status_t gt_dnnl_pd(dnnl_engine_t engine, const struct gt_dnnl_request *r, dnnl_primitive_desc_t *out)
{
	dnnl_memory_desc_t x, w, b, y;
	union operation op;
	dnnl_status_t st = to_dnnl(r->x, &x);
	*out = NULL;
	if (st == dnnl_success)
		st = to_dnnl(r->w, &w);
	if (st == dnnl_success)
		st = to_dnnl(r->y, &y);
	if (st == dnnl_success && r->b)
		st = to_dnnl(r->b, &b);
	if (st == dnnl_success)
		st = init_op_desc(r, &x, &w, r->b ? &b : NULL, &y, &op);
	if (st == dnnl_success)
		st = dnnl_primitive_desc_create(out, &op, r->attr, engine, r->hint);
	if (st == dnnl_success && r->instead)
		replace_impl(engine, r, &op, out);
	return st;
}

#endif
