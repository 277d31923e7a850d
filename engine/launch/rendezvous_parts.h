/* Internal header of rendezvous.c, rendezvous_join.c and hosts.c; launch/rendezvous.h describes the rendezvous. */
#ifndef GT_LAUNCH_RENDEZVOUS_PARTS_H
#define GT_LAUNCH_RENDEZVOUS_PARTS_H

#include "base/sha256.h"
#include "launch/world.h"
#include <stdint.h>

struct addrinfo;

#define GT_RDV_MAGIC "gtrain-rdv-3\0\0\0" /* 16 bytes including the last NUL */
#define GT_RDV_CODE_MAX 255                /* maximum exit code in a message */

struct gt_rdv_conn {
	int fd; /* -1: none */
	unsigned char key[GT_SHA256_SIZE]; /* the session key */
	uint32_t sent, got; /* number of frames sent and received */
};

struct gt_rendezvous {
	struct gt_world world;
	double timeout;           /* time limit of each exchange in seconds */
	void (*warn)(void *user, const char *text); /* NULL: warnings are dropped */
	void *warn_user;
	struct gt_rdv_conn *conn; /* rank 0: [world], its own entry unused; other ranks: one connection, to rank 0 */
	unsigned char *all;       /* received values of all ranks, to which struct gt_rdv_value.data points; owned */
	int exchanges;            /* number of exchanges so far */
	char rejected[200];       /* rank 0: description of a connection with another token; empty: there was none */
	struct gt_err err;        /* the failure that broke the rendezvous; code GT_OK: none */
};

/* Returns whether this rank is the server, which is rank 0. */
static inline bool gt_rdv_is_server(const struct gt_rendezvous *r)
{
	return r->world.rank == 0;
}

/* rendezvous_join.c. On rank 0: accepts connections on `listener` until every rank has connected and authenticated itself. */
enum gt_code gt_rdv_accept_all(struct gt_rendezvous *r, const unsigned char *token, int listener, struct gt_err *err);
/* On the other ranks: connects this rank to rank 0. */
enum gt_code gt_rdv_connect(struct gt_rendezvous *r, const unsigned char *token, struct gt_err *err);
/* Returns a socket that listens on the address and port of rank 0; -1 if that failed, with the reason in err. known: the addresses of the
 * name from an earlier call, or NULL in *known; the name is looked up only if none of them belongs to this host. The caller frees *known
 * with freeaddrinfo(). known may be NULL: nothing is kept. */
int gt_rdv_listen(const char *addr, int port, struct addrinfo **known, struct gt_err *err);

/* ---- rendezvous_parts.c: frames with a deadline, which follow the handshake of base/peer_auth.h. Sockets are non-blocking ---------- */
/* gt_rdv_send and gt_rdv_recv transfer exactly n bytes before the time `until` (gt_clock). They return false if the peer has closed the
 * connection, or if the deadline has passed (errno = ETIMEDOUT). */
bool gt_rdv_send(int fd, const void *data, size_t n, double until);
bool gt_rdv_recv(int fd, void *data, size_t n, double until);

/* gt_rdv_send_frame and gt_rdv_recv_frame transfer one frame. server: this rank is the server of the connection. *out receives the payload,
 * which the caller frees with free(). A frame longer than cap, or with a wrong mac, is treated like a closed connection. */
bool gt_rdv_send_frame(struct gt_rdv_conn *c, bool server, const void *data, size_t n, double until);
bool gt_rdv_recv_frame(struct gt_rdv_conn *c, bool server, size_t cap, unsigned char **out, size_t *n, double until);

/* Reads and discards data until the peer has closed the connection or the time `until` (gt_clock) has passed, then closes the socket.
 * Closing a socket with unread bytes would reset the connection, and an error message on its way to the peer would be lost. */
void gt_rdv_drain_close(int *fd, double until);
/* Sends a rank the failure of the rendezvous, as a message of less than sizeof gt_err.msg bytes. */
void gt_rdv_send_failure(struct gt_rdv_conn *c, enum gt_code code, const char *msg);
/* Stores the failure of the rendezvous in r; rank 0 also sends the failure to all other ranks. Returns code. */
enum gt_code gt_rdv_fail(struct gt_rendezvous *r, enum gt_code code, struct gt_err *err, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Lists the ranks whose entry in `there` is false: "rank 3", "ranks 1, 2, 5". */
void gt_rdv_list_missing(const bool *there, int world, char *out, size_t size);

#endif
