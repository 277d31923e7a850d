#include "score/auc.h"
#include "base/arena.h"
#include <math.h>

enum gt_code gt_auc_tally_add(struct gt_auc_tally *t, const struct gt_output_rows *rows, struct gt_err *err)
{
	if (rows->target) {
		if (!t->labels)
			GT_TRY(gt_target_tally_open(t->samples, rows->classes, &t->labels, err));
		return gt_target_tally_add(t->labels, rows->z, rows->target, rows->n, err);
	}
	if (!t->classes)
		GT_TRY(gt_class_tally_open(t->samples, rows->classes, t->ignore, &t->classes, err));
	return gt_class_tally_add(t->classes, rows->z, rows->label, rows->n, err);
}

enum gt_code gt_auc_tally_score(const struct gt_auc_tally *t, double *out, struct gt_err *err)
{
	struct gt_class_report *r = NULL;
	struct gt_arena *a;
	*out = NAN;
	GT_TRY(gt_arena_open(&a, err));
	enum gt_code code = t->labels    ? gt_target_tally_labels(t->labels, a, &r, err)
	                    : t->classes ? gt_class_tally_report(t->classes, a, &r, err)
	                                 : GT_OK;
	if (code == GT_OK && r)
		*out = r->auc;
	gt_arena_close(a);
	return code;
}

void gt_auc_tally_free(struct gt_auc_tally *t)
{
	gt_class_tally_close(t->classes);
	gt_target_tally_close(t->labels);
	t->classes = NULL;
	t->labels = NULL;
}
