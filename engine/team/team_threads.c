/* Ranks that are threads of one process. They communicate through shared memory, as the processes of one host do. */
#include "exec/device.h"
#include "launch/launcher_parts.h"
#include "team/team_parts.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define OPEN_S 60.0 /* seconds for opening the communicator, in which a thread may fail to get memory */
#define FOREVER 1e9 /* timeout of later waits in seconds, in effect none: a thread that fails always breaks the communicator */

struct thread_group {
	const struct gt_comm_api *api;
	struct gt_comm_boot boot;
	gt_rank_body *body;
	void *user;
	pthread_mutex_t lock;
	pthread_cond_t opened;
	int go;           /* 1: every thread exists; -1: the threads have to end */
	int first;        /* rank whose error is reported; -1: no rank has failed; the cause of a failure replaces a lost peer (GT_EPEER) */
	enum gt_code code;
};

struct rank_thread {
	struct thread_group *group;
	struct gt_team team;
	pthread_t thread;
	enum gt_code code;
	struct gt_err err;
};

enum gt_code gt_team_comm_api(const char *plugin, const char *symbol, const struct gt_comm_api **out, struct gt_err *err)
{
	void *p;
	*out = NULL;
	GT_TRY(gt_device_plugin(plugin, symbol, &p, err));
	*out = p;
	if ((*out)->abi == GT_COMM_ABI)
		return GT_OK;
	return gt_fail(err, GT_EUNAVAILABLE, "the communicator %s has interface version %u, but this gtrain needs %u: install both from the "
	               "same build", (*out)->name, (*out)->abi, GT_COMM_ABI);
}

int gt_team_thread(pthread_t *thread, void *(*fn)(void *), void *arg)
{
	sigset_t every, before;
	sigfillset(&every);
	pthread_sigmask(SIG_SETMASK, &every, &before);
	int rc = pthread_create(thread, NULL, fn, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

/* Records the failure of a rank and breaks the communicator, so that no other rank waits for it. */
static void record_failure(struct rank_thread *h)
{
	struct thread_group *c = h->group;
	pthread_mutex_lock(&c->lock);
	if (c->first < 0 || (c->code == GT_EPEER && h->code != GT_EPEER)) {
		c->first = h->team.world.rank;
		c->code = h->code;
	}
	pthread_mutex_unlock(&c->lock);
	if (h->team.comm)
		h->team.comm->api->abort(h->team.comm, h->err.msg);
}

static void run_rank(struct rank_thread *h)
{
	struct thread_group *c = h->group;
	struct gt_comm_spec spec = {
	    .name = "world", .rank = h->team.world.rank, .world = h->team.world.world, .timeout_s = OPEN_S, .boot = &c->boot};
	gt_team_pin(&h->team, h->team.world.local_rank, h->team.world.local_world);
	h->code = c->api->open(&spec, &h->team.comm, &h->err);
	if (h->code == GT_OK) {
		gt_team_set_timeout(&h->team, FOREVER);
		h->code = c->body(c->user, &h->team, &h->err);
	}
	if (h->code != GT_OK)
		record_failure(h);
	if (h->team.comm)
		c->api->close(h->team.comm);
}

static void *thread_main(void *arg)
{
	struct rank_thread *h = arg;
	struct thread_group *c = h->group;
	pthread_mutex_lock(&c->lock);
	while (!c->go)
		pthread_cond_wait(&c->opened, &c->lock);
	int go = c->go;
	pthread_mutex_unlock(&c->lock);
	if (go > 0)
		run_rank(h);
	return NULL;
}

/* Runs all ranks; rank 0 runs on the calling thread. */
static enum gt_code run_all_ranks(struct thread_group *c, struct rank_thread *h, int n, struct gt_err *err)
{
	int started = 1, rc = 0;
	while (started < n && !(rc = gt_team_thread(&h[started].thread, thread_main, &h[started])))
		started++;
	pthread_mutex_lock(&c->lock);
	c->go = rc ? -1 : 1;
	pthread_cond_broadcast(&c->opened);
	pthread_mutex_unlock(&c->lock);
	if (!rc)
		run_rank(&h[0]);
	for (int i = 1; i < started; i++)
		pthread_join(h[i].thread, NULL);
	if (rc)
		return gt_fail_errno(err, GT_EFAIL, rc, "cannot start %d threads, one for each rank", n);
	if (c->first < 0)
		return GT_OK;
	/* If rank 0 failed with the same code as the group, rank 0's error is reported, because it needs no prefix. */
	struct rank_thread *who = h[0].code == c->code ? &h[0] : &h[c->first];
	gt_fail_copy(err, &who->err);
	if (who != h)
		gt_fail_prefix(err, "rank %d", c->first);
	return c->code;
}

enum gt_code gt_team_threads(int n, struct gt_rank_link *link, gt_rank_body *body, void *user, struct gt_err *err)
{
	struct thread_group c = {
	    .body = body, .user = user, .first = -1, .lock = PTHREAD_MUTEX_INITIALIZER, .opened = PTHREAD_COND_INITIALIZER};
	struct rank_thread *h = calloc((size_t)n, sizeof *h);
	cpu_set_t cpus;
	if (!h)
		return gt_fail(err, GT_EFAIL, "out of memory");
	for (int i = 0; i < n; i++) {
		h[i].group = &c;
		h[i].team = (struct gt_team){.world = {.how = "gtrain", .rank = i, .world = n, .local_rank = i, .local_world = n, .nnodes = 1},
		                             .link = i ? NULL : link};
	}
	enum gt_code code = gt_team_comm_api("cpu", "gt_comm_shm", &c.api, err);
	if (code == GT_OK)
		code = c.api->create(n, &c.boot, err);
	if (code == GT_OK) {
		bool had = !sched_getaffinity(0, sizeof cpus, &cpus);
		code = run_all_ranks(&c, h, n, err);
		if (had)
			sched_setaffinity(0, sizeof cpus, &cpus);
		close(c.boot.fd);
	}
	free(h);
	return code;
}
