#include "exec/loader_parts.h"
#include "base/arena.h"
#include <stdlib.h>

static void *produce_batches(void *arg)
{
	struct gt_loader *l = arg;
	struct gt_loader_thread *t = l->thread;
	int buffer = 0;
	pthread_mutex_lock(&t->lock);
	for (;;) {
		/* Wait also before the epoch after the next one: its order would overwrite the order that the consumer still uses. */
		while (!t->stop && (t->count + t->lent >= l->nbuf || t->ahead.epoch > l->next.epoch + 1))
			pthread_cond_wait(&t->freed, &t->lock);
		if (t->stop)
			break;
		struct gt_batch b = gt_loader_next_part(l, &t->ahead);
		pthread_mutex_unlock(&t->lock);
		enum gt_code code = gt_loader_gather_batch(l, &b, buffer, 1, &t->failure);
		pthread_mutex_lock(&t->lock);
		if (code != GT_OK) {
			t->stop = true;
			pthread_cond_signal(&t->filled);
			break;
		}
		buffer = (buffer + 1) % l->nbuf;
		t->batch[(t->head + t->count) % l->nbuf] = b;
		t->count++;
		gt_loader_advance(l, &t->ahead);
		pthread_cond_signal(&t->filled);
	}
	pthread_mutex_unlock(&t->lock);
	return NULL;
}

enum gt_code gt_loader_open_thread(struct gt_loader *l, struct gt_err *err)
{
	struct gt_loader_thread *t = calloc(1, sizeof *t);
	if (!t)
		return gt_fail_memory(err, sizeof *t);
	l->thread = t;
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->filled, NULL);
	pthread_cond_init(&t->freed, NULL);
	t->batch = calloc((size_t)l->nbuf, sizeof *t->batch);
	return t->batch ? GT_OK : gt_fail_memory(err, (size_t)l->nbuf * sizeof *t->batch);
}

void gt_loader_close_thread(struct gt_loader *l)
{
	struct gt_loader_thread *t = l->thread;
	if (!t)
		return;
	free(t->batch);
	pthread_mutex_destroy(&t->lock);
	pthread_cond_destroy(&t->filled);
	pthread_cond_destroy(&t->freed);
	free(t);
}

enum gt_code gt_loader_start_thread(struct gt_loader *l, struct gt_err *err)
{
	struct gt_loader_thread *t = l->thread;
	t->ahead = l->next;
	t->head = t->count = t->lent = 0;
	t->stop = false;
	t->failure = (struct gt_err){0};
	if (pthread_create(&t->id, NULL, produce_batches, l))
		return gt_fail(err, GT_EFAIL, "cannot start the loader's thread");
	t->running = true;
	return GT_OK;
}

void gt_loader_stop_thread(struct gt_loader *l)
{
	struct gt_loader_thread *t = l->thread;
	if (!t->running)
		return;
	pthread_mutex_lock(&t->lock);
	t->stop = true;
	pthread_cond_signal(&t->freed);
	pthread_mutex_unlock(&t->lock);
	pthread_join(t->id, NULL);
	t->running = false;
}

enum gt_code gt_loader_take_batch(struct gt_loader *l, struct gt_batch *out, struct gt_err *err)
{
	struct gt_loader_thread *t = l->thread;
	pthread_mutex_lock(&t->lock);
	if (t->lent == l->spec.keep)
		t->lent--;
	pthread_cond_signal(&t->freed);
	while (!t->count && !t->stop)
		pthread_cond_wait(&t->filled, &t->lock);
	if (!t->count) {
		pthread_mutex_unlock(&t->lock);
		return gt_fail_copy(err, &t->failure);
	}
	*out = t->batch[t->head];
	t->head = (t->head + 1) % l->nbuf;
	t->count--;
	t->lent++;
	gt_loader_next_part(l, &l->next);
	gt_loader_advance(l, &l->next);
	pthread_cond_signal(&t->freed);
	pthread_mutex_unlock(&t->lock);
	return GT_OK;
}
