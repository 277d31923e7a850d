/* Threads that read samples ahead of the training: for datasets that are not in memory. They fill a ring of batches in host memory.
 *
 *     gt_fetcher_add(f, epoch, samples, n);                 queues a batch; at most spec.batches of them are queued at a time
 *     gt_fetcher_wait(f, 0, &batch, err);                   waits until the oldest batch is complete
 *     gt_fetcher_drop(f);                                   its memory may be reused
 *
 *     add -->  | row row row | row row row | row row row |  --> wait, drop
 *                newest batch   threads fill rows   oldest
 *
 * Threads take one row after the other, so that all threads work on the oldest incomplete batch. The contents of a row depend only on the
 * sample and the epoch, never on the thread. */
#ifndef GT_EXEC_FETCHER_H
#define GT_EXEC_FETCHER_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How samples are read. */
struct gt_fetch {
	/* Writes a sample of the dataset to row, transformed as in this epoch. If the sample cannot be read but the run goes on without it,
	 * sets *absent, which is initially false. thread: index of the calling thread, below gt_fetcher_spec.threads. NULL: samples are not
	 * fetched, because they are in memory. */
	enum gt_code (*sample)(void *user, int thread, int64_t sample, uint64_t epoch, uint8_t *row, bool *absent, struct gt_err *err);
	void (*close)(void *user); /* frees user; called by the owner of this struct; NULL: user is not owned */
	void *user;
};

struct gt_fetcher_spec {
	struct gt_fetch fetch;
	int threads;     /* number of threads, at least 1 */
	int batches;     /* number of batches in the ring */
	int64_t rows;    /* maximum number of samples of a batch */
	size_t bytes;    /* bytes of a row */
	uint8_t *memory; /* batches * rows * bytes bytes for the ring; not owned */
};

/* A complete batch. */
struct gt_fetched {
	int64_t first;       /* index of its first row among all rows of the ring */
	const uint8_t *rows; /* n rows */
	const bool *absent;  /* [n] true: the row has no sample */
	int64_t n;
};

struct gt_fetcher;

enum gt_code gt_fetcher_open(const struct gt_fetcher_spec *spec, struct gt_fetcher **out, struct gt_err *err);
void gt_fetcher_close(struct gt_fetcher *f); /* does nothing if f is NULL */

/* Queues n samples as the next batch, and returns the index of its first row among all rows of the ring. The caller has checked that fewer
 * than spec.batches batches are queued. */
int64_t gt_fetcher_add(struct gt_fetcher *f, uint64_t epoch, const int64_t *samples, int64_t n);
/* Returns the number of batches that are queued or complete and not dropped. */
int gt_fetcher_queued(const struct gt_fetcher *f);
/* Waits for queued batch number i; 0 is the oldest. On failure, *err is the error of the first sample of the batch that cannot be read. */
enum gt_code gt_fetcher_wait(struct gt_fetcher *f, int i, struct gt_fetched *out, struct gt_err *err);
/* Drops the oldest batch. */
void gt_fetcher_drop(struct gt_fetcher *f);
/* Drops all batches; waits for samples that are being read. */
void gt_fetcher_clear(struct gt_fetcher *f);

#endif
