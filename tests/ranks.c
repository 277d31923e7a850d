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

bool ranks_over(const char *transport)
{
	const char *name = getenv("GTRAIN_TEST_COMM");
	return !strcmp(name ? name : "shm", transport);
}

const struct gt_comm_api *ranks_api(void)
{
	void *p = NULL;
	struct gt_err e = {0};
	bool gloo = ranks_over("gloo");
	CHECK(gloo || ranks_over("shm"));
	CHECK_OK(gt_plugin_open(gloo ? "gloo" : "cpu", gloo ? "gt_comm_gloo" : "gt_comm_shm", &p, &e), e);
	return p;
}

/* What the rendezvous does in a run, for ranks that share memory. */
#define EXCHANGE_MOST (16 << 10)
struct hall {
	uint32_t opened; /* ranks that have */
	uint32_t count[RANKS_MAX]; /* exchanges that the rank has come to */
	char value[2][RANKS_MAX][EXCHANGE_MOST];
};

struct guest {
	struct hall *hall;
	int rank, world;
	double timeout_s;
	void (*meddle)(int rank, int world, const char *key, void *all, size_t n);
};

static enum gt_code exchange(void *user, const char *key, const void *mine, size_t n, void *all, struct gt_err *err)
{
	const struct guest *g = user;
	struct hall *h = g->hall;
	uint32_t turn = h->count[g->rank] + 1;
	if (n > EXCHANGE_MOST)
		return gt_fail(err, GT_EINTERNAL, "%zu bytes of %s", n, key);
	memcpy(h->value[turn & 1][g->rank], mine, n);
	__atomic_store_n(&h->count[g->rank], turn, __ATOMIC_RELEASE);
	double deadline = ranks_now() + g->timeout_s;
	for (int i = 0; i < g->world; i++) {
		while (__atomic_load_n(&h->count[i], __ATOMIC_ACQUIRE) < turn) {
			if (ranks_now() > deadline)
				return gt_fail(err, GT_EPEER, "rank %d has not opened the group world after %g s", i, g->timeout_s);
			usleep(200);
		}
		memcpy((char *)all + (size_t)i * n, h->value[turn & 1][i], n);
	}
	if (g->meddle)
		g->meddle(g->rank, g->world, key, all, n);
	return GT_OK;
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

static void child(const struct ranks *r, const struct gt_comm_api *api, struct gt_comm_boot boot, int rank, struct hall *hall)
{
	struct rank_note *note = &r->note[rank];
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (rank == 1 && r->boot_of_1)
		boot = *r->boot_of_1;
	alarm(LIMIT_S);
	if (r->by_path && boot.fd >= 0) {
		close(boot.fd);
		boot.fd = -1;
	}
	struct gt_comm_spec spec = {.rank = rank, .world = r->world, .pair_bytes = r->pair_bytes, .boot = &boot};
	spec.timeout_s = r->timeout_s > 0 ? r->timeout_s : 60;
	struct guest guest = {.hall = hall, .rank = rank, .world = r->world, .timeout_s = spec.timeout_s, .meddle = r->meddle};
	spec.exchange = exchange;
	spec.user = &guest;
	spec.addr = r->enter ? r->enter(rank, r->ctx) : r->addr;
	struct gt_comm *c = NULL;
	enum gt_code code = api->open(&spec, &c, &note->err);
	if (r->open_fails)
		RANK_CHECK(note, code != GT_OK && !c && code == note->err.code);
	else
		RANK_OK(note, code, note->err);
	/* What a body breaks at once may end the opening of a rank that is slower: not what they are about. */
	__atomic_add_fetch(&hall->opened, 1, __ATOMIC_ACQ_REL);
	for (double until = ranks_now() + spec.timeout_s;
	     !r->open_fails && ranks_now() < until && __atomic_load_n(&hall->opened, __ATOMIC_ACQUIRE) < (uint32_t)r->world;)
		usleep(200);
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
	struct hall *hall = mmap(NULL, sizeof *hall, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!api || r->note == MAP_FAILED || hall == MAP_FAILED) {
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
			child(r, api, boot, i, hall);
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
	munmap(hall, sizeof *hall);
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
