#include "exec/fetcher.h"
#include "base/arena.h"
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct batch {
	uint64_t epoch;
	int64_t *sample;   /* [spec.rows] */
	bool *absent;      /* [spec.rows] */
	int64_t n, done;   /* number of rows of the batch; number of rows that are complete */
	int64_t taken;     /* number of rows that threads have taken */
	int64_t bad;       /* the first row that could not be read; n: all rows were read */
	struct gt_err why; /* its error */
};

struct gt_fetcher {
	struct gt_fetcher_spec spec;
	struct batch *batch; /* [spec.batches]; queued batches are batch[first], …, cyclically */
	int first, queued;
	int64_t running;   /* number of rows that threads are reading */
	bool stop;
	pthread_mutex_t lock;
	pthread_cond_t work;     /* a row can be taken, or the threads stop */
	pthread_cond_t complete; /* a batch is complete, or running became 0 */
	pthread_t *thread;
	int nthreads; /* threads that were started */
	int next_id;  /* index of the next thread that starts */
};

/* Returns the oldest batch that has rows to take; NULL: none. */
static struct batch *find_work(struct gt_fetcher *f)
{
	for (int i = 0; i < f->queued; i++) {
		struct batch *s = &f->batch[(f->first + i) % f->spec.batches];
		if (s->taken < s->n)
			return s;
	}
	return NULL;
}

static void *fetch_rows(void *arg)
{
	struct gt_fetcher *f = arg;
	pthread_mutex_lock(&f->lock);
	int id = f->next_id++;
	for (;;) {
		struct batch *s;
		while (!(s = find_work(f)) && !f->stop)
			pthread_cond_wait(&f->work, &f->lock);
		if (f->stop)
			break;
		struct gt_err err = {0};
		bool absent = false;
		int64_t row = s->taken++;
		uint8_t *to = f->spec.memory + ((size_t)(s - f->batch) * (size_t)f->spec.rows + (size_t)row) * f->spec.bytes;
		f->running++;
		pthread_mutex_unlock(&f->lock);
		enum gt_code code = f->spec.fetch.sample(f->spec.fetch.user, id, s->sample[row], s->epoch, to, &absent, &err);
		pthread_mutex_lock(&f->lock);
		f->running--;
		s->absent[row] = absent;
		if (code != GT_OK && row < s->bad) {
			s->bad = row;
			s->why = err;
		}
		if (++s->done >= s->n || !f->running)
			pthread_cond_signal(&f->complete);
	}
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

int64_t gt_fetcher_add(struct gt_fetcher *f, uint64_t epoch, const int64_t *samples, int64_t n)
{
	pthread_mutex_lock(&f->lock);
	int at = (f->first + f->queued) % f->spec.batches;
	struct batch *s = &f->batch[at];
	s->epoch = epoch;
	s->n = s->bad = n;
	s->done = s->taken = 0;
	memcpy(s->sample, samples, (size_t)n * sizeof *samples);
	f->queued++;
	pthread_cond_broadcast(&f->work);
	pthread_mutex_unlock(&f->lock);
	return at * f->spec.rows;
}

int gt_fetcher_queued(const struct gt_fetcher *f)
{
	return f->queued; /* without the lock, because only the caller's thread changes f->queued */
}

enum gt_code gt_fetcher_wait(struct gt_fetcher *f, int i, struct gt_fetched *out, struct gt_err *err)
{
	int at = (f->first + i) % f->spec.batches;
	struct batch *s = &f->batch[at];
	pthread_mutex_lock(&f->lock);
	while (s->done < s->n)
		pthread_cond_wait(&f->complete, &f->lock);
	pthread_mutex_unlock(&f->lock);
	*out = (struct gt_fetched){.first = at * f->spec.rows,
	                           .n = s->n,
	                           .absent = s->absent,
	                           .rows = f->spec.memory + (size_t)at * (size_t)f->spec.rows * f->spec.bytes};
	if (s->bad == s->n)
		return GT_OK;
	return gt_fail_copy(err, &s->why);
}

void gt_fetcher_drop(struct gt_fetcher *f)
{
	pthread_mutex_lock(&f->lock);
	f->first = (f->first + 1) % f->spec.batches;
	f->queued--;
	pthread_mutex_unlock(&f->lock);
}

void gt_fetcher_clear(struct gt_fetcher *f)
{
	pthread_mutex_lock(&f->lock);
	f->queued = 0; /* threads then find no rows to take */
	while (f->running)
		pthread_cond_wait(&f->complete, &f->lock);
	pthread_mutex_unlock(&f->lock);
}

enum gt_code gt_fetcher_open(const struct gt_fetcher_spec *spec, struct gt_fetcher **out, struct gt_err *err)
{
	struct gt_fetcher *f = calloc(1, sizeof *f);
	*out = NULL;
	if (!f)
		return gt_fail_memory(err, sizeof *f);
	f->spec = *spec;
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->work, NULL);
	pthread_cond_init(&f->complete, NULL);
	f->batch = calloc((size_t)spec->batches, sizeof *f->batch);
	f->thread = calloc((size_t)spec->threads, sizeof *f->thread);
	enum gt_code code = f->batch && f->thread ? GT_OK : gt_fail_memory(err, 0);
	for (int i = 0; i < spec->batches && code == GT_OK; i++) {
		f->batch[i].sample = malloc((size_t)spec->rows * sizeof(int64_t));
		f->batch[i].absent = malloc((size_t)spec->rows * sizeof(bool));
		if (!f->batch[i].sample || !f->batch[i].absent)
			code = gt_fail_memory(err, (size_t)spec->rows * sizeof(int64_t));
	}
	for (int i = 0; i < spec->threads && code == GT_OK; i++) {
		if (pthread_create(&f->thread[i], NULL, fetch_rows, f))
			code = gt_fail(err, GT_EFAIL, "cannot start a thread that reads samples");
		else
			f->nthreads++;
	}
	if (code != GT_OK) {
		gt_fetcher_close(f);
		return code;
	}
	*out = f;
	return GT_OK;
}

void gt_fetcher_close(struct gt_fetcher *f)
{
	if (!f)
		return;
	pthread_mutex_lock(&f->lock);
	f->stop = true;
	pthread_cond_broadcast(&f->work);
	pthread_mutex_unlock(&f->lock);
	for (int i = 0; i < f->nthreads; i++)
		pthread_join(f->thread[i], NULL);
	for (int i = 0; f->batch && i < f->spec.batches; i++) {
		free(f->batch[i].sample);
		free(f->batch[i].absent);
	}
	free(f->batch);
	free(f->thread);
	pthread_mutex_destroy(&f->lock);
	pthread_cond_destroy(&f->work);
	pthread_cond_destroy(&f->complete);
	free(f);
}
