/* The token and the address of rank 0 for ranks of one host that something other than gtrain started (torchrun, mpirun, srun).
 *
 * Rank 0 listens on a socket in Linux' abstract namespace. The name of the socket is derived from data that only the ranks of one start
 * share: the starter's process, and data of that process that only its user can read; for ranks that a script starts with torchrun's
 * variables, only address and port. The socket has no file and disappears with its process. The kernel reports the user of each end, and a
 * connection from another user is rejected. If another user has taken the name, which requires guessing it, the error names that process.
 * Rank 0 sends the token and a loopback port that the kernel chose:
 *   client -> rank world, u32      server -> token[32] port u32, or closes the connection if the client does not belong to the start */
#include "team/team_parts.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/sha256.h"
#include "launch/launcher.h"
#include "launch/rendezvous.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

struct hello {
	uint32_t rank, world;
};

struct answer {
	unsigned char token[GT_TOKEN_SIZE];
	uint32_t port;
};

/* ---- name of the socket ------------------------------------------------------------------------------------------------------------- */
static pid_t read_parent_pid(pid_t pid)
{
	char path[64], line[256];
	int parent = 0;
	snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
	FILE *f = fopen(path, "re");
	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "PPid: %d", &parent) == 1)
			break;
	if (f)
		fclose(f);
	return parent;
}

/* True if the process was started with the variable. A process whose environment is not readable belongs to another user and is not a rank
 * of this run. */
static bool has_variable(pid_t pid, const char *name)
{
	char path[64], *text = NULL;
	size_t size = 0, len = strlen(name);
	bool found = false;
	snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
	FILE *f = fopen(path, "re");
	while (f && !found && getdelim(&text, &size, 0, f) > 0)
		found = !strncmp(text, name, len) && text[len] == '=';
	free(text);
	if (f)
		fclose(f);
	return found;
}

/* Returns the process that started the ranks: the nearest ancestor that does not have the environment variable. A shell between that
 * process and a rank has the variable. */
static pid_t find_starter(const char *variable)
{
	pid_t pid = getppid();
	for (int i = 0; i < 64 && pid > 1 && has_variable(pid, variable); i++)
		pid = read_parent_pid(pid);
	return pid;
}

/* Adds data about the starter that only processes of this user can read: the addresses of its memory (auxv: random bytes, program and vDSO;
 * proc(5)). Adds nothing if the starter belongs to another user, as Slurm's does. */
static void add_secret(struct gt_sha256 *s, pid_t pid)
{
	char path[64], text[1024];
	snprintf(path, sizeof path, "/proc/%d/auxv", (int)pid);
	FILE *f = fopen(path, "re");
	size_t n = f ? fread(text, 1, sizeof text, f) : 0;
	if (f)
		fclose(f);
	gt_sha256_add(s, text, n);
}

static socklen_t make_socket_name(const struct gt_world *w, struct sockaddr_un *at)
{
	char text[GT_ADDR_SIZE + 128];
	unsigned char hash[GT_SHA256_SIZE];
	struct gt_sha256 s;
	bool torchrun = !strcmp(w->how, "torchrun");
	/* 0: no parent is part of the name, because ranks that scripts start with torchrun's variables (env://) may have different parents */
	pid_t parent = torchrun && !getenv("TORCHELASTIC_RUN_ID") ? 0 : find_starter(gt_world_variable(w->how));
	*at = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (torchrun) /* torchrun's own store listens on this port, which therefore identifies the start */
		snprintf(text, sizeof text, "%s %d %d %s %d %d", w->how, (int)geteuid(), w->world, w->addr, w->port, (int)parent);
	else
		snprintf(text, sizeof text, "%s %d %d %d", w->how, (int)geteuid(), w->world, (int)parent);
	gt_sha256_start(&s);
	gt_sha256_add(&s, text, strlen(text));
	if (parent)
		add_secret(&s, parent);
	gt_sha256_end(&s, hash);
	/* a name that begins with a 0 byte is abstract and has no file */
	int n = snprintf(at->sun_path + 1, sizeof at->sun_path - 1, "gtrain-");
	for (int i = 0; i < 16; i++)
		n += snprintf(at->sun_path + 1 + n, sizeof at->sun_path - 1 - (size_t)n, "%02x", hash[i]);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

/* ---- exchange of the token ---------------------------------------------------------------------------------------------------------- */
static bool is_same_user(int fd, struct ucred *peer)
{
	socklen_t n = sizeof *peer;
	*peer = (struct ucred){.pid = -1, .uid = (uid_t)-1};
	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, peer, &n) && peer->uid == geteuid();
}

/* Reports that a process of another user holds the name of the socket, so that the ranks cannot connect to each other. */
static enum gt_code fail_foreign_owner(const struct gt_world *w, const struct ucred *by, struct gt_err *err)
{
	return gt_fail(err, GT_EPEER, "rank %d: process %d of user %u occupies the socket name with which the ranks that %s started find each "
	               "other: end the process, or let gtrain start the ranks (--nproc)", w->rank, (int)by->pid, (unsigned)by->uid, w->how);
}

/* Reports which process holds the name if rank 0 could not take it. */
static enum gt_code fail_name_taken(const struct gt_world *w, const struct sockaddr_un *at, socklen_t n, struct gt_err *err)
{
	struct ucred by;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool reached = fd >= 0 && !connect(fd, (const struct sockaddr *)at, n), ours = reached && is_same_user(fd, &by);
	gt_fd_close(&fd);
	if (reached && !ours)
		return fail_foreign_owner(w, &by, err);
	if (!reached)
		return gt_fail(err, GT_EPEER, "rank 0: a process that does not answer occupies the socket name with which the ranks that %s "
		               "started find each other: let gtrain start the ranks (--nproc)", w->how);
	return gt_fail(err, GT_EUSAGE, "two processes claim to be rank 0 of the ranks that %s started; the other process is %d",
	               w->how, (int)by.pid);
}

/* Sets short time limits on a socket, because a peer on this host answers at once or not at all. */
static void set_short_timeouts(int fd)
{
	struct timeval t = {.tv_sec = 2};
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t);
}

/* Rank 0: sends the token to each of the other ranks, and fails if one of them does not connect in time. */
static enum gt_code send_tokens(int fd, const struct gt_world *w, const struct answer *a, double until, struct gt_err *err)
{
	bool *there = calloc((size_t)w->world, sizeof *there);
	int left = w->world - 1, absent = 1;
	if (!there)
		return gt_fail(err, GT_EFAIL, "out of memory");
	for (double rest; left && (rest = until - gt_clock()) > 0;) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		struct hello h;
		if (poll(&p, 1, (int)(rest * 1e3) + 1) <= 0)
			continue;
		int c = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
		if (c < 0 && gt_descriptors_exhausted(errno)) {
			free(there);
			return gt_fail_errno(err, GT_EFAIL, errno, "rank 0 cannot accept the other ranks");
		}
		if (c < 0)
			continue;
		struct ucred peer;
		set_short_timeouts(c);
		if (is_same_user(c, &peer) && recv(c, &h, sizeof h, MSG_WAITALL) == sizeof h && h.world == (uint32_t)w->world && h.rank > 0 &&
		    h.rank < h.world && send(c, a, sizeof *a, MSG_NOSIGNAL) == sizeof *a && !there[h.rank]) {
			there[h.rank] = true;
			left--;
		}
		close(c);
	}
	while (absent < w->world && there[absent])
		absent++;
	free(there);
	if (!left)
		return GT_OK;
	if (left > 1)
		return gt_fail(err, GT_EPEER, "%d of the %d ranks that %s started did not reach rank 0 in time, for example rank %d",
		               left, w->world, w->how, absent);
	return gt_fail(err, GT_EPEER, "rank %d of the %d ranks that %s started did not reach rank 0 in time", absent, w->world, w->how);
}

static enum gt_code serve_token(struct gt_world *w, const struct sockaddr_un *at, socklen_t n, double until, unsigned char *token,
                                int *listener, struct gt_err *err)
{
	struct answer a;
	if (getrandom(token, GT_TOKEN_SIZE, 0) != GT_TOKEN_SIZE)
		return gt_fail_errno(err, GT_EFAIL, errno, "cannot get random numbers");
	GT_TRY(gt_loopback_listen(listener, w->addr, &w->port, err));
	memcpy(a.token, token, sizeof a.token);
	a.port = (uint32_t)w->port;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	enum gt_code code;
	if (fd < 0 || bind(fd, (const struct sockaddr *)at, n) || listen(fd, 128))
		code =
		    errno == EADDRINUSE ? fail_name_taken(w, at, n, err) : gt_fail_errno(err, GT_EFAIL, errno, "cannot listen for the other ranks");
	else
		code = send_tokens(fd, w, &a, until, err);
	gt_fd_close(&fd);
	explicit_bzero(&a, sizeof a);
	return code;
}

static enum gt_code request_token(struct gt_world *w, const struct sockaddr_un *at, socklen_t n, double until, unsigned char *token,
                                  struct gt_err *err)
{
	const struct hello h = {(uint32_t)w->rank, (uint32_t)w->world};
	struct answer a;
	const char *why = "rank 0 does not listen";
	for (; gt_clock() < until; poll(NULL, 0, 5)) {
		int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd < 0)
			return gt_fail_errno(err, GT_EFAIL, errno, "cannot make a socket");
		if (connect(fd, (const struct sockaddr *)at, n)) {
			close(fd);
			continue;
		}
		set_short_timeouts(fd);
		struct ucred peer;
		if (!is_same_user(fd, &peer)) {
			close(fd);
			return fail_foreign_owner(w, &peer, err);
		}
		bool got = send(fd, &h, sizeof h, MSG_NOSIGNAL) == sizeof h && recv(fd, &a, sizeof a, MSG_WAITALL) == sizeof a;
		close(fd);
		if (got) {
			memcpy(token, a.token, sizeof a.token);
			w->port = (int)a.port;
			explicit_bzero(&a, sizeof a);
			return GT_OK;
		}
		why = "rank 0 did not answer";
	}
	return gt_fail(err, GT_EPEER, "rank %d did not reach rank 0 of the %d ranks that %s started: %s", w->rank, w->world, w->how, why);
}

enum gt_code gt_team_token(struct gt_world *w, double timeout_s, unsigned char token[32], int *listener, struct gt_err *err)
{
	struct sockaddr_un at;
	socklen_t n = make_socket_name(w, &at);
	double until = gt_clock() + timeout_s;
	*listener = -1;
	strcpy(w->addr, "127.0.0.1");
	enum gt_code code = w->rank ? request_token(w, &at, n, until + 2, token, err) : serve_token(w, &at, n, until, token, listener, err);
	if (code != GT_OK)
		gt_fd_close(listener);
	return code;
}
