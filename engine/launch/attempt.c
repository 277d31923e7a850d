/* One attempt of a run: the memory and sockets that its ranks share, and a process for each rank. supervise.c watches the processes. */
#include "base/clock.h"
#include "base/descriptors.h"
#include "launch/hosts.h"
#include "launch/launcher_parts.h"
#include "launch/rendezvous.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* ---- resources that the ranks share ------------------------------------------------------------------------------------------------- */
static enum gt_code create_memory_file(const char *name, uint64_t bytes, int *fd, struct gt_err *err)
{
	*fd = memfd_create(name, MFD_CLOEXEC);
	return *fd < 0 || (bytes && ftruncate(*fd, (off_t)bytes)) ? gt_fail_shared(err, bytes, errno) : GT_OK;
}

static enum gt_code open_shared_resources(struct gt_attempt *a, struct gt_err *err)
{
	const struct gt_launch_spec *s = a->spec;
	a->board_bytes = sizeof *a->board + (size_t)s->nproc * sizeof *a->board->slot;
	GT_TRY(create_memory_file("gtrain-board", a->board_bytes, &a->board_fd, err));
	void *m = mmap(NULL, a->board_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, a->board_fd, 0);
	if (m == MAP_FAILED)
		return gt_fail(err, GT_EFAIL, "cannot map shared memory: %s", strerror(errno));
	struct gt_board *b = a->board = m;
	*b = (struct gt_board){.magic = GT_BOARD_MAGIC, .version = GT_BOARD_VERSION, .local_world = s->nproc};
	for (int i = 0; i < s->nproc; i++)
		b->slot[i].step = -1;
	if (s->token)
		memcpy(b->token, s->token, sizeof b->token);
	else if (getrandom(b->token, sizeof b->token, 0) != sizeof b->token)
		return gt_fail(err, GT_EFAIL, "cannot get random numbers: %s", strerror(errno));
	if (s->nnodes <= 1)
		return gt_loopback_listen(&a->listen_fd, b->addr, &b->port, err);
	snprintf(b->addr, sizeof b->addr, "%s", s->addr);
	b->port = s->port;
	return gt_hosts_open(s, b->token, &a->listen_fd, &a->hosts, err);
}

/* ---- start of a rank ---------------------------------------------------------------------------------------------------------------- */
/* The data that the new process uses before exec, prepared before fork(), because then only async-signal-safe calls are allowed. */
struct spawn_args {
	char **env;
	char text[12][48];
	int link, out; /* descriptors of the rank: its end of the socket to the launcher, and the write end of the pipe for its output */
	bool pin;
	cpu_set_t cpus;
};

static bool is_rank_variable(const char *var)
{
	static const char *const names[] = {"RANK", "WORLD", "LOCAL_RANK", "LOCAL_WORLD", "NODE", "NNODES", "RESTART",
	                                    "LINK_FD", "BOARD_FD", "LISTEN_FD"};
	if (strncmp(var, "GTRAIN_", 7))
		return false;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strncmp(var + 7, names[i], strlen(names[i])) && var[7 + strlen(names[i])] == '=')
			return true;
	return false;
}

static enum gt_code make_environment(const struct gt_attempt *a, int local, int threads, struct spawn_args *b, struct gt_err *err)
{
	const struct gt_launch_spec *s = a->spec;
	int nnodes = s->nnodes > 1 ? s->nnodes : 1, node = s->nnodes > 1 ? s->node : 0, rank = node * s->nproc + local, n = 0, t = 0;
	while (environ && environ[n])
		n++;
	b->env = malloc(((size_t)n + sizeof b->text / sizeof *b->text + 1) * sizeof *b->env);
	if (!b->env)
		return gt_fail(err, GT_EFAIL, "out of memory");
	n = 0;
	for (char **e = environ; e && *e; e++)
		if (!is_rank_variable(*e))
			b->env[n++] = *e;
	struct {
		const char *name;
		int value;
		bool skip;
	} const vars[] = {
		{"GTRAIN_RANK", rank}, {"GTRAIN_WORLD", nnodes * s->nproc}, {"GTRAIN_LOCAL_RANK", local}, {"GTRAIN_LOCAL_WORLD", s->nproc},
		{"GTRAIN_NODE", node}, {"GTRAIN_NNODES", nnodes}, {"GTRAIN_RESTART", a->restarts}, {"GTRAIN_LINK_FD", b->link},
		{"GTRAIN_BOARD_FD", a->board_fd}, {"GTRAIN_LISTEN_FD", a->listen_fd, rank || a->listen_fd < 0},
		{"OMP_NUM_THREADS", threads, getenv("OMP_NUM_THREADS") != NULL},
	};
	for (size_t i = 0; i < sizeof vars / sizeof *vars; i++)
		if (!vars[i].skip) {
			snprintf(b->text[t], sizeof b->text[t], "%s=%d", vars[i].name, vars[i].value);
			b->env[n++] = b->text[t++];
		}
	b->env[n] = NULL;
	return GT_OK;
}

static void clear_cloexec(int fd)
{
	if (fd >= 0)
		fcntl(fd, F_SETFD, 0);
}

/* Runs in the new process: sets up its descriptors and executes the program. */
static _Noreturn void exec_rank(const struct gt_attempt *a, int local, const struct spawn_args *b, char *const *argv)
{
	struct gt_rank_error w = {.code = GT_EFAIL};
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	signal(SIGTTOU, SIG_IGN); /* rank 0 may write to a terminal although its process group is not in the foreground */
	if (b->pin)
		sched_setaffinity(0, sizeof b->cpus, &b->cpus); /* a failure is ignored, because the run would only be slower */
	if (null >= 0)
		dup2(null, 0);
	if (b->out >= 0) {
		dup2(b->out, 1);
		dup2(b->out, 2);
	}
	clear_cloexec(b->link);
	clear_cloexec(a->board_fd);
	if (!local)
		clear_cloexec(a->listen_fd);
	execve("/proc/self/exe", argv, b->env); /* /proc/self/exe is the running program, even if its file was replaced */
	snprintf(w.text, sizeof w.text, "cannot execute the program again: %s", strerror(errno));
	send(b->link, &w, sizeof w, MSG_DONTWAIT | MSG_NOSIGNAL);
	_exit(GT_EFAIL);
}

static enum gt_code start_rank(struct gt_attempt *a, int local, struct gt_cpu_info *place, int nplaces, char *const *argv,
                               const sigset_t *mask, struct gt_err *err)
{
	struct gt_child *c = &a->child[local];
	struct spawn_args b = {.out = -1, .link = -1};
	int pair[2], pipes[2], cores = nplaces / a->spec->nproc;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return gt_fail(err, GT_EFAIL, "cannot make a socket for rank %d: %s", local, strerror(errno));
	c->link = pair[0];
	b.link = pair[1];
	enum gt_code code = GT_OK;
	bool piped = local || a->spec->capture;
	if (piped && pipe2(pipes, O_CLOEXEC)) {
		code = gt_fail(err, GT_EFAIL, "cannot make a pipe for rank %d: %s", local, strerror(errno));
	} else if (piped) {
		c->out = pipes[0];
		b.out = pipes[1];
		fcntl(c->out, F_SETFL, O_NONBLOCK);
	}
	if (a->spec->pin)
		b.pin = gt_cpu_share(place, nplaces, local, a->spec->nproc, &b.cpus, &cores);
	if (code == GT_OK)
		code = make_environment(a, local, cores > 0 ? cores : 1, &b, err);
	pid_t pid = code == GT_OK ? gt_fork_program(mask, GT_EPEER) : -1;
	if (!pid)
		exec_rank(a, local, &b, argv);
	if (code == GT_OK && pid < 0)
		code = gt_fail(err, GT_EFAIL, "cannot start rank %d: %s", local, strerror(errno));
	if (pid > 0) {
		c->pid = pid;
		c->beat_at = gt_clock();
		a->started++;
	}
	free(b.env);
	close(b.link);
	gt_fd_close(&b.out);
	return code;
}

enum gt_code gt_attempt_open(struct gt_attempt *a, char *const *argv, const sigset_t *mask, struct gt_err *err)
{
	struct gt_cpu_info place[CPU_SETSIZE];
	int n = a->spec->nproc, nplaces = gt_cpu_list(place);
	a->board_fd = a->listen_fd = -1;
	a->started = 0;
	a->child = calloc((size_t)n, sizeof *a->child);
	if (!a->child)
		return gt_fail(err, GT_EFAIL, "out of memory");
	for (int i = 0; i < n; i++)
		a->child[i].link = a->child[i].out = -1;
	GT_TRY(open_shared_resources(a, err));
	for (int i = 0; i < n; i++)
		GT_TRY(start_rank(a, i, place, nplaces, argv, mask, err));
	gt_fd_close(&a->listen_fd); /* only rank 0 keeps the listener open, so that the port is free when rank 0 ends */
	return GT_OK;
}

void gt_attempt_close(struct gt_attempt *a)
{
	for (int i = 0; a->child && i < a->spec->nproc; i++) {
		struct gt_child *c = &a->child[i];
		if (c->pid && !c->gone) { /* the rank still runs, because the attempt failed after starting it */
			kill(-c->pid, SIGKILL);
			kill(c->pid, SIGKILL); /* kill the process, too: its process group may not exist yet */
			while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
				;
		}
		gt_fd_close(&c->link);
		gt_fd_close(&c->out);
	}
	gt_hosts_close(a->hosts);
	a->hosts = NULL;
	gt_fd_close(&a->board_fd);
	gt_fd_close(&a->listen_fd);
	if (a->board)
		munmap(a->board, a->board_bytes);
	free(a->child);
	a->child = NULL;
	a->board = NULL;
}

bool gt_launch_is_transient(enum gt_code code)
{
	return code == GT_EFAIL || code == GT_EIO || code == GT_EPEER || (int)code > 128;
}
