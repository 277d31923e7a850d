#include "setup/lr_suggest.h"
#include "base/arena.h"
#include <math.h>
#include <stdlib.h>

#define LAST_POINTS 5 /* number of points at the end that are ignored, because the loss may rise there */

double gt_lr_smooth(int steps)
{
	return pow(0.98, 100.0 / steps);
}

/* Returns the number of values greater than v in an array in descending order. */
static int count_greater(const double *a, int n, double v)
{
	int lo = 0;
	while (lo < n) {
		int mid = lo + (n - lo) / 2;
		if (a[mid] > v)
			lo = mid + 1;
		else
			n = mid;
	}
	return lo;
}

/* fastai's valley: let i be the first point at which a longest strictly descending subsequence ends, and m its length. The valley is the m
 * steps that end at i, and the suggestion is in the middle of its second third. end[k] is the greatest value at which a descending
 * subsequence of length k + 1 can end. */
static int find_valley(const struct gt_lr_point *p, int n, double *end)
{
	int longest = 0, last = 0;
	for (int i = 0; i < n; i++) {
		int k = count_greater(end, longest, p[i].smooth);
		if (k == longest) {
			longest++;
			last = i;
			end[k] = p[i].smooth;
		} else if (p[i].smooth > end[k]) {
			end[k] = p[i].smooth;
		}
	}
	if (longest < 2)
		return -1;
	double third = longest / 3.0;
	int at = last - longest + (int)third + (int)(third / 2);
	return at > 0 ? at : 0;
}

static int find_steepest(const struct gt_lr_point *p, int n)
{
	int at = -1;
	double least = 0;
	for (int i = 0; i + 1 < n; i++) {
		double slope = (p[i + 1].smooth - p[i].smooth) / (log(p[i + 1].lr) - log(p[i].lr));
		if (slope < least) {
			least = slope;
			at = i;
		}
	}
	return at;
}

static int find_minimum(const struct gt_lr_point *p, int n)
{
	int at = 0;
	for (int i = 1; i < n; i++)
		if (p[i].smooth < p[at].smooth)
			at = i;
	return at;
}

enum gt_code gt_lr_suggest(struct gt_lr_curve *c, struct gt_err *err)
{
	static const char *const name[GT_LR_METHODS] = {"valley", "steep", "minimum/10"};
	int first = c->steps / 10, n = c->n - first - LAST_POINTS, at[GT_LR_METHODS] = {-1, -1, -1};
	if (n >= 2) {
		const struct gt_lr_point *p = c->point + first;
		double *end = malloc((size_t)n * sizeof *end);
		if (!end)
			return gt_fail_memory(err, (size_t)n * sizeof *end);
		at[GT_LR_VALLEY] = find_valley(p, n, end);
		free(end);
		at[GT_LR_STEEP] = find_steepest(p, n);
		at[GT_LR_MINIMUM] = at[GT_LR_STEEP] < 0 ? -1 : find_minimum(p, n);
	}
	for (int i = 0; i < GT_LR_METHODS; i++) {
		double lr = at[i] < 0 ? NAN : c->point[first + at[i]].lr;
		c->suggestion[i] = (struct gt_lr_suggestion){name[i], i == GT_LR_MINIMUM ? lr / 10 : lr};
	}
	return GT_OK;
}
