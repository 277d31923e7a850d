#include "view/series_builder.h"
#include "base/arena.h"
#include <math.h>
#include <stdlib.h>

#define GROUPS (GT_SERIES_POINTS / 2)

/* Returns the moving average as TensorBoard computes it: divides the weighted sum by the sum of the weights, so that early averages are not
 * too small. */
static double add_to_average(struct gt_series_builder *b, double value, double smooth)
{
	b->sum = smooth * b->sum + (1 - smooth) * value;
	b->weight = smooth * b->weight + (1 - smooth);
	return b->sum / b->weight;
}

static void add_to_group(struct gt_series_group *g, const struct gt_run_point *p)
{
	if (p->value < g->low.value)
		g->low = *p;
	if (p->value > g->high.value)
		g->high = *p;
}

static void join_groups(struct gt_series_builder *b)
{
	for (int i = 0; i < b->n; i += 2) {
		struct gt_series_group g = b->group[i];
		if (i + 1 < b->n) {
			add_to_group(&g, &b->group[i + 1].low);
			add_to_group(&g, &b->group[i + 1].high);
			g.gap |= b->group[i + 1].gap;
		}
		b->group[i / 2] = g;
	}
	b->n = (b->n + 1) / 2;
	b->size *= 2;
	b->in_last = b->size;
}

enum gt_code gt_series_add(struct gt_series_builder *b, int64_t step, double epoch, double value, double smooth, struct gt_err *err)
{
	if (!b->group) {
		GT_CALLOC(b->group, GROUPS, err);
		b->size = 1;
	}
	const struct gt_series_group *last = b->n ? &b->group[b->n - 1] : NULL;
	if (last && (step < last->low.step || step < last->high.step))
		return GT_OK;
	if (!isfinite(value)) {
		b->missing++;
		b->gap = true;
		return GT_OK;
	}
	struct gt_run_point p = {.step = step, .epoch = epoch, .value = value};
	p.smooth = add_to_average(b, value, smooth);
	if (!isfinite(p.smooth)) /* the sum of huge values has overflowed */
		p.smooth = value;
	if (b->in_last == b->size && b->n == GROUPS)
		join_groups(b);
	if (!b->n || b->in_last == b->size) {
		b->group[b->n++] = (struct gt_series_group){p, p, b->gap};
		b->in_last = 1;
	} else {
		add_to_group(&b->group[b->n - 1], &p);
		b->group[b->n - 1].gap |= b->gap;
		b->in_last++;
	}
	b->values++;
	b->gap = false;
	return GT_OK;
}

void gt_series_set_epochs(struct gt_series_builder *b, double length)
{
	for (int i = 0; i < b->n; i++) {
		struct gt_run_point *p[] = {&b->group[i].low, &b->group[i].high};
		for (int k = 0; k < 2; k++)
			if (isnan(p[k]->epoch))
				p[k]->epoch = (double)p[k]->step / length;
	}
}

void gt_series_store(const struct gt_series_builder *b, struct gt_run_series *out)
{
	out->n = 0;
	for (int i = 0; i < b->n; i++) {
		const struct gt_series_group *g = &b->group[i];
		bool low_first = g->low.step <= g->high.step;
		const struct gt_run_point *first = low_first ? &g->low : &g->high, *second = low_first ? &g->high : &g->low;
		out->point[out->n] = *first;
		out->point[out->n++].gap = g->gap;
		if (second->step != first->step || second->value != first->value)
			out->point[out->n++] = *second;
	}
	out->values = b->values;
	out->missing = b->missing;
}
