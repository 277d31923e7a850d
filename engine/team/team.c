#include "team/team.h"
#include "base/arena.h"
#include "base/digest.h"
#include <stdlib.h>
#include <string.h>

static bool is_single_rank(const struct gt_team *t)
{
	return !t || !t->comm;
}

typedef enum gt_code collective(struct gt_comm *c, const struct gt_coll *x, struct gt_err *err);

/* Runs a collective. Reports to the launcher that this rank waits for other ranks, so that the wait is not treated as a hang of this
 * rank. */
static enum gt_code run_collective(const struct gt_team *t, collective *fn, const struct gt_coll *x, struct gt_err *err)
{
	gt_rank_set_waiting(t->link, true);
	enum gt_code code = fn(t->comm, x, err);
	gt_rank_set_waiting(t->link, false);
	return code;
}

enum gt_code gt_team_max(const struct gt_team *t, int64_t *v, int n, struct gt_err *err)
{
	struct gt_coll x = {.what = "decisions", .in = v, .out = v, .count = (size_t)n, .dtype = GT_I64, .op = GT_REDUCE_MAX};
	return is_single_rank(t) ? GT_OK : run_collective(t, t->comm->api->all_reduce, &x, err);
}

double gt_team_set_timeout(const struct gt_team *t, double timeout_s)
{
	return is_single_rank(t) ? 0 : t->comm->api->set_timeout(t->comm, timeout_s);
}

enum gt_code gt_team_broadcast(const struct gt_team *t, void *p, size_t n, int root, const char *what, struct gt_err *err)
{
	struct gt_coll x = {.what = what, .in = p, .out = p, .count = n, .dtype = GT_U8, .root = root};
	return is_single_rank(t) ? GT_OK : run_collective(t, t->comm->api->broadcast, &x, err);
}

enum gt_code gt_team_gather(const struct gt_team *t, const void *p, size_t n, const char *what, char **all, size_t *block,
                            struct gt_err *err)
{
	int64_t most = (int64_t)n;
	*all = NULL;
	*block = 0;
	if (is_single_rank(t))
		return GT_OK;
	GT_TRY(gt_team_max(t, &most, 1, err));
	*block = (size_t)most;
	if (!most)
		return GT_OK;
	char *own = calloc(1, *block), *to = t->world.rank ? NULL : malloc(*block * (size_t)t->world.world);
	enum gt_code code = own && (to || t->world.rank) ? GT_OK : gt_fail_memory(err, *block);
	struct gt_coll x = {.what = what, .in = own, .out = to, .count = *block, .dtype = GT_U8};
	if (code == GT_OK) {
		if (n)
			memcpy(own, p, n);
		code = run_collective(t, t->comm->api->gather, &x, err);
	}
	free(own);
	if (code == GT_OK)
		*all = to;
	else
		free(to);
	return code;
}

enum gt_code gt_team_compare(const struct gt_team *t, const char *what, const char *text, struct gt_err *err)
{
	char own[GT_DIGEST_HEX], first[GT_DIGEST_HEX];
	if (is_single_rank(t))
		return GT_OK;
	gt_digest_bytes(text, strlen(text), own);
	memcpy(first, own, sizeof first);
	GT_TRY(gt_team_broadcast(t, first, sizeof first, 0, what, err));
	/* A rank whose text differs from rank 0's text contributes world - rank, so that the maximum gives the lowest such rank. */
	int64_t odd = strcmp(own, first) ? t->world.world - t->world.rank : 0;
	GT_TRY(gt_team_max(t, &odd, 1, err));
	if (!odd)
		return GT_OK;
	return gt_fail(err, GT_ECONFIG, "rank %lld and rank 0 differ in their %s", (long long)(t->world.world - odd), what);
}
