/* The start of a process that executes a program: a rank or a run. */
#include "launch/launcher_parts.h"
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

/* Removes the signal handlers that the new process has inherited. */
static void reset_handlers(void)
{
	for (int sig = 1; sig < NSIG; sig++) {
		struct sigaction now;
		if (!sigaction(sig, NULL, &now) && now.sa_handler != SIG_IGN && now.sa_handler != SIG_DFL)
			signal(sig, SIG_DFL);
	}
}

pid_t gt_fork_program(const sigset_t *mask, int orphan_code)
{
	sigset_t all, before;
	pid_t parent = getpid();
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &before);
	pid_t pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent) /* the parent died before the kernel registered PR_SET_PDEATHSIG */
			_exit(orphan_code);
		setpgid(0, 0);
		reset_handlers();
		sigprocmask(SIG_SETMASK, mask, NULL);
		return 0;
	}
	int e = errno;
	if (pid > 0)
		setpgid(pid, pid); /* both processes set the group, so that it is set before either process continues */
	sigprocmask(SIG_SETMASK, &before, NULL);
	errno = e;
	return pid;
}
