#include "launch/run_process.h"
#include "launch/launcher_parts.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* All data of the new process, prepared before fork(). */
struct child_args {
	int log;
	bool pin;
	cpu_set_t cpus;
};

/* Gives the process its share of the processors. If there are more processes than processors, each process has one thread. */
static void use_share(const struct gt_run_process_spec *s, const struct child_args *a)
{
	if (s->slots < 2)
		return;
	if (a->pin)
		sched_setaffinity(0, sizeof a->cpus, &a->cpus); /* a failure is ignored, because the run would only be slower */
	else
		setenv("OMP_NUM_THREADS", "1", 0);
}

static _Noreturn void exec_program(const struct gt_run_process_spec *s, const struct child_args *a)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (null >= 0)
		dup2(null, STDIN_FILENO);
	dup2(a->log, STDOUT_FILENO);
	dup2(a->log, STDERR_FILENO);
	use_share(s, a);
	if (s->gpus)
		setenv("CUDA_VISIBLE_DEVICES", s->gpus, 1);
	execv("/proc/self/exe", s->argv); /* /proc/self/exe is the running program, even if its file was replaced */
	fprintf(stderr, "gtrain: cannot execute the program again: %s\n", strerror(errno));
	_exit(GT_EFAIL);
}

enum gt_code gt_run_process_start(const struct gt_run_process_spec *spec, struct gt_run_process *out, struct gt_err *err)
{
	struct gt_cpu_info place[CPU_SETSIZE];
	struct child_args a = {0};
	sigset_t none;
	int cores;
	*out = (struct gt_run_process){0};
	a.log = open(spec->log, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0666);
	if (a.log < 0)
		return gt_fail(err, GT_ECANTCREAT, "%s: cannot open: %s", spec->log, strerror(errno));
	if (spec->slots > 1)
		a.pin = gt_cpu_share(place, gt_cpu_list(place), spec->slot, spec->slots, &a.cpus, &cores);
	sigemptyset(&none);
	out->pid = gt_fork_program(&none, GT_EFAIL);
	if (!out->pid)
		exec_program(spec, &a);
	int e = errno;
	close(a.log);
	if (out->pid < 0)
		return gt_fail(err, GT_EFAIL, "cannot start a process: %s", strerror(e));
	return GT_OK;
}

bool gt_run_process_ended(struct gt_run_process *p)
{
	int status;
	if (p->ended || waitpid(p->pid, &status, WNOHANG) != p->pid)
		return p->ended;
	p->ended = true;
	p->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	p->status = p->signal ? 128 + p->signal : WEXITSTATUS(status);
	return true;
}

void gt_run_process_signal(const struct gt_run_process *p, int sig)
{
	if (!p->ended)
		kill(p->pid, sig);
}
