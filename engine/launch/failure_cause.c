/* Decides why an attempt ends: names the first rank that has failed, on this host or on another one, and its cause. */
#include "base/clock.h"
#include "launch/supervise_parts.h"
#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PEER_WAIT_S 0.2  /* seconds in which the launcher must detect the end of a lost peer after a rank reported the loss */
#define SETTLE_WAIT_S 0.3 /* further seconds in which node 0 tells the other hosts that no host knows the cause */
#define LOST "lost the connection to other ranks"

static int64_t step_of(const struct watch *w, int local)
{
	return atomic_load_explicit(&w->a->board->slot[local].step, memory_order_relaxed);
}

/* Describes where a rank is, as in "at step 118 (saving a checkpoint)". */
static void describe_position(const struct watch *w, int local, char *out, size_t size)
{
	char phase[GT_PHASE_SIZE], at[40] = "before step 0";
	memcpy(phase, w->a->board->slot[local].phase, sizeof phase);
	phase[sizeof phase - 1] = 0;
	if (step_of(w, local) >= 0)
		snprintf(at, sizeof at, "at step %lld", (long long)step_of(w, local));
	snprintf(out, size, "%s%s%s%s", at, *phase ? " (" : "", phase, *phase ? ")" : "");
}

static double get_grace(const struct watch *w)
{
	return w->a->spec->grace_s > 0 ? w->a->spec->grace_s : 1.5;
}

/* Ends all running ranks: sends SIGTERM, and SIGKILL after the grace period. A stopped rank does not react to SIGTERM and gets SIGKILL at
 * once. */
static void end_all(struct watch *w)
{
	struct gt_attempt *a = w->a;
	w->failed_at = gt_clock();
	w->kill_at = w->failed_at + get_grace(w);
	for (int i = 0; i < a->spec->nproc; i++)
		/* Closing the link wakes a rank that waits for the failed rank, because its gt_rank_end_fd becomes readable. */
		if (gt_child_alive(&a->child[i]) && a->child[i].link >= 0) {
			send(a->child[i].link, w->end->why, strlen(w->end->why), MSG_DONTWAIT | MSG_NOSIGNAL);
			shutdown(a->child[i].link, SHUT_WR);
		}
	for (int i = 0; i < a->spec->nproc; i++)
		if (gt_child_alive(&a->child[i]))
			kill(a->child[i].stopped ? -a->child[i].pid : a->child[i].pid, a->child[i].stopped ? SIGKILL : SIGTERM);
}

static void describe_failure(const struct watch *w, int local, enum gt_code code, const char *what, struct gt_launch_end *e)
{
	const struct gt_child *c = &w->a->child[local];
	char where[128];
	describe_position(w, local, where, sizeof where);
	e->code = code;
	e->rank = gt_watch_rank(w, local);
	e->step = step_of(w, local);
	if (c->has_error && c->error.text[0])
		snprintf(e->why, sizeof e->why, "rank %d: %s", e->rank, c->error.text);
	else
		snprintf(e->why, sizeof e->why, "rank %d %s %s", e->rank, what, where);
}

/* Ends the attempt because rank `local` has failed. Stores the failure in w->end, unless an earlier failure is stored there. */
static void record_failure(struct watch *w, int local, enum gt_code code, const char *what)
{
	if (w->failed_at >= 0)
		return;
	describe_failure(w, local, code, what, w->end);
	w->assumed = w->lost == local;
	if (!w->assumed) /* a lost peer is not reported to the other hosts as the cause: they detect it themselves */
		gt_hosts_send_end(w->a->hosts, w->end);
	end_all(w);
}

/* Returns whether a rank has reported an error of its own, not the loss of a peer and not the end by a signal. */
static bool has_own_error(const struct gt_child *c)
{
	return c->has_error && c->error.code > 0 && c->error.code < 128 && c->error.code != GT_EPEER;
}

void gt_watch_announce_error(struct watch *w, int local)
{
	struct gt_launch_end e = {0};
	const struct gt_child *c = &w->a->child[local];
	if (w->failed_at >= 0 || w->a->stop_signal || !has_own_error(c))
		return;
	describe_failure(w, local, (enum gt_code)c->error.code, "", &e);
	gt_hosts_send_end(w->a->hosts, &e);
}

/* Ends the attempt because another host reported a failure. */
static void record_host_failure(struct watch *w, const struct gt_host_message *word)
{
	struct gt_launch_end *e = w->end;
	enum gt_code code = word->code > 0 && word->code < 256 ? (enum gt_code)word->code : GT_EPEER;
	bool ends = w->failed_at < 0, is_own = word->node == w->a->spec->node;
	if (!ends && !w->assumed)
		return;
	w->assumed = false;
	/* For this host, a transient failure of another host is a lost peer. A permanent failure ends the run on this host, too. */
	e->code = gt_launch_is_transient(code) ? GT_EPEER : code;
	e->rank = word->rank >= 0 ? word->rank : word->node * w->a->spec->nproc;
	e->step = word->step;
	if (is_own) /* no host knows the cause of the loss that this host has reported first */
		snprintf(e->why, sizeof e->why, "%s", word->why);
	else
		snprintf(e->why, sizeof e->why, "node %d%s%s%s: %.1000s", word->number, *word->host ? " (" : "", word->host,
		         *word->host ? ")" : "", word->why);
	if (ends)
		end_all(w);
}

/* Ends the attempt because the user has stopped the run on another host. */
static void handle_host_stop(struct watch *w, const struct gt_host_message *word)
{
	struct gt_attempt *a = w->a;
	bool now = word->step != 0;
	if (word->code < 1 || word->code > 31)
		return;
	if (!a->stop_signal) {
		a->stop_node = word->number;
		snprintf(a->stop_host, sizeof a->stop_host, "%s", *word->host ? word->host : "?");
	}
	if (now && a->interrupts < 2)
		a->interrupts = 2;
	gt_attempt_stop(a, word->code, now);
}

void gt_watch_handle_message(struct watch *w, const struct gt_host_message *word)
{
	if (word->kind == GT_HOST_STOPS)
		handle_host_stop(w, word);
	else
		record_host_failure(w, word);
}

void gt_watch_classify_exit(struct watch *w, int local)
{
	const struct gt_child *c = &w->a->child[local];
	int stop = w->a->stop_signal, code = c->by_signal ? 128 + c->status : c->status;
	/* ranks agree to end by a signal that any of them received */
	bool by_itself = c->has_error && c->error.code == code && code > 128 && !c->by_signal;
	char what[160];
	if (w->failed_at >= 0 || code == 0)
		return;
	bool killed = code == 128 + SIGKILL && (w->a->interrupts > 1 || gt_clock() >= w->kill_at);
	if (by_itself || (stop && (code == 128 + stop || killed))) {
		if (!w->orderly)
			w->orderly_at = gt_clock();
		/* The signal has ended this rank before the ranks could agree on a checkpoint: the others would wait for it in the rendezvous. */
		if (c->by_signal && step_of(w, local) < 0 && w->kill_at == INFINITY)
			w->kill_at = gt_clock() + get_grace(w);
		w->orderly = stop ? 128 + stop : code;
		return;
	}
	if (code == GT_EPEER) {
		if (w->lost < 0) {
			w->lost = local;
			w->lost_at = gt_clock();
		}
		return;
	}
	if (c->by_signal) {
		snprintf(what, sizeof what, "was killed by signal %d (%s)", c->status, strsignal(c->status));
		w->end->signal = c->status;
	} else {
		snprintf(what, sizeof what, "ended with exit code %d (%s)", code, gt_code_text((enum gt_code)code));
	}
	record_failure(w, local, (enum gt_code)code, what);
}

/* Returns a rank of this host that has reported an error of its own; -1: there is none. */
static int find_own_error(const struct gt_attempt *a)
{
	for (int i = 0; i < a->spec->nproc; i++)
		if (has_own_error(&a->child[i]))
			return i;
	return -1;
}

bool gt_watch_classify_loss(struct watch *w, bool all_gone)
{
	struct gt_attempt *a = w->a;
	struct gt_host_message word;
	struct gt_launch_end loss = {0};
	if (w->lost < 0 || w->failed_at >= 0)
		return false;
	if (a->hosts && gt_clock() >= w->lost_at + PEER_WAIT_S && !a->stop_signal && find_own_error(a) < 0) {
		describe_failure(w, w->lost, GT_EPEER, LOST, &loss);
		gt_hosts_send_loss(a->hosts, &loss);
	}
	if (a->hosts ? gt_clock() < w->lost_at + GT_HOST_WAIT_S + (a->spec->node ? SETTLE_WAIT_S : 0)
	             : !all_gone && gt_clock() < w->lost_at + PEER_WAIT_S)
		return true;
	if (a->stop_signal) { /* no failure: the other ranks ended first because the user stopped the run */
		w->orderly = 128 + a->stop_signal;
		w->lost = -1;
		return false;
	}
	for (int i = 0; i < a->spec->nproc; i++)
		if (gt_child_alive(&a->child[i]) && a->child[i].stopped) {
			record_failure(w, i, GT_EPEER, "is stopped (a SIGSTOP, or a debugger), and other ranks lost their connection to it,");
			return false;
		}
	int own = find_own_error(a);
	if (own >= 0) { /* it has not ended yet */
		record_failure(w, own, (enum gt_code)a->child[own].error.code, "");
		return false;
	}
	gt_hosts_settle_loss(a->hosts);
	while (gt_hosts_receive(a->hosts, &word))
		gt_watch_handle_message(w, &word);
	record_failure(w, w->lost, GT_EPEER, LOST);
	return false;
}

static bool is_behind(const struct watch *w, int i, int j)
{
	int64_t si = step_of(w, i), sj = step_of(w, j);
	return si != sj ? si < sj : w->a->child[i].beat_at < w->a->child[j].beat_at;
}

void gt_watch_check_progress(struct watch *w, double now)
{
	struct gt_attempt *a = w->a;
	int worst = -1, waiting = -1, left = 0, stuck_waiting = 0;
	char what[160];
	for (int i = 0; i < a->spec->nproc; i++) {
		struct gt_child *c = &a->child[i];
		struct gt_board_slot *s = &a->board->slot[i];
		/* `waits` is read before the beats, because gt_rank_set_waiting writes the beats first. */
		bool waits = !c->stopped && atomic_load_explicit(&s->waits, memory_order_acquire);
		uint64_t beats = atomic_load_explicit(&s->beats, memory_order_acquire);
		uint32_t allow = atomic_load_explicit(&s->allow_ms, memory_order_relaxed);
		/* A rank that is stopped does not get the time that it requested with gt_rank_phase. */
		double limit = allow && !c->stopped ? allow * 1e-3 : a->spec->timeout_s;
		if (!gt_child_alive(c))
			continue;
		left++;
		if (beats != c->beats) {
			c->beats = beats;
			c->beat_at = now;
		}
		if (now - (c->stopped && c->stopped_at > c->beat_at ? c->stopped_at : c->beat_at) <= limit)
			continue;
		/* A waiting rank gets twice the time: its communicator times out first, with an error that names the rank for which it waits. */
		if (waits && now - c->beat_at <= 2 * limit + 1)
			continue;
		int *slot = waits ? &waiting : &worst;
		stuck_waiting += waits;
		if (*slot < 0 || (c->stopped && !a->child[*slot].stopped) ||
		    (c->stopped == a->child[*slot].stopped && is_behind(w, i, *slot)))
			*slot = i;
	}
	if (worst < 0 && left && stuck_waiting == left)
		worst = waiting;
	if (worst < 0)
		return;
	const char *how = a->child[worst].stopped ? "is stopped (a SIGSTOP, or a debugger) and made" : "made";
	snprintf(what, sizeof what, "%s no progress for %.3g s", how, now - a->child[worst].beat_at);
	/* If the rank has reported an error and then hangs while it exits, this error is the cause of the failure. */
	record_failure(w, worst, a->child[worst].has_error ? (enum gt_code)a->child[worst].error.code : GT_EPEER, what);
	/* The rank does not react, so SIGTERM would only delay its end by the grace period. */
	if (gt_child_alive(&a->child[worst]))
		kill(-a->child[worst].pid, SIGKILL);
}
