#include "launch/hosts.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "launch/rendezvous.h"
#include "launch/rendezvous_parts.h"
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_PENDING 16           /* maximum number of unauthenticated connections at node 0; a further one closes the oldest */
#define PROOF_S 5.0              /* seconds in which a connection must be established and authenticated */
#define RETRY_S 0.02             /* seconds between two rounds over node 0's ports; the pause doubles after each round */
#define RETRY_MAX_S 0.2          /* maximum seconds between two rounds; it is less than LATE_S */
#define BYE_S 0.2                /* seconds for the rest of a message that has begun to arrive */
/* Seconds after a failure or a stop in which a host that connects late still gets the message. Later connections belong to its next
 * attempt. */
#define LATE_S 0.5

enum state { NOBODY, CONNECTS, GREETED, PROVES, JOINED };

/* One connection to another launcher. */
struct host_conn {
	struct gt_rdv_conn c;
	enum state state; /* state of the other end; unauthenticated connections at node 0 begin as GREETED */
	double until;
	int node;
	bool sent[2]; /* which of the two messages FAILED and STOPPED the other end has received */
	bool here; /* both ends have authenticated this connection, so the other end sends GT_HOST_BYE before it closes it in order */
	size_t got;
	unsigned char hello[GT_RDV_HELLO], proof[GT_RDV_PROOF], mac[GT_SHA256_SIZE];
};

struct gt_hosts {
	int node, nnodes, epoll, listener;
	unsigned char token[GT_TOKEN_SIZE];
	struct host_conn *line; /* node 0: [nnodes] with its own unused, then MAX_PENDING unauthenticated ones; other nodes: one */
	int lines;
	struct addrinfo *at; /* the addresses of node 0, which other nodes resolve once */
	int port, next;      /* node 0's first port, and the index of the next port to try */
	double again, pause;
	struct host_message_state {
		bool known;   /* a message of this kind has arrived; later ones are ignored, except that of a second SIGINT */
		bool fresh;   /* gt_hosts_receive() has not yet returned this message */
		double until; /* time until which hosts that connect receive this message */
		struct gt_host_message word;
	} news[2]; /* the message about a failure (FAILED) and the message about a stop (STOPPED) */
};
enum { FAILED, STOPPED };

static bool is_node0(const struct gt_hosts *h)
{
	return h->node == 0;
}

static void set_epoll_events(struct gt_hosts *h, int fd, int which, uint32_t events, int op)
{
	struct epoll_event e = {.events = events, .data.u32 = (uint32_t)which};
	epoll_ctl(h->epoll, op, fd, &e);
}

static void close_conn(struct host_conn *l)
{
	gt_rdv_close(&l->c.fd); /* closing a descriptor removes it from epoll */
	l->state = NOBODY;
}

/* Computes the proofs of both ends and the session key from the messages of the handshake. */
static void compute_macs(struct gt_hosts *h, struct host_conn *l, unsigned char client[GT_SHA256_SIZE],
                         unsigned char server[GT_SHA256_SIZE])
{
	gt_rdv_mac(h->token, "host client", l->hello, l->proof, client);
	gt_rdv_mac(h->token, "host server", l->hello, l->proof, server);
	gt_rdv_mac(h->token, "host session", l->hello, l->proof, l->c.key);
}

/* ---- messages ----------------------------------------------------------------------------------------------------------------------- */
/* Returns the number of entries of h->line that are or may become authenticated connections. */
static int count_peers(const struct gt_hosts *h)
{
	return is_node0(h) ? h->nnodes : 1;
}

static void send_message(struct gt_hosts *h, struct host_conn *l, const struct gt_host_message *w)
{
	if (l->state == JOINED && !gt_rdv_send_frame(&l->c, is_node0(h), w, sizeof *w, gt_clock()))
		close_conn(l); /* the other launcher does not read its messages */
}

/* Sends each known message to every connected host that has not received it. */
static void broadcast_messages(struct gt_hosts *h)
{
	for (int k = 0; k < 2; k++)
		for (int i = 0; h->news[k].known && i < count_peers(h); i++) {
			struct host_conn *l = &h->line[i];
			if (l->state != JOINED || l->sent[k] || l->node == h->news[k].word.node)
				continue;
			l->sent[k] = true;
			send_message(h, l, &h->news[k].word);
		}
}

/* Stores a message about a failure or a stop, unless there is one already, and sends it to the other hosts. */
static void record_message(struct gt_hosts *h, const struct gt_host_message *w, double late_s)
{
	int k = w->kind == GT_HOST_STOPS ? STOPPED : FAILED;
	struct host_message_state *n = &h->news[k];
	bool kills = n->known && k == STOPPED && w->step && !n->word.step;
	if ((n->known && !kills) || (w->kind != GT_HOST_FAILS && w->kind != GT_HOST_STOPS))
		return;
	for (int i = 0; i < count_peers(h); i++)
		h->line[i].sent[k] = false;
	*n = (struct host_message_state){.known = true, .fresh = w->node != h->node, .until = gt_clock() + late_s, .word = *w};
	n->word.host[sizeof w->host - 1] = n->word.why[sizeof w->why - 1] = 0;
	broadcast_messages(h);
}

bool gt_hosts_pending(const struct gt_hosts *h)
{
	for (int k = 0; h && k < 2; k++) {
		const struct host_message_state *n = &h->news[k];
		if (!n->known || gt_clock() > n->until || (!is_node0(h) && n->word.node != h->node))
			continue;
		for (int i = is_node0(h); i < count_peers(h); i++)
			if (!h->line[i].sent[k] && (is_node0(h) ? i : 0) != n->word.node)
				return true;
	}
	return false;
}

static void on_disconnect(struct gt_hosts *h, struct host_conn *l)
{
	struct gt_host_message w = {.kind = GT_HOST_FAILS, .node = l->node, .rank = -1, .code = GT_EPEER, .step = -1};
	bool joined = l->state == JOINED && l->here;
	close_conn(l);
	snprintf(w.why, sizeof w.why, "its launcher has ended");
	if (joined)
		record_message(h, &w, LATE_S);
}

static void read_message(struct gt_hosts *h, struct host_conn *l)
{
	unsigned char *data;
	size_t n;
	if (!gt_rdv_recv_frame(&l->c, is_node0(h), sizeof(struct gt_host_message), &data, &n, gt_clock() + BYE_S)) {
		on_disconnect(h, l);
		return;
	}
	const struct gt_host_message *w = (const struct gt_host_message *)(const void *)data;
	if (n == sizeof *w && w->kind == GT_HOST_HERE)
		l->here = true;
	else if (n != sizeof *w || (is_node0(h) && w->node != l->node) || w->kind == GT_HOST_BYE)
		close_conn(l);
	else
		record_message(h, w, LATE_S);
	if (h->news[FAILED].known && !is_node0(h))
		close_conn(l); /* no other message will follow; node 0 waits for this close */
	free(data);
}

/* ---- node 0: accepts connections ---------------------------------------------------------------------------------------------------- */
static void accept_peer(struct gt_hosts *h)
{
	int which = h->nnodes, on = 1, fd = accept4(h->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0) {
		if (gt_descriptors_exhausted(errno)) /* the listener would stay readable; without it, hosts report only what their ranks observed */
			gt_rdv_close(&h->listener);
		return;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	for (int i = h->nnodes; i < h->lines; i++)
		if (h->line[i].state == NOBODY || (h->line[which].state != NOBODY && h->line[i].until < h->line[which].until))
			which = i;
	struct host_conn *l = &h->line[which];
	close_conn(l);
	*l = (struct host_conn){.c.fd = fd, .state = GREETED, .until = gt_clock() + PROOF_S};
	memcpy(l->hello, GT_HOSTS_MAGIC, 16);
	set_epoll_events(h, fd, which, EPOLLIN, EPOLL_CTL_ADD);
	if (getrandom(l->hello + 16, GT_SHA256_SIZE, 0) != GT_SHA256_SIZE || !gt_rdv_send(fd, l->hello, sizeof l->hello, gt_clock()))
		close_conn(l);
}

static void verify_peer(struct gt_hosts *h, struct host_conn *l)
{
	unsigned char client[GT_SHA256_SIZE], server[GT_SHA256_SIZE];
	compute_macs(h, l, client, server);
	uint32_t node = gt_rdv_get(l->proof), nnodes = gt_rdv_get(l->proof + 4);
	if (!gt_mac_equal(client, l->proof + 8 + GT_SHA256_SIZE) || nnodes != (uint32_t)h->nnodes || !node || node >= nnodes ||
	    h->line[node].state == JOINED || !gt_rdv_send(l->c.fd, server, sizeof server, gt_clock())) {
		close_conn(l);
		return;
	}
	h->line[node] = *l;
	h->line[node].state = JOINED;
	h->line[node].node = (int)node;
	*l = (struct host_conn){.c.fd = -1};
	set_epoll_events(h, h->line[node].c.fd, (int)node, EPOLLIN, EPOLL_CTL_MOD);
	broadcast_messages(h);
}

/* ---- other nodes: connect to node 0 ------------------------------------------------------------------------------------------------- */
/* Begins to connect to the next port of node 0. */
static void connect_to_node0(struct gt_hosts *h)
{
	struct host_conn *l = &h->line[0];
	struct addrinfo *a = h->at;
	for (int k = h->next / GT_RENDEZVOUS_PORTS; a && k; k--)
		a = a->ai_next;
	if (!a) { /* all ports of all addresses failed: the next round begins after a pause */
		h->next = 0;
		h->pause = h->pause > 0 ? h->pause * 2 : RETRY_S;
		h->pause = h->pause < RETRY_MAX_S ? h->pause : RETRY_MAX_S;
		h->again = gt_clock() + h->pause;
		return;
	}
	struct sockaddr_storage to;
	int on = 1, port = h->port + h->next++ % GT_RENDEZVOUS_PORTS;
	memcpy(&to, a->ai_addr, a->ai_addrlen);
	if (a->ai_family == AF_INET)
		((struct sockaddr_in *)&to)->sin_port = htons((uint16_t)port);
	else
		((struct sockaddr_in6 *)&to)->sin6_port = htons((uint16_t)port);
	*l = (struct host_conn){
	    .c.fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), .state = CONNECTS, .until = gt_clock() + PROOF_S};
	if (l->c.fd < 0 || port > 65535 || (connect(l->c.fd, (struct sockaddr *)&to, a->ai_addrlen) && errno != EINPROGRESS)) {
		close_conn(l);
		return;
	}
	setsockopt(l->c.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	set_epoll_events(h, l->c.fd, 0, EPOLLOUT, EPOLL_CTL_ADD);
}

static void on_connected(struct gt_hosts *h, struct host_conn *l)
{
	int error = 0;
	socklen_t n = sizeof error;
	if (getsockopt(l->c.fd, SOL_SOCKET, SO_ERROR, &error, &n) || error) {
		close_conn(l);
		return;
	}
	l->state = GREETED;
	set_epoll_events(h, l->c.fd, 0, EPOLLIN, EPOLL_CTL_MOD);
}

static void send_proof(struct gt_hosts *h, struct host_conn *l)
{
	gt_rdv_put(l->proof, (uint32_t)h->node);
	gt_rdv_put(l->proof + 4, (uint32_t)h->nnodes);
	bool good = !memcmp(l->hello, GT_HOSTS_MAGIC, 16) && getrandom(l->proof + 8, GT_SHA256_SIZE, 0) == GT_SHA256_SIZE;
	compute_macs(h, l, l->proof + 8 + GT_SHA256_SIZE, l->mac);
	l->state = PROVES;
	l->got = 0;
	if (!good || !gt_rdv_send(l->c.fd, l->proof, sizeof l->proof, gt_clock()))
		close_conn(l);
}

static void verify_node0(struct gt_hosts *h, struct host_conn *l)
{
	if (!gt_mac_equal(l->mac, l->hello)) { /* the server's answer was read into `hello` */
		close_conn(l);
		return;
	}
	struct gt_host_message here = {.kind = GT_HOST_HERE, .node = h->node};
	l->state = JOINED;
	l->here = true;
	send_message(h, l, &here);
	broadcast_messages(h);
}

/* ---- one turn ----------------------------------------------------------------------------------------------------------------------- */
/* Reads more of a handshake message. Returns true once it is complete. */
static bool read_handshake(struct host_conn *l, unsigned char *into, size_t size)
{
	ssize_t n = recv(l->c.fd, into + l->got, size - l->got, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		close_conn(l);
		return false;
	}
	l->got += (size_t)n;
	return l->got == size;
}

static void handle_event(struct gt_hosts *h, struct host_conn *l)
{
	if (l->state == JOINED)
		read_message(h, l);
	else if (is_node0(h) && l->state == GREETED && read_handshake(l, l->proof, sizeof l->proof))
		verify_peer(h, l);
	else if (!is_node0(h) && l->state == CONNECTS)
		on_connected(h, l);
	else if (!is_node0(h) && l->state == GREETED && read_handshake(l, l->hello, sizeof l->hello))
		send_proof(h, l);
	else if (l->state == PROVES && read_handshake(l, l->hello, GT_SHA256_SIZE))
		verify_node0(h, l);
}

bool gt_hosts_receive(struct gt_hosts *h, struct gt_host_message *out)
{
	struct epoll_event e[32];
	if (!h)
		return false;
	int n = epoll_wait(h->epoll, e, 32, 0);
	for (int i = 0; i < n; i++) {
		int which = (int)e[i].data.u32;
		if (which == h->lines && h->news[FAILED].known && !gt_hosts_pending(h))
			gt_rdv_close(&h->listener);
		else if (which == h->lines)
			accept_peer(h);
		else
			handle_event(h, &h->line[which]);
	}
	double now = gt_clock();
	for (int i = 0; i < h->lines; i++)
		if (h->line[i].state != NOBODY && h->line[i].state != JOINED && now > h->line[i].until)
			close_conn(&h->line[i]);
	bool connects = !is_node0(h) && (!h->news[FAILED].known || gt_hosts_pending(h));
	for (int k = 0; k < GT_RENDEZVOUS_PORTS && connects && h->line[0].state == NOBODY && now >= h->again; k++)
		connect_to_node0(h);
	for (int k = 1; k >= 0; k--) /* a stop is returned before a failure, because a host that was stopped has not failed */
		if (h->news[k].fresh) {
			h->news[k].fresh = false;
			*out = h->news[k].word;
			return true;
		}
	return false;
}

void gt_hosts_send_end(struct gt_hosts *h, const struct gt_launch_end *end)
{
	if (!h)
		return;
	struct gt_host_message w = {.kind = GT_HOST_FAILS, .node = h->node, .rank = end->rank, .code = (int32_t)end->code, .step = end->step};
	gethostname(w.host, sizeof w.host - 1);
	snprintf(w.why, sizeof w.why, "%s", end->why);
	record_message(h, &w, LATE_S);
}

void gt_hosts_stop(struct gt_hosts *h, int sig, bool kill, double late_s)
{
	if (!h)
		return;
	struct gt_host_message w = {.kind = GT_HOST_STOPS, .node = h->node, .rank = -1, .code = sig, .step = kill};
	gethostname(w.host, sizeof w.host - 1);
	record_message(h, &w, late_s > 0 ? late_s : LATE_S);
}

int gt_hosts_fd(const struct gt_hosts *h)
{
	return h ? h->epoll : -1;
}

/* ---- open and close ------------------------------------------------------------------------------------------------------------ */
static enum gt_code open_listeners(struct gt_hosts *h, const struct gt_launch_spec *s, int *rendezvous_fd, struct gt_err *err)
{
	struct gt_world w = {.how = "gtrain", .port = s->port};
	snprintf(w.addr, sizeof w.addr, "%s", s->addr);
	/* the listener of the ranks gets the first port, which may be the only one that a firewall allows */
	if ((*rendezvous_fd = gt_rdv_listen(&w, err)) < 0)
		return GT_EPEER;
	h->listener = gt_rdv_listen(&w, NULL);
	if (h->listener >= 0 && !fcntl(h->listener, F_SETFL, O_NONBLOCK))
		set_epoll_events(h, h->listener, h->lines, EPOLLIN, EPOLL_CTL_ADD);
	return GT_OK;
}

enum gt_code gt_hosts_open(const struct gt_launch_spec *s, const unsigned char *token, int *rendezvous_fd, struct gt_hosts **out,
                           struct gt_err *err)
{
	struct gt_hosts *h = calloc(1, sizeof *h);
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	*rendezvous_fd = -1;
	*out = NULL;
	if (!h)
		return gt_fail(err, GT_EFAIL, "out of memory");
	h->node = s->node;
	h->nnodes = s->nnodes;
	h->port = s->port;
	h->listener = -1;
	h->lines = is_node0(h) ? s->nnodes + MAX_PENDING : 1;
	memcpy(h->token, token, sizeof h->token);
	h->epoll = epoll_create1(EPOLL_CLOEXEC);
	h->line = calloc((size_t)h->lines, sizeof *h->line);
	for (int i = 0; h->line && i < h->lines; i++)
		h->line[i].c.fd = -1;
	enum gt_code code = h->epoll >= 0 && h->line ? GT_OK : gt_fail(err, GT_EFAIL, "out of memory or descriptors");
	if (code == GT_OK && is_node0(h))
		code = open_listeners(h, s, rendezvous_fd, err);
	else if (code == GT_OK && getaddrinfo(s->addr, NULL, &hints, &h->at))
		h->at = NULL; /* the ranks of this host will report that node 0's name has no address */
	if (code == GT_OK)
		*out = h;
	else
		gt_hosts_close(h);
	return code;
}

void gt_hosts_close(struct gt_hosts *h)
{
	if (!h)
		return;
	struct gt_host_message bye = {.kind = GT_HOST_BYE, .node = h->node}, other;
	double late = gt_clock() + LATE_S;
	while (h->line && gt_hosts_pending(h) && gt_clock() < late) {
		struct pollfd p = {.fd = h->epoll, .events = POLLIN};
		poll(&p, 1, 5);
		gt_hosts_receive(h, &other);
	}
	double until = gt_clock() + BYE_S;
	for (int i = 0; h->line && i < h->lines; i++)
		if (h->line[i].state == JOINED) {
			send_message(h, &h->line[i], &bye);
			shutdown(h->line[i].c.fd, SHUT_WR);
		}
	/* the launcher waits before it closes a connection, because a close with unread data would discard sent messages */
	for (int i = 0; h->line && i < h->lines; i++)
		if (h->line[i].state == JOINED)
			gt_rdv_drain_close(&h->line[i].c.fd, until);
		else
			gt_rdv_close(&h->line[i].c.fd);
	gt_rdv_close(&h->listener);
	gt_rdv_close(&h->epoll);
	if (h->at)
		freeaddrinfo(h->at);
	free(h->line);
	explicit_bzero(h, sizeof *h);
	free(h);
}
