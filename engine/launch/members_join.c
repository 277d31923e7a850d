/* The side of the other hosts in the membership of an elastic run: they look for host 0, ask to join, and follow it. */
#include "base/clock.h"
#include "base/descriptors.h"
#include "launch/members_parts.h"
#include <stdio.h>
#include <string.h>

void gt_members_follow(struct gt_members *m, struct member_conn *p, const struct member_message *w)
{
	snprintf(p->host, sizeof p->host, "%.63s", w->host);
	if (w->kind == MEMBER_START && m->state == GT_MEMBER_WAITS && !m->in_attempt) {
		m->state = GT_MEMBER_STARTS;
		m->start = (struct gt_member_start){.node = w->node, .nnodes = w->nnodes, .from = {w->step, w->exact != 0}};
		gt_members_set_number(m, w->data, m->start.token);
	} else if (w->kind == MEMBER_START) {
		gt_member_drop(m, p, GT_EPEER, "it has started an attempt before this host has ended the last one");
	} else if (w->kind == MEMBER_DELAY) {
		gt_members_say(m, "host 0: this host %s", w->why);
	} else if (w->kind == MEMBER_REFUSE || w->kind == MEMBER_FINISH) {
		m->state = w->kind == MEMBER_REFUSE ? GT_MEMBER_REFUSES : GT_MEMBER_FINISHES;
		m->last = *w;
		/* At the end of the training, the ranks of this host end by themselves. After a stop by the user, they usually do, but they may
		 * still be waiting for the ranks of host 0. */
		if (m->runs && w->code > 128 && !m->has_event)
			gt_members_set_event(m, (struct gt_host_message){.kind = GT_HOST_STOPS, .code = w->code - 128}, p->host, w->why);
		else if (m->runs && w->code > 0 && !m->has_event)
			gt_members_set_event(m, (struct gt_host_message){.kind = GT_HOST_FAILS, .rank = -1, .code = w->code, .step = -1}, p->host,
			                     w->why);
		gt_fd_close(&p->c.fd);
	}
}

void gt_members_join(struct gt_members *m, struct gt_peer_auth *a)
{
	struct member_conn *p = &m->conn[0];
	struct gt_rdv_conn c = {0};
	struct member_message w = {.kind = MEMBER_JOIN, .node = m->spec->node, .nnodes = m->spec->nnodes, .nproc = m->spec->nproc};
	if ((c.fd = gt_auth_take(&m->auth, a, c.key)) < 0)
		return;
	*p = (struct member_conn){.c = c, .ready = true, .heard = gt_clock()};
	gt_members_watch(m, c.fd, 0);
	m->state = GT_MEMBER_WAITS;
	m->rejections = 0;
	m->obstacle = NULL;
	memcpy(w.data, m->spec->identity, sizeof w.data);
	gt_member_send(m, p, w);
}

void gt_members_note_obstacle(struct gt_members *m, const struct gt_peer_auth *a)
{
	/* the first rejection proves nothing: a host 0 that ends during the handshake closes the connection, too */
	if (a->state == GT_AUTH_OTHER_SECRET && ++m->rejections > 1)
		m->obstacle = "it has a different token: start all hosts with the same --token-file";
	else if (a->state == GT_AUTH_STRANGER && !memcmp(a->hello, GT_MEMBERS_MAGIC, sizeof GT_MEMBERS_MAGIC - 2))
		m->obstacle = "it runs another version of gtrain: start all hosts with the same version";
	/* on a later port, these may be the ranks of this run, or those of another run */
	else if (a->state == GT_AUTH_STRANGER && !m->search.next_port && !memcmp(a->hello, GT_RDV_MAGIC, GT_AUTH_MAGIC))
		m->obstacle = "it was started with --nnodes N instead of MIN:MAX: start all hosts with the same --nnodes";
}

const char *gt_members_obstacle(const struct gt_members *m)
{
	return m->obstacle;
}

void gt_members_search(struct gt_members *m)
{
	if (m->conn[0].c.fd < 0 && m->state == GT_MEMBER_LOST && !m->in_attempt)
		gt_port_search_advance(&m->search, &m->auth, &m->host0, (uint32_t)m->spec->node, (uint32_t)m->spec->nnodes);
	else
		gt_auth_close(&m->host0);
}

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
	gt_member_send(m, &m->conn[0], w);
}

void gt_members_leave(struct gt_members *m, enum gt_code code, const char *why)
{
	struct member_message w = {.kind = MEMBER_LEAVE, .code = (int32_t)code};
	snprintf(w.why, sizeof w.why, "%s", why);
	m->runs = m->in_attempt = m->has_event = false;
	gt_member_send(m, &m->conn[0], w);
}
