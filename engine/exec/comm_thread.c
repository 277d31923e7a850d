#include "exec/comm_thread.h"
#include "base/clock.h"
#include "exec/exec_parts.h"
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#define QUEUE 256 /* maximum number of queued steps; a caller that queues more waits */

struct task {
	const struct gt_prog *prog;
	int step, slot;
};

struct gt_comm_thread {
	struct gt_exec *x;
	struct gt_dev *dev; /* a device with one thread for the kernels of the stream, because the other threads execute the backward pass */
	pthread_t thread;
	uint64_t event[GT_EVENTS]; /* number of steps that precede each recorded event; only the rank's thread uses it */
	pthread_mutex_t lock;      /* protects all fields below */
	pthread_cond_t queued, done;
	struct task task[QUEUE];
	uint64_t nqueued, ndone; /* numbers of steps since open */
	bool stop;
	enum gt_code code; /* of the first failure; later steps are then not executed */
	struct gt_err err;
	double busy_s;
};

static enum gt_code run_task(struct gt_comm_thread *t, const struct task *k, struct gt_err *err)
{
	const struct gt_step *s = &k->prog->step[k->step];
	if (s->kind == GT_STEP_COMM)
		return gt_exec_communicate(t->x, k->prog, k->step, k->slot, err);
	struct gt_launch a = {.in = s->call->in, .out = s->call->out, .scratch = s->call->work, .stream = s->stream};
	return t->x->be->launch(t->dev, s->call->kernel, &a, err);
}

static void *run_tasks(void *arg)
{
	struct gt_comm_thread *t = arg;
	pthread_mutex_lock(&t->lock);
	/* opened here, because a device sets the number of OpenMP's threads of the thread that opens it */
	t->code = t->x->be->open(&(struct gt_dev_opts){.threads = 1}, &t->dev, &t->err);
	for (;;) {
		while (t->ndone == t->nqueued && !t->stop)
			pthread_cond_wait(&t->queued, &t->lock);
		if (t->ndone == t->nqueued)
			break;
		struct task k = t->task[t->ndone % QUEUE];
		bool runs = t->code == GT_OK;
		pthread_mutex_unlock(&t->lock);
		struct gt_err err = {0};
		double begin = gt_clock();
		enum gt_code code = runs ? run_task(t, &k, &err) : GT_OK;
		double took = gt_clock() - begin;
		gt_rank_beat(t->x->link); /* while the rank's thread waits for several steps, each of them is progress */
		pthread_mutex_lock(&t->lock);
		t->busy_s += took;
		if (code != GT_OK) {
			t->code = code;
			t->err = err;
		}
		t->ndone++;
		pthread_cond_broadcast(&t->done);
	}
	pthread_mutex_unlock(&t->lock);
	if (t->dev)
		t->x->be->close(t->dev);
	return NULL;
}

static enum gt_code start_thread(struct gt_comm_thread *t, struct gt_err *err)
{
	sigset_t every, before;
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->queued, NULL);
	pthread_cond_init(&t->done, NULL);
	sigfillset(&every); /* only the rank's thread handles signals */
	pthread_sigmask(SIG_SETMASK, &every, &before);
	int failed = pthread_create(&t->thread, NULL, run_tasks, t);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return failed ? gt_fail_errno(err, GT_EFAIL, failed, "cannot start a thread") : GT_OK;
}

static void free_thread(struct gt_comm_thread *t)
{
	pthread_cond_destroy(&t->done);
	pthread_cond_destroy(&t->queued);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

enum gt_code gt_comm_thread_open(struct gt_exec *x, struct gt_comm_thread **out, struct gt_err *err)
{
	struct gt_comm_thread *t = calloc(1, sizeof *t);
	*out = NULL;
	if (!t)
		return gt_fail_memory(err, sizeof *t);
	t->x = x;
	enum gt_code code = start_thread(t, err);
	if (code != GT_OK)
		free_thread(t);
	else
		*out = t;
	return code;
}

void gt_comm_thread_close(struct gt_comm_thread *t)
{
	struct gt_comm *world;
	if (!t)
		return;
	pthread_mutex_lock(&t->lock);
	world = t->ndone < t->nqueued ? t->x->group[GT_GROUP_WORLD] : NULL;
	t->stop = true;
	pthread_cond_signal(&t->queued);
	pthread_mutex_unlock(&t->lock);
	if (world)
		world->api->abort(world, "it has stopped in the middle of a step");
	pthread_join(t->thread, NULL);
	free_thread(t);
}

/* ---- the rank's thread ------------------------------------------------------------------------------------------------------------- */
/* Waits until n steps since open have been executed. The caller has locked t->lock. */
static void wait_locked(struct gt_comm_thread *t, uint64_t n)
{
	struct gt_exec *x = t->x;
	if (t->ndone >= n)
		return;
	double begin = x->waited ? gt_clock() : 0;
	gt_rank_set_waiting(x->link, true);
	while (t->ndone < n)
		pthread_cond_wait(&t->done, &t->lock);
	gt_rank_set_waiting(x->link, false);
	if (x->waited)
		*x->waited += gt_clock() - begin;
}

static enum gt_code wait_done(struct gt_comm_thread *t, uint64_t n, struct gt_err *err)
{
	pthread_mutex_lock(&t->lock);
	wait_locked(t, n);
	enum gt_code code = t->code;
	if (code != GT_OK && err)
		*err = t->err;
	pthread_mutex_unlock(&t->lock);
	return code;
}

static uint64_t queue_task(struct gt_comm_thread *t, struct task k)
{
	pthread_mutex_lock(&t->lock);
	uint64_t n = t->nqueued + 1;
	if (n > QUEUE)
		wait_locked(t, n - QUEUE);
	t->task[t->nqueued % QUEUE] = k;
	t->nqueued = n;
	pthread_cond_signal(&t->queued);
	pthread_mutex_unlock(&t->lock);
	return n;
}

bool gt_comm_thread_takes(const struct gt_step *s)
{
	return s->stream || s->kind == GT_STEP_COMM || s->kind == GT_STEP_RECORD || s->kind == GT_STEP_WAIT;
}

enum gt_code gt_comm_thread_step(struct gt_comm_thread *t, const struct gt_prog *p, int i, int slot, struct gt_err *err)
{
	const struct gt_step *s = &p->step[i];
	switch (s->kind) {
	case GT_STEP_RECORD: /* all earlier steps of stream 0 have been executed */
		t->event[s->event] = s->stream ? t->nqueued : 0;
		return GT_OK;
	case GT_STEP_WAIT:
		return s->stream ? GT_OK : wait_done(t, t->event[s->event], err);
	case GT_STEP_COMM:
	case GT_STEP_LAUNCH: {
		uint64_t n = queue_task(t, (struct task){p, i, slot});
		return s->stream ? GT_OK : wait_done(t, n, err);
	}
	default:
		return gt_fail(err, GT_EINTERNAL, "step %d (%s) in the communication stream", i, gt_step_name(s->kind));
	}
}

enum gt_code gt_comm_thread_drain(struct gt_comm_thread *t, struct gt_err *err)
{
	return wait_done(t, t->nqueued, err);
}

double gt_comm_thread_busy(struct gt_comm_thread *t)
{
	pthread_mutex_lock(&t->lock);
	double s = t->busy_s;
	pthread_mutex_unlock(&t->lock);
	return s;
}
