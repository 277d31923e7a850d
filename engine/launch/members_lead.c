/* The side of host 0 in the membership of an elastic run: it accepts hosts, starts attempts, and ends the run. */
#include "base/clock.h"
#include "launch/launcher_parts.h"
#include "launch/members_parts.h"
#include <errno.h>
#include <math.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#define ALIVE_S 3.0 /* a host that has sent a message within this time is not replaced by another one with the same number */
#define FRESH_S 1.5 /* a host that has sent nothing for this time is no reason to end the running attempt */
#define FAILED_WAITS 4 /* a host waits after its first failure as long as this number of back-offs of a restart */
#define END_S 30.0  /* minimum seconds in which other hosts must end an attempt after host 0 has; SIGKILL follows much sooner */
#define JOIN_S 2.0  /* seconds between the arrival of a host and the end of the running attempt, so that hosts can arrive together */

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

void gt_members_note_loss(struct gt_members *m, const struct member_conn *p, enum gt_code code, const char *why)
{
	int number = (int)(p - m->conn);
	m->lost += p->took_part;
	note_change(m, "host %d (%s) %s", number, p->host, code == GT_EPEER ? "is lost" : "has left");
	if (code >= 128) /* the user has stopped it */
		return;
	gt_host_record_add(&m->record[number], p->host, why, p->took_part, gt_clock());
	if (!m->runs_on) /* the attempt has ended already */
		gt_host_record_settle(&m->record[number], m->saved);
}

/* The launcher of such a host works, and sends messages. But the kernel does not end a process that waits for a disk or a file system that
 * does not answer, not even after SIGKILL. */
void gt_members_drop_late(struct gt_members *m, double now)
{
	char why[200];
	double limit = m->spec->timeout_s > END_S ? m->spec->timeout_s : END_S;
	limit = m->spec->end_s > 0 ? m->spec->end_s : limit;
	if (m->runs_on || now <= m->settled_at + limit)
		return;
	snprintf(why, sizeof why, "its ranks have not ended for %.3g s after the attempt", limit);
	for (int i = 1; i < gt_members_count(m); i++)
		if (m->conn[i].busy) {
			gt_members_say(m, "host %d (%s) is treated as lost: %s", i, m->conn[i].host, why);
			gt_member_drop(m, &m->conn[i], GT_EPEER, why);
		}
}

/* ---- messages ----------------------------------------------------------------------------------------------------------------- */
void gt_members_refuse(struct gt_members *m, struct gt_rdv_conn *c, enum gt_code code, const char *why)
{
	struct member_message w = {.kind = MEMBER_REFUSE, .code = (int32_t)code};
	memcpy(w.host, m->host, sizeof w.host);
	snprintf(w.why, sizeof w.why, "%s", why);
	if (gt_rdv_send_frame(c, true, &w, sizeof w, gt_clock()))
		shutdown(c->fd, SHUT_WR);
	gt_rdv_drain_close(&c->fd, gt_clock() + GT_MEMBER_FRAME_S);
}

/* Decides when a host that has joined may take part, or refuses it because it has failed too often. */
static void schedule_host(struct gt_members *m, struct member_conn *p)
{
	struct gt_host_record *r = &m->record[p - m->conn];
	double now = gt_clock();
	struct member_message w = {.kind = MEMBER_DELAY};
	if (gt_host_record_refuses(r, p->host, now, w.why, sizeof w.why)) {
		if (!r->told) /* the host may be started again and again */
			gt_members_say(m, "host %d (%s) is refused: %s", (int)(p - m->conn), p->host, w.why);
		r->told = true;
		gt_members_refuse(m, &p->c, GT_EPEER, w.why);
		*p = (struct member_conn){.c.fd = -1};
		return;
	}
	p->joined = gt_host_record_ready(r, p->host, FAILED_WAITS * gt_attempt_backoff(m->spec, 0), now);
	if (p->joined <= now)
		return;
	snprintf(w.why, sizeof w.why, "takes part in %.3g s, because it has failed %d time%s in a row in attempts that saved no checkpoint "
	         "(the last time: %s)", p->joined - now, r->failures, r->failures == 1 ? "" : "s", r->why);
	gt_members_say(m, "host %d (%s) %s", (int)(p - m->conn), p->host, w.why);
	gt_member_send(m, p, w);
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
		gt_members_refuse(m, &p->c, GT_EUSAGE, why);
		*p = (struct member_conn){.c.fd = -1};
		return;
	}
	p->ready = true;
	p->joined = INFINITY;
	if (!m->record[p - m->conn].open)
		schedule_host(m, p);
}

void gt_members_lead(struct gt_members *m, struct member_conn *p, const struct member_message *w)
{
	if (w->kind == MEMBER_JOIN && !p->ready && !p->busy) {
		admit_host(m, p, w);
	} else if (w->kind == MEMBER_ENDED && p->busy && !memcmp(w->data, m->number, sizeof m->number)) {
		p->busy = false;
		p->ready = true;
		p->joined = gt_clock();
	} else if (w->kind == MEMBER_LEAVE) {
		if (w->code > 128 && p->took_part)
			gt_members_set_event(m, (struct gt_host_message){.kind = GT_HOST_STOPS, .node = p->index, .number = (int)(p - m->conn),
			                                                 .code = w->code - 128}, p->host, w->why);
		gt_member_drop(m, p, w->code == GT_EPEER ? GT_OK : (enum gt_code)w->code, w->why);
	}
}

void gt_members_note_stranger(struct gt_members *m, const struct gt_peer_auth *a)
{
	struct sockaddr_storage from;
	socklen_t n = sizeof from;
	char host[64] = "an unknown address";
	/* garbage must not use up the only warning */
	if (m->warned || a->claim[0] >= (uint32_t)m->spec->nnodes || a->claim[1] != (uint32_t)m->spec->nnodes)
		return;
	m->warned = true;
	if (!getpeername(a->fd, (struct sockaddr *)&from, &n))
		getnameinfo((struct sockaddr *)&from, n, host, sizeof host, NULL, 0, NI_NUMERICHOST);
	gt_members_say(m, "a process at %s that claims to be host %u has a different token and was rejected", host, a->claim[0]);
}

/* Takes an authenticated connection on host 0. */
void gt_members_accept(struct gt_members *m, struct gt_peer_auth *a)
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
		gt_members_refuse(m, &c, GT_EUSAGE, why);
		return;
	}
	if (p->c.fd >= 0)
		gt_member_drop(m, p, GT_EPEER, "its launcher has been started again");
	*p = (struct member_conn){.c = c, .heard = gt_clock()};
	gt_members_watch(m, c.fd, (int)node);
}


/* ---- attempts ----------------------------------------------------------------------------------------------------------------- */
/* Returns whether a host can take part in an attempt that starts now. A host that has just vanished would cost an attempt. */
static bool is_ready(const struct gt_members *m, const struct member_conn *p)
{
	return p->ready && gt_clock() >= p->joined && m->polled < p->heard + ALIVE_S;
}

int gt_members_ready(const struct gt_members *m)
{
	int n = 0;
	for (int i = 1; i < gt_members_count(m); i++)
		n += is_ready(m, &m->conn[i]);
	return n;
}

int gt_members_busy(const struct gt_members *m)
{
	int n = 0;
	for (int i = 1; i < gt_members_count(m); i++)
		n += m->conn[i].busy;
	return n;
}

bool gt_members_regroup(const struct gt_members *m)
{
	for (int i = 1; m && gt_members_is_host0(m) && i < gt_members_count(m); i++) {
		const struct member_conn *p = &m->conn[i];
		if (is_ready(m, p) && !p->took_part && m->polled < p->heard + FRESH_S && gt_clock() >= p->joined + JOIN_S)
			return true;
	}
	return false;
}

int gt_members_lost(const struct gt_members *m)
{
	return m->lost;
}

void gt_members_settle(struct gt_members *m, bool saved)
{
	m->runs_on = false;
	m->saved = saved;
	m->settled_at = gt_clock();
	for (int i = 1; i < gt_members_count(m); i++) {
		struct member_conn *p = &m->conn[i];
		bool open = m->record[i].open;
		gt_host_record_settle(&m->record[i], saved);
		if (open && p->ready && p->joined == INFINITY)
			schedule_host(m, p);
	}
}

enum gt_code gt_members_start(struct gt_members *m, const struct gt_launch_from *from, struct gt_member_start *out, struct gt_err *err)
{
	struct member_message w = {.kind = MEMBER_START, .step = from->step, .exact = from->exact, .nnodes = 1};
	int index = 0;
	for (int i = 1; i < gt_members_count(m); i++) {
		struct member_conn *p = &m->conn[i];
		p->busy = is_ready(m, p);
		w.nnodes += p->busy;
		if (p->busy && !p->took_part)
			note_change(m, "host %d (%s) joins", i, p->host);
	}
	if (getrandom(w.data, sizeof w.data, 0) != sizeof w.data)
		return gt_fail(err, GT_EFAIL, "cannot get random numbers: %s", strerror(errno));
	*out = (struct gt_member_start){.nnodes = w.nnodes, .from = *from};
	gt_members_set_number(m, w.data, out->token);
	m->has_event = false;
	m->runs = true;
	m->runs_on = true;
	m->lost = 0;
	snprintf(out->changes, sizeof out->changes, "%s", m->changes);
	*m->changes = 0;
	for (int i = 1; i < gt_members_count(m); i++) {
		struct member_conn *p = &m->conn[i];
		p->took_part = p->busy;
		p->ready &= !p->busy;
		p->index = w.node = p->busy ? ++index : 0;
		if (p->busy)
			gt_member_send(m, p, w);
	}
	return GT_OK;
}

void gt_members_finish(struct gt_members *m, enum gt_code code, const char *why)
{
	struct member_message w = {.kind = MEMBER_FINISH, .code = (int32_t)code};
	if (!strncmp(why, "rank ", 5)) /* a rank of this host */
		snprintf(w.why, sizeof w.why, "node 0 (%s): %.1000s", m->host, why);
	else
		snprintf(w.why, sizeof w.why, "%s", why);
	for (int i = 1; i < gt_members_count(m); i++)
		gt_member_send(m, &m->conn[i], w);
}
