#include "base/peer_auth.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define NONCE GT_SHA256_SIZE
#define BACKLOG 4096       /* maximum number of connections that wait for accept(2) */
#define CLAIMS (8 + NONCE) /* bytes of the connector's proof before its mac: two claims and the nonce */
#define POLL_S 0.5         /* maximum seconds of one poll, so that pending connections on which nothing arrives are closed in time */

/* ---- messages ----------------------------------------------------------------------------------------------------------------------- */
static void compute_mac(const struct gt_auth *a, const struct gt_peer_auth *p, const char *side, unsigned char out[GT_SHA256_SIZE])
{
	struct gt_hmac h;
	gt_hmac_start(&h, a->secret, a->bytes);
	gt_sha256_add(&h.inner, side, strlen(side) + 1);
	gt_sha256_add(&h.inner, p->hello, sizeof p->hello);
	gt_sha256_add(&h.inner, p->proof, CLAIMS);
	gt_hmac_end(&h, out);
}

/* Sends a message without blocking: each message of the handshake fits into the send buffer of any socket. */
static bool send_message(const struct gt_peer_auth *p, const void *data, size_t n)
{
	return send(p->fd, data, n, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)n;
}

/* Reads more of the expected message. Returns true once it is complete. */
static bool read_message(struct gt_peer_auth *p, unsigned char *into, size_t size)
{
	ssize_t n = recv(p->fd, into + p->got, size - p->got, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) /* the connection ended; an acceptor ends it without an answer if the connector's proof is wrong */
		p->state = p->state == GT_AUTH_NEEDS_ANSWER ? GT_AUTH_OTHER_SECRET : GT_AUTH_STRANGER;
	else
		p->got += (size_t)n;
	return n > 0 && p->got == size;
}

static void send_proof(struct gt_auth *a, struct gt_peer_auth *p)
{
	p->got = 0;
	p->state = GT_AUTH_NEEDS_ANSWER;
	gt_put_u32(p->proof, p->claim[0]);
	gt_put_u32(p->proof + 4, p->claim[1]);
	bool good = getrandom(p->proof + 8, NONCE, 0) == NONCE;
	compute_mac(a, p, "client", p->proof + CLAIMS);
	compute_mac(a, p, "server", p->wanted);
	if (memcmp(p->hello, a->magic, GT_AUTH_MAGIC))
		p->state = GT_AUTH_STRANGER;
	else if (!good || !send_message(p, p->proof, sizeof p->proof))
		p->state = GT_AUTH_OTHER_SECRET;
}

static void advance_handshake(struct gt_auth *a, struct gt_peer_auth *p)
{
	struct epoll_event e = {.events = EPOLLIN, .data.ptr = p};
	socklen_t n = sizeof p->error;
	if (p->state == GT_AUTH_CONNECTS) {
		bool failed = getsockopt(p->fd, SOL_SOCKET, SO_ERROR, &p->error, &n) || epoll_ctl(a->epoll, EPOLL_CTL_MOD, p->fd, &e);
		p->error = failed ? errno : p->error;
		p->state = p->error ? GT_AUTH_UNREACHABLE : GT_AUTH_NEEDS_HELLO;
	} else if (p->state == GT_AUTH_NEEDS_HELLO && read_message(p, p->hello, sizeof p->hello)) {
		send_proof(a, p);
	} else if (p->state == GT_AUTH_NEEDS_PROOF && read_message(p, p->proof, sizeof p->proof)) {
		p->claim[0] = gt_get_u32(p->proof);
		p->claim[1] = gt_get_u32(p->proof + 4);
		compute_mac(a, p, "client", p->wanted);
		p->state = gt_mac_equal(p->wanted, p->proof + CLAIMS) ? GT_AUTH_PROVEN : GT_AUTH_OTHER_SECRET;
	} else if (p->state == GT_AUTH_NEEDS_ANSWER && read_message(p, p->answer, sizeof p->answer)) {
		p->state = gt_mac_equal(p->wanted, p->answer) ? GT_AUTH_DONE : GT_AUTH_OTHER_SECRET;
	}
}

/* ---- listening ---------------------------------------------------------------------------------------------------------------------- */
void gt_auth_set_port(struct sockaddr_storage *at, int port)
{
	in_port_t number = htons((uint16_t)port);
	if (at->ss_family == AF_INET)
		((struct sockaddr_in *)at)->sin_port = number;
	else
		((struct sockaddr_in6 *)at)->sin6_port = number;
}

int gt_auth_listen_at(const struct addrinfo *list, int port, struct sockaddr_storage *at, int *error)
{
	int fd = -1, on = 1;
	for (const struct addrinfo *a = list; a && fd < 0; a = a->ai_next) {
		struct sockaddr_storage to = {0};
		socklen_t n = sizeof *at;
		memcpy(&to, a->ai_addr, a->ai_addrlen);
		gt_auth_set_port(&to, port);
		fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd >= 0 && port)
			setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on); /* connections in TIME_WAIT must not make the bind fail */
		if (fd >= 0 && !bind(fd, (struct sockaddr *)&to, a->ai_addrlen) && !listen(fd, BACKLOG) &&
		    (!at || !getsockname(fd, (struct sockaddr *)at, &n)))
			break;
		*error = errno;
		gt_fd_close(&fd);
	}
	return fd;
}

int gt_auth_look_up(const char *addr, struct addrinfo **list)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
	*list = NULL;
	return getaddrinfo(addr, NULL, &hints, list);
}

int gt_auth_listen(const char *addr, int port, struct sockaddr_storage *at, int *error)
{
	struct addrinfo *list;
	int fd = -1;
	if ((*error = gt_auth_look_up(addr, &list)))
		return -1;
	fd = gt_auth_listen_at(list, port, at, error);
	freeaddrinfo(list);
	return fd;
}

/* ---- connections -------------------------------------------------------------------------------------------------------------------- */
/* Starts a connection in the given state. A message of the caller may take more than one write; with Nagle's algorithm the second write
 * would wait for the delayed acknowledgement of the first: 40 ms per exchange, half a second per start. */
static bool begin_handshake(struct gt_auth *a, struct gt_peer_auth *p, int fd, enum gt_auth_state state)
{
	int on = 1;
	struct epoll_event e = {.events = state == GT_AUTH_CONNECTS ? EPOLLOUT : EPOLLIN, .data.ptr = p};
	*p = (struct gt_peer_auth){.state = state, .fd = fd, .until = gt_clock() + GT_AUTH_PENDING_S};
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	return !epoll_ctl(a->epoll, EPOLL_CTL_ADD, fd, &e);
}

void gt_auth_connect(struct gt_auth *a, struct gt_peer_auth *p, const struct sockaddr *to, socklen_t bytes, uint32_t claim0,
                     uint32_t claim1)
{
	*p = (struct gt_peer_auth){.fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
	bool good = p->fd >= 0 && (!connect(p->fd, to, bytes) || errno == EINPROGRESS) && begin_handshake(a, p, p->fd, GT_AUTH_CONNECTS);
	p->claim[0] = claim0;
	p->claim[1] = claim1;
	if (!good) {
		p->error = errno;
		p->state = GT_AUTH_UNREACHABLE;
	}
}

/* Returns an unused entry or, if all are used, the oldest entry. With `used`: returns the oldest used entry, or NULL. */
static struct gt_peer_auth *choose_entry(struct gt_auth *a, bool used)
{
	struct gt_peer_auth *oldest = NULL;
	for (int i = 0; i < a->npending; i++) {
		struct gt_peer_auth *p = &a->pending[i];
		if (p->state == GT_AUTH_NONE && !used)
			return p;
		if (p->state != GT_AUTH_NONE && (!oldest || p->until < oldest->until))
			oldest = p;
	}
	return oldest;
}

/* Accepts one connection, and sends the hello. */
static void accept_peer(struct gt_auth *a)
{
	int fd = accept4(a->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), error = errno;
	struct gt_peer_auth *p = choose_entry(a, fd < 0);
	if (fd < 0 && !gt_descriptors_exhausted(error))
		return;
	if (p) /* frees an entry, or a descriptor: without one, the listener stays readable, and a loop around poll(2) would spin */
		gt_auth_close(p);
	else
		a->error = error;
	if (fd < 0)
		return;
	bool good = begin_handshake(a, p, fd, GT_AUTH_NEEDS_PROOF) && getrandom(p->hello + GT_AUTH_MAGIC, NONCE, 0) == NONCE;
	memcpy(p->hello, a->magic, GT_AUTH_MAGIC);
	if (!good || !send_message(p, p->hello, sizeof p->hello))
		gt_auth_close(p);
}

int gt_auth_poll(struct gt_auth *a, double wait_s)
{
	double now = gt_clock();
	for (int i = 0; i < a->npending; i++)
		if (a->pending[i].state != GT_AUTH_NONE && now > a->pending[i].until)
			gt_auth_close(&a->pending[i]);
	wait_s = wait_s < POLL_S ? wait_s : POLL_S;
	a->next = 0;
	a->events = epoll_wait(a->epoll, a->event, (int)(sizeof a->event / sizeof *a->event), wait_s > 0 ? (int)(wait_s * 1e3) + 1 : 0);
	return a->events < 0 && errno == EINTR ? 0 : a->events;
}

struct gt_peer_auth *gt_auth_next(struct gt_auth *a)
{
	while (a->next < a->events) {
		struct gt_peer_auth *p = a->event[a->next++].data.ptr;
		if (p)
			advance_handshake(a, p); /* harmless if the entry was closed or reused after the poll: its socket then has no data to read */
		else
			accept_peer(a);
		if (p && p->state >= GT_AUTH_PROVEN)
			return p;
	}
	return NULL;
}

int gt_auth_take(struct gt_auth *a, struct gt_peer_auth *p, unsigned char session[GT_SHA256_SIZE])
{
	int fd = p->fd;
	if (p->state == GT_AUTH_PROVEN) {
		compute_mac(a, p, "server", p->answer);
		if (!send_message(p, p->answer, sizeof p->answer)) {
			gt_auth_close(p);
			return -1;
		}
	}
	if (session)
		compute_mac(a, p, "session", session);
	epoll_ctl(a->epoll, EPOLL_CTL_DEL, fd, NULL);
	*p = (struct gt_peer_auth){0};
	return fd;
}

void gt_auth_close(struct gt_peer_auth *p)
{
	if (p->state != GT_AUTH_NONE)
		gt_fd_close(&p->fd); /* closing a descriptor removes it from epoll */
	*p = (struct gt_peer_auth){0};
}

bool gt_auth_open(struct gt_auth *a, const char *magic, const void *secret, size_t bytes, int listener, int peers)
{
	struct epoll_event e = {.events = EPOLLIN};
	*a = (struct gt_auth){.epoll = epoll_create1(EPOLL_CLOEXEC), .listener = listener, .magic = magic, .secret = secret, .bytes = bytes};
	if (a->epoll < 0 || listener < 0)
		return a->epoll >= 0;
	int n = peers > GT_AUTH_PENDING ? peers : GT_AUTH_PENDING;
	if (!(a->pending = calloc((size_t)n, sizeof *a->pending)))
		return false;
	a->npending = n;
	return !fcntl(listener, F_SETFL, O_NONBLOCK) && !epoll_ctl(a->epoll, EPOLL_CTL_ADD, listener, &e);
}

void gt_auth_shut(struct gt_auth *a)
{
	for (int i = 0; i < a->npending; i++)
		gt_auth_close(&a->pending[i]);
	free(a->pending);
	if (a->magic)
		gt_fd_close(&a->epoll);
	*a = (struct gt_auth){0};
}
