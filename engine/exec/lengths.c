#include "exec/lengths.h"
#include "exec/epoch_order.h"
#include <stdlib.h>
#include <string.h>

#define STEP 8         /* lengths are multiples of STEP, which kernels process faster */
#define CANDIDATES 128 /* maximum number of lengths among which gt_lengths_choose chooses */

/* State of the dynamic program of gt_lengths_choose. cost[k][c]: the least sum of the padded lengths of all samples not longer than
 * candidate c, with at most k + 1 chosen lengths, of which c is the longest. from[k][c]: the candidate chosen before c; -1: as in row
 * k - 1. */
struct choice {
	int64_t at[CANDIDATES], below[CANDIDATES]; /* at[c]: length of candidate c; below[c]: number of samples not longer than at[c] */
	double cost[GT_MAX_LENGTHS][CANDIDATES];
	int from[GT_MAX_LENGTHS][CANDIDATES];
};

static int list_candidates(const int64_t *count, int64_t longest, struct choice *c)
{
	int64_t step = (longest + CANDIDATES - 1) / CANDIDATES, sum = 0, k = 0;
	int n = 0;
	step = (step + STEP - 1) / STEP * STEP;
	for (int64_t at = step; n == 0 || c->at[n - 1] < longest; at += step) {
		c->at[n] = at < longest ? at : longest;
		for (; k <= c->at[n]; k++)
			sum += count[k];
		c->below[n++] = sum;
	}
	return n;
}

enum gt_code gt_lengths_choose(const int64_t *count, int64_t longest, int n, struct gt_lengths *out, struct gt_err *err)
{
	struct choice *c = malloc(sizeof *c);
	int last, best = 0;
	if (!c)
		return gt_fail_memory(err, sizeof *c);
	last = list_candidates(count, longest, c) - 1;
	for (int i = 0; i <= last; i++)
		c->cost[0][i] = (double)c->at[i] * (double)c->below[i];
	for (int k = 1; k < n; k++)
		for (int i = 0; i <= last; i++) {
			c->cost[k][i] = c->cost[k - 1][i];
			c->from[k][i] = -1; /* k lengths are as good as k + 1 lengths, unless the loop below finds a lower cost */
			for (int j = 0; j < i; j++) {
				double cost = c->cost[k - 1][j] + (double)c->at[i] * (double)(c->below[i] - c->below[j]);
				if (cost < c->cost[k][i]) {
					c->cost[k][i] = cost;
					c->from[k][i] = j;
				}
			}
		}
	for (int k = 1; k < n; k++)
		best = c->cost[k][last] < c->cost[best][last] ? k : best;
	out->n = 0;
	for (int k = best, i = last; k >= 0; k--) {
		if (k && c->from[k][i] < 0)
			continue;
		memmove(out->at + 1, out->at, (size_t)out->n++ * sizeof *out->at);
		out->at[0] = c->at[i];
		i = k ? c->from[k][i] : i;
	}
	free(c);
	return GT_OK;
}

/* ---- orders --------------------------------------------------------------------------------------------------------------------- */
static int64_t length_of(const struct gt_order_spec *s, int64_t sample)
{
	return s->start[sample + 1] - s->start[sample];
}

/* Sorts the n samples row[] by length with a counting sort. first: [longest + 2] and to: [n] are work space. */
static void sort_by_length(const struct gt_order_spec *s, int64_t *row, int64_t n, int64_t *first, int64_t *to)
{
	memset(first, 0, (size_t)(s->longest + 2) * sizeof *first);
	for (int64_t i = 0; i < n; i++)
		first[length_of(s, row[i]) + 1]++;
	for (int64_t k = 0; k <= s->longest; k++)
		first[k + 1] += first[k];
	for (int64_t i = 0; i < n; i++)
		to[first[length_of(s, row[i])]++] = row[i];
	memcpy(row, to, (size_t)n * sizeof *row);
}

static enum gt_code arrange_by_length(const struct gt_order_spec *s, int64_t chunk, bool draw, int64_t *row, struct gt_err *err)
{
	int64_t batches = s->n / s->batch, full = draw ? batches * s->batch : s->n;
	size_t size = (size_t)(s->longest + 2 + s->n + batches) * sizeof(int64_t);
	int64_t *first = malloc(size), *to = first + s->longest + 2, *perm = to + s->n;
	if (!first)
		return gt_fail_memory(err, size);
	for (int64_t i = 0; i < full; i += chunk)
		sort_by_length(s, row + i, chunk < full - i ? chunk : full - i, first, to);
	if (draw) {
		gt_permute_batches(s->seed, s->epoch, batches, perm);
		for (int64_t i = 0; i < batches; i++)
			memcpy(to + i * s->batch, row + perm[i] * s->batch, (size_t)s->batch * sizeof *row);
		memcpy(row, to, (size_t)full * sizeof *row);
	}
	free(first);
	return GT_OK;
}

enum gt_code gt_order_buckets(const struct gt_order_spec *s, int64_t *row, struct gt_err *err)
{
	return arrange_by_length(s, s->chunk * s->batch, true, row, err);
}

enum gt_code gt_order_sorted(const struct gt_order_spec *s, int64_t *row, struct gt_err *err)
{
	return arrange_by_length(s, s->n, false, row, err);
}
