/* The handshake by which two processes of a run authenticate each other over a TCP connection. Each process proves that it has a secret of
 * the run, without sending the secret. The rendezvous of the ranks, the launchers of several hosts and gloo's ranks use it.
 *
 *   acceptor  -> magic[16] nonce[32]             hello
 *   connector -> claim[2] nonce[32] mac[32]      proof; the claims are little-endian u32
 *   acceptor  -> mac[32]                         answer
 *
 * A mac is the HMAC-SHA-256 under the secret over the name of the side ("client" or "server", with its NUL), the hello, the claims and the
 * connector's nonce. The name "session" gives a key for later messages, which is different for every connection. A recorded proof is
 * worthless, because every acceptor's nonce is new. The magic prevents that a proof is valid for another kind of connection. All processes
 * of a run come from one binary, so that the format may change with any version of gtrain.
 *
 * The sockets never block. The acceptor keeps at most gt_auth.npending unauthenticated connections, each for GT_AUTH_PENDING_S seconds:
 *
 *     gt_auth_open(&a, magic, secret, bytes, listener, peers);
 *     while (gt_auth_poll(&a, seconds) >= 0)
 *         for (struct gt_peer_auth *p; (p = gt_auth_next(&a));) {
 *             if (p->state == GT_AUTH_PROVEN && acceptable(p->claim))
 *                 fd = gt_auth_take(&a, p, session);
 *             gt_auth_close(p);
 *         }
 *     gt_auth_shut(&a);
 *
 * The connector calls gt_auth_connect(), and gets the connection from gt_auth_next() in the state GT_AUTH_DONE. */
#ifndef GT_BASE_PEER_AUTH_H
#define GT_BASE_PEER_AUTH_H

#include "base/sha256.h"
#include <sys/epoll.h>
#include <sys/socket.h>

struct addrinfo;

#define GT_AUTH_MAGIC 16      /* bytes */
#define GT_AUTH_PENDING 64    /* minimum of gt_auth.npending: number of unauthenticated connections at which a new one closes the oldest */
#define GT_AUTH_PENDING_S 5.0 /* seconds in which a connection must authenticate itself */

enum gt_auth_state {
	GT_AUTH_NONE,         /* no connection; a zeroed struct gt_peer_auth is in this state */
	GT_AUTH_CONNECTS,     /* connector: the TCP connection is being established */
	GT_AUTH_NEEDS_HELLO,  /* connector */
	GT_AUTH_NEEDS_PROOF,  /* acceptor */
	GT_AUTH_NEEDS_ANSWER, /* connector */
	GT_AUTH_PROVEN,       /* acceptor: the peer holds the secret; gt_auth_take() sends the answer */
	GT_AUTH_DONE,         /* connector: both sides are authenticated */
	GT_AUTH_UNREACHABLE,  /* connector: no TCP connection; errno is in `error` */
	GT_AUTH_STRANGER,     /* the hello has another magic, or the peer closed the connection before its hello or proof was complete */
	GT_AUTH_OTHER_SECRET, /* the proof or answer is wrong; or the acceptor has rejected the proof or the claims of this connector */
};

struct gt_peer_auth { /* one connection until it is authenticated */
	enum gt_auth_state state;
	int fd;            /* -1: gt_auth_connect() could not make a socket */
	int error;         /* errno of the failed connection attempt; 0: none */
	double until;      /* deadline (gt_clock) of the handshake, after which gt_auth_poll() closes an acceptor's connection */
	uint32_t claim[2]; /* values that the connector claims, such as its rank; the caller of the acceptor checks them */
	size_t got;        /* bytes of the expected message that have arrived */
	unsigned char hello[GT_AUTH_MAGIC + GT_SHA256_SIZE], proof[8 + 2 * GT_SHA256_SIZE], answer[GT_SHA256_SIZE];
	unsigned char wanted[GT_SHA256_SIZE]; /* the mac that the other side must send */
};

struct gt_auth {
	int epoll; /* readable when gt_auth_poll() has work to do */
	int listener;
	int error; /* errno of a failed accept(2) if no descriptor is left and no pending connection can be closed; 0: none */
	const char *magic;  /* GT_AUTH_MAGIC bytes that name the use of the connections */
	const void *secret;
	size_t bytes;
	struct gt_peer_auth *pending; /* [npending] unauthenticated connections of the acceptor; unused entries are in state GT_AUTH_NONE */
	int npending;
	struct epoll_event event[64];
	int events, next; /* number of entries of event; index of the entry that gt_auth_next() handles next */
};

/* Returns a socket that listens on an address and a port; port 0: the kernel selects one. Writes the socket's name to *at, unless at is
 * NULL. If it fails, returns -1, and *error is an errno value or, if the name has no address, a negative EAI_ value of getaddrinfo(3). */
int gt_auth_listen(const char *addr, int port, struct sockaddr_storage *at, int *error);
/* The two steps of gt_auth_listen(): the first asks a name server if addr is a name, and returns 0 or an EAI_ value. The caller frees *list
 * with freeaddrinfo(). The second listens on the first address of the list that belongs to this host. */
int gt_auth_look_up(const char *addr, struct addrinfo **list);
int gt_auth_listen_at(const struct addrinfo *list, int port, struct sockaddr_storage *at, int *error);
void gt_auth_set_port(struct sockaddr_storage *at, int port); /* of an address of IPv4 or IPv6 */
/* Opens an acceptor on a listening socket, a connector (listener -1), or both. The caller keeps ownership of listener and secret. peers:
 * number of peers that may connect at the same time, so that none of them closes the connection of another (GT_AUTH_PENDING). Returns false
 * with errno if no descriptor or memory is left; a must be shut in this case too. */
bool gt_auth_open(struct gt_auth *a, const char *magic, const void *secret, size_t bytes, int listener, int peers);
void gt_auth_shut(struct gt_auth *a); /* closes the pending connections of the acceptor; a may be zeroed */
/* Closes pending connections after their deadline, and waits for events for at most wait_s seconds, but no more than 0.5. Returns the
 * number of events; -1 with errno after an error. */
int gt_auth_poll(struct gt_auth *a, double wait_s);
/* Continues the handshakes that have events. Returns a connection whose state is GT_AUTH_PROVEN or a later state, which the caller takes or
 * closes; NULL if the events of the last poll are handled. */
struct gt_peer_auth *gt_auth_next(struct gt_auth *a);
/* Starts to connect; p is in state GT_AUTH_NONE, and stays at its address until it is taken or closed. If this fails at once, the state is
 * GT_AUTH_UNREACHABLE, and gt_auth_next() does not return p. */
void gt_auth_connect(struct gt_auth *a, struct gt_peer_auth *p, const struct sockaddr *to, socklen_t bytes, uint32_t claim0,
                     uint32_t claim1);
/* In state GT_AUTH_PROVEN or GT_AUTH_DONE: returns the descriptor, which the caller then owns; -1 if the connection was lost. session
 * receives the session key, and may be NULL. */
int gt_auth_take(struct gt_auth *a, struct gt_peer_auth *p, unsigned char session[GT_SHA256_SIZE]);
void gt_auth_close(struct gt_peer_auth *p); /* does nothing in state GT_AUTH_NONE, which gt_auth_take() sets too */

#endif
