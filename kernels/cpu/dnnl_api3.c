#include "cpu/dnnl_api.h"
#if DNNL_VERSION_MAJOR == 3
#include <dnnl_debug.h>
#include <stdio.h>
#include <string.h>

/* ---- memory descriptors ------------------------------------------------------------------------------------------------------------- */
/* Returns true if a layout tag of oneDNN has the blocks of md. oneDNN 3 creates a blocked layout only from its tag, a name such as
 * "Acdb16a": the dimensions, slowest first, blocked ones in capitals, and the inner blocks. The caller tries tags with these blocks until
 * the strides match too. */
static bool has_blocks(const struct gt_dnnl_md *md, const char *tag)
{
	char blocks[64];
	int n = 0;
	for (int i = 0; i < md->nblk && n < (int)sizeof blocks; i++)
		n += snprintf(blocks + n, sizeof blocks - (size_t)n, "%lld%c", (long long)md->blk[i], 'a' + md->blk_dim[i]);
	return (int)strspn(tag, "abcdefghijklABCDEFGHIJKL") == md->ndims && !strcmp(tag + md->ndims, blocks);
}

/* Returns whether two descriptors have the same strides. Strides of dimensions that consist of one block are ignored. */
static bool same_strides(const struct gt_dnnl_md *a, const struct gt_dnnl_md *b)
{
	for (int i = 0; i < a->ndims; i++) {
		int64_t block = 1;
		for (int k = 0; k < a->nblk; k++)
			block *= a->blk_dim[k] == i ? a->blk[k] : 1;
		if (a->padded[i] != b->padded[i] || (a->padded[i] > block && a->strides[i] != b->strides[i]))
			return false;
	}
	return true;
}

static bool read_fields(gt_dnnl_ref ref, struct gt_dnnl_md *out)
{
	dnnl_format_kind_t kind;
	dnnl_dims_t *dims, *padded, *strides, *blk, *idx;
	dnnl_dim_t offset;
	*out = (struct gt_dnnl_md){.ndims = 0};
	if (dnnl_memory_desc_query(ref, dnnl_query_format_kind, &kind) != dnnl_success || kind != dnnl_blocked ||
	    dnnl_memory_desc_query(ref, dnnl_query_ndims_s32, &out->ndims) != dnnl_success ||
	    dnnl_memory_desc_query(ref, dnnl_query_inner_nblks_s32, &out->nblk) != dnnl_success || out->nblk > GT_MAX_BLOCKS ||
	    dnnl_memory_desc_query(ref, dnnl_query_submemory_offset_s64, &offset) != dnnl_success || offset ||
	    dnnl_memory_desc_query(ref, dnnl_query_data_type, &out->dtype) != dnnl_success ||
	    dnnl_memory_desc_query(ref, dnnl_query_dims, &dims) != dnnl_success ||
	    dnnl_memory_desc_query(ref, dnnl_query_padded_dims, &padded) != dnnl_success ||
	    dnnl_memory_desc_query(ref, dnnl_query_strides, &strides) != dnnl_success ||
	    dnnl_memory_desc_query(ref, dnnl_query_inner_blks, &blk) != dnnl_success ||
	    dnnl_memory_desc_query(ref, dnnl_query_inner_idxs, &idx) != dnnl_success)
		return false;
	memcpy(out->dims, *dims, sizeof *out->dims * (size_t)out->ndims);
	memcpy(out->padded, *padded, sizeof *out->dims * (size_t)out->ndims);
	memcpy(out->strides, *strides, sizeof *out->dims * (size_t)out->ndims);
	for (int i = 0; i < out->nblk; i++) {
		out->blk[i] = (*blk)[i];
		out->blk_dim[i] = (int)(*idx)[i];
	}
	return true;
}

/* Creates a memory descriptor, which the caller destroys. */
static dnnl_status_t to_dnnl(const struct gt_dnnl_md *md, dnnl_memory_desc_t *out)
{
	*out = NULL;
	if (md->any)
		return dnnl_memory_desc_create_with_tag(out, md->ndims, md->dims, md->dtype, dnnl_format_tag_any);
	if (!md->nblk)
		return dnnl_memory_desc_create_with_strides(out, md->ndims, md->dims, md->dtype, md->strides);
	for (int tag = dnnl_format_tag_any + 1; tag < dnnl_format_tag_last; tag++) {
		struct gt_dnnl_md found;
		if (!has_blocks(md, dnnl_fmt_tag2str((dnnl_format_tag_t)tag)) ||
		    dnnl_memory_desc_create_with_tag(out, md->ndims, md->dims, md->dtype, (dnnl_format_tag_t)tag) != dnnl_success)
			continue;
		if (read_fields(*out, &found) && same_strides(md, &found))
			return dnnl_success;
		dnnl_memory_desc_destroy(*out);
		*out = NULL;
	}
	return dnnl_unimplemented;
}

bool gt_dnnl_md_is(const struct gt_dnnl_md *md, gt_dnnl_ref ref)
{
	dnnl_memory_desc_t own;
	if (to_dnnl(md, &own) != dnnl_success)
		return false;
	bool same = dnnl_memory_desc_equal(own, ref) && dnnl_memory_desc_get_size(own) == dnnl_memory_desc_get_size(ref);
	dnnl_memory_desc_destroy(own);
	return same;
}

bool gt_dnnl_md_read(gt_dnnl_ref ref, struct gt_dnnl_md *out)
{
	return read_fields(ref, out) && gt_dnnl_md_is(out, ref);
}

dnnl_status_t gt_dnnl_memory(dnnl_engine_t engine, const struct gt_dnnl_md *md, dnnl_memory_t *out)
{
	dnnl_memory_desc_t own;
	dnnl_status_t st = to_dnnl(md, &own);
	if (st != dnnl_success)
		return st;
	st = dnnl_memory_create(out, own, engine, DNNL_MEMORY_NONE);
	dnnl_memory_desc_destroy(own);
	return st;
}

/* ---- primitives -------------------------------------------------------------------------------------------------------------- */
static dnnl_status_t create_pd(dnnl_engine_t e, const struct gt_dnnl_request *r, gt_dnnl_ref x, gt_dnnl_ref w, gt_dnnl_ref b, gt_dnnl_ref y,
                               dnnl_primitive_desc_t *out)
{
	const struct gt_dnnl_window *c = r->window;
	if (!c) {
		if (r->pass == GT_DNNL_FWD)
			return dnnl_inner_product_forward_primitive_desc_create(out, e, dnnl_forward_training, x, w, b, y, r->attr);
		return r->pass == GT_DNNL_DX ? dnnl_inner_product_backward_data_primitive_desc_create(out, e, x, w, y, r->hint, r->attr)
		                             : dnnl_inner_product_backward_weights_primitive_desc_create(out, e, x, w, b, y, r->hint, r->attr);
	}
	const dnnl_alg_kind_t direct = dnnl_convolution_direct;
	if (r->pass == GT_DNNL_FWD)
		return dnnl_convolution_forward_primitive_desc_create(out, e, dnnl_forward_training, direct, x, w, b, y, c->stride, c->dilation,
		                                                      c->padding, c->padding, r->attr);
	if (r->pass == GT_DNNL_DX)
		return dnnl_convolution_backward_data_primitive_desc_create(out, e, direct, x, w, y, c->stride, c->dilation, c->padding,
		                                                            c->padding, r->hint, r->attr);
	return dnnl_convolution_backward_weights_primitive_desc_create(out, e, direct, x, w, b, y, c->stride, c->dilation, c->padding,
	                                                               c->padding, r->hint, r->attr);
}

/* Replaces *pd by another implementation that the caller prefers, if there is one. */
static void replace_impl(const struct gt_dnnl_request *r, dnnl_primitive_desc_t *pd)
{
	dnnl_primitive_desc_t next;
	if (dnnl_primitive_desc_clone(&next, *pd) != dnnl_success)
		return;
	do {
		if (r->instead(gt_dnnl_impl(*pd), gt_dnnl_impl(next))) {
			dnnl_primitive_desc_destroy(*pd);
			*pd = next;
			return;
		}
	} while (dnnl_primitive_desc_next_impl(next) == dnnl_success);
	dnnl_primitive_desc_destroy(next);
}

dnnl_status_t gt_dnnl_pd(dnnl_engine_t engine, const struct gt_dnnl_request *r, dnnl_primitive_desc_t *out)
{
	const struct gt_dnnl_md *operand[4] = {r->x, r->w, r->b, r->y};
	dnnl_memory_desc_t md[4] = {NULL};
	dnnl_status_t st = dnnl_success;
	*out = NULL;
	for (int i = 0; i < 4 && st == dnnl_success; i++)
		if (operand[i])
			st = to_dnnl(operand[i], &md[i]);
	if (st == dnnl_success)
		st = create_pd(engine, r, md[0], md[1], md[2], md[3], out);
	for (int i = 0; i < 4; i++)
		if (md[i])
			dnnl_memory_desc_destroy(md[i]);
	if (st == dnnl_success && r->instead)
		replace_impl(r, out);
	return st;
}

#endif
