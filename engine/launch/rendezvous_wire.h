/* The wire protocol of launch/rendezvous.h: frames with a deadline, which follow the handshake of base/peer_auth.h.
 * Sockets are non-blocking. */
#ifndef GT_LAUNCH_RENDEZVOUS_WIRE_H
#define GT_LAUNCH_RENDEZVOUS_WIRE_H

#include "base/sha256.h"
#include <stdint.h>

#define GT_RDV_MAGIC "gtrain-rdv-3\0\0\0" /* 16 bytes including the last NUL */

struct gt_rdv_conn {
	int fd; /* -1: none */
	unsigned char key[GT_SHA256_SIZE]; /* the session key */
	uint32_t sent, got; /* number of frames sent and received */
};

/* gt_rdv_send and gt_rdv_recv transfer exactly n bytes before the time `until` (gt_clock). They return false if the peer has closed the
 * connection, or if the deadline has passed (errno = ETIMEDOUT). */
bool gt_rdv_send(int fd, const void *data, size_t n, double until);
bool gt_rdv_recv(int fd, void *data, size_t n, double until);

/* gt_rdv_send_frame and gt_rdv_recv_frame transfer one frame. server: this rank is the server of the connection. *out receives the payload,
 * which the caller frees with free(). A frame longer than cap, or with a wrong mac, counts as a closed connection. */
bool gt_rdv_send_frame(struct gt_rdv_conn *c, bool server, const void *data, size_t n, double until);
bool gt_rdv_recv_frame(struct gt_rdv_conn *c, bool server, size_t cap, unsigned char **out, size_t *n, double until);

#endif
