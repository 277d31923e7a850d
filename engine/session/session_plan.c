/* Builds graphs from the config, and plans from graphs: one plan for each gt_plan_key. */
#include "session/session_plan.h"
#include "ir/op.h"
#include "plan/fuse.h"
#include "plan/recompute.h"
#include "plan/syncbn.h"
#include "session/session_data.h"
#include "session/session_pipe.h"

/* Returns whether the plans of two keys have the same kernels; parts of their memory may differ. */
static bool fits(const struct gt_plan_key *a, const struct gt_plan_key *b)
{
	if (a->idle || b->idle)
		return a->idle && b->idle && a->phase == b->phase;
	return a->n == b->n && a->train == b->train && a->loss == b->loss && a->accumulate == b->accumulate && a->stage == b->stage &&
	       a->phase == b->phase;
}

/* Sets the groups of the model to those of a phase: what is frozen until its end is frozen. */
static enum gt_code phase_groups(const struct gt_session *s, int phase, struct gt_model_spec *model, struct gt_err *err)
{
	struct gt_param_group *group;
	GT_NEW(group, s->arena, model->ngroups, err);
	for (int i = 0; i < model->ngroups; i++) {
		group[i] = model->groups[i];
		if (!gt_optim_frozen(&s->optim, i, phase))
			continue;
		group[i].any_stats = !group[i].frozen_stats;
		group[i].frozen = group[i].frozen_stats = true;
	}
	model->groups = group;
	return GT_OK;
}

static enum gt_code graph_for(struct gt_session *s, const struct gt_plan_key *w, int views, struct gt_graph **out, struct gt_err *err)
{
	const struct gt_conf *c = s->conf;
	enum gt_dtype compute;
	struct gt_graph *g;
	GT_TRY(gt_compute_dtype(c, s->family, &compute, err));
	struct gt_model_spec model = c->model;
	model.sync_bn = s->sync_bn;
	model.inputs = s->data.input;
	if (w->phase)
		GT_TRY(phase_groups(s, w->phase, &model, err));
	GT_TRY(gt_graph_build(s->arena, &model, w->n * views, compute, w->train, &g, err));
	if (views > 1)
		GT_TRY(gt_graph_views(g, views, err));
	if (w->loss) {
		GT_TRY(gt_session_class_weights(s, g, err));
		struct gt_loss_spec loss = gt_session_loss(s, w->train);
		GT_TRY(gt_graph_loss(g, &loss, err));
	}
	if (w->train && gt_graph_differentiate(g, err) != GT_OK)
		return w->phase ? gt_fail_prefix(err, "train.groups: in the epochs before %g", s->optim.thaw[w->phase - 1])
		                : err ? err->code : GT_ECONFIG;
	GT_TRY(gt_graph_verify(g, err));
	GT_TRY(gt_graph_fuse(g, err));
	if (w->train && s->sync_bn)
		GT_TRY(gt_graph_sync_bn(g, GT_GROUP_DATA, s->at.ndata, w->all, err));
	if (w->idle) {
		*out = g;
		return gt_graph_sync_bn_idle(g, err);
	}
	if (w->train)
		GT_TRY(gt_graph_recompute(g, c->model.layers, c->train.recompute, err));
	if (!w->phase)
		s->prog.num_params = gt_graph_num_params(g);
	if (gt_session_is_pipeline(s))
		GT_TRY(gt_session_pipe_stage(s, w, &g, err));
	*out = g;
	if (c->reproducible != GT_REPRO_WORLD) /* which operations can be fused depends on the partition of a pipeline, and the bits must not */
		GT_TRY(gt_plan_fuse_for_backend(s->space, g, w->accumulate, c->reproducible != GT_REPRO_NONE, err));
	if (w->train && gt_space_factored(s->space)) {
		struct gt_update_spec apply;
		GT_TRY(gt_optim_update_spec(&s->optim, g, &apply, err));
		return gt_plan_factors(g, &apply, s->at.ndata, s->at.data, err);
	}
	if (!w->train || s->batch.units > 1 || s->at.world > 1 || gt_session_is_pipeline(s) || !gt_optim_fused_update(&s->optim))
		return GT_OK;
	struct gt_update_spec apply;
	GT_TRY(gt_optim_update_spec(&s->optim, g, &apply, err));
	return gt_plan_fuse_updates(s->space, g, &apply, err);
}

enum gt_code gt_session_factors_pay(struct gt_session *s, bool *out, struct gt_err *err)
{
	struct gt_plan_key like = {
	    .n = gt_part_size(s->batch.micro, s->batch.slice.parts, 0, NULL), .all = s->batch.micro, .train = true, .loss = true};
	struct gt_graph *g;
	struct gt_update_spec apply;
	struct gt_loss_spec loss = gt_session_loss(s, true);
	*out = false;
	/* A moving average is updated by one rank, and the other ranks would still be applying their parts of the gradients. */
	if (s->optim.ema || s->at.ndata == 1 || gt_session_is_pipeline(s) || s->batch.units > 1 || !gt_loss_ignores(&loss) ||
	    s->conf->reproducible == GT_REPRO_WORLD || !gt_optim_fused_update(&s->optim))
		return GT_OK;
	GT_TRY(graph_for(s, &like, 1, &g, err));
	GT_TRY(gt_optim_update_spec(&s->optim, g, &apply, err));
	return gt_plan_factors_pay(s->space, g, &apply, s->at.ndata, out, err);
}

static enum gt_code keep(struct gt_session *s, const struct gt_plan_key *w, struct gt_plan *p, struct gt_err *err)
{
	if (s->prog.nplans == GT_PLANS)
		return gt_fail(err, GT_EINTERNAL, "too many plans");
	s->prog.plan_key[s->prog.nplans] = *w;
	s->prog.plan[s->prog.nplans++] = p;
	return GT_OK;
}

enum gt_code gt_session_plan(struct gt_session *s, const struct gt_plan_key *w, struct gt_plan **out, struct gt_err *err)
{
	int views = w->train ? 1 : gt_session_tta_views(s->conf);
	struct gt_plan *base = NULL;
	for (int i = 0; i < s->prog.nplans; i++) {
		struct gt_plan *p = s->prog.plan[i];
		if (!fits(&s->prog.plan_key[i], w))
			continue;
		if (p->level == w->level && p->copy == w->copy) {
			*out = p;
			return GT_OK;
		}
		base = p->of ? p->of : p;
	}
	if (!base) {
		struct gt_graph *g;
		GT_TRY(graph_for(s, w, views, &g, err));
		GT_TRY(gt_plan_make(s->space, g, w->accumulate, s->conf->reproducible != GT_REPRO_NONE, &base, err));
		GT_TRY(keep(s, w, base, err));
	}
	*out = base;
	if (!w->level && !w->copy)
		return GT_OK;
	GT_TRY(gt_plan_instance(base, 0, w->level, w->copy, out, err));
	return keep(s, w, *out, err);
}
