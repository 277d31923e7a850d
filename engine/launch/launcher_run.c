/* A run on this host: one attempt after another, until the ranks end in order or no restart is left. */
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/peer_auth.h"
#include "launch/launcher_parts.h"
#include "launch/signals.h"
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define SPARE (GT_AUTH_PENDING + 32) /* number of descriptors for connections that have not been authenticated */
#define LATE_S 2.0 /* maximum seconds between the times at which two launchers end their back-off */

static enum gt_code check_spec(const struct gt_launch_spec *s, struct gt_err *err)
{
	if (s->nproc < 1 || s->nproc > GT_LAUNCH_MAX)
		return gt_fail(err, GT_EUSAGE, "%d ranks on this host: expected 1 to %d", s->nproc, GT_LAUNCH_MAX);
	if (s->nnodes < 0 || (int64_t)s->nnodes * s->nproc > GT_WORLD_MAX || (s->nnodes > 1 && (s->node < 0 || s->node >= s->nnodes)))
		return gt_fail(err, GT_EUSAGE, "node %d of %d nodes with %d ranks each: expected a node below %d, and at most %d ranks in total",
		               s->node, s->nnodes, s->nproc, s->nnodes, GT_WORLD_MAX);
	if (s->nnodes > 1 && (!s->addr || !*s->addr || strlen(s->addr) >= GT_ADDR_SIZE || s->port < 1 || s->port > 65535))
		return gt_fail(err, GT_EUSAGE, "a run on %d hosts needs the address and port of rank 0: --master-addr and --master-port",
		               s->nnodes);
	if (s->min_nodes && s->port > 65535 - 2)
		return gt_fail(err, GT_EUSAGE, "--master-port %d: expected at most %d, because --nnodes %d:%d uses three ports", s->port, 65535 - 2,
		               s->min_nodes, s->nnodes);
	if (s->nnodes > 1 && !s->token)
		return gt_fail(err, GT_EUSAGE, "a run on %d hosts needs a token that is the same on all hosts: --token-file", s->nnodes);
	return GT_OK;
}

double gt_attempt_backoff(const struct gt_launch_spec *s, int restarts)
{
	double wait = s->backoff_s > 0 ? s->backoff_s : 1;
	for (int i = 0; i < restarts && wait < 60; i++)
		wait *= 2;
	return wait < 60 ? wait : 60;
}

enum gt_code gt_attempt_run(struct gt_attempt *a, char *const *argv, const sigset_t *mask, bool kill_leftovers, struct gt_launch_end *end,
                            struct gt_err *err)
{
	enum gt_code code = gt_attempt_open(a, argv, mask, err);
	if (code == GT_OK) {
		*end = (struct gt_launch_end){.rank = -1, .step = -1, .restarts = a->restarts};
		gt_attempt_supervise(a, end);
	}
	gt_attempt_close(a);
	if (kill_leftovers)
		gt_attempt_kill_leftovers();
	return code;
}

/* Decides whether another attempt follows. If so, waits for the back-off, sets *argv to its arguments and returns true. If the user has
 * stopped the run, informs the other hosts and returns false. */
static bool next_attempt_args(struct gt_attempt *a, struct gt_launch_end *end, char *const **argv)
{
	const struct gt_launch_spec *s = a->spec;
	char line[1400];
	if (a->restarts >= s->max_restarts || end->rank < 0 || !gt_launch_is_transient(end->code))
		return false;
	if (!a->stop_signal && s->again && !(*argv = s->again(s->user, end)))
		return false;
	double wait = gt_attempt_backoff(s, a->restarts), until = gt_clock() + wait;
	if (!a->stop_signal) {
		a->restarts++;
		snprintf(line, sizeof line, "%s; restart %d of %d in %.3g s", end->why, a->restarts, s->max_restarts, wait);
		if (s->say)
			s->say(s->user, line);
		if (gt_attempt_pause(a, wait))
			return true;
		end->code = (enum gt_code)(128 + a->stop_signal);
	}
	if (!*a->stop_host) /* without this message, the other hosts would begin the next attempt and wait for this host */
		gt_attempt_announce_stop(a, until - gt_clock() + LATE_S);
	return false;
}

/* Reserves descriptors: two for each rank, two more while a rank is started, and one for the connection to each host. */
static enum gt_code reserve_descriptors(const struct gt_launch_spec *s, struct gt_err *err)
{
	char who[64];
	int need = 2 * s->nproc + 8 + (s->nnodes > 1 ? s->nnodes + 5 : 0) + (s->min_nodes ? s->nnodes + 5 : 0);
	snprintf(who, sizeof who, "%d rank%s on this host", s->nproc, s->nproc == 1 ? "" : "s");
	return gt_descriptors_reserve(need, need + SPARE, who, err);
}

/* Returns the first signal that arrived while the run ended and asks for its end, or 0. */
static int restore_signals(const sigset_t *mask, const struct sigaction *chld, int signal_fd)
{
	struct signalfd_siginfo si;
	int asked = 0;
	while (signal_fd >= 0 && read(signal_fd, &si, sizeof si) == sizeof si)
		if (!asked && si.ssi_signo != SIGCHLD && si.ssi_signo != SIGTSTP)
			asked = (int)si.ssi_signo;
	gt_fd_close(&signal_fd);
	sigaction(SIGCHLD, chld, NULL);
	sigprocmask(SIG_SETMASK, mask, NULL);
	return asked;
}

enum gt_code gt_launch_run(const struct gt_launch_spec *spec, struct gt_launch_end *end, struct gt_err *err)
{
	struct addrinfo *addresses = NULL;
	struct gt_launch_spec own = *spec;
	struct gt_attempt a = {.spec = &own, .board_fd = -1, .listen_fd = -1};
	char *const *argv = spec->argv;
	struct sigaction chld;
	sigset_t mask;
	own.addresses = &addresses;
	*end = (struct gt_launch_end){.rank = -1, .step = -1};
	GT_TRY(check_spec(spec, err));
	/* if one of these was closed at the start, /dev/null takes its number, so that no other file gets this number */
	for (int fd = 0; fd >= 0 && fd <= 2;)
		if ((fd = open("/dev/null", O_RDWR)) > 2)
			close(fd);
	/* Processes that ranks leave behind become children of this process when the ranks end, so that they can be killed too. If this process
	 * has other children, this is not done. */
	int reaper = 0;
	bool alone = waitid(P_ALL, 0, &(siginfo_t){0}, WEXITED | WNOHANG | WNOWAIT) && errno == ECHILD;
	GT_TRY(reserve_descriptors(spec, err));
	prctl(PR_GET_CHILD_SUBREAPER, &reaper);
	if (alone)
		prctl(PR_SET_CHILD_SUBREAPER, 1);
	/* If SIGCHLD were ignored, as an inherited SIG_IGN would do, waitid would not report exit codes. */
	sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL}, &chld);
	a.signal_fd = gt_signal_fd(&mask);
	if (gt_signals_pending()) /* it arrived before it was blocked, for example when a smoke test made its plan: signal_fd reports it, too */
		raise(gt_signals_pending());
	enum gt_code code = a.signal_fd < 0 ? gt_fail(err, GT_EFAIL, "cannot wait for signals: %s", strerror(errno)) : GT_OK;
	if (code == GT_OK && spec->min_nodes)
		code = gt_elastic_run(&a, &mask, alone, end, err);
	for (bool more = code == GT_OK && !spec->min_nodes; more;) {
		code = gt_attempt_run(&a, argv, &mask, alone, end, err);
		more = code == GT_OK && next_attempt_args(&a, end, &argv);
	}
	if (addresses)
		freeaddrinfo(addresses);
	int asked = restore_signals(&mask, &chld, a.signal_fd);
	prctl(PR_SET_CHILD_SUBREAPER, (unsigned long)reaper);
	if (code != GT_OK) { /* the attempt could not be started */
		*end = (struct gt_launch_end){.code = code, .rank = -1, .step = -1, .restarts = a.restarts};
		snprintf(end->why, sizeof end->why, "%s", err ? err->msg : gt_code_text(code));
	} else if (end->code != GT_OK) {
		gt_fail(err, end->code, "%s", end->why);
	}
	end->asked = a.stop_signal ? a.stop_signal : asked;
	return end->code;
}
