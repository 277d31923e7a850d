/* The contents of files as hashes, with several threads. */
#include "sample_mark.h"
#include "source.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { THREADS = 16, FEW = 512 }; /* maximum number of threads; files for which one is enough, and that a thread takes at a time */

struct work {
	const struct gt_source *source;
	struct gt_sample_mark *mark;
	int64_t n;
	atomic_llong next;
};

static void *hash_contents(void *arg)
{
	struct work *w = arg;
	uint8_t tail[GT_SOURCE_TAIL];
	for (int64_t from; (from = atomic_fetch_add(&w->next, FEW)) < w->n;)
		for (int64_t i = from; i < w->n && i < from + FEW; i++) {
			uint64_t size;
			size_t n;
			if (gt_source_tail(w->source, i, tail, &n, &size))
				w->mark[i].content = gt_mark_hash(tail, n, size);
		}
	return NULL;
}

void gt_source_contents(const struct gt_source *s, struct gt_sample_mark *mark, int64_t n)
{
	struct work w = {.source = s, .mark = mark, .n = n};
	pthread_t thread[THREADS];
	cpu_set_t set;
	int64_t cores = sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set), useful = n / FEW;
	int started = 0, most = (int)(cores < useful ? cores : useful);
	while (started + 1 < most && started < THREADS && !pthread_create(&thread[started], NULL, hash_contents, &w))
		started++;
	hash_contents(&w);
	while (started > 0)
		pthread_join(thread[--started], NULL);
}
