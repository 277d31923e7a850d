#include "score/macro_f1.h"
#include "score/outputs.h"
#include "team/team.h"
#include <math.h>
#include <stdlib.h>

struct counts {
	int64_t classes, ignore;
	struct {
		int64_t support, predicted, correct; /* samples of the class; samples assigned to it; both */
	} *of;
};

static enum gt_code take(void *user, const struct gt_output_rows *rows, struct gt_err *err)
{
	struct counts *n = user;
	n->classes = rows->classes;
	if (!n->of && !(n->of = calloc((size_t)rows->classes, sizeof *n->of)))
		return gt_fail_memory(err, (size_t)rows->classes * sizeof *n->of);
	for (int64_t i = 0; i < rows->n; i++) {
		const float *z = rows->z + i * rows->classes;
		for (int64_t c = 0; c < rows->classes && rows->target; c++) { /* several labels: each one is predicted or not */
			bool there = rows->target[i * rows->classes + c] > 0.5f;
			n->of[c].support += there;
			n->of[c].predicted += z[c] > 0;
			n->of[c].correct += there && z[c] > 0;
		}
		if (rows->target)
			continue;
		int64_t label = rows->label[i], best = 0;
		if (label == n->ignore)
			continue;
		for (int64_t c = 1; c < rows->classes; c++)
			best = z[c] > z[best] ? c : best;
		n->of[label].support++;
		n->of[best].predicted++;
		n->of[label].correct += label == best;
	}
	return GT_OK;
}

static double macro_f1(const struct counts *n)
{
	double sum = 0;
	int64_t seen = 0;
	for (int64_t c = 0; n->of && c < n->classes; c++) {
		int64_t both = n->of[c].support + n->of[c].predicted;
		sum += both ? 2 * (double)n->of[c].correct / (double)both : 0;
		seen += both > 0;
	}
	return seen ? sum / (double)seen : NAN;
}

enum gt_code gt_macro_f1_eval(struct gt_session *s, enum gt_split split, struct gt_scores *out, struct gt_err *err)
{
	struct counts n = {.ignore = gt_session_ignored_label(s)};
	struct gt_outputs *o;
	GT_TRY(gt_outputs_open(s, split, take, &n, &o, err));
	enum gt_code code = gt_session_eval(s, split, out, err);
	gt_outputs_close(o);
	out->f1 = macro_f1(&n);
	free(n.of);
	if (code == GT_OK && s->team)
		code = gt_team_broadcast(s->team, &out->f1, sizeof out->f1, 0, "the F1 score", err);
	return code;
}
