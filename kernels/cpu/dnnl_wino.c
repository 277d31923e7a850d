/* 3x3 convolutions in f32 by Winograd's F(4x4, 3x3) (Lavin & Gray, "Fast algorithms for convolutional neural networks", 2016): 2.25
 * times fewer multiplications. oneDNN 2.6 has it for AVX-512 in its own blocked layout only, so activations are reordered on the way
 * in and out, which costs a tenth of what it saves. Against direct convolution the results differ by about 1e-6 of their rms
 * (f32 itself: 2e-7 to 5e-7); `winograd = false` in the config turns it off. */
#include "cpu/dnnl_util.h"
#include <stdio.h>

enum pass { FWD, DX, DW };

/* Measured with reorders, 64 to 128 images, AVX-512, against the best direct kernel: 1.0 to 1.7 times as fast with 64 channels, 2 to 2.6
 * with 256 and more; slower below 64 channels, for images under 4x4, and for so few tiles that transforming the weights dominates. */
static bool pays(enum pass pass, const struct gt_attr_conv2d *a, const struct gt_tdesc *x, const struct gt_tdesc *y)
{
	if (pass == DW && x->dim[1] * y->dim[1] < 64 * 128) /* 33 ms against 23 ms for 128 images of 64x32x32 on 2 threads */
		return false;
	int64_t tiles = y->dim[0] * ((y->dim[2] + 3) / 4) * ((y->dim[3] + 3) / 4);
	return a->kernel[0] == 3 && a->kernel[1] == 3 && a->stride[0] == 1 && a->stride[1] == 1 && a->dilation[0] == 1 && a->dilation[1] == 1 &&
	       a->padding[0] <= 1 && a->padding[1] <= 1 && a->groups <= 1 && x->dtype == GT_F32 && x->dim[1] >= 64 && y->dim[1] >= 64 &&
	       x->dim[1] % 16 == 0 && y->dim[1] % 16 == 0 && y->dim[2] >= 4 && y->dim[3] >= 4 && tiles >= 32;
}

static dnnl_status_t make(struct gt_dev *dev, const struct gt_attr_conv2d *a, enum pass pass, const dnnl_memory_desc_t *x, const dnnl_memory_desc_t *w,
                          const dnnl_memory_desc_t *b, const dnnl_memory_desc_t *y, dnnl_primitive_desc_t hint, dnnl_primitive_desc_t *pd)
{
	dnnl_dims_t stride = {1, 1}, pad = {a->padding[0], a->padding[1]}, dilation = {0, 0};
	dnnl_convolution_desc_t d;
	dnnl_primitive_attr_t attr;
	dnnl_status_t st;
	const dnnl_alg_kind_t alg = dnnl_convolution_winograd;
	if (pass == FWD)
		st = dnnl_dilated_convolution_forward_desc_init(&d, dnnl_forward_training, alg, x, w, b, y, stride, dilation, pad, pad);
	else if (pass == DX)
		st = dnnl_dilated_convolution_backward_data_desc_init(&d, alg, x, w, y, stride, dilation, pad, pad);
	else
		st = dnnl_dilated_convolution_backward_weights_desc_init(&d, alg, x, w, b, y, stride, dilation, pad, pad);
	if (st != dnnl_success || gt_dnnl_attr(&attr, pass == FWD ? a->act : GT_ACT_NONE, NULL) != GT_OK)
		return st != dnnl_success ? st : dnnl_out_of_memory;
	st = dnnl_primitive_desc_create(pd, &d, attr, gt_dnnl_engine(dev), hint);
	dnnl_primitive_attr_destroy(attr);
	return st;
}

struct part {
	const dnnl_memory_desc_t *ours, *theirs;
	dnnl_memory_t a, b; /* ours, theirs */
};

/* Both memories of an operand; the same one where the layouts agree. */
static enum gt_code operand(struct gt_dev *dev, struct gt_dnnl_kernel *k, struct part *p, int where, int index, struct gt_err *err)
{
	GT_TRY(gt_dnnl_tensor_add(dev, k, p->ours, where, index, &p->a, err));
	p->b = p->a;
	if (dnnl_memory_desc_equal(p->ours, p->theirs))
		return GT_OK;
	return gt_dnnl_tensor_add(dev, k, p->theirs, GT_DNNL_SCRATCH, 0, &p->b, err);
}

static enum gt_code in_part(struct gt_dev *dev, struct gt_dnnl_kernel *k, struct part *p, int index, struct gt_err *err)
{
	GT_TRY(operand(dev, k, p, GT_DNNL_IN, index, err));
	return p->a == p->b ? GT_OK : gt_dnnl_reorder_add(dev, k, p->a, p->b, err);
}

static enum gt_code out_part(struct gt_dev *dev, struct gt_dnnl_kernel *k, struct part *p, struct gt_err *err)
{
	return p->a == p->b ? GT_OK : gt_dnnl_reorder_add(dev, k, p->b, p->a, err);
}

static enum gt_code build(struct gt_dev *dev, const struct gt_opcall *call, enum pass pass, dnnl_primitive_desc_t pd, struct part *x, struct part *w,
                          struct part *y, const dnnl_memory_desc_t *mb, struct gt_dnnl_kernel *k, bool *taken, struct gt_err *err)
{
	dnnl_memory_t b = NULL;
	bool sum_w = pass == DW && (call->accumulate & 1), sum_b = pass == DW && mb && (call->accumulate & 2);
	x->theirs = dnnl_primitive_desc_query_md(pd, pass == DX ? dnnl_query_diff_src_md : dnnl_query_src_md, 0);
	w->theirs = dnnl_primitive_desc_query_md(pd, pass == DW ? dnnl_query_diff_weights_md : dnnl_query_weights_md, 0);
	y->theirs = dnnl_primitive_desc_query_md(pd, pass == FWD ? dnnl_query_dst_md : dnnl_query_diff_dst_md, 0);
	if (pass == FWD) {
		GT_TRY(in_part(dev, k, x, 0, err));
		GT_TRY(in_part(dev, k, w, 1, err));
		GT_TRY(operand(dev, k, y, GT_DNNL_OUT, 0, err));
		if (mb)
			GT_TRY(gt_dnnl_tensor_add(dev, k, mb, GT_DNNL_IN, 2, &b, err));
		dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, x->b}, {DNNL_ARG_WEIGHTS, w->b}, {DNNL_ARG_DST, y->b}, {DNNL_ARG_BIAS, b}};
		*taken = true;
		GT_TRY(gt_dnnl_step_add(dev, k, pd, args, b ? 4 : 3, err));
		return out_part(dev, k, y, err);
	}
	if (pass == DX) {
		GT_TRY(in_part(dev, k, y, 0, err));
		GT_TRY(in_part(dev, k, w, 1, err));
		GT_TRY(operand(dev, k, x, GT_DNNL_OUT, 0, err));
		dnnl_exec_arg_t args[] = {{DNNL_ARG_DIFF_DST, y->b}, {DNNL_ARG_WEIGHTS, w->b}, {DNNL_ARG_DIFF_SRC, x->b}};
		*taken = true;
		GT_TRY(gt_dnnl_step_add(dev, k, pd, args, 3, err));
		return out_part(dev, k, x, err);
	}
	GT_TRY(in_part(dev, k, y, 0, err));
	GT_TRY(in_part(dev, k, x, 1, err));
	GT_TRY(operand(dev, k, w, sum_w ? GT_DNNL_SCRATCH : GT_DNNL_OUT, 0, err));
	if (mb)
		GT_TRY(gt_dnnl_tensor_add(dev, k, mb, sum_b ? GT_DNNL_SCRATCH : GT_DNNL_OUT, 1, &b, err));
	dnnl_exec_arg_t args[] = {{DNNL_ARG_DIFF_DST, y->b}, {DNNL_ARG_SRC, x->b}, {DNNL_ARG_DIFF_WEIGHTS, w->b}, {DNNL_ARG_DIFF_BIAS, b}};
	*taken = true;
	GT_TRY(gt_dnnl_step_add(dev, k, pd, args, b ? 4 : 3, err));
	GT_TRY(out_part(dev, k, w, err));
	if (sum_w)
		GT_TRY(gt_dnnl_sum_add(k, 0, w->a, gt_tdesc_padded(call->out[0]), err));
	if (sum_b)
		GT_TRY(gt_dnnl_sum_add(k, 1, b, gt_tdesc_count(call->out[1]), err));
	return GT_OK;
}

enum gt_code gt_dnnl_wino(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct gt_attr_conv2d *a = call->attr;
	enum pass pass = call->code == GT_OP_CONV2D ? FWD : call->code == GT_OP_CONV2D_DX ? DX : DW;
	const struct gt_tdesc *x = pass == DX ? call->out[0] : pass == DW ? call->in[1] : call->in[0], *y = pass == FWD ? call->out[0] : call->in[0];
	const struct gt_tdesc *b = pass == FWD && call->nin > 2 ? call->in[2] : pass == DW && call->nout > 1 ? call->out[1] : NULL;
	struct gt_tdesc *w = pass == DW ? call->out[0] : call->in[1];
	dnnl_memory_desc_t mx, mw, mb, my, ax, aw, ay;
	dnnl_primitive_desc_t hint = NULL, pd = NULL;
	struct gt_dnnl_kernel *k;
	*out = NULL;
	if (!pays(pass, a, x, y) || w->dtype != GT_F32)
		return GT_OK;
	struct gt_tdesc plain = gt_tdesc_make(GT_F32, 4, w->dim, false);
	if (!w->any && !gt_tdesc_plain(w)) /* oneDNN transforms plain weights only */
		return GT_OK;
	gt_dnnl_md_any(x, 1, &ax);
	gt_dnnl_md_any(&plain, 1, &aw);
	gt_dnnl_md_any(y, 1, &ay);
	GT_TRY(gt_dnnl_md(x, 1, &mx, err));
	GT_TRY(gt_dnnl_md(&plain, 1, &mw, err));
	GT_TRY(gt_dnnl_md(y, 1, &my, err));
	if (b)
		GT_TRY(gt_dnnl_md(b, 1, &mb, err));
	dnnl_status_t st = make(dev, a, FWD, &ax, &aw, b ? &mb : NULL, &ay, NULL, &hint);
	if (st == dnnl_success && pass != FWD)
		st = make(dev, a, pass, &ax, &aw, b ? &mb : NULL, &ay, hint, &pd);
	else if (st == dnnl_success) {
		pd = hint;
		hint = NULL;
	}
	if (hint)
		dnnl_primitive_desc_destroy(hint);
	if (st == dnnl_unimplemented)
		return GT_OK;
	GT_TRY(gt_dnnl_check(st, call, "winograd convolution", err));
	enum gt_code code = gt_dnnl_kernel_make(&k, err);
	if (code != GT_OK) {
		dnnl_primitive_desc_destroy(pd);
		return code;
	}
	snprintf(k->text, sizeof k->text, "%s%s", gt_dnnl_impl(pd), call->accumulate ? "+sum" : "");
	struct part px = {.ours = &mx}, pw = {.ours = &mw}, py = {.ours = &my};
	bool taken = false; /* pd, by the step that uses it */
	code = build(dev, call, pass, pd, &px, &pw, &py, b ? &mb : NULL, k, &taken, err);
	if (code != GT_OK) {
		if (!taken)
			dnnl_primitive_desc_destroy(pd);
		gt_dnnl_kernel_release(&k->head);
		return code;
	}
	if (w->any) {
		w->layout = plain.layout;
		w->any = false;
	}
	*out = &k->head;
	return GT_OK;
}
