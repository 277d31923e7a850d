#include "score/auc.h"
#include "base/arena.h"
#include "score/class_report.h"
#include "score/outputs.h"
#include "score/target_report.h"
#include "team/team.h"
#include <math.h>

/* The outputs of the split, on rank 0; at most one of the two. */
struct tallies {
	int64_t samples, ignore;
	struct gt_class_tally *classes;
	struct gt_target_tally *labels;
};

static enum gt_code take(void *user, const struct gt_output_rows *rows, struct gt_err *err)
{
	struct tallies *t = user;
	if (rows->target) {
		if (!t->labels)
			GT_TRY(gt_target_tally_open(t->samples, rows->classes, &t->labels, err));
		return gt_target_tally_add(t->labels, rows->z, rows->target, rows->n, err);
	}
	if (!t->classes)
		GT_TRY(gt_class_tally_open(t->samples, rows->classes, t->ignore, &t->classes, err));
	return gt_class_tally_add(t->classes, rows->z, rows->label, rows->n, err);
}

static enum gt_code area(const struct tallies *t, double *out, struct gt_err *err)
{
	struct gt_class_report *r = NULL;
	struct gt_arena *a;
	GT_TRY(gt_arena_open(&a, err));
	enum gt_code code = t->labels    ? gt_target_tally_labels(t->labels, a, &r, err)
	                    : t->classes ? gt_class_tally_report(t->classes, a, &r, err)
	                                 : GT_OK;
	if (code == GT_OK && r)
		*out = r->auc;
	gt_arena_close(a);
	return code;
}

enum gt_code gt_auc_eval(struct gt_session *s, enum gt_split split, struct gt_scores *out, struct gt_err *err)
{
	struct tallies t = {.samples = s->data.view[split].n, .ignore = gt_session_ignored_label(s)};
	struct gt_outputs *o;
	GT_TRY(gt_outputs_open(s, split, take, &t, &o, err));
	enum gt_code code = gt_session_eval(s, split, out, err);
	gt_outputs_close(o);
	out->auc = NAN;
	if (code == GT_OK)
		code = area(&t, &out->auc, err);
	gt_class_tally_close(t.classes);
	gt_target_tally_close(t.labels);
	if (code == GT_OK && s->team)
		code = gt_team_broadcast(s->team, &out->auc, sizeof out->auc, 0, "the area under the ROC curve", err);
	return code;
}
