/* The team: the ranks of a run, seen from one rank. It determines which rank this process is, and connects it to the other ranks by a
 * communicator and to the launcher that watches it. A run on one rank has a team of one, in which every function returns at once.
 *
 *     GT_TRY(gt_team_world(link, &world, err));       first of all: which rank this is, from the launcher or the environment
 *     GT_TRY(gt_team_open(&spec, &team, err));        rendezvous (launch/rendezvous.h), comparison of configs, communicator
 *     ...
 *     gt_team_close(team);
 *
 * Authentication. Ranks that gtrain's launcher started get a token from it. Ranks on one host that something else started get a random
 * token from rank 0, over a socket in Linux' abstract namespace; the kernel proves that both ends belong to the same user. Nothing remains
 * on disk, however the ranks end. Ranks on several hosts need a token file (gt_token_read).
 *
 * Transport. Shared memory if all ranks are on one host (same boot, same PID namespace, same user), otherwise the gloo plugin. If the
 * launcher ends the run or dies, the communicator breaks, so that no rank waits for a rank that will not come. */
#ifndef GT_TEAM_TEAM_H
#define GT_TEAM_TEAM_H

#include "comm.h"
#include "launch/launcher.h"
#include "launch/world.h"

struct gt_team {
	struct gt_world world;     /* rank, world, local_rank, ... */
	struct gt_comm *comm;      /* communicator of all ranks on host memory; NULL: there is one rank */
	struct gt_rank_link *link; /* connection to the launcher; NULL: no launcher watches this rank */
	int exchanges;             /* number of exchanges through rank 0 that gt_team_open needed */
	int threads;               /* threads of this rank's CPU device if the config sets no number; 0: one for each processor it may use */
};

struct gt_team_spec {
	const struct gt_world *world;
	struct gt_rank_link *link; /* not owned; NULL: no launcher started this process */
	const char *token_file;    /* for ranks on several hosts that no launcher started; NULL: none */
	double timeout_s;          /* time limit of each exchange in seconds; in the first one, ranks of several hosts have at least
	                              GT_TEAM_JOIN_TIMEOUT to connect */
	const char *config;        /* text that must be the same on all ranks */
	void (*warn)(void *user, const char *text); /* called with warnings while the rank waits for the others; NULL: not called */
	void *warn_user;           /* first argument of warn */
	const char *start;         /* description of the starting point (checkpoint or weights); must be the same on all ranks */
};
#define GT_TEAM_JOIN_TIMEOUT 300.0 /* seconds in which all hosts have to connect: enough to type the commands on each host */

/* Fills *out from the launcher or, without one, from the environment (launch/world.h). An environment that describes a world of one rank is
 * ignored. */
enum gt_code gt_team_world(const struct gt_rank_link *link, struct gt_world *out, struct gt_err *err);

/* Checks, before ranks wait for each other, that ranks on several hosts can communicate. addr: address of the host of rank 0. With a
 * loopback address all ranks are on this host, and the function returns GT_OK. GT_EUNAVAILABLE: the gloo plugin is missing or cannot be
 * loaded. */
enum gt_code gt_team_check_hosts(const char *addr, struct gt_err *err);

/* Connects the ranks. With world = 1 it returns at once. GT_EPEER: a rank did not connect in time, or has ended. GT_ECONFIG: a rank runs
 * another config. GT_EUNAVAILABLE: the ranks are on several hosts and the gloo plugin is missing. GT_EUSAGE: the ranks are on several hosts
 * and have no token. */
enum gt_code gt_team_open(const struct gt_team_spec *spec, struct gt_team **out, struct gt_err *err);
void gt_team_close(struct gt_team *t); /* t may be NULL */

/* Runs n ranks as threads of this process: calls body once for each rank, for rank 0 on the calling thread, and returns when all calls have
 * returned. Each rank gets its own cores, if there are enough, and no time limits. Only the calling thread receives signals. The first rank
 * that fails breaks the communicator, so that no rank waits for it, and determines the result: rank 0's message if rank 0 failed with the
 * same code, else its own message with a prefix such as "rank 2: ". link: rank 0's connection to a launcher; NULL: none. */
typedef enum gt_code gt_rank_body(void *user, const struct gt_team *team, struct gt_err *err);
enum gt_code gt_team_threads(int n, struct gt_rank_link *link, gt_rank_body *body, void *user, struct gt_err *err);

/* Compares the text of all ranks (a config, a list of steps), which messages call `what`. If a text differs, all ranks return GT_ECONFIG
 * with a message such as "rank 3 has another config than rank 0". */
enum gt_code gt_team_compare(const struct gt_team *t, const char *what, const char *text, struct gt_err *err);

/* Replaces each v[i] by the maximum over all ranks. Ranks use it to agree on an event that only one of them has observed. */
enum gt_code gt_team_max(const struct gt_team *t, int64_t *v, int n, struct gt_err *err);

/* Sets the number of seconds that ranks wait for each other in a communication. Call it before one rank does something slow, such as saving
 * a checkpoint. Returns the previous number, which the caller restores afterwards. */
double gt_team_set_timeout(const struct gt_team *t, double timeout_s);

/* Collects the bytes of all ranks on rank 0: n bytes at p of each rank. On rank 0, *all has one block of *block bytes for each rank, in
 * rank order, padded with zeros; the caller frees it. *all is NULL on the other ranks, in a team of one, and if no rank has bytes. what:
 * name of the data, for messages. */
enum gt_code gt_team_gather(const struct gt_team *t, const void *p, size_t n, const char *what, char **all, size_t *block,
                            struct gt_err *err);

/* Copies n bytes at p from rank `root` to all other ranks. what: name of the data, for messages. */
enum gt_code gt_team_broadcast(const struct gt_team *t, void *p, size_t n, int root, const char *what, struct gt_err *err);

#endif
