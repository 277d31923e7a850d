/* Builds graphs from the config, and plans from graphs: one plan for each gt_plan_key. */
#include "session/session_plan.h"
#include "ir/op.h"
#include "plan/fuse.h"
#include "plan/recompute.h"
#include "plan/syncbn.h"
#include "session/session_data.h"
#include "session/session_pipe.h"
#include <string.h>

/* Returns whether the plans of two keys have the same kernels; their copies of arenas may differ. */
static bool has_same_kernels(const struct gt_plan_key *a, const struct gt_plan_key *b)
{
	if (a->idle || b->idle)
		return a->idle && b->idle && a->phase == b->phase && a->length == b->length;
	return a->n == b->n && a->length == b->length && a->train == b->train && a->loss == b->loss && a->accumulate == b->accumulate &&
	       a->stage == b->stage && a->phase == b->phase;
}

/* Sets the parameter groups of the model for a phase. The key frozen_until also freezes the running statistics. */
static enum gt_code set_phase_groups(const struct gt_session *s, int phase, struct gt_model_spec *model, struct gt_err *err)
{
	struct gt_param_group *group;
	GT_NEW(group, s->arena, model->ngroups, err);
	for (int i = 0; i < model->ngroups; i++) {
		group[i] = model->groups[i];
		enum gt_freeze how = gt_optim_frozen(&s->optim, i, phase);
		group[i].frozen |= how != GT_FREEZE_NONE;
		if (how != GT_FREEZE_UNTIL)
			continue;
		group[i].any_stats = !group[i].frozen_stats;
		group[i].frozen_stats = true;
	}
	model->groups = group;
	return GT_OK;
}

/* Sets the length of the model's sequences. */
static enum gt_code set_length(const struct gt_session *s, int64_t length, struct gt_model_spec *model, struct gt_err *err)
{
	struct gt_model_input *in;
	GT_NEW(in, s->arena, model->ninputs, err);
	for (int i = 0; i < model->ninputs; i++)
		in[i] = model->inputs[i];
	in[s->data.sequences].shape[0] = length;
	model->inputs = in;
	return GT_OK;
}

/* ---- train.class_weights = "auto" ---------------------------------------------------------------------------------------------- */
/* The weight of class i is n / (k * count[i]), for n samples of the training split and k classes, as scikit-learn's
 * class_weight="balanced". A checkpoint keeps the weights (data.json), and evaluations and resumed runs use these weights. */

/* Counts the samples of each class in the training split, without samples that the loss ignores. Returns the total. */
static int64_t count_labels(const struct gt_session *s, int64_t classes, int64_t *count)
{
	const struct gt_view *v = &s->data.view[GT_TRAIN];
	const int32_t *label = s->data.set[GT_TRAIN].labels;
	int64_t all = 0;
	for (int64_t i = 0; i < v->n; i++) {
		int32_t y = label[v->index ? v->index[i] : i];
		if (y == s->loss.attr.ignore_index || y < 0 || y >= classes)
			continue;
		count[y]++;
		all++;
	}
	return all;
}

static enum gt_code balanced_weights(struct gt_session *s, int64_t classes, double *w, struct gt_err *err)
{
	int64_t *count, ignored = s->loss.attr.ignore_index, k = classes - (ignored >= 0 && ignored < classes);
	GT_NEW(count, s->arena, classes, err);
	int64_t all = count_labels(s, classes, count);
	for (int64_t i = 0; i < classes; i++) {
		const char *name = gt_session_class_name(s, i);
		if (!count[i] && i != ignored)
			return gt_conf_refuse(s->conf, "train.class_weights", err, "\"auto\" needs training samples for each of the model's %lld "
			                      "outputs, got no sample of class %lld%s%.100s%s; write the weights as numbers", (long long)classes,
			                      (long long)i, name ? " (" : "", name ? name : "", name ? ")" : "");
		w[i] = i == ignored ? 0 : (double)all / ((double)k * (double)count[i]);
	}
	return GT_OK;
}

/* Sets *w to the class weights in the checkpoint; NULL: no weights. */
static enum gt_code saved_weights(struct gt_session *s, const struct gt_ckpt *c, int64_t classes, const double **w, struct gt_err *err)
{
	struct gt_data_facts facts;
	*w = NULL;
	if (!c)
		return GT_OK;
	GT_TRY(gt_data_facts_read(c, s->arena, &facts, err));
	if (facts.nweights && facts.nweights != classes)
		return gt_fail(err, GT_EDATA, "%s/data.json: expected %lld class weights, one for each output of the model, got %lld",
		               gt_ckpt_path(c), (long long)classes, (long long)facts.nweights);
	*w = facts.weights;
	return GT_OK;
}

/* Sets the weights of the session's loss and stores them in the facts for checkpoints, if they are not set yet. g: a graph of the whole
 * model, still without its loss. All ranks compute the same weights. */
static enum gt_code set_class_weights(struct gt_session *s, const struct gt_graph *g, struct gt_err *err)
{
	const struct gt_tdesc *out = gt_graph_desc(g, g->output);
	const struct gt_dataset *d = &s->data.set[GT_TRAIN];
	double *w;
	if (s->conf->train.class_weights.n != GT_FLOATS_AUTO || s->loss.attr.nweights || out->rank != 2)
		return GT_OK;
	int64_t classes = out->dim[1];
	GT_TRY(saved_weights(s, s->data.ckpt, classes, &s->loss.attr.weights, err));
	if (!s->loss.attr.weights) {
		GT_NEW(w, s->arena, classes, err);
		if (d->labels)
			GT_TRY(balanced_weights(s, classes, w, err));
		else if (!s->data.dry)
			return gt_conf_refuse(s->conf, "train.class_weights", err, "\"auto\" needs the labels of the training split, or a checkpoint "
			                      "that was trained with it, got neither; write the weights as numbers");
		else /* a dry session does not read the labels, and its plans do not depend on the weights */
			for (int64_t i = 0; i < classes; i++)
				w[i] = 1;
		s->loss.attr.weights = w;
	}
	s->loss.attr.nweights = classes;
	s->data.facts.weights = s->loss.attr.weights;
	s->data.facts.nweights = classes;
	return gt_data_facts_print(&s->data.facts, s->arena, &s->data.facts_text, err);
}

/* Returns whether all inputs of the model are images. The loader then writes all inputs into memory that the ranks share
 * (gt_loader_spec.rows). */
static bool has_only_images(const struct gt_model_spec *m)
{
	for (int i = 0; i < m->ninputs; i++)
		if (m->inputs[i].type != GT_INPUT_IMAGE)
			return false;
	return true;
}

/* ---- graphs and plans --------------------------------------------------------------------------------------------------------- */
static enum gt_code build_graph(struct gt_session *s, const struct gt_plan_key *w, int views, struct gt_graph **out, struct gt_err *err)
{
	const struct gt_conf *c = s->conf;
	enum gt_dtype compute;
	struct gt_graph *g;
	const struct gt_update_spec *apply;
	char when[64];
	GT_TRY(gt_compute_dtype(c, s->family, &compute, err));
	struct gt_model_spec model = c->model;
	model.sync_bn = s->sync_bn;
	model.inputs = s->data.input;
	if (w->length)
		GT_TRY(set_length(s, w->length, &model, err));
	if (w->phase)
		GT_TRY(set_phase_groups(s, w->phase, &model, err));
	GT_TRY(gt_graph_build(s->arena, &model, w->n * views, compute, w->train, &g, err));
	if (views > 1)
		GT_TRY(gt_graph_views(g, views, err));
	if (w->loss) {
		GT_TRY(set_class_weights(s, g, err));
		struct gt_loss_spec loss = gt_session_loss(s, w->train);
		enum gt_code code = gt_graph_loss(g, &loss, err);
		if (code == GT_ECONFIG && err)
			gt_conf_at_key(c, err);
		GT_TRY(code);
	}
	if (w->train && gt_graph_differentiate(g, err) != GT_OK)
		return w->phase ? gt_fail_prefix(err, "train.groups: %s", gt_optim_phase_text(&s->optim, w->phase, when, sizeof when))
		                : err ? err->code : GT_ECONFIG;
	GT_TRY(gt_graph_verify(g, err));
	GT_TRY(gt_graph_fuse(g, err));
	if (!w->idle) /* the graph of a rank without samples has no images */
		GT_TRY(gt_plan_pad_images(s->space, g, err));
	if (w->train && s->sync_bn)
		GT_TRY(gt_graph_sync_bn(g, GT_GROUP_DATA, s->at.ndata, w->all, err));
	if (w->idle) {
		g->length = w->length;
		*out = g;
		return gt_graph_sync_bn_idle(g, err);
	}
	if (w->train)
		GT_TRY(gt_graph_recompute(g, c->model.layers, c->train.recompute, err));
	if (!w->phase)
		s->prog.num_params = gt_graph_num_params(g);
	if (gt_session_is_pipeline(s))
		GT_TRY(gt_session_pipe_stage(s, w, &g, err));
	g->length = w->length;
	*out = g;
	if (c->reproducible != GT_REPRO_WORLD)
		GT_TRY(gt_plan_fold_norms(s->space, g, s->prog.folded, c->reproducible != GT_REPRO_NONE, err));
	if (!s->prog.folded)
		s->prog.folded = g;
	if (c->reproducible != GT_REPRO_WORLD) /* with fusions, the result would depend on the partition of the pipeline */
		GT_TRY(gt_plan_fuse_for_backend(s->space, g, w->accumulate, c->reproducible != GT_REPRO_NONE, err));
	if (w->train && gt_space_factored(s->space)) {
		GT_TRY(gt_optim_update_spec(&s->optim, g, &apply, err));
		return gt_plan_factors(g, apply, s->at.ndata, s->at.data, !has_only_images(&model), err);
	}
	if (!w->train || s->batch.units > 1 || s->at.world > 1 || gt_session_is_pipeline(s) || !gt_optim_fused_update(&s->optim))
		return GT_OK;
	GT_TRY(gt_optim_update_spec(&s->optim, g, &apply, err));
	return gt_plan_fuse_updates(s->space, g, apply, err);
}

const struct gt_graph *gt_session_graph_of_samples(const struct gt_session *s)
{
	for (int i = 0; i < s->prog.nplans; i++)
		if (!s->prog.plan_key[i].idle)
			return s->prog.plan[i]->graph;
	return s->space->layout.first;
}

/* Checks that the images of g have the same layout as in earlier plans, because one loader writes the images for several plans. */
static enum gt_code check_same_images(const struct gt_session *s, const struct gt_plan_key *w, const struct gt_graph *g, struct gt_err *err)
{
	const struct gt_graph *first = gt_session_graph_of_samples(s);
	for (int i = 0; !w->idle && first && first->batch && i < g->ninputs; i++)
		if (gt_graph_desc(g, g->input[i])->layout.nblk != gt_graph_desc(first, first->input[i])->layout.nblk)
			return gt_fail(err, GT_EINTERNAL, "%s has padded channels in one plan of the run, but not in another plan",
			               g->values[g->input[i]].name);
	return GT_OK;
}

enum gt_code gt_session_factors_pay(struct gt_session *s, bool *out, struct gt_err *err)
{
	struct gt_plan_key like = {
	    .n = gt_part_size(s->batch.micro, s->batch.slice.parts, 0, NULL), .all = s->batch.micro, .train = true, .loss = true,
	    .length = gt_session_longest(s)};
	struct gt_graph *g;
	const struct gt_update_spec *apply;
	struct gt_loss_spec loss = gt_session_loss(s, true);
	*out = false;
	/* The moving average does not allow factored updates (gt_space_factored): one rank updates it while others may still update
	 * parameters. */
	if (s->optim.ema || s->at.ndata == 1 || gt_session_is_pipeline(s) || s->batch.units > 1 || !gt_loss_ignores(&loss) ||
	    s->conf->reproducible == GT_REPRO_WORLD || !gt_optim_fused_update(&s->optim))
		return GT_OK;
	GT_TRY(build_graph(s, &like, 1, &g, err));
	GT_TRY(gt_optim_update_spec(&s->optim, g, &apply, err));
	return gt_plan_factors_pay(s->space, g, apply, s->at.ndata, out, err);
}

static enum gt_code keep_plan(struct gt_session *s, const struct gt_plan_key *w, struct gt_plan *p, struct gt_err *err)
{
	if (s->prog.nplans == GT_PLANS)
		return gt_fail(err, GT_EINTERNAL, "too many plans");
	s->prog.plan_key[s->prog.nplans] = *w;
	s->prog.plan[s->prog.nplans++] = p;
	return GT_OK;
}

enum gt_code gt_session_graph(struct gt_session *s, const struct gt_plan_key *w, struct gt_graph **out, struct gt_err *err)
{
	return build_graph(s, w, w->train ? 1 : gt_session_tta_views(s->conf), out, err);
}

enum gt_code gt_session_plan(struct gt_session *s, const struct gt_plan_key *w, struct gt_plan **out, struct gt_err *err)
{
	struct gt_plan *base = NULL;
	for (int i = 0; i < s->prog.nplans; i++) {
		struct gt_plan *p = s->prog.plan[i];
		if (!has_same_kernels(&s->prog.plan_key[i], w))
			continue;
		if (p->level == w->level && p->copy == w->copy) {
			*out = p;
			return GT_OK;
		}
		base = p->of ? p->of : p;
	}
	if (!base) {
		struct gt_graph *g;
		struct gt_segments segments;
		bool deterministic = s->conf->reproducible != GT_REPRO_NONE;
		GT_TRY(gt_session_graph(s, w, &g, err));
		GT_TRY(check_same_images(s, w, g, err));
		GT_TRY(gt_session_segments(s, w, g, &segments, err));
		if (segments.n)
			GT_TRY(gt_plan_make_parts(s->space, g, segments.at, segments.n, deterministic, &base, err));
		else
			GT_TRY(gt_plan_make(s->space, g, w->accumulate, deterministic, &base, err));
		GT_TRY(keep_plan(s, w, base, err));
	}
	*out = base;
	if (!w->level && !w->copy)
		return GT_OK;
	GT_TRY(gt_plan_instance(base, 0, w->level, w->copy, out, err));
	return keep_plan(s, w, *out, err);
}
