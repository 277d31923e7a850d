/* Connects the ranks of a rendezvous: rank 0 accepts connections until every rank has proven its identity; the others connect to its
 * port. */
#include "base/clock.h"
#include "base/descriptors.h"
#include "launch/hosts.h"
#include "launch/rendezvous.h"
#include "launch/rendezvous_parts.h"
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

#define MAX_PENDING 64     /* maximum number of unauthenticated connections; a further one closes the oldest */
#define PENDING_S 5        /* seconds in which a connection must authenticate itself */
#define RETRY_MS 5         /* milliseconds between two rounds over rank 0's ports while it does not answer; longer after each round */
#define RETRY_MAX_MS 100   /* maximum milliseconds between two rounds */
#define SILENT_S 10.0      /* seconds that ranks wait for each other before they print a warning */

/* Disables Nagle's algorithm. A frame takes more than one write, and the second one would wait for the delayed acknowledgement of the
 * first: 40 ms per exchange, half a second per start. */
static void disable_nagle(int fd)
{
	int on = 1;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/* ---- rank 0: accepts connections ---------------------------------------------------------------------------------------------------- */
struct pending_peer {
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
			setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on); /* connections in TIME_WAIT must not make the bind fail */
			if (bind(fd, a->ai_addr, a->ai_addrlen) || listen(fd, 128)) {
				error = errno;
				gt_rdv_close(&fd);
			}
		}
		freeaddrinfo(list);
		if (fd >= 0)
			return fd;
	}
	gt_fail(err, GT_EPEER, "cannot listen on %s port %d or one of the following ports: %s", w->addr, w->port, strerror(error));
	return -1;
}

static enum gt_code accept_peer(struct gt_rendezvous *r, int listener, struct pending_peer *s, struct gt_err *err)
{
	int oldest = 0, fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), error = errno;
	char msg[160];
	for (int i = 0; i < MAX_PENDING; i++)
		if (fd >= 0 ? s[i].fd < 0 || (s[oldest].fd >= 0 && s[i].until < s[oldest].until) /* takes a free entry, otherwise the oldest one */
		            : s[i].fd >= 0 && (s[oldest].fd < 0 || s[i].until < s[oldest].until)) /* takes the oldest entry */
			oldest = i;
	s += oldest;
	if (fd < 0 && gt_descriptors_exhausted(error) && s->fd < 0) {
		snprintf(msg, sizeof msg, "rank 0 cannot accept the other ranks: %s", strerror(error));
		return gt_rdv_fail(r, GT_EFAIL, err, msg);
	}
	if (fd < 0) { /* the oldest unauthenticated connection is closed to free a descriptor for the one that waits */
		if (gt_descriptors_exhausted(error))
			gt_rdv_close(&s->fd);
		return GT_OK;
	}
	disable_nagle(fd);
	gt_rdv_close(&s->fd);
	*s = (struct pending_peer){.fd = fd, .until = gt_clock() + PENDING_S};
	memcpy(s->hello, GT_RDV_MAGIC, 16);
	if (getrandom(s->hello + 16, GT_SHA256_SIZE, 0) != GT_SHA256_SIZE || !gt_rdv_send(fd, s->hello, sizeof s->hello, gt_clock()))
		gt_rdv_close(&s->fd);
	return GT_OK;
}

static void report_warning(const struct gt_rendezvous *r, const char *text)
{
	if (r->warn)
		r->warn(r->warn_user, text);
}

/* Warns, once, of a peer that knows the protocol but has another token; most likely it is a rank with another token file. */
static void report_wrong_token(struct gt_rendezvous *r, int fd, uint32_t rank)
{
	struct sockaddr_storage from;
	socklen_t n = sizeof from;
	char host[64] = "an unknown address", text[300];
	if (*r->rejected)
		return;
	if (!getpeername(fd, (struct sockaddr *)&from, &n))
		getnameinfo((struct sockaddr *)&from, n, host, sizeof host, NULL, 0, NI_NUMERICHOST);
	snprintf(r->rejected, sizeof r->rejected, "a process at %s that claims to be rank %u has another token", host, rank);
	snprintf(text, sizeof text, "%s and was rejected; waiting up to %.3g s for the ranks of this run", r->rejected, r->timeout);
	report_warning(r, text);
}

/* Reads from an unauthenticated connection. When the proof is complete and correct, the connection becomes that of a rank. */
static enum gt_code read_proof(struct gt_rendezvous *r, const unsigned char *token, struct pending_peer *s, struct gt_err *err)
{
	unsigned char mac[GT_SHA256_SIZE];
	char msg[200];
	ssize_t n = recv(s->fd, s->proof + s->got, sizeof s->proof - s->got, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return GT_OK;
	if (n <= 0) {
		gt_rdv_close(&s->fd);
		return GT_OK;
	}
	s->got += (size_t)n;
	if (s->got < sizeof s->proof)
		return GT_OK;
	gt_rdv_mac(token, "client", s->hello, s->proof, mac);
	uint32_t rank = gt_rdv_get(s->proof), world = gt_rdv_get(s->proof + 4);
	if (!gt_mac_equal(mac, s->proof + 8 + GT_SHA256_SIZE)) {
		report_wrong_token(r, s->fd, rank);
		gt_rdv_close(&s->fd);
		return GT_OK;
	}
	struct gt_rdv_conn c = {.fd = s->fd}, *mine = rank < (uint32_t)r->world.world ? &r->conn[rank] : NULL;
	s->fd = -1;
	gt_rdv_mac(token, "session", s->hello, s->proof, c.key);
	gt_rdv_mac(token, "server", s->hello, s->proof, mac);
	if (!gt_rdv_send(c.fd, mac, sizeof mac, gt_clock() + 1)) {
		gt_rdv_close(&c.fd);
		return GT_OK;
	}
	if (mine && mine->fd < 0 && rank && world == (uint32_t)r->world.world) {
		*mine = c;
		return GT_OK;
	}
	if (world != (uint32_t)r->world.world)
		snprintf(msg, sizeof msg, "rank %u expects %u ranks, but rank 0 expects %d", rank, world, r->world.world);
	else
		snprintf(msg, sizeof msg, "two processes claim to be rank %u", rank);
	struct gt_rdv_conn was = r->conn[0]; /* the second process that claims the rank gets the message too */
	r->conn[0] = c;
	unsigned char frame[5 + sizeof msg] = {1};
	gt_rdv_put(frame + 1, GT_EUSAGE);
	memcpy(frame + 5, msg, strlen(msg));
	gt_rdv_send_frame(&r->conn[0], true, frame, 5 + strlen(msg), gt_clock() + 1);
	shutdown(c.fd, SHUT_WR);
	gt_rdv_drain_close(&r->conn[0].fd, gt_clock() + 1);
	r->conn[0] = was;
	return gt_rdv_fail(r, GT_EUSAGE, err, msg);
}

static void list_missing_ranks(const struct gt_rendezvous *r, char *out, size_t size)
{
	bool *there = calloc((size_t)r->world.world, sizeof *there);
	for (int i = 0; there && i < r->world.world; i++)
		there[i] = !i || r->conn[i].fd >= 0;
	if (there)
		gt_rdv_list_missing(there, r->world.world, out, size);
	else
		snprintf(out, size, "a rank");
	free(there);
}

static int get_local_port(int fd)
{
	struct sockaddr_storage at;
	socklen_t n = sizeof at;
	if (getsockname(fd, (struct sockaddr *)&at, &n))
		return 0;
	return ntohs(at.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&at)->sin6_port : ((struct sockaddr_in *)&at)->sin_port);
}

enum gt_code gt_rdv_accept_all(struct gt_rendezvous *r, const unsigned char *token, int listener, struct gt_err *err)
{
	struct pending_peer *s = calloc(MAX_PENDING, sizeof *s);
	double until = gt_clock() + r->timeout, silent = gt_clock() + SILENT_S;
	char who[160], msg[500];
	enum gt_code code = s ? GT_OK : gt_fail(err, GT_EFAIL, "out of memory");
	int here = 1;
	for (int i = 0; s && i < MAX_PENDING; i++)
		s[i].fd = -1;
	while (code == GT_OK && here < r->world.world) {
		struct pollfd p[1 + MAX_PENDING] = {{.fd = listener, .events = POLLIN}};
		for (int i = 0; i < MAX_PENDING; i++) {
			if (s[i].fd >= 0 && gt_clock() > s[i].until)
				gt_rdv_close(&s[i].fd);
			p[1 + i] = (struct pollfd){.fd = s[i].fd, .events = POLLIN};
		}
		double left = until - gt_clock();
		if (left <= 0) {
			list_missing_ranks(r, who, sizeof who);
			snprintf(msg, sizeof msg, "%s did not reach the rendezvous within %.3g s%s%s",
			         who, r->timeout, *r->rejected ? "; " : "", r->rejected);
			code = gt_rdv_fail(r, GT_EPEER, err, msg);
			break;
		}
		if (gt_clock() > silent && !*r->rejected) {
			list_missing_ranks(r, who, sizeof who);
			snprintf(msg, sizeof msg, "waiting for %s at %s port %d, up to %.0f s more", who, r->world.addr, get_local_port(listener),
			         left);
			report_warning(r, msg);
			silent = until;
		}
		if (gt_poll(p, 1 + MAX_PENDING, left < 0.5 ? left : 0.5) < 0) {
			snprintf(msg, sizeof msg, "rank 0 cannot wait for the other ranks: %s", strerror(errno));
			code = gt_rdv_fail(r, GT_EFAIL, err, msg);
			break;
		}
		for (int i = 0; i < MAX_PENDING && code == GT_OK; i++)
			if (p[1 + i].revents)
				code = read_proof(r, token, &s[i], err);
		if (code == GT_OK && p[0].revents)
			code = accept_peer(r, listener, s, err);
		here = 1;
		for (int i = 1; i < r->world.world; i++)
			here += r->conn[i].fd >= 0;
	}
	for (int i = 0; s && i < MAX_PENDING; i++)
		gt_rdv_close(&s[i].fd);
	free(s);
	return code;
}

/* ---- other ranks: connect to rank 0 ------------------------------------------------------------------------------------------------- */
/* Reasons why rank 0 was not reached, in the order of their value to the user: a later port that answers nothing says less than one that is
 * rank 0's. */
enum reason { NOBODY, NO_HOST, SILENT, NOT_OURS, OTHER_TOKEN };

struct refusal {
	enum reason reason;
	int port;
	char text[160];
};

static void record_refusal(struct refusal *f, enum reason reason, int port, const char *text)
{
	if (reason < f->reason)
		return;
	f->reason = reason;
	f->port = port;
	snprintf(f->text, sizeof f->text, "%s", text);
}

/* Makes one attempt to connect to one port. */
static enum gt_code connect_to_address(struct gt_rendezvous *r, const unsigned char *token, const struct addrinfo *a, int port,
                                       double patience, struct refusal *why, struct gt_err *err)
{
	unsigned char hello[GT_RDV_HELLO], proof[GT_RDV_PROOF], mac[GT_SHA256_SIZE], want[GT_SHA256_SIZE];
	double until = gt_clock() + patience;
	struct gt_rdv_conn c = {.fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
	struct pollfd p = {.fd = c.fd, .events = POLLOUT};
	int error = c.fd < 0 ? errno : 0;
	socklen_t n = sizeof error;
	if (gt_descriptors_exhausted(error))
		return gt_fail(err, GT_EFAIL, "rank %d cannot make a socket: %s", r->world.rank, strerror(error));
	if (!error) {
		disable_nagle(c.fd);
		if (connect(c.fd, a->ai_addr, a->ai_addrlen))
			error = errno;
	}
	if (error == EINPROGRESS && (gt_poll(&p, 1, patience) <= 0 || getsockopt(c.fd, SOL_SOCKET, SO_ERROR, &error, &n)))
		error = ETIMEDOUT;
	if (error) {
		record_refusal(why, NOBODY, port, error == ECONNREFUSED ? "no process listens on this port" : strerror(error));
		gt_rdv_close(&c.fd);
		return GT_OK;
	}
	bool whole = gt_rdv_recv(c.fd, hello, sizeof hello, until);
	if (!whole || memcmp(hello, GT_RDV_MAGIC, 16)) {
		if (!whole && errno == ETIMEDOUT)
			record_refusal(why, SILENT, port, "the process that listens on this port does not answer");
		else if (!whole || memcmp(hello, GT_HOSTS_MAGIC, 16)) /* the launcher's own connections use a port beside the ranks' port */
			record_refusal(why, NOT_OURS, port, "the process that listens on this port is not gtrain");
		gt_rdv_close(&c.fd);
		return GT_OK;
	}
	gt_rdv_put(proof, (uint32_t)r->world.rank);
	gt_rdv_put(proof + 4, (uint32_t)r->world.world);
	bool good = getrandom(proof + 8, GT_SHA256_SIZE, 0) == GT_SHA256_SIZE;
	gt_rdv_mac(token, "client", hello, proof, proof + 8 + GT_SHA256_SIZE);
	gt_rdv_mac(token, "server", hello, proof, want);
	gt_rdv_mac(token, "session", hello, proof, c.key);
	if (!good || !gt_rdv_send(c.fd, proof, sizeof proof, until) || !gt_rdv_recv(c.fd, mac, sizeof mac, until) || !gt_mac_equal(mac, want)) {
		record_refusal(why, OTHER_TOKEN, port, "rank 0 on this port has another token");
		gt_rdv_close(&c.fd);
		return GT_OK;
	}
	r->conn[0] = c;
	return GT_OK;
}

static enum gt_code connect_to_port(struct gt_rendezvous *r, const unsigned char *token, int port, double patience, struct refusal *why,
                                    struct gt_err *err)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
	char digits[12];
	snprintf(digits, sizeof digits, "%d", port);
	int rc = getaddrinfo(r->world.addr, digits, &hints, &list);
	if (rc)
		record_refusal(why, NO_HOST, port, gai_strerror(rc));
	enum gt_code code = GT_OK;
	for (struct addrinfo *a = rc ? NULL : list; a && code == GT_OK && r->conn[0].fd < 0 && patience > 0; a = a->ai_next)
		code = connect_to_address(r, token, a, port, patience, why, err);
	if (!rc)
		freeaddrinfo(list);
	return code;
}

enum gt_code gt_rdv_connect(struct gt_rendezvous *r, const unsigned char *token, struct gt_err *err)
{
	const struct gt_world *w = &r->world;
	int ports = !strcmp(w->how, "gtrain") && w->nnodes == 1 ? 1 : GT_RENDEZVOUS_PORTS; /* the launcher passes the exact port */
	double until = gt_clock() + r->timeout, silent = gt_clock() + SILENT_S;
	struct refusal why = {.port = w->port, .text = "no process listens on this port"};
	bool reported = false;
	int pause = RETRY_MS;
	while (gt_clock() < until) {
		for (int k = 0; k < ports && w->port + k <= 65535 && gt_clock() < until; k++) {
			double left = until - gt_clock();
			GT_TRY(connect_to_port(r, token, w->port + k, ports == 1 || left < 1 ? left : 1, &why, err));
			if (r->conn[0].fd >= 0)
				return GT_OK;
		}
		if (!reported && (why.reason == OTHER_TOKEN || gt_clock() > silent)) {
			char text[600];
			snprintf(text, sizeof text, "rank %d has not reached rank 0 at %s port %d: %s; trying for %.0f s more", w->rank, w->addr,
			         why.port, why.text, until - gt_clock());
			report_warning(r, text);
			reported = true;
		}
		poll(NULL, 0, pause);
		pause = 2 * pause < RETRY_MAX_MS ? 2 * pause : RETRY_MAX_MS;
	}
	return gt_fail(err, GT_EPEER, "rank %d did not reach rank 0 at %s port %d within %.3g s: %s", w->rank, w->addr, why.port, r->timeout,
	               why.text);
}
