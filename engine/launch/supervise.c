/* Supervises the ranks of one attempt: passes on their output, collects their exit codes, and waits until all have ended. */
#include "base/clock.h"
#include "base/descriptors.h"
#include "launch/members.h"
#include "launch/supervise_parts.h"
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
#define BURST (64 << 10) /* bytes that are read from one rank before other ranks are read */
#define TAIL (1 << 20)   /* maximum bytes that are read after a rank's end, because a process that left its group may write for ever */

/* ---- output and messages of a rank -------------------------------------------------------------------------------------------------- */
static void forward_line(const struct watch *w, int local)
{
	struct gt_child *c = &w->a->child[local];
	char text[sizeof c->line + 32];
	if (w->a->spec->say) {
		snprintf(text, sizeof text, "[rank %d] %.*s", gt_watch_rank(w, local), (int)c->nline, c->line);
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

/* Only host 0 prints the output of the run: the other hosts print one line when they have joined, and one at the end (run_ranks.c). */
static void announce_join(struct gt_attempt *a)
{
	char text[120];
	if (a->joined || !gt_hosts_joined(a->hosts))
		return;
	a->joined = true;
	snprintf(text, sizeof text, "joined host 0 as node %d; the output of the run is on host 0", a->spec->node_rank);
	if (a->spec->say)
		a->spec->say(a->spec->user, text);
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
		if (p[3 + 2 * i].revents) {
			read_error(&a->child[i]);
			gt_watch_announce_error(w, i);
		}
		if (p[4 + 2 * i].revents)
			more_output |= read_output(w, i, BURST);
	}
	while (gt_hosts_receive(a->hosts, &word) || gt_members_poll(a->members, &word))
		gt_watch_handle_message(w, &word);
	announce_join(a);
	if (gt_members_regroup(a->members))
		atomic_store_explicit(&a->board->regroup, 1, memory_order_relaxed);
	return more_output;
}

/* Returns true if a rank ended by a signal that the user did not send to this host. The message that the user has stopped another host may
 * then still arrive. */
static bool expects_stop_message(const struct watch *w)
{
	return w->orderly && w->orderly != GT_RANK_REGROUP && !w->a->stop_signal && w->a->hosts && w->failed_at < 0 &&
	       gt_clock() < w->orderly_at + GT_HOST_WAIT_S;
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
				gt_watch_classify_exit(&w, i);
			left += gt_child_alive(&a->child[i]);
		}
		unclear = gt_watch_classify_loss(&w, !left) || expects_stop_message(&w);
		if (w.failed_at < 0 && a->spec->timeout_s > 0)
			gt_watch_check_progress(&w, now);
		if (now >= w.kill_at)
			gt_attempt_signal_ranks(a, SIGKILL, true);
	}
	end->end_s = w.failed_at >= 0 ? gt_clock() - w.failed_at : 0;
	if (w.failed_at < 0 && (w.orderly || a->interrupts > 1))
		report_stop(&w);
}
