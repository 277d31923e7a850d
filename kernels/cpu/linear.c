/* Linear layers: selects the implementation of a call and connects gemm_small.c to the backend. The batch size determines the
 * implementation of the forward call, which sets the layout of the weights. The gradients use this layout. */
#include "cpu/cpu.h"
#include "cpu/gemm_small.h"
#include "cpu/loops.h"
#include "cpu/update.h"
#include "opsig.h"
#include "optimizer.h"
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#define SMALL_BATCH 512 /* oneDNN's products are faster for a larger batch, except where gt_gemm_isa.any_batch is set */

struct linear {
	struct gt_kernel head;
	void (*product)(const struct gt_gemm *g, int thread, int threads); /* of struct gt_gemm_isa */
	struct gt_gemm g; /* shapes of the product; each launch sets the pointers */
	struct gt_binding binding;
	enum gt_opcode optimizer;   /* the optimizer of a call of linear.dw+update */
	struct gt_attr_update update;
	struct gt_seg seg;
	char text[40];
	int part, parts; /* linear.dw+update: index of the part of dw that this call computes, and number of parts */
};

static const struct gt_layout tiles = {.order = {1, 0}, .nblk = 2, .blk_dim = {1, 0}, .blk = {16, 16}};

static bool in_tiles(const struct gt_tdesc *w)
{
	struct gt_tdesc t = *w;
	t.layout = tiles;
	return !w->any && gt_tdesc_equal(&t, w);
}

static const struct gt_operand_slot fwd_slots[] = {GT_SLOTS(gt_gemm, x, w, b, y)};
static const struct gt_operand_slot dx_slots[] = {GT_SLOTS(gt_gemm, dy, w, dx), GT_SLOT_AS(gt_gemm, "y", mask)};
static const struct gt_operand_slot dw_slots[] = {GT_SLOTS(gt_gemm, dy, x, dw, db)};

/* Does a thread's part of a product. Several threads work on one launch, so each has a copy of the arguments. */
static void part_product(struct gt_dev *dev, struct gt_kernel *head, const struct gt_launch *a, int thread, int threads)
{
	const struct linear *k = (const struct linear *)head;
	struct gt_gemm g = k->g;
	(void)dev;
	gt_binding_apply(&k->binding, &g, a->in, a->out);
	g.scratch = a->scratch;
	k->product(&g, thread, threads);
}

struct update_operands {
	struct gt_gemm g;
	const struct gt_scalars *scalars;
	float *w;
	void *state[GT_MAX_STATES];
};

static const struct gt_operand_slot update_slots[] = {
    GT_SLOTS(update_operands, scalars, w), GT_SLOT_AS(update_operands, "dy", g.dy), GT_SLOT_AS(update_operands, "x", g.x),
    GT_SLOT_AS(update_operands, "db", g.db), GT_SLOT_AS(update_operands, "s0", state[0]), GT_SLOT_AS(update_operands, "s1", state[1]),
    GT_SLOT_AS(update_operands, "s2", state[2])};

/* Does a thread's part of linear.dw+update: it updates w with each tile of dw as soon as the tile is computed. The bias gradient is
 * stored. */
static void part_dw_update(struct gt_dev *dev, struct gt_kernel *head, const struct gt_launch *a, int thread, int threads)
{
	const struct linear *k = (const struct linear *)head;
	struct update_operands o = {.g = k->g};
	(void)dev;
	gt_binding_apply(&k->binding, &o, a->in, a->out);
	if (o.scalars && o.scalars->skip)
		return;
	struct gt_cpu_apply apply = gt_cpu_apply_make(k->optimizer, &k->update, a->step_args, o.scalars, o.w, o.state);
	o.g.scratch = a->scratch, o.g.apply = gt_cpu_apply_run, o.g.ctx = &apply;
	o.g.first = k->part * threads; /* the ranks of this host divide the product: threads are numbered over all of them */
	k->product(&o.g, o.g.first + thread, threads * k->parts);
}

static enum gt_code launch_parts(struct gt_dev *dev, struct gt_kernel *k, const struct gt_launch *a, struct gt_err *err)
{
	int threads = gt_cpu_threads(dev);
	(void)err;
	if (gt_cpu_threads_now(dev) == 1) { /* one thread computes the parts of all threads, with the same bits */
		for (int i = 0; i < threads; i++)
			k->part(dev, k, a, i, threads);
		return GT_OK;
	}
#pragma omp parallel num_threads(threads)
	k->part(dev, k, a, omp_get_thread_num(), omp_get_num_threads());
	return GT_OK;
}

enum gt_code gt_cpu_linear_dw_update(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct gt_attr_dw_update *attr = call->attr;
	const struct gt_gemm_isa *isa = gt_gemm_isa();
	const struct gt_tdesc *dy = gt_opcall_operand(call, "dy"), *x = gt_opcall_operand(call, "x");
	struct gt_tdesc *w = gt_opcall_operand(call, "w");
	struct linear *k;
	const char *why = gt_update_refuses_fused(call);
	if (why)
		return gt_opcall_refuse(call, err, why);
	if (!isa || x->dtype != GT_F32 || x->dim[0] > GT_GEMM_APPLY_M || !(w->any || in_tiles(w)))
		return gt_opcall_refuse(call, err, "only f32, small batches and tiled weights are supported");
	w->layout = tiles;
	w->any = false;
	GT_KERNEL_NEW(k, err);
	k->product = isa->dw;
	k->g = (struct gt_gemm){.m = x->dim[0], .in = x->dim[1], .out = dy->dim[1]};
	gt_binding_make(&k->binding, update_slots, sizeof update_slots / sizeof *update_slots, call);
	k->optimizer = attr->optimizer;
	k->update = attr->update;
	k->seg = attr->update.seg[0];
	k->part = attr->part;
	k->parts = attr->parts ? attr->parts : 1;
	k->update.seg = &k->seg;
	k->head.launch = launch_parts;
	k->head.part = part_dw_update;
	k->head.scratch = gt_gemm_scratch_dw(k->g.m, k->g.out, gt_cpu_threads(dev));
	snprintf(k->text, sizeof k->text, "gemm_small:%s+%s", isa->name, gt_opcode_name(attr->optimizer));
	k->head.describe = k->text;
	*out = &k->head;
	return GT_OK;
}

/* A kernel of linear.dx that runs oneDNN's product and then applies the gradient of relu to dx in place. */
struct masked {
	struct gt_kernel head;
	struct gt_kernel *dx, *relu;
	struct gt_binding binding; /* the inputs of relu */
};

static const struct gt_operand_slot relu_slots[] = {{"dx", 0}, {"y", sizeof(void *)}};

static enum gt_code launch_masked(struct gt_dev *dev, struct gt_kernel *head, const struct gt_launch *a, struct gt_err *err)
{
	struct masked *k = (struct masked *)head;
	void *in[GT_MAX_IO];
	gt_binding_apply(&k->binding, in, a->in, a->out);
	struct gt_launch relu = {.in = in, .out = a->out, .scratch = a->scratch, .step_args = a->step_args, .stream = a->stream};
	GT_TRY(k->dx->launch(dev, k->dx, a, err));
	return k->relu->launch(dev, k->relu, &relu, err);
}

static void release_kernel(struct gt_kernel *k)
{
	if (k && k->release)
		k->release(k);
	else
		free(k);
}

static void release_masked(struct gt_kernel *head)
{
	struct masked *k = (struct masked *)head;
	release_kernel(k->dx);
	release_kernel(k->relu);
	free(k);
}

static enum gt_code prepare_masked(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	struct gt_tdesc *dx = gt_opcall_operand(call, "dx"), *y = gt_opcall_operand(call, "y");
	struct gt_opcall plain = *call,
	                 relu = {.code = GT_OP_RELU_DX, .name = call->name, .nin = 2, .nout = 1, .in = {dx, y}, .out = {dx}};
	struct masked *k;
	plain.nin = 2;
	GT_KERNEL_NEW(k, err);
	k->head.launch = launch_masked;
	k->head.release = release_masked;
	gt_binding_make(&k->binding, relu_slots, 2, call);
	enum gt_code code = gt_dnnl_linear(dev, &plain, &k->dx, err);
	if (code == GT_OK)
		code = gt_cpu_eltwise(dev, &relu, &k->relu, err);
	if (code != GT_OK) {
		release_masked(&k->head);
		return code;
	}
	k->head.scratch = k->dx->scratch > k->relu->scratch ? k->dx->scratch : k->relu->scratch;
	k->head.describe = k->dx->describe;
	*out = &k->head;
	return GT_OK;
}

/* Returns whether gemm_small.c supports the layout of the weights or, for `dw`, their gradient. If the layout is not chosen yet, returns
 * whether it should be that of gemm_small.c. */
static bool supports_layout(const struct gt_gemm_isa *isa, const struct gt_tdesc *w, int64_t batch, bool dw)
{
	if (w->any)
		return isa->any_batch || batch <= SMALL_BATCH;
	return in_tiles(w) || (dw && isa->any_batch && gt_tdesc_plain(w));
}

enum gt_code gt_cpu_linear(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct gt_attr_linear *attr = call->attr;
	const struct gt_gemm_isa *isa = gt_gemm_isa();
	bool fwd = call->code == GT_OP_LINEAR, dw = call->code == GT_OP_LINEAR_DW;
	bool mask = call->code == GT_OP_LINEAR_DX && gt_opcall_operand(call, "y");
	const struct gt_tdesc *x = gt_opcall_operand(call, fwd || dw ? "x" : "dx");
	struct gt_tdesc *w = gt_opcall_operand(call, dw ? "dw" : "w");
	struct linear *k;
	if (attr->act > GT_ACT_RELU)
		return gt_opcall_refuse(call, err, "only relu may follow in the same call");
	if (fwd && call->nout > 1) /* a mask would save nothing: its reader finds the output of relu in the cache */
		return gt_opcall_refuse(call, err, "this backend does not write bit masks");
	if (dw) {
		GT_TRY(gt_cpu_linear_dw_bf16(dev, call, out, err));
		if (*out)
			return GT_OK;
	}
	if (!isa || x->dtype != GT_F32 || !supports_layout(isa, w, x->dim[0], dw))
		return mask ? prepare_masked(dev, call, out, err) : gt_dnnl_linear(dev, call, out, err);
	if (w->any) {
		w->layout = tiles;
		w->any = false;
	}
	GT_KERNEL_NEW(k, err);
	k->product = fwd ? isa->fwd : dw ? isa->dw : isa->dx;
	k->g = (struct gt_gemm){.m = x->dim[0], .in = w->dim[1], .out = w->dim[0], .relu = attr->act == GT_ACT_RELU};
	k->g.plain_dw = dw && !in_tiles(w);
	k->g.add_dw = gt_opcall_adds(call, "dw");
	k->g.add_db = gt_opcall_adds(call, "db");
	gt_binding_make(&k->binding, fwd ? fwd_slots : dw ? dw_slots : dx_slots, sizeof fwd_slots / sizeof *fwd_slots, call);
	k->head.launch = launch_parts;
	k->head.part = part_product;
	k->head.scratch = dw ? gt_gemm_scratch_dw(k->g.m, k->g.out, gt_cpu_threads(dev)) : 0;
	snprintf(k->text, sizeof k->text, "gemm_small:%s", isa->name);
	k->head.describe = k->text;
	*out = &k->head;
	return GT_OK;
}
