#include "threads.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

struct run {
	int64_t n, chunk;
	bool (*fn)(void *user, int thread, int64_t i);
	void *user;
	atomic_llong next; /* index of the first element that no thread has taken */
	atomic_bool ends;
};

struct worker {
	struct run *run;
	int number;
	pthread_t thread;
	bool started;
};

static void *take_chunks(void *arg)
{
	struct worker *w = arg;
	struct run *r = w->run;
	for (int64_t from; !r->ends && (from = atomic_fetch_add(&r->next, r->chunk)) < r->n;)
		for (int64_t i = from; i < r->n && i < from + r->chunk && !r->ends; i++)
			if (!r->fn(r->user, w->number, i))
				r->ends = true;
	return NULL;
}

int gt_threads_for(int64_t n, int64_t chunk, int most)
{
	cpu_set_t set;
	int64_t chunks = (n + chunk - 1) / chunk, cores = sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
	most = cores < most ? (int)cores : most;
	return chunks < most ? (int)(chunks > 1 ? chunks : 1) : most;
}

void gt_threads_run(int threads, int64_t n, int64_t chunk, bool (*fn)(void *user, int thread, int64_t i), void *user)
{
	struct run r = {.n = n, .chunk = chunk, .fn = fn, .user = user};
	struct worker w[GT_THREADS_MAX];
	for (int i = 0; i < threads; i++) {
		w[i] = (struct worker){.run = &r, .number = i};
		w[i].started = i && !pthread_create(&w[i].thread, NULL, take_chunks, &w[i]);
	}
	take_chunks(&w[0]);
	for (int i = 1; i < threads; i++)
		if (w[i].started)
			pthread_join(w[i].thread, NULL);
}
