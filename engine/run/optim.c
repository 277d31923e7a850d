#include "run/optim.h"
#include <math.h>

void gt_optim_init(struct gt_optim *o, const struct gt_conf_train *t)
{
	const struct gt_conf_optimizer *c = &t->optimizer;
	*o = (struct gt_optim){.attr = {.momentum = c->momentum,
	                                .dampening = c->dampening,
	                                .beta1 = c->betas[0],
	                                .beta2 = c->betas[1],
	                                .eps = c->eps,
	                                .alpha = c->alpha,
	                                .nesterov = c->nesterov,
	                                .decoupled = c->type == GT_OPT_ADAMW,
	                                .centered = c->centered,
	                                .clip_norm = t->clip_norm}};
	switch ((enum gt_optimizer)c->type) {
	case GT_OPT_SGD:
		o->code = GT_OP_SGD;
		if (c->momentum != 0)
			o->state[o->nstates++] = "momentum_buffer";
		break;
	case GT_OPT_ADAM:
	case GT_OPT_ADAMW:
		o->code = GT_OP_ADAM;
		o->state[o->nstates++] = "exp_avg";
		o->state[o->nstates++] = "exp_avg_sq";
		break;
	case GT_OPT_RMSPROP:
		o->code = GT_OP_RMSPROP;
		o->state[o->nstates++] = "square_avg";
		if (c->momentum > 0)
			o->state[o->nstates++] = "momentum_buffer";
		if (c->centered)
			o->state[o->nstates++] = "grad_avg";
		break;
	}
}

static double decay_of(const struct gt_conf_optimizer *c, const struct gt_param *p)
{
	if (!isnan(p->weight_decay))
		return p->weight_decay;
	if ((p->cls == GT_PARAM_BIAS && !c->decay_bias) || (p->cls == GT_PARAM_NORM && !c->decay_norm))
		return 0;
	return c->weight_decay;
}

enum gt_code gt_optim_apply(const struct gt_optim *o, const struct gt_conf_train *t, const struct gt_graph *g, struct gt_apply *out, struct gt_err *err)
{
	struct gt_seg *hyper;
	GT_NEW(hyper, g->arena, g->nparams ? g->nparams : 1, err);
	for (int i = 0; i < g->nparams; i++)
		hyper[i] = (struct gt_seg){0, gt_tdesc_count(&g->params[i].desc), g->params[i].lr_mul, decay_of(&t->optimizer, &g->params[i])};
	*out = (struct gt_apply){.code = o->code, .attr = o->attr, .hyper = hyper};
	return GT_OK;
}

/* Learned parameters by offset, neighbours with equal hyper-parameters joined. The padding between two is zero and stays zero. */
static enum gt_code segments(struct gt_optim *o, const struct gt_conf_optimizer *c, struct gt_space *s, struct gt_err *err)
{
	const struct gt_graph *g = s->first;
	struct gt_seg *seg;
	int n = 0;
	GT_NEW(seg, s->arena, g->nparams ? g->nparams : 1, err);
	for (int i = 0; i < g->nparams; i++) {
		const struct gt_param *p = &g->params[i];
		if (p->cls == GT_PARAM_BUFFER || p->frozen || s->place[i].early)
			continue;
		struct gt_seg x = {s->place[i].offset, s->place[i].offset + s->place[i].count, p->lr_mul, decay_of(c, p)};
		int k = n++;
		for (; k > 0 && seg[k - 1].begin > x.begin; k--)
			seg[k] = seg[k - 1];
		seg[k] = x;
	}
	/* Join across alignment padding only. Frozen and early parameters lie behind all others, never between. */
	int m = 0;
	for (int i = 1; i < n; i++) {
		if (seg[m].lr_mul == seg[i].lr_mul && seg[m].weight_decay == seg[i].weight_decay && seg[i].begin - seg[m].end < 128)
			seg[m].end = seg[i].end;
		else
			seg[++m] = seg[i];
	}
	o->attr.seg = seg;
	o->attr.nseg = n ? m + 1 : 0;
	return GT_OK;
}

/* The slots of each operation's inputs, in opcall.h's order: what follows p and g. -1: absent. */
enum { P, G, SCALARS = -2, WORK = -3, NONE = -1 };

static int operands(const struct gt_optim *o, const struct gt_space *s, int *kind)
{
	int n = 0, state = 0, work = s->work != s->master ? WORK : NONE;
	kind[n++] = P;
	kind[n++] = G;
	switch (o->code) {
	case GT_OP_SGD:
		kind[n++] = o->nstates ? 2 : NONE;
		break;
	case GT_OP_ADAM:
		kind[n++] = 2;
		kind[n++] = 3;
		break;
	default: /* rmsprop */
		kind[n++] = 2 + state++;
		kind[n++] = o->attr.momentum > 0 ? 2 + state++ : NONE;
		kind[n++] = o->attr.centered ? 2 + state++ : NONE;
		break;
	}
	kind[n++] = SCALARS;
	kind[n++] = work;
	return n;
}

enum gt_code gt_optim_prepare(struct gt_optim *o, const struct gt_conf_train *t, struct gt_space *s, bool deterministic, struct gt_err *err)
{
	int kind[GT_MAX_IO];
	int64_t words[2] = {GT_SCALARS_WORDS, GT_SCALER_WORDS};
	struct gt_tdesc flat = gt_tdesc_make(s->master, 1, &s->elements, false), work = flat, scalar = gt_tdesc_make(GT_F64, 0, NULL, false),
	                scalars = gt_tdesc_make(GT_F64, 1, &words[0], false), scaler = gt_tdesc_make(GT_F64, 1, &words[1], false);
	GT_TRY(segments(o, &t->optimizer, s, err));
	o->attr.work_dtype = work.dtype = s->work;

	struct gt_opcall norm = {.code = GT_OP_SUMSQ, .name = "gradients", .nin = 1, .nout = 1, .in = {&flat}, .out = {&scalar}, .deterministic = deterministic};
	flat.dim[0] = s->checked;
	if (s->checked)
		GT_TRY(gt_call_prepare(s, &norm, &o->sumsq, err));
	flat.dim[0] = s->elements;

	const struct gt_conf_loss_scale *ls = &t->loss_scale;
	int64_t dyn = sizeof(struct gt_dyn); /* the first of the numbers */
	struct gt_tdesc numbers = gt_tdesc_make(GT_U8, 1, &dyn, false);
	struct gt_attr_check attr = {.scaling = s->first->compute == GT_F16,
	                             .dynamic = ls->dynamic,
	                             .growth = ls->growth,
	                             .backoff = ls->backoff,
	                             .interval = ls->interval,
	                             .patience = GT_SKIPS};
	struct gt_opcall check = {.code = GT_OP_CHECK, .name = "step", .attr = &attr, .nin = attr.scaling ? 3 : 2, .in = {&scalars, &scaler, attr.scaling ? &numbers : NULL}};
	GT_TRY(gt_call_prepare(s, &check, &o->check, err));

	struct gt_opcall up = {.code = o->code, .name = "optimizer", .attr = &o->attr, .deterministic = deterministic};
	up.nin = operands(o, s, kind);
	for (int i = 0; i < up.nin; i++)
		up.in[i] = kind[i] == NONE ? NULL : kind[i] == SCALARS ? &scalars : kind[i] == WORK ? &work : &flat;
	if (o->attr.nseg)
		GT_TRY(gt_call_prepare(s, &up, &o->update, err));
	o->steps = (struct gt_update){.sumsq = o->sumsq.kernel ? &o->sumsq : NULL, .check = &o->check, .update = o->update.kernel ? &o->update : NULL};
	return GT_OK;
}

void gt_optim_bind(struct gt_optim *o, struct gt_space *s)
{
	int kind[GT_MAX_IO], n = operands(o, s, kind);
	char *state = s->base[GT_A_STATE];
	size_t slot = (size_t)s->elements * gt_dtype_size(s->master);
	struct gt_scalars *scalars = gt_space_scalars(s, 0);
	o->sumsq.work = o->check.work = o->update.work = s->base[GT_A_SCRATCH];
	o->sumsq.in[0] = s->base[GT_A_GRAD];
	o->sumsq.out[0] = &scalars->sumsq;
	o->check.in[0] = scalars;
	o->check.in[1] = gt_space_scaler(s);
	for (int i = 0; i < n; i++) {
		switch (kind[i]) {
		case NONE:
			o->update.in[i] = NULL;
			break;
		case P:
			o->update.in[i] = s->base[GT_A_PARAM];
			break;
		case G:
			o->update.in[i] = s->base[GT_A_GRAD];
			break;
		case SCALARS:
			o->update.in[i] = scalars;
			break;
		case WORK:
			o->update.in[i] = s->base[GT_A_WORK];
			break;
		default:
			o->update.in[i] = state + (size_t)(kind[i] - 2) * slot;
		}
	}
}

void gt_optim_close(struct gt_optim *o, struct gt_space *s)
{
	if (o->sumsq.kernel)
		s->be->release(s->dev, o->sumsq.kernel);
	if (o->check.kernel)
		s->be->release(s->dev, o->check.kernel);
	if (o->update.kernel)
		s->be->release(s->dev, o->update.kernel);
	o->sumsq.kernel = o->check.kernel = o->update.kernel = NULL;
}
