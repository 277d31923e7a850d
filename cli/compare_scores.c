#include "compare_scores.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

double gt_score_last(const struct gt_run_record *r, int split, int score)
{
	return r->last[split][score];
}

double gt_score_best(const struct gt_run_record *r, int split, int score)
{
	char name[64];
	snprintf(name, sizeof name, "%s/%s", gt_run_splits[split], gt_score_rows[score].word);
	return r->best_metric && !strcmp(r->best_metric, name) ? r->best : NAN;
}

struct gt_statistic gt_compared_statistic(const struct gt_compared *x, int group, gt_run_score *get, int split, int score)
{
	struct gt_statistic s = {0};
	double squares = 0;
	for (int i = 0; i < x->n; i++) {
		double v = get(&x->run[i], split, score);
		if (x->c.group[i] != group || isnan(v))
			continue;
		double delta = v - s.mean;
		s.mean += delta / ++s.n;
		squares += delta * (v - s.mean);
	}
	s.deviation = s.n > 1 ? sqrt(squares / (s.n - 1)) : 0;
	return s;
}

const struct gt_run_record *gt_compared_first(const struct gt_compared *x, int group, int *n)
{
	const struct gt_run_record *first = NULL;
	*n = 0;
	for (int i = 0; i < x->n; i++)
		if (x->c.group[i] == group) {
			first = first ? first : &x->run[i];
			++*n;
		}
	return first;
}
