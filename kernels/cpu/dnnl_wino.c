/* 3x3 convolutions in f32 by Winograd's F(4x4, 3x3) (Lavin & Gray, "Fast algorithms for convolutional neural networks", 2016), which needs
 * 2.25 times fewer multiplications. oneDNN 2.6 has Winograd only for AVX-512 and in oneDNN's blocked layout, so activations are reordered
 * before and after it; this costs a tenth of the time that Winograd saves. Compared with direct convolution the results differ by about
 * 1e-6 of their rms (f32 itself: 2e-7 to 5e-7). `winograd = false` in the config disables it. */
#include "cpu/dnnl_util.h"
#include "opsig.h"
#include <stdio.h>

#define PART_BYTES (8 << 20)    /* maximum bytes of activations in a part of a call */
#define WEIGHT_BYTES (40 << 20) /* maximum bytes of transformed weights in a part of a call */

/* Returns true if Winograd's algorithm is faster than direct convolution. Measured with reorders, 64 to 128 images, AVX-512, against the
 * best direct kernel: 1.0 to 1.7 times as fast with 64 channels, 2 to 2.6 times with 256 and more. It is slower below 64 channels, for
 * images under 4x4, and for so few tiles that the transformation of the weights dominates. */
static bool is_winograd_faster(const struct gt_attr_conv2d *a, const struct gt_tdesc *x, const struct gt_tdesc *y)
{
	int64_t tiles = y->dim[0] * ((y->dim[2] + 3) / 4) * ((y->dim[3] + 3) / 4);
	return a->kernel[0] == 3 && a->kernel[1] == 3 && a->stride[0] == 1 && a->stride[1] == 1 && a->dilation[0] == 1 && a->dilation[1] == 1 &&
	       a->padding[0] <= 1 && a->padding[1] <= 1 && a->groups <= 1 && x->dtype == GT_F32 && x->dim[1] >= 64 && y->dim[1] >= 64 &&
	       x->dim[1] % 16 == 0 && y->dim[1] % 16 == 0 && y->dim[2] >= 4 && y->dim[3] >= 4 && tiles >= 32;
}

/* A call is divided into parts that are executed one after the other. The transformed tiles of a whole batch are several times as large as
 * its activations and fit into no cache; the transformed weights are four times as large as the weights (in a gradient: in each thread). */
enum axis { BATCH, OUT, IN };

struct cut {
	enum axis axis;
	int64_t parts;
};

static struct cut choose_cut(enum gt_dnnl_pass pass, const struct gt_tdesc *x, const struct gt_tdesc *y, int threads)
{
	int64_t n = x->dim[0], image = 4 * (x->dim[1] * x->dim[2] * x->dim[3] + y->dim[1] * y->dim[2] * y->dim[3]);
	int64_t tiles = ((y->dim[2] + 3) / 4) * ((y->dim[3] + 3) / 4),
	        weights = 36 * 4 * x->dim[1] * y->dim[1] * (pass == GT_DNNL_DW ? threads : 1);
	struct cut c = {BATCH, 1};
	while (n / c.parts % 2 == 0 && n / c.parts * image > PART_BYTES && n / c.parts / 2 * tiles >= 256)
		c.parts *= 2;
	if (c.parts > 1)
		return c;
	c.axis = pass == GT_DNNL_DX ? IN : OUT;
	int64_t channels = c.axis == IN ? x->dim[1] : y->dim[1];
	while (weights / c.parts > WEIGHT_BYTES && channels / c.parts % 128 == 0)
		c.parts *= 2;
	return c;
}

struct part {
	struct gt_dnnl_md ours;
	gt_dnnl_ref theirs; /* oneDNN's layout of the operand; NULL: the same as gtrain's layout */
	dnnl_memory_t a, b; /* a: memory in gtrain's layout; b: memory in oneDNN's layout */
	size_t stride;      /* bytes between the parts of a divided call; 0: every part uses the whole operand */
};

struct job {
	struct gt_dev *dev;
	const struct gt_opcall *call;
	enum gt_dnnl_pass pass;
	struct cut cut;
	const struct gt_tdesc *tx, *tw, *ty, *tb; /* descriptors of the operands; tw is plain */
	struct part x, w, y, b;                   /* the operands; b is unused if tb is NULL */
	struct gt_dnnl_kernel *k;
};

/* Describes one part of an operand in gtrain's layout. The operand is divided along dimension `dim` (-1: it is not divided). */
static enum gt_code describe_part(const struct job *j, const struct gt_tdesc *t, int dim, struct part *p, struct gt_err *err)
{
	if (dim < 0 || j->cut.parts == 1)
		return gt_dnnl_md(t, 1, &p->ours, err);
	int64_t n = t->dim[dim] / j->cut.parts, stride = 4 * n;
	GT_TRY(gt_dnnl_md_part(t, dim, n, &p->ours, err));
	for (int i = t->rank - 1; t->layout.order[i] != dim; i--) /* multiply the sizes of the dimensions inside of dimension `dim` */
		stride *= t->dim[t->layout.order[i]];
	p->stride = (size_t)stride;
	return GT_OK;
}

static enum gt_code describe_parts(struct job *j, struct gt_err *err)
{
	enum axis axis = j->cut.axis;
	GT_TRY(describe_part(j, j->tx, axis == BATCH ? 0 : axis == IN ? 1 : -1, &j->x, err));
	GT_TRY(describe_part(j, j->ty, axis == BATCH ? 0 : axis == OUT ? 1 : -1, &j->y, err));
	GT_TRY(describe_part(j, j->tw, axis == OUT ? 0 : axis == IN ? 1 : -1, &j->w, err));
	return j->tb ? describe_part(j, j->tb, axis == OUT ? 0 : -1, &j->b, err) : GT_OK;
}

static struct gt_dnnl_md md_of_any_layout(const struct part *p)
{
	struct gt_dnnl_md any = p->ours;
	any.any = true;
	return any;
}

static dnnl_status_t create_pd(const struct job *j, enum gt_dnnl_pass pass, dnnl_primitive_desc_t hint, dnnl_primitive_desc_t *pd)
{
	const struct gt_attr_conv2d *a = j->call->attr;
	struct gt_dnnl_md x = md_of_any_layout(&j->x), w = md_of_any_layout(&j->w), y = md_of_any_layout(&j->y);
	struct gt_dnnl_window window = {.algorithm = dnnl_convolution_winograd, .stride = {1, 1}, .padding = {a->padding[0], a->padding[1]}};
	struct gt_dnnl_request r = {.pass = pass, .window = &window, .x = &x, .w = &w, .b = j->tb ? &j->b.ours : NULL, .y = &y, .hint = hint};
	dnnl_primitive_attr_t attr;
	dnnl_status_t st;
	if (gt_dnnl_attr(&attr, NULL) != GT_OK)
		return dnnl_out_of_memory;
	r.attr = attr;
	st = gt_dnnl_pd(gt_dnnl_engine(j->dev), &r, pd);
	dnnl_primitive_attr_destroy(attr);
	return st;
}

/* Selects oneDNN's primitive. Returns GT_OK with *pd = NULL if oneDNN has none. */
static enum gt_code choose_primitive(const struct job *j, dnnl_primitive_desc_t *pd, struct gt_err *err)
{
	dnnl_primitive_desc_t forward = NULL;
	dnnl_status_t st = create_pd(j, GT_DNNL_FWD, NULL, &forward);
	*pd = forward;
	if (st == dnnl_success && j->pass != GT_DNNL_FWD) {
		st = create_pd(j, j->pass, forward, pd);
		dnnl_primitive_desc_destroy(forward);
	}
	if (st == dnnl_success)
		return GT_OK;
	*pd = NULL;
	return st == dnnl_unimplemented ? GT_OK : gt_dnnl_check(st, j->call, "winograd convolution", err);
}

/* Adds the memory of an operand in gtrain's and in oneDNN's layout. If the layouts are equal, both are the same memory. */
static enum gt_code add_operand(struct job *j, struct part *p, int where, int index, struct gt_err *err)
{
	GT_TRY(gt_dnnl_tensor_add(j->dev, j->k, &p->ours, where, index, &p->a, err));
	if (where != GT_DNNL_SCRATCH)
		gt_dnnl_slice(j->k, p->a, p->stride);
	p->b = p->a;
	if (!p->theirs || gt_dnnl_md_is(&p->ours, p->theirs))
		return GT_OK;
	return gt_dnnl_scratch_add(j->dev, j->k, p->theirs, &p->b, err);
}

static enum gt_code add_input(struct job *j, struct part *p, int index, struct gt_err *err)
{
	GT_TRY(add_operand(j, p, GT_DNNL_IN, index, err));
	if (p->a == p->b)
		return GT_OK;
	GT_TRY(gt_dnnl_reorder_add(j->dev, j->k, p->a, p->b, err));
	j->k->steps[j->k->nsteps - 1].once = !p->stride;
	return GT_OK;
}

static enum gt_code add_output(struct job *j, struct part *p, struct gt_err *err)
{
	return p->a == p->b ? GT_OK : gt_dnnl_reorder_add(j->dev, j->k, p->b, p->a, err);
}

/* Builds the kernel's list of primitives: reorders and the convolution pd, of which it takes ownership. */
static enum gt_code build_kernel(struct job *j, dnnl_primitive_desc_t pd, struct gt_err *err)
{
	const struct gt_opcall *call = j->call;
	enum gt_dnnl_pass pass = j->pass;
	struct part *x = &j->x, *w = &j->w, *y = &j->y, *b = &j->b;
	/* If the batch is divided, all parts add to the same weight gradient. */
	bool add_w = call->accumulate & 1, add_b = call->accumulate & 2, split = j->cut.axis == BATCH && j->cut.parts > 1;
	bool sum_w = add_w || split, sum_b = add_b || split;
	enum gt_code code = GT_OK;
	x->theirs = dnnl_primitive_desc_query_md(pd, pass == GT_DNNL_DX ? dnnl_query_diff_src_md : dnnl_query_src_md, 0);
	w->theirs = dnnl_primitive_desc_query_md(pd, pass == GT_DNNL_DW ? dnnl_query_diff_weights_md : dnnl_query_weights_md, 0);
	y->theirs = dnnl_primitive_desc_query_md(pd, pass == GT_DNNL_FWD ? dnnl_query_dst_md : dnnl_query_diff_dst_md, 0);
	if (pass == GT_DNNL_DX)
		code = add_operand(j, x, GT_DNNL_OUT, 0, err);
	else
		code = add_input(j, x, pass == GT_DNNL_FWD ? 0 : 1, err);
	if (code == GT_OK)
		code = pass == GT_DNNL_FWD ? add_operand(j, y, GT_DNNL_OUT, 0, err) : add_input(j, y, 0, err);
	if (code == GT_OK)
		code = pass == GT_DNNL_DW ? add_operand(j, w, sum_w ? GT_DNNL_SCRATCH : GT_DNNL_OUT, 0, err) : add_input(j, w, 1, err);
	if (code == GT_OK && j->tb)
		code =
		    pass == GT_DNNL_FWD ? add_operand(j, b, GT_DNNL_IN, 2, err) : add_operand(j, b, sum_b ? GT_DNNL_SCRATCH : GT_DNNL_OUT, 1, err);
	if (code != GT_OK) {
		dnnl_primitive_desc_destroy(pd);
		return code;
	}
	dnnl_exec_arg_t args[] = {{pass == GT_DNNL_DX ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC, x->b},
	                          {pass == GT_DNNL_FWD ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, y->b},
	                          {pass == GT_DNNL_DW ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS, w->b},
	                          {pass == GT_DNNL_DW ? DNNL_ARG_DIFF_BIAS : DNNL_ARG_BIAS, b->b}};
	GT_TRY(gt_dnnl_step_add(j->dev, j->k, pd, args, j->tb ? 4 : 3, err));
	GT_TRY(add_output(j, pass == GT_DNNL_FWD ? y : pass == GT_DNNL_DX ? x : w, err));
	if (pass == GT_DNNL_FWD && ((const struct gt_attr_conv2d *)call->attr)->act == GT_ACT_RELU)
		GT_TRY(gt_dnnl_relu_add(j->k, j->ty, split, err));
	if (pass == GT_DNNL_DW && sum_w)
		GT_TRY(gt_dnnl_sum_add(j->k, 0, w->a, gt_tdesc_count(j->tw) / (split ? 1 : j->cut.parts), add_w, !split, err));
	if (pass == GT_DNNL_DW && j->tb && sum_b)
		GT_TRY(gt_dnnl_sum_add(j->k, 1, b->a, gt_tdesc_count(j->tb) / (split ? 1 : j->cut.parts), add_b, !split, err));
	return GT_OK;
}

enum gt_code gt_dnnl_wino(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	struct job j = {.dev = dev, .call = call};
	struct gt_tdesc *w, plain;
	dnnl_primitive_desc_t pd;
	*out = NULL;
	j.pass = call->code == GT_OP_CONV2D ? GT_DNNL_FWD : call->code == GT_OP_CONV2D_DX ? GT_DNNL_DX : GT_DNNL_DW;
	j.tx = gt_opcall_operand(call, j.pass == GT_DNNL_DX ? "dx" : "x");
	j.ty = gt_opcall_operand(call, j.pass == GT_DNNL_FWD ? "y" : "dy");
	j.tb = gt_opcall_operand(call, j.pass == GT_DNNL_FWD ? "b" : "db");
	w = gt_opcall_operand(call, j.pass == GT_DNNL_DW ? "dw" : "w");
	if (!is_winograd_faster(call->attr, j.tx, j.ty) || w->dtype != GT_F32)
		return GT_OK;
	if (!w->any && !gt_tdesc_plain(w)) /* oneDNN transforms plain weights only */
		return GT_OK;
	plain = gt_tdesc_make(GT_F32, 4, w->dim, false);
	j.tw = &plain;
	j.cut = choose_cut(j.pass, j.tx, j.ty, gt_cpu_threads(dev));
	GT_TRY(describe_parts(&j, err));
	GT_TRY(choose_primitive(&j, &pd, err));
	if (!pd)
		return GT_OK;
	enum gt_code code = gt_dnnl_kernel_make(&j.k, err);
	if (code != GT_OK) {
		dnnl_primitive_desc_destroy(pd);
		return code;
	}
	snprintf(j.k->text, sizeof j.k->text, "%s%s", gt_dnnl_impl(pd), call->accumulate ? "+sum" : "");
	j.k->slices = (int)j.cut.parts;
	if ((code = build_kernel(&j, pd, err)) != GT_OK) {
		gt_dnnl_kernel_release(&j.k->head);
		return code;
	}
	if (w->any) {
		w->layout = plain.layout;
		w->any = false;
	}
	*out = &j.k->head;
	return GT_OK;
}
