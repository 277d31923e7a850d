/* The attempts of an elastic run, in which hosts may be lost and join: the launcher of host 0 forms the attempts, and the others follow
 * (launch/members.h). Between two attempts, the hosts agree on the checkpoint from which all of them continue. */
#include "base/clock.h"
#include "base/descriptors.h"
#include "launch/launcher_parts.h"
#include "launch/members.h"
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define GATHER_S 300.0 /* minimum seconds that hosts wait for each other, as in a rendezvous */
#define CALL_S 5.0     /* seconds after the minimum number of hosts is there, in which host 0 waits for further hosts at the start */
#define TICK_S 0.1

struct elastic {
	struct gt_attempt *a;
	const struct gt_launch_spec *spec; /* the run; a->spec is one attempt's while it runs */
	const sigset_t *mask;
	bool kill_leftovers;
	int index; /* index of this host in the last attempt */
	struct gt_launch_end *end;
	struct gt_err *err;
};

static void say_line(const struct elastic *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void say_line(const struct elastic *e, const char *fmt, ...)
{
	char line[1800];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	if (e->spec->say)
		e->spec->say(e->spec->user, line);
}

static double gather_limit(const struct elastic *e)
{
	return e->spec->timeout_s > GATHER_S ? e->spec->timeout_s : GATHER_S;
}

/* Waits for signals and other hosts for a moment. Returns false if the user has stopped the run. */
static bool wait_events(struct elastic *e)
{
	struct gt_attempt *a = e->a;
	struct gt_host_message word;
	struct pollfd p[2] = {{.fd = a->signal_fd, .events = POLLIN}, {.fd = gt_members_fd(a->members), .events = POLLIN}};
	poll(p, 2, (int)(TICK_S * 1e3));
	gt_attempt_signals(a);
	if (gt_members_poll(a->members, &word) && word.kind == GT_HOST_STOPS && !a->stop_signal) {
		a->stop_signal = word.code;
		a->stop_node = word.number;
		snprintf(a->stop_host, sizeof a->stop_host, "%s", word.host);
	}
	return !a->stop_signal;
}

/* Runs one attempt on this host. */
static enum gt_code run_attempt(struct elastic *e, const struct gt_member_start *start)
{
	struct gt_attempt *a = e->a;
	struct gt_launch_spec now = *e->spec;
	char *const *argv = now.args_from(now.user, &start->from, e->err);
	now.node = e->index = start->node;
	now.nnodes = start->nnodes;
	now.min_nodes = 0;
	now.port = e->spec->port + 1; /* the port of the run itself belongs to launch/members.h */
	now.token = start->token;
	if (!argv && e->end->rank >= 0) { /* the reason for this attempt is the failure of the last one */
		struct gt_err refusal = *e->err;
		return gt_fail(e->err, refusal.code, "%.500s; the last attempt failed: %.500s", refusal.msg, e->end->why);
	}
	if (!argv)
		return e->err->code;
	a->spec = &now;
	a->passed = 0;
	enum gt_code code = gt_attempt_run(a, argv, e->mask, e->kill_leftovers, e->end, e->err);
	a->spec = e->spec;
	return code;
}

static void set_stopped(struct elastic *e)
{
	const struct gt_attempt *a = e->a;
	char who[100] = "";
	if (*a->stop_host)
		snprintf(who, sizeof who, "node %d (%s) was ", a->stop_node, a->stop_host);
	e->end->code = (enum gt_code)(128 + a->stop_signal);
	e->end->rank = -1;
	snprintf(e->end->why, sizeof e->end->why, "%s%s by signal %d (%s) between two attempts", who, *who ? "stopped" : "ended",
	         a->stop_signal, strsignal(a->stop_signal));
}

/* ---- host 0 ------------------------------------------------------------------------------------------------------------------- */
/* Waits until enough hosts are there and all of them have ended the last attempt. ready_at: time (gt_clock) before which the next attempt
 * must not start. call_s: seconds for further hosts. Returns false if the run ends, with the reason in e->end. */
static bool gather_hosts(struct elastic *e, double ready_at, double call_s)
{
	const struct gt_launch_spec *s = e->spec;
	struct gt_members *m = e->a->members;
	double until = gt_clock() + gather_limit(e), enough_at = -1, said = gt_clock() + 2 * call_s + 1;
	for (;;) {
		double now = gt_clock();
		int there = 1 + gt_members_ready(m), busy = gt_members_busy(m);
		if (there < s->min_nodes)
			enough_at = -1;
		else if (enough_at < 0)
			enough_at = now;
		if (!busy && now >= ready_at && there >= s->min_nodes && (there == s->nnodes || now >= enough_at + call_s))
			return true;
		if (!wait_events(e)) {
			set_stopped(e);
			return false;
		}
		if (there + busy < s->min_nodes && now >= said) {
			say_line(e, "waiting up to %.0f s for hosts: %d of at least %d are there", until - now, there, s->min_nodes);
			said = until;
		}
		if (there + busy < s->min_nodes && now >= until) {
			*e->end = (struct gt_launch_end){.code = GT_EPEER, .rank = -1, .step = -1, .restarts = e->a->restarts};
			snprintf(e->end->why, sizeof e->end->why,
			         "only %d of at least %d hosts (--nnodes %d:%d) were there after %.0f s", there, s->min_nodes, s->min_nodes, s->nnodes,
			         gather_limit(e));
			return false;
		}
	}
}

/* Decides after an attempt whether another one follows. *ready_at receives the time before which it must not start. */
static bool wants_next_attempt(struct elastic *e, double *ready_at)
{
	struct gt_launch_end *end = e->end;
	struct gt_attempt *a = e->a;
	if (a->stop_signal || end->code == GT_OK)
		return false;
	if (end->code == GT_RANK_REGROUP && end->rank < 0) {
		*ready_at = gt_clock();
		return true;
	}
	if (end->rank < 0 || !gt_launch_is_transient(end->code))
		return false;
	/* wait until the other hosts have ended the attempt, or are known to be lost */
	while (gt_members_busy(a->members))
		if (!wait_events(e)) {
			set_stopped(e);
			return false;
		}
	if (gt_members_lost(a->members)) { /* the loss of a host is no restart: other hosts can replace it */
		*ready_at = gt_clock() + gt_attempt_backoff(e->spec, 0);
		say_line(e, "%s", end->why);
		return true;
	}
	if (a->restarts >= e->spec->max_restarts)
		return false;
	double wait = gt_attempt_backoff(e->spec, a->restarts++);
	*ready_at = gt_clock() + wait;
	say_line(e, "%s; restart %d of %d in %.3g s", end->why, a->restarts, e->spec->max_restarts, wait);
	return true;
}

static enum gt_code lead_run(struct elastic *e)
{
	struct gt_members *m = e->a->members;
	enum gt_code code = GT_OK;
	double ready_at = 0, call_s = CALL_S;
	for (bool more = true; more && code == GT_OK;) {
		struct gt_member_start start;
		char where[64] = "the beginning";
		if (!gather_hosts(e, ready_at, call_s))
			break;
		struct gt_launch_from from = e->spec->find_from(e->spec->user);
		code = gt_members_start(m, &from, &start, e->err);
		if (from.step >= 0)
			snprintf(where, sizeof where, "the checkpoint of step %lld", (long long)from.step);
		if (code == GT_OK)
			say_line(e, "%s%s%d host%s, %d rank%s, from %s", start.changes, *start.changes ? "; " : "", start.nnodes,
			         start.nnodes == 1 ? "" : "s", start.nnodes * e->spec->nproc, start.nnodes * e->spec->nproc == 1 ? "" : "s", where);
		if (code == GT_OK)
			code = run_attempt(e, &start);
		explicit_bzero(&start, sizeof start);
		struct gt_launch_from now = e->spec->find_from(e->spec->user);
		gt_members_settle(m, now.step != from.step || now.exact != from.exact);
		call_s = 0;
		more = code == GT_OK && wants_next_attempt(e, &ready_at);
	}
	gt_members_finish(m, code != GT_OK ? code : e->end->code, code != GT_OK ? e->err->msg : e->end->why);
	return code;
}

/* ---- other hosts -------------------------------------------------------------------------------------------------------------- */
/* Sets the end of the run on this host after host 0 has refused it or has ended the run. If a rank of this host has failed in the last
 * attempt, this failure is the reason, unless the user has stopped the run (128 + n) since. */
static void set_told_end(struct elastic *e, enum gt_member_state state)
{
	struct gt_launch_end *end = e->end;
	enum gt_code code;
	const char *why = gt_members_last(e->a->members, &code);
	bool refused = state == GT_MEMBER_REFUSES;
	/* end->rank can be a rank of another host, whose failure host 0 knows better */
	bool is_mine = end->rank >= 0 && end->rank / e->spec->nproc == e->index;
	if (is_mine && code != GT_OK && code < 128 && !refused)
		return;
	end->rank = -1;
	/* for this host, a transient failure of another host is a lost peer */
	end->code = !refused && code < 128 && gt_launch_is_transient(code) ? GT_EPEER : code;
	/* a sentence about a rank names the host of this rank */
	const char *prefix = refused ? "host 0 refuses this host: " : code == GT_OK || !strncmp(why, "node ", 5) ? "" : "host 0: ";
	snprintf(end->why, sizeof end->why, "%s%.1000s", prefix, why);
}

/* Waits until host 0 starts an attempt with this host (returns true), or the run has ended for this host (e->end). */
static bool await_start(struct elastic *e, struct gt_member_start *start)
{
	const struct gt_launch_spec *s = e->spec;
	struct gt_launch_end *end = e->end;
	double until = gt_clock() + gather_limit(e), said = gt_clock() + 10;
	for (enum gt_member_state state; (state = gt_members_told(e->a->members, start)) != GT_MEMBER_STARTS;) {
		if (state == GT_MEMBER_WAITS)
			until = gt_clock() + gather_limit(e);
		if (state == GT_MEMBER_REFUSES || state == GT_MEMBER_FINISHES) {
			set_told_end(e, state);
			return false;
		}
		const char *obstacle = state == GT_MEMBER_LOST ? gt_members_obstacle(e->a->members) : NULL;
		if (state == GT_MEMBER_LOST && (gt_clock() >= said || (obstacle && said < until))) {
			say_line(e, "waiting up to %.0f s for host 0 at %s, port %d%s%s", until - gt_clock(), s->addr, s->port, obstacle ? "; " : "",
			         obstacle ? obstacle : "");
			said = until;
		}
		if (gt_clock() >= until) {
			*end = (struct gt_launch_end){.code = GT_EPEER, .rank = -1, .step = -1};
			snprintf(end->why, sizeof end->why,
			         "host 0 could not be reached at %s, port %d, for %.0f s: %s", s->addr, s->port, gather_limit(e),
			         obstacle ? obstacle : "a run that hosts may join or leave needs host 0; start it there again with `gtrain resume`");
			return false;
		}
		if (!wait_events(e)) {
			set_stopped(e);
			return false;
		}
	}
	return true;
}

static enum gt_code follow_run(struct elastic *e)
{
	struct gt_members *m = e->a->members;
	struct gt_member_start start;
	enum gt_code code = GT_OK;
	while (code == GT_OK && await_start(e, &start)) {
		code = run_attempt(e, &start);
		if (code != GT_OK || e->a->stop_signal)
			break;
		gt_members_report(m, e->end);
	}
	explicit_bzero(&start, sizeof start);
	if (code != GT_OK || e->a->stop_signal)
		gt_members_leave(m, code != GT_OK ? code : e->end->code, code != GT_OK ? e->err->msg : e->end->why);
	return code;
}

enum gt_code gt_elastic_run(struct gt_attempt *a, const sigset_t *mask, bool kill_leftovers, struct gt_launch_end *end, struct gt_err *err)
{
	struct elastic e = {.a = a, .spec = a->spec, .mask = mask, .kill_leftovers = kill_leftovers, .end = end, .err = err};
	GT_TRY(gt_members_open(a->spec, &a->members, err));
	enum gt_code code = a->spec->node ? follow_run(&e) : lead_run(&e);
	gt_members_close(a->members);
	a->members = NULL;
	return code;
}
