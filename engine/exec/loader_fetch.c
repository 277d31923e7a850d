#include "exec/loader_parts.h"
#include "base/arena.h"
#include <stdlib.h>
#include <string.h>

enum gt_code gt_loader_fetch_ahead(struct gt_loader *l, int used, struct gt_err *err)
{
	while (gt_fetcher_queued(l->fetcher) < l->spec.ahead + used) {
		struct gt_loader_place at = l->ahead;
		struct gt_batch b = gt_loader_next_part(l, &l->ahead);
		/* the order of a third epoch would overwrite the one that is used now */
		if (b.epoch > l->next.epoch + (l->spec.one_epoch ? 0 : 1)) {
			l->ahead = at;
			return GT_OK;
		}
		GT_TRY(gt_loader_make_order(l, b.epoch, err));
		const int64_t *samples = l->order[b.epoch & 1].host + b.cursor;
		int32_t *labels = l->staged_labels + gt_fetcher_add(l->fetcher, (uint64_t)b.epoch, samples, b.stride, b.n) * l->most;
		for (int64_t i = 0; i < b.n; i++)
			labels[i] = l->spec.view->data->labels[samples[i * b.stride]];
		gt_loader_advance(l, &l->ahead);
	}
	return GT_OK;
}

/* Waits for batch i of the fetcher, which must have the samples of b. Samples that are absent get the label of rows without a sample. */
static enum gt_code wait_for(struct gt_loader *l, int i, const struct gt_batch *b, struct gt_fetched *out, struct gt_err *err)
{
	GT_TRY(gt_fetcher_wait(l->fetcher, i, out, err));
	if (out->n != b->n)
		return gt_fail(err, GT_EINTERNAL, "loader: %lld samples were fetched for a batch of %lld", (long long)out->n, (long long)b->n);
	for (int64_t k = 0; k < out->n; k++)
		if (out->absent[k])
			l->staged_labels[out->slot * l->most + k] = l->spec.fill_target;
	return GT_OK;
}

enum gt_code gt_loader_gather_fetched(struct gt_loader *l, const struct gt_batch *b, const struct gt_step_args *step_args, int slot,
                                   struct gt_err *err)
{
	struct gt_fetched from;
	GT_TRY(gt_loader_fetch_ahead(l, 1, err));
	GT_TRY(wait_for(l, 0, b, &from, err));
	if (b->n)
		GT_TRY(gt_loader_gather(l, b->n, step_args, &from, b->x, slot, 0, err));
	gt_fetcher_drop(l->fetcher);
	return GT_OK;
}

enum gt_code gt_loader_stage(struct gt_loader *l, const struct gt_batch *b, struct gt_err *err)
{
	struct gt_fetched from;
	size_t row = (size_t)(l->spec.shape[0] * l->spec.shape[1] * l->spec.shape[2]);
	int64_t at = l->staged_parts++ % l->ring_parts * l->most;
	GT_TRY(gt_loader_fetch_ahead(l, l->copying + 1, err));
	GT_TRY(wait_for(l, l->copying, b, &from, err));
	GT_TRY(l->be->copy_async(l->dev, l->ring_rows + (size_t)at * row, from.rows, (size_t)b->n * row, GT_COPY_H2D, GT_STREAM_FETCH, err));
	GT_TRY(l->be->copy_async(l->dev, l->ring_labels + at, l->staged_labels + from.slot * l->most, (size_t)b->n * sizeof(int32_t),
	               GT_COPY_H2D,
	                         GT_STREAM_FETCH, err));
	l->copying++;
	return GT_OK;
}

enum gt_code gt_loader_end_copies(struct gt_loader *l, struct gt_err *err)
{
	if (l->copying)
		GT_TRY(l->be->host_wait(l->dev, l->spec.event + 2, err));
	for (; l->copying; l->copying--)
		gt_fetcher_drop(l->fetcher);
	return GT_OK;
}

/* Returns the number of batches in the ring: those that are read ahead, and the one that is used or, on a device with its own memory, those
 * of a step, which are copied together. */
static int slots_of(const struct gt_loader_spec *s)
{
	return s->ahead + (s->units > 1 ? s->units : 1);
}

/* Returns the number of parts in the ring on a device with its own memory: those of two windows; 0: the device uses host memory. */
static int ring_parts(const struct gt_loader_spec *s)
{
	return 2 * s->window * s->units;
}

/* Allocates host memory, which a device with its own memory can copy from. */
static enum gt_code host_memory(struct gt_loader *l, size_t bytes, void *out, struct gt_err *err)
{
	void *p = NULL;
	if (!l->be->host_memory)
		GT_TRY(l->be->host_alloc(l->dev, bytes, &p, err));
	else if (!(p = malloc(bytes)))
		return gt_fail_memory(err, bytes);
	memcpy(out, &p, sizeof p);
	return GT_OK;
}

static void host_memory_free(struct gt_loader *l, void *p)
{
	if (l->be->host_memory)
		free(p);
	else if (p)
		l->be->host_free(l->dev, p);
}

/* Allocates the ring on a device with its own memory. */
static enum gt_code open_ring(struct gt_loader *l, size_t row, struct gt_err *err)
{
	void *p;
	l->ring_parts = ring_parts(&l->spec);
	size_t rows = (size_t)l->ring_parts * (size_t)l->most;
	GT_TRY(host_memory(l, 2 * (size_t)l->row * sizeof *l->map, &l->map, err));
	GT_TRY(l->be->alloc(l->dev, rows * row, &p, err));
	l->ring_rows = p;
	GT_TRY(l->be->alloc(l->dev, rows * sizeof *l->ring_labels, &p, err));
	l->ring_labels = p;
	return GT_OK;
}

enum gt_code gt_loader_open_fetcher(struct gt_loader *l, struct gt_err *err)
{
	const struct gt_loader_spec *s = &l->spec;
	struct gt_fetcher_spec f = {.fetch = s->fetch, .threads = s->workers, .slots = slots_of(s), .rows = l->most,
	                            .bytes = (size_t)(s->shape[0] * s->shape[1] * s->shape[2])};
	size_t rows = (size_t)f.slots * (size_t)l->most;
	GT_TRY(host_memory(l, rows * f.bytes, &l->staged, err));
	GT_TRY(host_memory(l, rows * sizeof *l->staged_labels, &l->staged_labels, err));
	if (!l->be->host_memory)
		GT_TRY(open_ring(l, f.bytes, err));
	if (!(l->iota = malloc((size_t)l->most * sizeof *l->iota)))
		return gt_fail_memory(err, (size_t)l->most * sizeof *l->iota);
	for (int64_t i = 0; i < l->most; i++)
		l->iota[i] = i;
	f.memory = l->staged;
	return gt_fetcher_open(&f, &l->fetcher, err);
}

size_t gt_loader_fetched_bytes(const struct gt_loader_spec *s)
{
	size_t rows = (size_t)gt_part_size(s->micro, s->slice.parts ? s->slice.parts : 1, 0, NULL);
	size_t row = (size_t)(s->shape[0] * s->shape[1] * s->shape[2]) + sizeof(int32_t);
	size_t parts = (size_t)slots_of(s) + (size_t)ring_parts(s);
	return s->fetch.sample ? parts * rows * row : 0;
}

void gt_loader_close_fetcher(struct gt_loader *l)
{
	gt_fetcher_close(l->fetcher);
	if (l->map) { /* copies may still read the memory below */
		l->be->sync(l->dev, 0, NULL);
		l->be->sync(l->dev, GT_STREAM_FETCH, NULL);
	}
	host_memory_free(l, l->staged);
	host_memory_free(l, l->staged_labels);
	host_memory_free(l, l->map);
	if (l->ring_rows)
		l->be->free(l->dev, l->ring_rows);
	if (l->ring_labels)
		l->be->free(l->dev, l->ring_labels);
	free(l->iota);
}
