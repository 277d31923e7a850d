#include "score/measured_eval.h"
#include "base/public.h"
#include "conf/metric_name.h"
#include "score/class_counts.h"
#include "score/class_report.h"
#include "score/value_tally.h"
#include "team/team.h"
#include <math.h>

/* The state of an evaluation; rank 0 also has the outputs of the samples so far. */
struct measuring {
	bool counts, auc, values;
	struct gt_class_counts class_counts;
	struct gt_report_tally auc_tally;
	struct gt_value_tally *value_tally;
	enum gt_code (*also)(void *user, const struct gt_output_rows *rows, struct gt_err *err);
	void *user;
};

/* Returns whether the config names the score as the metric of one of its keys. */
static bool is_named(const struct gt_conf *c, enum gt_score score)
{
	return gt_metric_is(c->checkpoint.best_metric, score) || gt_metric_is(c->train.early_stop.metric, score) ||
	       (c->train.schedule.type == GT_SCHED_PLATEAU && gt_metric_is(c->train.schedule.metric, score));
}

static enum gt_code add_rows(void *user, const struct gt_output_rows *rows, struct gt_err *err)
{
	struct measuring *m = user;
	if (m->counts)
		GT_TRY(gt_class_counts_add(&m->class_counts, rows, err));
	if (m->auc)
		GT_TRY(gt_report_tally_add(&m->auc_tally, rows, err));
	if (m->values && !m->value_tally)
		GT_TRY(gt_value_tally_open(rows->classes, &m->value_tally, err));
	if (m->values)
		gt_value_tally_add(m->value_tally, rows->z, rows->target, rows->n);
	return m->also ? m->also(m->user, rows, err) : GT_OK;
}

/* Sets *out to the mean area under the ROC curve, as in struct gt_class_report; NAN: the area is not defined for any class. */
static enum gt_code compute_auc(const struct gt_report_tally *t, double *out, struct gt_err *err)
{
	struct gt_class_report *r;
	struct gt_arena *a;
	*out = NAN;
	if (!t->classes && !t->labels)
		return GT_OK;
	GT_TRY(gt_arena_open(&a, err));
	enum gt_code code = gt_report_tally_report(t, a, &r, err);
	if (code == GT_OK)
		*out = r->auc;
	gt_arena_close(a);
	return code;
}

/* Computes the scores on rank 0, and broadcasts them to the other ranks. */
static enum gt_code compute_and_broadcast_scores(struct gt_session *s, struct measuring *m, struct gt_scores *out, struct gt_err *err)
{
	enum gt_code code = GT_OK;
	struct gt_scores own = *out;
	if (s->at.rank == 0) {
#define SCORE(word, ...)                       \
	if (is_named(s->conf, GT_SCORE_##word)) \
		own.word = gt_counts_##word(&m->class_counts);
		GT_SCORES_OF_COUNTS(SCORE)
#undef SCORE
		if (m->value_tally)
			gt_value_tally_means(m->value_tally, s->data.value_scale, &own);
		if (m->auc)
			code = compute_auc(&m->auc_tally, &own.auc, err);
	}
	if (code == GT_OK && s->team)
		code = gt_team_broadcast(s->team, &own, sizeof own, 0, "scores of outputs", err);
	*out = own;
	return code;
}

enum gt_code gt_measured_eval_also(struct gt_session *s, enum gt_split split,
                                   enum gt_code (*also)(void *user, const struct gt_output_rows *rows, struct gt_err *err), void *user,
                                   struct gt_scores *out, struct gt_err *err)
{
	int64_t ignore = gt_session_ignored_label(s);
	struct measuring m = {.auc = is_named(s->conf, GT_SCORE_auc), .values = gt_session_predicts_numbers(s),
	                      .class_counts = {.ignore = ignore}, .auc_tally = {.samples = s->data.view[split].n, .ignore = ignore},
	                      .also = also, .user = user};
	struct gt_outputs *o;
#define COUNTS(word, ...) m.counts |= is_named(s->conf, GT_SCORE_##word);
	GT_SCORES_OF_COUNTS(COUNTS)
#undef COUNTS
	if (!m.counts && !m.auc && !m.values && !also)
		return gt_session_eval(s, split, out, err);
	GT_TRY(gt_outputs_open(s, split, add_rows, &m, &o, err));
	enum gt_code code = gt_session_eval(s, split, out, err);
	gt_outputs_close(o);
	if (code == GT_OK)
		code = compute_and_broadcast_scores(s, &m, out, err);
	gt_class_counts_free(&m.class_counts);
	gt_report_tally_free(&m.auc_tally);
	gt_value_tally_close(m.value_tally);
	return code;
}

enum gt_code gt_measured_eval(struct gt_session *s, enum gt_split split, struct gt_scores *out, struct gt_err *err)
{
	return gt_measured_eval_also(s, split, NULL, NULL, out, err);
}
