/* The rendezvous: connects the ranks of a run before step 0 and exchanges small values between them. Rank 0 serves over TCP. Every other
 * rank connects, proves that it holds the token of the run, and sends its value (digests of config and program, its host). Rank 0 answers
 * all ranks at once, with the data that their communicator needs. This is one exchange, and usually the only exchange; each further
 * exchange takes a round trip to rank 0. After a failure every connected rank gets the same sentence, which names the rank that caused it.
 *
 *     GT_TRY(gt_rendezvous_open(&spec, &r, err));                   spec.mine, .answer; spec.all[rank].data, .n
 *     GT_TRY(gt_rendezvous_exchange(r, "id", id, n, all, err));     all[rank].data, .n
 *     gt_rendezvous_close(r);
 *
 *     rank 1 -- mine --.               .--> rank 1
 *     rank 2 -- mine ---+--> rank 0 --+---> rank 2        values of all ranks, and rank 0's answer
 *     rank 3 -- mine --'               '--> rank 3
 *
 * Protocol: the handshake of base/peer_auth.h with the token as the secret, "gtrain-rdv-3" as the magic, and rank and world as the claims;
 * then frames -> length mac[32] payload            HMAC(session key, direction count length payload)
 * Numbers are little-endian u32.
 * Nothing is encrypted: the values are not secret, and neither is the traffic of a training run. A connection that sends garbage, a wrong
 * token or nothing is closed and does not affect the ranks. Frames are at most GT_RENDEZVOUS_MAX bytes. */
#ifndef GT_LAUNCH_RENDEZVOUS_H
#define GT_LAUNCH_RENDEZVOUS_H

#include "launch/world.h"
#include <stddef.h>
#include <stdint.h>

#define GT_RENDEZVOUS_MAX (64 << 10) /* maximum bytes of one value */
/* rank 0 listens on the first free port of this number of ports from world->port on; torchrun's own store uses the first */
#define GT_RENDEZVOUS_PORTS 16
#define GT_RENDEZVOUS_RANKS 1024     /* maximum number of ranks */

struct gt_rdv_value {
	const void *data; /* owned by the rendezvous; valid until the next call */
	size_t n;         /* bytes */
};

struct gt_rendezvous_spec {
	const struct gt_world *world; /* addr and port of rank 0, which listens on that address only */
	int listen_fd;                /* rank 0: a socket that already listens, which gt_rendezvous_open closes; -1: bind to addr and port */
	const unsigned char *token;   /* 32 bytes, the same on every rank; NULL is rejected if world > 1 */
	double timeout_s;             /* time limit in seconds of gt_rendezvous_open, and of each further exchange */

	const void *mine; /* this rank's value: nmine bytes, at most GT_RENDEZVOUS_MAX */
	size_t nmine;
	/* Called on rank 0 when all ranks have connected, with the values of all ranks in all[0 ... world - 1]. It writes at most *n bytes to
	 * out, which all ranks receive as rank 0's value, and sets *n to the length. If it fails, all ranks fail with the same message. NULL:
	 * all ranks receive `mine` of rank 0. */
	enum gt_code (*answer)(void *user, const struct gt_rdv_value *all, void *out, size_t *n, struct gt_err *err);
	void *user;       /* first argument of answer */
	/* Called while ranks wait for each other, with a warning about a likely mistake of the user: a rank has another token, or
	 * nothing listens at addr. Each warning is given once. NULL: not called. */
	void (*warn)(void *user, const char *text);
	void *warn_user;  /* first argument of warn */
	struct gt_rdv_value *all; /* [world] receives the values of all ranks, with rank 0's answer at 0; NULL: they are not needed */
};

struct gt_rendezvous;

/* Returns when all ranks have connected. GT_EPEER: the timeout has passed; the sentence names the missing ranks. GT_EUSAGE: a rank with
 * another world size, or two processes with the same rank. */
enum gt_code gt_rendezvous_open(const struct gt_rendezvous_spec *spec, struct gt_rendezvous **out, struct gt_err *err);
void gt_rendezvous_close(struct gt_rendezvous *r); /* r may be NULL */

/* Exchanges values: every rank calls it with the same key (at most 63 bytes) and receives the values of all ranks in all[world]. After a
 * failure every later call fails with the same message. */
enum gt_code gt_rendezvous_exchange(struct gt_rendezvous *r, const char *key, const void *data, size_t n, struct gt_rdv_value *all,
                                    struct gt_err *err);

/* Returns the number of exchanges so far, including the exchange of gt_rendezvous_open. */
int gt_rendezvous_exchanges(const struct gt_rendezvous *r);

/* Writes the numeric address at which the other ranks can reach this host: the local address of this rank's connection. */
enum gt_code gt_rendezvous_address(const struct gt_rendezvous *r, char *out, size_t size, struct gt_err *err);

/* Opens a socket that listens on a port of 127.0.0.1, which the kernel selects, for the rendezvous of ranks on one host. */
enum gt_code gt_loopback_listen(int *fd, char addr[GT_ADDR_SIZE], int32_t *port, struct gt_err *err);

/* Reads a token for ranks that no launcher of gtrain starts: a file of 64 hexadecimal digits that only its owner may read (GT_EUSAGE
 * otherwise). */
enum gt_code gt_token_read(const char *path, unsigned char token[32], struct gt_err *err);

#endif
