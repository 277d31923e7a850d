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
#define GUESTS 64      /* maximum number of unauthenticated connections; one more closes the oldest of them */
#define PROOF_S 2.0    /* seconds after which an unauthenticated connection is closed */
#define AGAIN_S 0.02   /* seconds between two attempts to reach a rank */

enum state { NOBODY, CONNECTS, HEARS, PROVES, THERE };

struct end {
	int fd;
	enum state state;
	double until; /* for a guest, the time at which it is closed; for a rank in state NOBODY, the time of the next attempt */
	size_t got;
	unsigned char hello[HELLO], proof[PROOF], mac[GT_SHA256_SIZE];
};

struct meeting {
	int listener, rank, world;
	const char *id;
	const struct gloo_place *at;
	struct end end[GT_COMM_RANKS], guest[GUESTS];
	int error[GT_COMM_RANKS]; /* errno of the last attempt to reach each rank; 0: the rank did not answer */
	int failed;               /* errno of the error for which the rank stops connecting; 0: none */
};

static void put(unsigned char *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (unsigned char)(v >> 8 * i);
}

static uint32_t get(const unsigned char *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static void mac_of(const struct meeting *m, const char *side, const struct end *e, unsigned char out[GT_SHA256_SIZE])
{
	struct gt_hmac h;
	gt_hmac_start(&h, m->id, strlen(m->id));
	gt_sha256_add(&h.inner, side, strlen(side) + 1);
	gt_sha256_add(&h.inner, e->hello + 16, NONCE);
	gt_sha256_add(&h.inner, e->proof, 8 + NONCE);
	gt_hmac_end(&h, out);
}

static void drop(struct end *e)
{
	if (e->fd >= 0)
		close(e->fd);
	*e = (struct end){.fd = -1, .until = gt_clock() + AGAIN_S};
}

/* Sends without blocking: all messages of this protocol fit into the buffer of any socket. */
static bool sent(const struct end *e, const void *p, size_t n)
{
	return send(e->fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)n;
}

/* Reads more of the expected message. Returns true once the message is complete. */
static bool more(struct end *e, unsigned char *into, size_t size)
{
	ssize_t n = recv(e->fd, into + e->got, size - e->got, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		drop(e);
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

static void greet(struct meeting *m)
{
	struct end *e = &m->guest[0];
	int fd = accept4(m->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0) {
		if (gt_descriptors_exhausted(errno)) /* no descriptor is left: the pending connection would keep the listener readable */
			m->failed = errno;
		return;
	}
	for (int i = 0; i < GUESTS; i++)
		if (m->guest[i].state == NOBODY || (e->state != NOBODY && m->guest[i].until < e->until))
			e = &m->guest[i];
	drop(e);
	*e = (struct end){.fd = fd, .state = HEARS, .until = gt_clock() + PROOF_S};
	memcpy(e->hello, MAGIC, 16);
	if (getrandom(e->hello + 16, NONCE, 0) != NONCE || !sent(e, e->hello, HELLO))
		drop(e);
}

static void admit(struct meeting *m, struct end *guest)
{
	unsigned char want[GT_SHA256_SIZE], answer[GT_SHA256_SIZE];
	uint32_t rank = get(guest->proof), to = get(guest->proof + 4);
	mac_of(m, "connects", guest, want);
	mac_of(m, "listens", guest, answer);
	if (!gt_mac_equal(want, guest->proof + 8 + NONCE) || rank >= (uint32_t)m->world || to != (uint32_t)m->rank || rank <= to ||
	    !sent(guest, answer, sizeof answer)) {
		drop(guest);
		return;
	}
	drop(&m->end[rank]); /* the peer connects again because it gave up an earlier connection, which is closed here */
	m->end[rank] = *guest;
	m->end[rank].state = THERE;
	*guest = (struct end){.fd = -1};
}

/* ---- connecting ---------------------------------------------------------------------------------------------------------------- */
static void knock(struct meeting *m, int rank)
{
	struct end *e = &m->end[rank];
	const struct gloo_place *at = &m->at[rank];
	*e = (struct end){.fd = socket(at->to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), .state = CONNECTS};
	if (e->fd < 0 || (connect(e->fd, (const struct sockaddr *)&at->to, at->bytes) && errno != EINPROGRESS)) {
		m->error[rank] = errno;
		drop(e);
	}
}

static void advance(struct meeting *m, int rank)
{
	struct end *e = &m->end[rank];
	if (e->state == CONNECTS) {
		socklen_t n = sizeof m->error[rank];
		if (getsockopt(e->fd, SOL_SOCKET, SO_ERROR, &m->error[rank], &n) || m->error[rank])
			drop(e);
		else
			e->state = HEARS;
	} else if (e->state == HEARS && more(e, e->hello, HELLO)) {
		put(e->proof, (uint32_t)m->rank);
		put(e->proof + 4, (uint32_t)rank);
		bool good = !memcmp(e->hello, MAGIC, 16) && getrandom(e->proof + 8, NONCE, 0) == NONCE;
		mac_of(m, "connects", e, e->proof + 8 + NONCE);
		e->state = PROVES;
		e->got = 0;
		if (!good || !sent(e, e->proof, PROOF))
			drop(e);
	} else if (e->state == PROVES && more(e, e->mac, sizeof e->mac)) {
		unsigned char want[GT_SHA256_SIZE];
		mac_of(m, "listens", e, want);
		e->state = THERE;
		if (!gt_mac_equal(e->mac, want))
			drop(e);
	}
}

/* ---- all connections together ------------------------------------------------------------------------------------------------------- */
/* One turn: closes guests (unauthenticated connections) whose time is over, starts connection attempts that are due, polls all sockets, and
 * advances those that are ready. */
static void turn(struct meeting *m, double deadline)
{
	struct pollfd p[1 + GUESTS + GT_COMM_RANKS] = {{.fd = m->listener, .events = POLLIN}};
	double now = gt_clock(), wait = deadline - now;
	for (int i = 0; i < GUESTS; i++) {
		if (m->guest[i].state != NOBODY && now > m->guest[i].until)
			drop(&m->guest[i]);
		p[1 + i] = (struct pollfd){.fd = m->guest[i].fd, .events = POLLIN};
	}
	for (int i = 0; i < m->world; i++) {
		struct end *e = &m->end[i];
		if (i < m->rank && e->state == NOBODY && now >= e->until)
			knock(m, i);
		if (i < m->rank && e->state == NOBODY)
			wait = wait < AGAIN_S ? wait : AGAIN_S;
		p[1 + GUESTS + i] = (struct pollfd){.fd = e->state == THERE ? -1 : e->fd, .events = e->state == CONNECTS ? POLLOUT : POLLIN};
	}
	if (wait > PROOF_S)
		wait = PROOF_S; /* the poll returns in time to close guests that send nothing */
	if (gt_poll(p, 1 + GUESTS + m->world, wait) < 0)
		m->failed = errno;
	for (int i = 0; i < m->world; i++)
		if (p[1 + GUESTS + i].revents)
			advance(m, i);
	for (int i = 0; i < GUESTS; i++)
		if (p[1 + i].revents && m->guest[i].state == HEARS && more(&m->guest[i], m->guest[i].proof, PROOF))
			admit(m, &m->guest[i]);
	if (p[0].revents)
		greet(m);
}

static int absent(const struct meeting *m)
{
	for (int i = 0; i < m->world; i++)
		if (i != m->rank && m->end[i].state != THERE)
			return i;
	return -1;
}

bool gt_gloo_meet(int listener, int rank, int world, const char *id, const struct gloo_place *at, double timeout_s, int *fd,
                  char why[GL_WHY])
{
	struct meeting *m = calloc(1, sizeof *m);
	double deadline = gt_clock() + timeout_s;
	if (!m) {
		snprintf(why, GL_WHY, "rank %d is out of memory", rank);
		return false;
	}
	*m = (struct meeting){.listener = listener, .rank = rank, .world = world, .id = id, .at = at};
	for (int i = 0; i < GT_COMM_RANKS; i++)
		m->end[i].fd = -1;
	for (int i = 0; i < GUESTS; i++)
		m->guest[i].fd = -1;
	while (absent(m) >= 0 && !m->failed && gt_clock() < deadline)
		turn(m, deadline);
	int out = absent(m);
	if (out >= 0 && m->failed)
		snprintf(why, GL_WHY, "rank %d cannot accept the other ranks: %s", rank, strerror(m->failed));
	else if (out >= 0)
		snprintf(why, GL_WHY, "rank %d has no connection to rank %d after %g s%s%s", rank, out, timeout_s, m->error[out] ? ": " : "",
		         m->error[out] ? strerror(m->error[out]) : "");
	for (int i = 0; i < world; i++) {
		fd[i] = out < 0 ? m->end[i].fd : -1;
		if (out >= 0)
			drop(&m->end[i]);
	}
	for (int i = 0; i < GUESTS; i++)
		drop(&m->guest[i]);
	free(m);
	return out < 0;
}
