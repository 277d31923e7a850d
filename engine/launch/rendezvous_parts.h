/* Internal header of rendezvous.c, rendezvous_join.c and hosts.c; launch/rendezvous.h describes the rendezvous. */
#ifndef GT_LAUNCH_RENDEZVOUS_PARTS_H
#define GT_LAUNCH_RENDEZVOUS_PARTS_H

#include "launch/rendezvous_wire.h"
#include "launch/world.h"

struct gt_rendezvous {
	struct gt_world world;
	double timeout;           /* time limit of each exchange in seconds */
	void (*warn)(void *user, const char *text); /* NULL: warnings are dropped */
	void *warn_user;
	struct gt_rdv_conn *conn; /* rank 0: [world], its own entry unused; other ranks: one connection, to rank 0 */
	unsigned char *all;       /* memory that struct gt_rdv_value points into */
	int exchanges;            /* number of exchanges so far */
	char rejected[200];       /* rank 0: description of a connection with another token; empty: there was none */
	struct gt_err err;        /* the failure that broke the rendezvous; code GT_OK: none */
};

/* Whether this rank is the server, rank 0. */
static inline bool gt_rdv_is_server(const struct gt_rendezvous *r)
{
	return r->world.rank == 0;
}

/* rendezvous_join.c. On rank 0: accepts connections on `listener` until every rank has connected and authenticated itself. */
enum gt_code gt_rdv_accept_all(struct gt_rendezvous *r, const unsigned char *token, int listener, struct gt_err *err);
/* On the other ranks: connects this rank to rank 0. */
enum gt_code gt_rdv_connect(struct gt_rendezvous *r, const unsigned char *token, struct gt_err *err);
/* Returns a socket that listens on the address and port of rank 0; -1 if that failed, with the reason in err. */
int gt_rdv_listen(const struct gt_world *w, struct gt_err *err);

/* rendezvous_parts.c */
void gt_rdv_close(int *fd); /* closes *fd if it is >= 0, and sets it to -1 */
/* Reads and discards data until the peer has closed the connection or the time `until` (gt_clock) has passed, then closes the socket.
 * Closing a socket with unread bytes would reset the connection, and an error message on its way to the peer would be lost. */
void gt_rdv_drain_close(int *fd, double until);
/* Stores the failure of the rendezvous in r; rank 0 also sends it to all other ranks. Returns code. */
enum gt_code gt_rdv_fail(struct gt_rendezvous *r, enum gt_code code, struct gt_err *err, const char *msg);
/* Lists the ranks whose entry in `there` is false: "rank 3", "ranks 1, 2, 5". */
void gt_rdv_list_missing(const bool *there, int world, char *out, size_t size);

#endif
