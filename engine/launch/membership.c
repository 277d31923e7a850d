/* What host 0 and the other hosts of an elastic run have in common: connections, messages, and the detection of lost hosts. */
#include "base/clock.h"
#include "base/descriptors.h"
#include "launch/members_parts.h"
#include "launch/rendezvous.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define BEAT_S 1.0     /* seconds between two messages of the kind BEAT */
#define SILENCE_S 30.0 /* seconds without a message after which a host is lost, if the run has no timeout */
#define SILENCE_MIN_S 5.0

static double silence_limit(const struct gt_members *m)
{
	double s = m->spec->timeout_s > 0 ? m->spec->timeout_s : SILENCE_S;
	return s > SILENCE_MIN_S ? s : SILENCE_MIN_S;
}

void gt_members_set_event(struct gt_members *m, struct gt_host_message event, const char *host, const char *why)
{
	m->has_event = true;
	m->event = event;
	snprintf(m->event.host, sizeof m->event.host, "%s", host);
	snprintf(m->event.why, sizeof m->event.why, "%s", why);
}

void gt_members_set_number(struct gt_members *m, const unsigned char number[GT_TOKEN_SIZE], unsigned char token[GT_TOKEN_SIZE])
{
	struct gt_hmac h;
	memcpy(m->number, number, sizeof m->number);
	gt_hmac_start(&h, m->spec->token, GT_TOKEN_SIZE);
	gt_sha256_add(&h.inner, m->number, sizeof m->number);
	gt_hmac_end(&h, token);
}

void gt_members_say(const struct gt_members *m, const char *fmt, ...)
{
	char line[1800];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	if (m->spec->say)
		m->spec->say(m->spec->user, line);
}

/* ---- messages ----------------------------------------------------------------------------------------------------------------- */
void gt_member_drop(struct gt_members *m, struct member_conn *p, enum gt_code code, const char *why)
{
	bool was_member = p->ready || p->busy;
	gt_fd_close(&p->c.fd);
	if (gt_members_is_host0(m) && was_member)
		gt_members_note_loss(m, p, code, why);
	if (m->runs && code < 128 && (gt_members_is_host0(m) ? p->took_part : was_member) && !m->has_event)
		gt_members_set_event(m, (struct gt_host_message){.kind = GT_HOST_FAILS, .node = gt_members_is_host0(m) ? p->index : 0,
		                                                 .number = (int)(p - m->conn), .rank = -1,
		                                                 .code = GT_EPEER, .step = -1}, p->host, why);
	*p = (struct member_conn){.c.fd = -1};
	if (!gt_members_is_host0(m) && m->state < GT_MEMBER_REFUSES)
		m->state = GT_MEMBER_LOST;
}

void gt_member_send(struct gt_members *m, struct member_conn *p, struct member_message w)
{
	memcpy(w.host, m->host, sizeof w.host);
	if (p->c.fd >= 0 && !gt_rdv_send_frame(&p->c, gt_members_is_host0(m), &w, sizeof w, gt_clock()))
		gt_member_drop(m, p, GT_EPEER, "its launcher has ended or reads no messages");
}

/* Returns whether the numbers of a message have values that a launcher sends. */
static bool is_possible(const struct gt_members *m, const struct member_message *w)
{
	bool starts = w->kind == MEMBER_START;
	return w->code >= 0 && w->code <= GT_RDV_CODE_MAX &&
	       (!starts || (w->node > 0 && w->node < w->nnodes && w->nnodes <= m->spec->nnodes && w->step >= -1));
}

static void read_message(struct gt_members *m, struct member_conn *p)
{
	unsigned char *data;
	struct member_message w;
	size_t n;
	if (!gt_rdv_recv_frame(&p->c, gt_members_is_host0(m), sizeof w, &data, &n, gt_clock() + GT_MEMBER_FRAME_S)) {
		gt_member_drop(m, p, GT_EPEER, "its launcher has ended");
		return;
	}
	if (n != sizeof w && gt_members_is_host0(m) && !p->ready && !p->busy) {
		gt_members_refuse(m, &p->c, GT_EUSAGE, "it has another version of gtrain than host 0");
		*p = (struct member_conn){.c.fd = -1};
	} else if (n == sizeof w) {
		memcpy(&w, data, sizeof w);
		w.host[sizeof w.host - 1] = w.why[sizeof w.why - 1] = 0;
		p->heard = gt_clock();
		if (!is_possible(m, &w))
			gt_member_drop(m, p, GT_EPEER, "its launcher has sent a message with impossible values");
		else if (gt_members_is_host0(m))
			gt_members_lead(m, p, &w);
		else
			gt_members_follow(m, p, &w);
	} else {
		gt_member_drop(m, p, GT_EPEER, "its launcher belongs to another version of gtrain");
	}
	free(data);
}

/* ---- connections -------------------------------------------------------------------------------------------------------------- */
void gt_members_watch(struct gt_members *m, int fd, int number)
{
	struct epoll_event e = {.events = EPOLLIN, .data.u32 = (uint32_t)number};
	epoll_ctl(m->epoll, EPOLL_CTL_ADD, fd, &e);
}

static void advance_handshakes(struct gt_members *m)
{
	gt_auth_poll(&m->auth, 0);
	for (struct gt_peer_auth *a; (a = gt_auth_next(&m->auth)); gt_auth_close(a))
		if (gt_members_is_host0(m) && a->state == GT_AUTH_PROVEN)
			gt_members_accept(m, a);
		else if (gt_members_is_host0(m) && a->state == GT_AUTH_OTHER_SECRET)
			gt_members_note_stranger(m, a);
		else if (!gt_members_is_host0(m) && a->state == GT_AUTH_DONE)
			gt_members_join(m, a);
		else if (!gt_members_is_host0(m))
			gt_members_note_obstacle(m, a);
	if (!gt_members_is_host0(m))
		gt_members_search(m);
}

/* Sends BEAT, and drops the hosts that have sent nothing, or have not ended the last attempt, for too long. */
static void check_beats(struct gt_members *m)
{
	double now = gt_clock(), gap = m->polled > 0 ? now - m->polled : 0;
	char why[80];
	m->polled = now;
	snprintf(why, sizeof why, "its launcher has sent nothing for %.3g s", silence_limit(m));
	for (int i = 0; i < gt_members_count(m); i++) {
		struct member_conn *p = &m->conn[i];
		if (gap > BEAT_S) /* this launcher did not run, so the other one may have sent messages */
			p->heard += gap;
		if (p->c.fd >= 0 && now > p->heard + silence_limit(m))
			gt_member_drop(m, p, GT_EPEER, why);
		if (p->c.fd >= 0 && now >= m->beat_at)
			gt_member_send(m, p, (struct member_message){.kind = MEMBER_BEAT});
	}
	if (now >= m->beat_at)
		m->beat_at = now + BEAT_S;
	if (gap > BEAT_S)
		m->settled_at += gap;
	if (gt_members_is_host0(m))
		gt_members_drop_late(m, now);
}

bool gt_members_poll(struct gt_members *m, struct gt_host_message *out)
{
	struct epoll_event e[32];
	if (!m)
		return false;
	int n = epoll_wait(m->epoll, e, 32, 0);
	for (int i = 0; i < n; i++)
		if ((int)e[i].data.u32 < gt_members_count(m) && m->conn[e[i].data.u32].c.fd >= 0)
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

/* ---- open and close ----------------------------------------------------------------------------------------------------------- */
enum gt_code gt_members_open(const struct gt_launch_spec *s, struct gt_members **out, struct gt_err *err)
{
	struct gt_members *m = calloc(1, sizeof *m);
	*out = NULL;
	if (!m)
		return gt_fail(err, GT_EFAIL, "out of memory");
	m->spec = s;
	m->listener = -1;
	gethostname(m->host, sizeof m->host - 1);
	m->epoll = epoll_create1(EPOLL_CLOEXEC);
	m->conn = calloc((size_t)gt_members_count(m), sizeof *m->conn);
	for (int i = 0; m->conn && i < gt_members_count(m); i++)
		m->conn[i].c.fd = -1;
	m->record = calloc((size_t)gt_members_count(m), sizeof *m->record);
	enum gt_code code = m->epoll >= 0 && m->conn && m->record ? GT_OK : gt_fail(err, GT_EFAIL, "out of memory or descriptors");
	if (code == GT_OK && gt_members_is_host0(m) && (m->listener = gt_rdv_listen(s->addr, s->port, s->addresses, err)) < 0)
		code = GT_EPEER;
	if (code == GT_OK && !gt_members_is_host0(m))
		gt_port_search_open(&m->search, s->addr, s->port, 0);
	if (code == GT_OK && !gt_members_is_host0(m) && !gt_port_search_wait(&m->search))
		code = gt_fail(err, GT_EPEER, "--master-addr: the name %s has no address", s->addr);
	if (code == GT_OK && gt_auth_open(&m->auth, GT_MEMBERS_MAGIC, s->token, GT_TOKEN_SIZE, m->listener, s->nnodes))
		gt_members_watch(m, m->auth.epoll, gt_members_count(m));
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
	double until = gt_clock() + GT_MEMBER_FRAME_S;
	for (int i = 0; m->conn && i < gt_members_count(m); i++)
		if (m->conn[i].c.fd >= 0)
			shutdown(m->conn[i].c.fd, SHUT_WR);
	/* read until the other launchers have closed: a close with unread data would discard our last message */
	for (int i = 0; m->conn && i < gt_members_count(m); i++)
		gt_rdv_drain_close(&m->conn[i].c.fd, until);
	gt_auth_close(&m->host0);
	gt_auth_shut(&m->auth);
	gt_fd_close(&m->listener);
	gt_fd_close(&m->epoll);
	gt_port_search_close(&m->search);
	free(m->conn);
	free(m->record);
	explicit_bzero(m, sizeof *m);
	free(m);
}
