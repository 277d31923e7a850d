/* train.class_weights = "auto": the weight of class i is n / (k * count[i]), for n samples of the training split and k classes, as
 * scikit-learn's class_weight="balanced". A checkpoint keeps the weights (data.json), and a run that resumes from it and evaluations use
 * those. */
#include "session/session_plan.h"
#include "session/session_data.h"

/* Counts the samples of each class in the training split, but those that the loss ignores. Returns their number. */
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

static enum gt_code compute(struct gt_session *s, int64_t classes, double *w, struct gt_err *err)
{
	int64_t *count, ignored = s->loss.attr.ignore_index, k = classes - (ignored >= 0 && ignored < classes);
	GT_NEW(count, s->arena, classes, err);
	int64_t all = count_labels(s, classes, count);
	for (int64_t i = 0; i < classes; i++) {
		const char *name = gt_session_class_name(s, i);
		if (!count[i] && i != ignored)
			return gt_conf_refuse(s->conf, "train.class_weights", err, "\"auto\" needs samples of each of the model's %lld outputs in the "
			                      "training split, got none of class %lld%s%.100s%s; write the weights as numbers", (long long)classes,
			                      (long long)i, name ? " (" : "", name ? name : "", name ? ")" : "");
		w[i] = i == ignored ? 0 : (double)all / ((double)k * (double)count[i]);
	}
	return GT_OK;
}

/* Sets *w to the weights in the checkpoint; NULL: it has none. */
static enum gt_code from_checkpoint(struct gt_session *s, const struct gt_ckpt *c, int64_t classes, const double **w, struct gt_err *err)
{
	struct gt_data_facts facts;
	*w = NULL;
	if (!c)
		return GT_OK;
	GT_TRY(gt_data_facts_read(c, s->arena, &facts, err));
	if (facts.nweights && facts.nweights != classes)
		return gt_fail(err, GT_EDATA, "%s/data.json: expected %lld weights of classes, one for each output of the model, got %lld",
		               gt_ckpt_path(c), (long long)classes, (long long)facts.nweights);
	*w = facts.weights;
	return GT_OK;
}

enum gt_code gt_session_class_weights(struct gt_session *s, const struct gt_graph *g, struct gt_err *err)
{
	const struct gt_tdesc *out = gt_graph_desc(g, g->output);
	const struct gt_dataset *d = &s->data.set[GT_TRAIN];
	double *w;
	if (s->conf->train.class_weights.n != GT_FLOATS_AUTO || s->loss.attr.nweights || out->rank != 2)
		return GT_OK;
	int64_t classes = out->dim[1];
	GT_TRY(from_checkpoint(s, s->data.ckpt, classes, &s->loss.attr.weights, err));
	if (!s->loss.attr.weights) {
		GT_NEW(w, s->arena, classes, err);
		if (d->labels)
			GT_TRY(compute(s, classes, w, err));
		else if (!s->data.dry)
			return gt_conf_refuse(s->conf, "train.class_weights", err, "\"auto\" needs the labels of the training split, or a checkpoint "
			                      "that was trained with it, got neither; write the weights as numbers");
		else /* the data is not read, and the plan does not depend on the weights */
			for (int64_t i = 0; i < classes; i++)
				w[i] = 1;
		s->loss.attr.weights = w;
	}
	s->loss.attr.nweights = classes;
	s->data.facts.weights = s->loss.attr.weights;
	s->data.facts.nweights = classes;
	return gt_data_facts_print(&s->data.facts, s->arena, &s->data.facts_text, err);
}
