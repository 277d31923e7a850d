/* Sequences of different lengths: the lengths to which batches are padded, and the orders that put similar lengths together. */
#include "exec/lengths.h"
#include "test.h"
#include <stdlib.h>
#include <string.h>

/* Returns the sum of the padded lengths of all samples. */
static int64_t padded(const struct gt_lengths *l, const int64_t *count, int64_t longest)
{
	int64_t sum = 0;
	for (int64_t k = 0; k <= longest; k++)
		sum += count[k] * l->at[gt_lengths_index(l, k)];
	return sum;
}

TEST(few_lengths_fit_the_data)
{
	int64_t count[401] = {0};
	struct gt_lengths l;
	struct gt_err e = {0};
	count[5] = 100, count[8] = 50, count[100] = 30, count[399] = 3;
	CHECK_OK(gt_lengths_choose(count, 400, 5, &l, &e), e);
	CHECK(l.n == 3 && l.at[0] == 8 && l.at[1] == 104 && l.at[2] == 400);
	CHECK_OK(gt_lengths_choose(count, 400, 2, &l, &e), e);
	CHECK(l.n == 2 && l.at[0] == 8 && l.at[1] == 400);
	CHECK_OK(gt_lengths_choose(count, 400, 1, &l, &e), e);
	CHECK(l.n == 1 && l.at[0] == 400);
}

/* No other choice of the same number of lengths pads less: all of them are tried. */
TEST(no_other_lengths_pad_less)
{
	int64_t count[57];
	struct gt_lengths l, other;
	struct gt_err e = {0};
	for (int64_t i = 0; i < 57; i++)
		count[i] = i * i * 31 % 97;
	CHECK_OK(gt_lengths_choose(count, 56, 4, &l, &e), e);
	int64_t got = padded(&l, count, 56), best = INT64_MAX;
	for (int64_t a = 8; a < 56; a += 8)
		for (int64_t b = a; b < 56; b += 8)
			for (int64_t c = b; c < 56; c += 8) {
				other = (struct gt_lengths){4, {a, b, c, 56}};
				best = padded(&other, count, 56) < best ? padded(&other, count, 56) : best;
			}
	CHECK_MSG(l.n == 4 && got == best, "%d lengths with %lld tokens, possible are %lld", l.n, (long long)got, (long long)best);
}

TEST(small_and_long_data)
{
	int64_t one[4] = {0, 0, 0, 9}, *many = calloc(65537, sizeof *many);
	struct gt_lengths l;
	struct gt_err e = {0};
	CHECK_OK(gt_lengths_choose(one, 3, 5, &l, &e), e);
	CHECK(l.n == 1 && l.at[0] == 3);
	for (int64_t i = 0; i < 65537; i++)
		many[i] = 65537 - i;
	CHECK_OK(gt_lengths_choose(many, 65536, GT_MAX_LENGTHS, &l, &e), e);
	CHECK(l.n == GT_MAX_LENGTHS && l.at[GT_MAX_LENGTHS - 1] == 65536);
	for (int i = 0; i < l.n; i++)
		CHECK(l.at[i] % 8 == 0 && (!i || l.at[i] > l.at[i - 1]));
	free(many);
}

#define N 1037
static int64_t start[N + 1], row[N];
static struct gt_order_spec order_of(uint64_t epoch)
{
	for (int64_t i = 0; i < N; i++) {
		start[i + 1] = start[i] + i * 7919 % 61;
		row[i] = (i * 401 + (int64_t)epoch * 7) % N;
	}
	return (struct gt_order_spec){.start = start, .longest = 60, .n = N, .batch = 10, .chunk = 5, .seed = 3, .epoch = epoch};
}

/* Every sample occurs once; the samples of five batches remain together, sorted, and the last batch remains. */
TEST(buckets)
{
	struct gt_err e = {0};
	struct gt_order_spec s = order_of(0);
	int64_t before[N], other[N], spread = 0, seen[N] = {0};
	memcpy(before, row, sizeof row);
	CHECK_OK(gt_order_buckets(&s, row, &e), e);
	for (int64_t i = 0; i < N; i++)
		seen[row[i]]++;
	for (int64_t i = 0; i < N; i++)
		CHECK(seen[i] == 1);
	CHECK(!memcmp(before + 1030, row + 1030, 7 * sizeof *row));
	for (int64_t b = 0; b < 103; b++) {
		int64_t first = row[b * 10], last = row[b * 10 + 9];
		spread += start[last + 1] - start[last] - (start[first + 1] - start[first]);
	}
	CHECK_MSG(spread < 103 * 16, "a batch has lengths that differ by %g on average", (double)spread / 103); /* without buckets: 50 */
	memcpy(other, row, sizeof row);
	s = order_of(0);
	CHECK_OK(gt_order_buckets(&s, row, &e), e);
	CHECK(!memcmp(other, row, sizeof row)); /* the same for the same seed and epoch */
	s = order_of(0);
	s.epoch = 1;
	CHECK_OK(gt_order_buckets(&s, row, &e), e);
	CHECK(memcmp(other, row, sizeof row)); /* the order of the batches depends on the epoch */
}

TEST(sorted)
{
	struct gt_err e = {0};
	struct gt_order_spec s = order_of(0);
	for (int64_t i = 0; i < N; i++)
		row[i] = i;
	CHECK_OK(gt_order_sorted(&s, row, &e), e);
	for (int64_t i = 1; i < N; i++) {
		int64_t a = start[row[i - 1] + 1] - start[row[i - 1]], b = start[row[i] + 1] - start[row[i]];
		CHECK(a < b || (a == b && row[i - 1] < row[i]));
	}
}

RUN_TESTS()
