/* Opens and authenticates the connections between the ranks of a group before gloo gets them. Each rank listens on one socket. The higher
 * rank of two connects to the lower one:
 *   listener  → "gtrain-gloo-1\0\0\0" nonce[32]
 *   connector → rank, to (little-endian u32) nonce[32] mac[32]
 *   listener  → mac[32]
 * A mac is an HMAC-SHA-256 under the group's random number over a word for the side, both nonces and both ranks. All connections are opened
 * at the same time. The bytes of an unauthenticated connection never reach gloo. */
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/sha256.h"
#include "gloo/gloo.h"
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAGIC "gtrain-gloo-1\0\0" /* 16 bytes with the NUL that ends the string */
#define NONCE GT_SHA256_SIZE
#define HELLO (16 + NONCE)
#define PROOF (8 + NONCE + GT_SHA256_SIZE)
#define MAX_PENDING 64 /* maximum number of unauthenticated connections; one more closes the oldest of them */
#define PROOF_S 2.0    /* seconds after which an unauthenticated connection is closed */
#define RETRY_S 0.02   /* seconds between two attempts to reach a rank */

enum state { NOBODY, CONNECTS, HEARS, PROVES, THERE };

struct peer_conn {
	int fd;
	enum state state;
	double until; /* for a pending connection, the time at which it is closed; for a rank in state NOBODY, the time of the next attempt */
	size_t got;
	unsigned char hello[HELLO], proof[PROOF], mac[GT_SHA256_SIZE];
};

struct mesh_setup {
	int listener, rank, world;
	const char *id;
	const struct gloo_place *at;
	struct peer_conn conn[GT_COMM_RANKS], pending[MAX_PENDING];
	int error[GT_COMM_RANKS]; /* errno of the last attempt to reach each rank; 0: the rank did not answer */
	int failed;               /* errno of the error for which the rank stops connecting; 0: none */
};

static void put_u32(unsigned char *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (unsigned char)(v >> 8 * i);
}

static uint32_t get_u32(const unsigned char *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static void compute_mac(const struct mesh_setup *m, const char *side, const struct peer_conn *e, unsigned char out[GT_SHA256_SIZE])
{
	struct gt_hmac h;
	gt_hmac_start(&h, m->id, strlen(m->id));
	gt_sha256_add(&h.inner, side, strlen(side) + 1);
	gt_sha256_add(&h.inner, e->hello + 16, NONCE);
	gt_sha256_add(&h.inner, e->proof, 8 + NONCE);
	gt_hmac_end(&h, out);
}

static void close_conn(struct peer_conn *e)
{
	if (e->fd >= 0)
		close(e->fd);
	*e = (struct peer_conn){.fd = -1, .until = gt_clock() + RETRY_S};
}

/* Sends without blocking: all messages of this protocol fit into the buffer of any socket. */
static bool send_message(const struct peer_conn *e, const void *p, size_t n)
{
	return send(e->fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)n;
}

/* Reads more of the expected message. Returns true once the message is complete. */
static bool read_message(struct peer_conn *e, unsigned char *into, size_t size)
{
	ssize_t n = recv(e->fd, into + e->got, size - e->got, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		close_conn(e);
		return false;
	}
	e->got += (size_t)n;
	return e->got == size;
}

/* ---- listening ----------------------------------------------------------------------------------------------------------------- */
int gt_gloo_listen(const char *addr, struct gloo_place *at, char why[GL_WHY])
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *list = NULL;
	int fd = -1, rc = getaddrinfo(addr, "0", &hints, &list);
	snprintf(why, GL_WHY, "%s", rc ? gai_strerror(rc) : "no address");
	for (struct addrinfo *a = list; a && fd < 0; a = a->ai_next) {
		socklen_t n = sizeof at->to;
		memset(at, 0, sizeof *at);
		fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (fd >= 0 && !bind(fd, a->ai_addr, a->ai_addrlen) && !listen(fd, 128) && !getsockname(fd, (struct sockaddr *)&at->to, &n)) {
			at->bytes = n;
			break;
		}
		snprintf(why, GL_WHY, "%s", strerror(errno));
		if (fd >= 0)
			close(fd);
		fd = -1;
	}
	if (list)
		freeaddrinfo(list);
	return fd;
}

static void accept_peer(struct mesh_setup *m)
{
	struct peer_conn *e = &m->pending[0];
	int fd = accept4(m->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0) {
		if (gt_descriptors_exhausted(errno)) /* no descriptor is left: the pending connection would keep the listener readable */
			m->failed = errno;
		return;
	}
	for (int i = 0; i < MAX_PENDING; i++)
		if (m->pending[i].state == NOBODY || (e->state != NOBODY && m->pending[i].until < e->until))
			e = &m->pending[i];
	close_conn(e);
	*e = (struct peer_conn){.fd = fd, .state = HEARS, .until = gt_clock() + PROOF_S};
	memcpy(e->hello, MAGIC, 16);
	if (getrandom(e->hello + 16, NONCE, 0) != NONCE || !send_message(e, e->hello, HELLO))
		close_conn(e);
}

/* Checks the proof of the rank that connects, and answers with the proof of this rank. */
static void verify_peer(struct mesh_setup *m, struct peer_conn *conn)
{
	unsigned char want[GT_SHA256_SIZE], answer[GT_SHA256_SIZE];
	uint32_t rank = get_u32(conn->proof), to = get_u32(conn->proof + 4);
	compute_mac(m, "connects", conn, want);
	compute_mac(m, "listens", conn, answer);
	if (!gt_mac_equal(want, conn->proof + 8 + NONCE) || rank >= (uint32_t)m->world || to != (uint32_t)m->rank || rank <= to ||
	    !send_message(conn, answer, sizeof answer)) {
		close_conn(conn);
		return;
	}
	close_conn(&m->conn[rank]); /* the peer connects again because it gave up an earlier connection, which is closed here */
	m->conn[rank] = *conn;
	m->conn[rank].state = THERE;
	*conn = (struct peer_conn){.fd = -1};
}

/* ---- connecting ---------------------------------------------------------------------------------------------------------------- */
static void connect_to_rank(struct mesh_setup *m, int rank)
{
	struct peer_conn *e = &m->conn[rank];
	const struct gloo_place *at = &m->at[rank];
	*e = (struct peer_conn){.fd = socket(at->to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), .state = CONNECTS};
	if (e->fd < 0 || (connect(e->fd, (const struct sockaddr *)&at->to, at->bytes) && errno != EINPROGRESS)) {
		m->error[rank] = errno;
		close_conn(e);
	}
}

static void advance_handshake(struct mesh_setup *m, int rank)
{
	struct peer_conn *e = &m->conn[rank];
	if (e->state == CONNECTS) {
		socklen_t n = sizeof m->error[rank];
		if (getsockopt(e->fd, SOL_SOCKET, SO_ERROR, &m->error[rank], &n) || m->error[rank])
			close_conn(e);
		else
			e->state = HEARS;
	} else if (e->state == HEARS && read_message(e, e->hello, HELLO)) {
		put_u32(e->proof, (uint32_t)m->rank);
		put_u32(e->proof + 4, (uint32_t)rank);
		bool good = !memcmp(e->hello, MAGIC, 16) && getrandom(e->proof + 8, NONCE, 0) == NONCE;
		compute_mac(m, "connects", e, e->proof + 8 + NONCE);
		e->state = PROVES;
		e->got = 0;
		if (!good || !send_message(e, e->proof, PROOF))
			close_conn(e);
	} else if (e->state == PROVES && read_message(e, e->mac, sizeof e->mac)) {
		unsigned char want[GT_SHA256_SIZE];
		compute_mac(m, "listens", e, want);
		e->state = THERE;
		if (!gt_mac_equal(e->mac, want))
			close_conn(e);
	}
}

/* ---- all connections together ------------------------------------------------------------------------------------------------------- */
/* Closes pending (unauthenticated) connections whose time is over, starts connection attempts that are due, polls all sockets once, and
 * advances those that are ready. */
static void poll_connections(struct mesh_setup *m, double deadline)
{
	struct pollfd p[1 + MAX_PENDING + GT_COMM_RANKS] = {{.fd = m->listener, .events = POLLIN}};
	double now = gt_clock(), wait = deadline - now;
	for (int i = 0; i < MAX_PENDING; i++) {
		if (m->pending[i].state != NOBODY && now > m->pending[i].until)
			close_conn(&m->pending[i]);
		p[1 + i] = (struct pollfd){.fd = m->pending[i].fd, .events = POLLIN};
	}
	for (int i = 0; i < m->world; i++) {
		struct peer_conn *e = &m->conn[i];
		if (i < m->rank && e->state == NOBODY && now >= e->until)
			connect_to_rank(m, i);
		if (i < m->rank && e->state == NOBODY)
			wait = wait < RETRY_S ? wait : RETRY_S;
		p[1 + MAX_PENDING + i] = (struct pollfd){.fd = e->state == THERE ? -1 : e->fd, .events = e->state == CONNECTS ? POLLOUT : POLLIN};
	}
	if (wait > PROOF_S)
		wait = PROOF_S; /* the poll returns in time to close pending connections on which nothing arrives */
	if (gt_poll(p, 1 + MAX_PENDING + m->world, wait) < 0)
		m->failed = errno;
	for (int i = 0; i < m->world; i++)
		if (p[1 + MAX_PENDING + i].revents)
			advance_handshake(m, i);
	for (int i = 0; i < MAX_PENDING; i++)
		if (p[1 + i].revents && m->pending[i].state == HEARS && read_message(&m->pending[i], m->pending[i].proof, PROOF))
			verify_peer(m, &m->pending[i]);
	if (p[0].revents)
		accept_peer(m);
}

static int find_missing_rank(const struct mesh_setup *m)
{
	for (int i = 0; i < m->world; i++)
		if (i != m->rank && m->conn[i].state != THERE)
			return i;
	return -1;
}

bool gt_gloo_meet(int listener, int rank, int world, const char *id, const struct gloo_place *at, double timeout_s, int *fd,
                  char why[GL_WHY])
{
	struct mesh_setup *m = calloc(1, sizeof *m);
	double deadline = gt_clock() + timeout_s;
	if (!m) {
		snprintf(why, GL_WHY, "rank %d is out of memory", rank);
		return false;
	}
	*m = (struct mesh_setup){.listener = listener, .rank = rank, .world = world, .id = id, .at = at};
	for (int i = 0; i < GT_COMM_RANKS; i++)
		m->conn[i].fd = -1;
	for (int i = 0; i < MAX_PENDING; i++)
		m->pending[i].fd = -1;
	while (find_missing_rank(m) >= 0 && !m->failed && gt_clock() < deadline)
		poll_connections(m, deadline);
	int out = find_missing_rank(m);
	if (out >= 0 && m->failed)
		snprintf(why, GL_WHY, "rank %d cannot accept the other ranks: %s", rank, strerror(m->failed));
	else if (out >= 0)
		snprintf(why, GL_WHY, "rank %d has no connection to rank %d after %g s%s%s", rank, out, timeout_s, m->error[out] ? ": " : "",
		         m->error[out] ? strerror(m->error[out]) : "");
	for (int i = 0; i < world; i++) {
		fd[i] = out < 0 ? m->conn[i].fd : -1;
		if (out >= 0)
			close_conn(&m->conn[i]);
	}
	for (int i = 0; i < MAX_PENDING; i++)
		close_conn(&m->pending[i]);
	free(m);
	return out < 0;
}
