#include "score/roc.h"
#include <math.h>
#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

/* Counts the values < v (<= v if `equal`) in the ascending array sorted[n]. */
static int64_t count_below(const double *sorted, int64_t n, double v, bool equal)
{
	int64_t lo = 0, hi = n;
	while (lo < hi) {
		int64_t mid = lo + (hi - lo) / 2;
		if (sorted[mid] < v || (equal && sorted[mid] == v))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

double gt_roc_area(const double *p, const bool *positive, int64_t all, double *own)
{
	int64_t n = 0, halves = 0;
	for (int64_t i = 0; i < all; i++)
		if (positive[i])
			own[n++] = p[i];
	if (n == 0 || n == all)
		return NAN;
	qsort(own, (size_t)n, sizeof *own, by_value);
	for (int64_t i = 0; i < all; i++) {
		if (positive[i])
			continue;
		int64_t above = n - count_below(own, n, p[i], false);
		halves += above + (above && own[n - above] == p[i] ? n - count_below(own, n, p[i], true) : above);
	}
	return 0.5 * (double)halves / ((double)n * (double)(all - n));
}
