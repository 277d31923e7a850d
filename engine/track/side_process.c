#include "track/side_process.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "launch/signals.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TICK_S 0.01 /* seconds between two checks whether a process has ended */
#define TERM_S 0.5  /* seconds between SIGTERM and SIGKILL */
#define PIPE_BYTES (1 << 20)

extern char **environ;

/* Returns the environment with `variable` ("NAME=value") set; NULL: out of memory. The caller frees the array, but not the strings. */
static char **extend_environment(const char *variable)
{
	size_t n = 0, k = 0, name = variable ? strcspn(variable, "=") + 1 : 0;
	while (environ && environ[n])
		n++;
	char **env = malloc((n + 2) * sizeof *env);
	if (!env)
		return NULL;
	for (size_t i = 0; i < n; i++)
		if (!name || strncmp(environ[i], variable, name))
			env[k++] = environ[i];
	if (variable)
		env[k++] = (char *)variable;
	env[k] = NULL;
	return env;
}

/* Sets the attributes of the new process: only the standard descriptors are open, a process group of its own, and default actions of
 * signals. Returns 0, or the error number of the call that failed. */
static int set_attributes(posix_spawn_file_actions_t *files, posix_spawnattr_t *attr, int in, int out)
{
	sigset_t none, defaults;
	sigemptyset(&none);
	sigemptyset(&defaults);
	sigaddset(&defaults, SIGPIPE);
	int e = posix_spawn_file_actions_adddup2(files, in, STDIN_FILENO);
	e = e ? e : posix_spawn_file_actions_adddup2(files, out, STDOUT_FILENO);
	e = e ? e : posix_spawn_file_actions_adddup2(files, STDOUT_FILENO, STDERR_FILENO);
	e = e ? e : posix_spawn_file_actions_addclosefrom_np(files, STDERR_FILENO + 1);
	e = e ? e : posix_spawnattr_setsigmask(attr, &none);
	e = e ? e : posix_spawnattr_setsigdefault(attr, &defaults);
	return e ? e : posix_spawnattr_setflags(attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

/* Returns 0, or the error number of the call that failed. */
static int spawn_process(const char *path, char *const *argv, char *const *env, int in, int out, pid_t *pid)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	int e = posix_spawn_file_actions_init(&files);
	if (e)
		return e;
	e = posix_spawnattr_init(&attr);
	if (!e) {
		e = set_attributes(&files, &attr, in, out);
		e = e ? e : posix_spawn(pid, path, &files, &attr, argv, env);
		posix_spawnattr_destroy(&attr);
	}
	posix_spawn_file_actions_destroy(&files);
	return e;
}

enum gt_code gt_side_start(const char *path, char *const *argv, const char *variable, bool read_output, struct gt_side_process *p,
                           struct gt_err *err)
{
	int in[2] = {-1, -1}, out[2] = {-1, -1};
	char **env = extend_environment(variable);
	*p = (struct gt_side_process){.in = -1, .out = -1};
	int e = env ? 0 : ENOMEM;
	if (!e && (pipe2(in, O_CLOEXEC) || (read_output && pipe2(out, O_CLOEXEC))))
		e = errno;
	if (!e)
		e = spawn_process(path, argv, env, in[0], read_output ? out[1] : STDERR_FILENO, &p->pid);
	free(env);
	gt_fd_close(&in[0]);
	gt_fd_close(&out[1]);
	if (e) {
		gt_fd_close(&in[1]);
		gt_fd_close(&out[0]);
		return gt_fail_errno(err, GT_EFAIL, e, "cannot start %.200s", path);
	}
	p->in = in[1];
	p->out = out[0];
	fcntl(p->in, F_SETPIPE_SZ, PIPE_BYTES); /* the default size is 64 KiB */
	fcntl(p->in, F_SETFL, O_NONBLOCK);
	if (p->out >= 0)
		fcntl(p->out, F_SETFL, O_NONBLOCK);
	return GT_OK;
}

static bool has_ended(struct gt_side_process *p)
{
	if (!p->ended && waitpid(p->pid, &p->status, WNOHANG) == p->pid)
		p->ended = true;
	return p->ended;
}

static void pause_for(double s)
{
	nanosleep(&(struct timespec){.tv_nsec = (long)(s * 1e9)}, NULL);
}

bool gt_side_wait(struct gt_side_process *p, double wait_s)
{
	double end = gt_clock() + wait_s;
	int before = gt_signals_pending();
	while (!has_ended(p) && gt_clock() < end && gt_signals_pending() == before)
		pause_for(TICK_S);
	return p->ended;
}

void gt_side_kill(struct gt_side_process *p)
{
	gt_fd_close(&p->in);
	gt_fd_close(&p->out);
	if (has_ended(p))
		return;
	kill(-p->pid, SIGTERM);
	for (double end = gt_clock() + TERM_S; !has_ended(p) && gt_clock() < end;)
		pause_for(TICK_S);
	kill(-p->pid, SIGKILL);
	while (!p->ended && waitpid(p->pid, &p->status, 0) < 0 && errno == EINTR)
		;
	p->ended = true;
}

const char *gt_side_end_text(const struct gt_side_process *p, char *buf, size_t size)
{
	if (WIFSIGNALED(p->status))
		snprintf(buf, size, "was killed by signal %d (%s)", WTERMSIG(p->status), strsignal(WTERMSIG(p->status)));
	else
		snprintf(buf, size, "ended with status %d%s", WEXITSTATUS(p->status), WEXITSTATUS(p->status) == 127 ? " (command not found)" : "");
	return buf;
}
