/* Tries several orders in which blocks are placed, and keeps the one with the least memory. */
#include "plan/offsets.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Limits of the search. No further order is tried after MAX_COMPARISONS comparisons of two blocks (about 10 ms), or if the memory is at
 * most 1 / CLOSE_ENOUGH above its lower bound. */
#define MAX_COMPARISONS 5000000
#define CLOSE_ENOUGH 256
#define REPAIRS 20 /* maximum number of repairs of an order; a repair moves the blocks with the highest ends to its front */

/* A block, with the keys by which the orders sort blocks. */
struct item {
	size_t bytes;  /* size of the block in bytes, rounded up to a multiple of GT_ALIGN */
	size_t offset; /* offset of the block in the order that is being tried */
	size_t peak;   /* largest number of bytes that are live at the same node during the block's life */
	int first, last;
	int block;     /* index of the block */
};

struct search {
	struct item *item; /* [n] in the order in which they are placed */
	int *placed;       /* [n] items that have an offset, sorted by offset */
	int n;
	int64_t comparisons;
};

static size_t round_up(size_t n)
{
	return (n + GT_ALIGN - 1) / GT_ALIGN * GT_ALIGN;
}

static int compare_sizes(size_t x, size_t y) /* for qsort(3), descending order */
{
	return x < y ? 1 : x > y ? -1 : 0;
}

static int life_of(const struct item *x)
{
	return x->last - x->first;
}

static int by_size(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	int c = compare_sizes(x->bytes, y->bytes);
	return c ? c : x->first != y->first ? x->first - y->first : x->block - y->block;
}

/* Order by lifetime, longest first: begins with blocks that the forward pass makes and the backward pass reads, the outermost first. */
static int by_life(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	int c = life_of(y) - life_of(x);
	return c ? c : by_size(a, b);
}

static int by_area(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	int c = compare_sizes(x->bytes * (size_t)(life_of(x) + 1), y->bytes * (size_t)(life_of(y) + 1));
	return c ? c : by_size(a, b);
}

/* Order by peak: begins with blocks that are live at the node at which most bytes are live. */
static int by_peak(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	int c = compare_sizes(x->peak, y->peak);
	return c ? c : by_size(a, b);
}

static int by_peak_and_life(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	int c = compare_sizes(x->peak, y->peak);
	return c ? c : by_life(a, b);
}

static int by_first(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	return x->first != y->first ? x->first - y->first : x->last != y->last ? y->last - x->last : by_size(a, b);
}

static int by_last(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	return x->last != y->last ? y->last - x->last : by_first(a, b);
}

/* Gives item x the lowest offset at which no other item that is live at the same time has memory. */
static void place_item(struct search *s, int x)
{
	struct item *b = &s->item[x];
	int k = 0;
	b->offset = 0;
	for (; k < x; k++) {
		const struct item *p = &s->item[s->placed[k]];
		if (p->first > b->last || b->first > p->last)
			continue;
		if (p->offset >= b->offset + b->bytes)
			break;
		b->offset = p->offset + p->bytes > b->offset ? p->offset + p->bytes : b->offset;
	}
	s->comparisons += k + 1;
	for (k = x; k > 0 && s->item[s->placed[k - 1]].offset > b->offset; k--)
		s->placed[k] = s->placed[k - 1];
	s->placed[k] = x;
}

/* Places all items in their order. Returns the memory that they take. */
static size_t place_items(struct search *s)
{
	size_t top = 0;
	for (int i = 0; i < s->n; i++) {
		place_item(s, i);
		size_t end = s->item[i].offset + s->item[i].bytes;
		top = end > top ? end : top;
	}
	return top;
}

/* Computes the bytes that are live at each node; sets the peaks of the items and the lower bounds with and without alignment. */
static enum gt_code measure_lives(struct search *s, struct gt_arena *a, const struct gt_block *block, size_t *aligned,
                                  struct gt_blocks_size *size, struct gt_err *err)
{
	int nodes = 0;
	size_t *live, *exact;
	for (int i = 0; i < s->n; i++)
		nodes = block[i].last + 1 > nodes ? block[i].last + 1 : nodes;
	GT_NEW(live, a, nodes + 1, err);
	GT_NEW(exact, a, nodes + 1, err);
	for (int i = 0; i < s->n; i++)
		for (int t = block[i].first; t <= block[i].last; t++) {
			live[t] += round_up(block[i].bytes);
			exact[t] += block[i].bytes;
		}
	*aligned = 0;
	for (int t = 0; t < nodes; t++) {
		*aligned = live[t] > *aligned ? live[t] : *aligned;
		size->live = exact[t] > size->live ? exact[t] : size->live;
	}
	for (int i = 0; i < s->n; i++) {
		s->item[i] = (struct item){.bytes = round_up(block[i].bytes), .first = block[i].first, .last = block[i].last, .block = i};
		for (int t = block[i].first; t <= block[i].last; t++)
			s->item[i].peak = live[t] > s->item[i].peak ? live[t] : s->item[i].peak;
	}
	return GT_OK;
}

/* Keeps the offsets that the items have now if they need less memory than the best ones so far. */
static void keep_better(const struct search *s, size_t top, struct gt_block *block, struct gt_blocks_size *size)
{
	if (top >= size->bytes)
		return;
	size->bytes = top;
	for (int i = 0; i < s->n; i++)
		block[s->item[i].block].offset = s->item[i].offset;
}

/* Moves the items whose memory ends at `top`, the highest address, to the front of the order, so that they are placed earlier. */
static void move_highest(struct search *s, size_t top)
{
	int front = 0;
	for (int i = 0; i < s->n; i++) {
		struct item x = s->item[i];
		if (x.offset + x.bytes < top)
			continue;
		memmove(&s->item[front + 1], &s->item[front], (size_t)(i - front) * sizeof x);
		s->item[front++] = x;
	}
}

/* Places the items in the order that s->item has, then up to `repairs` times in that order with the highest items moved to the front.
 * Ends when the memory is no larger than `bound`, or the time is used up. */
static void try_order(struct search *s, int repairs, size_t bound, struct gt_block *block, struct gt_blocks_size *size)
{
	for (int i = 0; i <= repairs && size->bytes > bound && s->comparisons < MAX_COMPARISONS; i++) {
		size_t top = place_items(s);
		keep_better(s, top, block, size);
		move_highest(s, top);
	}
}

/* First tries every order, which is enough for most networks, then every order with repairs. */
enum gt_code gt_blocks_assign(struct gt_arena *a, struct gt_block *block, int n, struct gt_blocks_size *size, struct gt_err *err)
{
	static int (*const orders[])(const void *, const void *) = {by_life, by_size, by_peak_and_life, by_peak, by_area, by_first, by_last};
	const int norders = sizeof orders / sizeof *orders;
	struct search s = {.n = n};
	size_t bound = 0;
	*size = (struct gt_blocks_size){.bytes = n ? SIZE_MAX : 0};
	GT_NEW(s.item, a, n + 1, err);
	GT_NEW(s.placed, a, n + 1, err);
	GT_TRY(measure_lives(&s, a, block, &bound, size, err));
	bound += bound / CLOSE_ENOUGH;
	for (int i = 0; i < 2 * norders && size->bytes > bound && s.comparisons < MAX_COMPARISONS; i++) {
		qsort(s.item, (size_t)n, sizeof *s.item, orders[i % norders]);
		try_order(&s, i < norders ? 0 : REPAIRS, bound, block, size);
	}
	return GT_OK;
}
