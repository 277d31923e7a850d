#include "run/exec.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static enum gt_code launch(struct gt_exec *x, const struct gt_step *s, const struct gt_dyn *dyn, struct gt_err *err)
{
	struct gt_launch a = {.in = s->call->in, .out = s->call->out, .scratch = x->space->base[GT_A_SCRATCH], .dyn = &dyn[s->micro], .stream = s->stream};
	return x->be->launch(x->dev, s->call->kernel, &a, err);
}

static enum gt_code load(struct gt_exec *x, const struct gt_step *s, struct gt_loader *l, struct gt_dyn *dyn, struct gt_err *err)
{
	struct gt_batch b;
	(void)x;
	GT_TRY(gt_loader_next(l, &b, err));
	if (b.n != s->plan->graph->batch)
		return gt_fail(err, GT_EINTERNAL, "the loader gave %lld samples where the plan wants %lld", (long long)b.n, (long long)s->plan->graph->batch);
	dyn[s->micro].epoch = (uint64_t)b.epoch;
	dyn[s->micro].sample0 = (uint64_t)b.cursor;
	dyn[s->micro].stride = 1;
	gt_plan_bind_batch(s->plan, b.x, b.target);
	return GT_OK;
}

enum gt_code gt_exec_metrics(struct gt_exec *x, bool clear, struct gt_metrics *out, struct gt_err *err)
{
	void *m = gt_space_scalars(x->space, 0);
	if (x->be->host_memory) {
		memcpy(out, m, sizeof *out);
		if (clear)
			memset(m, 0, sizeof *out);
		return GT_OK;
	}
	GT_TRY(x->be->copy(x->dev, out, m, sizeof *out, GT_COPY_D2H, 0, err));
	return clear ? x->be->zero(x->dev, m, sizeof *out, 0, err) : GT_OK;
}

/* Loss and, through their sum of squares, all gradients. */
static enum gt_code check(struct gt_exec *x, const struct gt_step *s, const struct gt_dyn *dyn, struct gt_err *err)
{
	struct gt_scalars v;
	GT_TRY(launch(x, s, dyn, err));
	if (x->be->host_memory)
		memcpy(&v, gt_space_scalars(x->space, 0), sizeof v);
	else
		GT_TRY(x->be->copy(x->dev, &v, gt_space_scalars(x->space, 0), sizeof v, GT_COPY_D2H, 0, err));
	if (!v.skip)
		return GT_OK;
	return gt_fail(err, GT_EDIVERGED, "%s is not finite", isfinite(v.metrics.loss) ? "a gradient" : "the loss");
}

static enum gt_code step_run(struct gt_exec *x, const struct gt_step *s, struct gt_loader *l, struct gt_dyn *dyn, struct gt_err *err)
{
	switch (s->kind) {
	case GT_STEP_LAUNCH:
	case GT_STEP_UPDATE:
		return launch(x, s, dyn, err);
	case GT_STEP_LOAD:
		return load(x, s, l, dyn, err);
	case GT_STEP_ZERO:
		return x->be->zero(x->dev, gt_space_scalars(x->space, 0), sizeof(struct gt_scalars), s->stream, err);
	case GT_STEP_CHECK:
		return check(x, s, dyn, err);
	}
	return gt_fail(err, GT_EINTERNAL, "unknown step %d", (int)s->kind);
}

enum gt_code gt_exec_run(struct gt_exec *x, const struct gt_prog *p, struct gt_loader *l, struct gt_dyn *dyn, struct gt_err *err)
{
	if (!x->times) {
		for (int i = 0; i < p->n; i++)
			GT_TRY(step_run(x, &p->step[i], l, dyn, err));
		return GT_OK;
	}
	for (int i = 0; i < p->n; i++) {
		double t = now();
		GT_TRY(step_run(x, &p->step[i], l, dyn, err));
		GT_TRY(x->be->sync(x->dev, p->step[i].stream, err));
		x->times[i] += now() - t;
	}
	return GT_OK;
}

static bool finite_at(const char *p, enum gt_dtype t)
{
	uint16_t h;
	float f;
	double d;
	switch (t) {
	case GT_F32:
		memcpy(&f, p, sizeof f);
		return isfinite(f);
	case GT_F64:
		memcpy(&d, p, sizeof d);
		return isfinite(d);
	case GT_BF16:
		memcpy(&h, p, sizeof h);
		return (h & 0x7f80) != 0x7f80;
	case GT_F16:
		memcpy(&h, p, sizeof h);
		return (h & 0x7c00) != 0x7c00;
	default:
		return true;
	}
}

/* First element of a tensor that is not finite, -1 if all are; in physical order. */
static enum gt_code first_bad(struct gt_exec *x, const struct gt_tdesc *d, const void *dev, int64_t *at, struct gt_err *err)
{
	size_t bytes = gt_tdesc_bytes(d), size = gt_dtype_size(d->dtype);
	char *copy = NULL;
	const char *p = dev;
	*at = -1;
	if (!dev)
		return GT_OK;
	if (!x->be->host_memory) {
		if (!(copy = malloc(bytes)))
			return gt_fail_memory(err, bytes);
		enum gt_code code = x->be->copy(x->dev, copy, dev, bytes, GT_COPY_D2H, 0, err);
		if (code != GT_OK) {
			free(copy);
			return code;
		}
		p = copy;
	}
	for (size_t i = 0; i < bytes; i += size)
		if (!finite_at(p + i, d->dtype)) {
			*at = (int64_t)(i / size);
			break;
		}
	free(copy);
	return GT_OK;
}

static enum gt_code bad_parameter(struct gt_exec *x, int64_t step, struct gt_err *err)
{
	const struct gt_graph *g = x->space->first;
	for (int i = 0; i < g->nparams; i++) {
		bool buffer = g->params[i].cls == GT_PARAM_BUFFER;
		int64_t at;
		GT_TRY(first_bad(x, &x->space->place[i].desc, gt_space_param(x->space, i, buffer ? GT_A_BUFFER : GT_A_PARAM, 0), &at, err));
		if (at >= 0)
			return gt_fail(err, GT_EDIVERGED, "diverged at step %lld: %s is not finite (before the step)", (long long)step, g->params[i].name);
	}
	return GT_OK;
}

enum gt_code gt_exec_diagnose(struct gt_exec *x, const struct gt_prog *p, struct gt_loader *l, struct gt_dyn *dyn, int64_t step, struct gt_err *err)
{
	GT_TRY(bad_parameter(x, step, err));
	for (int i = 0; i < p->n; i++) {
		const struct gt_step *s = &p->step[i];
		if (s->kind == GT_STEP_CHECK || s->kind == GT_STEP_UPDATE)
			break;
		GT_TRY(step_run(x, s, l, dyn, err));
		GT_TRY(x->be->sync(x->dev, s->stream, err));
		if (s->kind != GT_STEP_LAUNCH || s->call->node < 0)
			continue;
		const struct gt_graph *g = s->plan->graph;
		const struct gt_node *n = &g->nodes[s->call->node];
		for (int k = 0; k < n->nout; k++) {
			int64_t at;
			if (n->out[k] < 0)
				continue;
			const struct gt_value *v = &g->values[n->out[k]];
			struct gt_tdesc d = v->kind == GT_V_GRAD ? x->space->place[v->param].desc : v->desc;
			if (v->kind == GT_V_METRICS)
				continue;
			GT_TRY(first_bad(x, &d, s->call->out[k], &at, err));
			if (at < 0)
				continue;
			if (v->kind == GT_V_GRAD)
				return gt_fail(err, GT_EDIVERGED, "diverged at step %lld: the gradient of %s is not finite (%s); nothing was updated",
				               (long long)step, g->params[v->param].name, s->call->op);
			int64_t row = d.rank > 0 && d.dim[0] == g->batch ? at / (gt_tdesc_padded(&d) / d.dim[0]) : -1;
			int64_t sample = row >= 0 ? gt_loader_sample(l, (int64_t)dyn[s->micro].sample0 + row) : -1;
			char which[64] = "";
			if (sample >= 0)
				snprintf(which, sizeof which, ", first for training sample %lld", (long long)sample);
			return gt_fail(err, GT_EDIVERGED, "diverged at step %lld: the output of %s (%s) is not finite%s; nothing was updated", (long long)step,
			               s->call->layer, s->call->op, which);
		}
	}
	return gt_fail(err, GT_EDIVERGED, "diverged at step %lld: the gradients exceed what f32 holds; nothing was updated", (long long)step);
}
