/* Convolutions, and the linear layers that gemm_small.c does not support: oneDNN's convolution and inner product. Both have the operands
 * source, weights, bias and destination, and three primitives: forward, dx and dw.
 *
 * The forward call lets oneDNN choose the layout of the weights, which becomes the layout of the parameter. The primitive of a gradient may
 * need another layout; the call then reorders the weights, which costs little compared to the convolution.
 *
 * oneDNN has bf16 kernels only for processors with AVX-512 (or AVX2-VNNI-2, for some passes). On all others, a bf16 call is widened: its
 * operands are copied to f32, which is exact, oneDNN's f32 kernel computes, and the result is rounded to bf16. Every bf16 call is defined
 * in this way: products of bf16 values are exact in f32, and sums are f32. Only the order of the sums differs. */
#include "cpu/dnnl_util.h"
#include "cpu/loops.h"
#include "opsig.h"
#include <stdio.h>
#include <string.h>

struct job {
	struct gt_dev *dev;
	const struct gt_opcall *call;
	enum gt_dnnl_pass pass;
	const struct gt_attr_conv2d *conv; /* attributes of the convolution; NULL: the operation is linear */
	int64_t groups;
	int act;
	int res; /* number of the input that is the residual; -1: none */
	/* number of parts of the batch, executed one after the other; above 1 only in a forward pass with a residual or an activation, or if
	 * `wide` */
	int64_t parts;
	const struct gt_tdesc *x, *y, *b; /* operands of oneDNN's primitive */
	struct gt_tdesc *w;
	struct gt_dnnl_md mx, my, mb;
	bool wide; /* x, y and w are these f32 descriptions of the call's bf16 operands */
	struct gt_tdesc wide_x, wide_y, wide_w;
};

/* oneDNN 2.6 offers its batch-reduce kernels (brgconv) before its older jit ones. Measured on AVX-512 in NHWC, the older kernels are up to
 * twice as fast for few input channels, images of a few pixels (brgconv reads all weights once per image) and strided 1x1, and 3 to 10 %
 * faster for most bf16 calls; for all other calls brgconv is faster by as much. tests/bench/ops.txt has the shapes. oneDNN 3 names and
 * orders its kernels differently, so its first offer is used. */
static bool prefers_jit(const struct job *j)
{
	const struct gt_attr_conv2d *c = j->conv;
	int64_t pixels = j->y->dim[2] * j->y->dim[3], in = j->x->dim[1];
	bool strided = c->stride[0] > 1 || c->stride[1] > 1, one = c->kernel[0] == 1 && c->kernel[1] == 1;
	if (j->groups > 1)
		return false;
	if (in < 16 || pixels <= 16 || (strided && one))
		return true;
	return j->x->dtype == GT_BF16 && !strided && !(pixels <= 64 && in >= 256);
}

/* The callback gt_dnnl_request.instead: returns true if `first` is a batch-reduce implementation and `name` is a jit implementation for the
 * same instruction set. */
static bool jit_instead(const char *first, const char *name)
{
	const char *isa = strchr(first, ':'), *colon = strchr(name, ':');
	return !strncmp(first, "brgconv", 7) && !strncmp(name, "jit", 3) && isa && colon && !strcmp(colon, isa);
}

/* The same callback for the gradient of the weights of a 1x1 convolution with strides and fewer than 8 input channels: jit_1x1:avx2 writes
 * past its scratch memory (oneDNN 2.6.3). */
static bool instead_of_1x1(const char *first, const char *name)
{
	return !strncmp(first, "jit_1x1:avx2", 12) && strncmp(name, "jit_1x1", 7) != 0;
}

/* Creates the primitive of a pass for weights with the layout mw. Returns GT_OK with *pd = NULL if oneDNN has none. */
static enum gt_code make_pd(const struct job *j, enum gt_dnnl_pass pass, const struct gt_dnnl_md *mw, dnnl_primitive_desc_t hint,
                            dnnl_primitive_desc_t *pd, struct gt_err *err)
{
	const struct gt_attr_conv2d *c = j->conv;
	struct gt_dnnl_request r = {.pass = pass, .x = &j->mx, .w = mw, .b = j->b ? &j->mb : NULL, .y = &j->my, .hint = hint};
	struct gt_dnnl_window window;
	dnnl_primitive_attr_t attr;
	dnnl_status_t st;
	*pd = NULL;
	if (c) {
		window = (struct gt_dnnl_window){.stride = {c->stride[0], c->stride[1]},
		                                 .padding = {c->padding[0], c->padding[1]},
		                                 .dilation = {c->dilation[0] - 1, c->dilation[1] - 1}};
		r.window = &window;
		r.instead = pass == GT_DNNL_FWD && prefers_jit(j) ? jit_instead : NULL;
		if (pass == GT_DNNL_DW && j->x->dim[1] / j->groups < 8 && (c->stride[0] > 1 || c->stride[1] > 1))
			r.instead = instead_of_1x1;
	}
	GT_TRY(gt_dnnl_attr(&attr, err));
	r.attr = attr;
	st = gt_dnnl_pd(gt_dnnl_engine(j->dev), &r, pd);
	dnnl_primitive_attr_destroy(attr);
	if (st == dnnl_unimplemented)
		return GT_OK;
	return gt_dnnl_check(st, j->call, c ? "convolution" : "inner product", err);
}

/* Creates the primitive of a pass for weights with the layout mw, and the forward primitive that a gradient's primitive needs as a hint. */
static enum gt_code pass_pd(const struct job *j, const struct gt_dnnl_md *mw, dnnl_primitive_desc_t *pd, struct gt_err *err)
{
	dnnl_primitive_desc_t hint;
	struct gt_dnnl_md any;
	struct gt_tdesc w = *j->w;
	enum gt_code code;
	if (j->pass == GT_DNNL_FWD)
		return make_pd(j, GT_DNNL_FWD, mw, NULL, pd, err);
	w.dtype = j->x->dtype; /* the forward primitive needs weights of the type of x; dw itself is f32 */
	any = gt_dnnl_md_any(&w, j->groups);
	*pd = NULL;
	GT_TRY(make_pd(j, GT_DNNL_FWD, &any, NULL, &hint, err));
	if (!hint)
		return GT_OK;
	code = make_pd(j, j->pass, mw, hint, pd, err);
	dnnl_primitive_desc_destroy(hint);
	return code;
}

static gt_dnnl_ref weights_md(const struct job *j, dnnl_primitive_desc_t pd)
{
	return dnnl_primitive_desc_query_md(pd, j->pass == GT_DNNL_DW ? dnnl_query_diff_weights_md : dnnl_query_weights_md, 0);
}

/* Returns whether the implementation computes wrong results for this call: oneDNN's jit_bf16_1x1 multiplies channels in pairs, and if the
 * number of channels that it adds up is odd, its results are wrong for some sizes of images, such as 5 x 6. Its
 * jit_bf16 reads memory that nothing has set for the gradient of the weights if the image is narrower than the stride (oneDNN 2.6.3). */
static bool is_wrong(const struct job *j, dnnl_primitive_desc_t pd)
{
	int64_t added = (j->pass == GT_DNNL_DX ? j->y->dim[1] : j->x->dim[1]) / j->groups;
	if (j->conv && j->pass == GT_DNNL_DW && !strncmp(gt_dnnl_impl(pd), "jit_bf16:", 9))
		return j->x->dim[3] < j->conv->stride[1] && j->conv->kernel[1] > 1;
	return added % 2 && j->pass != GT_DNNL_DW && !strncmp(gt_dnnl_impl(pd), "jit_bf16_1x1", 12);
}

/* Selects the primitive. *mine receives the layout of the parameter; weights_md(*pd) is the layout that the primitive needs. Returns GT_OK
 * with *pd = NULL if oneDNN has no primitive, or for bf16 only its reference loops or an implementation with wrong results. */
static enum gt_code choose_primitive(struct job *j, dnnl_primitive_desc_t *pd, struct gt_dnnl_md *mine, struct gt_err *err)
{
	struct gt_dnnl_md any = gt_dnnl_md_any(j->w, j->groups);
	dnnl_primitive_desc_t given;
	GT_TRY(pass_pd(j, &any, pd, err));
	if (*pd && j->x->dtype == GT_BF16 && (gt_dnnl_reference(*pd) || is_wrong(j, *pd))) {
		dnnl_primitive_desc_destroy(*pd);
		*pd = NULL;
	}
	if (!*pd)
		return GT_OK;
	if (j->w->any) {
		if (!gt_dnnl_layout(weights_md(j, *pd), j->w, j->groups, &j->w->layout))
			j->w->layout = gt_tdesc_make(j->w->dtype, j->w->rank, j->w->dim, false).layout;
		j->w->any = false;
	}
	GT_TRY(gt_dnnl_md(j->w, j->groups, mine, err));
	if (gt_dnnl_md_is(mine, weights_md(j, *pd)))
		return GT_OK;
	/* If the same implementation supports the given layout, no reorder is needed. Another implementation would be slower than a reorder. */
	GT_TRY(pass_pd(j, mine, &given, err));
	if (given && !strcmp(gt_dnnl_impl(given), gt_dnnl_impl(*pd)) && !gt_dnnl_slow(given)) {
		dnnl_primitive_desc_destroy(*pd);
		*pd = given;
	} else if (given) {
		dnnl_primitive_desc_destroy(given);
	}
	return GT_OK;
}

/* Adds an operand of the call that the primitive reads: in[index], or its f32 copy. t and md describe it; moves is true if every part of
 * the batch has its own elements. */
static enum gt_code operand_in(struct job *j, struct gt_dnnl_kernel *k, const struct gt_tdesc *t, const struct gt_dnnl_md *md, int index,
                               bool moves, dnnl_memory_t *mem, struct gt_err *err)
{
	if (j->wide)
		return gt_dnnl_widen_add(j->dev, k, md, index, gt_tdesc_padded(t) / (moves ? j->parts : 1), moves, mem, err);
	GT_TRY(gt_dnnl_tensor_add(j->dev, k, md, GT_DNNL_IN, index, mem, err));
	if (moves && j->parts > 1)
		gt_dnnl_slice(k, *mem, gt_tdesc_bytes(t) / (size_t)j->parts);
	return GT_OK;
}

/* Adds the first output, of which every part of the batch has its own elements, or the f32 tensor that is rounded to it. */
static enum gt_code operand_out(struct job *j, struct gt_dnnl_kernel *k, const struct gt_tdesc *t, const struct gt_dnnl_md *md,
                                dnnl_memory_t *mem, struct gt_err *err)
{
	GT_TRY(gt_dnnl_tensor_add(j->dev, k, md, j->wide ? GT_DNNL_SCRATCH : GT_DNNL_OUT, 0, mem, err));
	if (!j->wide && j->parts > 1)
		gt_dnnl_slice(k, *mem, gt_tdesc_bytes(t) / (size_t)j->parts);
	return GT_OK;
}

/* Adds the weights that the primitive reads, and a reorder if it needs another layout. */
static enum gt_code weights_in(struct job *j, struct gt_dnnl_kernel *k, const struct gt_dnnl_md *mine, gt_dnnl_ref theirs, dnnl_memory_t *w,
                               struct gt_err *err)
{
	dnnl_memory_t own;
	GT_TRY(operand_in(j, k, j->w, mine, 1, false, &own, err));
	*w = own;
	if (gt_dnnl_md_is(mine, theirs))
		return GT_OK;
	GT_TRY(gt_dnnl_ref_add(j->dev, k, theirs, GT_DNNL_SCRATCH, 0, w, err));
	GT_TRY(gt_dnnl_reorder_add(j->dev, k, own, *w, err));
	k->steps[k->nsteps - 1].once = true;
	return GT_OK;
}

/* Returns whether the layout of the parameter differs from the layout of oneDNN's weight gradient only by pairs of rows (pair_rows.c):
 * blocks 8b64a2b instead of 16b64a. */
static bool in_pairs(const struct job *j, gt_dnnl_ref theirs)
{
	const struct gt_layout *own = &j->w->layout;
	struct gt_layout from;
	return j->pass == GT_DNNL_DW && j->groups == 1 && j->w->dtype == GT_F32 && gt_dnnl_layout(theirs, j->w, 1, &from) && from.nblk == 2 &&
	       own->nblk == 3 && !memcmp(own->order, from.order, j->w->rank) && !memcmp(own->blk_dim, from.blk_dim, 2) &&
	       own->blk_dim[2] == own->blk_dim[0] && own->blk_dim[0] != own->blk_dim[1] && own->blk[2] == 2 && own->blk[0] * 2 == from.blk[0] &&
	       own->blk[1] == from.blk[1] && gt_cpu_can_pair(from.blk[0], from.blk[1]);
}

/* The memory objects of the operands of a pass. */
struct operands {
	dnnl_memory_t x, y;
	dnnl_memory_t w;   /* weights in the layout that the primitive needs; for GT_DNNL_DW, their gradient */
	dnnl_memory_t own; /* GT_DNNL_DW: gradient in the parameter's layout; equals w if the layouts are equal or differ by pairs of rows */
	dnnl_memory_t b;   /* bias, or its gradient; NULL: none */
};

/* Adds the operands of a pass, and the steps before its primitive. Gradients that are accumulated are first written to scratch tensors. */
static enum gt_code operands_add(struct job *j, struct gt_dnnl_kernel *k, const struct gt_dnnl_md *mine, gt_dnnl_ref theirs,
                                 struct operands *o, struct gt_err *err)
{
	bool sum_w = (j->call->accumulate & 1) || j->parts > 1, sum_b = (j->call->accumulate & 2) || j->parts > 1;
	*o = (struct operands){0};
	switch (j->pass) {
	case GT_DNNL_FWD:
		GT_TRY(operand_in(j, k, j->x, &j->mx, 0, true, &o->x, err));
		GT_TRY(operand_out(j, k, j->y, &j->my, &o->y, err));
		if (j->b)
			GT_TRY(gt_dnnl_tensor_add(j->dev, k, &j->mb, GT_DNNL_IN, 2, &o->b, err));
		return weights_in(j, k, mine, theirs, &o->w, err);
	case GT_DNNL_DX:
		GT_TRY(operand_in(j, k, j->y, &j->my, 0, true, &o->y, err));
		GT_TRY(operand_out(j, k, j->x, &j->mx, &o->x, err));
		return weights_in(j, k, mine, theirs, &o->w, err);
	case GT_DNNL_DW:
		break;
	}
	GT_TRY(operand_in(j, k, j->y, &j->my, 0, true, &o->y, err));
	GT_TRY(operand_in(j, k, j->x, &j->mx, 1, true, &o->x, err));
	int where = sum_w ? GT_DNNL_SCRATCH : GT_DNNL_OUT;
	GT_TRY(in_pairs(j, theirs) ? gt_dnnl_ref_add(j->dev, k, theirs, where, 0, &o->own, err)
	                           : gt_dnnl_tensor_add(j->dev, k, mine, where, 0, &o->own, err));
	o->w = o->own;
	if (!gt_dnnl_md_is(mine, theirs) && !in_pairs(j, theirs))
		GT_TRY(gt_dnnl_ref_add(j->dev, k, theirs, GT_DNNL_SCRATCH, 0, &o->w, err));
	return j->b ? gt_dnnl_tensor_add(j->dev, k, &j->mb, sum_b ? GT_DNNL_SCRATCH : GT_DNNL_OUT, 1, &o->b, err) : GT_OK;
}

/* Builds the list of primitives of a pass: the operands, a reorder of the weights if the primitive needs another layout, the primitive
 * itself, and sums into gradients that are accumulated or have parts. It takes ownership of pd. */
static enum gt_code build_kernel(struct job *j, struct gt_dnnl_kernel *k, dnnl_primitive_desc_t pd, const struct gt_dnnl_md *mine,
                                 struct gt_err *err)
{
	struct gt_dev *dev = j->dev;
	unsigned add = j->call->accumulate;
	gt_dnnl_ref theirs = weights_md(j, pd);
	bool same = gt_dnnl_md_is(mine, theirs), pairs = in_pairs(j, theirs), split = j->parts > 1;
	struct operands o;
	enum gt_code code;
	snprintf(k->text, sizeof k->text, "%s%s%s%s", j->wide ? "bf16 in " : "", gt_dnnl_impl(pd), same ? "" : pairs ? "+pairs" : "+reorder",
	         add ? "+sum" : "");
	k->slices = (int)j->parts;
	if ((code = operands_add(j, k, mine, theirs, &o, err)) != GT_OK) {
		dnnl_primitive_desc_destroy(pd);
		return code;
	}
	if (j->pass == GT_DNNL_FWD) {
		dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, o.x}, {DNNL_ARG_WEIGHTS, o.w}, {DNNL_ARG_DST, o.y}, {DNNL_ARG_BIAS, o.b}};
		GT_TRY(gt_dnnl_step_add(dev, k, pd, args, o.b ? 4 : 3, err));
		if (j->wide)
			GT_TRY(gt_dnnl_narrow_add(k, o.y, gt_tdesc_padded(j->y) / j->parts, err));
		return j->act || j->res >= 0 ? gt_dnnl_finish_add(k, gt_opcall_output(j->call), j->act, j->res, true, err) : GT_OK;
	}
	if (j->pass == GT_DNNL_DX) {
		dnnl_exec_arg_t args[] = {{DNNL_ARG_DIFF_DST, o.y}, {DNNL_ARG_WEIGHTS, o.w}, {DNNL_ARG_DIFF_SRC, o.x}};
		GT_TRY(gt_dnnl_step_add(dev, k, pd, args, 3, err));
		return j->wide ? gt_dnnl_narrow_add(k, o.x, gt_tdesc_padded(j->x) / j->parts, err) : GT_OK;
	}
	dnnl_exec_arg_t args[] = {{DNNL_ARG_DIFF_DST, o.y}, {DNNL_ARG_SRC, o.x}, {DNNL_ARG_DIFF_WEIGHTS, o.w}, {DNNL_ARG_DIFF_BIAS, o.b}};
	GT_TRY(gt_dnnl_step_add(dev, k, pd, args, o.b ? 4 : 3, err));
	if (pairs)
		GT_TRY(gt_dnnl_pair_add(k, (add & 1) || split ? o.own : NULL, gt_tdesc_padded(j->w), 2 * j->w->layout.blk[0], j->w->layout.blk[1],
		                        err));
	else if (!same)
		GT_TRY(gt_dnnl_reorder_add(dev, k, o.w, o.own, err));
	if ((add & 1) || split)
		GT_TRY(gt_dnnl_sum_add(k, 0, o.own, gt_tdesc_padded(j->w), add & 1, false, err));
	if (o.b && ((add & 2) || split))
		GT_TRY(gt_dnnl_sum_add(k, 1, o.b, gt_tdesc_count(j->b), add & 2, false, err));
	return GT_OK;
}

/* A batch is executed in parts whose output has about this size, so that residual and activation find the output in the cache. All
 * parts have the same size, because they share a primitive. */
#define FINISH_PART (1 << 20) /* bytes of output per thread: half of an L2 cache */

/* A widened batch is executed in parts whose f32 copies together have about this size, so that bf16 still needs less memory than f32. The
 * division depends on shapes only, because sums over parts must not depend on the number of threads. */
#define WIDE_PART ((int64_t)16 << 20)
#define WIDE_LEAST 8 /* samples of a part: fewer would leave threads idle */

/* Returns whether the samples of t are consecutive in memory. */
static bool by_sample(const struct gt_tdesc *t)
{
	bool blocked = false;
	for (int b = 0; b < t->layout.nblk; b++)
		blocked |= t->layout.blk_dim[b] == 0;
	return t->layout.order[0] == 0 && !blocked;
}

/* Returns the number of parts of the batch. */
static int64_t parts_of(const struct job *j)
{
	int64_t n = j->y->dim[0], parts = 1, threads = gt_cpu_threads(j->dev), bytes = (int64_t)gt_tdesc_bytes(j->y);
	if (j->wide) {
		bytes += (int64_t)gt_tdesc_bytes(j->x);
		while (by_sample(j->x) && by_sample(j->y) && n / parts % 2 == 0 && n / parts / 2 >= WIDE_LEAST && bytes / parts > WIDE_PART)
			parts *= 2;
		return parts;
	}
	if (j->pass != GT_DNNL_FWD || !j->conv || (!j->act && j->res < 0) || j->x->layout.order[0] || j->y->layout.order[0] ||
	    j->x->layout.nblk || j->y->layout.nblk)
		return 1;
	while (n / parts % 2 == 0 && n / parts / 2 >= threads && bytes / parts > FINISH_PART * threads)
		parts *= 2;
	return parts;
}

/* Sets the operands of the pass: the operands of the call, or their f32 descriptions. */
static void take_operands(struct job *j, bool wide)
{
	const struct gt_opcall *call = j->call;
	bool fwd = j->pass == GT_DNNL_FWD, dw = j->pass == GT_DNNL_DW;
	j->x = gt_opcall_operand(call, j->pass == GT_DNNL_DX ? "dx" : "x");
	j->w = gt_opcall_operand(call, dw ? "dw" : "w");
	j->y = gt_opcall_operand(call, fwd ? "y" : "dy");
	j->b = gt_opcall_operand(call, fwd ? "b" : "db");
	j->wide = wide;
	if (!wide)
		return;
	j->wide_x = *j->x, j->wide_y = *j->y, j->wide_w = *j->w;
	j->wide_x.dtype = j->wide_y.dtype = j->wide_w.dtype = GT_F32;
	j->x = &j->wide_x, j->y = &j->wide_y, j->w = &j->wide_w;
}

/* Describes the operands to oneDNN and selects the primitive, as choose_primitive() does. */
static enum gt_code describe_and_choose(struct job *j, dnnl_primitive_desc_t *pd, struct gt_dnnl_md *mine, struct gt_err *err)
{
	j->parts = parts_of(j);
	if (j->parts > 1) {
		GT_TRY(gt_dnnl_md_part(j->x, 0, j->x->dim[0] / j->parts, &j->mx, err));
		GT_TRY(gt_dnnl_md_part(j->y, 0, j->y->dim[0] / j->parts, &j->my, err));
	} else {
		GT_TRY(gt_dnnl_md(j->x, 1, &j->mx, err));
		GT_TRY(gt_dnnl_md(j->y, 1, &j->my, err));
	}
	if (j->b)
		GT_TRY(gt_dnnl_md(j->b, 1, &j->mb, err));
	return choose_primitive(j, pd, mine, err);
}

static enum gt_code prepare_kernel(struct job *j, struct gt_kernel **out, struct gt_err *err)
{
	struct gt_tdesc *w;
	struct gt_dnnl_md mine;
	dnnl_primitive_desc_t pd;
	struct gt_dnnl_kernel *k;
	enum gt_code code;
	take_operands(j, false);
	w = j->w;
	GT_TRY(describe_and_choose(j, &pd, &mine, err));
	if (!pd && j->x->dtype == GT_BF16) {
		take_operands(j, true);
		GT_TRY(describe_and_choose(j, &pd, &mine, err));
		if (pd)
			w->layout = j->w->layout, w->any = false;
	}
	if (!pd)
		return gt_opcall_refuse(j->call, err, "oneDNN has no implementation on this processor");
	if ((code = gt_dnnl_kernel_make(&k, err)) != GT_OK) {
		dnnl_primitive_desc_destroy(pd);
		return code;
	}
	if ((code = build_kernel(j, k, pd, &mine, err)) != GT_OK) {
		gt_dnnl_kernel_release(&k->head);
		return code;
	}
	*out = &k->head;
	return GT_OK;
}

enum gt_code gt_cpu_conv(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct gt_attr_conv2d *a = call->attr;
	struct job j = {.dev = dev, .call = call, .conv = a, .groups = a->groups > 1 ? a->groups : 1, .act = a->act, .res = -1};
	j.pass = call->code == GT_OP_CONV2D ? GT_DNNL_FWD : call->code == GT_OP_CONV2D_DX ? GT_DNNL_DX : GT_DNNL_DW;
	if (j.pass == GT_DNNL_FWD && gt_opcall_operand(call, "res"))
		j.res = gt_opsig_find_input(GT_OP_CONV2D, "res");
	if (gt_cpu_winograd(dev)) {
		GT_TRY(gt_cpu_winograd_conv(dev, call, out, err));
		if (*out)
			return GT_OK;
	}
	if (j.pass == GT_DNNL_FWD) {
		GT_TRY(gt_cpu_conv_1x1(dev, call, out, err));
		if (*out)
			return GT_OK;
	}
	GT_TRY((j.pass == GT_DNNL_DW ? gt_cpu_conv_grouped_dw : gt_cpu_conv_grouped)(dev, call, out, err));
	if (*out)
		return GT_OK;
	GT_TRY((j.pass == GT_DNNL_DW ? gt_cpu_conv_direct_dw : gt_cpu_conv_direct)(dev, call, out, err));
	if (*out)
		return GT_OK;
	return prepare_kernel(&j, out, err);
}

enum gt_code gt_dnnl_linear(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct gt_attr_linear *a = call->attr;
	struct job j = {.dev = dev, .call = call, .groups = 1, .act = a->act, .res = -1};
	j.pass = call->code == GT_OP_LINEAR ? GT_DNNL_FWD : call->code == GT_OP_LINEAR_DX ? GT_DNNL_DX : GT_DNNL_DW;
	return prepare_kernel(&j, out, err);
}

bool gt_dnnl_has_bf16(void)
{
	static const enum gt_dnnl_pass passes[] = {GT_DNNL_FWD, GT_DNNL_DX, GT_DNNL_DW};
	const int64_t dim[2] = {64, 64};
	struct gt_tdesc t = gt_tdesc_make(GT_BF16, 2, dim, false);
	struct gt_dnnl_md plain, any = gt_dnnl_md_any(&t, 1);
	dnnl_primitive_desc_t hint = NULL;
	dnnl_primitive_attr_t attr;
	struct gt_dnnl *d;
	struct gt_err err;
	bool has = true;
	if (gt_dnnl_open(&d, &err) != GT_OK)
		return false;
	if (gt_dnnl_md(&t, 1, &plain, &err) != GT_OK || gt_dnnl_attr(&attr, &err) != GT_OK) {
		gt_dnnl_close(d);
		return false;
	}
	for (int i = 0; i < 3 && has; i++) {
		struct gt_dnnl_request r = {.pass = passes[i], .x = &plain, .w = &any, .y = &plain, .attr = attr, .hint = hint};
		dnnl_primitive_desc_t pd;
		has = gt_dnnl_pd(gt_dnnl_engine_of(d), &r, &pd) == dnnl_success;
		if (!has)
			break;
		has = !gt_dnnl_reference(pd);
		if (i)
			dnnl_primitive_desc_destroy(pd);
		else
			hint = pd;
	}
	if (hint)
		dnnl_primitive_desc_destroy(hint);
	dnnl_primitive_attr_destroy(attr);
	gt_dnnl_close(d);
	return has;
}
