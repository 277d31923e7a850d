/* Connects the ranks of a rendezvous: rank 0 accepts connections until every rank has proven its identity; the others connect to its
 * port. */
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/peer_auth.h"
#include "launch/members.h"
#include "launch/rendezvous.h"
#include "launch/rendezvous_parts.h"
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define RETRY_MS 5         /* milliseconds between two rounds over rank 0's ports while rank 0 does not answer; grows after each round */
#define RETRY_MAX_MS 100   /* maximum milliseconds between two rounds */
#define SILENT_S 10.0      /* seconds that ranks wait for each other before they print a warning */

/* ---- rank 0: accepts connections ---------------------------------------------------------------------------------------------------- */
static int listen_on_ports(const struct addrinfo *list, int port, int *error)
{
	int fd = -1;
	for (int k = 0; list && k < GT_RENDEZVOUS_PORTS && port + k <= 65535 && fd < 0; k++)
		fd = gt_auth_listen_at(list, port + k, NULL, error);
	return fd;
}

int gt_rdv_listen(const char *addr, int port, struct addrinfo **known, struct gt_err *err)
{
	struct addrinfo *none = NULL, *list;
	int error = 0, unknown = 0;
	known = known ? known : &none;
	int fd = listen_on_ports(*known, port, &error);
	if (fd < 0 && !(unknown = gt_auth_look_up(addr, &list))) {
		if (*known)
			freeaddrinfo(*known);
		*known = list;
		fd = listen_on_ports(list, port, &error);
	}
	if (fd < 0 && unknown && !*known)
		gt_fail(err, GT_EPEER, "cannot listen on %s: %s", addr, gai_strerror(unknown));
	else if (fd < 0)
		gt_fail(err, GT_EPEER, "cannot listen on %s port %d or one of the following ports: %s", addr, port, strerror(error));
	if (none)
		freeaddrinfo(none);
	return fd;
}

static int get_local_port(int fd)
{
	struct sockaddr_storage at;
	socklen_t n = sizeof at;
	if (getsockname(fd, (struct sockaddr *)&at, &n))
		return 0;
	return ntohs(at.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&at)->sin6_port : ((struct sockaddr_in *)&at)->sin_port);
}

enum gt_code gt_loopback_listen(int *fd, char addr[GT_ADDR_SIZE], int32_t *port, struct gt_err *err)
{
	int error;
	strcpy(addr, "127.0.0.1");
	if ((*fd = gt_auth_listen(addr, 0, NULL, &error)) < 0)
		return gt_fail(err, GT_EFAIL, "cannot listen on %s: %s", addr, error < 0 ? gai_strerror(error) : strerror(error));
	*port = get_local_port(*fd);
	return GT_OK;
}

static void report_warning(const struct gt_rendezvous *r, const char *text)
{
	if (r->warn)
		r->warn(r->warn_user, text);
}

/* Warns of a peer that uses the protocol but has another token, most likely a rank with another token file. The warning is given once. */
static void report_wrong_token(struct gt_rendezvous *r, int fd, uint32_t rank, uint32_t world)
{
	struct sockaddr_storage from;
	socklen_t n = sizeof from;
	char host[64] = "an unknown address", text[300];
	if (*r->rejected || rank >= world || world > GT_RENDEZVOUS_RANKS) /* garbage must not use up the only warning */
		return;
	if (!getpeername(fd, (struct sockaddr *)&from, &n))
		getnameinfo((struct sockaddr *)&from, n, host, sizeof host, NULL, 0, NI_NUMERICHOST);
	snprintf(r->rejected, sizeof r->rejected, "a process at %s that claims to be rank %u has a different token", host, rank);
	snprintf(text, sizeof text, "%s and was rejected; waiting up to %.3g s for the ranks of this run", r->rejected, r->timeout);
	report_warning(r, text);
}

/* Assigns an authenticated connection to its rank. If the peer claims a wrong rank or world size, the rendezvous fails. */
static enum gt_code add_rank(struct gt_rendezvous *r, struct gt_auth *a, struct gt_peer_auth *p, struct gt_err *err)
{
	char msg[200];
	uint32_t rank = p->claim[0], world = p->claim[1];
	struct gt_rdv_conn c = {0}, *mine = rank < (uint32_t)r->world.world ? &r->conn[rank] : NULL;
	if ((c.fd = gt_auth_take(a, p, c.key)) < 0)
		return GT_OK;
	if (mine && mine->fd < 0 && rank && world == (uint32_t)r->world.world) {
		*mine = c;
		return GT_OK;
	}
	if (world != (uint32_t)r->world.world)
		snprintf(msg, sizeof msg, "rank %u expects %u ranks, but rank 0 expects %d", rank, world, r->world.world);
	else
		snprintf(msg, sizeof msg, "two processes claim to be rank %u", rank);
	gt_rdv_send_failure(&c, GT_EUSAGE, msg); /* the second process that claims the rank gets the message, too */
	shutdown(c.fd, SHUT_WR);
	gt_rdv_drain_close(&c.fd, gt_clock() + 1);
	return gt_rdv_fail(r, GT_EUSAGE, err, "%s", msg);
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

enum gt_code gt_rdv_accept_all(struct gt_rendezvous *r, const unsigned char *token, int listener, struct gt_err *err)
{
	struct gt_auth a;
	double until = gt_clock() + r->timeout, silent = gt_clock() + SILENT_S;
	char who[160], msg[500];
	enum gt_code code = GT_OK;
	int here = 1;
	bool good = gt_auth_open(&a, GT_RDV_MAGIC, token, GT_SHA256_SIZE, listener, r->world.world);
	while (code == GT_OK && here < r->world.world) {
		double left = until - gt_clock();
		if (left <= 0) {
			list_missing_ranks(r, who, sizeof who);
			code = gt_rdv_fail(r, GT_EPEER, err, "%s did not reach the rendezvous within %.3g s%s%s", who, r->timeout,
			                   *r->rejected ? "; " : "", r->rejected);
			break;
		}
		if (gt_clock() > silent && !*r->rejected) {
			list_missing_ranks(r, who, sizeof who);
			snprintf(msg, sizeof msg, "waiting for %s at %s port %d, up to %.0f s more", who, r->world.addr, get_local_port(listener),
			         left);
			report_warning(r, msg);
			silent = until;
		}
		if (!good || gt_auth_poll(&a, left) < 0) {
			code = gt_rdv_fail(r, GT_EFAIL, err, "rank 0 cannot wait for the other ranks: %s", strerror(errno));
			break;
		}
		for (struct gt_peer_auth *p; code == GT_OK && (p = gt_auth_next(&a));) {
			if (p->state == GT_AUTH_PROVEN)
				code = add_rank(r, &a, p, err);
			else if (p->state == GT_AUTH_OTHER_SECRET)
				report_wrong_token(r, p->fd, p->claim[0], p->claim[1]);
			gt_auth_close(p);
		}
		if (code == GT_OK && a.error)
			code = gt_rdv_fail(r, GT_EFAIL, err, "rank 0 cannot accept the other ranks: %s", strerror(a.error));
		here = 1;
		for (int i = 1; i < r->world.world; i++)
			here += r->conn[i].fd >= 0;
	}
	gt_auth_shut(&a);
	return code;
}

/* ---- other ranks: connect to rank 0 ------------------------------------------------------------------------------------------------- */
/* Reasons why rank 0 was not reached, the least helpful first. The most helpful reason is reported, because an answer from one port says
 * more than the silence of later ports. */
enum reason { NOBODY, NO_HOST, SILENT, NOT_OURS, OTHER_NNODES, OTHER_TOKEN };

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
	struct gt_auth auth;
	struct gt_peer_auth p = {.state = GT_AUTH_UNREACHABLE, .fd = -1};
	double until = gt_clock() + patience;
	if (gt_auth_open(&auth, GT_RDV_MAGIC, token, GT_SHA256_SIZE, -1, 0))
		gt_auth_connect(&auth, &p, a->ai_addr, a->ai_addrlen, (uint32_t)r->world.rank, (uint32_t)r->world.world);
	else
		p.error = errno;
	while (p.state < GT_AUTH_PROVEN && gt_clock() < until && gt_auth_poll(&auth, until - gt_clock()) >= 0)
		gt_auth_next(&auth);
	enum gt_code code = GT_OK;
	switch (p.state) {
	case GT_AUTH_DONE:
		r->conn[0].fd = gt_auth_take(&auth, &p, r->conn[0].key);
		break;
	case GT_AUTH_CONNECTS:
		record_refusal(why, NOBODY, port, strerror(ETIMEDOUT));
		break;
	case GT_AUTH_UNREACHABLE:
		record_refusal(why, NOBODY, port, p.error == ECONNREFUSED ? "no process listens on this port" : strerror(p.error));
		if (p.fd < 0 && gt_descriptors_exhausted(p.error))
			code = gt_fail(err, GT_EFAIL, "rank %d cannot make a socket: %s", r->world.rank, strerror(p.error));
		break;
	case GT_AUTH_NEEDS_HELLO:
		record_refusal(why, SILENT, port, "the process that listens on this port does not answer");
		break;
	case GT_AUTH_STRANGER:
		/* The launchers' own connections (launch/hosts.h) use a port next to the ranks' port, which is no error. Host 0 of an elastic run
		 * uses the first port; on another port it is the host of another run. */
		if (port == r->world.port && !memcmp(p.hello, GT_MEMBERS_MAGIC, GT_AUTH_MAGIC))
			record_refusal(why, OTHER_NNODES, port, "host 0 was started with --nnodes MIN:MAX; start all hosts with the same --nnodes");
		else if (memcmp(p.hello, GT_HOSTS_MAGIC, GT_AUTH_MAGIC) && memcmp(p.hello, GT_MEMBERS_MAGIC, GT_AUTH_MAGIC))
			record_refusal(why, NOT_OURS, port, "the process that listens on this port is not gtrain");
		break;
	default:
		record_refusal(why, OTHER_TOKEN, port, "rank 0 on this port has a different token");
	}
	gt_auth_close(&p);
	gt_auth_shut(&auth);
	return code;
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
	/* On one host, gtrain's launcher has passed the exact port. Otherwise rank 0 listens on the first free one of these ports. */
	int ports = !strcmp(w->how, "gtrain") && w->nnodes == 1 ? 1 : GT_RENDEZVOUS_PORTS;
	double until = gt_clock() + r->timeout, silent = gt_clock() + SILENT_S;
	const struct refusal none = {.port = w->port, .text = "no process listens on this port"};
	struct refusal why = none;
	bool reported = false;
	int pause = RETRY_MS, rejections = 0;
	while (gt_clock() < until) {
		struct refusal now = none;
		for (int k = 0; k < ports && w->port + k <= 65535 && gt_clock() < until; k++) {
			double left = until - gt_clock();
			GT_TRY(connect_to_port(r, token, w->port + k, ports == 1 || left < 1 ? left : 1, &now, err));
			if (r->conn[0].fd >= 0)
				return GT_OK;
		}
		/* The first rejection proves nothing: a rank 0 that ends during the handshake closes the connection like one with another token. */
		if (now.reason != OTHER_TOKEN || ++rejections > 1)
			record_refusal(&why, now.reason, now.port, now.text);
		if (!reported && (why.reason >= OTHER_NNODES || gt_clock() > silent)) {
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
