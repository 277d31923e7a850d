/* Supervises the ranks of one attempt: passes on their output, checks their progress, collects their exit codes, and ends all ranks after
 * the failure of one. */
#include "base/clock.h"
#include "base/descriptors.h"
#include "launch/hosts.h"
#include "launch/launcher_parts.h"
#include "launch/members.h"
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TICK_S 0.1       /* seconds between two checks of the board */
#define PEER_WAIT_S 0.2  /* seconds in which the launcher must detect the end of a lost peer after a rank reported the loss */
#define HOST_WAIT_S 0.7  /* seconds that the launcher waits for another host's message about the end of a lost peer */
#define BURST (64 << 10) /* bytes that are read from one rank before other ranks are read */
#define TAIL (1 << 20)   /* maximum bytes that are read after a rank's end, because a process that left its group may write for ever */

struct watch {
	struct gt_attempt *a;
	struct gt_launch_end *end;
	double failed_at;  /* time (gt_clock) of the first failure; < 0: no failure so far */
	int lost;          /* the first rank that lost a peer, while no other failure is known; -1: none */
	double lost_at;
	double kill_at;    /* time at which the remaining ranks get SIGKILL; INFINITY: never */
	int orderly;       /* 128 + n: a rank has shut down cleanly after signal n; 0: no rank has */
	double orderly_at;
};

/* ---- output and messages of a rank -------------------------------------------------------------------------------------------------- */
static int rank_of(const struct watch *w, int local)
{
	const struct gt_launch_spec *s = w->a->spec;
	return (s->nnodes > 1 ? s->node * s->nproc : 0) + local;
}

static void forward_line(const struct watch *w, int local)
{
	struct gt_child *c = &w->a->child[local];
	char text[sizeof c->line + 32];
	if (w->a->spec->say) {
		snprintf(text, sizeof text, "[rank %d] %.*s", rank_of(w, local), (int)c->nline, c->line);
		w->a->spec->say(w->a->spec->user, text);
	}
	c->nline = 0;
}

/* Reads at most `cap` bytes of the rank's output. Returns false if no output is left or the rank has no pipe. */
static bool read_output(const struct watch *w, int local, size_t cap)
{
	struct gt_child *c = &w->a->child[local];
	char buf[4096];
	while (c->out >= 0 && cap) {
		ssize_t n = read(c->out, buf, sizeof buf < cap ? sizeof buf : cap);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return false;
		if (n <= 0) { /* all writers of the pipe have closed it */
			gt_fd_close(&c->out);
			break;
		}
		cap -= (size_t)n;
		for (ssize_t i = 0; i < n; i++) {
			if (buf[i] != '\n')
				c->line[c->nline++] = buf[i] ? buf[i] : '?';
			if (buf[i] == '\n' || c->nline == sizeof c->line) /* a line that is too long is printed in pieces */
				forward_line(w, local);
		}
	}
	return c->out >= 0;
}

static void read_error(struct gt_child *c)
{
	struct gt_rank_error got;
	while (c->link >= 0) {
		ssize_t n = recv(c->link, &got, sizeof got, MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0) {
			gt_fd_close(&c->link);
		} else if (n == sizeof got && !c->has_error) {
			c->error = got;
			c->error.text[sizeof c->error.text - 1] = 0;
			c->has_error = true;
		}
	}
}

/* ---- attribution of failures -------------------------------------------------------------------------------------------------------- */
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

/* Ends all running ranks: sends SIGTERM, and SIGKILL after the grace period. A stopped rank does not react to SIGTERM and gets SIGKILL at
 * once. */
static void end_all(struct watch *w)
{
	struct gt_attempt *a = w->a;
	w->failed_at = gt_clock();
	w->kill_at = w->failed_at + (a->spec->grace_s > 0 ? a->spec->grace_s : 1.5);
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

/* Ends the attempt because rank `local` has failed. Stores the failure in w->end, unless an earlier failure is stored there. */
static void record_failure(struct watch *w, int local, enum gt_code code, const char *what)
{
	struct gt_launch_end *e = w->end;
	const struct gt_child *c = &w->a->child[local];
	char where[128];
	if (w->failed_at >= 0)
		return;
	describe_position(w, local, where, sizeof where);
	e->code = code;
	e->rank = rank_of(w, local);
	e->step = step_of(w, local);
	if (c->has_error && c->error.text[0])
		snprintf(e->why, sizeof e->why, "rank %d: %s", e->rank, c->error.text);
	else
		snprintf(e->why, sizeof e->why, "rank %d %s %s", e->rank, what, where);
	if (w->lost != local) /* a lost peer is not reported to the other hosts, which detect it themselves */
		gt_hosts_send_end(w->a->hosts, e);
	end_all(w);
}

/* Ends the attempt because another host reported a failure. */
static void record_host_failure(struct watch *w, const struct gt_host_message *word)
{
	struct gt_launch_end *e = w->end;
	enum gt_code code = word->code > 0 && word->code < 256 ? (enum gt_code)word->code : GT_EPEER;
	if (w->failed_at >= 0)
		return;
	/* For this host, a transient failure of another host is a lost peer. A permanent failure ends the run on this host, too. */
	e->code = gt_launch_is_transient(code) ? GT_EPEER : code;
	e->rank = word->rank >= 0 ? word->rank : word->node * w->a->spec->nproc;
	e->step = word->step;
	snprintf(e->why, sizeof e->why, "node %d%s%s%s: %.1000s", word->node, *word->host ? " (" : "", word->host, *word->host ? ")" : "",
	         word->why);
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
		a->stop_node = word->node;
		snprintf(a->stop_host, sizeof a->stop_host, "%s", *word->host ? word->host : "?");
	}
	if (now && a->interrupts < 2)
		a->interrupts = 2;
	gt_attempt_stop(a, word->code, now);
}

/* Decides by the exit status of a rank whether it has failed, has ended in order or has lost a peer. */
static void classify_exit(struct watch *w, int local)
{
	const struct gt_child *c = &w->a->child[local];
	int stop = w->a->stop_signal, code = c->by_signal ? 128 + c->status : c->status;
	/* ranks agree to end by a signal that any of them received */
	bool by_itself = c->has_error && c->error.code == code && code > 128 && !c->by_signal;
	char what[160];
	if (w->failed_at >= 0 || code == 0)
		return;
	if (by_itself || (stop && (code == 128 + stop || (w->a->interrupts > 1 && code == 128 + SIGKILL)))) {
		if (!w->orderly)
			w->orderly_at = gt_clock();
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

/* Decides why rank w->lost has lost its peer. Returns true as long as the end of the peer itself may still be detected. */
static bool classify_lost_peer(struct watch *w, bool all_gone)
{
	struct gt_attempt *a = w->a;
	if (w->lost < 0 || w->failed_at >= 0)
		return false;
	if (a->hosts ? gt_clock() < w->lost_at + HOST_WAIT_S : !all_gone && gt_clock() < w->lost_at + PEER_WAIT_S)
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
	record_failure(w, w->lost, GT_EPEER, "lost the connection to other ranks");
	return false;
}

static bool is_behind(const struct watch *w, int i, int j)
{
	int64_t si = step_of(w, i), sj = step_of(w, j);
	return si != sj ? si < sj : w->a->child[i].beat_at < w->a->child[j].beat_at;
}

/* Checks the progress of the ranks, and ends the attempt if a rank makes none. A rank that waits in a collective is named only if all ranks
 * wait. */
static void check_progress(struct watch *w, double now)
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

/* ---- remaining processes ------------------------------------------------------------------------------------------------------------ */
void gt_attempt_kill_leftovers(void)
{
	for (double until = gt_clock() + 2; gt_clock() < until;) {
		siginfo_t si = {0};
		int pid;
		if (waitid(P_ALL, 0, &si, WEXITED | WNOHANG) && errno == ECHILD)
			return;
		if (si.si_pid)
			continue;
		/* some kernels lack this file; this loop then only reaps processes that have ended */
		FILE *f = fopen("/proc/thread-self/children", "re");
		while (f && fscanf(f, "%d", &pid) == 1)
			kill(pid, SIGKILL);
		if (f)
			fclose(f);
		poll(NULL, 0, 1);
	}
}

/* ---- main loop ---------------------------------------------------------------------------------------------------------------------- */
static void reap_rank(struct watch *w, int local)
{
	struct gt_child *c = &w->a->child[local];
	siginfo_t si = {0};
	while (gt_child_alive(c) && !waitid(P_PID, (id_t)c->pid, &si, WEXITED | WSTOPPED | WCONTINUED | WNOHANG | WNOWAIT) && si.si_pid) {
		if (si.si_code == CLD_STOPPED || si.si_code == CLD_CONTINUED) {
			c->stopped = si.si_code == CLD_STOPPED;
			c->stopped_at = gt_clock();
			waitid(P_PID, (id_t)c->pid, &si, WSTOPPED | WCONTINUED | WNOHANG);
			if (c->stopped && w->failed_at >= 0)
				kill(-c->pid, SIGKILL);
			si = (siginfo_t){0};
			continue;
		}
		/* The rank's process group, which has the rank's pid as its id, may contain other processes. They are killed before waitid reaps
		 * the rank: afterwards, the system could give this id to another process group. */
		kill(-c->pid, SIGKILL);
		waitid(P_PID, (id_t)c->pid, &si, WEXITED);
		c->gone = true;
		c->by_signal = si.si_code != CLD_EXITED;
		c->status = si.si_status;
		read_error(c);
		read_output(w, local, TAIL);
		if (c->nline)
			forward_line(w, local);
		gt_fd_close(&c->out);
	}
}

static bool wait_events(struct watch *w, bool more_output)
{
	struct gt_attempt *a = w->a;
	struct pollfd p[3 + 2 * GT_LAUNCH_MAX] = {{.fd = a->signal_fd, .events = POLLIN},
	                                          {.fd = gt_hosts_fd(a->hosts), .events = POLLIN},
	                                          {.fd = gt_members_fd(a->members), .events = POLLIN}};
	struct gt_host_message word;
	int n = 3;
	double wait = a->spec->timeout_s > 0 && a->spec->timeout_s < 4 * TICK_S ? a->spec->timeout_s / 4 : TICK_S;
	for (int i = 0; i < a->spec->nproc; i++) {
		p[n++] = (struct pollfd){.fd = a->child[i].link, .events = POLLIN};
		p[n++] = (struct pollfd){.fd = a->child[i].out, .events = POLLIN};
	}
	/* poll failed: pause, so that this loop does not spin, and continue below */
	if (gt_poll(p, n, more_output ? 0 : wait) < 0)
		nanosleep(&(struct timespec){.tv_nsec = (long)(TICK_S * 1e9)}, NULL);
	gt_attempt_signals(a);
	more_output = false;
	for (int i = 0; i < a->spec->nproc; i++) {
		if (p[3 + 2 * i].revents)
			read_error(&a->child[i]);
		if (p[4 + 2 * i].revents)
			more_output |= read_output(w, i, BURST);
	}
	while (gt_hosts_receive(a->hosts, &word) || gt_members_poll(a->members, &word))
		if (word.kind == GT_HOST_STOPS)
			handle_host_stop(w, &word);
		else
			record_host_failure(w, &word);
	if (gt_members_regroup(a->members))
		atomic_store_explicit(&a->board->regroup, 1, memory_order_relaxed);
	return more_output;
}

/* Returns true if a rank ended by a signal that the user did not send to this host. The message that the user has stopped another host may
 * then still arrive. */
static bool expects_stop_message(const struct watch *w)
{
	return w->orderly && w->orderly != GT_RANK_REGROUP && !w->a->stop_signal && w->a->hosts && w->failed_at < 0 &&
	       gt_clock() < w->orderly_at + HOST_WAIT_S;
}

/* Call it when all ranks have ended after the user's signal. Sets the exit code, and a message with the step and the host that received
 * the signal. */
static void report_stop(struct watch *w)
{
	const struct gt_attempt *a = w->a;
	struct gt_launch_end *e = w->end;
	char who[160] = "", what[sizeof ((struct gt_rank_error *)0)->text];
	int sig = a->stop_signal ? a->stop_signal : w->orderly - 128; /* a rank's own signal can be SIGPIPE instead */
	for (int i = a->spec->nproc - 1; i >= 0 && !a->stop_signal; i--)
		if (!a->child[i].by_signal && a->child[i].status > 128)
			sig = a->child[i].status - 128;
	e->code = (enum gt_code)(128 + sig);
	snprintf(what, sizeof what, "ended by signal %d (%s)", sig, strsignal(sig));
	for (int i = 0; i < a->spec->nproc; i++)
		if (a->child[i].has_error && a->child[i].error.code == (int)e->code && a->child[i].error.text[0]) {
			snprintf(what, sizeof what, "%s", a->child[i].error.text);
			break;
		}
	if (*a->stop_host)
		snprintf(who, sizeof who, "node %d (%s) was stopped by signal %d (%s): ", a->stop_node, a->stop_host, sig, strsignal(sig));
	snprintf(e->why, sizeof e->why, "%s%s", who, what);
}

void gt_attempt_supervise(struct gt_attempt *a, struct gt_launch_end *end)
{
	struct watch w = {.a = a, .end = end, .failed_at = -1, .lost = -1, .kill_at = INFINITY};
	double last = gt_clock(), now;
	bool more_output = false, unclear = false;
	for (int left = a->spec->nproc; left || unclear;) {
		more_output = wait_events(&w, more_output);
		now = gt_clock();
		/* ranks are not blamed for time in which the launcher itself did not run (it was stopped, or `say` blocked) */
		if (now - last > 1 + TICK_S)
			for (int i = 0; i < a->spec->nproc; i++)
				a->child[i].beat_at += now - last;
		last = now;
		bool was[GT_LAUNCH_MAX];
		left = 0;
		for (int i = 0; i < a->spec->nproc; i++) {
			was[i] = gt_child_alive(&a->child[i]);
			reap_rank(&w, i);
		}
		/* all ranks are reaped before their ends are classified, so that the end of a lost peer is known */
		for (int i = 0; i < a->spec->nproc; i++) {
			if (was[i] && a->child[i].gone)
				classify_exit(&w, i);
			left += gt_child_alive(&a->child[i]);
		}
		unclear = classify_lost_peer(&w, !left) || expects_stop_message(&w);
		if (w.failed_at < 0 && a->spec->timeout_s > 0)
			check_progress(&w, now);
		if (now >= w.kill_at)
			gt_attempt_signal_ranks(a, SIGKILL, true);
	}
	end->end_s = w.failed_at >= 0 ? gt_clock() - w.failed_at : 0;
	if (w.failed_at < 0 && (w.orderly || a->interrupts > 1))
		report_stop(&w);
}
