/* The ranks of a run, as one of them sees the others: who it is, how it reaches them, who watches it. A run on one rank has a team of one,
 * in which every function returns at once. */
#ifndef GT_RUN_TEAM_H
#define GT_RUN_TEAM_H

#include "comm.h"
#include "run/launcher.h"
#include "run/world.h"

struct gt_team {
	struct gt_world world;     /* rank, world, local_rank, … */
	struct gt_comm *comm;      /* of all ranks, on host memory; NULL: there is one rank */
	struct gt_rank_link *link; /* NULL: no launcher watches */
};

/* All ranks must have the same text (a config, a list of steps). GT_ECONFIG: "rank 3 has another config than rank 0", on every rank. */
enum gt_code gt_team_same(const struct gt_team *t, const char *what, const char *text, struct gt_err *err);

/* v[i] becomes the largest of all ranks' v[i]: how they agree on what only one of them has seen. */
enum gt_code gt_team_max(const struct gt_team *t, int64_t *v, int n, struct gt_err *err);

/* Rank `root`'s bytes for everybody. */
enum gt_code gt_team_broadcast(const struct gt_team *t, void *p, size_t n, int root, const char *what, struct gt_err *err);

#endif
