#include "ranks.h"
#include "base/plugin.h"
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LIMIT_S 300 /* a rank that hangs ends the test, not the machine */

double ranks_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

const struct gt_comm_api *ranks_api(void)
{
	void *p = NULL;
	struct gt_err e = {0};
	CHECK_OK(gt_plugin_open("cpu", "gt_comm_shm", &p, &e), e);
	return p;
}

void rank_fail(struct rank_note *note, const char *file, int line, const char *fmt, ...)
{
	int n = snprintf(note->why, sizeof note->why, "%s:%d: ", file, line);
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(note->why + n, sizeof note->why - (size_t)n, fmt, ap);
	va_end(ap);
	_exit(1);
}

static void child(const struct ranks *r, const struct gt_comm_api *api, struct gt_comm_boot boot, int rank)
{
	struct rank_note *note = &r->note[rank];
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(LIMIT_S);
	if (r->by_path) {
		close(boot.fd);
		boot.fd = -1;
	}
	struct gt_comm_spec spec = {.rank = rank, .world = r->world, .pair_bytes = r->pair_bytes, .boot = &boot};
	spec.timeout_s = r->timeout_s > 0 ? r->timeout_s : 60;
	struct gt_comm *c = NULL;
	enum gt_code code = api->open(&spec, &c, &note->err);
	if (r->open_fails)
		RANK_CHECK(note, code != GT_OK && !c && code == note->err.code);
	else
		RANK_OK(note, code, note->err);
	r->body(c, rank, note, r->ctx);
	api->close(c);
	_exit(0);
}

void ranks_run(struct ranks *r)
{
	const struct gt_comm_api *api = ranks_api();
	struct gt_comm_boot boot = {.fd = -1};
	struct gt_err e = {0};
	r->note = mmap(NULL, RANKS_MAX * sizeof *r->note, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!api || r->note == MAP_FAILED) {
		test_fail(__FILE__, __LINE__, "no communicator, or no memory");
		exit(1);
	}
	if (r->boot)
		boot = *r->boot;
	else
		CHECK_OK(api->create(r->world, &boot, &e), e);
	fflush(NULL);
	for (int i = 0; i < r->world; i++) {
		if (i == r->absent)
			continue;
		pid_t pid = fork();
		if (pid == 0)
			child(r, api, boot, i);
		r->note[i].pid = pid;
	}
	if (r->meanwhile)
		r->meanwhile(r->note, r->ctx);
	for (int i = 0; i < r->world; i++) {
		if (i != r->absent)
			while (waitpid(r->note[i].pid, &r->note[i].status, 0) < 0 && errno == EINTR)
				;
	}
	if (!r->boot)
		close(boot.fd);
}

void ranks_check(struct ranks *r)
{
	ranks_run(r);
	for (int i = 0; i < r->world; i++)
		CHECK_MSG(r->note[i].status == 0, "rank %d of %d: status %#x %s", i, r->world, (unsigned)r->note[i].status, r->note[i].why);
}

void ranks_free(struct ranks *r)
{
	munmap(r->note, RANKS_MAX * sizeof *r->note);
	r->note = NULL;
}
