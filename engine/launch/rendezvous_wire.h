/* The wire of launch/rendezvous.h: the handshake's proofs, and frames with a deadline. Sockets do not block. */
#ifndef GT_LAUNCH_RENDEZVOUS_WIRE_H
#define GT_LAUNCH_RENDEZVOUS_WIRE_H

#include "base/sha256.h"
#include "launch/rendezvous.h"

#define GT_RDV_MAGIC "gtrain-rdv-2\0\0\0"                  /* 16 bytes with its last NUL */
#define GT_RDV_HELLO (16 + GT_SHA256_SIZE)                 /* server → client */
#define GT_RDV_PROOF (8 + GT_SHA256_SIZE + GT_SHA256_SIZE) /* client → server */

struct gt_rdv_conn {
	int fd; /* -1: none */
	unsigned char key[GT_SHA256_SIZE];
	uint32_t sent, got; /* frames */
};

void gt_rdv_put(unsigned char *p, uint32_t v);
uint32_t gt_rdv_get(const unsigned char *p);

/* HMAC(token, what, both nonces, rank, world): what is "client", "server" or "session". */
void gt_rdv_mac(const unsigned char *token, const char *what, const unsigned char *hello, const unsigned char *proof,
                unsigned char out[GT_SHA256_SIZE]);

/* Exactly n bytes before `until` (gt_clock). False: the peer has gone, or it is too late (errno = ETIMEDOUT). */
bool gt_rdv_send(int fd, const void *data, size_t n, double until);
bool gt_rdv_recv(int fd, void *data, size_t n, double until);

/* Frames. out: malloc'ed, the caller's; a frame longer than cap, or one with a wrong mac, counts as a peer that has gone. */
bool gt_rdv_send_frame(struct gt_rdv_conn *c, bool server, const void *data, size_t n, double until);
bool gt_rdv_recv_frame(struct gt_rdv_conn *c, bool server, size_t cap, unsigned char **out, size_t *n, double until);

#endif
