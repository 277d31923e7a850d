/* Signals that a launcher receives and forwards to its ranks and to the launchers of other hosts. */
#include "base/clock.h"
#include "base/descriptors.h"
#include "launch/hosts.h"
#include "launch/launcher_parts.h"
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define TICK_S 0.1 /* seconds between two checks for signals while the launcher informs other hosts */

static const int watched[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGTSTP};

int gt_signal_fd(sigset_t *before)
{
	sigset_t set;
	sigemptyset(&set);
	for (size_t i = 0; i < sizeof watched / sizeof *watched; i++) {
		struct sigaction now;
		sigaction(watched[i], NULL, &now);
		if (now.sa_handler != SIG_IGN) /* block no ignored signal, such as SIGHUP under nohup: signalfd would report it */
			sigaddset(&set, watched[i]);
	}
	sigprocmask(SIG_BLOCK, &set, before);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

void gt_attempt_signal_ranks(struct gt_attempt *a, int sig, bool group)
{
	for (int i = 0; a->child && i < a->spec->nproc; i++)
		if (gt_child_alive(&a->child[i]))
			kill(group ? -a->child[i].pid : a->child[i].pid, sig);
}

/* Handles Ctrl-Z. The ranks are not in the terminal's foreground group, so the launcher stops them before it stops itself, and continues
 * them after SIGCONT. */
static void suspend_ranks(struct gt_attempt *a)
{
	gt_attempt_signal_ranks(a, SIGSTOP, true);
	raise(SIGSTOP);
	gt_attempt_signal_ranks(a, SIGCONT, true);
	for (int i = 0; a->child && i < a->spec->nproc; i++)
		a->child[i].beat_at = gt_clock();
}

void gt_attempt_stop(struct gt_attempt *a, int sig, bool now)
{
	if (!a->stop_signal)
		a->stop_signal = sig;
	if (now)
		gt_attempt_signal_ranks(a, SIGKILL, true);
	else if (!(a->passed & 1u << sig))
		gt_attempt_signal_ranks(a, sig, false);
	a->passed |= 1u << sig;
}

void gt_attempt_signals(struct gt_attempt *a)
{
	struct signalfd_siginfo si;
	while (read(a->signal_fd, &si, sizeof si) == sizeof si) {
		int sig = (int)si.ssi_signo;
		if (sig == SIGCHLD)
			continue;
		if (sig == SIGTSTP) {
			suspend_ranks(a);
			continue;
		}
		a->interrupts += sig == SIGINT;
		gt_hosts_stop(a->hosts, sig, a->interrupts > 1, 0);
		gt_attempt_stop(a, sig, a->interrupts > 1);
	}
}

bool gt_attempt_pause(struct gt_attempt *a, double seconds)
{
	for (double until = gt_clock() + seconds, left; !a->stop_signal && (left = until - gt_clock()) > 0;) {
		struct pollfd p = {.fd = a->signal_fd, .events = POLLIN};
		poll(&p, 1, (int)(left * 1e3) + 1);
		gt_attempt_signals(a);
	}
	return !a->stop_signal;
}

void gt_attempt_announce_stop(struct gt_attempt *a, double seconds)
{
	const struct gt_launch_spec *s = a->spec;
	struct gt_host_message word;
	int rendezvous = -1;
	if (s->nnodes <= 1 || gt_hosts_open(s, s->token, &rendezvous, &a->hosts, NULL) != GT_OK)
		return;
	gt_fd_close(&rendezvous);
	gt_hosts_stop(a->hosts, a->stop_signal, false, seconds);
	while (gt_hosts_pending(a->hosts) && a->interrupts < 2) {
		struct pollfd p[2] = {{.fd = a->signal_fd, .events = POLLIN}, {.fd = gt_hosts_fd(a->hosts), .events = POLLIN}};
		poll(p, 2, (int)(TICK_S * 1e3));
		gt_attempt_signals(a);
		gt_hosts_receive(a->hosts, &word);
	}
	gt_hosts_close(a->hosts);
	a->hosts = NULL;
}
