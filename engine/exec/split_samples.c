#include "exec/split_samples.h"
#include "base/arena.h"
#include "base/philox.h"
#include "exec/class_shares.h"
#include <stdlib.h>

/* The arguments of gt_split_samples: the samples to divide, their classes, and the share of "valid". */
struct division {
	uint64_t key; /* of the random draws */
	double share;
	const struct gt_sample_mark *mark; /* [n] */
	int64_t n;
	const int32_t *stratum; /* [n] */
	int64_t strata;
};

/* ---- draws alone ------------------------------------------------------------------------------------------------------------ */
/* Counts of a class, or of all samples. Samples with the same id have the same draw, so they are in the same split. */
struct stratum {
	int64_t n, valid;      /* number of samples; number of samples in "valid" */
	int64_t least, most;   /* indices of the samples with the lowest and the highest draw; -1: none */
	double low, high;      /* the lowest and the highest draw */
};

static double draw_uniform(uint64_t key, uint64_t id)
{
	struct gt_philox r = gt_rng_draw(key, (uint32_t)id, (uint32_t)(id >> 32), 0, 0);
	return (double)(((uint64_t)r.v[0] << 32 | r.v[1]) >> 11) * 0x1p-53;
}

static void count_sample(struct stratum *s, int64_t i, double u, bool valid)
{
	if (!s->n++) {
		s->least = s->most = i;
		s->low = s->high = u;
	}
	if (u < s->low) {
		s->least = i;
		s->low = u;
	}
	if (u > s->high) {
		s->most = i;
		s->high = u;
	}
	s->valid += valid;
}

struct move {
	uint64_t id;
	char to;
};

/* If all samples of stratum s are in one split, sets *m to the move of one sample to the other split: to "valid" only if `expected`, the
 * share of its samples, is at least 0.5. Returns the number of moves, 0 or 1. */
static int64_t move_if_one_sided(const struct stratum *s, double expected, const struct gt_sample_mark *mark, struct move *m)
{
	bool all = s->n && s->valid == s->n, none = s->n && !s->valid && expected >= 0.5 && s->low < s->high;
	if (all || none)
		*m = (struct move){mark[all ? s->most : s->least].id, none};
	return all || none;
}

static int by_id(const void *a, const void *b)
{
	const struct move *x = a, *y = b;
	return (x->id > y->id) - (x->id < y->id);
}

/* Puts all samples whose id is in m[count] into the split m[].to (1: "valid"). */
static void apply_moves(struct move *m, int64_t count, const struct gt_sample_mark *mark, int64_t n, char *is_valid)
{
	if (count > 1)
		qsort(m, (size_t)count, sizeof *m, by_id);
	for (int64_t i = 0; i < n && count; i++) {
		const struct move *found = bsearch(&(struct move){.id = mark[i].id}, m, (size_t)count, sizeof *m, by_id);
		if (found)
			is_valid[i] = found->to;
	}
}

/* Puts the samples whose draw is below the share into "valid". Then moves single samples, so that both splits have a sample of each class,
 * and a sample at all, if that is possible. */
static enum gt_code split_by_draws(const struct division *d, char *is_valid, struct gt_err *err)
{
	int64_t moves = 0;
	struct stratum all = {0}, *s = calloc((size_t)d->strata + 1, sizeof *s);
	struct move *m = malloc(((size_t)d->strata + 1) * sizeof *m);
	if (!s || !m) {
		free(s);
		free(m);
		return gt_fail_memory(err, (size_t)d->strata * (sizeof *s + sizeof *m));
	}
	for (int64_t i = 0; i < d->n; i++) {
		double u = draw_uniform(d->key, d->mark[i].id);
		is_valid[i] = u < d->share;
		if (d->strata)
			count_sample(&s[d->stratum[i]], i, u, is_valid[i]);
	}
	for (int64_t k = 0; k < d->strata; k++)
		moves += move_if_one_sided(&s[k], d->share * (double)s[k].n, d->mark, &m[moves]);
	apply_moves(m, moves, d->mark, d->n, is_valid);
	for (int64_t i = 0; i < d->n; i++)
		if (!d->strata || s[d->stratum[i]].low < s[d->stratum[i]].high) /* not a class with a single id, which stays in "train" */
			count_sample(&all, i, draw_uniform(d->key, d->mark[i].id), is_valid[i]);
	apply_moves(m, move_if_one_sided(&all, d->share * (double)d->n, d->mark, m), d->mark, d->n, is_valid);
	free(s);
	free(m);
	return GT_OK;
}

/* ---- a share of each class -------------------------------------------------------------------------------------------------- */
/* A sample of a bucket. */
struct drawn {
	double draw;
	uint64_t id;
	int64_t index;
	int32_t class;
};

/* The samples in buckets of rising draws. The samples of an id have the same draw, so that they are in the same bucket. Only the samples of
 * some successive buckets are in memory: the division reads the marks of all samples again for the next ones. */
struct buckets {
	int64_t n;           /* number of buckets */
	int64_t *start;      /* [n + 1] number of samples in all buckets before each bucket */
	int64_t *next;       /* [n] while buckets are filled: number of samples before the next sample of a bucket */
	int64_t first, last; /* the buckets first ... last - 1 are in memory */
	int64_t cap;         /* maximum number of samples in memory */
	struct drawn *drawn; /* [cap] the samples of these buckets, by bucket */
};

/* The samples of a class that are in "valid" so far. */
struct class_taken {
	int64_t taken;
	bool seen;  /* the loop has reached a sample of the class */
	bool first; /* the samples with the first identity of the class are taken, whatever their number */
};

static int by_draw_and_class(const void *a, const void *b)
{
	const struct drawn *x = a, *y = b;
	if (x->draw != y->draw)
		return x->draw < y->draw ? -1 : 1;
	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	return (x->class > y->class) - (x->class < y->class);
}

static int64_t find_bucket(const struct buckets *b, double draw)
{
	return (int64_t)(draw * (double)b->n); /* below n, because a draw is below 1 */
}

static void free_buckets(struct buckets *b)
{
	free(b->start);
	free(b->next);
	free(b->drawn);
}

static enum gt_code count_buckets(const struct division *d, struct buckets *b, struct gt_err *err)
{
	enum { EACH = 1024, MOST = 1 << 16 }; /* samples of a bucket; buckets whose ends stay in the cache */
	enum { SPARE = 1024, CAP = 1 << 23 }; /* samples in memory: more than are expected in "valid", and at most */
	int64_t largest = 0;
	double likely = d->share * (double)d->n * 1.05 + SPARE; /* samples up to the highest draw of a sample in "valid" */
	*b = (struct buckets){.n = d->n / EACH < MOST ? d->n / EACH + 1 : MOST};
	GT_CALLOC(b->start, b->n + 1, err);
	GT_CALLOC(b->next, b->n, err);
	for (int64_t i = 0; i < d->n; i++)
		b->start[find_bucket(b, draw_uniform(d->key, d->mark[i].id)) + 1]++;
	for (int64_t k = 0; k < b->n; k++) {
		largest = b->start[k + 1] > largest ? b->start[k + 1] : largest;
		b->start[k + 1] += b->start[k];
	}
	b->cap = likely > CAP ? CAP : likely > (double)d->n ? d->n : (int64_t)likely;
	b->cap = b->cap < largest ? largest : b->cap;
	GT_CALLOC(b->drawn, b->cap, err);
	return GT_OK;
}

/* Collects the samples of as many buckets from `first` on as there is memory for. */
static void fill_buckets(const struct division *d, struct buckets *b, int64_t first)
{
	int64_t before = b->start[first];
	b->first = b->last = first;
	while (b->last < b->n && b->start[b->last + 1] - before <= b->cap) {
		b->next[b->last] = b->start[b->last];
		b->last++;
	}
	for (int64_t i = 0; i < d->n; i++) {
		double draw = draw_uniform(d->key, d->mark[i].id);
		int64_t k = find_bucket(b, draw);
		if (k >= first && k < b->last)
			b->drawn[b->next[k]++ - before] = (struct drawn){draw, d->mark[i].id, i, d->stratum[i]};
	}
}

/* Returns the samples of bucket k, sorted by draw, id and class, and sets *n to their number. */
static const struct drawn *sort_bucket(const struct division *d, struct buckets *b, int64_t k, int64_t *n)
{
	if (k < b->first || k >= b->last)
		fill_buckets(d, b, k);
	struct drawn *s = b->drawn + (b->start[k] - b->start[b->first]);
	*n = b->start[k + 1] - b->start[k];
	if (*n > 1)
		qsort(s, (size_t)*n, sizeof *s, by_draw_and_class);
	return s;
}

/* Returns whether the next `same` samples of a class, which have the same id, are in "valid". Samples with the same id stay together, so
 * the size of "valid" is only as close to the share as their number allows. *open: number of classes that may take more samples. */
static bool take_same(const struct gt_class_share *q, struct class_taken *c, int64_t same, int64_t *open)
{
	bool first = c->first && !c->seen && same < q->n;
	bool takes = first || (c->taken + same / 2 < q->take && c->taken + same < q->n);
	bool was_open = c->taken < q->take;
	c->seen = true;
	c->taken += takes ? same : 0;
	*open -= was_open && c->taken >= q->take;
	return takes;
}

/* Divides the n samples of an id. Two classes may have the same id: then the samples are in "train" if a class has them in "train". */
static void divide_id(const struct drawn *s, int64_t n, const struct gt_class_share *q, struct class_taken *c, int64_t *open,
                      char *is_valid)
{
	bool all = true;
	for (int64_t i = 0, same; i < n; i += same) {
		for (same = 1; i + same < n && s[i + same].class == s[i].class;)
			same++;
		all &= take_same(&q[s[i].class], &c[s[i].class], same, open);
	}
	for (int64_t i = 0; i < n && all; i++)
		is_valid[s[i].index] = 1;
}

/* Divides the samples, from the lowest draw on, until each class has its share. */
static void divide_buckets(const struct division *d, struct buckets *b, const struct gt_class_share *q, struct class_taken *c,
                           char *is_valid)
{
	int64_t open = 0;
	for (int64_t k = 0; k < d->strata; k++)
		open += q[k].take > 0;
	for (int64_t k = 0; k < b->n && open; k++) {
		int64_t n;
		const struct drawn *s = sort_bucket(d, b, k, &n);
		for (int64_t i = 0, same; i < n; i += same) {
			for (same = 1; i + same < n && s[i + same].id == s[i].id;)
				same++;
			divide_id(s + i, same, q, c, &open, is_valid);
		}
	}
}

/* Takes the share of each class: its samples with the lowest draws. A class that could take none, because too many samples have the same
 * id, takes those with the lowest draw. */
static enum gt_code take_shares(const struct division *d, const struct gt_class_share *q, struct buckets *b, char *is_valid,
                                struct gt_err *err)
{
	bool again = false;
	struct class_taken *c;
	GT_CALLOC(c, d->strata, err);
	divide_buckets(d, b, q, c, is_valid);
	for (int64_t k = 0; k < d->strata; k++) {
		bool first = q[k].take && !c[k].taken;
		c[k] = (struct class_taken){.first = first};
		again |= first;
	}
	if (again)
		divide_buckets(d, b, q, c, is_valid);
	free(c);
	return GT_OK;
}

static enum gt_code split_classes(const struct division *d, char *is_valid, struct gt_err *err)
{
	struct buckets b = {0};
	struct gt_class_share *q;
	GT_CALLOC(q, d->strata, err);
	for (int64_t i = 0; i < d->n; i++) {
		q[d->stratum[i]].n++;
		is_valid[i] = 0;
	}
	gt_class_shares(q, d->strata, d->n, (int64_t)(d->share * (double)d->n + 0.5), true);
	enum gt_code code = count_buckets(d, &b, err);
	if (code == GT_OK)
		code = take_shares(d, q, &b, is_valid, err);
	free_buckets(&b);
	free(q);
	return code;
}

/* ---- split_samples.h -------------------------------------------------------------------------------------------------------- */
static void split_known(const struct division *d, const struct gt_used_samples *used, char *is_valid)
{
	for (int64_t i = 0; i < d->n; i++) {
		int part = gt_used_part(used, &d->mark[i]);
		is_valid[i] = (char)(part < 0 ? draw_uniform(d->key, d->mark[i].id) < d->share : part);
	}
}

enum gt_code gt_split_samples(uint64_t seed, double share, const struct gt_sample_mark *mark, int64_t n, const int32_t *stratum,
                              int64_t strata, const struct gt_used_samples *used, char *is_valid, struct gt_err *err)
{
	const struct division d = {gt_rng_key(seed, GT_RNG_SPLIT, 1), share, mark, n, stratum, strata};
	if (!used || !used->listed)
		return strata && !(used && used->by_draw) ? split_classes(&d, is_valid, err) : split_by_draws(&d, is_valid, err);
	split_known(&d, used, is_valid);
	return GT_OK;
}
