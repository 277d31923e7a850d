/* Sequences of different lengths: the few lengths to which batches are padded, and orders that keep samples of similar lengths together.
 *
 *     gt_lengths_choose(count, longest, GT_AUTO_LENGTHS, &lengths);       count[k]: number of samples of length k
 *     gt_order_buckets(&what, row);                                       row: the order of an epoch, which is changed
 *     int i = gt_lengths_index(&lengths, longest_of_the_batch);           the batch is padded to lengths.at[i]
 *
 * A session makes a plan for each of these lengths before its first step. */
#ifndef GT_EXEC_LENGTHS_H
#define GT_EXEC_LENGTHS_H

#include "conf/conf.h"

#define GT_AUTO_LENGTHS 5 /* number of lengths that are chosen if the config lists none */
struct gt_lengths {
	int n;                       /* 0: there are no sequences */
	int64_t at[GT_MAX_LENGTHS];  /* ascending; no sequence is longer than the last entry */
};

/* Chooses at most n lengths that make the sum of all padded lengths small. The last length is `longest`; all other lengths are multiples of
 * 8. count[0 ... longest]: number of samples of each length. */
enum gt_code gt_lengths_choose(const int64_t *count, int64_t longest, int n, struct gt_lengths *out, struct gt_err *err);

/* Returns the index of the shortest length that is at least `length`; if all are shorter, the last index. */
static inline int gt_lengths_index(const struct gt_lengths *l, int64_t length)
{
	int i = 0;
	while (i < l->n - 1 && l->at[i] < length)
		i++;
	return i;
}

/* How the samples of an epoch are ordered. */
struct gt_order_spec {
	const int64_t *start; /* sample i has the length start[i + 1] - start[i] */
	int64_t longest;      /* length of the longest sample */
	int64_t n;            /* number of positions in the order */
	int64_t batch;
	int64_t chunk;        /* number of batches whose samples are sorted together */
	uint64_t seed, epoch;
};

/* Sorts the samples of every `chunk` full batches in row[0 ... n - 1] by length, and then draws an order of the full batches. The samples
 * of the last, short batch keep their positions. */
enum gt_code gt_order_buckets(const struct gt_order_spec *s, int64_t *row, struct gt_err *err);
/* Sorts all samples by length. Samples of equal length keep their order. */
enum gt_code gt_order_sorted(const struct gt_order_spec *s, int64_t *row, struct gt_err *err);

#endif
