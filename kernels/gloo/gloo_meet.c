/* Opens and authenticates the connections between the ranks of a group before gloo gets them. Each rank listens on one socket. Of two
 * ranks, the higher connects to the lower. The handshake of base/peer_auth.h is used, with the group's random number as the secret, and the
 * connector's rank and the acceptor's rank as the claims. All connections are opened at the same time. The bytes of an unauthenticated
 * connection never reach gloo. */
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/peer_auth.h"
#include "gloo/gloo.h"
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAGIC "gtrain-gloo-2\0\0" /* 16 bytes with the NUL that ends the string */
#define RETRY_S 0.02              /* seconds between two attempts to reach a rank */

struct mesh_setup {
	int rank, world;
	const struct gloo_place *at;
	int *fd; /* [world] authenticated connections; -1: none */
	struct gt_auth auth;
	struct gt_peer_auth conn[GT_COMM_RANKS]; /* connections to lower ranks until they are authenticated */
	double again[GT_COMM_RANKS];             /* time of the next attempt to reach each rank */
	int error[GT_COMM_RANKS]; /* errno of the last attempt to reach each rank; 0: the rank did not answer */
	int failed;               /* errno of the error for which the rank stops connecting; 0: none */
};

/* ---- listening ----------------------------------------------------------------------------------------------------------------- */
int gt_gloo_listen(const char *addr, struct gloo_place *at, char why[GL_WHY])
{
	int error;
	memset(at, 0, sizeof *at);
	int fd = gt_auth_listen(addr, 0, &at->to, &error);
	if (fd < 0)
		snprintf(why, GL_WHY, "%s", error < 0 ? gai_strerror(error) : strerror(error));
	at->bytes = at->to.ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
	return fd;
}

/* ---- all connections together ------------------------------------------------------------------------------------------------------- */
static void retry_later(struct mesh_setup *m, int rank)
{
	m->error[rank] = m->conn[rank].error;
	m->again[rank] = gt_clock() + RETRY_S;
	gt_auth_close(&m->conn[rank]);
}

static void connect_to_rank(struct mesh_setup *m, int rank)
{
	const struct gloo_place *at = &m->at[rank];
	gt_auth_connect(&m->auth, &m->conn[rank], (const struct sockaddr *)&at->to, at->bytes, (uint32_t)m->rank, (uint32_t)rank);
	if (m->conn[rank].state == GT_AUTH_UNREACHABLE)
		retry_later(m, rank);
}

/* Handles the end of a handshake with a lower rank, or the proof of a connecting rank, which must be higher. */
static void handle_peer(struct mesh_setup *m, struct gt_peer_auth *p)
{
	bool connector = p >= m->conn && p < m->conn + GT_COMM_RANKS;
	uint32_t rank = connector ? p->claim[1] : p->claim[0], to = p->claim[1];
	if (p->state == GT_AUTH_DONE || (p->state == GT_AUTH_PROVEN && rank < (uint32_t)m->world && to == (uint32_t)m->rank && rank > to)) {
		if (m->fd[rank] >= 0)
			close(m->fd[rank]); /* the peer has given up this earlier connection and connects again */
		m->fd[rank] = gt_auth_take(&m->auth, p, NULL);
	} else if (connector) {
		retry_later(m, (int)rank);
	} else {
		gt_auth_close(p);
	}
}

/* Starts connection attempts that are due, polls all connections once, and continues those that are ready. */
static void poll_connections(struct mesh_setup *m, double deadline)
{
	double now = gt_clock(), wait = deadline - now;
	for (int i = 0; i < m->rank; i++) {
		if (m->fd[i] < 0 && m->conn[i].state == GT_AUTH_NONE && now >= m->again[i])
			connect_to_rank(m, i);
		if (m->fd[i] < 0 && m->conn[i].state == GT_AUTH_NONE)
			wait = wait < RETRY_S ? wait : RETRY_S;
	}
	if (gt_auth_poll(&m->auth, wait) < 0)
		m->failed = errno;
	for (struct gt_peer_auth *p; (p = gt_auth_next(&m->auth));)
		handle_peer(m, p);
	m->failed = m->auth.error ? m->auth.error : m->failed;
}

static int find_missing_rank(const struct mesh_setup *m)
{
	for (int i = 0; i < m->world; i++)
		if (i != m->rank && m->fd[i] < 0)
			return i;
	return -1;
}

bool gt_gloo_meet(int listener, int rank, int world, const char *id, const struct gloo_place *at, double timeout_s, int *fd,
                  char why[GL_WHY])
{
	struct mesh_setup *m = calloc(1, sizeof *m);
	double deadline = gt_clock() + timeout_s;
	for (int i = 0; i < world; i++)
		fd[i] = -1;
	if (!m) {
		snprintf(why, GL_WHY, "rank %d is out of memory", rank);
		return false;
	}
	*m = (struct mesh_setup){.rank = rank, .world = world, .at = at, .fd = fd};
	if (!gt_auth_open(&m->auth, MAGIC, id, strlen(id), listener, world))
		m->failed = errno;
	while (find_missing_rank(m) >= 0 && !m->failed && gt_clock() < deadline)
		poll_connections(m, deadline);
	int out = find_missing_rank(m);
	if (out >= 0 && m->failed)
		snprintf(why, GL_WHY, "rank %d cannot accept the other ranks: %s", rank, strerror(m->failed));
	else if (out >= 0)
		snprintf(why, GL_WHY, "rank %d has no connection to rank %d after %g s%s%s", rank, out, timeout_s, m->error[out] ? ": " : "",
		         m->error[out] ? strerror(m->error[out]) : "");
	for (int i = 0; i < world; i++) {
		gt_auth_close(&m->conn[i]);
		if (out >= 0 && fd[i] >= 0)
			close(fd[i]);
		if (out >= 0)
			fd[i] = -1;
	}
	gt_auth_shut(&m->auth);
	free(m);
	return out < 0;
}
