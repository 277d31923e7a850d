#include "score/measured_eval.h"
#include "base/public.h"
#include "conf/metric_name.h"
#include "score/auc.h"
#include "score/macro_f1.h"
#include "score/value_tally.h"
#include "team/team.h"
#include <math.h>

/* What is measured, and on rank 0 the outputs until now. */
struct measuring {
	bool f1, auc, values;
	struct gt_f1_tally f1_tally;
	struct gt_auc_tally auc_tally;
	struct gt_value_tally *value_tally;
	enum gt_code (*also)(void *user, const struct gt_output_rows *rows, struct gt_err *err);
	void *user;
};

/* Returns whether a key of the config names the score. */
static bool is_named(const struct gt_conf *c, const char *score)
{
	return gt_metric_is(c->checkpoint.best_metric, score) || gt_metric_is(c->train.early_stop.metric, score) ||
	       (c->train.schedule.type == GT_SCHED_PLATEAU && gt_metric_is(c->train.schedule.metric, score));
}

static enum gt_code take(void *user, const struct gt_output_rows *rows, struct gt_err *err)
{
	struct measuring *m = user;
	if (m->f1)
		GT_TRY(gt_f1_tally_add(&m->f1_tally, rows, err));
	if (m->auc)
		GT_TRY(gt_auc_tally_add(&m->auc_tally, rows, err));
	if (m->values && !m->value_tally)
		GT_TRY(gt_value_tally_open(rows->classes, &m->value_tally, err));
	if (m->values)
		gt_value_tally_add(m->value_tally, rows->z, rows->target, rows->n);
	return m->also ? m->also(m->user, rows, err) : GT_OK;
}

/* Computes the scores on rank 0, and sends them to the others. */
static enum gt_code finish(struct gt_session *s, struct measuring *m, struct gt_scores *out, struct gt_err *err)
{
	enum gt_code code = GT_OK;
	if (s->at.rank == 0) {
		if (m->f1)
			out->f1 = gt_f1_tally_score(&m->f1_tally);
		if (m->value_tally)
			gt_value_tally_means(m->value_tally, s->data.value_scale, out);
		if (m->auc)
			code = gt_auc_tally_score(&m->auc_tally, &out->auc, err);
	}
	double v[] = {out->f1, out->auc, out->mae, out->rmse, out->r2};
	if (code == GT_OK && s->team)
		code = gt_team_broadcast(s->team, v, sizeof v, 0, "scores of outputs", err);
	out->f1 = v[0];
	out->auc = v[1];
	out->mae = v[2];
	out->rmse = v[3];
	out->r2 = v[4];
	return code;
}

enum gt_code gt_measured_eval_also(struct gt_session *s, enum gt_split split,
                                   enum gt_code (*also)(void *user, const struct gt_output_rows *rows, struct gt_err *err), void *user,
                                   struct gt_scores *out, struct gt_err *err)
{
	int64_t ignore = gt_session_ignored_label(s);
	struct measuring m = {.f1 = is_named(s->conf, "f1"), .auc = is_named(s->conf, "auc"), .values = gt_session_predicts_numbers(s),
	                      .f1_tally = {.ignore = ignore}, .auc_tally = {.samples = s->data.view[split].n, .ignore = ignore}, .also = also,
	                      .user = user};
	struct gt_outputs *o;
	if (!m.f1 && !m.auc && !m.values && !also)
		return gt_session_eval(s, split, out, err);
	GT_TRY(gt_outputs_open(s, split, take, &m, &o, err));
	enum gt_code code = gt_session_eval(s, split, out, err);
	gt_outputs_close(o);
	if (code == GT_OK)
		code = finish(s, &m, out, err);
	gt_f1_tally_free(&m.f1_tally);
	gt_auc_tally_free(&m.auc_tally);
	gt_value_tally_close(m.value_tally);
	return code;
}

enum gt_code gt_measured_eval(struct gt_session *s, enum gt_split split, struct gt_scores *out, struct gt_err *err)
{
	return gt_measured_eval_also(s, split, NULL, NULL, out, err);
}
