/* Where the ranks of a run meet before step 0: rank 0 serves over TCP, every other rank connects and proves that it holds the token of the
 * run, and shows what it has to show; rank 0 answers all of them at once (digests of config and program, where each rank is; what joins
 * them). That is one exchange, and mostly the only one; each more is a journey to rank 0 and back for everybody. A failure is told
 * to every rank that is still there, in the same sentence, which names the rank at fault.
 *
 *   GT_TRY(gt_rendezvous_open(&spec, &r, err));                   spec.mine, .answer; spec.all[rank].data, .n
 *   GT_TRY(gt_rendezvous_exchange(r, "id", id, n, all, err));     all[rank].data, .n
 *   gt_rendezvous_close(r);
 *
 * The wire, all numbers little-endian u32:
 *   server → "gtrain-rdv-2\0\0\0\0" nonce[32]
 *   client → rank world nonce[32] mac[32]           HMAC-SHA-256(token, "client" both nonces rank world)
 *   server → mac[32]                                the same with "server"
 *   then frames → length mac[32] payload            HMAC(session, direction count length payload)
 *   where session is HMAC(token, "session" both nonces rank world).
 * Nothing is encrypted: the values are no secrets, and neither is a training run's traffic. Garbage, a wrong token and silence cost the
 * stranger its connection, and the ranks nothing; frames are at most GT_RENDEZVOUS_MAX bytes. */
#ifndef GT_LAUNCH_RENDEZVOUS_H
#define GT_LAUNCH_RENDEZVOUS_H

#include "launch/world.h"
#include <stddef.h>

#define GT_RENDEZVOUS_MAX (64 << 10) /* bytes of one value */
#define GT_RENDEZVOUS_PORTS 16       /* rank 0 takes the first free one of world->port …; torchrun's own store holds the first */
#define GT_RENDEZVOUS_RANKS 1024

struct gt_rdv_value {
	const void *data; /* the rendezvous', until the next call */
	size_t n;
};

struct gt_rendezvous_spec {
	const struct gt_world *world; /* addr and port of rank 0, which listens on that address only */
	int listen_fd;                /* rank 0: a socket that listens already, which is closed; -1: bind to addr and port */
	const unsigned char *token;   /* 32 bytes, the same on every rank; NULL is refused where world > 1 */
	double timeout_s;             /* for opening, and for each exchange */

	const void *mine; /* what this rank shows the others: nmine bytes, at most GT_RENDEZVOUS_MAX */
	size_t nmine;
	/* Rank 0, when all have come: sees what each has shown, its own at 0, and writes what all hear from it instead, at most *n bytes, to out. A
	 * failure is that of all ranks, in the same words. NULL: they hear `mine`. */
	enum gt_code (*answer)(void *user, const struct gt_rdv_value *all, void *out, size_t *n, struct gt_err *err);
	void *user;
	/* What the user may want to mend while ranks wait for each other: another token, or nobody there; once each. NULL: nobody hears it. */
	void (*warn)(void *user, const char *text);
	void *warn_user;
	struct gt_rdv_value *all; /* [world]: what was shown, and at 0 what rank 0 answered; NULL: not wanted */
};

struct gt_rendezvous;

/* Returns when all ranks are there. GT_EPEER: not in time, and who is missing; GT_EUSAGE: a rank with another world, or twice the same. */
enum gt_code gt_rendezvous_open(const struct gt_rendezvous_spec *spec, struct gt_rendezvous **out, struct gt_err *err);
void gt_rendezvous_close(struct gt_rendezvous *r); /* NULL is fine */

/* Every rank calls it with the same key (at most 63 bytes) and gets the values of all, all[world]. After a failure every later call
 * fails with the same message. */
enum gt_code gt_rendezvous_exchange(struct gt_rendezvous *r, const char *key, const void *data, size_t n, struct gt_rdv_value *all,
                                    struct gt_err *err);
/* How many there were, that of opening included. */
int gt_rendezvous_exchanges(const struct gt_rendezvous *r);

/* The number of this host that the others reach: this rank's end of its connection. */
enum gt_code gt_rendezvous_address(const struct gt_rendezvous *r, char *out, size_t size, struct gt_err *err);

/* A token for ranks that something else starts: a file of 64 hexadecimal digits that only its owner may read (GT_EUSAGE otherwise). */
enum gt_code gt_token_read(const char *path, unsigned char token[32], struct gt_err *err);

#endif
