/* How the ranks of a rendezvous come together: rank 0 listens to everybody until each has proven who it is, the others knock at its port. */
#include "run/launcher_parts.h"
#include "run/rendezvous_parts.h"
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#define STRANGERS 64 /* connections that have not proved anything yet; one more drops the oldest */
#define STRANGER_S 5 /* seconds one has for its proof */
#define KNOCK_MS 5   /* between two rounds at rank 0's ports, where it is not yet there; each time longer, */
#define SELDOM_MS 100 /* at most this */

/* A frame is more than one write; without this, the second one waits until the other side's delayed acknowledgement of the first: 40 ms an
 * exchange, which made up half a second of a start. */
static void at_once(int fd)
{
	int on = 1;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/* ---- rank 0: everybody comes ------------------------------------------------------------------------------------------------ */
struct stranger {
	int fd;
	double until;
	unsigned char hello[GT_RDV_HELLO], proof[GT_RDV_PROOF];
	size_t got;
};

int gt_rdv_listen(const struct gt_world *w, struct gt_err *err)
{
	int fd = -1, error = 0;
	for (int k = 0; k < GT_RENDEZVOUS_PORTS && w->port + k <= 65535; k++) {
		struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *list, *a;
		char port[12];
		snprintf(port, sizeof port, "%d", w->port + k);
		int rc = getaddrinfo(w->addr, port, &hints, &list);
		if (rc) {
			gt_fail(err, GT_EPEER, "cannot listen on %s: %s", w->addr, gai_strerror(rc));
			return -1;
		}
		for (a = list; a && fd < 0; a = a->ai_next) {
			int on = 1;
			fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
			setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on); /* past connections' TIME_WAIT is no reason to fail */
			if (bind(fd, a->ai_addr, a->ai_addrlen) || listen(fd, 128)) {
				error = errno;
				gt_rdv_shut(&fd);
			}
		}
		freeaddrinfo(list);
		if (fd >= 0)
			return fd;
	}
	gt_fail(err, GT_EPEER, "cannot listen on %s port %d, nor on one of the next: %s", w->addr, w->port, strerror(error));
	return -1;
}

static void greet(int listener, struct stranger *s)
{
	int oldest = 0, fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0)
		return;
	at_once(fd);
	for (int i = 0; i < STRANGERS; i++)
		if (s[i].fd < 0 || (s[oldest].fd >= 0 && s[i].until < s[oldest].until))
			oldest = i;
	s += oldest;
	gt_rdv_shut(&s->fd);
	*s = (struct stranger){.fd = fd, .until = gt_clock() + STRANGER_S};
	memcpy(s->hello, GT_RDV_MAGIC, 16);
	if (getrandom(s->hello + 16, GT_SHA256_SIZE, 0) != GT_SHA256_SIZE || !gt_rdv_send(fd, s->hello, sizeof s->hello, gt_clock()))
		gt_rdv_shut(&s->fd);
}

/* Its bytes; when the proof is whole and right, it is a rank. */
static enum gt_code hear(struct gt_rendezvous *r, const unsigned char *token, struct stranger *s, struct gt_err *err)
{
	unsigned char mac[GT_SHA256_SIZE];
	char msg[200];
	ssize_t n = recv(s->fd, s->proof + s->got, sizeof s->proof - s->got, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return GT_OK;
	if (n <= 0) {
		gt_rdv_shut(&s->fd);
		return GT_OK;
	}
	s->got += (size_t)n;
	if (s->got < sizeof s->proof)
		return GT_OK;
	gt_rdv_mac(token, "client", s->hello, s->proof, mac);
	uint32_t rank = gt_rdv_get(s->proof), world = gt_rdv_get(s->proof + 4);
	if (!gt_mac_equal(mac, s->proof + 8 + GT_SHA256_SIZE)) {
		gt_rdv_shut(&s->fd);
		return GT_OK;
	}
	struct gt_rdv_conn c = {.fd = s->fd}, *mine = rank < (uint32_t)r->world.world ? &r->conn[rank] : NULL;
	s->fd = -1;
	gt_rdv_mac(token, "session", s->hello, s->proof, c.key);
	gt_rdv_mac(token, "server", s->hello, s->proof, mac);
	if (!gt_rdv_send(c.fd, mac, sizeof mac, gt_clock() + 1)) {
		gt_rdv_shut(&c.fd);
		return GT_OK;
	}
	if (mine && mine->fd < 0 && rank && world == (uint32_t)r->world.world) {
		*mine = c;
		return GT_OK;
	}
	if (world != (uint32_t)r->world.world)
		snprintf(msg, sizeof msg, "rank %u counts %u ranks, rank 0 counts %d", rank, world, r->world.world);
	else
		snprintf(msg, sizeof msg, "two processes are rank %u", rank);
	struct gt_rdv_conn was = r->conn[0]; /* so that the one that is too many hears it too */
	r->conn[0] = c;
	unsigned char frame[5 + sizeof msg] = {1};
	gt_rdv_put(frame + 1, GT_EUSAGE);
	memcpy(frame + 5, msg, strlen(msg));
	gt_rdv_send_frame(&r->conn[0], true, frame, 5 + strlen(msg), gt_clock() + 1);
	shutdown(c.fd, SHUT_WR);
	gt_rdv_linger(&r->conn[0].fd, gt_clock() + 1);
	r->conn[0] = was;
	return gt_rdv_fail(r, GT_EUSAGE, err, msg);
}

enum gt_code gt_rdv_gather(struct gt_rendezvous *r, const unsigned char *token, int listener, struct gt_err *err)
{
	struct stranger *s = calloc(STRANGERS, sizeof *s);
	double until = gt_clock() + r->timeout;
	enum gt_code code = s ? GT_OK : gt_fail(err, GT_EFAIL, "out of memory");
	int here = 1;
	for (int i = 0; s && i < STRANGERS; i++)
		s[i].fd = -1;
	while (code == GT_OK && here < r->world.world) {
		struct pollfd p[1 + STRANGERS] = {{.fd = listener, .events = POLLIN}};
		for (int i = 0; i < STRANGERS; i++) {
			if (s[i].fd >= 0 && gt_clock() > s[i].until)
				gt_rdv_shut(&s[i].fd);
			p[1 + i] = (struct pollfd){.fd = s[i].fd, .events = POLLIN};
		}
		double left = until - gt_clock();
		if (left <= 0) {
			char who[160], msg[300];
			bool *there = calloc((size_t)r->world.world, sizeof *there);
			for (int i = 0; there && i < r->world.world; i++)
				there[i] = !i || r->conn[i].fd >= 0;
			if (there)
				gt_rdv_missing(there, r->world.world, who, sizeof who);
			snprintf(msg, sizeof msg, "%s did not come to the rendezvous within %.3g s", there ? who : "a rank", r->timeout);
			free(there);
			code = gt_rdv_fail(r, GT_EPEER, err, msg);
			break;
		}
		poll(p, 1 + STRANGERS, left < 0.5 ? (int)(left * 1e3) + 1 : 500);
		for (int i = 0; i < STRANGERS && code == GT_OK; i++)
			if (p[1 + i].revents)
				code = hear(r, token, &s[i], err);
		if (p[0].revents)
			greet(listener, s);
		here = 1;
		for (int i = 1; i < r->world.world; i++)
			here += r->conn[i].fd >= 0;
	}
	for (int i = 0; s && i < STRANGERS; i++)
		gt_rdv_shut(&s[i].fd);
	free(s);
	return code;
}

/* ---- the others: to rank 0 --------------------------------------------------------------------------------------------------- */
/* One attempt; why: what was wrong with it. */
static bool knock(struct gt_rendezvous *r, const unsigned char *token, const struct addrinfo *a, double patience, const char **why)
{
	unsigned char hello[GT_RDV_HELLO], proof[GT_RDV_PROOF], mac[GT_SHA256_SIZE], want[GT_SHA256_SIZE];
	double until = gt_clock() + patience;
	struct gt_rdv_conn c = {.fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
	struct pollfd p = {.fd = c.fd, .events = POLLOUT};
	int error = 0;
	socklen_t n = sizeof error;
	at_once(c.fd);
	if (connect(c.fd, a->ai_addr, a->ai_addrlen) &&
	    (errno != EINPROGRESS || poll(&p, 1, (int)(patience * 1e3)) <= 0 || getsockopt(c.fd, SOL_SOCKET, SO_ERROR, &error, &n) || error)) {
		gt_rdv_shut(&c.fd);
		return false;
	}
	if (!gt_rdv_recv(c.fd, hello, sizeof hello, until) || memcmp(hello, GT_RDV_MAGIC, 16)) {
		*why = "what listens there is not gtrain's rendezvous";
		gt_rdv_shut(&c.fd);
		return false;
	}
	gt_rdv_put(proof, (uint32_t)r->world.rank);
	gt_rdv_put(proof + 4, (uint32_t)r->world.world);
	bool good = getrandom(proof + 8, GT_SHA256_SIZE, 0) == GT_SHA256_SIZE;
	gt_rdv_mac(token, "client", hello, proof, proof + 8 + GT_SHA256_SIZE);
	gt_rdv_mac(token, "server", hello, proof, want);
	gt_rdv_mac(token, "session", hello, proof, c.key);
	if (!good || !gt_rdv_send(c.fd, proof, sizeof proof, until) || !gt_rdv_recv(c.fd, mac, sizeof mac, until) || !gt_mac_equal(mac, want)) {
		*why = "rank 0 there has another token";
		gt_rdv_shut(&c.fd);
		return false;
	}
	r->conn[0] = c;
	return true;
}

enum gt_code gt_rdv_reach(struct gt_rendezvous *r, const unsigned char *token, struct gt_err *err)
{
	const struct gt_world *w = &r->world;
	int ports = !strcmp(w->how, "gtrain") && w->nnodes == 1 ? 1 : GT_RENDEZVOUS_PORTS; /* the launcher's port is the right one */
	double until = gt_clock() + r->timeout;
	const char *why = "nothing listens there";
	int pause = KNOCK_MS;
	while (gt_clock() < until) {
		for (int k = 0; k < ports && w->port + k <= 65535 && gt_clock() < until; k++) {
			struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
			char port[12];
			snprintf(port, sizeof port, "%d", w->port + k);
			int rc = getaddrinfo(w->addr, port, &hints, &list);
			if (rc)
				why = gai_strerror(rc);
			double left = until - gt_clock(), patience = ports == 1 || left < 1 ? left : 1;
			for (struct addrinfo *a = list; a && r->conn[0].fd < 0 && patience > 0; a = a->ai_next)
				knock(r, token, a, patience, &why);
			if (list)
				freeaddrinfo(list);
			if (r->conn[0].fd >= 0)
				return GT_OK;
		}
		poll(NULL, 0, pause);
		pause = 2 * pause < SELDOM_MS ? 2 * pause : SELDOM_MS;
	}
	return gt_fail(err, GT_EPEER, "rank %d did not reach rank 0 at %s port %d within %.3g s: %s", w->rank, w->addr, w->port, r->timeout, why);
}
