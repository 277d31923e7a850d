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
	double low, high;      /* random draws of these samples */
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
struct drawn {
	uint64_t id;
	double draw;
	int64_t index;
	int32_t class;
};

static int by_class_and_draw(const void *a, const void *b)
{
	const struct drawn *x = a, *y = b;
	if (x->class != y->class)
		return x->class < y->class ? -1 : 1;
	if (x->draw != y->draw)
		return x->draw < y->draw ? -1 : 1;
	return (x->id > y->id) - (x->id < y->id);
}

/* Returns the number of samples at the beginning of s[n] that have the same id. */
static int64_t count_same(const struct drawn *s, int64_t n)
{
	int64_t same = 1;
	while (same < n && s[same].id == s[0].id)
		same++;
	return same;
}

static void set_group(const struct drawn *s, int64_t n, char to, char *is_valid)
{
	for (int64_t i = 0; i < n; i++)
		is_valid[s[i].index] = to;
}

/* Puts the `take` samples with the lowest draws of a class into "valid". s[n]: the samples of the class, sorted by their draws. Samples
 * with the same id stay together, so the number may differ from `take` if there are such samples. */
static void take_lowest(const struct drawn *s, int64_t n, int64_t take, char *is_valid)
{
	int64_t taken = 0, same;
	for (int64_t i = 0; i < n; i += same) {
		same = count_same(s + i, n - i);
		if (taken + same / 2 >= take || taken + same >= n)
			continue;
		set_group(s + i, same, 1, is_valid);
		taken += same;
	}
	if (!taken && take && (same = count_same(s, n)) < n)
		set_group(s, same, 1, is_valid);
}

static int by_sample_id(const void *a, const void *b)
{
	const struct drawn *x = a, *y = b;
	return (x->id > y->id) - (x->id < y->id);
}

/* If samples of different classes have the same id and one of them is in "train", puts all of them into "train". */
static void join_ids(struct drawn *s, int64_t n, char *is_valid)
{
	qsort(s, (size_t)n, sizeof *s, by_sample_id);
	for (int64_t i = 0, same; i < n; i += same) {
		char all = 1;
		same = count_same(s + i, n - i);
		for (int64_t k = i; k < i + same; k++)
			all &= is_valid[s[k].index];
		set_group(s + i, same, all, is_valid);
	}
}

/* Divides the samples of each class by its share: those with the lowest draws get into "valid". */
static enum gt_code split_classes(const struct division *d, char *is_valid, struct gt_err *err)
{
	struct gt_class_share *q = calloc((size_t)d->strata, sizeof *q);
	struct drawn *s = malloc(((size_t)d->n + 1) * sizeof *s);
	enum gt_code code = q && s ? GT_OK : gt_fail_memory(err, (size_t)d->n * sizeof *s);
	for (int64_t i = 0; i < d->n && code == GT_OK; i++) {
		s[i] = (struct drawn){d->mark[i].id, draw_uniform(d->key, d->mark[i].id), i, d->stratum[i]};
		q[d->stratum[i]].n++;
		is_valid[i] = 0;
	}
	if (code == GT_OK) {
		gt_class_shares(q, d->strata, d->n, (int64_t)(d->share * (double)d->n + 0.5), true);
		qsort(s, (size_t)d->n, sizeof *s, by_class_and_draw);
		for (int64_t k = 0, at = 0; k < d->strata; at += q[k++].n)
			take_lowest(s + at, q[k].n, q[k].take, is_valid);
		join_ids(s, d->n, is_valid);
	}
	free(q);
	free(s);
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
