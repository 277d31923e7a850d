#include "session/session.h"
#include "session/session_plan.h"
#include <math.h>
#include <stdlib.h>

/* Copies parameter i to host memory, as f32 in plain order. If i is -1, writes n elements of the value `none` instead. The caller frees
 * *out. */
static enum gt_code read_param(struct gt_session *s, int i, int64_t n, float none, float **out, struct gt_err *err)
{
	if (i >= 0) {
		struct gt_tdesc d = gt_session_desc(s, i);
		n = gt_tdesc_count(&d);
	}
	if (!(*out = malloc((size_t)n * sizeof **out)))
		return gt_fail_memory(err, (size_t)n * sizeof **out);
	for (int64_t k = 0; i < 0 && k < n; k++)
		(*out)[k] = none;
	return i < 0 ? GT_OK : gt_session_get(s, i, -1, *out, err);
}

enum { W, B, GAMMA, BETA, MEAN, VAR, TENSORS };

static enum gt_code fold_norm(struct gt_session *s, const struct gt_norm_fold *f, struct gt_err *err)
{
	const int index[TENSORS] = {f->w, f->b, f->gamma, f->beta, f->mean, f->var};
	struct gt_tdesc d = gt_session_desc(s, f->w);
	int64_t out = d.dim[0], each = gt_tdesc_count(&d) / out;
	float *t[TENSORS] = {NULL};
	enum gt_code code = GT_OK;
	for (int i = 0; i < TENSORS && code == GT_OK; i++)
		code = read_param(s, index[i], out, i == GAMMA, &t[i], err);
	for (int64_t o = 0; o < out && code == GT_OK; o++) {
		double scale = t[GAMMA][o] / sqrt((double)t[VAR][o] + f->eps);
		for (int64_t k = 0; k < each; k++)
			t[W][o * each + k] = (float)(t[W][o * each + k] * scale);
		t[MEAN][o] = (float)(t[BETA][o] + ((double)t[B][o] - t[MEAN][o]) * scale);
	}
	if (code == GT_OK)
		code = gt_session_put(s, f->w, -1, t[W], err);
	if (code == GT_OK)
		code = gt_session_put(s, f->mean, -1, t[MEAN], err);
	for (int i = 0; i < TENSORS; i++)
		free(t[i]);
	return code;
}

enum gt_code gt_session_fold_norms(struct gt_session *s, struct gt_err *err)
{
	const struct gt_graph *g = gt_session_graph_of_samples(s);
	for (int i = 0; i < g->nfolds; i++)
		GT_TRY(fold_norm(s, &g->fold[i], err));
	return GT_OK;
}
