/* Convolutions, and the linear layers that gemm_small.c does not support: oneDNN's convolution and inner product. Both have source,
 * weights, bias and destination, and three primitives.
 *
 * The forward call lets oneDNN choose the layout of the weights, which becomes the layout of the parameter. The primitive of a gradient may
 * need another one; the call then reorders the weights, which costs little compared to the convolution. */
#include "cpu/dnnl_util.h"
#include <stdio.h>
#include <string.h>

struct job {
	struct gt_dev *dev;
	const struct gt_opcall *call;
	enum gt_dnnl_pass pass;
	const struct gt_attr_conv2d *conv; /* attributes of the convolution; NULL: the operation is linear */
	int64_t groups;
	int act;
	int64_t parts; /* number of parts of the batch that are executed one after the other; > 1 only in a forward pass with relu */
	const struct gt_tdesc *x, *y, *b;
	struct gt_tdesc *w;
	struct gt_dnnl_md mx, my, mb;
};

/* oneDNN 2.6 offers its batch-reduce kernels (brgconv) before its older jit ones. Measured on AVX-512 in NHWC, the older ones are up to
 * twice as fast for few input channels, for images of a few pixels (brgconv reads all weights once per image), for strided 1x1, and 3 to 10
 * % faster for most of bf16; brgconv wins by as much for the rest. tests/bench/bench_cpu.c has the shapes. oneDNN 3 names and orders its
 * kernels differently, so its first offer is used. */
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
		window = (struct gt_dnnl_window){.algorithm = dnnl_convolution_direct,
		                                 .stride = {c->stride[0], c->stride[1]},
		                                 .padding = {c->padding[0], c->padding[1]},
		                                 .dilation = {c->dilation[0] - 1, c->dilation[1] - 1}};
		r.window = &window;
		r.instead = pass == GT_DNNL_FWD && prefers_jit(j) ? jit_instead : NULL;
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

/* Selects the primitive. *mine receives the layout of the parameter; weights_md(*pd) is the layout that the primitive needs. */
static enum gt_code choose(struct job *j, dnnl_primitive_desc_t *pd, struct gt_dnnl_md *mine, struct gt_err *err)
{
	struct gt_dnnl_md any = gt_dnnl_md_any(j->w, j->groups);
	dnnl_primitive_desc_t given;
	GT_TRY(pass_pd(j, &any, pd, err));
	if (!*pd)
		return gt_cpu_refuse(j->call, err, "oneDNN has no implementation on this processor");
	if (j->w->any) {
		if (!gt_dnnl_layout(weights_md(j, *pd), j->w, j->groups, &j->w->layout))
			j->w->layout = gt_tdesc_make(j->w->dtype, j->w->rank, j->w->dim, false).layout;
		j->w->any = false;
	}
	GT_TRY(gt_dnnl_md(j->w, j->groups, mine, err));
	if (gt_dnnl_md_is(mine, weights_md(j, *pd)))
		return GT_OK;
	/* The same implementation may support the given layout too. Another implementation would be slower than a reorder. */
	GT_TRY(pass_pd(j, mine, &given, err));
	if (given && !strcmp(gt_dnnl_impl(given), gt_dnnl_impl(*pd)) && !gt_dnnl_slow(given)) {
		dnnl_primitive_desc_destroy(*pd);
		*pd = given;
	} else if (given) {
		dnnl_primitive_desc_destroy(given);
	}
	return GT_OK;
}

/* Builds the list of primitives of a pass: adds the operands, a reorder of the weights if the primitive needs another layout, the primitive
 * itself, and sums into gradients that are accumulated. It takes ownership of pd. */
static enum gt_code build(struct job *j, struct gt_dnnl_kernel *k, dnnl_primitive_desc_t pd, const struct gt_dnnl_md *mine,
                          struct gt_err *err)
{
	struct gt_dev *dev = j->dev;
	const struct gt_opcall *call = j->call;
	gt_dnnl_ref theirs = weights_md(j, pd);
	bool same = gt_dnnl_md_is(mine, theirs);
	dnnl_memory_t x, y, w, own, b = NULL;
	enum gt_code code;
	snprintf(k->text, sizeof k->text, "%s%s%s", gt_dnnl_impl(pd), same ? "" : "+reorder", call->accumulate ? "+sum" : "");
#define TRY(expr)                                                                                                                          \
	if ((code = (expr)) != GT_OK) {                                                                                                        \
		dnnl_primitive_desc_destroy(pd);                                                                                                   \
		return code;                                                                                                                       \
	}
	if (j->pass == GT_DNNL_FWD) {
		TRY(gt_dnnl_tensor_add(dev, k, &j->mx, GT_DNNL_IN, 0, &x, err));
		TRY(gt_dnnl_tensor_add(dev, k, mine, GT_DNNL_IN, 1, &own, err));
		TRY(gt_dnnl_tensor_add(dev, k, &j->my, GT_DNNL_OUT, 0, &y, err));
		if (j->b)
			TRY(gt_dnnl_tensor_add(dev, k, &j->mb, GT_DNNL_IN, 2, &b, err));
		w = own;
		if (!same) {
			TRY(gt_dnnl_scratch_add(dev, k, theirs, &w, err));
			TRY(gt_dnnl_reorder_add(dev, k, own, w, err));
			k->steps[k->nsteps - 1].once = true;
		}
		k->slices = (int)j->parts;
		if (j->parts > 1) {
			gt_dnnl_slice(k, x, gt_tdesc_bytes(j->x) / (size_t)j->parts);
			gt_dnnl_slice(k, y, gt_tdesc_bytes(j->y) / (size_t)j->parts);
		}
		dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DST, y}, {DNNL_ARG_BIAS, b}};
		GT_TRY(gt_dnnl_step_add(dev, k, pd, args, b ? 4 : 3, err));
		return j->act == GT_ACT_RELU ? gt_dnnl_relu_add(k, j->y, true, err) : GT_OK;
	}
	if (j->pass == GT_DNNL_DX) {
		TRY(gt_dnnl_tensor_add(dev, k, &j->my, GT_DNNL_IN, 0, &y, err));
		TRY(gt_dnnl_tensor_add(dev, k, mine, GT_DNNL_IN, 1, &own, err));
		TRY(gt_dnnl_tensor_add(dev, k, &j->mx, GT_DNNL_OUT, 0, &x, err));
		w = own;
		if (!same) {
			TRY(gt_dnnl_scratch_add(dev, k, theirs, &w, err));
			TRY(gt_dnnl_reorder_add(dev, k, own, w, err));
		}
		dnnl_exec_arg_t args[] = {{DNNL_ARG_DIFF_DST, y}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DIFF_SRC, x}};
		return gt_dnnl_step_add(dev, k, pd, args, 3, err);
	}
	bool sum_w = call->accumulate & 1, sum_b = j->b && (call->accumulate & 2);
	TRY(gt_dnnl_tensor_add(dev, k, &j->my, GT_DNNL_IN, 0, &y, err));
	TRY(gt_dnnl_tensor_add(dev, k, &j->mx, GT_DNNL_IN, 1, &x, err));
	TRY(gt_dnnl_tensor_add(dev, k, mine, sum_w ? GT_DNNL_SCRATCH : GT_DNNL_OUT, 0, &own, err));
	w = own;
	if (!same)
		TRY(gt_dnnl_scratch_add(dev, k, theirs, &w, err));
	if (j->b)
		TRY(gt_dnnl_tensor_add(dev, k, &j->mb, sum_b ? GT_DNNL_SCRATCH : GT_DNNL_OUT, 1, &b, err));
#undef TRY
	dnnl_exec_arg_t args[] = {{DNNL_ARG_DIFF_DST, y}, {DNNL_ARG_SRC, x}, {DNNL_ARG_DIFF_WEIGHTS, w}, {DNNL_ARG_DIFF_BIAS, b}};
	GT_TRY(gt_dnnl_step_add(dev, k, pd, args, b ? 4 : 3, err));
	if (!same)
		GT_TRY(gt_dnnl_reorder_add(dev, k, w, own, err));
	if (sum_w)
		GT_TRY(gt_dnnl_sum_add(k, 0, own, gt_tdesc_padded(j->w), true, false, err));
	if (sum_b)
		GT_TRY(gt_dnnl_sum_add(k, 1, b, gt_tdesc_count(j->b), true, false, err));
	return GT_OK;
}

/* A batch is executed in parts whose output has about this size, so that the relu after a convolution finds the output in the cache. All
 * parts have the same size, because they share a primitive. */
#define RELU_PART (1 << 20) /* bytes of output per thread: half of an L2 cache */

static int64_t relu_parts(const struct job *j)
{
	int64_t n = j->y->dim[0], parts = 1, threads = gt_cpu_threads(j->dev), bytes = (int64_t)gt_tdesc_bytes(j->y);
	if (j->pass != GT_DNNL_FWD || !j->conv || j->act != GT_ACT_RELU || j->x->layout.order[0] || j->y->layout.order[0] ||
	    j->x->layout.nblk || j->y->layout.nblk)
		return 1;
	while (n / parts % 2 == 0 && n / parts / 2 >= threads && bytes / parts > RELU_PART * threads)
		parts *= 2;
	return parts;
}

static enum gt_code prepare(struct job *j, struct gt_kernel **out, struct gt_err *err)
{
	const struct gt_opcall *call = j->call;
	struct gt_dnnl_md mine;
	dnnl_primitive_desc_t pd;
	struct gt_dnnl_kernel *k;
	enum gt_code code;
	switch (j->pass) {
	case GT_DNNL_FWD:
		j->x = call->in[0], j->w = call->in[1], j->b = call->nin > 2 ? call->in[2] : NULL, j->y = call->out[0];
		break;
	case GT_DNNL_DX:
		j->y = call->in[0], j->w = call->in[1], j->x = call->out[0];
		break;
	case GT_DNNL_DW:
		j->y = call->in[0], j->x = call->in[1], j->w = call->out[0], j->b = call->nout > 1 ? call->out[1] : NULL;
		break;
	}
	j->parts = relu_parts(j);
	if (j->parts > 1) {
		GT_TRY(gt_dnnl_md_part(j->x, 0, j->x->dim[0] / j->parts, &j->mx, err));
		GT_TRY(gt_dnnl_md_part(j->y, 0, j->y->dim[0] / j->parts, &j->my, err));
	} else {
		GT_TRY(gt_dnnl_md(j->x, 1, &j->mx, err));
		GT_TRY(gt_dnnl_md(j->y, 1, &j->my, err));
	}
	if (j->b)
		GT_TRY(gt_dnnl_md(j->b, 1, &j->mb, err));
	GT_TRY(choose(j, &pd, &mine, err));
	if ((code = gt_dnnl_kernel_make(&k, err)) != GT_OK) {
		dnnl_primitive_desc_destroy(pd);
		return code;
	}
	if ((code = build(j, k, pd, &mine, err)) != GT_OK) {
		gt_dnnl_kernel_release(&k->head);
		return code;
	}
	*out = &k->head;
	return GT_OK;
}

enum gt_code gt_cpu_conv(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct gt_attr_conv2d *a = call->attr;
	if (call->in[0]->dtype == GT_F64)
		return gt_ref_conv(dev, call, out, err);
	struct job j = {.dev = dev, .call = call, .conv = a, .groups = a->groups > 1 ? a->groups : 1, .act = a->act};
	j.pass = call->code == GT_OP_CONV2D ? GT_DNNL_FWD : call->code == GT_OP_CONV2D_DX ? GT_DNNL_DX : GT_DNNL_DW;
	if (gt_cpu_winograd(dev)) {
		GT_TRY(gt_dnnl_wino(dev, call, out, err));
		if (*out)
			return GT_OK;
	}
	return prepare(&j, out, err);
}

enum gt_code gt_dnnl_linear(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct gt_attr_linear *a = call->attr;
	struct job j = {.dev = dev, .call = call, .groups = 1, .act = a->act};
	j.pass = call->code == GT_OP_LINEAR ? GT_DNNL_FWD : call->code == GT_OP_LINEAR_DX ? GT_DNNL_DX : GT_DNNL_DW;
	return prepare(&j, out, err);
}
