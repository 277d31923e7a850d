#include "exec/split_samples.h"
#include "base/arena.h"
#include "base/philox.h"
#include <stdlib.h>

/* A class, or all samples. Samples with the same id are one sample here, because they are in the same split. */
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

/* Adds a move to m if one of the splits has no sample of a class, or no sample at all. expected: number of samples in "valid" by the share.
 * Returns the number of moves. */
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

/* Moves all samples with the ids of m[count]. */
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

enum gt_code gt_split_samples(uint64_t seed, double share, const struct gt_sample_mark *mark, int64_t n, const int32_t *stratum,
                              int64_t strata, const struct gt_used_samples *used, char *is_valid, struct gt_err *err)
{
	uint64_t key = gt_rng_key(seed, GT_RNG_SPLIT, 1);
	bool known = used && used->listed;
	struct stratum all = {0}, *s = calloc((size_t)strata + 1, sizeof *s);
	struct move *m = malloc(((size_t)strata + 1) * sizeof *m);
	int64_t moves = 0;
	if (!s || !m) {
		free(s);
		free(m);
		return gt_fail_memory(err, (size_t)strata * (sizeof *s + sizeof *m));
	}
	for (int64_t i = 0; i < n; i++) {
		double u = draw_uniform(key, mark[i].id);
		int part = known ? gt_used_part(used, &mark[i]) : -1;
		is_valid[i] = (char)(part < 0 ? u < share : part);
		if (strata)
			count_sample(&s[stratum[i]], i, u, is_valid[i]);
	}
	/* with a checkpoint, samples of a class keep their split, even if all validation samples of the class have been removed */
	for (int64_t k = 0; k < strata && !known; k++)
		moves += move_if_one_sided(&s[k], share * (double)s[k].n, mark, &m[moves]);
	apply_moves(m, moves, mark, n, is_valid);
	for (int64_t i = 0; i < n && !known; i++)
		if (!strata || s[stratum[i]].low < s[stratum[i]].high) /* a class with one sample stays in "train" */
			count_sample(&all, i, draw_uniform(key, mark[i].id), is_valid[i]);
	if (!known)
		apply_moves(m, move_if_one_sided(&all, share * (double)n, mark, m), mark, n, is_valid);
	free(s);
	free(m);
	return GT_OK;
}
