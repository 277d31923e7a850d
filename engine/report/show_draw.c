/* Chooses the samples that are shown of a split for evaluation. Its data is often sorted by class, so the first batch might have only one
 * class. */
#include "base/arena.h"
#include "exec/epoch_order.h"
#include "report/show_parts.h"

/* Numbers the samples of each class in the order of a permutation: round[i] is the number of sample order[i] within its class, from 0.
 * Without classes, all numbers are 0. */
static enum gt_code number_samples(struct gt_show_job *j, const struct gt_view *v, const int64_t *order, int64_t *round, struct gt_err *err)
{
	int64_t *seen;
	if (!v->data->labels)
		return GT_OK;
	GT_NEW(seen, j->a, v->data->classes + 1, err);
	for (int64_t i = 0; i < v->n; i++) {
		int32_t y = v->data->labels[v->index ? v->index[order[i]] : order[i]];
		round[i] = y >= 0 && y < v->data->classes ? seen[y]++ : 0;
	}
	return GT_OK;
}

enum gt_code gt_show_draw(struct gt_show_job *j, enum gt_split split, struct gt_err *err)
{
	struct gt_view *v = &j->s->data.view[split];
	int64_t n = v->n < j->spec->samples ? v->n : j->spec->samples, taken = 0, *order, *round, *index;
	GT_NEW(order, j->a, v->n, err);
	GT_NEW(round, j->a, v->n, err);
	GT_NEW(index, j->a, n, err);
	GT_TRY(gt_permute(GT_SAMPLER_GTRAIN, (uint64_t)j->s->conf->seed, 0, v->n, order, err));
	GT_TRY(number_samples(j, v, order, round, err));
	for (int64_t r = 0; taken < n; r++) /* takes one sample of each class, then a second one of each class, and so on */
		for (int64_t i = 0; i < v->n && taken < n; i++)
			if (round[i] == r)
				index[taken++] = v->index ? v->index[order[i]] : order[i];
	j->out->drawn_from = v->n;
	v->index = index;
	v->n = n;
	return GT_OK;
}
