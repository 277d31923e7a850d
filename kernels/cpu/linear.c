/* Linear layers: which implementation takes a call, and the face of gemm_small.c to the backend. The forward call decides by the
 * batch and thereby gives the weights their layout; the gradients follow the layout they meet. */
#include "cpu/cpu.h"
#include "cpu/gemm_small.h"
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#define SMALL_BATCH 512

struct linear {
	struct gt_kernel head;
	const struct gt_gemm_isa *isa;
	struct gt_gemm g; /* shapes; the pointers are a launch's */
	bool bias;
	char text[32];
};

static const struct gt_layout tiles = {.order = {1, 0}, .nblk = 2, .blk_dim = {1, 0}, .blk = {16, 16}};

static bool in_tiles(const struct gt_tdesc *w)
{
	struct gt_tdesc t = *w;
	t.layout = tiles;
	return !w->any && gt_tdesc_equal(&t, w);
}

static void run(struct gt_dev *dev, void (*part)(const struct gt_gemm *, int, int), const struct gt_gemm *g)
{
#pragma omp parallel num_threads(gt_cpu_threads(dev))
	part(g, omp_get_thread_num(), omp_get_num_threads());
}

static enum gt_code launch_fwd(struct gt_dev *dev, struct gt_kernel *head, const struct gt_launch *a, struct gt_err *err)
{
	struct linear *k = (struct linear *)head;
	struct gt_gemm g = k->g;
	(void)err;
	g.x = a->in[0], g.w = a->in[1], g.b = k->bias ? a->in[2] : NULL, g.y = a->out[0];
	run(dev, k->isa->fwd, &g);
	return GT_OK;
}

static enum gt_code launch_dx(struct gt_dev *dev, struct gt_kernel *head, const struct gt_launch *a, struct gt_err *err)
{
	struct linear *k = (struct linear *)head;
	struct gt_gemm g = k->g;
	(void)err;
	g.dy = a->in[0], g.w = a->in[1], g.dx = a->out[0];
	run(dev, k->isa->dx, &g);
	return GT_OK;
}

static enum gt_code launch_dw(struct gt_dev *dev, struct gt_kernel *head, const struct gt_launch *a, struct gt_err *err)
{
	struct linear *k = (struct linear *)head;
	struct gt_gemm g = k->g;
	(void)err;
	g.dy = a->in[0], g.x = a->in[1], g.dw = a->out[0], g.db = k->bias ? a->out[1] : NULL, g.scratch = a->scratch;
	run(dev, k->isa->dw, &g);
	return GT_OK;
}

enum gt_code gt_cpu_linear(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct gt_attr_linear *attr = call->attr;
	const struct gt_gemm_isa *isa = gt_gemm_isa();
	bool fwd = call->code == GT_OP_LINEAR, dw = call->code == GT_OP_LINEAR_DW;
	const struct gt_tdesc *x = fwd ? call->in[0] : dw ? call->in[1] : call->out[0];
	struct gt_tdesc *w = dw ? call->out[0] : call->in[1];
	struct linear *k;
	if (x->rank != 2)
		return gt_cpu_refuse(call, err, "linear takes [batch, features]");
	if (!isa || x->dtype != GT_F32 || (w->any ? x->dim[0] > SMALL_BATCH : !in_tiles(w)))
		return gt_dnnl_linear(dev, call, out, err);
	if (w->any) {
		w->layout = tiles;
		w->any = false;
	}
	if (!(k = calloc(1, sizeof *k)))
		return gt_fail(err, GT_EFAIL, "out of memory");
	k->isa = isa;
	k->g = (struct gt_gemm){.m = x->dim[0], .in = w->dim[1], .out = w->dim[0], .relu = attr->act == GT_ACT_RELU};
	k->g.add_dw = dw && (call->accumulate & 1);
	k->g.add_db = dw && (call->accumulate & 2);
	k->bias = fwd ? call->nin > 2 && call->in[2] : dw && call->nout > 1 && call->out[1];
	k->head.launch = fwd ? launch_fwd : dw ? launch_dw : launch_dx;
	k->head.scratch = dw ? gt_gemm_scratch_dw(k->g.m, k->g.out, gt_cpu_threads(dev)) : 0;
	snprintf(k->text, sizeof k->text, "gemm_small:%s", isa->name);
	k->head.describe = k->text;
	*out = &k->head;
	return GT_OK;
}
