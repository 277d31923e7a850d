/* The functions of launch/launcher.h that a rank calls: it reports progress and errors to the launcher that started it. */
#include "base/descriptors.h"
#include "launch/launcher_parts.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

struct gt_rank_link {
	struct gt_world world;
	struct gt_board *board;
	struct gt_board_slot *slot;
	size_t board_bytes;
	int sock, listener;
	bool spoke;
};

/* Reads a variable that the launcher set. */
static enum gt_code read_variable(const char *name, long max, int *out, struct gt_err *err)
{
	const char *text = getenv(name);
	char *end;
	long v = text ? strtol(text, &end, 10) : -1;
	if (!text || end == text || *end || v < 0 || v > max)
		return gt_fail(err, GT_EUSAGE, "%s=%.40s in the environment is not a value that the launcher sets; unset the variable",
		               name, text ? text : "");
	*out = (int)v;
	return GT_OK;
}

/* Reads a descriptor from a variable and removes the variable, because programs that the rank starts are not ranks. */
static enum gt_code take_fd_variable(const char *name, int *out, struct gt_err *err)
{
	GT_TRY(read_variable(name, 1 << 20, out, err));
	unsetenv(name);
	if (fcntl(*out, F_SETFD, FD_CLOEXEC))
		return gt_fail(err, GT_EUSAGE, "%s=%d in the environment is not an open file descriptor; unset the variable", name, *out);
	return GT_OK;
}

static enum gt_code map_board(struct gt_rank_link *l, int fd, struct gt_err *err)
{
	struct stat st;
	const struct gt_world *w = &l->world;
	size_t want = sizeof *l->board + (size_t)w->local_world * sizeof *l->board->slot;
	if (fstat(fd, &st) || (size_t)st.st_size != want)
		return gt_fail(err, GT_EUSAGE, "the launcher's shared memory has a different size than this program expects: use the same version "
		               "of gtrain");
	void *m = mmap(NULL, want, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (m == MAP_FAILED)
		return gt_fail(err, GT_EFAIL, "cannot map the launcher's shared memory: %s", strerror(errno));
	l->board = m;
	l->board_bytes = want;
	if (l->board->magic != GT_BOARD_MAGIC || l->board->version != GT_BOARD_VERSION || l->board->local_world != w->local_world)
		return gt_fail(err, GT_EUSAGE, "the launcher's shared memory belongs to another version of gtrain");
	l->slot = &l->board->slot[w->local_rank];
	return GT_OK;
}

static enum gt_code open_link(struct gt_rank_link *l, struct gt_err *err)
{
	struct gt_world *w = &l->world;
	int board;
	*w = (struct gt_world){.how = "gtrain"};
	GT_TRY(take_fd_variable("GTRAIN_LINK_FD", &l->sock, err));
	GT_TRY(read_variable("GTRAIN_RANK", GT_WORLD_MAX - 1, &w->rank, err));
	GT_TRY(read_variable("GTRAIN_WORLD", GT_WORLD_MAX, &w->world, err));
	GT_TRY(read_variable("GTRAIN_LOCAL_RANK", GT_LAUNCH_MAX - 1, &w->local_rank, err));
	GT_TRY(read_variable("GTRAIN_LOCAL_WORLD", GT_LAUNCH_MAX, &w->local_world, err));
	GT_TRY(read_variable("GTRAIN_NODE", GT_WORLD_MAX - 1, &w->node, err));
	GT_TRY(read_variable("GTRAIN_NNODES", GT_WORLD_MAX, &w->nnodes, err));
	if (w->local_rank >= w->local_world || w->rank >= w->world)
		return gt_fail(err, GT_EUSAGE, "GTRAIN_RANK=%d, GTRAIN_WORLD=%d, GTRAIN_LOCAL_RANK=%d and GTRAIN_LOCAL_WORLD=%d in the "
		               "environment contradict each other", w->rank, w->world, w->local_rank, w->local_world);
	if (getenv("GTRAIN_LISTEN_FD"))
		GT_TRY(take_fd_variable("GTRAIN_LISTEN_FD", &l->listener, err));
	GT_TRY(take_fd_variable("GTRAIN_BOARD_FD", &board, err));
	enum gt_code c = map_board(l, board, err);
	close(board);
	GT_TRY(c);
	memcpy(w->addr, l->board->addr, sizeof w->addr);
	w->addr[sizeof w->addr - 1] = 0;
	w->port = l->board->port;
	if (gt_rank_orphaned(l))
		return gt_fail(err, GT_EPEER, "the launcher that started this rank has ended");
	return GT_OK;
}

enum gt_code gt_rank_open(struct gt_rank_link **out, struct gt_err *err)
{
	*out = NULL;
	if (!getenv("GTRAIN_LINK_FD"))
		return GT_OK;
	struct gt_rank_link *l = calloc(1, sizeof *l);
	if (!l)
		return gt_fail(err, GT_EFAIL, "out of memory");
	l->sock = l->listener = -1;
	enum gt_code c = open_link(l, err);
	if (c != GT_OK)
		gt_rank_close(l);
	else
		*out = l;
	return c;
}

void gt_rank_close(struct gt_rank_link *l)
{
	if (!l)
		return;
	if (l->board)
		munmap(l->board, l->board_bytes);
	gt_fd_close(&l->sock);
	gt_fd_close(&l->listener);
	free(l);
}

const struct gt_world *gt_rank_world(const struct gt_rank_link *l)
{
	return l ? &l->world : NULL;
}

int gt_rank_take_listener(struct gt_rank_link *l)
{
	int fd = l ? l->listener : -1;
	if (l)
		l->listener = -1;
	return fd;
}

const unsigned char *gt_rank_token(const struct gt_rank_link *l)
{
	return l ? l->board->token : NULL;
}

int gt_rank_end_fd(const struct gt_rank_link *l)
{
	return l ? l->sock : -1;
}

void gt_rank_end_reason(const struct gt_rank_link *l, char *out, size_t size)
{
	ssize_t n = l ? recv(l->sock, out, size - 1, MSG_DONTWAIT) : 0;
	if (n > 0)
		out[n] = 0;
	else
		snprintf(out, size, "the run is ending");
}

bool gt_rank_must_regroup(const struct gt_rank_link *l)
{
	return l && atomic_load_explicit(&l->board->regroup, memory_order_relaxed);
}

void gt_rank_report_progress(struct gt_rank_link *l, int64_t step)
{
	if (!l)
		return;
	atomic_store_explicit(&l->slot->allow_ms, 0, memory_order_relaxed);
	atomic_store_explicit(&l->slot->step, step, memory_order_relaxed);
	gt_rank_beat(l);
}

void gt_rank_beat(struct gt_rank_link *l)
{
	if (l)
		atomic_fetch_add_explicit(&l->slot->beats, 1, memory_order_release);
}

void gt_rank_phase(struct gt_rank_link *l, const char *words, double allow_s)
{
	if (!l)
		return;
	snprintf(l->slot->phase, sizeof l->slot->phase, "%s", words);
	double ms = allow_s * 1e3;
	int64_t step = atomic_load_explicit(&l->slot->step, memory_order_relaxed);
	gt_rank_report_progress(l, step);
	atomic_store_explicit(&l->slot->allow_ms, ms > 4e9 ? 4000000000u : (uint32_t)ms, memory_order_relaxed);
}

void gt_rank_set_waiting(struct gt_rank_link *l, bool waits)
{
	if (!l)
		return;
	if (!waits) /* the wait has ended (or failed): begin a new deadline for the work that follows */
		gt_rank_beat(l);
	atomic_store_explicit(&l->slot->waits, waits, memory_order_release);
}

void gt_rank_report_error(struct gt_rank_link *l, enum gt_code code, const char *sentence)
{
	struct gt_rank_error w = {.code = code};
	if (!l || l->spoke)
		return;
	l->spoke = true;
	snprintf(w.text, sizeof w.text, "%s", sentence);
	send(l->sock, &w, sizeof w, MSG_DONTWAIT | MSG_NOSIGNAL); /* if it is lost, the launcher only sees the exit code */
}

bool gt_rank_orphaned(const struct gt_rank_link *l)
{
	struct pollfd p = {.fd = l ? l->sock : -1};
	return l && poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLERR));
}
