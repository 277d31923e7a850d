#include "harness_case.h"
#include "ew.h"
#include "losses.h"
#include "tolerance.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

double *harness_plain(const struct harness *h, gt_vid v)
{
	double *p = calloc((size_t)gt_tdesc_count(&h->g->values[v].desc) + 1, sizeof *p);
	if (!p)
		abort();
	return p;
}

static double rounded(enum gt_dtype t, double x)
{
	if (t == GT_F16)
		return (double)gt_f16_to_f32(gt_f16_from_f32((float)x));
	return t == GT_BF16 ? harness_bf16(x) : (double)(float)x;
}

/* uniform * scale + shift, rounded as golden/make_ops.py does it. */
static enum gt_code fill(struct harness *h, gt_vid v, const char *name, double scale, double shift, enum gt_dtype t, struct gt_err *err)
{
	double *p = harness_plain(h, v);
	uint64_t hash = harness_hash(name);
	if (h->numbers != GT_DTYPE_COUNT && t != GT_F32)
		t = h->numbers;
	for (int64_t i = 0; i < gt_tdesc_count(&h->g->values[v].desc); i++)
		p[i] = rounded(t, harness_number(hash, i) * scale + shift);
	enum gt_code code = harness_put(h, v, p, err);
	free(p);
	return code;
}

/* Integers below `codes`, or lengths of 1 to `codes`. */
static enum gt_code fill_codes(struct harness *h, gt_vid v, const char *name, int64_t codes, bool lengths, struct gt_err *err)
{
	double *p = harness_plain(h, v);
	for (int64_t i = 0; i < gt_tdesc_count(&h->g->values[v].desc); i++)
		p[i] = (double)(harness_raw(name, i) % (uint64_t)codes) + lengths;
	enum gt_code code = harness_put(h, v, p, err);
	free(p);
	return code;
}

static enum gt_code fill_params(struct harness *h, const struct net *n, struct gt_err *err)
{
	char name[256];
	for (int i = 0; i < n->g->nparams; i++) {
		const struct gt_param *p = &n->g->params[i];
		const char *suffix = strrchr(p->name, '.') + 1;
		bool gamma = p->cls == GT_PARAM_NORM && !strcmp(suffix, "weight"), var = !strcmp(suffix, "running_var");
		snprintf(name, sizeof name, "%s/%s", n->c->name, p->name + 2);
		if (!strcmp(suffix, "num_batches_tracked")) {
			GT_TRY(harness_zero(h, p->value, err));
			continue;
		}
		enum gt_dtype t = p->cls == GT_PARAM_WEIGHT ? n->g->compute : GT_F32;
		GT_TRY(fill(h, p->value, name, gamma || var ? 0.5 : 1, gamma || var ? 1 : 0, t, err));
		if (p->work >= 0)
			GT_TRY(fill(h, p->work, name, 1, 0, t, err));
	}
	return GT_OK;
}

/* NaN wherever a kernel must write: what it forgets shows. */
static enum gt_code poison(struct harness *h, double grads, struct gt_err *err)
{
	for (int v = 0; v < h->g->nvalues; v++) {
		const struct gt_value *val = &h->g->values[v];
		bool grad = val->kind == GT_V_GRAD;
		if ((val->kind != GT_V_ACT && !grad) || h->shared[v] || gt_dtype_size(val->desc.dtype) == 0)
			continue;
		double *p = harness_plain(h, v);
		bool whole = val->desc.dtype == GT_I32 || val->desc.dtype == GT_I64 || val->desc.dtype == GT_U8;
		for (int64_t i = 0; i < gt_tdesc_count(&val->desc); i++)
			p[i] = grad && h->accumulate ? grads : whole ? 0 : NAN;
		enum gt_code code = harness_put(h, v, p, err);
		free(p);
		GT_TRY(code);
	}
	return GT_OK;
}

static enum gt_code set_inputs(struct harness *h, const struct net *n, struct gt_err *err)
{
	char name[256];
	enum gt_dtype t = n->g->compute;
	for (int i = 0; i < n->ninputs; i++) {
		snprintf(name, sizeof name, "%s/x%d", n->c->name, i);
		if (n->c->in[i].codes)
			GT_TRY(fill_codes(h, n->x[i], name, n->c->in[i].codes, n->c->in[i].lengths, err));
		else
			GT_TRY(fill(h, n->x[i], name, n->c->in[i].scale, 0, t, err));
	}
	GT_TRY(fill_params(h, n, err));
	h->step_args.inv_weight = 1;
	for (int v = 0; v < n->g->nvalues; v++) /* of the loss, in f16 */
		if (n->g->values[v].kind == GT_V_SCALE)
			GT_TRY(harness_put(h, v, &(double){1}, err));
	if (n->g->target >= 0 && !strncmp(n->c->type, "loss:", 5)) {
		int64_t rows = n->c->in[0].dim[0], skip = (int64_t)opcase_number(n->c, "skip", 0);
		double live = 0, *w;
		bool classes = gt_loss_has_classes(gt_loss_find(n->c->type + 5));
		GT_NEW(w, n->arena, n->c->in[0].dim[1], err);
		case_weights(n->c, w);
		int64_t ignore = (int64_t)opcase_number(n->c, "ignore_index", -100);
		double *p = harness_plain(h, n->g->target);
		snprintf(name, sizeof name, "%s/target", n->c->name);
		for (int64_t i = 0; i < rows; i++) {
			p[i] = (double)(harness_raw(name, i) % (uint64_t)n->c->in[0].dim[1]);
			if (skip && i % skip == 1)
				p[i] = (double)ignore;
			live += p[i] == (double)ignore && classes ? 0 : opcase_key(n->c, "weights") && classes ? w[(int64_t)p[i]] : 1;
		}
		if (opcase_key(n->c, "target")) { /* a number for each output */
			bool shares = gt_loss_find(n->c->type + 5)->output != GT_OUTPUT_VALUES;
			for (int64_t i = 0; i < rows * n->c->in[0].dim[1]; i++)
				p[i] = shares ? (harness_uniform(name, i) + 1) / 2 : harness_uniform(name, i);
			live = (double)rows;
		}
		h->step_args.inv_weight = 1.0 / live;
		enum gt_code code = harness_put(h, n->g->target, p, err);
		free(p);
		GT_TRY(code);
	}
	return GT_OK;
}

/* want: the reference's y, which decides where a fused relu stops the gradient; NULL: our own. A y that rounds across 0 stays within y's
 * tolerance, but would compare the gradients of two functions. */
static enum gt_code set_dy(struct harness *h, const struct net *n, const double *want, struct gt_err *err)
{
	char name[256];
	snprintf(name, sizeof name, "%s/dy", n->c->name);
	GT_TRY(fill(h, n->dy, name, 1, 0, n->g->compute, err));
	if (!opcase_key(n->c, "act"))
		return GT_OK;
	double *y = harness_plain(h, n->y), *dy = harness_plain(h, n->dy);
	enum gt_code code = harness_get(h, n->y, y, err);
	if (code == GT_OK)
		code = harness_get(h, n->dy, dy, err);
	for (int64_t i = 0; i < gt_tdesc_count(&h->g->values[n->y].desc); i++)
		dy[i] = (want ? want[i] : y[i]) > 0 ? dy[i] : 0;
	if (code == GT_OK)
		code = harness_put(h, n->dy, dy, err);
	free(y);
	free(dy);
	return code;
}

enum gt_code case_forward(struct harness *h, const struct net *n, struct gt_err *err)
{
	if (n->g->metrics >= 0 && n->y < 0)
		GT_TRY(harness_zero(h, n->g->metrics, err));
	return harness_run(h, 0, n->forward, err);
}

enum gt_code case_run(struct harness *h, struct net *n, double grads, const double *want, struct gt_err *err)
{
	GT_TRY(harness_graph(h, n->g, err));
	GT_TRY(poison(h, grads, err));
	GT_TRY(set_inputs(h, n, err));
	GT_TRY(case_forward(h, n, err));
	if (n->dy < 0)
		return GT_OK;
	GT_TRY(set_dy(h, n, want, err));
	return harness_run(h, n->forward, n->g->nnodes, err);
}

/* Returns the operation of a case: "attention" or, for a layer of steps, "lstm.steps". */
static enum gt_opcode opcode_of(const struct opcase *c)
{
	size_t n = strlen(c->type);
	for (int i = 0; i < GT_OP_COUNT; i++) {
		const char *name = gt_opcode_name((enum gt_opcode)i);
		if (!strncmp(name, c->type, n) && (!name[n] || !strcmp(name + n, ".steps")))
			return (enum gt_opcode)i;
	}
	return GT_OP_IDENTITY;
}

double case_rounding(const struct opcase *c, double top)
{
	return gt_tolerance_rounding(opcode_of(c), top);
}
