#include "launch/hosts.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/peer_auth.h"
#include "launch/port_search.h"
#include "launch/rendezvous.h"
#include "launch/rendezvous_parts.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define BYE_S 0.2 /* seconds for the rest of a message that has begun to arrive */
/* Seconds after a failure or a stop in which a host that connects late still gets the message. Later connections belong to its next
 * attempt. */
#define LATE_S 0.5

/* One authenticated connection to another launcher. */
struct host_conn {
	struct gt_rdv_conn c; /* c.fd -1: not connected */
	int node;
	int number;    /* --node-rank of the other host */
	char host[64]; /* name of the other host; empty: it is not known yet */
	bool lost;     /* the other host has sent GT_HOST_LOSES */
	bool sent[2]; /* which of the two messages FAILED and STOPPED the other end has received */
	bool here; /* both ends are authenticated: the other end sends GT_HOST_BYE before it closes the connection in order */
};

struct gt_hosts {
	int node, nnodes, number, epoll, listener; /* number: gt_launch_spec.node_rank */
	unsigned char token[GT_TOKEN_SIZE];
	struct gt_auth auth;
	struct gt_peer_auth node0; /* other nodes: the connection to node 0 until both ends have authenticated it */
	struct host_conn *line;    /* node 0: [nnodes], its own entry unused; other nodes: one entry, for node 0 */
	struct gt_port_search search; /* other nodes: search of node 0's port */
	struct host_message_state {
		bool known;   /* a message of this kind has arrived; later messages are ignored, except a second SIGINT */
		bool fresh;   /* gt_hosts_receive() has not yet returned this message */
		double until; /* time (gt_clock) until which a host that connects gets this message */
		struct gt_host_message word;
	} news[2]; /* the message about a failure (FAILED) and the message about a stop (STOPPED) */
	bool lost;                     /* a rank of this host has lost a peer */
	struct gt_host_message loss;   /* node 0: the first message of the kind LOSES; kind 0: none */
	bool settled;                  /* node 0: `loss` is passed on as the cause */
};
enum { FAILED, STOPPED };

static bool is_node0(const struct gt_hosts *h)
{
	return h->node == 0;
}

/* Returns the number of entries of h->line. */
static int count_peers(const struct gt_hosts *h)
{
	return is_node0(h) ? h->nnodes : 1;
}

/* Adds a descriptor to epoll. number: an index in h->line, or count_peers() for h->auth. */
static void watch_fd(struct gt_hosts *h, int fd, int number)
{
	struct epoll_event e = {.events = EPOLLIN, .data.u32 = (uint32_t)number};
	epoll_ctl(h->epoll, EPOLL_CTL_ADD, fd, &e);
}

static void close_conn(struct host_conn *l)
{
	gt_fd_close(&l->c.fd); /* closing a descriptor removes it from epoll */
}

/* ---- messages ----------------------------------------------------------------------------------------------------------------------- */
static void send_message(struct gt_hosts *h, struct host_conn *l, const struct gt_host_message *w)
{
	if (l->c.fd >= 0 && !gt_rdv_send_frame(&l->c, is_node0(h), w, sizeof *w, gt_clock()))
		close_conn(l); /* the send buffer is full, because the other launcher reads no messages, or the connection is lost */
}

/* Sends each known message to every connected host that has not received it. Only node 0 forwards messages of other hosts. */
static void broadcast_messages(struct gt_hosts *h)
{
	for (int k = 0; k < 2; k++)
		for (int i = 0; h->news[k].known && (is_node0(h) || h->news[k].word.node == h->node) && i < count_peers(h); i++) {
			struct host_conn *l = &h->line[i];
			/* the host that has lost a peer is told, too, that its loss is the cause */
			if (l->c.fd < 0 || l->sent[k] || (l->node == h->news[k].word.node && !h->settled))
				continue;
			l->sent[k] = true;
			send_message(h, l, &h->news[k].word);
		}
}

/* Stores a message about a failure or a stop, unless one is stored already, and sends it to the other hosts. fresh: gt_hosts_receive()
 * returns it. */
static void record_message(struct gt_hosts *h, const struct gt_host_message *w, double late_s, bool fresh)
{
	int k = w->kind == GT_HOST_STOPS ? STOPPED : FAILED;
	struct host_message_state *n = &h->news[k];
	bool kills = n->known && k == STOPPED && w->step && !n->word.step;
	if ((n->known && !kills) || (w->kind != GT_HOST_FAILS && w->kind != GT_HOST_STOPS))
		return;
	for (int i = 0; i < count_peers(h); i++)
		h->line[i].sent[k] = false;
	*n = (struct host_message_state){.known = true, .fresh = fresh, .until = gt_clock() + late_s, .word = *w};
	n->word.host[sizeof w->host - 1] = n->word.why[sizeof w->why - 1] = 0;
	broadcast_messages(h);
}

/* On node 0: passes the first loss of a peer on as the cause if no host knows another one. all: also if some hosts have not told yet
 * whether they do. */
static void settle_loss(struct gt_hosts *h, bool all)
{
	bool waits = !h->lost;
	for (int i = 1; i < h->nnodes; i++)
		waits |= h->line[i].c.fd >= 0 && h->line[i].here && !h->line[i].lost;
	if (!h->loss.kind || h->news[FAILED].known || (waits && !all))
		return;
	struct gt_host_message w = h->loss;
	w.kind = GT_HOST_FAILS;
	h->settled = true;
	record_message(h, &w, LATE_S, true);
}

static void record_loss(struct gt_hosts *h, const struct gt_host_message *w)
{
	if (!h->loss.kind) {
		h->loss = *w;
		h->loss.host[sizeof w->host - 1] = h->loss.why[sizeof w->why - 1] = 0;
	}
	settle_loss(h, false);
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
	bool joined = l->here;
	close_conn(l);
	snprintf(w.why, sizeof w.why, "its launcher has ended");
	snprintf(w.host, sizeof w.host, "%s", l->host);
	w.number = l->number;
	if (joined)
		record_message(h, &w, LATE_S, true);
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
	if (n != sizeof *w || w->code < 0 || w->code > GT_RDV_CODE_MAX) {
		close_conn(l);
	} else if (w->kind == GT_HOST_HERE) {
		l->here = true;
		l->number = w->number;
		snprintf(l->host, sizeof l->host, "%.63s", w->host);
	} else if (w->kind == GT_HOST_LOSES && is_node0(h) && w->node == l->node) {
		l->lost = true;
		record_loss(h, w);
	} else if ((is_node0(h) && w->node != l->node) || w->kind == GT_HOST_BYE) {
		close_conn(l);
	} else {
		record_message(h, w, LATE_S, true);
	}
	if (h->news[FAILED].known && !is_node0(h))
		close_conn(l); /* a failure is the last message of an attempt, and node 0 waits until the connection is closed */
	free(data);
}

/* ---- one turn ----------------------------------------------------------------------------------------------------------------------- */
/* Returns whether an authenticated peer is a host that is not connected yet. */
static bool is_missing(const struct gt_hosts *h, const struct gt_peer_auth *p)
{
	uint32_t node = p->claim[0], nnodes = p->claim[1];
	return nnodes == (uint32_t)h->nnodes && node && node < nnodes && h->line[node].c.fd < 0;
}

/* Continues the handshakes. Authenticated connections become entries of h->line. */
static void advance_handshakes(struct gt_hosts *h)
{
	gt_auth_poll(&h->auth, 0);
	for (struct gt_peer_auth *p; (p = gt_auth_next(&h->auth)); gt_auth_close(p)) {
		int node = is_node0(h) ? (int)p->claim[0] : 0; /* checked by is_missing */
		struct host_conn c = {.node = node, .here = !is_node0(h)};
		struct gt_host_message here = {.kind = GT_HOST_HERE, .node = h->node, .number = h->number};
		gethostname(here.host, sizeof here.host - 1);
		if (p->state != GT_AUTH_DONE && (p->state != GT_AUTH_PROVEN || !is_missing(h, p)))
			continue;
		if ((c.c.fd = gt_auth_take(&h->auth, p, c.c.key)) < 0)
			continue;
		h->line[node] = c;
		watch_fd(h, c.c.fd, node);
		send_message(h, &h->line[node], &here);
		broadcast_messages(h);
	}
	if (h->auth.error) /* close the listener, which would remain readable; hosts then report only failures that their own ranks observed */
		gt_fd_close(&h->listener);
}

/* Closes the listener if a waiting connection belongs to the next attempt. */
static void close_late_listener(struct gt_hosts *h)
{
	struct pollfd p = {.fd = h->listener, .events = POLLIN};
	if (h->news[FAILED].known && !gt_hosts_pending(h) && gt_poll(&p, 1, 0) > 0)
		gt_fd_close(&h->listener);
}

bool gt_hosts_receive(struct gt_hosts *h, struct gt_host_message *out)
{
	struct epoll_event e[32];
	if (!h)
		return false;
	int n = epoll_wait(h->epoll, e, 32, 0);
	for (int i = 0; i < n; i++)
		if ((int)e[i].data.u32 < count_peers(h) && h->line[e[i].data.u32].c.fd >= 0)
			read_message(h, &h->line[e[i].data.u32]);
	close_late_listener(h);
	advance_handshakes(h);
	if (!is_node0(h) && h->line[0].c.fd < 0 && (!h->news[FAILED].known || gt_hosts_pending(h))) {
		h->line[0] = (struct host_conn){.c.fd = -1}; /* no message has been sent on the next connection */
		gt_port_search_advance(&h->search, &h->auth, &h->node0, (uint32_t)h->node, (uint32_t)h->nnodes);
	}
	for (int k = 1; k >= 0; k--) /* a stop is returned before a failure, because a host that was stopped has not failed */
		if (h->news[k].fresh) {
			h->news[k].fresh = false;
			*out = h->news[k].word;
			return true;
		}
	return false;
}

static struct gt_host_message make_message(const struct gt_hosts *h, uint32_t kind, const struct gt_launch_end *end)
{
	struct gt_host_message w = {.kind = kind, .node = h->node, .number = h->number, .rank = end->rank, .code = (int32_t)end->code,
	                            .step = end->step};
	gethostname(w.host, sizeof w.host - 1);
	snprintf(w.why, sizeof w.why, "%s", end->why);
	return w;
}

void gt_hosts_send_end(struct gt_hosts *h, const struct gt_launch_end *end)
{
	if (!h)
		return;
	struct gt_host_message w = make_message(h, GT_HOST_FAILS, end);
	record_message(h, &w, LATE_S, false);
}

void gt_hosts_send_loss(struct gt_hosts *h, const struct gt_launch_end *end)
{
	if (!h || h->lost)
		return;
	struct gt_host_message w = make_message(h, GT_HOST_LOSES, end);
	h->lost = true;
	if (is_node0(h))
		record_loss(h, &w);
	else
		send_message(h, &h->line[0], &w);
}

void gt_hosts_settle_loss(struct gt_hosts *h)
{
	if (h && is_node0(h))
		settle_loss(h, true);
}

void gt_hosts_stop(struct gt_hosts *h, int sig, bool kill, double late_s)
{
	if (!h)
		return;
	struct gt_host_message w = {.kind = GT_HOST_STOPS, .node = h->node, .number = h->number, .rank = -1, .code = sig, .step = kill};
	gethostname(w.host, sizeof w.host - 1);
	record_message(h, &w, late_s > 0 ? late_s : LATE_S, false);
}

bool gt_hosts_joined(const struct gt_hosts *h)
{
	return h && !is_node0(h) && h->line[0].c.fd >= 0;
}

int gt_hosts_fd(const struct gt_hosts *h)
{
	return h ? h->epoll : -1;
}

/* ---- open and close ------------------------------------------------------------------------------------------------------------ */
static enum gt_code open_listeners(struct gt_hosts *h, const struct gt_launch_spec *s, int *rendezvous_fd, struct gt_err *err)
{
	/* the listener of the ranks gets the first port, which may be the only one that a firewall allows */
	if ((*rendezvous_fd = gt_rdv_listen(s->addr, s->port, s->addresses, err)) < 0)
		return GT_EPEER;
	h->listener = gt_rdv_listen(s->addr, s->port, s->addresses, NULL);
	return GT_OK;
}

enum gt_code gt_hosts_open(const struct gt_launch_spec *s, const unsigned char *token, int *rendezvous_fd, struct gt_hosts **out,
                           struct gt_err *err)
{
	struct gt_hosts *h = calloc(1, sizeof *h);
	*rendezvous_fd = -1;
	*out = NULL;
	if (!h)
		return gt_fail(err, GT_EFAIL, "out of memory");
	h->node = s->node;
	h->nnodes = s->nnodes;
	h->number = s->node_rank;
	h->listener = -1;
	memcpy(h->token, token, sizeof h->token);
	h->epoll = epoll_create1(EPOLL_CLOEXEC);
	h->line = calloc((size_t)count_peers(h), sizeof *h->line);
	for (int i = 0; h->line && i < count_peers(h); i++)
		h->line[i].c.fd = -1;
	enum gt_code code = h->epoll >= 0 && h->line ? GT_OK : gt_fail(err, GT_EFAIL, "out of memory or file descriptors for the other hosts");
	if (code == GT_OK && is_node0(h))
		code = open_listeners(h, s, rendezvous_fd, err);
	else if (code == GT_OK) /* node 0 listens for ranks at the port before, and in an elastic run for members at the first one */
		gt_port_search_open(&h->search, s->addr, s->port, s->min_nodes ? 2 : 1);
	if (code == GT_OK && gt_auth_open(&h->auth, GT_HOSTS_MAGIC, h->token, sizeof h->token, h->listener, h->nnodes))
		watch_fd(h, h->auth.epoll, count_peers(h));
	else if (code == GT_OK)
		code = gt_fail(err, GT_EFAIL, "cannot wait for other hosts: %s", strerror(errno));
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
	for (int i = 0; h->line && i < count_peers(h); i++)
		if (h->line[i].c.fd >= 0) {
			send_message(h, &h->line[i], &bye);
			shutdown(h->line[i].c.fd, SHUT_WR);
		}
	/* read until the other launchers have closed: a close with unread data would discard our last messages */
	for (int i = 0; h->line && i < count_peers(h); i++)
		gt_rdv_drain_close(&h->line[i].c.fd, until);
	gt_auth_close(&h->node0);
	gt_auth_shut(&h->auth);
	gt_fd_close(&h->listener);
	gt_fd_close(&h->epoll);
	gt_port_search_close(&h->search);
	free(h->line);
	explicit_bzero(h, sizeof *h);
	free(h);
}
