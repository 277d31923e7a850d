/* The ranks of a run, as one of them sees the others: who it is, how it reaches them, who watches it. A run on one rank has a team of one,
 * in which every function returns at once.
 *
 *   GT_TRY(gt_team_world(link, &world, err));       before anything else: which rank this is, by the launcher or the environment
 *   GT_TRY(gt_team_open(&spec, &team, err));        the ranks meet (launch/rendezvous.h), agree on the config, and have a communicator
 *   …
 *   gt_team_close(team);
 *
 * What the ranks know each other by. Those of gtrain's launcher get a token from it. Ranks on one host that something else started get a
 * random one from rank 0, over a socket in Linux' abstract namespace whose ends the kernel proves to belong to the same user; nothing is
 * left on disk, whatever ends them. Ranks on several hosts need a file (gt_token_read).
 * How they reach each other: shared memory where all of them are on one host (same boot, same PID namespace, same user), else the gloo
 * plugin. When the launcher ends the run, or dies, the communicator is broken, so that nobody waits for who will not come. */
#ifndef GT_TEAM_TEAM_H
#define GT_TEAM_TEAM_H

#include "comm.h"
#include "launch/launcher.h"
#include "launch/world.h"

struct gt_team {
	struct gt_world world;     /* rank, world, local_rank, … */
	struct gt_comm *comm;      /* of all ranks, on host memory; NULL: there is one rank */
	struct gt_rank_link *link; /* NULL: no launcher watches */
	int exchanges;             /* journeys to rank 0 and back until they were a team */
	int threads;               /* for this rank's CPU device where the config names no number; 0: all that the process may use */
};

struct gt_team_spec {
	const struct gt_world *world;
	struct gt_rank_link *link; /* not owned; NULL: no launcher started this process */
	const char *token_file;    /* of ranks on several hosts that no launcher started; NULL: none */
	double timeout_s;          /* of each exchange; the ranks of several hosts have GT_TEAM_PATIENCE to come at first */
	const char *config;        /* text that all of them must have */
	void (*warn)(void *user, const char *text); /* while it waits for the others; NULL: nobody hears it */
	void *warn_user;
	const char *start;         /* and that: where they start from, in words */
};
#define GT_TEAM_PATIENCE 300.0 /* seconds: two people may type the two commands */

/* The launcher's word, else the environment's (launch/world.h). A world of one that the environment tells counts as none. */
enum gt_code gt_team_world(const struct gt_rank_link *link, struct gt_world *out, struct gt_err *err);

/* world 1: returns at once. GT_EPEER: a rank did not come, or has gone; GT_ECONFIG: it runs another config; GT_EUNAVAILABLE: several
 * hosts, and no plugin that reaches them; GT_EUSAGE: several hosts and no token. */
enum gt_code gt_team_open(const struct gt_team_spec *spec, struct gt_team **out, struct gt_err *err);
void gt_team_close(struct gt_team *t); /* NULL is fine */

/* The ranks as threads of this process: calls body once per rank, of rank 0 on the calling thread, and returns when all of them have returned.
 * Each has cores of its own, where there are as many, and no time limits; other threads than the caller's see no signals. The first that
 * fails breaks the communicator, so that nobody waits for it, and its error is the result: in rank 0's words where that failed
 * with the same code, else behind "rank 2: ". link: rank 0's; NULL: no launcher watches. */
typedef enum gt_code gt_rank_body(void *user, const struct gt_team *team, struct gt_err *err);
enum gt_code gt_team_threads(int n, struct gt_rank_link *link, gt_rank_body *body, void *user, struct gt_err *err);

/* All ranks must have the same text (a config, a list of steps). GT_ECONFIG: "rank 3 has another config than rank 0", on every rank. */
enum gt_code gt_team_same(const struct gt_team *t, const char *what, const char *text, struct gt_err *err);

/* v[i] becomes the largest of all ranks' v[i]: how they agree on what only one of them has seen. */
enum gt_code gt_team_max(const struct gt_team *t, int64_t *v, int n, struct gt_err *err);

/* Where one rank does what takes its time (a checkpoint): how long the others wait for it. Returns what it was, which they go back to. */
double gt_team_patience(const struct gt_team *t, double timeout_s);

/* Rank `root`'s bytes for everybody. */
enum gt_code gt_team_broadcast(const struct gt_team *t, void *p, size_t n, int root, const char *what, struct gt_err *err);

#endif
