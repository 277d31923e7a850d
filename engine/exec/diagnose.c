/* Finds the first kernel of a step whose output holds NaN or infinity, and the layer and the sample of this output. */
#include "exec/exec_parts.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the index, in memory order, of the first element of a tensor that is not finite; -1 if all are finite. */
static enum gt_code first_bad(struct gt_exec *x, const struct gt_tdesc *d, const void *dev, int64_t *at, struct gt_err *err)
{
	size_t bytes = gt_tdesc_bytes(d);
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
	*at = gt_first_nonfinite(p, d->dtype, (int64_t)(bytes / gt_dtype_size(d->dtype)));
	free(copy);
	return GT_OK;
}

static enum gt_code bad_parameter(struct gt_exec *x, int64_t step, struct gt_err *err)
{
	const struct gt_graph *g = x->space->layout.first;
	for (int i = 0; i < g->nparams; i++) {
		bool buffer = g->params[i].cls == GT_PARAM_BUFFER;
		int64_t at;
		GT_TRY(first_bad(x, &x->space->layout.param[i].desc, gt_space_param(x->space, i, buffer ? GT_A_BUFFER : GT_A_PARAM, 0), &at, err));
		if (at >= 0)
			return gt_fail(err, GT_EDIVERGED, "diverged at step %lld: %s is not finite before the step",
			               (long long)step, g->params[i].name);
	}
	return GT_OK;
}

/* An output of a kernel that holds NaN or infinity. */
struct bad_output {
	const struct gt_value *v; /* the value of this output; NULL: all outputs of the kernel are finite */
	int64_t row;              /* index in the batch of the first sample with such an element; -1: not known */
};

/* Looks for NaN and infinity in the outputs of the kernel that step s has run, except metrics. */
static enum gt_code find_bad_output(struct gt_exec *x, const struct gt_step *s, struct bad_output *bad, struct gt_err *err)
{
	*bad = (struct bad_output){.row = -1};
	if (s->kind != GT_STEP_LAUNCH || s->call->node < 0)
		return GT_OK;
	const struct gt_graph *g = s->plan->graph;
	const struct gt_node *n = &g->nodes[s->call->node];
	for (int k = 0; k < n->nout && !bad->v; k++) {
		int64_t at;
		if (n->out[k] < 0 || g->values[n->out[k]].kind == GT_V_METRICS)
			continue;
		const struct gt_value *v = &g->values[n->out[k]];
		struct gt_tdesc d = v->kind == GT_V_GRAD ? x->space->layout.param[v->param].desc : *gt_call_desc(s->plan, s->call, n->out[k]);
		GT_TRY(first_bad(x, &d, s->call->out[k], &at, err));
		if (at < 0)
			continue;
		bad->v = v;
		if (v->kind != GT_V_GRAD && d.rank > 0 && v->desc.dim[0] == g->batch)
			bad->row = s->call->part * d.dim[0] + at / (gt_tdesc_padded(&d) / d.dim[0]);
	}
	return GT_OK;
}

enum gt_code gt_exec_diagnose(struct gt_exec *x, const struct gt_prog *p, struct gt_loader *l, const struct gt_step_args *numbers,
                              int64_t step, struct gt_err *err)
{
	struct gt_step_args *step_args;
	GT_TRY(bad_parameter(x, step, err));
	GT_TRY(gt_exec_step_args(x, &step_args, err));
	memcpy(step_args, numbers, (size_t)p->nmicro * sizeof *step_args);
	GT_TRY(gt_loader_take_parts(l, p->nmicro, step_args, err));
	GT_TRY(gt_exec_send(x, p, 1, err));
	for (int i = 0; i < p->n; i++) {
		const struct gt_step *s = &p->step[i];
		struct bad_output bad;
		if (s->kind == GT_STEP_CHECK || s->kind == GT_STEP_UPDATE)
			break;
		GT_TRY(gt_exec_step(x, p, i, 0, 1, l, err));
		GT_TRY(x->be->sync(x->dev, s->stream, err));
		GT_TRY(find_bad_output(x, s, &bad, err));
		if (!bad.v)
			continue;
		if (bad.v->kind == GT_V_GRAD)
			return gt_fail(err, GT_EDIVERGED, "diverged at step %lld: the gradient of %s is not finite (%s); nothing was updated",
			               (long long)step, s->plan->graph->params[bad.v->param].name, s->call->op);
		int64_t sample = bad.row >= 0 ? gt_loader_sample(l, (int64_t)step_args[s->micro].sample0 + bad.row) : -1;
		char which[64] = "";
		if (sample >= 0)
			snprintf(which, sizeof which, ", first for training sample %lld", (long long)sample);
		return gt_fail(err, GT_EDIVERGED, "diverged at step %lld: the output of %s (%s) is not finite%s; nothing was updated",
		               (long long)step, s->call->layer, s->call->op, which);
	}
	return gt_fail(err, GT_EDIVERGED, "diverged at step %lld: the gradients exceed the range of f32; nothing was updated", (long long)step);
}

enum gt_code gt_exec_diagnose_eval(struct gt_exec *x, const struct gt_prog *p, struct gt_loader *l, const struct gt_step_args *numbers,
                                   char *why, size_t size, struct gt_err *err)
{
	struct gt_step_args *step_args;
	*why = 0;
	GT_TRY(gt_exec_step_args(x, &step_args, err));
	memcpy(step_args, numbers, (size_t)p->nmicro * sizeof *step_args);
	GT_TRY(gt_loader_take_parts(l, p->nmicro, step_args, err));
	GT_TRY(gt_exec_send(x, p, 1, err));
	for (int i = 0; i < p->n; i++) { /* run all steps, because other ranks wait for the transfers of this rank */
		const struct gt_step *s = &p->step[i];
		struct bad_output bad;
		GT_TRY(gt_exec_step(x, p, i, 0, 1, l, err));
		GT_TRY(x->be->sync(x->dev, s->stream, err));
		if (*why)
			continue;
		GT_TRY(find_bad_output(x, s, &bad, err));
		if (!bad.v)
			continue;
		int64_t sample = bad.row >= 0 && s->plan->graph->views <= 1
		                     ? gt_loader_sample(l, (int64_t)step_args[s->micro].sample0 + bad.row) : -1;
		char which[64] = "";
		if (sample >= 0)
			snprintf(which, sizeof which, ", first for sample %lld", (long long)sample);
		snprintf(why, size, "the output of %s (%s) is not finite%s", s->call->layer, s->call->op, which);
	}
	return GT_OK;
}

enum gt_code gt_exec_diagnose_call(const struct gt_exec *x, const struct gt_plan *plan, int call, bool *bad, struct gt_err *err)
{
	const struct gt_step s = {.kind = GT_STEP_LAUNCH, .plan = (struct gt_plan *)(uintptr_t)plan, .call = &plan->call[call]};
	struct bad_output found;
	enum gt_code code = find_bad_output((struct gt_exec *)(uintptr_t)x, &s, &found, err);
	*bad = code == GT_OK && found.v;
	return code;
}
