/* What rendezvous.c and rendezvous_join.c share; see launch/rendezvous.h for the whole. */
#ifndef GT_LAUNCH_RENDEZVOUS_PARTS_H
#define GT_LAUNCH_RENDEZVOUS_PARTS_H

#include "launch/rendezvous_wire.h"

struct gt_rendezvous {
	struct gt_world world;
	double timeout;
	void (*warn)(void *user, const char *text); /* NULL: nobody hears it */
	void *warn_user;
	struct gt_rdv_conn *conn; /* rank 0: one a rank, its own unused; others: one */
	unsigned char *all;       /* what struct gt_rdv_value points into */
	int exchanges;
	char rejected[200];       /* rank 0: who came with another token; empty: nobody */
	struct gt_err err; /* code GT_OK: none yet */
};

static inline bool gt_rdv_serves(const struct gt_rendezvous *r)
{
	return r->world.rank == 0;
}

/* rendezvous_join.c. Rank 0: until every rank has come and proven itself; the others: until they have reached rank 0. */
enum gt_code gt_rdv_gather(struct gt_rendezvous *r, const unsigned char *token, int listener, struct gt_err *err);
enum gt_code gt_rdv_reach(struct gt_rendezvous *r, const unsigned char *token, struct gt_err *err);
int gt_rdv_listen(const struct gt_world *w, struct gt_err *err); /* -1: err says why */

/* rendezvous.c */
void gt_rdv_shut(int *fd); /* closes it, where there is one */
/* Reads what comes until the other side has closed, and closes: a socket that is closed with unread bytes resets the connection, and
 * takes the sentence that was on its way. */
void gt_rdv_linger(int *fd, double until);
/* Remembers the failure, and rank 0 tells all others. Returns code. */
enum gt_code gt_rdv_fail(struct gt_rendezvous *r, enum gt_code code, struct gt_err *err, const char *msg);
/* "rank 3", "ranks 1, 2, 5": those with no mark. */
void gt_rdv_missing(const bool *there, int world, char *out, size_t size);

#endif
