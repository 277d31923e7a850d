#include "launch/members.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/peer_auth.h"
#include "launch/port_search.h"
#include "launch/rendezvous.h"
#include "launch/rendezvous_parts.h"
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

#define BEAT_S 1.0     /* seconds between two messages of the kind BEAT */
#define ALIVE_S 3.0    /* a host that has sent a message within this time is not replaced by another one with the same number */
#define SILENCE_S 30.0 /* seconds without a message after which a host is lost, if the run has no timeout */
#define SILENCE_MIN_S 5.0
#define FRAME_S 0.2    /* seconds for the rest of a message that has begun to arrive */
#define JOIN_S 2.0     /* seconds between the arrival of a host and the end of the running attempt, so that hosts can arrive together */

enum { MEMBER_JOIN = 1, MEMBER_REFUSE, MEMBER_START, MEMBER_ENDED, MEMBER_BEAT, MEMBER_LEAVE, MEMBER_FINISH };

struct member_message {
	int64_t step;  /* START: gt_launch_from.step; ENDED: optimizer steps that the host's failed rank had completed */
	uint32_t kind; /* MEMBER_JOIN ... */
	int32_t node;  /* JOIN: --node-rank; START: index in the attempt */
	int32_t nnodes; /* START: hosts of the attempt */
	int32_t nproc; /* JOIN: ranks of the host */
	int32_t code;  /* REFUSE, ENDED, LEAVE, FINISH: exit code */
	int32_t exact; /* START: gt_launch_from.exact */
	unsigned char data[GT_TOKEN_SIZE]; /* JOIN: gt_launch_spec.identity; START, ENDED: random number of the attempt */
	char host[64];  /* name of the sending host */
	char why[1200]; /* REFUSE, ENDED, LEAVE, FINISH: the reason */
};

/* The connection to another launcher. A host is in one of four states: it is not there (c.fd is -1), has not sent JOIN yet, waits for an
 * attempt (ready), or takes part in one (busy). */
struct member_conn {
	struct gt_rdv_conn c;
	bool ready, busy;
	bool took_part; /* the host takes or took part in the last attempt */
	int index;      /* its index in that attempt */
	double heard;   /* time (gt_clock) of its last message */
	double joined;  /* time at which it became ready */
	char host[64];
};

struct gt_members {
	const struct gt_launch_spec *spec;
	int epoll, listener;
	char host[64];           /* name of this host */
	struct gt_auth auth;
	struct member_conn *conn; /* host 0: [spec->nnodes], its own entry unused; others: one entry, for host 0 */
	double beat_at, polled;   /* time of the next BEAT; time of the last gt_members_poll() */
	int lost;                 /* host 0: hosts of the last attempt that are lost */
	char changes[400];
	unsigned char number[GT_TOKEN_SIZE]; /* random number of the last attempt */
	bool runs;                /* an attempt runs: losses are returned by gt_members_poll() */
	bool in_attempt;          /* other hosts: the ranks of this host may still run, so it must not send JOIN */
	bool has_event;
	struct gt_host_message event;
	/* other hosts: */
	struct gt_peer_auth host0;
	struct gt_port_search search;
	enum gt_member_state state;
	struct gt_member_start start;
	struct member_message last;
};

static bool is_host0(const struct gt_members *m)
{
	return m->spec->node == 0;
}

static int count_conns(const struct gt_members *m)
{
	return is_host0(m) ? m->spec->nnodes : 1;
}

static double silence_limit(const struct gt_members *m)
{
	double s = m->spec->timeout_s > 0 ? m->spec->timeout_s : SILENCE_S;
	return s > SILENCE_MIN_S ? s : SILENCE_MIN_S;
}

static void note_change(struct gt_members *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void note_change(struct gt_members *m, const char *fmt, ...)
{
	va_list ap;
	size_t n = strlen(m->changes);
	va_start(ap, fmt);
	n += n ? (size_t)snprintf(m->changes + n, sizeof m->changes - n, ", ") : 0;
	if (n < sizeof m->changes)
		vsnprintf(m->changes + n, sizeof m->changes - n, fmt, ap);
	va_end(ap);
}

static void set_event(struct gt_members *m, struct gt_host_message event, const char *host, const char *why)
{
	m->has_event = true;
	m->event = event;
	snprintf(m->event.host, sizeof m->event.host, "%s", host);
	snprintf(m->event.why, sizeof m->event.why, "%s", why);
}

/* Stores the random number of an attempt, and computes the token of the attempt. */
static void set_number(struct gt_members *m, const unsigned char number[GT_TOKEN_SIZE], unsigned char token[GT_TOKEN_SIZE])
{
	struct gt_hmac h;
	memcpy(m->number, number, sizeof m->number);
	gt_hmac_start(&h, m->spec->token, GT_TOKEN_SIZE);
	gt_sha256_add(&h.inner, m->number, sizeof m->number);
	gt_hmac_end(&h, token);
}

/* ---- messages ----------------------------------------------------------------------------------------------------------------- */
/* Ends a connection. code: GT_EPEER, the host is lost; otherwise the code with which it has left the run. After a loss within an attempt,
 * the attempt must end, too; after a stop by the user (128 + n), the ranks of all hosts end by themselves. */
static void drop_host(struct gt_members *m, struct member_conn *p, enum gt_code code, const char *why)
{
	bool was_member = p->ready || p->busy;
	gt_fd_close(&p->c.fd);
	if (is_host0(m) && was_member) {
		m->lost += p->took_part;
		note_change(m, "host %d (%s) %s", (int)(p - m->conn), p->host, code == GT_EPEER ? "is lost" : "has left");
	}
	if (m->runs && code < 128 && (is_host0(m) ? p->took_part : was_member) && !m->has_event)
		set_event(m, (struct gt_host_message){.kind = GT_HOST_FAILS, .node = is_host0(m) ? p->index : 0, .rank = -1, .code = GT_EPEER,
		                                      .step = -1}, p->host, why);
	*p = (struct member_conn){.c.fd = -1};
	if (!is_host0(m) && m->state < GT_MEMBER_REFUSES)
		m->state = GT_MEMBER_LOST;
}

static void send_message(struct gt_members *m, struct member_conn *p, struct member_message w)
{
	memcpy(w.host, m->host, sizeof w.host);
	if (p->c.fd >= 0 && !gt_rdv_send_frame(&p->c, is_host0(m), &w, sizeof w, gt_clock()))
		drop_host(m, p, GT_EPEER, "its launcher has ended or reads no messages");
}

/* Refuses a host that has proved that it holds the token, and closes its connection. */
static void refuse_host(struct gt_members *m, struct gt_rdv_conn *c, enum gt_code code, const char *why)
{
	struct member_message w = {.kind = MEMBER_REFUSE, .code = (int32_t)code};
	memcpy(w.host, m->host, sizeof w.host);
	snprintf(w.why, sizeof w.why, "%s", why);
	if (gt_rdv_send_frame(c, true, &w, sizeof w, gt_clock()))
		shutdown(c->fd, SHUT_WR);
	gt_rdv_drain_close(&c->fd, gt_clock() + FRAME_S);
}

/* Handles JOIN on host 0. */
static void admit_host(struct gt_members *m, struct member_conn *p, const struct member_message *w)
{
	char why[300] = "";
	snprintf(p->host, sizeof p->host, "%.63s", w->host);
	if (w->nproc != m->spec->nproc)
		snprintf(why, sizeof why, "it has %d rank%s, but host 0 has %d: start all hosts with the same --nproc", w->nproc,
		         w->nproc == 1 ? "" : "s", m->spec->nproc);
	else if (memcmp(w->data, m->spec->identity, sizeof w->data))
		snprintf(why, sizeof why, "its config or its version of gtrain differs from that of host 0: start all hosts with the same config "
		         "and the same -s options");
	if (*why) {
		refuse_host(m, &p->c, GT_EUSAGE, why);
		*p = (struct member_conn){.c.fd = -1};
		return;
	}
	p->ready = true;
	p->joined = gt_clock();
	note_change(m, "host %d (%s) joins", (int)(p - m->conn), p->host);
}

static void handle_host(struct gt_members *m, struct member_conn *p, const struct member_message *w)
{
	if (w->kind == MEMBER_JOIN && !p->ready && !p->busy) {
		admit_host(m, p, w);
	} else if (w->kind == MEMBER_ENDED && p->busy && !memcmp(w->data, m->number, sizeof m->number)) {
		p->busy = false;
		p->ready = true;
		p->joined = gt_clock();
	} else if (w->kind == MEMBER_LEAVE) {
		if (w->code > 128 && p->took_part)
			set_event(m, (struct gt_host_message){.kind = GT_HOST_STOPS, .node = p->index, .code = w->code - 128}, p->host, w->why);
		drop_host(m, p, w->code == GT_EPEER ? GT_OK : (enum gt_code)w->code, w->why);
	}
}

static void handle_host0(struct gt_members *m, struct member_conn *p, const struct member_message *w)
{
	snprintf(p->host, sizeof p->host, "%.63s", w->host);
	if (w->kind == MEMBER_START && m->state == GT_MEMBER_WAITS && !m->in_attempt) {
		m->state = GT_MEMBER_STARTS;
		m->start = (struct gt_member_start){.node = w->node, .nnodes = w->nnodes, .from = {w->step, w->exact != 0}};
		set_number(m, w->data, m->start.token);
	} else if (w->kind == MEMBER_START) {
		drop_host(m, p, GT_EPEER, "it has started an attempt before this host has ended the last one");
	} else if (w->kind == MEMBER_REFUSE || w->kind == MEMBER_FINISH) {
		m->state = w->kind == MEMBER_REFUSE ? GT_MEMBER_REFUSES : GT_MEMBER_FINISHES;
		m->last = *w;
		/* after a stop by the user and at the end of the training, the ranks of this host end by themselves */
		if (m->runs && w->code > 0 && w->code < 128 && !m->has_event)
			set_event(m, (struct gt_host_message){.kind = GT_HOST_FAILS, .rank = -1, .code = w->code, .step = -1}, p->host, w->why);
		gt_fd_close(&p->c.fd);
	}
}

static void read_message(struct gt_members *m, struct member_conn *p)
{
	unsigned char *data;
	struct member_message w;
	size_t n;
	if (!gt_rdv_recv_frame(&p->c, is_host0(m), sizeof w, &data, &n, gt_clock() + FRAME_S)) {
		drop_host(m, p, GT_EPEER, "its launcher has ended");
		return;
	}
	if (n == sizeof w) {
		memcpy(&w, data, sizeof w);
		w.host[sizeof w.host - 1] = w.why[sizeof w.why - 1] = 0;
		p->heard = gt_clock();
		if (is_host0(m))
			handle_host(m, p, &w);
		else
			handle_host0(m, p, &w);
	} else {
		drop_host(m, p, GT_EPEER, "its launcher belongs to another version of gtrain");
	}
	free(data);
}

/* ---- connections -------------------------------------------------------------------------------------------------------------- */
static void watch_fd(struct gt_members *m, int fd, int number)
{
	struct epoll_event e = {.events = EPOLLIN, .data.u32 = (uint32_t)number};
	epoll_ctl(m->epoll, EPOLL_CTL_ADD, fd, &e);
}

/* Takes an authenticated connection on host 0. */
static void accept_host(struct gt_members *m, struct gt_peer_auth *a)
{
	uint32_t node = a->claim[0], most = a->claim[1];
	struct gt_rdv_conn c = {0};
	char why[300] = "";
	if ((c.fd = gt_auth_take(&m->auth, a, c.key)) < 0)
		return;
	struct member_conn *p = node < (uint32_t)m->spec->nnodes ? &m->conn[node] : NULL;
	if (most != (uint32_t)m->spec->nnodes || !p)
		snprintf(why, sizeof why, "its --nnodes differs from that of host 0, where the maximum is %d", m->spec->nnodes);
	else if (!node || (p->c.fd >= 0 && gt_clock() < p->heard + ALIVE_S))
		snprintf(why, sizeof why, "another host (%s) has the same --node-rank %u", node ? p->host : m->host, node);
	if (*why) {
		refuse_host(m, &c, GT_EUSAGE, why);
		return;
	}
	if (p->c.fd >= 0)
		drop_host(m, p, GT_EPEER, "its launcher has been started again");
	*p = (struct member_conn){.c = c, .heard = gt_clock()};
	watch_fd(m, c.fd, (int)node);
}

/* Takes the connection to host 0 on another host, and asks to join. */
static void join_host0(struct gt_members *m, struct gt_peer_auth *a)
{
	struct member_conn *p = &m->conn[0];
	struct gt_rdv_conn c = {0};
	struct member_message w = {.kind = MEMBER_JOIN, .node = m->spec->node, .nnodes = m->spec->nnodes, .nproc = m->spec->nproc};
	if ((c.fd = gt_auth_take(&m->auth, a, c.key)) < 0)
		return;
	*p = (struct member_conn){.c = c, .ready = true, .heard = gt_clock()};
	watch_fd(m, c.fd, 0);
	m->state = GT_MEMBER_WAITS;
	memcpy(w.data, m->spec->identity, sizeof w.data);
	send_message(m, p, w);
}

static void advance_handshakes(struct gt_members *m)
{
	gt_auth_poll(&m->auth, 0);
	for (struct gt_peer_auth *a; (a = gt_auth_next(&m->auth)); gt_auth_close(a))
		if (is_host0(m) && a->state == GT_AUTH_PROVEN)
			accept_host(m, a);
		else if (!is_host0(m) && a->state == GT_AUTH_DONE)
			join_host0(m, a);
	if (!is_host0(m) && m->conn[0].c.fd < 0 && m->state == GT_MEMBER_LOST && !m->in_attempt)
		gt_port_search_advance(&m->search, &m->auth, &m->host0, (uint32_t)m->spec->node, (uint32_t)m->spec->nnodes);
	else
		gt_auth_close(&m->host0);
}

/* Sends BEAT, and drops the hosts that have sent nothing for too long. */
static void check_beats(struct gt_members *m)
{
	double now = gt_clock(), gap = m->polled > 0 ? now - m->polled : 0;
	char why[80];
	m->polled = now;
	snprintf(why, sizeof why, "its launcher has sent nothing for %.3g s", silence_limit(m));
	for (int i = 0; i < count_conns(m); i++) {
		struct member_conn *p = &m->conn[i];
		if (gap > BEAT_S) /* this launcher did not run, so the other one may have sent messages */
			p->heard += gap;
		if (p->c.fd >= 0 && now > p->heard + silence_limit(m))
			drop_host(m, p, GT_EPEER, why);
		if (p->c.fd >= 0 && now >= m->beat_at)
			send_message(m, p, (struct member_message){.kind = MEMBER_BEAT});
	}
	if (now >= m->beat_at)
		m->beat_at = now + BEAT_S;
}

bool gt_members_poll(struct gt_members *m, struct gt_host_message *out)
{
	struct epoll_event e[32];
	if (!m)
		return false;
	int n = epoll_wait(m->epoll, e, 32, 0);
	for (int i = 0; i < n; i++)
		if ((int)e[i].data.u32 < count_conns(m) && m->conn[e[i].data.u32].c.fd >= 0)
			read_message(m, &m->conn[e[i].data.u32]);
	advance_handshakes(m);
	check_beats(m);
	if (!m->has_event || (!m->runs && m->event.kind != GT_HOST_STOPS))
		return false;
	m->has_event = false;
	m->runs = false; /* the attempt ends: further losses are no news */
	*out = m->event;
	return true;
}

int gt_members_fd(const struct gt_members *m)
{
	return m ? m->epoll : -1;
}

/* ---- host 0 ------------------------------------------------------------------------------------------------------------------- */
int gt_members_ready(const struct gt_members *m)
{
	int n = 0;
	for (int i = 1; i < count_conns(m); i++)
		n += m->conn[i].ready;
	return n;
}

int gt_members_busy(const struct gt_members *m)
{
	int n = 0;
	for (int i = 1; i < count_conns(m); i++)
		n += m->conn[i].busy;
	return n;
}

bool gt_members_regroup(const struct gt_members *m)
{
	for (int i = 1; m && is_host0(m) && i < count_conns(m); i++)
		if (m->conn[i].ready && !m->conn[i].took_part && gt_clock() >= m->conn[i].joined + JOIN_S)
			return true;
	return false;
}

int gt_members_lost(const struct gt_members *m)
{
	return m->lost;
}

const char *gt_members_changes(const struct gt_members *m)
{
	return m->changes;
}

enum gt_code gt_members_start(struct gt_members *m, const struct gt_launch_from *from, struct gt_member_start *out, struct gt_err *err)
{
	struct member_message w = {.kind = MEMBER_START, .step = from->step, .exact = from->exact, .nnodes = 1 + gt_members_ready(m)};
	int index = 0;
	if (getrandom(w.data, sizeof w.data, 0) != sizeof w.data)
		return gt_fail(err, GT_EFAIL, "cannot get random numbers: %s", strerror(errno));
	*out = (struct gt_member_start){.nnodes = w.nnodes, .from = *from};
	set_number(m, w.data, out->token);
	m->has_event = false;
	m->runs = true;
	m->lost = 0;
	*m->changes = 0;
	for (int i = 1; i < count_conns(m); i++) {
		struct member_conn *p = &m->conn[i];
		p->took_part = p->busy = p->ready;
		p->ready = false;
		p->index = w.node = p->busy ? ++index : 0;
		if (p->busy)
			send_message(m, p, w);
	}
	return GT_OK;
}

void gt_members_finish(struct gt_members *m, enum gt_code code, const char *why)
{
	struct member_message w = {.kind = MEMBER_FINISH, .code = (int32_t)code};
	snprintf(w.why, sizeof w.why, "%s", why);
	for (int i = 1; i < count_conns(m); i++)
		send_message(m, &m->conn[i], w);
}

/* ---- other hosts -------------------------------------------------------------------------------------------------------------- */
enum gt_member_state gt_members_told(struct gt_members *m, struct gt_member_start *out)
{
	if (m->state != GT_MEMBER_STARTS)
		return m->state;
	*out = m->start;
	m->state = GT_MEMBER_WAITS;
	m->runs = m->in_attempt = true;
	m->has_event = false;
	return GT_MEMBER_STARTS;
}

const char *gt_members_last(const struct gt_members *m, enum gt_code *code)
{
	*code = (enum gt_code)m->last.code;
	return m->last.why;
}

void gt_members_report(struct gt_members *m, const struct gt_launch_end *end)
{
	struct member_message w = {.kind = MEMBER_ENDED, .code = (int32_t)end->code, .step = end->step};
	memcpy(w.data, m->number, sizeof w.data);
	snprintf(w.why, sizeof w.why, "%s", end->why);
	m->runs = m->in_attempt = m->has_event = false;
	send_message(m, &m->conn[0], w);
}

void gt_members_leave(struct gt_members *m, enum gt_code code, const char *why)
{
	struct member_message w = {.kind = MEMBER_LEAVE, .code = (int32_t)code};
	snprintf(w.why, sizeof w.why, "%s", why);
	m->runs = m->in_attempt = m->has_event = false;
	send_message(m, &m->conn[0], w);
}

/* ---- open and close ----------------------------------------------------------------------------------------------------------- */
enum gt_code gt_members_open(const struct gt_launch_spec *s, struct gt_members **out, struct gt_err *err)
{
	struct gt_members *m = calloc(1, sizeof *m);
	struct gt_world w = {.how = "gtrain", .port = s->port};
	*out = NULL;
	if (!m)
		return gt_fail(err, GT_EFAIL, "out of memory");
	m->spec = s;
	m->listener = -1;
	snprintf(w.addr, sizeof w.addr, "%s", s->addr);
	gethostname(m->host, sizeof m->host - 1);
	m->epoll = epoll_create1(EPOLL_CLOEXEC);
	m->conn = calloc((size_t)count_conns(m), sizeof *m->conn);
	for (int i = 0; m->conn && i < count_conns(m); i++)
		m->conn[i].c.fd = -1;
	enum gt_code code = m->epoll >= 0 && m->conn ? GT_OK : gt_fail(err, GT_EFAIL, "out of memory or descriptors");
	if (code == GT_OK && is_host0(m) && (m->listener = gt_rdv_listen(&w, err)) < 0)
		code = GT_EPEER;
	if (code == GT_OK && !is_host0(m))
		gt_port_search_open(&m->search, s->addr, s->port);
	if (code == GT_OK && !is_host0(m) && !m->search.at)
		code = gt_fail(err, GT_EPEER, "--master-addr: the name %s has no address", s->addr);
	if (code == GT_OK && gt_auth_open(&m->auth, GT_MEMBERS_MAGIC, s->token, GT_TOKEN_SIZE, m->listener, s->nnodes))
		watch_fd(m, m->auth.epoll, count_conns(m));
	else if (code == GT_OK)
		code = gt_fail(err, GT_EFAIL, "cannot wait for other hosts: %s", strerror(errno));
	if (code == GT_OK)
		*out = m;
	else
		gt_members_close(m);
	return code;
}

void gt_members_close(struct gt_members *m)
{
	if (!m)
		return;
	double until = gt_clock() + FRAME_S;
	for (int i = 0; m->conn && i < count_conns(m); i++)
		if (m->conn[i].c.fd >= 0)
			shutdown(m->conn[i].c.fd, SHUT_WR);
	/* read until the other launchers have closed: a close with unread data would discard our last message */
	for (int i = 0; m->conn && i < count_conns(m); i++)
		gt_rdv_drain_close(&m->conn[i].c.fd, until);
	gt_auth_close(&m->host0);
	gt_auth_shut(&m->auth);
	gt_fd_close(&m->listener);
	gt_fd_close(&m->epoll);
	gt_port_search_close(&m->search);
	free(m->conn);
	explicit_bzero(m, sizeof *m);
	free(m);
}
