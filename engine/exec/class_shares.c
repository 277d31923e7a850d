#include "exec/class_shares.h"
#include <stdlib.h>

static int by_rest(const void *a, const void *b)
{
	const struct gt_class_share *x = a, *y = b;
	if (x->rest != y->rest)
		return x->rest < y->rest ? 1 : -1;
	return (x->class > y->class) - (x->class < y->class);
}

static int by_class(const void *a, const void *b)
{
	const struct gt_class_share *x = a, *y = b;
	return (x->class > y->class) - (x->class < y->class);
}

void gt_class_shares(struct gt_class_share *s, int64_t classes, int64_t n, int64_t count, bool at_least_one)
{
	int64_t left = count;
	for (int64_t k = 0; k < classes && n > 0; k++) {
		__int128 part = (__int128)s[k].n * count; /* the exact share of class k, in units of 1 / n of a sample */
		s[k].class = k;
		s[k].take = at_least_one && part < n && 2 * part >= n ? 1 : (int64_t)(part / n);
		s[k].rest = (int64_t)(part - (__int128)s[k].take * n);
		left -= s[k].take;
	}
	qsort(s, (size_t)classes, sizeof *s, by_rest);
	for (int64_t k = 0; k < classes && left > 0 && s[k].rest > 0; k++, left--)
		s[k].take++;
	qsort(s, (size_t)classes, sizeof *s, by_class);
}
