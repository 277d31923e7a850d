/* Sends and receives the frames of a rendezvous, closes it, and reports its failure to all ranks. */
#include "launch/rendezvous_parts.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- frames ------------------------------------------------------------------------------------------------------------------------- */
static bool transfer_bytes(int fd, unsigned char *p, size_t n, double until, bool out)
{
	while (n) {
		ssize_t k = out ? send(fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT) : recv(fd, p, n, MSG_DONTWAIT);
		if (k > 0) {
			p += k;
			n -= (size_t)k;
			continue;
		}
		if (!k) {
			errno = ECONNRESET;
			return false;
		}
		if (errno != EAGAIN && errno != EINTR)
			return false;
		double left = until - gt_clock();
		struct pollfd f = {.fd = fd, .events = out ? POLLOUT : POLLIN};
		if (left <= 0 || (!poll(&f, 1, (int)(left * 1e3) + 1) && gt_clock() >= until)) {
			errno = ETIMEDOUT;
			return false;
		}
	}
	return true;
}

bool gt_rdv_send(int fd, const void *data, size_t n, double until)
{
	return transfer_bytes(fd, (unsigned char *)data, n, until, true);
}

bool gt_rdv_recv(int fd, void *data, size_t n, double until)
{
	return transfer_bytes(fd, data, n, until, false);
}

/* Computes the mac of a frame. The count lets the receiver reject frames after a drop, repetition or reordering; the direction lets the
 * receiver reject its own frames if they are sent back. */
static void compute_frame_mac(const struct gt_rdv_conn *c, bool from_server, uint32_t count, const void *data, size_t n, unsigned char *mac)
{
	struct gt_hmac h;
	unsigned char head[12];
	gt_put_u32(head, from_server);
	gt_put_u32(head + 4, count);
	gt_put_u32(head + 8, (uint32_t)n);
	gt_hmac_start(&h, c->key, sizeof c->key);
	gt_sha256_add(&h.inner, head, sizeof head);
	gt_sha256_add(&h.inner, data, n);
	gt_hmac_end(&h, mac);
}

bool gt_rdv_send_frame(struct gt_rdv_conn *c, bool server, const void *data, size_t n, double until)
{
	unsigned char head[4 + GT_SHA256_SIZE];
	gt_put_u32(head, (uint32_t)n);
	compute_frame_mac(c, server, c->sent++, data, n, head + 4);
	return gt_rdv_send(c->fd, head, sizeof head, until) && gt_rdv_send(c->fd, data, n, until);
}

bool gt_rdv_recv_frame(struct gt_rdv_conn *c, bool server, size_t cap, unsigned char **out, size_t *n, double until)
{
	unsigned char head[4 + GT_SHA256_SIZE], mac[GT_SHA256_SIZE];
	*out = NULL;
	if (!gt_rdv_recv(c->fd, head, sizeof head, until))
		return false;
	*n = gt_get_u32(head);
	errno = EPROTO;
	if (*n > cap || !(*out = malloc(*n + 1)))
		return false;
	if (gt_rdv_recv(c->fd, *out, *n, until)) {
		compute_frame_mac(c, !server, c->got++, *out, *n, mac);
		if (gt_mac_equal(mac, head + 4)) {
			(*out)[*n] = 0;
			return true;
		}
		errno = EPROTO;
	}
	free(*out);
	*out = NULL;
	return false;
}

/* ---- end and failure ---------------------------------------------------------------------------------------------------------------- */
void gt_rdv_drain_close(int *fd, double until)
{
	char sink[1 << 16]; /* more than a peer has sent, unless it sends for ever */
	while (*fd >= 0 && gt_rdv_recv(*fd, sink, 1, until) && recv(*fd, sink, sizeof sink, MSG_DONTWAIT) && gt_clock() < until)
		;
	gt_fd_close(fd);
}

static void drain_connections(struct gt_rendezvous *r)
{
	double until = gt_clock() + 1; /* time until which the other ranks can read the message */
	for (int i = 1; i < r->world.world; i++)
		if (r->conn[i].fd >= 0)
			shutdown(r->conn[i].fd, SHUT_WR);
	for (int i = 1; i < r->world.world; i++)
		gt_rdv_drain_close(&r->conn[i].fd, until);
}

void gt_rdv_send_failure(struct gt_rdv_conn *c, enum gt_code code, const char *msg)
{
	unsigned char frame[5 + sizeof ((struct gt_err *)0)->msg] = {1}; /* the frame of a failure: the byte 1, the code (u32), the message */
	size_t n = strlen(msg);
	gt_put_u32(frame + 1, (uint32_t)code);
	memcpy(frame + 5, msg, n);
	gt_rdv_send_frame(c, true, frame, 5 + n, gt_clock() + 1);
}

enum gt_code gt_rdv_fail(struct gt_rendezvous *r, enum gt_code code, struct gt_err *err, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(r->err.msg, sizeof r->err.msg, fmt, ap);
	va_end(ap);
	r->err.code = code;
	for (int i = 1; gt_rdv_is_server(r) && i < r->world.world; i++)
		if (r->conn[i].fd >= 0)
			gt_rdv_send_failure(&r->conn[i], code, r->err.msg);
	if (gt_rdv_is_server(r))
		drain_connections(r);
	else
		gt_fd_close(&r->conn[0].fd);
	return gt_fail(err, code, "%s", r->err.msg);
}

void gt_rdv_list_missing(const bool *there, int world, char *out, size_t size)
{
	int n = 0, named = 0;
	size_t at = 0;
	for (int i = 0; i < world; i++)
		n += !there[i];
	at += (size_t)snprintf(out, size, n == 1 ? "rank " : "ranks ");
	for (int i = 0; i < world && named < 8; i++)
		if (!there[i])
			at += (size_t)snprintf(out + at, size - at, "%s%d", named++ ? ", " : "", i);
	if (n > named)
		snprintf(out + at, size - at, " and %d more", n - named);
}
